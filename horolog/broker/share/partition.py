"""A partition as one share group reads it: a machine without a clock, a log or a store (pure).

    offset   ... start ............................. end ...
             settled | available, acquired, settled | not read yet

- Everything between start and end is in flight. The start moves on when the records in front are settled; the end when new ones are
  acquired.
- An acknowledgement is a `StateChange`: it holds at once for others, and for good once the caller has `written` it. If it cannot be written
  the caller takes it back with `failed`.
- A lock that expires frees its records at once: the state that is written then has their delivery counts for a restarted broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from horolog.broker.share.acknowledging import AlikeOffsets, segments
from horolog.broker.share.acquiring import Acquiring
from horolog.broker.share.runs import NO_DEADLINE, NO_MEMBER, AcquiredBatch, Before, OffsetRun, OffsetRuns
from horolog.broker.share.state_batches import DeliveryState, StateBatch
from horolog.broker.share.terms import (
    Acknowledgement,
    AcknowledgeType,
    Acquired,
    Fetched,
    Limits,
    Refused,
    StateChange,
    Wish,
)

BECOMES = {
    AcknowledgeType.GAP: DeliveryState.ARCHIVED,
    AcknowledgeType.ACCEPT: DeliveryState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: DeliveryState.AVAILABLE,
    AcknowledgeType.REJECT: DeliveryState.ARCHIVED,
}


class SharePartition:
    """`start` is the first offset that is not settled, `end` the first that no member has acquired yet."""

    __slots__ = ("_available_from", "_locks", "complete_count", "end", "runs", "start")

    def __init__(self, start: int, batches: Iterable[StateBatch] = ()) -> None:
        """As it was persisted. Offsets between the batches were acquired when that was written: they are available again."""
        self.start = self.end = self._available_from = start
        self.complete_count = 0
        """How many records between start and end have been delivered completely."""
        self.runs = OffsetRuns()
        self._locks: list[tuple[float, int, int]] = []  # a heap of deadlines, with the offsets that may be due
        for first, last, state, count in batches:
            self.fill(first, DeliveryState.AVAILABLE)
            self._append(OffsetRun(first, last, DeliveryState(state), count, AcquiredBatch(first, last)))
        self.move_on()

    def __repr__(self) -> str:
        return f"<SharePartition {self.start}-{self.end}, {len(self.runs)} runs>"

    # -- reading

    @property
    def in_flight(self) -> int:
        return self.end - self.start

    @property
    def next_offset(self) -> int:
        """Where the log is to be read next: at the first available record, or at the end."""
        runs = self.runs.all
        for index in range(self.runs.place_of(self._available_from), len(runs)):
            if runs[index].is_available:
                self._available_from = max(runs[index].first, self.start)
                return self._available_from
        self._available_from = self.end
        return self.end

    def reach(self, records: int) -> int:
        """The last offset that has to be read so that so many records can be acquired."""
        runs = self.runs.all
        for index in range(self.runs.place_of(self.next_offset), len(runs)):
            run = runs[index]
            if run.is_available:
                if records <= run.size:
                    return run.first + records - 1
                records -= run.size
        return self.end + records - 1

    def may_acquire(self, limits: Limits) -> bool:
        return self.next_offset != self.end or self.in_flight < limits.locks

    def acquire(self, member: str, fetched: Fetched, wish: Wish, limits: Limits, now: float) -> list[Acquired]:
        """Give a member those of the records that were read which it may have, until its locks expire."""
        found = Acquiring(self, member, wish, limits, now + limits.lock_s).acquire(fetched)
        for one in found:
            heappush(self._locks, (now + limits.lock_s, one.first, one.last))
        self.move_on()
        return found

    def add(self, first: int, last: int, batch: AcquiredBatch, member: str, deadline: float) -> None:
        """Take records into flight that were never delivered, as acquired."""
        self._append(OffsetRun(first, last, DeliveryState.ACQUIRED, 1, batch, member=member, deadline=deadline))

    def fill(self, until: int, state: DeliveryState) -> None:
        """Have the end at an offset, with everything before it that was not in flight in one state."""
        if until > self.end and not self.runs and state is DeliveryState.ARCHIVED:
            self.start = self.end = until
        elif until > self.end:
            self._append(OffsetRun(self.end, until - 1, state, 0, AcquiredBatch(self.end, until - 1)))

    def archive(self, first: int, last: int, member: str = NO_MEMBER) -> None:
        """There is nothing to deliver at these offsets, which are available, or acquired by a member. A restarted broker finds out again."""
        for run in self.runs.isolate(first, last) if first <= last else ():
            if run.is_available or (run.is_acquired and run.member == member):
                self._settle(run, DeliveryState.ARCHIVED)

    def _append(self, run: OffsetRun) -> None:
        self.runs.append(run)
        self.end = run.last + 1
        if run.state.is_complete:
            self.complete_count += run.size

    # -- acknowledgements

    def acknowledge(
        self, member: str, acknowledgements: Sequence[Acknowledgement], limits: Limits, now: float
    ) -> StateChange | Refused:
        """All of them, or none. The change has no batches if nothing has to be written."""
        found = segments(self, member, acknowledgements, limits)
        if isinstance(found, Refused):
            return found
        batches: list[StateBatch] = []
        counts = dict.fromkeys(AcknowledgeType, 0)
        for segment in found:
            counts[segment.type] += segment.last - segment.first + 1
            if segment.type is AcknowledgeType.RENEW:
                self._renew(segment, now + limits.lock_s)
            else:
                self._change(self.runs.isolate(segment.first, segment.last), BECOMES[segment.type], limits, batches)
        return StateChange(tuple(batches), [one for one in counts.items() if one[1]])

    def release(self, member: str, limits: Limits) -> StateChange:
        """Free everything that a member has acquired."""
        batches: list[StateBatch] = []
        mine = [run for run in self.runs.all if run.is_acquired and run.member == member]
        self._change(mine, DeliveryState.AVAILABLE, limits, batches)
        return StateChange(tuple(batches))

    def _renew(self, segment: AlikeOffsets, deadline: float) -> None:
        for run in self.runs.isolate(segment.first, segment.last):
            run.deadline = deadline
        heappush(self._locks, (deadline, segment.first, segment.last))

    def _change(
        self, runs: Iterable[OffsetRun], state: DeliveryState, limits: Limits, batches: list[StateBatch]
    ) -> None:
        for run in runs:
            run.before = Before(run.state, run.member)
            self._become(run, _after(run, state, limits))
            batches.append(StateBatch(run.first, run.last, run.state, run.count))

    def _become(self, run: OffsetRun, state: DeliveryState) -> None:
        """The lock's deadline stays: it counts again if the change fails."""
        self.complete_count += run.size * (state.is_complete - run.state.is_complete)
        run.state = state
        run.member = NO_MEMBER

    def _settle(self, run: OffsetRun, state: DeliveryState) -> None:
        self._become(run, state)
        run.deadline = NO_DEADLINE

    def written(self, change: StateChange) -> None:
        """A change is kept for good."""
        for first, last, _, _ in change.batches:
            for run in self.runs.between(first, last):
                if run.before is not None:
                    run.before = None
                    run.deadline = NO_DEADLINE
                    self._note_available(run)
            self.runs.join(first, last)
        self.move_on()

    def failed(self, change: StateChange) -> None:
        """A change could not be written: its records are acquired as before, and those whose lock has expired are freed next."""
        for first, last, _, _ in change.batches:
            for run in self.runs.between(first, last):
                if run.before is not None:
                    self._become(run, run.before.state)
                    run.member = run.before.member
                    run.before = None
                    heappush(self._locks, (run.deadline, run.first, run.last))
            self.runs.join(first, last)

    def _note_available(self, run: OffsetRun) -> None:
        if run.is_available:
            self._available_from = min(self._available_from, run.first)

    # -- time, and the log's start

    @property
    def next_deadline(self) -> float | None:
        """When `expire` has to be called next; a lock may have ended by then in another way."""
        return self._locks[0][0] if self._locks else None

    def expire(self, now: float, limits: Limits) -> tuple[StateBatch, ...]:
        """Free the records whose locks have expired; returns their states, to be persisted."""
        batches: list[StateBatch] = []
        while self._locks and self._locks[0][0] <= now:
            _, first, last = heappop(self._locks)
            for run in self.runs.between(first, last):
                if run.is_acquired and run.deadline <= now:
                    self._settle(run, _after(run, DeliveryState.AVAILABLE, limits))
                    self._note_available(run)
                    batches.append(StateBatch(run.first, run.last, run.state, run.count))
            self.runs.join(first, last)
        self.move_on()
        return tuple(batches)

    def start_at(self, log_start: int) -> None:
        """The log begins here now: whatever was in flight before it is gone."""
        if log_start <= self.start:
            return
        dropped = self.runs.drop_before(log_start)
        self.complete_count -= sum(run.size for run in dropped if run.state.is_complete)
        self.start = log_start
        self.end = max(self.end, log_start)
        self.move_on()

    def move_on(self) -> None:
        """Move the start past settled records."""
        self.complete_count -= self.runs.drop_settled()
        runs = self.runs.all
        self.start = max(self.start, runs[0].first) if runs else self.end
        self._available_from = max(self._available_from, self.start)


def _after(run: OffsetRun, state: DeliveryState, limits: Limits) -> DeliveryState:
    """A record that was delivered as often as it may be is not available again."""
    is_last = state is DeliveryState.AVAILABLE and run.count >= limits.deliveries
    return DeliveryState.ARCHIVED if is_last else state
