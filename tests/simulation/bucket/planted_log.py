"""Bugs of the log's half, each of which the simulated company has to find."""

from contextlib import ExitStack
from unittest.mock import patch

from horolog.broker.bucket import lineage_reader, log_side, shipped_safety, store_upkeep, wal_index, wal_merger
from horolog.broker.bucket.lineage_reader import runs_of
from horolog.broker.bucket.local_copy import LocalCopy
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.shipped_safety import ShippedSafety
from horolog.broker.bucket.wal_index import index_of
from horolog.broker.bucket.wal_writer import WalWriter
from horolog.broker.log.partition import OffsetOutOfRange, Partition
from tests.simulation.bucket import log_process
from tests.simulation.bucket.company_world import CompanyWorld
from tests.simulation.bucket.log_process import LogProcess
from tests.support.log_model import small_config

SMALL = (
    (wal_merger, "MOST_NUMBERS", 12),
    (wal_index, "WHOLE_BYTES", 1_500),
    (wal_index, "END_BYTES", 400),
    (log_side, "LOOKS_EVERY_S", 0.5),
    (log_side, "SEGMENTS_EVERY_LOOKS", 1),
    (store_upkeep, "TAILS_EVERY_S", 3),
    (store_upkeep, "WALS_EVERY_S", 5),
)
"""Bounds that let a minute have merges, and objects that are read in parts."""


SHORT_SEGMENTS = patch.object(log_process, "CONFIG", small_config(segment_bytes=2_000))
"""Most records come into the bucket as segments, which hide bugs of WALs."""


def outcome_of(seed, *patches, keeps_until=0.0):
    """The broken promise of a seed, or nothing; until that second the store deletes nothing."""
    with ExitStack() as stack:
        for module, name, value in SMALL:
            stack.enter_context(patch.object(module, name, value))
        for one in patches:
            stack.enter_context(one)
        world = CompanyWorld(seed, process_class=LogProcess)
        world.store.keeps_until = keeps_until
        try:
            return world.run(), world
        except (AssertionError, KeyError, IndexError, OffsetOutOfRange) as error:
            return repr(error), world


def safe_out_of_order(self, number):
    self._made.add(number)
    self.safe_end = max(self.safe_end, number + 1)
    self._events.safe(self.safe_end)


def all_runs(opening, indexes):
    """Runs of another epoch or behind the end of a stretch count, too."""
    return [
        one
        for stretch in opening.lineage[:-1]
        for one in indexes.get(stretch.wal, {}).get((opening.place, stretch.epoch), [])
    ]


async def read_on(store, wal, end, wanted):
    """Numbers behind the end of a WAL are read as well."""
    return await index_of(store, wal, end + 3, wanted)


def last_stretch(opening, indexes):
    """The WALs of earlier leaders are not read."""
    return runs_of(opening._replace(lineage=opening.lineage[-2:]), indexes)


async def no_mark(store, wal):
    """Numbers that a mark says are gone count as lost."""


def counts_when_stopped(self, _fault=None):
    """Records that are not safe when the WAL ends are answered as if they were."""
    for partition, waits in list(self._waits.items()):
        for _, call in waits:
            call.remaining = 1
            call.done({})
        partition.high_watermark = partition.written_end
    self._waits.clear()


BUGS = {
    "high watermark at the write": lambda: [patch.object(ShippedPartition, "_write", Partition._write)],
    "safe out of order": lambda: [patch.object(WalWriter, "_learn_made", safe_out_of_order)],
    "strays count": lambda: [
        patch.object(log_side, "runs_of", all_runs),
        patch.object(lineage_reader, "index_of", read_on),
    ],
    "one stretch": lambda: [patch.object(log_side, "runs_of", last_stretch)],
    "marks are not read": lambda: [patch.object(wal_index, "newest_mark", no_mark)],
    "the local log is kept": lambda: [patch.object(LocalCopy, "add", lambda *_: None)],
    "a fence answers as if all were safe": lambda: [patch.object(ShippedSafety, "_refuse_all", counts_when_stopped)],
    "records under way are refused": lambda: [
        patch.object(shipped_safety, "_not_safe", lambda _: shipped_safety._led_elsewhere())
    ],
}


def found(name, seeds):
    """The first seed that shows the bug, with the promise that it breaks; None if none does."""
    for seed in seeds:
        broken, _ = outcome_of(seed, *BUGS[name]())
        if broken:
            return seed, broken
    return None
