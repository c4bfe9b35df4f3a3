"""Reads all logs slowly, round after round, and verifies them against the sums taken when they were written.

A disk can lose data that is not read. Every `interval` a round begins over all partitions; each second a worker reads some
blocks, as many as `bytes_per_second` allows, by its own descriptors. A block that differs from what was written is reported
to `rescan_queue`. Only blocks that can no longer change are checked.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from crc32c import crc32c

from horolog.broker.log.counters import LogCounters
from horolog.broker.log.integrity import BLOCK_BYTES, RescanQueue, blocks_in
from horolog.broker.log.partition import Partition
from horolog.broker.log.segments import Segment
from horolog.broker.log.storage import FileMissing, OverlayStorage, Storage, StorageFault

log = logging.getLogger(__name__)

MAX_BLOCKS_PER_STEP = 1_000


class ScrubbedBlock(NamedTuple):
    """A block to read, and its expected sum."""

    segment: Segment
    directory: str
    start: int
    end: int
    expected: int


class Scrub:
    """The state of the round. Call `step` every second."""

    def __init__(
        self, rescan_queue: RescanQueue, counters: LogCounters, worker_storage: Storage, monotonic: Callable[[], float]
    ) -> None:
        self._rescan_queue = rescan_queue
        self._counters = counters
        self._storage = worker_storage
        self._monotonic = monotonic
        self._round: Iterator[ScrubbedBlock] | None = None
        self._began_at = monotonic()

    def __repr__(self) -> str:
        return f"<Scrub {'under way' if self._round is not None else 'waiting'}>"

    def step(
        self, partitions: Iterable[Partition], interval_ms: int, bytes_per_second: int
    ) -> Callable[[], None] | None:
        """The next blocks as a job for a worker; None if there is nothing to do."""
        if interval_ms < 0:
            self._round = None
            return None
        if self._round is None:
            if self._monotonic() - self._began_at < interval_ms / 1000:
                return None
            self._began_at = self._monotonic()
            self._round = _checks(list(partitions))
        checks = self._take(bytes_per_second)
        return (lambda: self._run(checks)) if checks else None

    def _take(self, bytes_per_second: int) -> list[ScrubbedBlock]:
        checks: list[ScrubbedBlock] = []
        left = max(bytes_per_second, 1)
        assert self._round is not None
        while left > 0 and len(checks) < MAX_BLOCKS_PER_STEP:
            check = next(self._round, None)
            if check is None:
                self._round = None
                break
            checks.append(check)
            left -= check.end - check.start
        return checks

    def _run(self, checks: Iterable[ScrubbedBlock]) -> None:
        for one in checks:
            try:
                self._check(one)
            except FileMissing:
                continue  # expired or compacted meanwhile
            except StorageFault as fault:
                log.error("scrub: %s", fault)

    def _check(self, one: ScrubbedBlock) -> None:
        file = self._storage.open_apart(one.segment.log.path)
        try:
            found = crc32c(file.pread(one.end - one.start, one.start))
        finally:
            file.close()
        self._counters.blocks_scrubbed.value += 1
        if found != one.expected and not one.segment.removed:
            self._rescan_queue.report(
                one.directory, one.segment.base_offset, f"bytes {one.start} to {one.end} are not what was written"
            )


def _checks(partitions: Iterable[Partition]) -> Iterator[ScrubbedBlock]:
    for partition in partitions:
        if isinstance(partition.folder.storage, OverlayStorage):
            continue  # its memory differs from the disk
        for segment in tuple(partition.segments):
            block = 0
            while not segment.removed and partition.condition.fault is None and block < _settled_blocks(segment):
                start, end = segment.sums.span_of(block)
                yield ScrubbedBlock(segment, partition.directory, start, end, segment.sums.sum_of(block))
                block += 1


def _settled_blocks(segment: Segment) -> int:
    """How many blocks can no longer change: the last one of an active segment still does."""
    return blocks_in(segment.sums.size_bytes) if segment.seal is not None else segment.sums.size_bytes // BLOCK_BYTES
