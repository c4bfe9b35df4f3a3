"""Members that speak the classic protocol in a group of the newer one: while a group migrates, it has both.

Such a member is told to join again whenever there is something new for it. Joining brings it as near to its target as a heartbeat of the
newer protocol would, the generation is its epoch, nobody leads, and syncing gives it what it has now. Who is told to
come back and does not within its rebalance timeout is out.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from horolog.broker.cluster import Cluster
from horolog.broker.groups.assignors import Assignment
from horolog.broker.groups.classic import FIRST_JOIN_WITH_MEMBER_ID, join_error, rebalance_timeout_ms
from horolog.broker.groups.classic_group import CONSUMER_PROTOCOL, AnswerJoin, AnswerSync, Protocols, new_member_id
from horolog.broker.groups.consumer import Consumer, Write
from horolog.broker.groups.consumer_group import STATIC_LEAVE_EPOCH, ClassicPart, ConsumerGroup, ConsumerMember
from horolog.broker.groups.migration import classic_assignment, owned_by
from horolog.broker.groups.reconcile import MemberState
from horolog.broker.groups.records import Entry
from horolog.broker.groups.subscription import read_subscription
from horolog.broker.groups.timers import Timer, Timers
from horolog.protocol.errors import DecodeError, ErrorCode
from horolog.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from horolog.protocol.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupResponse,
)

NO_GENERATION = -1


class Mixed:
    """Serves the classic requests of members of groups of the newer protocol."""

    def __init__(self, cluster: Cluster, timers: Timers, consumer: Consumer, write: Write) -> None:
        self._cluster = cluster
        self._timers = timers
        self._consumer = consumer
        self._write = write

    # -- joining

    def join(
        self,
        group: ConsumerGroup,
        request: JoinGroupRequest,
        version: int,
        client: tuple[str, str],
        answer: AnswerJoin,
    ) -> None:
        protocols = tuple((each.name, bytes(each.metadata)) for each in request.protocols)
        subscription = self._subscription(group, request, protocols)
        if subscription is None:
            answer(join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
            return
        code = self._check_join(group, request)
        if code:
            answer(join_error(code, request.member_id))
            return
        if not request.member_id and request.group_instance_id is None and version >= FIRST_JOIN_WITH_MEMBER_ID:
            answer(join_error(ErrorCode.MEMBER_ID_REQUIRED, new_member_id(client[0], None)))
            return
        entries: list[Entry] = []
        member = self._member(group, request, client, entries)
        is_new = member.rebalance_timeout_ms < 0
        before = (member.topics, member.regex)
        self._describe(member, request, protocols, subscription, client)
        entries.append(group.member_entry(member))
        self._consumer.refresh(group, entries, bump=is_new or (member.topics, member.regex) != before)
        self._consumer.reconcile(group, member, self._owned(member, subscription), entries)
        self._consumer.start_session(group, member)
        self._forget_timer(member)
        self._expect(group, member)  # to sync
        response = JoinGroupResponse(
            generation_id=member.current.epoch,
            protocol_type=CONSUMER_PROTOCOL,
            protocol_name=protocols[0][0],
            member_id=member.id,
        )

        def written(failure: ErrorCode) -> None:
            answer(join_error(failure, member.id) if failure else response)

        self._write(group, entries, written)

    @staticmethod
    def _subscription(
        group: ConsumerGroup, request: JoinGroupRequest, protocols: Protocols
    ) -> ConsumerProtocolSubscription | None:
        """What a member that joins wants; None if the group, or the broker, does not understand it."""
        if request.protocol_type != CONSUMER_PROTOCOL or not protocols:
            return None
        offered = {name for name, _ in protocols}
        for member in group.members.values():
            if member.classic is not None and member.id != request.member_id:
                offered &= {name for name, _ in member.classic.protocols}
        try:
            return read_subscription(protocols[0][1]) if offered else None
        except DecodeError:
            return None

    def _check_join(self, group: ConsumerGroup, request: JoinGroupRequest) -> ErrorCode:
        instance_id = request.group_instance_id
        holder = group.statics.get(instance_id) if instance_id is not None else None
        if holder is not None and request.member_id not in {"", holder}:
            return ErrorCode.FENCED_INSTANCE_ID
        if holder is not None and not request.member_id and group.members[holder].classic is None:
            is_free = group.members[holder].current.epoch == STATIC_LEAVE_EPOCH
            return ErrorCode.NONE if is_free else ErrorCode.UNRELEASED_INSTANCE_ID
        if instance_id is not None and holder is None and request.member_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
        is_known = request.member_id in group.members or holder is not None
        if not is_known and len(group.members) >= self._cluster.settings.group_consumer_max_size:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        return ErrorCode.NONE

    def _member(
        self, group: ConsumerGroup, request: JoinGroupRequest, client: tuple[str, str], entries: list[Entry]
    ) -> ConsumerMember:
        instance_id = request.group_instance_id
        member_id = request.member_id or new_member_id(client[0], instance_id)
        holder = group.members.get(group.statics.get(instance_id or "", "") if instance_id else member_id)
        if holder is not None and holder.id == member_id:
            return holder
        if holder is not None:
            self._forget_timer(holder)
            return self._consumer.replace(group, holder, member_id, entries)
        member = self._consumer.make_member(group, member_id, instance_id)
        group.add(member)
        return member

    @staticmethod
    def _describe(
        member: ConsumerMember,
        request: JoinGroupRequest,
        protocols: Protocols,
        subscription: ConsumerProtocolSubscription,
        client: tuple[str, str],
    ) -> None:
        member.client_id, member.client_host = client
        member.rack_id = subscription.rack_id
        member.topics, member.regex = tuple(sorted(set(subscription.topics))), None
        member.rebalance_timeout_ms = rebalance_timeout_ms(request)
        comeback = member.classic.comeback if member.classic is not None else None
        member.classic = ClassicPart(request.session_timeout_ms, protocols)
        member.classic.comeback = comeback

    def _owned(self, member: ConsumerMember, subscription: ConsumerProtocolSubscription) -> Assignment:
        """What a member still has; what it says of an older generation does not count."""
        if subscription.generation_id not in {NO_GENERATION, member.current.epoch}:
            return {}
        return owned_by(subscription, self._cluster)

    # -- syncing and heartbeats

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest, answer: AnswerSync) -> None:
        member = self._check(group, request.member_id, request.group_instance_id, request.generation_id)
        if isinstance(member, ErrorCode):
            answer(SyncGroupResponse(error_code=member))
            return
        assert member.classic is not None
        name = member.classic.protocols[0][0]
        if request.protocol_type not in {None, CONSUMER_PROTOCOL} or request.protocol_name not in {None, name}:
            answer(SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
            return
        if group.epoch > member.current.epoch and member.current.state is not MemberState.UNREVOKED:
            self._expect(group, member)
            answer(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
            return
        self._forget_timer(member)
        self._consumer.start_session(group, member)
        answer(
            SyncGroupResponse(
                protocol_type=CONSUMER_PROTOCOL,
                protocol_name=name,
                assignment=classic_assignment(member, self._cluster),
            )
        )

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> ErrorCode:
        member = self._check(group, request.member_id, request.group_instance_id, request.generation_id)
        if isinstance(member, ErrorCode):
            return member
        self._consumer.start_session(group, member)
        if not self._has_news(group, member):
            return ErrorCode.NONE
        self._expect(group, member)
        return ErrorCode.REBALANCE_IN_PROGRESS

    @staticmethod
    def _has_news(group: ConsumerGroup, member: ConsumerMember) -> bool:
        """Whether joining again would change something: a new epoch, something to give back, or something that is free now."""
        current = member.current
        if current.epoch < group.epoch or current.state is MemberState.UNREVOKED:
            return True
        return current.state is MemberState.UNRELEASED and any(
            group.is_free(topic_id, index)
            for topic_id, indexes in member.target.items()
            for index in indexes - current.assigned.get(topic_id, frozenset())
        )

    @staticmethod
    def _check(
        group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
    ) -> ConsumerMember | ErrorCode:
        if instance_id is not None:
            holder = group.statics.get(instance_id)
            if holder is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if holder != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        member = group.members.get(member_id)
        if member is None or member.classic is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return member if generation == member.current.epoch else ErrorCode.ILLEGAL_GENERATION

    # -- leaving

    def leave(self, group: ConsumerGroup, identities: Iterable[MemberIdentity]) -> list[ErrorCode]:
        """Take members out, of either kind; what became of each."""
        codes: list[ErrorCode] = []
        leaving: dict[str, ConsumerMember] = {}
        for one in identities:
            member = self._leaving(group, one)
            if isinstance(member, ConsumerMember) and member.id not in leaving:
                leaving[member.id] = member
                codes.append(ErrorCode.NONE)
            else:
                codes.append(member if isinstance(member, ErrorCode) else ErrorCode.UNKNOWN_MEMBER_ID)
        if leaving:
            self._write(group, self._consumer.remove(group, list(leaving.values())), lambda _: None)
        return codes

    @staticmethod
    def _leaving(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember | ErrorCode:
        member_id, instance_id = identity.member_id, identity.group_instance_id
        if instance_id is not None:
            holder = group.statics.get(instance_id)
            if holder is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if member_id not in {"", holder}:
                return ErrorCode.FENCED_INSTANCE_ID
            member_id = holder
        return group.members.get(member_id) or ErrorCode.UNKNOWN_MEMBER_ID

    # -- time

    def _expect(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """The member has its rebalance timeout for the next step."""
        assert member.classic is not None
        if member.classic.comeback is None:
            member.classic.comeback = Timer(partial(self._consumer.fence, group, member, "has not come back in time"))
        if not member.classic.comeback.running:
            self._timers.start(member.classic.comeback, max(0, member.rebalance_timeout_ms))

    def _forget_timer(self, member: ConsumerMember) -> None:
        if member.classic is not None and member.classic.comeback is not None:
            self._timers.stop(member.classic.comeback)
