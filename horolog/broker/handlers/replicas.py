"""ListPartitionReassignments 0, AlterPartitionReassignments 0-1 and ElectLeaders 0-2, where one broker keeps and leads everything.

- Nothing is being moved, so nothing is listed, and cancelling a move is NO_REASSIGNMENT_IN_PROGRESS.
- Moving a partition to where it is succeeds; anywhere else is INVALID_REPLICA_ASSIGNMENT.
- No partition needs another leader: ELECTION_NOT_NEEDED, or nothing at all where all partitions are meant.
Not done: more than one replica.
"""

from __future__ import annotations

from horolog.broker.cluster import Cluster
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    PartitionResult,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
    ReplicaElectionResult,
)

ELECTIONS = (0, 1)  # preferred, unclean


def list_reassignments(
    broker: BrokerView,  # noqa: ARG001
    request: ListPartitionReassignmentsRequest,  # noqa: ARG001
    context: RequestContext,  # noqa: ARG001
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_code=ErrorCode.NONE, topics=[])


def _exists(cluster: Cluster, name: str, index: int) -> bool:
    topic = cluster.topics.get(name)
    return topic is not None and topic.has(index)


def alter_reassignments(
    broker: BrokerView,
    request: AlterPartitionReassignmentsRequest,
    context: RequestContext,  # noqa: ARG001
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=ErrorCode.NONE,
        responses=[
            ReassignableTopicResponse(
                name=topic.name, partitions=[_reassign(broker, topic.name, each) for each in topic.partitions]
            )
            for topic in request.topics
        ],
    )


def _reassign(broker: BrokerView, name: str, wanted: ReassignablePartition) -> ReassignablePartitionResponse:
    answer = ReassignablePartitionResponse(partition_index=wanted.partition_index, error_code=ErrorCode.NONE)
    topic, placement = broker.cluster.topics.get(name), broker.placement
    if topic is None or not topic.has(wanted.partition_index):
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        answer.error_message = f"there is no partition {name}-{wanted.partition_index} here"
    elif wanted.replicas is None:
        answer.error_code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    elif wanted.replicas != [leader := placement.lead(topic.id, wanted.partition_index).node]:
        answer.error_code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
        answer.error_message = f"broker {leader} is the only one and keeps every partition"
    return answer


def elect_leaders(
    broker: BrokerView,
    request: ElectLeadersRequest,
    context: RequestContext,  # noqa: ARG001
) -> ElectLeadersResponse:
    known_type = request.election_type in ELECTIONS
    return ElectLeadersResponse(
        error_code=ErrorCode.NONE if known_type else ErrorCode.INVALID_REQUEST,
        replica_election_results=[
            ReplicaElectionResult(
                topic=each.topic,
                partition_result=[
                    _elect(broker.cluster, each.topic, index, known_type=known_type) for index in each.partitions
                ],
            )
            for each in request.topic_partitions or ()
        ],
    )


def _elect(cluster: Cluster, name: str, index: int, *, known_type: bool) -> PartitionResult:
    if not known_type:
        code, message = ErrorCode.INVALID_REQUEST, "there is no election of this type"
    elif not _exists(cluster, name, index):
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}-{index} here"
    else:
        code, message = ErrorCode.ELECTION_NOT_NEEDED, "the only broker leads every partition"
    return PartitionResult(partition_id=index, error_code=code, error_message=message)
