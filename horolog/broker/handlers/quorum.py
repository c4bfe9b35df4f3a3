"""DescribeQuorum, versions 0 to 2: this broker is the only voter of `__cluster_metadata`-0, and is always caught up.

- The log of the metadata is the file `horolog-cluster`: its end is the number of times that it was written since the start. Over a store
  it is the journal there, and its end is the newest entry that this broker knows.
- No broker is elected: each answers for itself, as the leader. Others are observers, whose ends are not known here: -1.
- Anything but this one partition gets UNKNOWN_TOPIC_OR_PARTITION for every partition of the request, as in Kafka.
- v1+ says when the voter last fetched: now. v2+ adds its folder's id and address, and error messages, which are empty where all is well.
"""

from __future__ import annotations

from horolog.broker.base.topic_names import KRAFT_METADATA
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)
from horolog.protocol.uuids import parse_uuid

ONLY_EPOCH = 1
"""No other leader was ever elected."""

UNKNOWN_END = NEVER = -1
FIRST_WITH_NODES = 2
NO_DIRECTORY = bytes(16)


def handle(broker: BrokerView, request: DescribeQuorumRequest, context: RequestContext) -> DescribeQuorumResponse:
    asked = [(topic.topic_name, each.partition_index) for topic in request.topics for each in topic.partitions]
    if asked != [(KRAFT_METADATA, 0)]:
        return DescribeQuorumResponse(error_code=ErrorCode.NONE, error_message="", topics=_unknown(request))
    quorum = _quorum(broker)
    response = DescribeQuorumResponse(
        error_code=ErrorCode.NONE,
        error_message="",
        topics=[DescribeQuorumResponseTopicData(topic_name=KRAFT_METADATA, partitions=[quorum])],
        nodes=[],
    )
    if context.version >= FIRST_WITH_NODES:
        response.nodes = [
            Node(node_id=one.node, listeners=[Listener(name=context.listener, host=one.host, port=one.port)])
            for one in broker.placement.brokers(context.listener)
        ]
        directory_id = broker.logs.folders[0].identity.directory_id
        quorum.current_voters[0].replica_directory_id = parse_uuid(directory_id) if directory_id else NO_DIRECTORY
    return response


def _quorum(broker: BrokerView) -> DescribeQuorumResponsePartitionData:
    now_ms, end_offset = broker.clock.wall_ms(), broker.cluster.changes.written_count
    voter = ReplicaState(
        replica_id=broker.placement.me,
        log_end_offset=end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return DescribeQuorumResponsePartitionData(
        partition_index=0,
        error_code=ErrorCode.NONE,
        error_message="",
        leader_id=broker.placement.me,
        leader_epoch=ONLY_EPOCH,
        high_watermark=end_offset,
        current_voters=[voter],
        observers=[
            ReplicaState(
                replica_id=node,
                log_end_offset=UNKNOWN_END,
                last_fetch_timestamp=NEVER,
                last_caught_up_timestamp=NEVER,
            )
            for node in sorted(broker.placement.members.live - {broker.placement.me})
        ],
    )


def _unknown(request: DescribeQuorumRequest) -> list[DescribeQuorumResponseTopicData]:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return [
        DescribeQuorumResponseTopicData(
            topic_name=topic.topic_name,
            partitions=[
                DescribeQuorumResponsePartitionData(
                    partition_index=each.partition_index, error_code=code, error_message=code.message
                )
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
