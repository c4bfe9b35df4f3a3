"""Batches of offsets in one delivery state, as they are persisted, and how older and newer ones are combined (pure)."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from enum import IntEnum
from heapq import heappop, heappush
from itertools import chain
from typing import NamedTuple

NO_OFFSET = -1
"""The start offset that is not known yet, or that an update leaves as it was."""


class DeliveryState(IntEnum):
    """The numbers are Kafka's; acquired records are persisted as what they were before."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_complete(self) -> bool:
        """Whether no record in this state is delivered again."""
        return self >= DeliveryState.ACKNOWLEDGED


class StateBatch(NamedTuple):
    first_offset: int
    last_offset: int
    state: int
    delivery_count: int


class PackedBatches:
    """Batches as plain numbers: a state may have one for each record, and is seldom read. Each takes 32 bytes."""

    __slots__ = ("_numbers",)

    def __init__(self, batches: Iterable[StateBatch] = ()) -> None:
        self._numbers = array("q", chain.from_iterable(batches))

    def __repr__(self) -> str:
        return f"<PackedBatches {len(self)}>"

    def __len__(self) -> int:
        return len(self._numbers) // len(StateBatch._fields)

    def __iter__(self) -> Iterator[StateBatch]:
        numbers = iter(self._numbers)
        return map(StateBatch, numbers, numbers, numbers, numbers)

    def add(self, batches: Iterable[StateBatch]) -> None:
        self._numbers.extend(chain.from_iterable(batches))


def combine(batches: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """Batches that do not overlap, from the start offset on: where some did, the one that is further in its life has won.

    A record never goes back: its delivery count only grows, and the state of a delivery only to a later one.
    """
    return list(_merged(_swept(sorted(_from(batches, start_offset)))))


def _from(batches: Iterable[StateBatch], start_offset: int) -> Iterator[StateBatch]:
    for batch in batches:
        if batch.first_offset >= start_offset:
            yield batch
        elif batch.last_offset >= start_offset:
            yield batch._replace(first_offset=start_offset)


def _swept(ordered: list[StateBatch]) -> Iterator[StateBatch]:
    """One batch for each stretch between the ends of others."""
    heap: list[tuple[int, int, int]] = []  # the one furthest in its life is on top
    next_up = 0
    offset = ordered[0].first_offset if ordered else 0
    while heap or next_up < len(ordered):
        if not heap:
            offset = max(offset, ordered[next_up].first_offset)
        while next_up < len(ordered) and ordered[next_up].first_offset <= offset:
            _, last_offset, state, delivery_count = ordered[next_up]
            heappush(heap, (-delivery_count, -state, last_offset))
            next_up += 1
        delivery_count, state, last_offset = heap[0]
        if last_offset < offset:
            heappop(heap)
            continue
        if next_up < len(ordered):
            last_offset = min(last_offset, ordered[next_up].first_offset - 1)
        yield StateBatch(offset, last_offset, -state, -delivery_count)
        offset = last_offset + 1


def _merged(batches: Iterable[StateBatch]) -> Iterator[StateBatch]:
    """Neighbours that say the same are one batch."""
    last: StateBatch | None = None
    for batch in batches:
        if last is None:
            last = batch
        elif last.last_offset + 1 == batch.first_offset and last[2:] == batch[2:]:
            last = last._replace(last_offset=batch.last_offset)
        else:
            yield last
            last = batch
    if last is not None:
        yield last


def complete_count(batches: Iterable[StateBatch]) -> int:
    """The number of offsets whose delivery is complete."""
    return sum(one.last_offset - one.first_offset + 1 for one in batches if one.state >= DeliveryState.ACKNOWLEDGED)
