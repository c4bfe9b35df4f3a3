"""Holds back Produce requests to partitions that pass from one leader to the next, here or elsewhere, for as long as that takes.

Later requests of the same connection wait behind them, so the batches of a producer stay in their order. Then each is handled as if it had
just come.

They take no more than a share of the memory for requests: if that were full, the broker would read from no client. A request for which
there is no room is handled at once, behind those of its connection, and the partitions that pass refuse their records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from horolog.broker.handlers.context import close_over
from horolog.protocol.apis import ApiKey

if TYPE_CHECKING:
    from horolog.broker.cluster.cluster import Cluster
    from horolog.broker.handlers import HandlerFunction
    from horolog.broker.handlers.context import BrokerView, ClientConnection, RequestContext
    from horolog.broker.handlers.gate import Gate
    from horolog.broker.handlers.produce import ProduceRequest, TopicData
    from horolog.broker.on_record.cluster_file import Place


SHARE_OF_MEMORY: Final = 0.5
"""Of `queued.max.request.bytes`."""


class _Held(NamedTuple):
    """A request that is held back."""

    handle: HandlerFunction
    broker: BrokerView
    request: ProduceRequest
    context: RequestContext


class HeldProduce:
    """The requests of all connections that are held back; `look` is called when there may be fewer reasons."""

    def __init__(self, passing: Collection[Place], most_bytes: float) -> None:
        """`passing` has the partitions that pass; a collection that is False when there are none."""
        self._passing = passing
        self._most_bytes = most_bytes
        self._held_bytes = 0
        self._held: dict[ClientConnection, deque[_Held]] = {}
        self.has_held = False
        """Whether there was ever a request to hold back."""

    def __repr__(self) -> str:
        return f"<HeldProduce of {len(self._held)} connections, {self._held_bytes} bytes>"

    def gate(self, gate: Gate) -> Gate:
        """A gate that also holds back these requests."""

        def guard(key: ApiKey, handle: HandlerFunction) -> HandlerFunction:
            inner = gate(key, handle)
            return partial(self._handle, inner) if key is ApiKey.PRODUCE else inner

        return guard

    def look(self) -> None:
        for connection in list(self._held):
            self._pass_on(connection)

    def _handle(
        self, handle: HandlerFunction, broker: BrokerView, request: ProduceRequest, context: RequestContext
    ) -> object | None:
        if not (self._passing or self._held):
            return handle(broker, request, context)
        connection = context.connection
        if connection not in self._held and not self._waits(broker.cluster, request[3]):
            return handle(broker, request, context)
        if self._held_bytes + context.size_bytes > self._most_bytes:
            self._pass_on(connection, all_of_them=True)
            return None if connection.closing else handle(broker, request, context)
        self.has_held = True
        self._held_bytes += context.size_bytes
        held = _Held(handle, broker, request, context)
        self._held.setdefault(connection, deque()).append(held)
        context.on_abandoned = partial(self._drop, connection, held)
        return None

    def _pass_on(self, connection: ClientConnection, *, all_of_them: bool = False) -> None:
        """Handle the requests of a connection up to the first that waits on. More may come meanwhile, behind them."""
        queue = self._held.get(connection, deque())
        while queue and (all_of_them or not self._waits(queue[0].broker.cluster, queue[0].request[3])):
            if connection.closing:  # over one with acks=0 that was refused, perhaps some time ago
                self._forget(connection)
                return
            handle, broker, request, context = queue.popleft()
            self._held_bytes -= context.size_bytes
            context.on_abandoned = None
            try:
                response = handle(broker, request, context)
            except Exception as error:  # noqa: BLE001 - it is logged, and ends this connection alone
                close_over(connection, error)
                continue
            if response is not None:
                context.reply(response)
        if not queue:
            self._held.pop(connection, None)

    def _forget(self, connection: ClientConnection) -> None:
        """No request behind one that has ended its connection is handled."""
        for held in self._held.pop(connection, ()):
            self._held_bytes -= held.context.size_bytes
            held.context.on_abandoned = None

    def _drop(self, connection: ClientConnection, held: _Held) -> None:
        """The client is gone."""
        queue = self._held.get(connection, deque())
        if held in queue:
            queue.remove(held)
            self._held_bytes -= held.context.size_bytes
        if not queue:
            self._held.pop(connection, None)

    def _waits(self, cluster: Cluster, topics: Sequence[TopicData]) -> bool:
        for name, topic_id, sets in topics:
            topic = cluster.by_id.get(topic_id) or cluster.topics.get(name)
            if topic is not None and any((topic.id, index) in self._passing for index, _ in sets):
                return True
        return False
