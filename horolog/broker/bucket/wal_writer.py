"""Ships batches to the WAL of this broker: numbers in order, a few at a time, and safe only when all numbers before are there.

A producer may be answered for number n once `safe_end` is above n. So whatever was acknowledged lies in a number below every fence of
the WAL: only the store decides whether a number is data or a fence. A broker that finds a fence is *fenced*: a fencer found data under
all numbers before, so these are safe, nothing else ever is, and nothing more is shipped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from horolog.broker.base.answers import run
from horolog.broker.bucket.fence import Fence
from horolog.broker.bucket.names import Wal, key
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.wal_numbers import identify
from horolog.broker.bucket.wal_object import Identity, NewRun, encode

log = logging.getLogger(__name__)

MAX_UNSAFE = 4
"""So many numbers are under way at a time; a fencer looks no further behind the last safe one."""


MOST_KEPT_BYTES = 4 << 20
"""Of small objects, which are merged soon: without them each would be read again."""


class WalEvents(Protocol):
    """The events of a WAL that its broker handles."""

    def safe(self, upto: int) -> None:
        """All numbers below are in the store."""

    def fenced(self, fence: Fence | None) -> None:
        """The WAL has ended; without a fence another process writes it under the same name."""


class WalWriter:
    """The WAL of one incarnation."""

    def __init__(self, wal: Wal, store: StoreAccess, new_nonce: Callable[[], bytes], events: WalEvents) -> None:
        self.wal = wal
        self._store = store
        self._new_nonce = new_nonce
        self._events = events
        self._made: set[int] = set()
        self._sizes: dict[int, int] = {}
        self.next_number = 0
        self.safe_end = 0
        self.safe_bytes = 0
        """Of all objects whose numbers are safe."""
        self.is_fenced = False
        self._kept: dict[int, bytes] = {}
        self._kept_bytes = 0

    def __repr__(self) -> str:
        state = "fenced" if self.is_fenced else f"safe up to {self.safe_end} of {self.next_number}"
        return f"<WalWriter {self.wal}, {state}>"

    @property
    def can_ship(self) -> bool:
        return not self.is_fenced and self.next_number - self.safe_end < MAX_UNSAFE

    @property
    def unsafe_bytes(self) -> int:
        """Bytes that no producer is answered for yet."""
        return sum(self._sizes.values())

    def ship(self, runs: Iterable[NewRun]) -> int:
        """Create the next number with these runs, which carry it; returns the number."""
        assert self.can_ship, self
        number = self.next_number
        data = encode(Identity(self.wal, number, number + 1, self._new_nonce()), runs)
        self.next_number += 1
        self._sizes[number] = len(data)
        if self._kept_bytes + len(data) <= MOST_KEPT_BYTES:
            self._kept[number] = data
            self._kept_bytes += len(data)
        run(self._create(number, data))
        return number

    def kept(self, number: int) -> bytes | None:
        """The object of a number, if it is still in memory."""
        return self._kept.get(number)

    def forget(self, upto: int) -> None:
        """The objects of the numbers below are not asked for any more."""
        for number in [one for one in self._kept if one < upto]:
            self._kept_bytes -= len(self._kept.pop(number))

    async def _create(self, number: int, data: bytes) -> None:
        other = await self._store.create(key(self.wal.folder, number), data)
        if self.is_fenced:
            return
        if other is None:
            self._learn_made(number)
        else:
            self._learn_taken(number, other)

    def _learn_made(self, number: int) -> None:
        self._made.add(number)
        upto = self.safe_end
        while upto in self._made:
            upto += 1
        self._learn_safe(upto)

    def _learn_safe(self, upto: int) -> None:
        """The store has all numbers below this one."""
        if upto == self.safe_end:
            return
        for number in range(self.safe_end, upto):
            self._made.discard(number)
            self.safe_bytes += self._sizes.pop(number)
        self.safe_end = upto
        self._events.safe(upto)

    def _learn_taken(self, number: int, other: bytes) -> None:
        fence: Fence | None = None
        try:
            found = identify(other, self.wal, number)
            fence = found if isinstance(found, Fence) else None
        except FormatError as error:
            log.error("WAL %s: object %s cannot be read: %s", self.wal, number, error)
        self.is_fenced = True
        if fence is not None:
            self._learn_safe(number)
        self._made.clear()
        self._sizes.clear()
        self._events.fenced(fence)
