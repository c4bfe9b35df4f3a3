"""Requests that wait, for new data or for something else, and the partitions watched for them: a change of a partition notifies its
watches alone.

Their memory is bounded by `horolog.fetch.waiting.max.bytes`: one for which there is no room is answered at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from horolog.broker.log.partition import Partition

WAIT_BYTES = 2_000
PLACE_BYTES = 500
"""The memory, roughly, of a waiting request and of each partition that it asks about."""


class Wait:
    """One waiting request: looked at again through `check`, which says whether it is done."""

    __slots__ = ("check", "expire", "on_end", "place_count", "size_bytes", "timer")

    def __init__(
        self,
        check: Callable[[], bool],
        expire: Callable[[], None],
        on_end: Callable[[Wait], None],
        place_count: int = 0,
    ) -> None:
        """The request names `place_count` partitions, some of which may not exist. `on_end` is called once, however it ends."""
        self.size_bytes = WAIT_BYTES + place_count * PLACE_BYTES
        self.place_count = place_count
        self.check = check
        self.expire = expire
        self.on_end = on_end
        self.timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Wait on {self.place_count} partitions{'' if self.timer is None else ', until a timer is due'}>"


class Watch(Protocol):
    """Watches one partition."""

    def changed(self) -> Iterable[Wait]:
        """The partition has changed; returns the requests that wait for that."""
        ...


class WaitingRequests:
    """The requests that wait, and the watches on each partition."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most_bytes: Callable[[], int]) -> None:
        self._loop = loop
        self._most_bytes = most_bytes
        self.held_bytes = 0
        self._waits: dict[Wait, None] = {}
        self._watches: dict[Partition, dict[Watch, None]] = {}

    def __repr__(self) -> str:
        return (
            f"<Waiting: {len(self)} requests of {self.held_bytes} bytes, {len(self._watches)} partitions are watched>"
        )

    def __len__(self) -> int:
        return len(self._waits)

    def has_room_for(self, wait: Wait) -> bool:
        return self.held_bytes + wait.size_bytes <= self._most_bytes()

    def add(self, wait: Wait, max_wait_ms: int) -> None:
        self.held_bytes += wait.size_bytes
        self._waits[wait] = None
        wait.timer = self._loop.call_later(max_wait_ms / 1000, self._expired, wait)

    def remove(self, wait: Wait) -> None:
        if wait.timer is not None:
            wait.timer.cancel()
            wait.timer = None
            self.held_bytes -= wait.size_bytes
            del self._waits[wait]
            wait.on_end(wait)

    def watch(self, partition: Partition, watch: Watch) -> None:
        self._watches.setdefault(partition, {})[watch] = None

    def unwatch(self, partition: Partition, watch: Watch) -> None:
        watches = self._watches.get(partition)
        if watches is not None:
            watches.pop(watch, None)
            if not watches:
                del self._watches[partition]

    def changed(self, partitions: Iterable[Partition]) -> None:
        """Partitions have new data, or changed otherwise (deleted, cut): notify their watches, and check each waiting request once."""
        if not self._watches:
            return
        touched: dict[Wait, None] = {}
        for partition in partitions:
            for watch in self._watches.get(partition, ()):
                touched.update(dict.fromkeys(watch.changed()))
        for wait in touched:
            if wait.timer is not None and wait.check():
                self.remove(wait)

    def expire_all(self) -> None:
        """Answer every waiting request with what there is."""
        for wait in list(self._waits):
            if wait.timer is not None:
                self._expired(wait)

    def _expired(self, wait: Wait) -> None:
        self.remove(wait)
        wait.expire()
