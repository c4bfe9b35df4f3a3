"""A member of a classic consumer group: joins, assigns partitions if it leads, keeps its place with heartbeats, leaves."""

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from horolog.client.consuming.assignors import COOPERATIVE, STRATEGIES
from horolog.client.values.errors import KafkaError, MalformedAnswer, check
from horolog.client.values.types import TopicPartition
from horolog.client.wire.group_state import MemberState, Step
from horolog.client.wire.group_wire import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from horolog.client.wire.versions import Versioned
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import DecodeError, ErrorCode
from horolog.protocol.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from horolog.protocol.wire import Message

if TYPE_CHECKING:
    from horolog.client.wire.client import Client

PROTOCOL_TYPE = "consumer"
INSTANCES_FROM = {ApiKey.JOIN_GROUP: 5, ApiKey.SYNC_GROUP: 3, ApiKey.HEARTBEAT: 3}
TOPIC_CHECK_MS = 30_000  # how often a leader looks for new topics and partitions
JOIN_GRACE_MS = 5_000  # how long a response to JoinGroup may take beyond the rebalance timeout
_MEMBERS_FROM = 3  # the first version of LeaveGroup that names several members


class Membership:
    def __init__(
        self,
        client: "Client",
        group: str,
        *,
        session_timeout_ms: int,
        max_poll_interval_ms: int,
        heartbeat_ms: int,
        instance_id: str | None,
        strategies: Sequence[str],
        changed: Callable[[], None],
    ) -> None:
        unknown = [name for name in strategies if name not in STRATEGIES]
        if unknown or not strategies:
            raise ValueError(f"strategies {list(strategies)}: expected some of {', '.join(STRATEGIES)}")
        self.state = MemberState()
        self.instance_id = instance_id
        self.is_cooperative = all(name == COOPERATIVE for name in strategies)
        self.fault: KafkaError | None = None
        self._client = client
        self._group = group
        self._session_timeout_ms = session_timeout_ms
        self._max_poll_interval_ms = max_poll_interval_ms
        self._heartbeat_ms = heartbeat_ms
        self._lane = client.channels.new_lane("group")  # joining waits for other members
        self._strategies = tuple(strategies)
        self._changed = changed
        self._topics: tuple[str, ...] = ()
        self._pattern: re.Pattern[str] | None = None
        self._joined_with: tuple[str, ...] = ()
        self._shared_topics: set[str] = set()
        """The members' subscriptions, including topics that do not exist; known to the leader."""
        self._shared_out: dict[str, list[int]] = {}
        self._polled_at = client.clock.monotonic()
        self._heartbeats: asyncio.Task[None] | None = None

    def subscribe(self, topics: Iterable[str], pattern: str | None) -> None:
        self._topics = tuple(dict.fromkeys(topics))
        self._pattern = re.compile(pattern) if pattern is not None else None
        self.state.join_again()

    def polled(self) -> None:
        """The application is alive."""
        self._polled_at = self._client.clock.monotonic()

    # Joining

    async def rebalance(self, owned: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Join and get this member's assignment; retries as long as it takes, and raises permanent errors."""
        failures = 0
        while True:
            try:
                assignment = await self._join_and_sync(owned if not self.state.lost else ())
            except KafkaError as error:
                failures += 1
                self._client.learn_from(error)
                step = self.state.after(error.code, retriable=error.retriable)
                if step == Step.GIVE_UP:
                    raise
                if step == Step.TRY_AGAIN or failures > 1:
                    delay_ms = self._client.retry_policy.delay_ms(failures, self._client.random)
                    await self._client.sleep(delay_ms / 1000)
            else:
                self._start_heartbeats()
                return assignment

    async def _join_and_sync(self, owned: Sequence[TopicPartition]) -> list[TopicPartition]:
        topics = await self._find_topics()
        self._joined_with = topics
        metadata = encode_subscription(Subscription(topics, tuple(owned), self.state.generation))
        joined = await self._join(metadata)
        is_leader = joined.leader == joined.member_id
        self.state.joined(joined.member_id, joined.generation_id, joined.protocol_name or "", is_leader=is_leader)
        shares = await self._share_out(joined) if is_leader and not joined.skip_assignment else []
        assignment = await self._sync(shares)
        self.state.synced()
        return assignment

    async def _find_topics(self) -> tuple[str, ...]:
        if self._pattern is None:
            return self._topics
        view = await self._client.metadata()
        pattern = self._pattern
        return tuple(
            sorted(name for name, each in view.topics.items() if not each.internal and pattern.fullmatch(name))
        )

    async def _join(self, metadata: bytes) -> JoinGroupResponse:
        def build(version: int) -> Message:
            return JoinGroupRequest(
                group_id=self._group,
                session_timeout_ms=self._session_timeout_ms,
                rebalance_timeout_ms=self._max_poll_interval_ms,
                member_id=self.state.member_id,
                group_instance_id=self._instance_for(ApiKey.JOIN_GROUP, version),
                protocol_type=PROTOCOL_TYPE,
                protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name in self._strategies],
            )

        joined: JoinGroupResponse = await self._client.attempt(
            Versioned(ApiKey.JOIN_GROUP, build),
            coordinator_of=("group", self._group),
            lane=self._lane,
            timeout_ms=max(self._max_poll_interval_ms, self._session_timeout_ms) + JOIN_GRACE_MS,
        )
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.state.member_id = joined.member_id
        check(joined.error_code, group=self._group)
        return joined

    async def _share_out(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        strategy = STRATEGIES.get(self.state.strategy)
        if strategy is None:
            raise MalformedAnswer(f"the group chose {self.state.strategy!r}, which this member did not offer")
        members: dict[str, Subscription] = {}
        for each in joined.members:
            try:
                members[each.member_id] = decode_subscription(each.metadata)
            except DecodeError:
                members[each.member_id] = Subscription(())  # an undecodable subscription has no topics
        self._shared_topics = {topic for each in members.values() for topic in each.topics}
        topics = await self._partitions(self._shared_topics)
        self._shared_out = topics
        return [
            SyncGroupRequestAssignment(member_id=member, assignment=encode_assignment(partitions))
            for member, partitions in strategy(members, topics).items()
        ]

    async def _partitions(self, topics: Iterable[str]) -> dict[str, list[int]]:
        names = sorted(topics)
        view = await self._client.metadata(names)
        return {name: view.topics[name].numbers for name in names if name in view.topics}

    async def _sync(self, shares: list[SyncGroupRequestAssignment]) -> list[TopicPartition]:
        def build(version: int) -> Message:
            return SyncGroupRequest(
                group_id=self._group,
                generation_id=self.state.generation,
                member_id=self.state.member_id,
                group_instance_id=self._instance_for(ApiKey.SYNC_GROUP, version),
                protocol_type=PROTOCOL_TYPE,
                protocol_name=self.state.strategy,
                assignments=shares,
            )

        response = await self._client.attempt(
            Versioned(ApiKey.SYNC_GROUP, build),
            coordinator_of=("group", self._group),
            lane=self._lane,
            timeout_ms=max(self._max_poll_interval_ms, self._session_timeout_ms) + JOIN_GRACE_MS,
        )
        check(response.error_code, group=self._group)
        try:
            return decode_assignment(response.assignment)
        except DecodeError as error:
            raise MalformedAnswer(f"the group's leader wrote an assignment that cannot be read: {error}") from error

    def _instance_for(self, key: ApiKey, version: int) -> str | None:
        return self.instance_id if version >= INSTANCES_FROM[key] else None

    # Staying

    def _start_heartbeats(self) -> None:
        if self._heartbeats is None or self._heartbeats.done():
            self._heartbeats = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        clock = self._client.clock
        checked_at = clock.monotonic()
        while True:
            await self._client.sleep(self._heartbeat_ms / 1000)
            now = clock.monotonic()
            if (now - self._polled_at) * 1000 > self._max_poll_interval_ms:
                await self._send_leave("the application has not polled for too long")
                self.state.left()
                self._changed()
                return
            if not self.state.is_stable:
                continue
            try:
                await self._heartbeat()
                if (now - checked_at) * 1000 >= TOPIC_CHECK_MS:
                    checked_at = now
                    await self._check_topics()
            except KafkaError as error:
                if self._heard(error) == Step.GIVE_UP:
                    return

    async def _heartbeat(self) -> None:
        generation = self.state.generation

        def build(version: int) -> Message:
            return HeartbeatRequest(
                group_id=self._group,
                generation_id=generation,
                member_id=self.state.member_id,
                group_instance_id=self._instance_for(ApiKey.HEARTBEAT, version),
            )

        response = await self._client.attempt(
            Versioned(ApiKey.HEARTBEAT, build),
            coordinator_of=("group", self._group),
            timeout_ms=min(self._session_timeout_ms, self._client.request_timeout_ms),
        )
        if generation == self.state.generation:  # else the response is about an earlier generation
            check(response.error_code, group=self._group)

    def _heard(self, error: KafkaError) -> Step:
        self._client.learn_from(error)
        step = self.state.after(error.code, retriable=error.retriable)
        if step == Step.GIVE_UP:
            self.fault = error
        if step != Step.TRY_AGAIN:
            self._changed()
        return step

    async def _check_topics(self) -> None:
        """Rejoin for new topics that match, and, as the leader, for new partitions."""
        if self._pattern is not None and await self._find_topics() != self._joined_with:
            self.state.join_again()
        if self.state.is_leader and await self._partitions(self._shared_topics) != self._shared_out:
            self.state.join_again()
        if self.state.needs_join:
            self._changed()

    # Leaving

    async def close(self) -> None:
        """Stop; a static member keeps its place until its session times out."""
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            await asyncio.gather(self._heartbeats, return_exceptions=True)
        if self.instance_id is None:
            await self._send_leave("the consumer was closed")
        self._client.channels.close_lane(self._lane)

    async def _send_leave(self, reason: str) -> None:
        """Leave the group if its coordinator can be reached: otherwise the session times out."""
        if not self.state.member_id or self._client.closed:
            return

        def build(version: int) -> Message:
            if version < _MEMBERS_FROM:
                return LeaveGroupRequest(group_id=self._group, member_id=self.state.member_id)
            identity = MemberIdentity(member_id=self.state.member_id, group_instance_id=self.instance_id, reason=reason)
            return LeaveGroupRequest(group_id=self._group, members=[identity])

        try:
            await self._client.attempt(
                Versioned(ApiKey.LEAVE_GROUP, build), coordinator_of=("group", self._group), timeout_ms=5_000
            )
        except KafkaError as error:
            self._client.learn_from(error)
