"""A group whose assignments the broker makes (KIP-848), as data: members, epochs, assignments, and its records in the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from horolog.broker.base.principal import Principal
from horolog.broker.groups.assignors import DEFAULT_ASSIGNOR, NOTHING, Assignment
from horolog.broker.groups.classic_events import Protocols
from horolog.broker.groups.decision import GroupTimer
from horolog.broker.groups.epoch_commits import GroupWithEpochs
from horolog.broker.groups.kip848_events import SILENT, Overdue
from horolog.broker.groups.member_bytes import MemberBytes
from horolog.broker.groups.offsets import GroupOffsets
from horolog.broker.groups.reconcile import Current, MemberState, Place, each_place
from horolog.broker.groups.records import entry
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.coordinator_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    CurrentPartitions,
    OwnedPartitions,
    TargetPartitions,
)
from horolog.protocol.records.batch import Entry

LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2


class ClassicPart:
    """The additional state of a member that speaks the classic protocol in a group of the newer one.

    `comeback` runs from a response that asks it to join or sync until it does.
    """

    __slots__ = ("comeback", "protocols", "session_timeout_ms")

    def __init__(self, session_timeout_ms: int, protocols: Protocols) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.comeback: GroupTimer | None = None


class Sight(NamedTuple):
    """The topics that a member may describe: its pattern is matched against no others."""

    may_describe: Callable[[str], bool]


class ConsumerMember:
    """One member: its own description, its assignment (`current`) and its target assignment (`target`)."""

    __slots__ = (
        "assignor",
        "classic",
        "client_host",
        "client_id",
        "current",
        "id",
        "instance_id",
        "principal",
        "rack_id",
        "rebalance",
        "rebalance_timeout_ms",
        "regex",
        "session",
        "sight",
        "target",
        "topics",
    )

    def __init__(self, member_id: str, instance_id: str | None) -> None:
        self.id = member_id
        self.instance_id = instance_id
        self.rack_id: str | None = None
        self.client_id = ""
        self.client_host = ""
        self.principal: Principal | None = None
        self.topics: tuple[str, ...] = ()
        self.regex: str | None = None
        self.sight: Sight | None = None
        """None: there are no access lists, it has no pattern, or it has sent no request since the broker's start."""
        self.rebalance_timeout_ms = -1
        self.assignor: str | None = None
        self.current = Current()
        self.target: Assignment = NOTHING
        self.session = GroupTimer(Overdue(self, SILENT))
        self.rebalance: GroupTimer | None = None
        self.classic: ClassicPart | None = None

    @property
    def held_bytes(self) -> int:
        """The bytes of its own description."""
        texts = (self.instance_id, self.rack_id, self.client_id, self.assignor, self.regex)
        told = sum(len(one or "") for one in texts) + sum(map(len, self.topics))
        if self.classic is not None:
            told += sum(len(name) + len(metadata) for name, metadata in self.classic.protocols)
        return told

    def __repr__(self) -> str:
        return f"<ConsumerMember {self.id} in epoch {self.current.epoch}, {self.current.state.name}>"

    @property
    def description(self) -> tuple[object, ...]:
        """Its fields that are kept in the log, to detect changes."""
        protocols = None if self.classic is None else (self.classic.session_timeout_ms, self.classic.protocols)
        return (
            self.instance_id,
            self.rack_id,
            self.client_id,
            self.client_host,
            self.topics,
            self.regex,
            self.rebalance_timeout_ms,
            self.assignor,
            protocols,
        )


