"""Runs of consecutive offsets that share one state: what a share partition has in flight, in order and without holes (pure).

A record on its own costs no object: a run is divided only where a part of it changes, and parts that are alike again are joined. Every
run remembers the batch that it was acquired in, which is how records are handed out again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from horolog.broker.share.state_batches import DeliveryState

NO_MEMBER = ""
NO_DEADLINE = 0.0
MOST_SHARED = 10_000
"""The largest distance from a batch's start that runs have one object for: Kafka allows no more records in flight in a partition."""

_last_of = attrgetter("last")
_distances: list[int] = []


def _shared(distance: int) -> int:
    """The same number, and one object for all that are equal: an integer of its own would take 32 bytes, and there may be many."""
    if not 0 <= distance <= MOST_SHARED:
        return distance
    while len(_distances) <= distance:
        _distances.append(len(_distances))
    return _distances[distance]


class AcquiredBatch(NamedTuple):
    """The offsets that were acquired together when they were first read."""

    first: int
    last: int


class Before(NamedTuple):
    """A run as it was before a change that is being written."""

    state: DeliveryState
    member: str


class OffsetRun:
    """`before` is set while a change of the run is written: nothing else happens to it then.

    It keeps the distances of its ends from the start of its batch.
    """

    __slots__ = ("_first", "_last", "batch", "before", "count", "deadline", "member", "state")

    def __init__(
        self,
        first: int,
        last: int,
        state: DeliveryState,
        count: int,
        batch: AcquiredBatch,
        *,
        member: str = NO_MEMBER,
        deadline: float = NO_DEADLINE,
        before: Before | None = None,
    ) -> None:
        self.state = state
        self.count = count
        self.batch = batch
        self.first = first
        self.last = last
        self.member = member
        self.deadline = deadline
        self.before = before

    def __repr__(self) -> str:
        owner = f" of {self.member} until {self.deadline}" if self.member else ""
        return f"<OffsetRun {self.first}-{self.last} {self.state.name} {self.count}{owner}{', in change' if self.before else ''}>"

    @property
    def first(self) -> int:
        return self.batch.first + self._first

    @first.setter
    def first(self, offset: int) -> None:
        self._first = _shared(offset - self.batch.first)

    @property
    def last(self) -> int:
        return self.batch.first + self._last

    @last.setter
    def last(self, offset: int) -> None:
        self._last = _shared(offset - self.batch.first)

    @property
    def size(self) -> int:
        return self._last - self._first + 1

    def move_to(self, batch: AcquiredBatch) -> None:
        """Belong to another batch, with the same offsets."""
        first, last = self.first, self.last
        self.batch = batch
        self.first, self.last = first, last

    @property
    def is_available(self) -> bool:
        return self.state is DeliveryState.AVAILABLE and self.before is None

    @property
    def is_acquired(self) -> bool:
        return self.state is DeliveryState.ACQUIRED and self.before is None

    @property
    def is_settled(self) -> bool:
        """Whether its delivery is complete, and that is written."""
        return self.before is None and self.state.is_complete

    def tail(self, first: int) -> OffsetRun:
        """Its part from an offset on."""
        made = OffsetRun(first, self.last, self.state, self.count, self.batch, member=self.member)
        made.deadline, made.before = self.deadline, self.before
        return made

    def end_before(self, offset: int) -> None:
        """Lose the part from an offset on."""
        self.last = offset - 1

    def is_like(self, other: OffsetRun) -> bool:
        """Runs in change are not: each may be part of a change of its own."""
        return (
            self.before is None
            and other.before is None
            and self.state is other.state
            and self.count == other.count
            and self.batch == other.batch
            and self.member == other.member
            and self.deadline == other.deadline
        )


class OffsetRuns:
    """All runs of a share partition, by offset."""

    __slots__ = ("_runs",)

    def __init__(self) -> None:
        self._runs: list[OffsetRun] = []

    def __repr__(self) -> str:
        return f"<OffsetRuns {self._runs}>"

    def __bool__(self) -> bool:
        return bool(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def all(self) -> Sequence[OffsetRun]:
        return self._runs

    def append(self, run: OffsetRun) -> None:
        self._runs.append(run)

    def place_of(self, offset: int) -> int:
        """The index of the run with an offset, or of the first one beyond it."""
        return bisect_left(self._runs, offset, key=_last_of)

    def between(self, first: int, last: int) -> list[OffsetRun]:
        """The runs that have any of these offsets."""
        found = []
        for index in range(self.place_of(first), len(self._runs)):
            run = self._runs[index]
            if run.first > last:
                break
            found.append(run)
        return found

    def divide(self, points: Sequence[int]) -> None:
        """Have a run begin at each of these offsets, which ascend. All that changes lies between the first and the last of them."""
        if not points or not self._runs:
            return
        start = end = self.place_of(points[0])
        parts: list[OffsetRun] = []
        wanted = iter(points)
        point: int | None = next(wanted)
        while point is not None and end < len(self._runs):
            run = self._runs[end]
            end += 1
            parts.append(run)
            while point is not None and point <= parts[-1].last:
                if point > parts[-1].first:
                    parts.append(parts[-1].tail(point))
                    parts[-2].end_before(point)
                point = next(wanted, None)
        self._runs[start:end] = parts

    def isolate(self, first: int, last: int) -> list[OffsetRun]:
        """Exactly the runs of these offsets, divided from what lies beside them."""
        self.divide((first, last + 1))
        return self.between(first, last)

    def join(self, first: int, last: int) -> None:
        """Join neighbours that are alike, from one before the first offset to one after the last."""
        start = max(self.place_of(first) - 1, 0)
        end = min(self.place_of(last) + 2, len(self._runs))
        joined: list[OffsetRun] = []
        for run in self._runs[start:end]:
            if joined and joined[-1].is_like(run):
                joined[-1].last = run.last
            else:
                joined.append(run)
        self._runs[start:end] = joined

    def drop_settled(self) -> int:
        """Drop the runs in front that are settled; returns the number of their offsets."""
        dropped = count = 0
        while count < len(self._runs) and self._runs[count].is_settled:
            dropped += self._runs[count].size
            count += 1
        del self._runs[:count]
        return dropped

    def drop_before(self, offset: int) -> list[OffsetRun]:
        """Drop everything before an offset, whatever its state."""
        self.divide((offset,))
        count = self.place_of(offset)
        dropped = self._runs[:count]
        del self._runs[:count]
        return dropped
