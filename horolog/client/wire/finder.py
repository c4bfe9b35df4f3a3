"""Finds the broker to ask: a partition's leader, the controller, a coordinator. Results are kept until an error casts doubt on them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from horolog.base.clock import Clock
from horolog.client.values.errors import ConnectionFailed, KafkaError, check, first
from horolog.client.values.types import TopicPartition
from horolog.client.wire.cluster_view import ClusterView, Node, TopicView
from horolog.client.wire.retry import STALE_COORDINATOR, STALE_LEADERS
from horolog.client.wire.versions import Request, Versioned
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import FindCoordinatorRequest
from horolog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from horolog.protocol.wire import Message

COORDINATOR_KINDS = {"group": 0, "transaction": 1}
_ASKED = {"group": "group", "transaction": "transactional_id"}
_BATCHED_COORDINATORS_FROM = 4  # the first version of FindCoordinator with several keys
_NULL_MEANS_ALL_FROM = 1  # the first version of Metadata in which an empty list does not mean all


class Finder:
    """One client's finder. `ask` sends a request to any broker, once; nothing here retries."""

    def __init__(
        self, ask: Callable[[Request], Awaitable[Any]], view: ClusterView, clock: Clock, max_age_ms: int
    ) -> None:
        self._ask = ask
        self._view = view
        self._clock = clock
        self._max_age_ms = max_age_ms
        self._coordinators: dict[tuple[str, str], Node] = {}
        self._leaders_stale = True
        self._refreshing = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<Finder in {self._view!r}>"

    def learn_from(self, error: KafkaError) -> None:
        """Doubt the view of the cluster if the error gives reason to."""
        if error.code in STALE_LEADERS:
            self._leaders_stale = True
        if error.code in STALE_COORDINATOR:
            self._coordinators.clear()

    async def refresh(self, topics: list[str] | None, *, create: bool = False) -> ClusterView:
        """Ask for these topics, or for all; `create` lets the broker create missing topics."""

        def build(version: int) -> Message:
            if topics is None:
                return MetadataRequest(topics=None if version >= _NULL_MEANS_ALL_FROM else [])
            return MetadataRequest(
                topics=[MetadataRequestTopic(name=name) for name in topics],
                allow_auto_topic_creation=create or version < API[ApiKey.METADATA].min_version + 4,
            )

        response = await self._ask(Versioned(ApiKey.METADATA, build))
        check(response.error_code)
        if topics is None:
            self._view.topics.clear()
        self._view.update(response, self._clock.monotonic())
        return self._view

    async def topic(self, name: str, *, create: bool) -> ClusterView:
        """The view, with this topic in it."""
        if not self._is_fresh(name):
            await self._refresh_stale(name, create=create)
        self._view.leader(TopicPartition(name, 0))
        return self._view

    async def leader(self, partition: TopicPartition) -> Node:
        """The broker that leads a partition."""
        if not self._is_fresh(partition.topic):
            await self._refresh_stale(partition.topic)
        return self._view.leader(partition)

    def _is_fresh(self, topic: str) -> bool:
        known = self._view.topics.get(topic)
        return known is not None and not self._leaders_stale and self._is_young(known)

    def _is_young(self, known: TopicView) -> bool:
        return (self._clock.monotonic() - known.updated_at) * 1000 < self._max_age_ms

    async def _refresh_stale(self, topic: str, *, create: bool = False) -> None:
        """Ask again for all topics in use; concurrent callers share the response."""
        async with self._refreshing:
            if not self._is_fresh(topic):
                await self.refresh(list({*self._view.topics, topic}), create=create)
                self._leaders_stale = False

    async def controller(self) -> Node:
        if self._view.controller_id not in self._view.nodes or self._leaders_stale:
            await self.refresh([])
        if self._view.controller_id < 0:  # the oldest brokers do not say
            return first(list(self._view.nodes.values()), "brokers")
        return self._view.controller()

    async def node(self, node_id: int) -> Node:
        if node_id not in self._view.nodes:
            await self.refresh([])
        node = self._view.nodes.get(node_id)
        if node is None:
            raise ConnectionFailed(f"there is no broker {node_id} in the cluster")
        return node

    async def coordinator(self, kind: str, key: str) -> Node:
        """The coordinator of a group or a transactional id; `kind` is "group" or "transaction"."""
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

        response = await self._ask(Versioned(ApiKey.FIND_COORDINATOR, build))
        answer = response.coordinators[0] if response.coordinators else response
        check(answer.error_code, answer.error_message, **{_ASKED[kind]: key})
        if not answer.host:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return Node(answer.node_id, answer.host, answer.port)
