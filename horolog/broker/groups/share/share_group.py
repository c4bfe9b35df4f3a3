"""A share group as data: members, epochs, assignments, the topics with states, and its records in the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from horolog.broker.base.principal import Principal
from horolog.broker.groups.assignors import NOTHING, Assignment
from horolog.broker.groups.consumer_group import stored_current, stored_target
from horolog.broker.groups.decision import GroupTimer
from horolog.broker.groups.member_bytes import MemberBytes
from horolog.broker.groups.offsets import Committed, GroupOffsets
from horolog.broker.groups.records import entry
from horolog.broker.groups.share.share_events import ShareOverdue
from horolog.broker.groups.share.tracked_topics import NOTHING_TRACKED, Tracked, TrackedTopics
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.coordinator_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)
from horolog.protocol.records.batch import Entry
from horolog.protocol.topic_partition import TopicPartition

STABLE = 0
FIRST_EPOCH = 1


class ShareGroupMember:
    """One member: its own description, its assignment and its target assignment."""

    __slots__ = (
        "assigned",
        "client_host",
        "client_id",
        "epoch",
        "id",
        "is_new",
        "previous_epoch",
        "principal",
        "rack_id",
        "session",
        "target",
        "topics",
    )

    def __init__(self, member_id: str) -> None:
        self.id = member_id
        self.is_new = True
        self.rack_id: str | None = None
        self.client_id = ""
        self.client_host = ""
        self.principal: Principal | None = None
        self.topics: tuple[str, ...] = ()
        self.epoch = 0
        self.previous_epoch = 0
        self.assigned: Assignment = NOTHING
        self.target: Assignment = NOTHING
        self.session = GroupTimer(ShareOverdue(self))

    def __repr__(self) -> str:
        return f"<ShareGroupMember {self.id} in epoch {self.epoch}>"

    @property
    def held_bytes(self) -> int:
        """The bytes of its own description."""
        return len(self.rack_id or "") + len(self.client_id) + sum(map(len, self.topics))

    @property
    def description(self) -> tuple[object, ...]:
        """What the log keeps of it."""
        return (self.rack_id, self.client_id, self.client_host, self.topics)


class ShareGroup:
    """One share group. It has no committed offsets: the persister has the states of its partitions."""

    protocol_type = "share"
    type_name = "share"

    def __init__(self, group_id: str, shard: int, now_ms: int) -> None:
        self.id = group_id
        self.shard = shard
        self.offsets = GroupOffsets()
        self.state_since_ms = now_ms
        self.epoch = FIRST_EPOCH
        self.assignment_epoch = FIRST_EPOCH
        self.assigned_ms = 0
        self.metadata_hash = 0
        self.members: dict[str, ShareGroupMember] = {}
        self.statics: dict[str, str] = {}
        """Share groups have no static members."""
        self.subscribed: frozenset[str] = frozenset()
        self.names: Counter[str] = Counter()
        """How many members want each topic."""
        self.topics: Mapping[str, tuple[bytes, int]] | None = None
        """The existing ones of them, as of the last heartbeat: id and number of partitions."""
        self.tracked: TrackedTopics = NOTHING_TRACKED
        self.assigned_of: Tracked | None = None
        """The initialized partitions that the targets are known to cover."""
        self.held = MemberBytes()

    def __repr__(self) -> str:
        return f"<ShareGroup {self.id} {self.state_name} in epoch {self.epoch}, {len(self.members)} members>"

    @property
    def state_name(self) -> str:
        return "Stable" if self.members else "Empty"

    @property
    def is_empty(self) -> bool:
        return not self.members

    def add(self, member: ShareGroupMember) -> None:
        self.members[member.id] = member
        self.names.update(member.topics)
        self.held.set(member.id, member.held_bytes, member.principal)

    def remove(self, member: ShareGroupMember) -> None:
        del self.members[member.id]
        self._forget(member.topics)
        self.held.drop(member.id)

    def subscribe(self, member: ShareGroupMember, topics: tuple[str, ...]) -> None:
        """Change the topics that a member wants."""
        self._forget(member.topics)
        member.topics = topics
        self.names.update(topics)

    def _forget(self, topics: tuple[str, ...]) -> None:
        self.names.subtract(topics)
        for name in topics:
            if not self.names[name]:
                del self.names[name]

    # -- offsets, which such groups do not commit

    def check_commit(self, *_: object, transactional: bool) -> ErrorCode:  # noqa: ARG002 - as all groups have it
        return ErrorCode.GROUP_ID_NOT_FOUND

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:  # noqa: ARG002 - as all groups have it
        return ErrorCode.NONE

    def check_offset_delete(self) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def check_delete(self) -> ErrorCode:
        return ErrorCode.NON_EMPTY_GROUP if self.members else ErrorCode.NONE

    def reads(self, topic: str) -> bool:
        return bool(self.members) and topic in self.subscribed

    def expiry_starts(self, partition: TopicPartition, committed: Committed) -> int | None:  # noqa: ARG002 - as all groups have it
        return None

    # -- the log

    def group_entry(self) -> Entry:
        value = ShareGroupMetadataValue(epoch=self.epoch, metadata_hash=self.metadata_hash)
        return entry(ShareGroupMetadataKey(group_id=self.id), value)

    def assignment_entry(self) -> Entry:
        value = ShareGroupTargetAssignmentMetadataValue(
            assignment_epoch=self.assignment_epoch, assignment_timestamp=self.assigned_ms
        )
        return entry(ShareGroupTargetAssignmentMetadataKey(group_id=self.id), value)

    def member_entry(self, member: ShareGroupMember) -> Entry:
        value = ShareGroupMemberMetadataValue(
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=list(member.topics),
        )
        return entry(ShareGroupMemberMetadataKey(group_id=self.id, member_id=member.id), value)

    def target_entry(self, member: ShareGroupMember) -> Entry:
        value = ShareGroupTargetAssignmentMemberValue(topic_partitions=stored_target(member.target))
        return entry(ShareGroupTargetAssignmentMemberKey(group_id=self.id, member_id=member.id), value)

    def current_entry(self, member: ShareGroupMember) -> Entry:
        value = ShareGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=STABLE,
            assigned_partitions=stored_current(member.assigned),
        )
        return entry(ShareGroupCurrentMemberAssignmentKey(group_id=self.id, member_id=member.id), value)

    def tracked_entry(self) -> Entry:
        return entry(ShareGroupStatePartitionMetadataKey(group_id=self.id), self.tracked.value())

    def member_tombstones(self, member_id: str) -> list[Entry]:
        """In the reverse order of writing: a reader that stops in between does not see half a member."""
        return [
            entry(ShareGroupCurrentMemberAssignmentKey(group_id=self.id, member_id=member_id), None),
            entry(ShareGroupTargetAssignmentMemberKey(group_id=self.id, member_id=member_id), None),
            entry(ShareGroupMemberMetadataKey(group_id=self.id, member_id=member_id), None),
        ]

    def tombstones(self) -> list[Entry]:
        """Tombstones for all records of the group."""
        return [
            *(one for member_id in self.members for one in self.member_tombstones(member_id)),
            entry(ShareGroupStatePartitionMetadataKey(group_id=self.id), None),
            entry(ShareGroupTargetAssignmentMetadataKey(group_id=self.id), None),
            entry(ShareGroupMetadataKey(group_id=self.id), None),
        ]
