"""A streams group as data: members, epochs, topology, tasks, and its records in the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from horolog.broker.base.principal import Principal
from horolog.broker.groups.decision import GroupTimer
from horolog.broker.groups.epoch_commits import GroupWithEpochs
from horolog.broker.groups.member_bytes import MemberBytes
from horolog.broker.groups.offsets import GroupOffsets
from horolog.broker.groups.reconcile import MemberState
from horolog.broker.groups.records import entry
from horolog.broker.groups.streams.configured_topology import ConfiguredTopology
from horolog.broker.groups.streams.streams_events import SILENT, DelayOver, StreamsOverdue
from horolog.broker.groups.streams.streams_reconcile import CurrentTasks
from horolog.broker.groups.streams.task_holders import TaskHolders
from horolog.broker.groups.streams.tasks import NO_TASKS, Role, Task, Tasks, TaskSet, written_tasks
from horolog.protocol.messages.streams_group_records import (
    StreamsCurrentTasks,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)
from horolog.protocol.messages.streams_groups import StreamsEndpoint, StreamsKeyValue
from horolog.protocol.records.batch import Entry

FIRST_EPOCH = 1
NOT_VALIDATED = -1


class QueryEndpoint(NamedTuple):
    """Where an application serves queries of its state."""

    host: str
    port: int


class StreamsMember:
    """One member: its own description, its tasks (`current`) and its target tasks (`target`)."""

    __slots__ = (
        "client_host",
        "client_id",
        "current",
        "endpoint",
        "id",
        "is_new",
        "principal",
        "process_id",
        "rack_id",
        "rebalance",
        "rebalance_timeout_ms",
        "session",
        "tags",
        "target",
        "topology_epoch",
    )

    def __init__(self, member_id: str) -> None:
        self.id = member_id
        self.is_new = True
        self.rack_id: str | None = None
        self.client_id = ""
        self.client_host = ""
        self.principal: Principal | None = None
        self.rebalance_timeout_ms = -1
        self.topology_epoch = 0
        self.process_id = ""
        self.endpoint: QueryEndpoint | None = None
        self.tags: tuple[tuple[str, str], ...] = ()
        self.current = CurrentTasks()
        self.target: TaskSet = NO_TASKS
        self.session = GroupTimer(StreamsOverdue(self, SILENT))
        self.rebalance: GroupTimer | None = None

    def __repr__(self) -> str:
        return f"<StreamsMember {self.id} in epoch {self.current.epoch}, {self.current.state.name}>"

    @property
    def held_bytes(self) -> int:
        """The bytes of its own description."""
        texts = (self.rack_id, self.client_id, self.process_id, self.endpoint and self.endpoint.host)
        return sum(len(one or "") for one in texts) + sum(len(key) + len(value) for key, value in self.tags)

    @property
    def description(self) -> tuple[object, ...]:
        """Its fields that are kept in the log, to detect changes."""
        return (
            self.rack_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.topology_epoch,
            self.process_id,
            self.endpoint,
            self.tags,
        )


class StreamsGroup(GroupWithEpochs[StreamsMember]):
    """One streams group. `topics` are the input of `metadata_hash`: id and partition count by name, None if unknown."""

    protocol_type = "streams"
    type_name = "streams"

    def __init__(self, group_id: str, shard: int, offsets: GroupOffsets, now_ms: int) -> None:
        self.id = group_id
        self.shard = shard
        self.offsets = offsets
        self.state_since_ms = now_ms
        self.epoch = FIRST_EPOCH
        self.assignment_epoch = FIRST_EPOCH
        self.assigned_ms = 0
        self.metadata_hash = 0
        self.validated_epoch = NOT_VALIDATED
        self.assignment_settings: dict[str, str] = {}
        """The settings of the last assignment."""
        self.topology: StreamsGroupTopologyValue | None = None
        self.configured: ConfiguredTopology | None = None
        """None until the first heartbeat since the broker's start."""
        self.topics: Mapping[str, tuple[bytes, int]] | None = None
        self.creation_errors: Mapping[str, str] = {}
        """Why internal topics could not be created."""
        self.members: dict[str, StreamsMember] = {}
        self.statics: dict[str, str] = {}
        """Streams groups have no static members."""
        self.subscribed: frozenset[str] = frozenset()
        self.endpoint_epoch = 0
        self.shutdown_by: str | None = None
        """The member that asks all to shut down."""
        self.is_delayed = False
        self.delay = GroupTimer(DelayOver())
        self.holders = TaskHolders()
        self.held = MemberBytes()

    def __repr__(self) -> str:
        return f"<StreamsGroup {self.id} {self.state_name} in epoch {self.epoch}, {len(self.members)} members>"

    # -- state

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.validated_epoch == NOT_VALIDATED:
            return "NotReady"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        if any(not self.is_reconciled(member) for member in self.members.values()):
            return "Reconciling"
        return "Stable"

    def is_reconciled(self, member: StreamsMember) -> bool:
        return member.current.state is MemberState.STABLE and member.current.epoch == self.assignment_epoch

    # -- members and their tasks

    def add(self, member: StreamsMember) -> None:
        self.members[member.id] = member
        self.held.set(member.id, member.held_bytes, member.principal)
        self.holders.hold(member.id, member.process_id, member.current)

    def remove(self, member: StreamsMember) -> None:
        del self.members[member.id]
        self.held.drop(member.id)
        self.holders.release(member.id, member.current)

    def set_current(self, member: StreamsMember, current: CurrentTasks) -> None:
        self.holders.release(member.id, member.current)
        member.current = current
        self.holders.hold(member.id, member.process_id, current)

    def set_process(self, member: StreamsMember, process_id: str) -> None:
        """A member may come back in another process."""
        self.holders.release(member.id, member.current)
        member.process_id = process_id
        self.holders.hold(member.id, process_id, member.current)

    def is_free(self, member: StreamsMember, role: Role, task: Task) -> bool:
        """Whether a member may get a task in a role."""
        return self.holders.is_free(member.process_id, role, task)

    # -- offsets

    def _got_in(self, member: StreamsMember, topic: str, topic_id: bytes, index: int) -> int | None:
        """That of the task that reads the partition."""
        del topic_id
        subtopologies = () if self.topology is None else self.topology.subtopologies
        for one in subtopologies:
            if topic in one.source_topics or any(topic == info.name for info in one.repartition_source_topics):
                return member.current.got_in((one.subtopology_id, index))
        return None

    # -- the log

    def group_entry(self) -> Entry:
        value = StreamsGroupMetadataValue(
            epoch=self.epoch,
            metadata_hash=self.metadata_hash,
            validated_topology_epoch=self.validated_epoch,
            last_assignment_configs=[
                StreamsKeyValue(key=key, value=text) for key, text in self.assignment_settings.items()
            ],
        )
        return entry(StreamsGroupMetadataKey(group_id=self.id), value)

    def topology_entry(self) -> Entry:
        return entry(StreamsGroupTopologyKey(group_id=self.id), self.topology)

    def assignment_entry(self) -> Entry:
        value = StreamsGroupTargetAssignmentMetadataValue(
            assignment_epoch=self.assignment_epoch, assignment_timestamp=self.assigned_ms
        )
        return entry(StreamsGroupTargetAssignmentMetadataKey(group_id=self.id), value)

    def member_entry(self, member: StreamsMember) -> Entry:
        endpoint = member.endpoint
        value = StreamsGroupMemberMetadataValue(
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            topology_epoch=member.topology_epoch,
            process_id=member.process_id,
            user_endpoint=None if endpoint is None else StreamsEndpoint(host=endpoint.host, port=endpoint.port),
            client_tags=[StreamsKeyValue(key=key, value=text) for key, text in member.tags],
        )
        return entry(StreamsGroupMemberMetadataKey(group_id=self.id, member_id=member.id), value)

    def target_entry(self, member: StreamsMember) -> Entry:
        active, standby, warmup = map(written_tasks, member.target)
        value = StreamsGroupTargetAssignmentMemberValue(active_tasks=active, standby_tasks=standby, warmup_tasks=warmup)
        return entry(StreamsGroupTargetAssignmentMemberKey(group_id=self.id, member_id=member.id), value)

    def current_entry(self, member: StreamsMember) -> Entry:
        current = member.current
        assigned, revoking = current.assigned, current.revoking
        value = StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=current.epoch,
            previous_member_epoch=current.previous_epoch,
            state=int(current.state),
            active_tasks=_stored(assigned.active, current.epochs),
            standby_tasks=_stored(assigned.standby),
            warmup_tasks=_stored(assigned.warmup),
            active_tasks_pending_revocation=_stored(revoking.active, current.epochs),
            standby_tasks_pending_revocation=_stored(revoking.standby),
            warmup_tasks_pending_revocation=_stored(revoking.warmup),
        )
        return entry(StreamsGroupCurrentMemberAssignmentKey(group_id=self.id, member_id=member.id), value)

    def member_tombstones(self, member_id: str) -> list[Entry]:
        """In the reverse order of writing: a reader that stops in between does not see half a member."""
        return [
            entry(StreamsGroupCurrentMemberAssignmentKey(group_id=self.id, member_id=member_id), None),
            entry(StreamsGroupTargetAssignmentMemberKey(group_id=self.id, member_id=member_id), None),
            entry(StreamsGroupMemberMetadataKey(group_id=self.id, member_id=member_id), None),
        ]

    def tombstones(self) -> list[Entry]:
        """Tombstones for all records of the group except its offsets."""
        return [
            *(one for member_id in self.members for one in self.member_tombstones(member_id)),
            entry(StreamsGroupTargetAssignmentMetadataKey(group_id=self.id), None),
            entry(StreamsGroupTopologyKey(group_id=self.id), None),
            entry(StreamsGroupMetadataKey(group_id=self.id), None),
        ]


def _stored(tasks: Tasks, epochs: Mapping[Task, int] | None = None) -> list[StreamsCurrentTasks]:
    return [
        StreamsCurrentTasks(
            subtopology_id=name,
            partitions=sorted(indexes),
            assignment_epochs=None if epochs is None else [epochs[name, index] for index in sorted(indexes)],
        )
        for name, indexes in tasks.items()
    ]
