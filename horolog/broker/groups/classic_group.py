"""A classic group as data: its state, its members, the protocols that they support, and the protocol's checks.

The states and the transitions between them are tables. Only `classic` changes a group.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from enum import Enum

from horolog.broker.groups.classic_events import AnswerJoin, AnswerSync, Client, Protocols, SessionOver, Timeouts
from horolog.broker.groups.decision import GroupTimer
from horolog.broker.groups.member_bytes import MemberBytes
from horolog.broker.groups.offsets import Committed, GroupOffsets
from horolog.broker.groups.records import entry
from horolog.protocol.errors import ErrorCode
from horolog.protocol.group_metadata import subscribed_topics
from horolog.protocol.messages.coordinator_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from horolog.protocol.records.batch import Entry
from horolog.protocol.topic_partition import TopicPartition

NO_GENERATION = -1
CONSUMER_PROTOCOL = "consumer"


class GroupState(Enum):
    """A group's states, by the names that clients see."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"

    __hash__ = object.__hash__


COMES_FROM: dict[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING}),
    GroupState.PREPARING: frozenset({GroupState.EMPTY, GroupState.COMPLETING, GroupState.STABLE}),
    GroupState.COMPLETING: frozenset({GroupState.PREPARING}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING}),
    GroupState.DEAD: frozenset(GroupState),
}

CAN_REBALANCE = COMES_FROM[GroupState.PREPARING]
LIVE = frozenset({GroupState.PREPARING, GroupState.COMPLETING, GroupState.STABLE})


class Member:
    """One member. `joining` and `syncing` are its pending requests; `is_new`: its first join is not answered yet."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "id",
        "instance_id",
        "is_new",
        "joining",
        "principal",
        "protocols",
        "rebalance_timeout_ms",
        "session",
        "session_timeout_ms",
        "syncing",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client: Client,
        timeouts: Timeouts,
        protocols: Protocols,
    ) -> None:
        self.id = member_id
        self.instance_id = instance_id
        self.client_id, self.client_host, self.principal = client
        self.session_timeout_ms, self.rebalance_timeout_ms = timeouts
        self.protocols = protocols
        self.assignment = b""
        self.session = GroupTimer(SessionOver(self))
        self.joining: AnswerJoin | None = None
        self.syncing: AnswerSync | None = None
        self.is_new = False

    def __repr__(self) -> str:
        return f"<Member {self.id}{' joining' if self.joining else ' syncing' if self.syncing else ''}>"

    @property
    def held_bytes(self) -> int:
        """The bytes of its own description."""
        named = len(self.instance_id or "") + len(self.client_id)
        return named + sum(len(name) + len(metadata) for name, metadata in self.protocols)

    def metadata(self, protocol: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: frozenset[str]) -> str | None:
        """The member's preferred protocol among those that all members support."""
        return next((name for name, _ in self.protocols if name in candidates), None)


