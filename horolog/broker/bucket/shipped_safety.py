"""Makes records safe by shipping them to the store: written records wait a little, so that one object holds the batches of many partitions.

    written -> waiting until the last object is `flush_ms` old, or until `flush_bytes` wait -> under way as a number of the WAL
            -> safe, once all numbers before are

Every commit waits for that, and the high watermark moves with it. Unsafe records are bounded: while too many bytes wait or are under way,
producers are not read from. When the WAL is fenced, nothing is ever safe but what lies below the fence: the other producers learn that
another broker leads. If no fence is known, records under way may still become safe, and producers get REQUEST_TIMED_OUT. They would send
records again that were refused with NOT_LEADER_OR_FOLLOWER, even producers that are to send nothing twice.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from horolog.broker.bucket import unshipped_runs
from horolog.broker.bucket.fence import Fence
from horolog.broker.bucket.seams import ClusterSide
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.wal_object import NewRun
from horolog.broker.bucket.wal_writer import WalEvents, WalWriter
from horolog.broker.commit.safety import Done, NotSafe
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import StorageFault
from horolog.protocol.errors import ErrorCode

if TYPE_CHECKING:
    import asyncio

log = logging.getLogger(__name__)

PRODUCERS_WAIT_S = 0.02
"""How long a producer is not read from before the bound is looked at again."""

MakeWriter = Callable[[WalEvents], WalWriter]


class ShippingLimits(NamedTuple):
    """The settings of the same names."""

    flush_ms: int
    flush_bytes: int
    unsafe_bytes: int


class _Call:
    """One call of `make_safe`."""

    __slots__ = ("done", "failures", "remaining")

    def __init__(self, done: Done, remaining: int) -> None:
        self.done = done
        self.remaining = remaining
        self.failures: dict[Partition, StorageFault] = {}


class _Wait(NamedTuple):
    """A call that waits for a partition up to an offset."""

    end_offset: int
    call: _Call


class _Number(NamedTuple):
    """A number that is under way: where it ends in each partition, and when it was sent first."""

    ends: dict[ShippedPartition, int]
    sent_s: float


class _Events:
    """The events of one WAL, as long as it is the one that is written."""

    def __init__(self, safety: ShippedSafety) -> None:
        self._safety = safety
        self.is_current = True

    def safe(self, upto: int) -> None:
        if self.is_current:
            self._safety.learn_safe(upto)

    def fenced(self, fence: Fence | None) -> None:
        if self.is_current:
            self._safety.learn_fenced(fence)


class ShippedSafety:
    """Holds all commits until the store has their records. `shown` gets the partitions whose high watermark has moved."""

    holds_all = True

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: Callable[[], ShippingLimits],
        shown: Callable[[Iterable[Partition]], None],
        now: Callable[[], float],
    ) -> None:
        """`now` is the clock of the lease."""
        self._loop = loop
        self._limits = limits
        self._shown = shown
        self._now = now
        self._cluster: ClusterSide | None = None
        self._writer: WalWriter | None = None
        self._events: _Events | None = None
        self._waits: dict[ShippedPartition, deque[_Wait]] = {}
        self._dirty: dict[ShippedPartition, None] = {}
        self._dirty_bytes = 0
        self._numbers: deque[_Number] = deque()
        self._timer: asyncio.Handle | None = None
        self._is_due = False
        self._shipped_s = 0.0

    def __repr__(self) -> str:
        return f"<ShippedSafety, {len(self._dirty)} partitions wait, {len(self._numbers)} numbers are under way, {self._writer!r}>"

    def begin(self, make_writer: MakeWriter, cluster: ClusterSide) -> WalWriter:
        """Ship to this WAL from now on."""
        self.stop()
        self._cluster = cluster
        self._events = _Events(self)
        self._shipped_s = self._now()
        self._writer = make_writer(self._events)
        return self._writer

    # -- what waits

    def make_safe(self, partitions: Sequence[Partition], done: Done) -> None:
        if self._writer is None:
            self._loop.call_soon(done, dict.fromkeys(partitions, _led_elsewhere()))
            return
        call = _Call(done, 0)
        for partition in partitions:
            assert isinstance(partition, ShippedPartition)
            if partition.written_end > partition.high_watermark:
                call.remaining += 1
                self._waits.setdefault(partition, deque()).append(_Wait(partition.written_end, call))
                self._note(partition)
        if not call.remaining:
            self._loop.call_soon(done, {})
        elif self._dirty and not self._is_due:
            self._plan()

    def _plan(self) -> None:
        """Ship a while after the last object, so that a record which comes alone need not wait, or soon if there is enough for an object."""
        limits = self._limits()
        if self._dirty_bytes >= limits.flush_bytes:
            self._cancel()
            self._is_due = True
            self._timer = self._loop.call_soon(self._ship)
        elif self._timer is None:
            waits_s = limits.flush_ms / 1000 - (self._now() - self._shipped_s)
            self._timer = self._loop.call_later(max(0.0, waits_s), self._ship)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _note(self, partition: ShippedPartition) -> None:
        """It has more to ship than before."""
        if partition.shipping_end < partition.written_end:
            self._dirty[partition] = None
            self._dirty_bytes += partition.take_growth()

    def ship_all(self, partitions: Sequence[Partition], done: Callable[[int | None], None]) -> None:
        """Ship everything that was appended to these partitions without waiting for more: see `seams.LogSide`."""
        writer = self._writer
        for partition in partitions:
            try:
                partition.write_pending()
            except StorageFault as fault:  # which the next flush reports to the producers
                log.error("%s: could not write: %s", partition, fault)
        self.make_safe(
            partitions, lambda _: done(None if writer is None or writer is not self._writer else writer.safe_end)
        )
        self._ship()

    @property
    def unsafe_bytes(self) -> int:
        """Bytes that no client may count on yet."""
        return self._dirty_bytes + (0 if self._writer is None else self._writer.unsafe_bytes)

    def producers_wait_s(self) -> float:
        return 0.0 if self.unsafe_bytes < self._limits().unsafe_bytes else PRODUCERS_WAIT_S

    def show(self, partition: ShippedPartition) -> None:
        """Readers of a partition may find more than before."""
        self._shown((partition,))

    # -- numbers under way

    def _ship(self) -> None:
        """Ship what waits, as far as there are free numbers; the rest follows when there are."""
        self._cancel()
        writer = self._writer
        while self._dirty and writer is not None and writer.can_ship:
            self._ship_number(writer)
        self._is_due = bool(self._dirty)

    def _ship_number(self, writer: WalWriter) -> None:
        left = self._limits().flush_bytes
        runs: list[NewRun] = []
        ends: dict[ShippedPartition, int] = {}
        while self._dirty and (left > 0 or not runs):
            partition = next(iter(self._dirty))
            try:
                taken = unshipped_runs.take(partition, writer.next_number, left)
            except StorageFault as fault:
                self._lose(partition, fault)
                continue
            left -= taken.size_bytes
            self._dirty_bytes = max(0, self._dirty_bytes - taken.size_bytes)
            runs += taken.runs
            ends[partition] = partition.shipping_end = taken.end_offset
            del self._dirty[partition]
            if partition.shipping_end < partition.written_end:
                self._dirty[partition] = None  # behind the others
        if not self._dirty:
            self._dirty_bytes = 0  # bytes that were taken back are counted until here
        if runs:
            self._shipped_s = self._now()
            self._numbers.append(_Number(ends, self._shipped_s))
            writer.ship(runs)

    def _lose(self, partition: ShippedPartition, fault: StorageFault) -> None:
        """The local log has lost records that are not shipped."""
        log.error("%s: %s", partition, fault)
        partition.condition.go_offline(str(fault))
        self.drop(partition, fault)

    def learn_safe(self, upto: int) -> None:
        """The store has all numbers of the WAL below this one."""
        moved: dict[ShippedPartition, int] = {}
        sent_s = 0.0
        while self._numbers and self._first_number < upto:
            number = self._numbers.popleft()
            moved |= number.ends
            sent_s = number.sent_s
        calls = [call for partition, end in moved.items() for call in self._reach(partition, end)]
        if self._cluster is not None:
            self._cluster.proof_of_life(sent_s)
        if self._is_due:
            self._ship()  # first: whatever the others do with the news, the WAL goes on
        for call in calls:
            call.done(call.failures)
        self._shown(moved)

    @property
    def _first_number(self) -> int:
        assert self._writer is not None
        return self._writer.next_number - len(self._numbers)

    def _reach(self, partition: ShippedPartition, end_offset: int) -> Iterable[_Call]:
        """A partition is safe up to here: the calls that wait no longer."""
        partition.shipped(end_offset)
        waits = self._waits.get(partition, deque())
        ready = []
        while waits and waits[0].end_offset <= end_offset:
            call = waits.popleft().call
            call.remaining -= 1
            if not call.remaining:
                ready.append(call)
        if not waits:
            self._waits.pop(partition, None)
        return ready

    # -- the end

    def learn_fenced(self, fence: Fence | None) -> None:
        """The WAL has ended. The cluster takes the partitions out of service before their producers are answered."""
        log.error("%s", _ended_by(fence))
        self._forget_writer()
        if self._cluster is not None:
            self._cluster.fenced(fence)
        self._refuse_all(None if fence is None else _led_elsewhere())

    def stop(self) -> None:
        """Ship nothing from now on. Records that are not safe yet are refused."""
        self._forget_writer()
        self._refuse_all()

    def drop(self, partition: ShippedPartition, fault: StorageFault | None = None) -> None:
        """Ship nothing more of a partition, and refuse what waits for it."""
        self._dirty.pop(partition, None)
        for number in self._numbers:
            number.ends.pop(partition, None)
        for _, call in self._waits.pop(partition, ()):
            call.failures[partition] = fault or _not_safe(partition)
            call.remaining -= 1
            if not call.remaining:
                call.done(call.failures)

    def _forget_writer(self) -> None:
        if self._events is not None:
            self._events.is_current = False
        self._cancel()
        self._writer = self._events = None
        self._numbers.clear()
        self._dirty.clear()
        self._dirty_bytes, self._is_due = 0, False

    def _refuse_all(self, fault: StorageFault | None = None) -> None:
        for partition in list(self._waits):
            self.drop(partition, fault)


def _ended_by(fence: Fence | None) -> str:
    if fence is None:
        return "another process writes under the name of this broker's WAL: this broker writes nothing more"
    return f"broker {fence.by} has fenced this broker: its WAL {fence.wal} ends at number {fence.number}"


def _not_safe(partition: ShippedPartition) -> NotSafe:
    if partition.shipping_end > partition.high_watermark:
        return NotSafe("the store may have its last records, or get them", ErrorCode.REQUEST_TIMED_OUT)
    return _led_elsewhere()


def _led_elsewhere() -> NotSafe:
    return NotSafe("this broker no longer leads it", ErrorCode.NOT_LEADER_OR_FOLLOWER)
