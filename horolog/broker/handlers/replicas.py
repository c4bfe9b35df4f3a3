"""ListPartitionReassignments 0, AlterPartitionReassignments 0-1 and ElectLeaders 0-2, where every partition has one replica, its leader.

- A partition moves to another broker of the cluster (`cluster.hand_over`); the answer comes when that one leads it. Moving it to where
  it is succeeds, and to anything but one broker of the cluster is INVALID_REPLICA_ASSIGNMENT.
- The partitions that this broker is handing over are listed, and cannot be cancelled: it takes some milliseconds.
- Cancelling where nothing is moved is NO_REASSIGNMENT_IN_PROGRESS.
- No partition needs another leader: ELECTION_NOT_NEEDED, or nothing at all where all partitions are meant. While the worker that
  leads one is away, no other can: PREFERRED_LEADER_NOT_AVAILABLE, or for unclean elections ELIGIBLE_LEADERS_NOT_AVAILABLE.
Not done: more than one replica.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.cluster_state import NO_NODE
from horolog.broker.coordination.keyed_queue import gather
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    PartitionResult,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
    ReplicaElectionResult,
)
from horolog.protocol.topic_partition import by_topic

PREFERRED, UNCLEAN = 0, 1
ELECTIONS = (PREFERRED, UNCLEAN)


def list_reassignments(
    broker: BrokerView,
    request: ListPartitionReassignmentsRequest,
    context: RequestContext,  # noqa: ARG001
) -> ListPartitionReassignmentsResponse:
    asked = (
        None
        if request.topics is None
        else {(one.name, index) for one in request.topics for index in one.partition_indexes}
    )
    me = broker.placement.me
    topics = by_topic(
        (
            name,
            OngoingPartitionReassignment(
                partition_index=index, replicas=[node, me], adding_replicas=[node], removing_replicas=[me]
            ),
        )
        for (name, index), node in broker.hand_overs.moves.items()
        if asked is None or (name, index) in asked
    )
    return ListPartitionReassignmentsResponse(
        error_code=ErrorCode.NONE,
        topics=[OngoingTopicReassignment(name=name, partitions=each) for name, each in topics.items()],
    )


def _exists(cluster: Cluster, name: str, index: int) -> bool:
    topic = cluster.topics.get(name)
    return topic is not None and topic.has(index)


def alter_reassignments(
    broker: BrokerView, request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> None:
    """Move the partitions that can be moved, one after the other; answer when all of it has ended."""
    answers = [
        ReassignableTopicResponse(
            name=topic.name, partitions=[_planned(broker, topic.name, each) for each in topic.partitions]
        )
        for topic in request.topics
    ]
    moves: list[Callable[[Callable[[ClusterError | None], None]], None]] = []
    moved: list[ReassignablePartitionResponse] = []
    for topic, answer in zip(request.topics, answers, strict=True):
        for wanted, told in zip(topic.partitions, answer.partitions, strict=True):
            if told.error_code == ErrorCode.NONE and wanted.replicas:
                move = partial(broker.hand_overs.move, topic.name, wanted.partition_index, wanted.replicas[0])
                moves.append(move)
                moved.append(told)

    def done(errors: list[ClusterError | None]) -> None:
        for told, error in zip(moved, errors, strict=True):
            if error is not None:
                told.error_code, told.error_message = error.code, error.message
        context.reply(
            AlterPartitionReassignmentsResponse(
                error_code=ErrorCode.NONE, error_message=None if answers else "", responses=answers
            )
        )

    gather(moves, done)


def _planned(broker: BrokerView, name: str, wanted: ReassignablePartition) -> ReassignablePartitionResponse:
    """Why a partition cannot be moved, as far as that is known beforehand."""
    answer = ReassignablePartitionResponse(partition_index=wanted.partition_index, error_code=ErrorCode.NONE)
    topic, nodes = broker.cluster.topics.get(name), broker.cluster.nodes
    if topic is None or not topic.has(wanted.partition_index):
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        answer.error_message = f"there is no partition {name}-{wanted.partition_index} here"
    elif wanted.replicas is None:
        answer.error_code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    elif len(wanted.replicas) != 1 or wanted.replicas[0] not in nodes:
        answer.error_code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
        answer.error_message = f"a partition has one replica, on one of the brokers {list(nodes)}"
    return answer


def elect_leaders(
    broker: BrokerView,
    request: ElectLeadersRequest,
    context: RequestContext,  # noqa: ARG001
) -> ElectLeadersResponse:
    known_type = request.election_type in ELECTIONS or request.topic_partitions == []
    return ElectLeadersResponse(
        error_code=ErrorCode.NONE if known_type else ErrorCode.INVALID_REQUEST,
        replica_election_results=[
            ReplicaElectionResult(
                topic=each.topic,
                partition_result=[
                    _elect(broker, each.topic, index, request.election_type) for index in each.partitions
                ],
            )
            for each in request.topic_partitions or ()
        ],
    )


def _elect(broker: BrokerView, name: str, index: int, election_type: int) -> PartitionResult:
    if election_type not in ELECTIONS:
        code, message = ErrorCode.INVALID_REQUEST, "there is no election of this type"
    elif not _exists(broker.cluster, name, index):
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}-{index} here"
    elif broker.placement.lead(broker.cluster.topics[name].id, index).node != NO_NODE:
        code, message = ErrorCode.ELECTION_NOT_NEEDED, "the only broker that may lead it leads it"
    elif election_type == PREFERRED:
        code, message = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "the worker that leads it is not running"
    else:
        code, message = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "the worker that leads it is not running"
    return PartitionResult(partition_id=index, error_code=code, error_message=message)
