"""Which of the records that were read a member acquires (pure).

- First come records that were in flight already and are available again, in the batches in which they were first acquired; then new
  ones, in whole batches of the log. The limit of records may be exceeded to complete a batch, unless the member wants it strictly.
- Records that were delivered often come in small portions: half of a batch, a quarter and so on from half of the allowed deliveries
  on, and each on its own for the last time. So one record that no member can deal with does not take others of its batch along.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from horolog.broker.share.runs import AcquiredBatch, OffsetRun
from horolog.broker.share.state_batches import DeliveryState
from horolog.broker.share.terms import Acquired, Fetched, Limits, Wish

if TYPE_CHECKING:
    from horolog.broker.share.partition import SharePartition

FEWEST_DELIVERIES_BEFORE_PORTIONS: Final = 2

_batch_of = attrgetter("batch")


def portions_from(limits: Limits) -> int:
    """The delivery count from which on a batch is handed out in portions."""
    return max(FEWEST_DELIVERIES_BEFORE_PORTIONS, (limits.deliveries + 1) // 2)


class Acquiring:
    """One acquisition by one member."""

    __slots__ = ("_batches", "_deadline", "_found", "_left", "_limits", "_member", "_partition", "_wish")

    def __init__(self, partition: SharePartition, member: str, wish: Wish, limits: Limits, deadline: float) -> None:
        self._partition = partition
        self._member = member
        self._wish = wish
        self._limits = limits
        self._deadline = deadline
        self._left = wish.max_records
        self._found: list[Acquired] = []
        self._batches: Sequence[tuple[int, int]] = ()

    def __repr__(self) -> str:
        return f"<Acquiring for {self._member}: {len(self._found)} found, {self._left} left>"

    def acquire(self, fetched: Fetched) -> list[Acquired]:
        partition = self._partition
        self._batches = fetched.batches
        if not fetched.batches or fetched.batches[-1][1] < partition.start:
            return []
        last = self._bound(fetched.offset, fetched.batches[-1][1])
        if self._left <= 0:
            return []
        first = fetched.batches[0][0]
        if fetched.offset < first:  # compaction has left nothing there
            partition.archive(fetched.offset, first - 1)
        if self._acquire_again(max(first, partition.start), last) and self._left > 0 and last >= partition.end:
            self._acquire_new(max(first, partition.start, partition.end), last)
        return self._without(fetched.aborted)

    def _bound(self, offset: int, last: int) -> int:
        """The last offset that may be acquired: with all locks in use, only records in flight may be acquired again."""
        partition = self._partition
        room = self._limits.locks - partition.in_flight
        if room > 0:
            self._left = min(self._left, room)
            return last
        self._left = min(self._left, partition.end - offset)
        return min(last, partition.end - 1)

    # -- what was in flight already

    def _acquire_again(self, first: int, last: int) -> bool:
        """Returns whether new records may be acquired beside them."""
        runs = self._partition.runs.between(first, last)
        for batch, group in groupby(runs, _batch_of):
            if self._left <= 0:
                return False
            available = [run for run in group if run.is_available]
            counts = [run.count for run in available]
            comes_in_portions = bool(counts) and max(counts) >= portions_from(self._limits)
            if comes_in_portions and self._found:
                return False
            if counts and not max(counts):
                self._take_as_new(available, first, last)
            elif comes_in_portions or self._wish.is_strict:
                self._take_portion(available, batch, first, last)
            else:
                self._take_all(available, first, last)
            if comes_in_portions:
                return False
        return True

    def _take_as_new(self, available: Sequence[OffsetRun], first: int, last: int) -> None:
        """Records without a persisted delivery: they have no batches yet."""
        for run in available:
            begin, end = max(run.first, first), min(run.last, last)
            if self._left <= 0:
                return
            for batch in self._cut(begin, min(end, self._last_new(begin, end))):
                for one in self._partition.runs.isolate(*batch):
                    one.move_to(batch)
                self._take(*batch)

    def _take_all(self, available: Sequence[OffsetRun], first: int, last: int) -> None:
        for run in available:
            self._take(max(run.first, first), min(run.last, last))

    def _take_portion(self, available: Sequence[OffsetRun], batch: AcquiredBatch, first: int, last: int) -> None:
        most = self._left if self._wish.is_strict else None
        limits, taken = self._limits, 0
        for run in available:
            is_last_time = limits.deliveries > FEWEST_DELIVERIES_BEFORE_PORTIONS and run.count == limits.deliveries - 1
            if is_last_time and taken:
                return
            if run.count >= portions_from(limits):
                portion = max(1, (batch.last - batch.first + 1) >> (run.count - portions_from(limits) + 1))
                most = portion if most is None else min(most, portion)
            begin, end = max(run.first, first), min(run.last, last)
            if is_last_time:
                end = begin
            elif most is not None:
                end = min(end, begin + most - taken - 1)
            self._take(begin, end)
            taken += end - begin + 1
            if is_last_time or (most is not None and taken >= most):
                return

    def _take(self, first: int, last: int) -> None:
        for run in self._partition.runs.isolate(first, last):
            run.state = DeliveryState.ACQUIRED
            run.count += 1
            run.member = self._member
            run.deadline = self._deadline
            self._note(run.first, run.last, run.count)

    def _note(self, first: int, last: int, count: int) -> None:
        self._left -= last - first + 1
        self._found.append(Acquired(first, last, count))

    # -- new records

    def _acquire_new(self, first: int, last: int) -> None:
        partition = self._partition
        partition.fill(first, DeliveryState.ARCHIVED)  # the log has nothing there
        for batch in self._cut(first, self._last_new(first, last)):
            partition.add(batch.first, batch.last, batch, self._member, self._deadline)
            self._note(batch.first, batch.last, 1)

    def _last_new(self, first: int, last: int) -> int:
        """The last of new records: within the limit, or with the rest of a batch of the log."""
        if last - first + 1 <= self._left:
            return last
        last = first + self._left - 1
        return last if self._wish.is_strict else next(end for _, end in self._batches if end >= last)

    def _cut(self, first: int, last: int) -> Iterator[AcquiredBatch]:
        """Pieces of about the size that was asked for, each of whole batches of the log."""
        begin, size = first, max(self._wish.batch_size, 1)
        for base, _ in self._batches if not self._wish.is_strict else ():
            if base > last:
                break
            if base - begin >= size:
                yield AcquiredBatch(begin, base - 1)
                begin = base
        yield AcquiredBatch(begin, last)

    # -- aborted transactions

    def _without(self, aborted: Sequence[tuple[int, int]]) -> list[Acquired]:
        """Without records of aborted transactions, which are archived instead."""
        found = self._found
        for first, last in aborted:
            for one in found:
                self._partition.archive(max(one.first, first), min(one.last, last), self._member)
            found = [rest for one in found for rest in _rests(one, first, last)]
        return found


def _rests(one: Acquired, first: int, last: int) -> Iterator[Acquired]:
    """The parts of acquired records outside of some offsets."""
    if one.last < first or one.first > last:
        yield one
        return
    if one.first < first:
        yield one._replace(last=first - 1)
    if one.last > last:
        yield one._replace(first=last + 1)
