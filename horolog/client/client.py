"""A client of a cluster: connections to its brokers, what it knows of them, and requests that find the right one."""

import asyncio
import random as random_module
from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from horolog.broker.clock import Clock, SystemClock
from horolog.client.addresses import parse_addresses
from horolog.client.cluster_view import ClusterView, Node, TopicView
from horolog.client.connection import Connection, connect
from horolog.client.errors import Closed, ConnectionFailed, KafkaError, check, first
from horolog.client.fetch import DEFAULT_MAX_BYTES, RawFetch, fetch_once
from horolog.client.handshake import open_connection
from horolog.client.requests import Request, Versioned
from horolog.client.retry import STALE_COORDINATOR, STALE_LEADERS, RetryPolicy
from horolog.client.types import TopicPartition
from horolog.client.versions import BrokerVersions, api_of
from horolog.protocol.apis import API, NEVER, ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import FindCoordinatorRequest
from horolog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from horolog.protocol.wire import Message
from horolog.version import __version__

T = TypeVar("T")

DEFAULT_MAX_ANSWER_BYTES = 256 << 20
COORDINATOR_KINDS = {"group": 0, "transaction": 1}
_BATCHED_COORDINATORS_FROM = 4  # the version of FindCoordinator that asks for many keys
_NULL_MEANS_ALL_FROM = 1  # the version of Metadata in which an empty list is not everything


class _Channel(NamedTuple):
    connection: Connection
    versions: BrokerVersions


