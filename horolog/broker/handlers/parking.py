"""Requests about bytes of a log that are on their way here from a store: they wait, and are tried again when some are here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from horolog.broker.commit.waiting import Wait
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.log.partition import Partition

LONGEST_WAIT_MS = 15_000

Response = TypeVar("Response")

Attempt = Callable[[list[Partition]], Response]
"""Makes the response, and adds the partitions to the list whose bytes are missing: it has a retriable error for them."""


def wait(
    broker: BrokerView,
    context: RequestContext,
    missing: Iterable[Partition],
    attempt: Attempt[Response],
    max_wait_ms: int = LONGEST_WAIT_MS,
) -> bool:
    """Whether the request now waits for the missing partitions; False if too many requests wait already."""
    return _Parked(broker, context, attempt).wait(missing, max_wait_ms)


class _Parked:
    """A request that waits."""

    __slots__ = ("_attempt", "_broker", "_context", "_wait", "_watched")

    def __init__(self, broker: BrokerView, context: RequestContext, attempt: Attempt[Response]) -> None:
        self._broker = broker
        self._context = context
        self._attempt = attempt
        self._watched: dict[Partition, None] = {}
        self._wait = Wait(self._check, self._expire, self._leave)

    def __repr__(self) -> str:
        return f"<_Parked {self._context!r}, for {list(self._watched)}>"

    def wait(self, missing: Iterable[Partition], max_wait_ms: int) -> bool:
        waiting = self._broker.waiting
        if not waiting.has_room_for(self._wait):
            return False
        self._watch(missing)
        waiting.add(self._wait, max_wait_ms)
        self._context.on_abandoned = lambda: waiting.remove(self._wait)
        return True

    def _watch(self, missing: Iterable[Partition]) -> None:
        for partition in missing:
            if partition not in self._watched:
                self._watched[partition] = None
                self._broker.waiting.watch(partition, self)

    def changed(self) -> Iterable[Wait]:
        return (self._wait,)

    def _check(self) -> bool:
        missing: list[Partition] = []
        response = self._attempt(missing)
        if missing:
            self._watch(missing)
            return False
        self._context.reply(response)
        return True

    def _expire(self) -> None:
        self._context.reply(self._attempt([]))

    def _leave(self, _wait: Wait) -> None:
        for partition in self._watched:
            self._broker.waiting.unwatch(partition, self)