class ConsumerGroup(GroupWithEpochs[ConsumerMember]):
    """The state of one group. `owners` has the owner of each partition, including one that still has to give it back.

    `topics` are the input of `metadata_hash`: id and partition count by name, None if unknown.
    """

    __slots__ = (
        "assignment_epoch",
        "epoch",
        "held",
        "id",
        "members",
        "metadata_hash",
        "offsets",
        "owners",
        "shard",
        "state_since_ms",
        "statics",
        "subscribed",
        "topics",
    )

    protocol_type = "consumer"
    type_name = "consumer"

    def __init__(self, group_id: str, shard: int, offsets: GroupOffsets, now_ms: int) -> None:
        self.id = group_id
        self.shard = shard
        self.offsets = offsets
        self.state_since_ms = now_ms
        self.epoch = 0
        self.assignment_epoch = 0
        self.metadata_hash = 0
        self.members: dict[str, ConsumerMember] = {}
        self.statics: dict[str, str] = {}
        self.subscribed: frozenset[str] = frozenset()
        self.topics: Mapping[str, tuple[bytes, int]] | None = None
        self.owners: dict[tuple[bytes, int], str] = {}
        self.held = MemberBytes()

    def __repr__(self) -> str:
        return f"<ConsumerGroup {self.id} {self.state_name} in epoch {self.epoch}, {len(self.members)} members>"

    # -- state

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        if any(not self.is_reconciled(member) for member in self.members.values()):
            return "Reconciling"
        return "Stable"

    def is_reconciled(self, member: ConsumerMember) -> bool:
        return member.current.state is MemberState.STABLE and member.current.epoch == self.assignment_epoch

    @property
    def assignor(self) -> str:
        """The assignor that most members request."""
        votes = Counter(member.assignor for member in self.members.values() if member.assignor is not None)
        return max(votes, key=lambda name: votes[name]) if votes else DEFAULT_ASSIGNOR

    # -- members and their partitions

    def add(self, member: ConsumerMember) -> None:
        self.members[member.id] = member
        if member.instance_id is not None:
            self.statics[member.instance_id] = member.id
        self.held.set(member.id, member.held_bytes, member.principal)
        self._own(member, member.current)

    def remove(self, member: ConsumerMember) -> None:
        del self.members[member.id]
        self.held.drop(member.id)
        if member.instance_id is not None and self.statics.get(member.instance_id) == member.id:
            del self.statics[member.instance_id]
        self._disown(member)

    def set_current(self, member: ConsumerMember, current: Current) -> None:
        self._disown(member)
        member.current = current
        self._own(member, current)

    def _disown(self, member: ConsumerMember) -> None:
        for partition in _places(member.current):
            if self.owners.get(partition) == member.id:
                del self.owners[partition]

    def _own(self, member: ConsumerMember, current: Current) -> None:
        for partition in _places(current):
            self.owners[partition] = member.id

    def is_free(self, topic_id: bytes, index: int) -> bool:
        return (topic_id, index) not in self.owners

    # -- offsets

    def _check_commit_by(self, member: ConsumerMember, epoch: int, version: int, *, transactional: bool) -> ErrorCode:
        if member.classic is None:
            return super()._check_commit_by(member, epoch, version, transactional=transactional)
        return ErrorCode.NONE if epoch == member.current.epoch else ErrorCode.ILLEGAL_GENERATION

    def _got_in(self, member: ConsumerMember, topic: str, topic_id: bytes, index: int) -> int | None:
        del topic
        return member.current.got_in((topic_id, index))

    # -- the log

    def group_entry(self) -> Entry:
        value = ConsumerGroupMetadataValue(epoch=self.epoch, metadata_hash=self.metadata_hash)
        return entry(ConsumerGroupMetadataKey(group_id=self.id), value)

    def assignment_entry(self) -> Entry:
        value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=self.assignment_epoch)
        return entry(ConsumerGroupTargetAssignmentMetadataKey(group_id=self.id), value)

    def member_entry(self, member: ConsumerMember) -> Entry:
        classic = member.classic
        value = ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=list(member.topics),
            subscribed_topic_regex=member.regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.assignor,
            classic_member_metadata=None
            if classic is None
            else ClassicMemberMetadata(
                session_timeout_ms=classic.session_timeout_ms,
                supported_protocols=[ClassicProtocol(name=name, metadata=data) for name, data in classic.protocols],
            ),
        )
        return entry(ConsumerGroupMemberMetadataKey(group_id=self.id, member_id=member.id), value)

    def target_entry(self, member: ConsumerMember) -> Entry:
        value = ConsumerGroupTargetAssignmentMemberValue(topic_partitions=stored_target(member.target))
        return entry(ConsumerGroupTargetAssignmentMemberKey(group_id=self.id, member_id=member.id), value)

    def current_entry(self, member: ConsumerMember) -> Entry:
        current = member.current
        value = ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=current.epoch,
            previous_member_epoch=current.previous_epoch,
            state=int(current.state),
            assigned_partitions=_owned(current.assigned, current),
            partitions_pending_revocation=_owned(current.revoking, current),
        )
        return entry(ConsumerGroupCurrentMemberAssignmentKey(group_id=self.id, member_id=member.id), value)

    def member_tombstones(self, member_id: str) -> list[Entry]:
        """In the reverse order of writing: a reader that stops in between does not see half a member."""
        return [
            entry(ConsumerGroupCurrentMemberAssignmentKey(group_id=self.id, member_id=member_id), None),
            entry(ConsumerGroupTargetAssignmentMemberKey(group_id=self.id, member_id=member_id), None),
            entry(ConsumerGroupMemberMetadataKey(group_id=self.id, member_id=member_id), None),
        ]

    def tombstones(self) -> list[Entry]:
        """Tombstones for all records of the group except its offsets."""
        return [
            *(one for member_id in self.members for one in self.member_tombstones(member_id)),
            entry(ConsumerGroupTargetAssignmentMetadataKey(group_id=self.id), None),
            entry(ConsumerGroupMetadataKey(group_id=self.id), None),
        ]


def _places(current: Current) -> Iterable[Place]:
    yield from each_place(current.assigned)
    yield from each_place(current.revoking)


def stored_target(assignment: Assignment) -> list[TargetPartitions]:
    return [TargetPartitions(topic_id=topic_id, partitions=sorted(indexes)) for topic_id, indexes in assignment.items()]


def stored_current(assignment: Assignment) -> list[CurrentPartitions]:
    return [
        CurrentPartitions(topic_id=topic_id, partitions=sorted(indexes)) for topic_id, indexes in assignment.items()
    ]


def _owned(assignment: Assignment, current: Current) -> list[OwnedPartitions]:
    return [
        OwnedPartitions(
            topic_id=topic_id,
            partitions=sorted(indexes),
            assignment_epochs=[current.epochs.get((topic_id, index), current.epoch) for index in sorted(indexes)],
        )
        for topic_id, indexes in assignment.items()
    ]


def assignment_of(
    topics: Sequence[TargetPartitions] | Sequence[CurrentPartitions] | Sequence[OwnedPartitions],
) -> Assignment:
    """A record's assignment as a value."""
    return {one.topic_id: frozenset(one.partitions) for one in topics if one.partitions}