class Supported:
    """How many members support each protocol."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"<Supported: {dict(self._counts)}>"

    def add(self, protocols: Protocols) -> None:
        self._counts.update({name for name, _ in protocols})

    def remove(self, protocols: Protocols) -> None:
        self._counts -= Counter({name for name, _ in protocols})

    def by_all(self, count: int) -> frozenset[str]:
        """The protocols that exactly `count` members support."""
        return frozenset(name for name, supporters in self._counts.items() if supporters == count)


class ClassicGroup:
    """The state of one group; `subscribed` is None if the subscriptions cannot be read."""

    type_name = "classic"

    __slots__ = (
        "generation",
        "held",
        "id",
        "join_timer",
        "leader_id",
        "members",
        "new_member_added",
        "offsets",
        "pending",
        "pending_sync",
        "previous_state",
        "protocol_name",
        "protocol_type",
        "shard",
        "state",
        "state_since_ms",
        "statics",
        "store_timer",
        "stored",
        "subscribed",
        "supported",
        "sync_timer",
        "waiting_count",
    )

    def __init__(self, group_id: str, shard: int, offsets: GroupOffsets, now_ms: int) -> None:
        self.id = group_id
        self.shard = shard
        self.offsets = offsets
        self.state = self.previous_state = GroupState.EMPTY
        self.state_since_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.statics: dict[str, str] = {}
        self.stored: GroupMetadataValue | None = None
        """Its record as the log has it."""
        self.pending: dict[str, GroupTimer] = {}
        self.pending_sync: set[str] = set()
        self.subscribed: frozenset[str] | None = frozenset()
        self.supported = Supported()
        self.waiting_count = 0
        self.held = MemberBytes()
        self.new_member_added = False
        self.join_timer: GroupTimer | None = None
        self.sync_timer: GroupTimer | None = None
        self.store_timer: GroupTimer | None = None
        """There is one while assignments are being written."""

    def __repr__(self) -> str:
        return f"<ClassicGroup {self.id} {self.state.value}, generation {self.generation}, {len(self.members)} members>"

    def go_to(self, state: GroupState, now_ms: int) -> None:
        assert self.state in COMES_FROM[state], f"{self!r} cannot become {state.value}"
        self.previous_state = self.state
        self.state = state
        self.state_since_ms = now_ms

    @property
    def is_empty(self) -> bool:
        return self.state is GroupState.EMPTY

    @property
    def is_simple(self) -> bool:
        """Whether it only keeps offsets: no member has ever joined."""
        return self.is_empty and not self.pending and self.protocol_type is None

    @property
    def state_name(self) -> str:
        return self.state.value

    # -- offsets

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, version: int, *, transactional: bool
    ) -> ErrorCode:
        """Whether a commit by this member, or from outside of the group (generation -1), is accepted."""
        del version
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if generation < 0 and self.is_empty:
            return ErrorCode.NONE
        if generation >= 0 or member_id or instance_id is not None:
            code = self.check_member(member_id, instance_id)
            if code:
                return code
            if generation != self.generation:
                return ErrorCode.ILLEGAL_GENERATION
        elif not transactional:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not transactional and self.state is GroupState.COMPLETING:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def check_fetch(self, member_id: str | None, generation: int) -> ErrorCode:
        """Any client may fetch offsets."""
        del member_id, generation
        return ErrorCode.NONE

    def check_offset_delete(self) -> ErrorCode:
        """Whether offsets may be deleted: in a live group only if its subscriptions can be read."""
        if self.state in LIVE and self.protocol_type != CONSUMER_PROTOCOL:
            return ErrorCode.NON_EMPTY_GROUP
        return ErrorCode.NONE

    def check_delete(self) -> ErrorCode:
        return ErrorCode.NON_EMPTY_GROUP if self.state in LIVE or self.pending else ErrorCode.NONE

    def reads(self, topic: str) -> bool:
        """Whether a member reads a topic; True if that is unknown."""
        return self.state in LIVE and (self.subscribed is None or topic in self.subscribed)

    def expiry_starts(self, partition: TopicPartition, committed: Committed) -> int | None:
        """The start of an offset's retention: its commit, or the time when the group became empty, whichever is later."""
        if self.protocol_type is None:
            return committed.commit_ms
        if self.is_empty:
            return max(self.state_since_ms, committed.commit_ms)
        if self.state is GroupState.STABLE and not self.reads(partition[0]):
            return committed.commit_ms
        return None

    # -- members

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Whether this is a member, and the holder of its instance id."""
        if instance_id is not None:
            holder = self.statics.get(instance_id)
            if holder is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if holder != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def add(self, member: Member) -> None:
        if not self.members:
            self.leader_id = None
        self.members[member.id] = member
        self.held.set(member.id, member.held_bytes, member.principal)
        self.supported.add(member.protocols)
        if member.instance_id is not None:
            self.statics[member.instance_id] = member.id
        if self.leader_id is None:
            self.leader_id = member.id

    def remove(self, member: Member) -> None:
        del self.members[member.id]
        self.held.drop(member.id)
        if not self.members:
            self.held.assign(0)
        self.supported.remove(member.protocols)
        self.pending_sync.discard(member.id)
        if member.instance_id is not None and self.statics.get(member.instance_id) == member.id:
            del self.statics[member.instance_id]
        if self.leader_id == member.id:
            self.leader_id = next(iter(self.members), None)

    def update(self, member: Member, protocols: Protocols, client: Client | None = None) -> None:
        """A member rejoins, perhaps with other protocols or as another client."""
        self.supported.remove(member.protocols)
        member.protocols = protocols
        if client is not None:
            member.client_id, member.client_host, member.principal = client
        self.held.set(member.id, member.held_bytes, member.principal)
        self.supported.add(protocols)

    def rename(self, member: Member, new_id: str) -> None:
        """A static member has returned: it keeps its place and its assignment under a new id."""
        self.members = {new_id if key == member.id else key: one for key, one in self.members.items()}
        if self.leader_id == member.id:
            self.leader_id = new_id
        if member.id in self.pending_sync:
            self.pending_sync.discard(member.id)
            self.pending_sync.add(new_id)
        self.held.drop(member.id)
        self.held.set(new_id, member.held_bytes, member.principal)
        member.id = new_id
        assert member.instance_id is not None
        self.statics[member.instance_id] = new_id

    def wait_to_join(self, member: Member, answer: AnswerJoin) -> None:
        """A member waits for the others; its earlier pending request is never answered, as in Kafka."""
        self.waiting_count += member.joining is None
        member.joining = answer

    def take_join(self, member: Member) -> AnswerJoin | None:
        answer, member.joining = member.joining, None
        self.waiting_count -= answer is not None
        return answer

    @property
    def has_all_joined(self) -> bool:
        return not self.pending and self.waiting_count == len(self.members)

    # -- protocols

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a member with these protocols may join."""
        offered = frozenset(names)
        if not self.members:
            return bool(protocol_type) and bool(offered)
        return protocol_type == self.protocol_type and not offered.isdisjoint(self.supported.by_all(len(self.members)))

    def select_protocol(self) -> str | None:
        """The protocol with the most votes; each member votes for its first protocol that all members support."""
        candidates = self.supported.by_all(len(self.members))
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(votes, key=lambda name: votes[name])

    def begin_generation(self, now_ms: int) -> None:
        self.generation = self.generation + 1 & 0x7FFFFFFF
        self.pending_sync.clear()
        if self.members:
            self.protocol_name = self.select_protocol()
            self.go_to(GroupState.COMPLETING, now_ms)
        else:
            self.protocol_name = None
            self.go_to(GroupState.EMPTY, now_ms)
        self.subscribed = subscribed_by(self)

    # -- its records in the log

    def entry(self, record: GroupMetadataValue | None = None) -> Entry:
        """A record of the group for the log: `record`, or that of the present."""
        return entry(GroupMetadataKey(group=self.id), record_of(self) if record is None else record)

    def tombstone(self) -> Entry:
        return entry(GroupMetadataKey(group=self.id), None)


