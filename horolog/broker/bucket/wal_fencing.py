"""Ends the WAL of another broker by an object under its first free number, and finds out whether that number was really free.

Numbers are removed only below a mark. So the fencer reads the newest mark again after its fence is made: if the mark is above the fence by
then, the number had been in use and was removed, and the fence is void. A fence that holds says nothing yet: the WAL has ended once an
entry of the journal names the number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from horolog.broker.bucket.fence import Fence
from horolog.broker.bucket.mark import WalMark
from horolog.broker.bucket.mark import decode as decode_mark
from horolog.broker.bucket.names import Wal, key, number_of
from horolog.broker.bucket.parallel import in_parallel
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.wal_numbers import identify
from horolog.broker.bucket.wal_object import HEAD_SIZE, is_object
from horolog.broker.bucket.wal_writer import MAX_UNSAFE

PROBES_AT_ONCE = 32
STRIDE = 16
"""Every so many numbers are asked for first: with `PROBES_AT_ONCE` they reach as far as a broker writes until it merges."""


class FenceGivenUp(Exception):
    """The reason for the fence has ended before one was made."""


async def newest_mark(store: StoreAccess, wal: Wal) -> WalMark | None:
    """None if nothing of the WAL was removed; raises FormatError."""
    while True:
        numbers = [number_of(one.key) for one in await store.list(wal.marks)]
        number = max((one for one in numbers if one is not None), default=None)
        if number is None:
            return None
        data = await store.read(key(wal.marks, number))
        if data is not None:
            return decode_mark(data)


async def fence(
    store: StoreAccess, wal: Wal, by: int, nonce: bytes, is_wanted: Callable[[], bool] = lambda: True
) -> int:
    """The number that the WAL ends before; raises FormatError for objects that do not belong there.

    A writer that lives may be ahead for long. Raises FenceGivenUp once the fence is not wanted any more, and was not made.
    """
    while True:
        mark = await newest_mark(store, wal)
        first = await first_without_data(store, wal, 0 if mark is None else mark.upto)
        number = await _fenced_from(store, Fence(wal, first, by, nonce), is_wanted)
        if not await is_void(store, wal, number):
            return number


async def is_void(store: StoreAccess, wal: Wal, number: int) -> bool:
    """Whether a fence lies under a number that was in use before."""
    mark = await newest_mark(store, wal)
    return mark is not None and mark.upto > number


async def first_without_data(store: StoreAccess, wal: Wal, start: int) -> int:
    """The first number from one on under which a fence lies, or nothing. A writer ships only some numbers behind it.

    Clients wait, so few numbers are asked for; a list would have all those that stay for a restore.
    """
    asked = range(start, start + PROBES_AT_ONCE * STRIDE, STRIDE)
    while (far := await _first(store, wal, asked, _is_missing)) is None:
        asked = range(asked.stop, asked.stop + PROBES_AT_ONCE * STRIDE, STRIDE)
    near = await _first(store, wal, range(max(start, far - STRIDE - MAX_UNSAFE + 1), far), _is_no_data)
    return far if near is None else near


async def _first(
    store: StoreAccess, wal: Wal, numbers: Sequence[int], is_it: Callable[[bytes | None], bool]
) -> int | None:
    """The first of these numbers whose head is so."""
    tasks = [partial(store.read_range, key(wal.folder, number), 0, HEAD_SIZE) for number in numbers]
    heads = await in_parallel(tasks, PROBES_AT_ONCE)
    return next((number for number, head in zip(numbers, heads, strict=True) if is_it(head)), None)


def _is_missing(head: bytes | None) -> bool:
    return head is None


def _is_no_data(head: bytes | None) -> bool:
    return head is None or not is_object(head)


async def _fenced_from(store: StoreAccess, first: Fence, is_wanted: Callable[[], bool]) -> int:
    """The first number from that of a fence on under which it, or that of another broker, lies. Raises FenceGivenUp."""
    number = first.number
    while is_wanted():
        if await _is_fence(store, replace(first, number=number)):
            return number
        number += 1
    raise FenceGivenUp(f"{first.wal} continues at number {number}")


async def _is_fence(store: StoreAccess, wanted: Fence) -> bool:
    """Create a fence. That of another broker does as well; data means one number further."""
    other = await store.create(key(wanted.wal.folder, wanted.number), wanted.encode())
    return other is None or isinstance(identify(other, wanted.wal, wanted.number), Fence)
