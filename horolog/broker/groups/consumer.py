"""The consumer-group protocol of KIP-848: a member says in heartbeats what it wants and has, the broker says what it should have.

A heartbeat: who is it, what has changed about it, does that need a new group epoch, does that need a new target assignment, and
how far can this member come towards its target now. What changes is written as records and answered when they are in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

from horolog.broker.cluster import Cluster
from horolog.broker.groups.assignors import ASSIGNORS, Assignment, Subscriber
from horolog.broker.groups.consumer_group import LEAVE_EPOCH, STATIC_LEAVE_EPOCH, ConsumerGroup, ConsumerMember
from horolog.broker.groups.reconcile import MemberState, is_subset, reconcile
from horolog.broker.groups.records import Entry
from horolog.broker.groups.timers import Timer, Timers
from horolog.broker.groups.topic_patterns import PatternError, TopicPatterns
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.consumer_groups import (
    Assignment as ToldAssignment,
)
from horolog.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

log = logging.getLogger(__name__)

JOIN_EPOCH = 0
FIRST_WITH_OWN_MEMBER_ID = 1
NOT_SAID = -1

Write = Callable[[ConsumerGroup, list[Entry], Callable[[ErrorCode], None]], None]
"""Has records of a group written, and told whether they were; if not, the group is what the log says it is."""

Answer = Callable[[ConsumerGroupHeartbeatResponse], None]


class Refusal(NamedTuple):
    """Why a heartbeat is not taken."""

    code: ErrorCode
    message: str


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int) -> Refusal | None:
    """What is wrong with a request by itself."""
    epoch = request.member_epoch
    if not request.group_id:
        return _invalid("GroupId can't be empty.")
    if not request.member_id and (version >= FIRST_WITH_OWN_MEMBER_ID or epoch != JOIN_EPOCH):
        return _invalid("MemberId can't be empty.")
    if request.instance_id == "":
        return _invalid("InstanceId can't be empty.")
    if request.rack_id == "":
        return _invalid("RackId can't be empty.")
    if epoch < STATIC_LEAVE_EPOCH:
        return _invalid("MemberEpoch is invalid.")
    if epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        return _invalid("InstanceId can't be null.")
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms < 0:
            return _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            return _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            return _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    if request.server_assignor is not None and request.server_assignor not in ASSIGNORS:
        message = (
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(ASSIGNORS)}."
        )
        return Refusal(ErrorCode.UNSUPPORTED_ASSIGNOR, message)
    return None


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)


class Consumer:
    """Runs groups of the new protocol."""

    def __init__(
        self,
        cluster: Cluster,
        timers: Timers,
        patterns: TopicPatterns,
        write: Write,
        after_removal: Callable[[ConsumerGroup], list[Entry]],
    ) -> None:
        """`after_removal` gives the records of a group that has lost members and is in a new epoch, of whatever kind it is then."""
        self._cluster = cluster
        self._timers = timers
        self._patterns = patterns
        self._write = write
        self._after_removal = after_removal

    # -- heartbeats

    def heartbeat(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        client: tuple[str, str],
        entries: list[Entry],
        answer: Answer,
    ) -> None:
        """`entries` are records that have to go first: those of a group that was of the other protocol."""
        refusal = self._check_pattern(request) or self._check_room(group, request)
        member = None if refusal is not None else self._find_member(group, request, entries)
        if refusal is None and isinstance(member, Refusal):
            refusal = member
        if refusal is not None or not isinstance(member, ConsumerMember):
            assert refusal is not None
            answer(heartbeat_error(refusal))
            return
        before = member.current.assigned
        bump = self._describe(group, member, request, client, entries)
        self.refresh(group, entries, bump=bump)
        owned = None if request.topic_partitions is None else _told(request)
        self.reconcile(group, member, owned, entries)
        self.start_session(group, member)
        is_full = request.member_epoch == JOIN_EPOCH or (
            request.rebalance_timeout_ms != NOT_SAID
            and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
            and owned is not None
        )
        response = self._response(member, with_assignment=is_full or member.current.assigned != before)
        self._finish(group, entries, response, answer)

    def _finish(
        self, group: ConsumerGroup, entries: list[Entry], response: ConsumerGroupHeartbeatResponse, answer: Answer
    ) -> None:
        def written(code: ErrorCode) -> None:
            answer(heartbeat_error(Refusal(code, "the group could not be written")) if code else response)

        if entries:
            self._write(group, entries, written)
        else:
            answer(response)

    def _check_pattern(self, request: ConsumerGroupHeartbeatRequest) -> Refusal | None:
        if request.subscribed_topic_regex:
            try:
                self._patterns.matching(request.subscribed_topic_regex)
            except PatternError as error:
                message = f"SubscribedTopicRegex `{request.subscribed_topic_regex}` is not a valid regular expression: {error}."
                return Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, message)
        return None

    def _check_room(self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> Refusal | None:
        if request.member_epoch == JOIN_EPOCH and request.member_id not in group.members:
            limit = self._cluster.settings.group_consumer_max_size
            if request.instance_id not in group.statics and len(group.members) >= limit:
                return Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, "The consumer group has reached its maximum capacity.")
        return None

    # -- who is it

    def _find_member(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, entries: list[Entry]
    ) -> ConsumerMember | Refusal:
        """The member that a heartbeat is of: known, new, or in the place of a static one that has left for a while."""
        if request.instance_id is not None:
            return self._find_static(group, request, request.instance_id, entries)
        member = group.members.get(request.member_id)
        if member is None:
            return self._new_member(group, request)
        return _check_epoch(member, request) or member

    def _find_static(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, instance_id: str, entries: list[Entry]
    ) -> ConsumerMember | Refusal:
        holder = group.members.get(group.statics.get(instance_id, ""))
        if holder is None:
            return self._new_member(group, request)
        if request.member_epoch == JOIN_EPOCH:
            if holder.current.epoch != STATIC_LEAVE_EPOCH and holder.id != request.member_id:
                message = f"Instance id {instance_id} is owned by member {holder.id}."
                return Refusal(ErrorCode.UNRELEASED_INSTANCE_ID, message)
            return holder if holder.id == request.member_id else self.replace(group, holder, request.member_id, entries)
        if holder.id != request.member_id:
            return Refusal(ErrorCode.FENCED_INSTANCE_ID, f"Instance id {instance_id} is owned by another member.")
        return _check_epoch(holder, request) or holder

    def _new_member(self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember | Refusal:
        if request.member_epoch != JOIN_EPOCH:
            message = f"Member {request.member_id} is not a member of group {group.id}."
            return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, message)
        member = self.make_member(group, request.member_id, request.instance_id)
        group.add(member)
        return member

    def make_member(self, group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
        session = Timer(_nothing)
        member = ConsumerMember(member_id, instance_id, session)
        session.action = partial(self._session_over, group, member)
        return member

    def replace(
        self, group: ConsumerGroup, holder: ConsumerMember, member_id: str, entries: list[Entry]
    ) -> ConsumerMember:
        """A static member is back under a new id: it gets what was kept for it."""
        self._stop(holder)
        entries += group.member_tombstones(holder.id)
        group.remove(holder)
        member = self.make_member(group, member_id, holder.instance_id)
        member.topics, member.regex = holder.topics, holder.regex
        member.rack_id, member.assignor = holder.rack_id, holder.assignor
        member.rebalance_timeout_ms = holder.rebalance_timeout_ms
        member.classic = holder.classic
        member.target = holder.target
        member.current = holder.current._replace(epoch=JOIN_EPOCH, state=MemberState.STABLE, revoking={})
        group.add(member)
        entries += [group.member_entry(member), group.target_entry(member), group.current_entry(member)]
        return member

    # -- what has changed

    def _describe(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        request: ConsumerGroupHeartbeatRequest,
        client: tuple[str, str],
        entries: list[Entry],
    ) -> bool:
        """Take what a member says of itself; whether that changes what it wants, which takes a new epoch."""
        before, wanted = member.description, (member.topics, member.regex)
        is_new = member.rebalance_timeout_ms == NOT_SAID
        member.client_id, member.client_host = client
        if request.rack_id is not None:
            member.rack_id = request.rack_id
        if request.rebalance_timeout_ms != NOT_SAID:
            member.rebalance_timeout_ms = request.rebalance_timeout_ms
        if request.server_assignor is not None:
            member.assignor = request.server_assignor
        if request.subscribed_topic_names is not None:
            member.topics = tuple(sorted(set(request.subscribed_topic_names)))
        if request.subscribed_topic_regex is not None:
            member.regex = request.subscribed_topic_regex or None
        if member.classic is not None and member.classic.comeback is not None:
            self._timers.stop(member.classic.comeback)
        member.classic = None
        if is_new or member.description != before:
            entries.append(group.member_entry(member))
        return is_new or (member.topics, member.regex) != wanted

    def refresh(self, group: ConsumerGroup, entries: list[Entry], *, bump: bool = False) -> None:
        """Begin a new epoch if members or topics have changed, and make the target assignment for it."""
        topics = self._topics_of(group)
        group.subscribed = frozenset(topics)
        metadata_hash = _hash(topics)
        if bump or metadata_hash != group.metadata_hash:
            group.metadata_hash = metadata_hash
            group.epoch += 1
            entries.append(group.group_entry())
        if group.epoch > group.assignment_epoch:
            self._assign(group, topics, entries)

    def _topics_of(self, group: ConsumerGroup) -> dict[str, tuple[bytes, int]]:
        """Id and partition count of every topic that the group reads and that there is."""
        names: set[str] = set()
        for topics, regex in {(member.topics, member.regex) for member in group.members.values()}:
            names.update(topics)
            if regex is not None:
                names |= self._patterns.matching(regex)
        found = {}
        for name in names:
            topic = self._cluster.topics.get(name)
            if topic is not None:
                found[name] = (topic.id, len(topic.partitions))
        return found

    def _assign(self, group: ConsumerGroup, topics: Mapping[str, tuple[bytes, int]], entries: list[Entry]) -> None:
        wanted: dict[tuple[tuple[str, ...], str | None], frozenset[bytes]] = {}
        subscribers = {}
        for member in group.members.values():
            key = (member.topics, member.regex)
            if key not in wanted:
                names = frozenset(member.topics) | self._pattern_topics(member)
                wanted[key] = frozenset(topics[name][0] for name in names if name in topics)
            subscribers[member.id] = Subscriber(wanted[key], member.target, member.instance_id)
        target = ASSIGNORS[group.assignor](subscribers, dict(topics.values()))
        for member in group.members.values():
            if member.target != target[member.id]:
                member.target = target[member.id]
                entries.append(group.target_entry(member))
        group.assignment_epoch = group.epoch
        entries.append(group.assignment_entry())

    def _pattern_topics(self, member: ConsumerMember) -> frozenset[str]:
        return self._patterns.matching(member.regex) if member.regex is not None else frozenset()

    def reconcile(
        self, group: ConsumerGroup, member: ConsumerMember, owned: Assignment | None, entries: list[Entry]
    ) -> None:
        """Bring one member as near to its target as it can come now."""
        current = reconcile(member.current, group.assignment_epoch, member.target, group.is_free, owned)
        if current != member.current:
            group.set_current(member, current)
            entries.append(group.current_entry(member))
        self._watch_revocation(group, member)

    # -- leaving

    def leave(self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, answer: Answer) -> None:
        """Epoch -1: the member is gone. Epoch -2: a static member is gone, and its place is kept for a session."""
        member = self._leaving_member(group, request)
        if isinstance(member, Refusal):
            answer(heartbeat_error(member))
            return
        response = ConsumerGroupHeartbeatResponse(member_id=member.id, member_epoch=request.member_epoch)
        if request.member_epoch == LEAVE_EPOCH:
            entries = self.remove(group, [member])
        else:
            left = member.current._replace(epoch=STATIC_LEAVE_EPOCH, state=MemberState.STABLE, revoking={})
            group.set_current(member, left)
            entries = [group.current_entry(member)]
            self._watch_revocation(group, member)
        self._finish(group, entries, response, answer)

    @staticmethod
    def _leaving_member(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember | Refusal:
        if request.instance_id is not None:
            holder = group.statics.get(request.instance_id)
            if holder is not None and holder != request.member_id:
                return Refusal(ErrorCode.FENCED_INSTANCE_ID, f"Instance id {request.instance_id} is another member's.")
        member = group.members.get(request.member_id)
        if member is None:
            return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {request.member_id} is not a member of the group.")
        return member

    def remove(self, group: ConsumerGroup, members: Sequence[ConsumerMember]) -> list[Entry]:
        """Take members out; the others get what they had with their next heartbeats."""
        entries: list[Entry] = []
        for member in members:
            self._stop(member)
            group.remove(member)
            entries += group.member_tombstones(member.id)
        group.epoch += 1
        return [*entries, *self._after_removal(group)]

    def _stop(self, member: ConsumerMember) -> None:
        self._timers.stop(member.session)
        if member.rebalance is not None:
            self._timers.stop(member.rebalance)
        if member.classic is not None and member.classic.comeback is not None:
            self._timers.stop(member.classic.comeback)

    def stop(self, group: ConsumerGroup) -> None:
        """The group is no more, or is another's business from now on."""
        for member in group.members.values():
            self._stop(member)

    # -- time

    def start_session(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        del group
        classic = member.classic
        timeout_ms = self._cluster.settings.group_consumer_session_timeout_ms
        self._timers.start(member.session, timeout_ms if classic is None else classic.session_timeout_ms)

    def start_sessions(self, group: ConsumerGroup) -> None:
        """After a restart every member has its whole session before it to say that it is still there."""
        group.subscribed = frozenset(self._topics_of(group))
        for member in group.members.values():
            self.start_session(group, member)
            self._watch_revocation(group, member)

    def _watch_revocation(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """A member that has to give something back has its rebalance timeout for it."""
        if member.current.state is not MemberState.UNREVOKED:
            if member.rebalance is not None:
                self._timers.stop(member.rebalance)
            return
        if member.rebalance is None:
            member.rebalance = Timer(partial(self._revocation_over, group, member))
        if not member.rebalance.running:
            self._timers.start(member.rebalance, max(0, member.rebalance_timeout_ms))

    def _session_over(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        self.fence(group, member, "has fallen silent")

    def _revocation_over(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        self.fence(group, member, "has not given back its partitions in time")

    def fence(self, group: ConsumerGroup, member: ConsumerMember, why: str) -> None:
        if group.members.get(member.id) is member:
            log.info("group %s: member %s %s", group.id, member.id, why)
            self._write(group, self.remove(group, [member]), lambda _: None)

    # -- answers

    def _response(self, member: ConsumerMember, *, with_assignment: bool) -> ConsumerGroupHeartbeatResponse:
        assignment = None
        if with_assignment:
            topics = [
                ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=sorted(indexes))
                for topic_id, indexes in member.current.assigned.items()
            ]
            assignment = ToldAssignment(topic_partitions=topics)
        return ConsumerGroupHeartbeatResponse(
            member_id=member.id,
            member_epoch=member.current.epoch,
            heartbeat_interval_ms=self._cluster.settings.group_consumer_heartbeat_interval_ms,
            assignment=assignment,
        )


def _check_epoch(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest) -> Refusal | None:
    """A member may come with its epoch, with 0 to begin anew, or with the last one if the answer was lost."""
    epoch, current = request.member_epoch, member.current
    if epoch in {JOIN_EPOCH, current.epoch}:
        return None
    owned = _told(request) if request.topic_partitions is not None else None
    if epoch == current.previous_epoch and owned is not None and is_subset(owned, current.assigned):
        return None
    message = (
        f"The consumer group member has epoch {current.epoch}, not {epoch}. It must abandon its partitions and rejoin."
    )
    return Refusal(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _told(request: ConsumerGroupHeartbeatRequest) -> Assignment:
    told: dict[bytes, frozenset[int]] = {}
    for one in request.topic_partitions or ():
        told[one.topic_id] = told.get(one.topic_id, frozenset()) | frozenset(one.partitions)
    return {topic_id: indexes for topic_id, indexes in told.items() if indexes}


def _hash(topics: Mapping[str, tuple[bytes, int]]) -> int:
    """Changes when a topic comes, goes, is made anew or gets more partitions."""
    digest = blake2b(digest_size=8)
    for name, (topic_id, count) in sorted(topics.items()):
        digest.update(b"%s\x00%s%d\x00" % (name.encode(), topic_id, count))
    return int.from_bytes(digest.digest(), "big", signed=True) if topics else 0


def heartbeat_error(refusal: Refusal) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=refusal.code, error_message=refusal.message, member_id=None)


def _nothing() -> None:
    """Stands in a timer until its action is known."""