def record_of(group: ClassicGroup, assignments: Mapping[str, bytes] | None = None) -> GroupMetadataValue:
    """The group as its record says it, with `assignments` in place of the current ones if given."""
    members = [
        MemberMetadata(
            member_id=one.id,
            group_instance_id=one.instance_id,
            client_id=one.client_id,
            client_host=one.client_host,
            rebalance_timeout=one.rebalance_timeout_ms,
            session_timeout=one.session_timeout_ms,
            subscription=one.metadata(group.protocol_name),
            assignment=one.assignment if assignments is None else assignments.get(one.id, b""),
        )
        for one in group.members.values()
    ]
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=group.state_since_ms,
        members=members,
    )


def stored_with(group: ClassicGroup, instance_id: str, new_id: str) -> GroupMetadataValue | None:
    """The stored record with the new id of a static member; None if the log does not know the member."""
    if group.stored is None or all(one.group_instance_id != instance_id for one in group.stored.members):
        return None
    renamed = copy(group.stored)
    renamed.members = [copy(one) for one in group.stored.members]
    for one in renamed.members:
        if one.group_instance_id == instance_id:
            renamed.leader = new_id if renamed.leader == one.member_id else renamed.leader
            one.member_id = new_id
    return renamed


def subscribed_by(group: ClassicGroup) -> frozenset[str] | None:
    """The topics that a group reads, by its members' metadata; None if the metadata has another format."""
    if not group.members:
        return frozenset()
    if group.protocol_type != CONSUMER_PROTOCOL:
        return None
    return subscribed_topics(member.metadata(group.protocol_name) for member in group.members.values())


def new_member_id(client_id: str | None, instance_id: str | None) -> str:
    """A member id as Kafka makes it: the client id or instance id, and a UUID."""
    return f"{client_id or '' if instance_id is None else instance_id}-{uuid.uuid4()}"
