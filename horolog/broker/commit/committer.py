"""The end of a loop tick: what was appended is written, synced where asked, and only then answered.

Appends of one tick reach a partition's file in one write. Requests that wait for the disk (`durable`) are gathered per partition
while it is being made safe, and all share the next round: group commit. `broker.commit.safety` defines what safe means; if it holds
all commits, each of them waits, at most as long as its client does. Everything here runs on the loop's thread, so no partition needs
a lock.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, Protocol

from horolog.broker.base.late_answers import MOST_RECORDS
from horolog.broker.base.metrics import Described, Kind, Metrics
from horolog.broker.commit.safety import Failures, NotSafe, Safety
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import StorageFault
from horolog.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

WRITE_SECONDS = Described(
    "write_seconds",
    Kind.HISTOGRAM,
    "Time to write the records appended in one tick of the event loop. One tick in sixteen is measured.",
)
TICKS_PER_TIMING: Final = 16
FAMILIES = (WRITE_SECONDS,)


class Answerable(Protocol):
    """A conversation whose responses may be sent."""

    def answered(self) -> None: ...


class Commit(Protocol):
    """Appends that are answered together. `finish` returns whom to notify, once all commits of a tick have been finished."""

    durable: bool

    @property
    def partitions(self) -> Sequence[Partition]: ...

    @property
    def timeout_ms(self) -> int:
        """How long the client waits for an answer; 0 if that does not end it."""
        ...

    def finish(self, failures: Failures) -> Answerable | None: ...


class InternalCommit:
    """Batches of the broker's own that are appended but not yet written; `done` gets what failed."""

    __slots__ = ("_done", "durable", "partitions", "timeout_ms")

    def __init__(self, partitions: Sequence[Partition], done: Callable[[Failures], None], *, durable: bool) -> None:
        self.partitions = partitions
        self.timeout_ms = 0
        self.durable = durable
        self._done = done

    def finish(self, failures: Failures) -> None:
        self._done(failures)