class Client:
    """Shared by any number of producers, consumers and admins; nothing is connected before the first request."""

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        client_id: str = "horolog",
        request_timeout_ms: int = 30_000,
        connect_timeout_ms: int = 10_000,
        retry: RetryPolicy | None = None,
        metadata_max_age_ms: int = 300_000,
        max_answer_bytes: int = DEFAULT_MAX_ANSWER_BYTES,
        clock: Clock | None = None,
        random: Callable[[], float] = random_module.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.addresses = parse_addresses(bootstrap)
        self.client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        self.retry_policy = retry or RetryPolicy()
        self.clock = clock or SystemClock()
        self.view = ClusterView()
        self.closed = False
        self._connect_timeout_ms = connect_timeout_ms
        self._metadata_max_age_ms = metadata_max_age_ms
        self._max_answer_bytes = max_answer_bytes
        self.random = random
        self.sleep = sleep
        self._channels: dict[tuple[str, str, int], asyncio.Task[_Channel]] = {}
        self._coordinators: dict[tuple[str, str], Node] = {}
        self._leaders_stale = True
        self._lanes = 0
        self._refreshing = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<Client {self.client_id!r} of {','.join(f'{host}:{port}' for host, port in self.addresses)}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all connections; requests under way fail."""
        self.closed = True
        channels, self._channels = self._channels, {}
        for task in channels.values():
            task.cancel()
        for result in await asyncio.gather(*channels.values(), return_exceptions=True):
            if isinstance(result, _Channel):
                result.connection.close(Closed("client"))
        for task in channels.values():
            if not task.cancelled() and task.exception() is None:
                task.result().connection.close(Closed("client"))

    def new_lane(self, purpose: str) -> str:
        """A name for connections of one user's own: brokers answer what comes on a connection one after the other."""
        self._lanes += 1
        return f"{purpose}-{self._lanes}"

    def close_lane(self, lane: str) -> None:
        """End the connections of one lane."""
        for key in [key for key in self._channels if key[0] == lane]:
            task = self._channels.pop(key)
            if task.done() and self._usable(task):
                task.result().connection.close(Closed("connection"))
            task.cancel()

    # Requests

    async def request(self, message: Request, **where: Any) -> Any:
        """The answer to one request, sent once to the broker that `where` names (see `attempt`), which is looked for repeatedly.

        Error codes inside of the answer are the caller's to look at.
        """
        timeout_ms = where.pop("timeout_ms", None)
        bounds = {key: where.pop(key) for key in ("at_least", "at_most") if key in where}
        channel = await self.retry(lambda: self._route(**where))
        return await self._send(channel, message, timeout_ms, **bounds)

    async def attempt(
        self,
        message: Request,
        *,
        timeout_ms: int | None = None,
        at_least: int = 0,
        at_most: int = NEVER,
        **where: Any,
    ) -> Any:
        """One try: `node_id=`, `leader_of=TopicPartition`, `coordinator_of=("group"|"transaction", id)` or `controller=True`;
        none of them means any broker. Requests that wait long have a `lane=` (a connection) of their own.
        """
        channel = await self._route(**where)
        return await self._send(channel, message, timeout_ms, at_least, at_most)

    async def attempt_at(
        self, node: Node, message: Request, *, lane: str = "", timeout_ms: int | None = None, **bounds: int
    ) -> Any:
        """One try at a broker that was found before."""
        return await self._send(await self.channel(node, lane), message, timeout_ms, **bounds)

    async def _send(
        self,
        channel: _Channel,
        message: Request,
        timeout_ms: int | None,
        at_least: int = 0,
        at_most: int = NEVER,
    ) -> Any:
        connection, versions = channel
        api = API[message.key] if isinstance(message, Versioned) else api_of(type(message).__name__)
        version = versions.choose(api, at_least, at_most)
        body = message.build(version) if isinstance(message, Versioned) else message
        return await connection.request(api, version, body, timeout_ms or self.request_timeout_ms)

    async def retry(self, operation: Callable[[], Awaitable[T]], *, timeout_ms: float | None = None) -> T:
        """The operation's result, tried again after retriable failures, with growing pauses, for as long as the policy says."""
        policy = self.retry_policy
        if timeout_ms is not None:
            policy = RetryPolicy(policy.backoff_ms, policy.backoff_max_ms, int(timeout_ms))
        began = self.clock.monotonic()
        attempt = 0
        while True:
            try:
                return await operation()
            except KafkaError as error:
                attempt += 1
                self.learn_from(error)
                elapsed_ms = (self.clock.monotonic() - began) * 1000
                if self.closed or not error.retriable or policy.gives_up(error.code, attempt, elapsed_ms):
                    raise
            await self.sleep(policy.delay_ms(attempt, self.random) / 1000)

    def learn_from(self, error: KafkaError) -> None:
        """Doubt the view of the cluster, where the error gives reason to."""
        if error.code in STALE_LEADERS:
            self._leaders_stale = True
        if error.code in STALE_COORDINATOR:
            self._coordinators.clear()

    # Brokers

    async def versions(self, node_id: int | None = None) -> BrokerVersions:
        """The versions that a broker serves."""
        channel = await self.retry(lambda: self._route(node_id=node_id))
        return channel.versions

    async def _route(
        self,
        *,
        node_id: int | None = None,
        leader_of: TopicPartition | None = None,
        coordinator_of: tuple[str, str] | None = None,
        controller: bool = False,
        lane: str = "",
    ) -> _Channel:
        if self.closed:
            raise Closed("client")
        if leader_of is not None:
            return await self.channel(await self.leader_once(leader_of), lane)
        if coordinator_of is not None:
            return await self.channel(await self._coordinator_once(*coordinator_of), lane)
        if controller:
            return await self.channel(await self._controller_once(), lane)
        if node_id is not None:
            return await self.channel(await self._node_once(node_id), lane)
        return await self._any_channel(lane)

    async def _any_channel(self, lane: str) -> _Channel:
        """Any broker that takes a connection, those that are connected first."""
        places = list(dict.fromkeys([*((node.host, node.port) for node in self.view.nodes.values()), *self.addresses]))
        start = int(self.random() * len(places)) % len(places)
        places = places[start:] + places[:start]
        places.sort(key=lambda place: not self._is_open(lane, *place))
        failures: list[str] = []
        for host, port in places:
            try:
                return await self._channel_to(lane, host, port)
            except KafkaError as error:
                if not error.retriable:
                    raise
                failures.append(error.message)
        raise ConnectionFailed("; ".join(dict.fromkeys(failures)))

    def _is_open(self, lane: str, host: str, port: int) -> bool:
        task = self._channels.get((lane, host, port))
        return task is not None and task.done() and self._usable(task)

    async def channel(self, node: Node, lane: str = "") -> _Channel:
        """The connection to a broker, and what it serves."""
        return await self._channel_to(lane, node.host, node.port)

    async def _channel_to(self, lane: str, host: str, port: int) -> _Channel:
        """The connection of that lane, made now if there is none; all who ask meanwhile wait for the same one."""
        key = (lane, host, port)
        task = self._channels.get(key)
        if task is None or (task.done() and not self._usable(task)):
            task = asyncio.create_task(self._open(host, port))
            self._channels[key] = task
        if task.done():
            return task.result()
        return await asyncio.shield(task)

    @staticmethod
    def _usable(task: "asyncio.Task[_Channel]") -> bool:
        return not task.cancelled() and task.exception() is None and task.result().connection.is_open

    async def _open(self, host: str, port: int) -> _Channel:
        def dial() -> Awaitable[Connection]:
            return connect(host, port, self.client_id, self._connect_timeout_ms, self._max_answer_bytes)

        return _Channel(*await open_connection(dial, __version__, self.request_timeout_ms))

    # The view of the cluster

    async def metadata(self, topics: Iterable[str] | None = None, *, create: bool = False) -> ClusterView:
        """Ask for these topics, or for all, and return all that is known; `create` lets the broker make topics that it lacks."""
        names = None if topics is None else list(topics)
        return await self.retry(lambda: self._refresh(names, create=create))

    async def _refresh(self, topics: list[str] | None, *, create: bool = False) -> ClusterView:
        def build(version: int) -> Message:
            if topics is None:
                return MetadataRequest(topics=None if version >= _NULL_MEANS_ALL_FROM else [])
            return MetadataRequest(
                topics=[MetadataRequestTopic(name=name) for name in topics],
                allow_auto_topic_creation=create or version < API[ApiKey.METADATA].min_version + 4,
            )

        response = await self.attempt(Versioned(ApiKey.METADATA, build))
        check(response.error_code)
        if topics is None:
            self.view.topics.clear()
        self.view.update(response, self.clock.monotonic())
        return self.view

    async def topic(self, name: str, *, create: bool = False) -> list[int]:
        """The partitions of a topic."""
        view = await self.retry(lambda: self._topic_once(name, create=create))
        return view.topics[name].numbers

    def partitions_now(self, name: str) -> list[int] | None:
        """The partitions of a topic without asking anybody: None when that has to be done.

        They may be old: whoever sends to one of them looks for its leader, and that brings newer ones.
        """
        known = self.view.topics.get(name)
        return known.numbers if known is not None and not known.error_code else None

    async def _topic_once(self, name: str, *, create: bool) -> ClusterView:
        if not self._is_fresh(name):
            await self._refresh_stale(name, create=create)
        self.view.leader(TopicPartition(name, 0))
        return self.view

    async def leader(self, partition: TopicPartition) -> Node:
        """The broker that leads a partition."""
        return await self.retry(lambda: self.leader_once(partition))

    async def leader_once(self, partition: TopicPartition) -> Node:
        """The same with one look at most."""
        if not self._is_fresh(partition.topic):
            await self._refresh_stale(partition.topic)
        return self.view.leader(partition)

    def _is_fresh(self, topic: str) -> bool:
        known = self.view.topics.get(topic)
        return known is not None and not self._leaders_stale and self._is_young(known)

    def _is_young(self, known: TopicView) -> bool:
        return (self.clock.monotonic() - known.updated_at) * 1000 < self._metadata_max_age_ms

    async def _refresh_stale(self, topic: str, *, create: bool = False) -> None:
        """Ask again for all topics in use; those who come meanwhile take the same answer."""
        async with self._refreshing:
            if not self._is_fresh(topic):
                await self._refresh(list({*self.view.topics, topic}), create=create)
                self._leaders_stale = False

    async def _controller_once(self) -> Node:
        if self.view.controller_id not in self.view.nodes or self._leaders_stale:
            await self._refresh([])
        if self.view.controller_id < 0:  # brokers of the first versions do not say
            return first(list(self.view.nodes.values()), "brokers")
        return self.view.controller()

    async def _node_once(self, node_id: int) -> Node:
        if node_id not in self.view.nodes:
            await self._refresh([])
        node = self.view.nodes.get(node_id)
        if node is None:
            raise ConnectionFailed(f"there is no broker {node_id} in the cluster")
        return node

    async def coordinator(self, kind: str, key: str) -> Node:
        """The broker that looks after a group or a transactional id; `kind` is "group" or "transaction"."""
        return await self.retry(lambda: self._coordinator_once(kind, key))

    async def _coordinator_once(self, kind: str, key: str) -> Node:
        known = self._coordinators.get((kind, key))
        if known is None:
            known = await self._find_coordinator(kind, key)
            self._coordinators[kind, key] = known
        return known

    async def _find_coordinator(self, kind: str, key: str) -> Node:
        number = COORDINATOR_KINDS[kind]

        def build(version: int) -> Message:
            if version >= _BATCHED_COORDINATORS_FROM:
                return FindCoordinatorRequest(key_type=number, coordinator_keys=[key])
            return FindCoordinatorRequest(key_type=number, key=key)

        response = await self.attempt(Versioned(ApiKey.FIND_COORDINATOR, build))
        answer = response.coordinators[0] if response.coordinators else response
        check(answer.error_code, answer.error_message)
        if not answer.host:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return Node(answer.node_id, answer.host, answer.port)

    # Records as they lie in the log

    async def fetch_raw(
        self,
        partition: TopicPartition,
        offset: int,
        max_bytes: int = DEFAULT_MAX_BYTES,
        isolation: str = "read_uncommitted",
        *,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
    ) -> RawFetch:
        """Undecoded records from an offset on; whole batches, the first of which may begin before the offset."""
        return await self.retry(
            lambda: fetch_once(
                self, partition, offset, max_bytes, isolation, max_wait_ms=max_wait_ms, min_bytes=min_bytes
            )
        )
