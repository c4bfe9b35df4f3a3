"""Keys and values of streams groups in __consumer_offsets (KIP-1071); `coordinator_records` has those of the other groups."""

from horolog.protocol.messages.streams_groups import (
    StreamsEndpoint,
    StreamsKeyValue,
    StreamsSubtopology,
    StreamsTaskIds,
)
from horolog.protocol.wire import Message, Struct, array, field, int8, int32, int64, string


class StreamsGroupMetadataKey(Message, versions="17"):
    group_id: str = field(string)


class StreamsGroupMetadataValue(Message, versions="0", flexible="0+"):
    epoch: int = field(int32)
    # changes when a topic of the topology does
    metadata_hash: int = field(int64)
    # the epoch of the topology whose topics all exist with the right numbers of partitions
    validated_topology_epoch: int = field(int32, tag=0, default=-1)
    # the settings of the last assignment; a change of them needs a new one
    last_assignment_configs: list[StreamsKeyValue] | None = field(array(StreamsKeyValue), nullable="0+", tag=1)


class StreamsGroupMemberMetadataKey(Message, versions="19"):
    group_id: str = field(string)
    member_id: str = field(string)


class StreamsGroupMemberMetadataValue(Message, versions="0", flexible="0+"):
    instance_id: str | None = field(string, nullable="0+")
    rack_id: str | None = field(string, nullable="0+")
    client_id: str = field(string)
    client_host: str = field(string)
    rebalance_timeout_ms: int = field(int32, default=-1)
    topology_epoch: int = field(int32)
    process_id: str = field(string)
    user_endpoint: StreamsEndpoint | None = field(StreamsEndpoint, nullable="0+", default=None)
    client_tags: list[StreamsKeyValue] = field(array(StreamsKeyValue))


class StreamsGroupTargetAssignmentMetadataKey(Message, versions="20"):
    group_id: str = field(string)


class StreamsGroupTargetAssignmentMetadataValue(Message, versions="0", flexible="0+"):
    assignment_epoch: int = field(int32)
    assignment_timestamp: int = field(int64, tag=0, ignorable=True)


class StreamsGroupTargetAssignmentMemberKey(Message, versions="21"):
    group_id: str = field(string)
    member_id: str = field(string)


class StreamsGroupTargetAssignmentMemberValue(Message, versions="0", flexible="0+"):
    active_tasks: list[StreamsTaskIds] = field(array(StreamsTaskIds))
    standby_tasks: list[StreamsTaskIds] = field(array(StreamsTaskIds))
    warmup_tasks: list[StreamsTaskIds] = field(array(StreamsTaskIds))


class StreamsGroupCurrentMemberAssignmentKey(Message, versions="22"):
    group_id: str = field(string)
    member_id: str = field(string)


class StreamsCurrentTasks(Struct):
    subtopology_id: str = field(string)
    partitions: list[int] = field(array(int32))
    # of active tasks: the epoch of the member in which it got each of them
    assignment_epochs: list[int] | None = field(array(int32), nullable="0+", tag=0, default=None)


class StreamsGroupCurrentMemberAssignmentValue(Message, versions="0", flexible="0+"):
    member_epoch: int = field(int32)
    previous_member_epoch: int = field(int32)
    state: int = field(int8)
    active_tasks: list[StreamsCurrentTasks] = field(array(StreamsCurrentTasks))
    standby_tasks: list[StreamsCurrentTasks] = field(array(StreamsCurrentTasks))
    warmup_tasks: list[StreamsCurrentTasks] = field(array(StreamsCurrentTasks))
    active_tasks_pending_revocation: list[StreamsCurrentTasks] = field(array(StreamsCurrentTasks))
    standby_tasks_pending_revocation: list[StreamsCurrentTasks] = field(array(StreamsCurrentTasks))
    warmup_tasks_pending_revocation: list[StreamsCurrentTasks] = field(array(StreamsCurrentTasks))


class StreamsGroupTopologyKey(Message, versions="23"):
    group_id: str = field(string)


class StreamsGroupTopologyValue(Message, versions="0", flexible="0+"):
    epoch: int = field(int32)
    subtopologies: list[StreamsSubtopology] = field(array(StreamsSubtopology))