class _OwnRecords:
    """How many records the broker's own batches hold that are not finished."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class _CountedCommit(InternalCommit):
    """It counts until it is finished."""

    __slots__ = ("_counted", "_records")

    def __init__(
        self,
        partitions: Sequence[Partition],
        done: Callable[[Failures], None],
        counted: _OwnRecords,
        records: int,
        *,
        durable: bool,
    ) -> None:
        self.partitions = partitions
        self.timeout_ms = 0
        self.durable = durable
        self._done = done
        self._counted = counted
        self._records = records
        counted.count += records

    def finish(self, failures: Failures) -> None:
        self._counted.count -= self._records
        self._done(failures)


class _SyncWait:
    """A commit that waits, and how many of its partitions are not yet safe."""

    __slots__ = ("commit", "failures", "remaining", "timer")

    def __init__(self, commit: Commit, failures: Failures) -> None:
        self.commit = commit
        self.failures = dict(failures)
        self.remaining = 0
        self.timer: asyncio.TimerHandle | None = None


class Committer:
    """Writes dirty partitions once per tick, has them made safe in the background, finishes their commits."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        safety: Safety,
        on_written: Callable[[Iterable[Partition]], None],
        metrics: Metrics,
        monotonic: Callable[[], float],
    ) -> None:
        """`on_written` wakes readers, unless the safety holds all commits and does it itself."""
        self._loop = loop
        self._safety = safety
        self.holds_all = safety.holds_all
        self._on_written = _nobody if safety.holds_all else on_written
        self._monotonic = monotonic
        self._ticks = 0
        self._write_seconds = metrics.histogram(WRITE_SECONDS)
        self._queued: list[Commit] = []
        self._own_records = _OwnRecords()
        self._end_of_tick = self._hold_queued if self.holds_all else self._write_queued
        self._sync_waits: dict[Partition, list[_SyncWait]] = {}
        self._syncing: set[Partition] = set()
        self._calls = 0
        """Of `make_safe`, that are under way."""
        self._idle: asyncio.Event | None = None
        """Made by `drain`, to wait until everything is done."""

    def __repr__(self) -> str:
        return f"<Committer {len(self._queued)} queued, {len(self._sync_waits)} partitions waiting for a sync>"

    def producers_wait_s(self) -> float:
        """How long a producer is not read from; 0 if there is room for its records."""
        return self._safety.producers_wait_s()

    def submit(self, commit: Commit) -> None:
        """Have a commit's partitions written at the end of this tick."""
        if not self._queued:
            self._loop.call_soon(self._end_of_tick)
        self._queued.append(commit)

    def submit_own(
        self, partitions: Sequence[Partition], done: Callable[[Failures], None], *, durable: bool, records: int = 1
    ) -> None:
        """Have batches of the broker's own written, which hold so many records; `done` gets what failed."""
        self.submit(_CountedCommit(partitions, done, self._own_records, records, durable=durable))

    @property
    def has_room(self) -> bool:
        """Whether clients may have the broker write more batches of its own: the store may not answer for a while."""
        return self._own_records.count < MOST_RECORDS

    def _hold_queued(self) -> None:
        for commit in self._queued:
            commit.durable = True
        self._write_queued()

    def _write_queued(self) -> None:
        queued, self._queued = self._queued, []
        written: dict[Partition, None] = {}
        self._ticks += 1
        is_timed = not self._ticks % TICKS_PER_TIMING
        began = self._monotonic() if is_timed else 0.0
        failures: dict[Partition, StorageFault] = {}
        for commit in queued:
            for partition in commit.partitions:
                if partition not in written:
                    written[partition] = None
                    try:
                        partition.flush()
                    except StorageFault as fault:
                        log.error("%s: could not write: %s", partition, fault)
                        failures[partition] = fault
        if is_timed:
            self._write_seconds.observe(self._monotonic() - began)
        told: dict[Answerable | None, None] = {}
        for commit in queued:
            if not commit.durable or not self._waits_for_sync(commit, failures):
                told[commit.finish(failures)] = None
        _tell(told)
        self._on_written(written)
        if self._sync_waits:
            self._start_syncs()
        self._note_idle()

    # -- group commit

    def _waits_for_sync(self, commit: Commit, failures: Failures) -> bool:
        """Whether anything of a commit was written; it is finished when that is safe."""
        wait = _SyncWait(commit, failures)
        for partition in commit.partitions:
            if partition not in failures:
                wait.remaining += 1
                self._sync_waits.setdefault(partition, []).append(wait)
        if wait.remaining and self.holds_all and commit.timeout_ms > 0:
            wait.timer = self._loop.call_later(commit.timeout_ms / 1000, self._expired, wait)
        return wait.remaining > 0

    def _expired(self, wait: _SyncWait) -> None:
        """The client waits no longer. Its records stay, and become safe when they do."""
        wait.remaining = 0
        late = NotSafe("its records were not durable in time", ErrorCode.REQUEST_TIMED_OUT)
        unsafe: dict[Partition, StorageFault] = dict.fromkeys(wait.commit.partitions, late)
        _tell({wait.commit.finish({**unsafe, **wait.failures}): None})

    def _start_syncs(self) -> None:
        for partition in [p for p in self._sync_waits if p not in self._syncing]:
            waits = self._sync_waits.pop(partition)
            self._calls += 1
            if not self.holds_all:
                self._syncing.add(partition)
            self._safety.make_safe((partition,), partial(self._made_safe, partition, waits))

    def _made_safe(self, partition: Partition, waits: list[_SyncWait], failures: Failures) -> None:
        self._calls -= 1
        self._syncing.discard(partition)
        fault = failures.get(partition)
        told: dict[Answerable | None, None] = {}
        for wait in waits:
            if fault is not None:
                wait.failures[partition] = fault
            wait.remaining -= 1
            if not wait.remaining:  # it is below 0 for one that has expired
                if wait.timer is not None:
                    wait.timer.cancel()
                told[wait.commit.finish(wait.failures)] = None
        _tell(told)
        self._start_syncs()
        self._note_idle()

    @property
    def _is_idle(self) -> bool:
        return not self._queued and not self._sync_waits and not self._calls

    def _note_idle(self) -> None:
        if self._idle is not None and self._is_idle:
            self._idle.set()
            self._idle = None

    @property
    def waiting_for_sync(self) -> int:
        """Partitions with requests that wait for the disk."""
        return len(self._sync_waits) + self._calls

    async def drain(self) -> None:
        """Wait until everything submitted is written, synced and answered."""
        if not self._is_idle:
            self._idle = self._idle or asyncio.Event()
            await self._idle.wait()


def _nobody(written: Iterable[Partition]) -> None:
    """Readers wait until records are safe: whatever makes them safe wakes them."""


def _tell(told: Iterable[Answerable | None]) -> None:
    """Notify each conversation once, so that its responses leave together."""
    for one in told:
        if one is not None:
            one.answered()
