"""Requests that wait for new data: each waits on its partitions once, until one of them changes or its time is up.

Their memory is bounded by `horolog.fetch.waiting.max.bytes`; when they hold more, the next ones are answered at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from horolog.broker.log.partition import Partition

WAIT_BYTES = 2_000
PLACE_BYTES = 500
"""The memory, roughly, of a waiting request and of each partition that it asks about."""


class Wait:
    """One waiting request: looked at again through `check`, which says whether it is done."""

    __slots__ = ("check", "expire", "partitions", "size_bytes", "timer")

    def __init__(
        self,
        partitions: Sequence[Partition],
        check: Callable[[], bool],
        expire: Callable[[], None],
        place_count: int = 0,
    ) -> None:
        """`place_count` partitions were asked about, be it that some of them do not exist."""
        self.size_bytes = WAIT_BYTES + place_count * PLACE_BYTES
        self.partitions = partitions
        self.check = check
        self.expire = expire
        self.timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Wait on {len(self.partitions)} partitions{'' if self.timer is None else ', until a timer is due'}>"


class Waiting:
    """The requests that wait, by partition."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.held_bytes = 0
        self._waits: dict[Partition, dict[Wait, None]] = {}

    def __repr__(self) -> str:
        return f"<Waiting: {len(self)} requests on {len(self._waits)} partitions, {self.held_bytes} bytes>"

    def __len__(self) -> int:
        return len({wait for waits in self._waits.values() for wait in waits})

    def add(self, wait: Wait, max_wait_ms: int) -> None:
        self.held_bytes += wait.size_bytes
        for partition in wait.partitions:
            self._waits.setdefault(partition, {})[wait] = None
        wait.timer = self._loop.call_later(max_wait_ms / 1000, self._expired, wait)

    def remove(self, wait: Wait) -> None:
        if wait.timer is not None:
            wait.timer.cancel()
            wait.timer = None
            self.held_bytes -= wait.size_bytes
        for partition in wait.partitions:
            waits = self._waits.get(partition)
            if waits is not None:
                waits.pop(wait, None)
                if not waits:
                    del self._waits[partition]

    def changed(self, partitions: Iterable[Partition]) -> None:
        """Partitions have new data, or changed otherwise (deleted, cut): look at their waits, each once."""
        if not self._waits:
            return
        touched: dict[Wait, None] = {}
        for partition in partitions:
            touched.update(self._waits.get(partition, {}))
        for wait in touched:
            if wait.timer is not None and wait.check():
                self.remove(wait)

    def expire_all(self) -> None:
        """Answer whoever waits with what there is."""
        for wait in {wait: None for waits in self._waits.values() for wait in waits}:
            if wait.timer is not None:
                self._expired(wait)

    def _expired(self, wait: Wait) -> None:
        self.remove(wait)
        wait.expire()
