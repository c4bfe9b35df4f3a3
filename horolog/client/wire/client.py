"""A client of a cluster: connections to its brokers, a view of the cluster, and requests that find the right broker."""

import asyncio
import logging
import random as random_module
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from horolog.base.clock import Clock, SystemClock
from horolog.client.values.errors import Closed, KafkaError, error_of
from horolog.client.values.types import TopicPartition
from horolog.client.wire.addresses import parse_addresses
from horolog.client.wire.any_of import any_of
from horolog.client.wire.channels import Channel, Channels
from horolog.client.wire.cluster_view import ClusterView, Node
from horolog.client.wire.fetch import DEFAULT_MAX_BYTES, RawFetch, fetch_once
from horolog.client.wire.finder import Finder
from horolog.client.wire.retry import RetryPolicy
from horolog.client.wire.versions import BrokerVersions, Request, Versioned, api_of
from horolog.protocol.apis import API, NEVER, ApiKey
from horolog.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from horolog.client.security import Security
    from horolog.client.wire.login import Login

T = TypeVar("T")

log = logging.getLogger(__name__)

PATIENCE_S = 2.0
"""How long one broker may take to accept a connection and to answer before any other is asked as well."""
DEFAULT_MAX_ANSWER_BYTES = 256 << 20
_ASKS_WITHOUT_MAKING = 4
"""The first version of Metadata that can ask for a topic by name without creating it."""


class Client:
    """Shared by any number of producers, consumers and admins; connects at the first request.

    `security` is a `Security`, or settings under the names of Kafka's clients.
    """

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        security: "Security | Mapping[str, str] | None" = None,
        client_id: str = "horolog",
        request_timeout_ms: int = 30_000,
        connect_timeout_ms: int = 10_000,
        retry: RetryPolicy | None = None,
        metadata_max_age_ms: int = 300_000,
        max_answer_bytes: int = DEFAULT_MAX_ANSWER_BYTES,
        clock: Clock | None = None,
        random: Callable[[], float] = random_module.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.addresses = parse_addresses(bootstrap)
        self.client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        self.retry_policy = retry or RetryPolicy()
        self.clock = clock or SystemClock()
        self.view = ClusterView()
        self.closed = False
        self.random = random
        self.sleep = sleep
        self._patience_s = patience_s
        self._silent: set[str] = set()
        login = None if security is None else _login(security)
        self.channels = Channels(client_id, connect_timeout_ms, request_timeout_ms, max_answer_bytes, login)
        self._finder = Finder(self.attempt, self.view, self.clock, metadata_max_age_ms)

    def __repr__(self) -> str:
        return f"<Client {self.client_id!r} of {','.join(f'{host}:{port}' for host, port in self.addresses)}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; requests in flight fail."""
        self.closed = True
        await self.channels.close()

    # Requests

    async def request(self, message: Request, **where: Any) -> Any:
        """The response to one request: finding the broker that `where` names (see `attempt`) is retried, the request is sent once.

        The caller checks error codes inside the response.
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
        without any of them, any broker. Requests that wait long take a `lane=` (a connection) of their own.
        """
        channel = await self._route(**where)
        return await self._send(channel, message, timeout_ms, at_least, at_most)

    async def attempt_at(
        self, node: Node, message: Request, *, lane: str = "", timeout_ms: int | None = None, **bounds: int
    ) -> Any:
        """One try at a broker found before."""
        return await self._send(await self.channel(node, lane), message, timeout_ms, **bounds)

    async def _send(
        self,
        channel: Channel,
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
        """The operation's result; retriable errors are retried with growing pauses until the policy gives up."""
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
        """Doubt the view of the cluster if the error gives reason to."""
        self._finder.learn_from(error)

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
    ) -> Channel:
        if self.closed:
            raise Closed("client")
        if leader_of is not None:
            return await self.channel(await self._finder.leader(leader_of), lane)
        if coordinator_of is not None:
            return await self.channel(await self._finder.coordinator(*coordinator_of), lane)
        if controller:
            return await self.channel(await self._finder.controller(), lane)
        if node_id is not None:
            return await self.channel(await self._finder.node(node_id), lane)
        return await self._any_channel(lane)

    async def _any_channel(self, lane: str) -> Channel:
        """Any broker that answers, connected ones first."""
        places = list(dict.fromkeys([*((node.host, node.port) for node in self.view.nodes.values()), *self.addresses]))
        start = int(self.random() * len(places)) % len(places)
        places = places[start:] + places[:start]
        places.sort(key=lambda place: not self.channels.is_open(lane, *place))
        attempts = {f"{host}:{port}": partial(self.channels.to, lane, host, port) for host, port in places}
        return await any_of(attempts, self._patience_s, self._warn_of_silence)

    def _warn_of_silence(self, broker: str) -> None:
        if broker not in self._silent:
            self._silent.add(broker)
            log.warning("broker %s does not answer; trying the others", broker)

    async def channel(self, node: Node, lane: str = "") -> Channel:
        """The connection to a broker, and its API versions."""
        return await self.channels.to(lane, node.host, node.port)

    # The view of the cluster

    async def metadata(self, topics: Iterable[str] | None = None, *, create: bool = False) -> ClusterView:
        """Ask for these topics, or for all, and return all that is known; `create` lets the broker create missing topics."""
        names = None if topics is None else list(topics)
        return await self.retry(lambda: self._finder.refresh(names, create=create))

    async def topic(self, name: str, *, create: bool = False) -> list[int]:
        """The partitions of a topic."""
        view = await self.retry(lambda: self._finder.topic(name, create=create))
        return view.topics[name].numbers

    async def withheld(self, name: str) -> KafkaError | None:
        """Why a list of all topics lacks a topic that may exist: asks for it by name, without creating it.

        None if there is no such topic.
        """
        if not (await self.versions()).serves(ApiKey.METADATA, _ASKS_WITHOUT_MAKING):
            return None
        known = (await self.metadata([name])).topics.get(name)
        if known is None or known.error_code in {ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION}:
            return None  # no topic can have such a name
        reason = f"topic {name!r}: {error_of(known.error_code).message}"
        return error_of(known.error_code, reason, topic=name)

    def partitions_now(self, name: str) -> list[int] | None:
        """The known partitions of a topic, without a request: None if one is needed.

        They may be stale: a sender looks up the leader, which refreshes them.
        """
        known = self.view.topics.get(name)
        return known.numbers if known is not None and not known.error_code else None

    async def leader(self, partition: TopicPartition) -> Node:
        """The broker that leads a partition."""
        return await self.retry(lambda: self.leader_once(partition))

    async def leader_once(self, partition: TopicPartition) -> Node:
        """The same without retries."""
        return await self._finder.leader(partition)

    async def coordinator(self, kind: str, key: str) -> Node:
        """The coordinator of a group or a transactional id; `kind` is "group" or "transaction"."""
        return await self.retry(lambda: self._finder.coordinator(kind, key))

    # Undecoded records

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


def _login(security: "Security | Mapping[str, str]") -> "Login | None":
    """None for an open listener, whose connections are then as quick as without `security`."""
    from horolog.client.security import Security
    from horolog.client.wire.login import Login

    wanted = security if isinstance(security, Security) else Security.of(security)
    return None if wanted.tls is None and wanted.sasl is None else Login(wanted)
