"""Reads the records of partitions from the WALs that their lineages name, in the order of their offsets.

Of a WAL only those runs count that have the epoch of the stretch and a number below its end. Records that the store has lost or altered
are left out, which is logged; nothing else is ever left out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.parallel import in_parallel
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.seams import Opening, Stretch
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.wal_index import FoundRun, Gone, WalIndex, index_of
from horolog.broker.on_record.cluster_file import Place

log = logging.getLogger(__name__)

WALS_AT_ONCE = 12
RANGES_AT_ONCE = 8
RANGE_BYTES = 4 << 20
"""Runs that lie one behind the other are read together up to this size."""

Indexes = dict[Wal, WalIndex]
Take = Callable[[FoundRun, bytes | memoryview], None]
"""Gets each run with its bytes."""


class _Range(NamedTuple):
    """Runs of one object that lie one behind the other."""

    runs: Sequence[FoundRun]

    @property
    def size_bytes(self) -> int:
        return self.runs[-1].run.end - self.runs[0].run.position


async def read_indexes(store: StoreAccess, openings: Iterable[Opening]) -> Indexes:
    """The indexes of all WALs that the lineages of these partitions name, each read once."""
    ends: dict[Wal, int] = {}
    wanted: dict[Wal, dict[Place, set[int]]] = {}
    for opening in openings:
        for stretch, end in _past(opening):
            ends[stretch.wal] = max(end, ends.get(stretch.wal, 0))
            wanted.setdefault(stretch.wal, {}).setdefault(opening.place, set()).add(stretch.epoch)
    tasks = [partial(index_of, store, wal, end, wanted[wal]) for wal, end in ends.items()]
    return dict(zip(ends, await in_parallel(tasks, WALS_AT_ONCE), strict=True))


def runs_of(opening: Opening, indexes: Indexes) -> list[FoundRun]:
    """The runs of a partition in the order of their offsets, as its lineage has them."""
    runs: list[FoundRun] = []
    for stretch, end in _past(opening):
        found = indexes[stretch.wal].get((opening.place, stretch.epoch), [])
        runs += [one for one in found if one.run.number < end]
    return runs


async def feed(store: StoreAccess, runs: Sequence[FoundRun], take: Take, lost: set[str]) -> None:
    """Pass on the runs in order. Raises Gone for an object that is missing and not in `lost`: its runs are left out."""
    ranges = list(_ranges(runs))
    for begin in range(0, len(ranges), RANGES_AT_ONCE):
        some = ranges[begin : begin + RANGES_AT_ONCE]
        for each, data in zip(
            some, await in_parallel([partial(_bytes_of, store, one) for one in some], RANGES_AT_ONCE), strict=True
        ):
            if data is None and each.runs[0].key not in lost:
                raise Gone(each.runs[0].key)
            _pass_on(store, each, data, take)


def _pass_on(store: StoreAccess, each: _Range, data: bytes | None, take: Take) -> None:
    start = each.runs[0].run.position
    view = memoryview(data or b"")
    for one in each.runs:
        try:
            take(one, one.run.check(view[one.run.position - start : one.run.end - start]))
        except FormatError as error:
            store.given_up.add(one.key)
            log.error(
                "%s: offsets %s up to %s of partition %s are lost: %s",
                one.key,
                one.run.base_offset,
                one.run.next_offset,
                one.run.partition,
                "the object is missing" if data is None else error,
            )


def _past(opening: Opening) -> Iterator[tuple[Stretch, int]]:
    """The stretches before the leader's own, with their ends."""
    for stretch in opening.lineage[:-1]:
        assert stretch.end is not None, f"{opening}: {stretch} is not over"
        if stretch.end > 0:
            yield stretch, stretch.end


def _ranges(runs: Iterable[FoundRun]) -> Iterator[_Range]:
    together: list[FoundRun] = []
    for one in runs:
        last = together[-1] if together else None
        if last is not None and (
            one.data is not None
            or last.data is not None
            or last.key != one.key
            or last.run.end != one.run.position
            or one.run.end - together[0].run.position > RANGE_BYTES
        ):
            yield _Range(together)
            together = []
        together.append(one)
    if together:
        yield _Range(together)


async def _bytes_of(store: StoreAccess, each: _Range) -> bytes | None:
    first = each.runs[0]
    if first.data is not None:
        return first.data
    return await store.read_range(first.key, first.run.position, each.runs[-1].run.end)
