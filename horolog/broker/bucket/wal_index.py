"""Which objects of a WAL have the records of which partitions, from the footers of its objects alone.

Numbers below the newest mark are gone, and the rest of their records lies in the merged objects that the mark names; above it each number is an
object. So a number or a merged object that is missing says that the mark is old: the reading begins again. Only where the newest mark
still names it, the store has lost an object. Its batches are gone, and this is logged as the loss that it is.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from functools import partial
from typing import NamedTuple

from horolog.broker.bucket import wal_object
from horolog.broker.bucket.names import Wal, key
from horolog.broker.bucket.parallel import both, in_parallel
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.wal_fencing import newest_mark
from horolog.broker.bucket.wal_object import TAIL_SIZE, Footer, Run
from horolog.broker.on_record.cluster_file import Place

log = logging.getLogger(__name__)

WHOLE_BYTES = 256 * 1024
"""The bytes of a smaller object are kept. A larger merged one is read in parts."""
END_BYTES = 64 * 1024
"""So much of the end of a larger object is read to find its footer, which nearly always suffices."""
AT_ONCE = 32

Wanted = Mapping[Place, Collection[int]]
"""The epochs of each partition whose records are wanted."""


class FoundRun(NamedTuple):
    """A run, the object that has it, and its bytes if they were read already."""

    key: str
    run: Run
    data: bytes | None


WalIndex = Mapping[tuple[Place, int], list[FoundRun]]
"""The runs of each partition and epoch, in the order of their offsets."""


class Gone(Exception):
    """An object is not there: a newer mark says where its records are."""

    def __init__(self, missing: str) -> None:
        super().__init__(missing)
        self.missing = missing


async def index_of(store: StoreAccess, wal: Wal, end: int, wanted: Wanted) -> WalIndex:
    """The wanted runs of the numbers of a WAL below `end`, all of which were made."""
    lost: set[str] = set()
    while True:
        try:
            return await _index_of(store, wal, end, wanted, lost)
        except Gone as gone:
            lost.add(gone.missing)


async def _index_of(store: StoreAccess, wal: Wal, end: int, wanted: Wanted, lost: Collection[str]) -> WalIndex:
    """Raises Gone for an object that is missing now, unless it was missing before.

    Clients wait, so merged objects are listed beside the mark. One that the mark names and the list lacks may be newer than the list.
    """
    mark, listed = await both(partial(newest_mark, store, wal), partial(store.list, wal.merged_folder))
    upto, merged = (0, ()) if mark is None else (mark.upto, mark.merged)
    keys = [wal.merged(nonce) for nonce in merged] + [key(wal.folder, number) for number in range(upto, end)]
    sizes = {one.key: one.size_bytes for one in listed}
    tasks = [partial(_runs_of_merged, store, wal, one, sizes.get(one), wanted) for one in keys[: len(merged)]]
    tasks += [partial(_runs_of_number, store, wal, one, wanted) for one in keys[len(merged) :]]
    index: dict[tuple[Place, int], list[FoundRun]] = {}
    for one, found in zip(keys, await in_parallel(tasks, AT_ONCE), strict=True):
        if found is None:
            if one not in lost:
                raise Gone(one)
            store.given_up.add(one)
            log.error("%s is lost: its broker's mark names it, but the store does not have it", one)
        for each in found or ():
            index.setdefault(((each.run.topic_id, each.run.partition), each.run.leader_epoch), []).append(each)
    for runs in index.values():
        runs.sort(key=lambda each: each.run.base_offset)
    return index


async def _runs_of_number(store: StoreAccess, wal: Wal, name: str, wanted: Wanted) -> list[FoundRun] | None:
    """The wanted runs of a number, which is read whole; None if it is missing, or a void fence lies in its place."""
    whole = await store.read(name)
    if whole is None or not wal_object.is_object(whole):
        return None
    try:
        footer = wal_object.decode_end(len(whole), whole)
        return _wanted_runs(wal, name, footer, whole if len(whole) <= WHOLE_BYTES else None, wanted)
    except FormatError as error:
        return _lost(store, name, error)


async def _runs_of_merged(
    store: StoreAccess, wal: Wal, name: str, size_bytes: int | None, wanted: Wanted
) -> list[FoundRun] | None:
    """The wanted runs of a merged object, of which a larger one is read in parts; None if it is missing."""
    if size_bytes is None:
        return None
    if size_bytes <= WHOLE_BYTES:
        return await _runs_of_number(store, wal, name, wanted)
    try:
        footer = await _footer(store, name, size_bytes)
        return None if footer is None else _wanted_runs(wal, name, footer, None, wanted)
    except FormatError as error:
        return _lost(store, name, error)


def _lost(store: StoreAccess, name: str, error: FormatError) -> list[FoundRun]:
    store.given_up.add(name)
    log.error("%s cannot be read, and its batches are lost: %s", name, error)
    return []


def _wanted_runs(wal: Wal, name: str, footer: Footer, whole: bytes | None, wanted: Wanted) -> list[FoundRun]:
    """Raises FormatError."""
    if footer.identity.wal != wal:
        raise FormatError(f"it is an object of {footer.identity.wal}")
    return [
        FoundRun(name, one, None if whole is None else whole[one.position : one.end])
        for one in footer.runs
        if one.leader_epoch in wanted.get((one.topic_id, one.partition), ())
    ]


async def _footer(store: StoreAccess, name: str, size_bytes: int) -> Footer | None:
    """Raises FormatError."""
    end = await store.read_range(name, max(0, size_bytes - END_BYTES), size_bytes)
    if end is None:
        return None
    start = wal_object.footer_start(size_bytes, end[-TAIL_SIZE:])
    if size_bytes - start > len(end):
        end = await store.read_range(name, start, size_bytes)
        if end is None:
            return None
    return wal_object.decode_end(size_bytes, end)
