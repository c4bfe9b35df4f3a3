"""Makes written records safe, which is what `acks=all` waits for: here a sync of the partition's files in a worker thread.

Another `Safety` may hold all commits, whatever their acks: its records count once they lie in a place that other brokers share.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from typing import NamedTuple, Protocol

from horolog.broker.base.metrics import Described, Kind, Metrics
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import StorageFault
from horolog.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

SYNC_SECONDS = Described(
    "sync_seconds", Kind.HISTOGRAM, "Time of a sync of a partition's files that requests waited for."
)
SYNC_RECORDS = Described(
    "sync_records",
    Kind.HISTOGRAM,
    "Number of records that one sync made durable.",
    bounds=(1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 100_000),
)
FAMILIES = (SYNC_SECONDS, SYNC_RECORDS)

Failures = Mapping[Partition, StorageFault]
NO_FAILURES: Failures = {}

Done = Callable[[Failures], None]
"""Called on the event loop with what could not be made safe."""


class NotSafe(StorageFault):
    """Records are written here and no client may count on them; `error` is what its producer gets."""

    def __init__(self, message: str, error: ErrorCode) -> None:
        super().__init__(message)
        self.error = error


class Safety(Protocol):
    """Makes safe what was written before the call."""

    @property
    def holds_all(self) -> bool:
        """Whether every commit waits, and readers until then. Else durable ones wait, and a partition is in one call at a time."""
        ...

    def make_safe(self, partitions: Sequence[Partition], done: Done) -> None: ...
    def producers_wait_s(self) -> float:
        """How long a producer is not read from, since too many records wait; 0 if there is room for more."""
        ...


class _Round:
    """The partitions of one call that are still on their way."""

    __slots__ = ("done", "failures", "remaining")

    def __init__(self, remaining: int, done: Done) -> None:
        self.remaining = remaining
        self.done = done
        self.failures = NO_FAILURES


class _Synced(NamedTuple):
    """Duration and records of one sync."""

    seconds: float
    records: int


def _sync(partition: Partition, monotonic: Callable[[], float]) -> _Synced:
    """In a worker thread."""
    began = monotonic()
    synced_before = partition.sync_state.recovery_point
    partition.sync()
    return _Synced(monotonic() - began, partition.sync_state.recovery_point - synced_before)


class LocalSafety:
    """Records are safe once a disk of this machine has confirmed them."""

    holds_all = False

    def __init__(
        self, loop: asyncio.AbstractEventLoop, workers: Executor, metrics: Metrics, monotonic: Callable[[], float]
    ) -> None:
        self._loop = loop
        self._workers = workers
        self._monotonic = monotonic
        self._sync_seconds = metrics.histogram(SYNC_SECONDS)
        self._sync_records = metrics.histogram(SYNC_RECORDS)

    def __repr__(self) -> str:
        return f"<LocalSafety by {self._workers!r}>"

    def producers_wait_s(self) -> float:
        """Producers that wait for the disk are bounded by their unanswered requests."""
        return 0.0

    def make_safe(self, partitions: Sequence[Partition], done: Done) -> None:
        """Sync every partition in a thread of its own; `done` is called once the last one is through."""
        waiting = _Round(len(partitions), done)
        for partition in partitions:
            future = self._workers.submit(partial(_sync, partition, self._monotonic))
            future.add_done_callback(partial(self._ended, partition, waiting))

    def _ended(self, partition: Partition, waiting: _Round, future: Future[_Synced]) -> None:
        """In the worker thread."""
        self._loop.call_soon_threadsafe(self._synced, partition, waiting, future)

    def _synced(self, partition: Partition, waiting: _Round, future: Future[_Synced]) -> None:
        error = future.exception()
        if error is None:
            synced = future.result()
            self._sync_seconds.observe(synced.seconds)
            self._sync_records.observe(synced.records)
        else:
            log.error("%s: could not sync: %s", partition, error)
            fault = error if isinstance(error, StorageFault) else StorageFault(str(error))
            waiting.failures = {**waiting.failures, partition: fault}
        waiting.remaining -= 1
        if not waiting.remaining:
            waiting.done(waiting.failures)
