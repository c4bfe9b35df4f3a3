"""The objects of a prefix that a restore alone may still need: brokers keep them for `horolog.store.history.ms`, then they go.

They are what the newest mark of a write-ahead log, or the newest manifest of a partition, leaves out; write-ahead logs that no lineage
names; and topics that are gone. Objects are listed before anything is read, so one that brokers make meanwhile is none of these. What a
damaged mark, manifest or page may name counts as in use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from horolog.broker.bucket import mark
from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.bucket_sweep import FENCE_BYTES
from horolog.broker.bucket.manifest import named_by
from horolog.broker.bucket.names import DATA, MANIFESTS, MARKS, MERGED, WALS, SegmentName, Wal, key, number_of
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.on_record.cluster_file import Place
from horolog.broker.prefix.prefix_reader import PrefixReader
from horolog.broker.prefix.stored_partitions import newest_manifest, segments_of
from horolog.stores.object_store import Stored

Objects = Mapping[str, list[Stored]]
"""Those of one write-ahead log or partition, by the folder that they lie in: `wal`, `merged`, `mark`; `manifest`, `data`."""


class InUse(NamedTuple):
    """What the newest mark of a write-ahead log leaves: numbers from one on, and these merged objects."""

    mark_number: int
    upto: int
    merged: frozenset[str]


def history_objects(reader: PrefixReader, state: BucketState, objects: Iterable[Stored]) -> list[Stored]:
    """Those of the objects that are kept for restores. One mark of each log, and one manifest of each partition, are read. Raises StoreError."""
    wals: dict[Wal, dict[str, list[Stored]]] = {}
    partitions: dict[Place, dict[str, list[Stored]]] = {}
    for one in objects:
        family, shown, *more = (*one.key.split("/"), "")
        if family in {WALS, MERGED, MARKS} and (wal := Wal.of(shown)) is not None:
            wals.setdefault(wal, {}).setdefault(family, []).append(one)
        elif family in {MANIFESTS, DATA} and (place := _place_of(shown, more)) is not None:
            partitions.setdefault(place, {}).setdefault(family, []).append(one)
    spent = frozenset(state.spent(wals))
    found = [one for wal in sorted(spent) for one in _of_spent(wals[wal])]
    tasks: list[Callable[[], Iterable[Stored]]] = []
    tasks += [partial(_of_wal, reader, wal, there) for wal, there in sorted(wals.items()) if wal not in spent]
    tasks += [partial(_of_partition, reader, state, place, there) for place, there in sorted(partitions.items())]
    for several in reader.each(lambda task: list(task()), tasks):
        found += several
    return found


def _place_of(shown: str, more: list[str]) -> Place | None:
    try:
        return bytes.fromhex(shown), int(more[0])
    except (ValueError, IndexError):
        return None


def _of_spent(there: Objects) -> Iterator[Stored]:
    """All but the newest mark, and the fence that the log ends with: these stay."""
    yield from there.get(MERGED, ())
    yield from _before(there.get(MARKS, ()), max(_numbers(there.get(MARKS, ())), default=0))
    last = max(_numbers(there.get(WALS, ())), default=0)
    yield from (
        one
        for one in _before(there.get(WALS, ()), last + 1)
        if number_of(one.key) != last or one.size_bytes > FENCE_BYTES
    )


def _of_wal(reader: PrefixReader, wal: Wal, there: Objects) -> Iterator[Stored]:
    in_use = _in_use(reader, wal)
    if in_use is not None:
        yield from _before(there.get(WALS, ()), in_use.upto)
        yield from _before(there.get(MARKS, ()), in_use.mark_number)
        yield from (one for one in there.get(MERGED, ()) if one.key not in in_use.merged)


def _in_use(reader: PrefixReader, wal: Wal) -> InUse | None:
    """None if nothing has been merged, or the mark cannot be read."""
    while (number := max(reader.numbers(wal.marks), default=None)) is not None:
        data = reader.get(key(wal.marks, number))
        if data is not None:  # else a newer one has replaced it
            try:
                found = mark.decode(data)
            except FormatError:
                return None
            return InUse(number, found.upto, frozenset(map(wal.merged, found.merged)))
    return None


def _of_partition(reader: PrefixReader, state: BucketState, place: Place, there: Objects) -> Iterable[Stored]:
    if place not in state.leads:
        return [*there.get(MANIFESTS, ()), *there.get(DATA, ())]
    try:
        newest = newest_manifest(reader, place)
        segments = None if newest is None else segments_of(reader, newest)
    except FormatError:
        return []
    if newest is None or segments is None:
        return []
    named = named_by(newest).union(name for one in segments for name in (one.log_key, one.meta_key))
    return [*_before(there.get(MANIFESTS, ()), newest.number), *_unnamed(there.get(DATA, ()), named, newest.end_offset)]


def _unnamed(objects: Iterable[Stored], named: set[str], end_offset: int) -> Iterator[Stored]:
    """Segments behind the end are being uploaded."""
    for one in objects:
        name = SegmentName.of_key(one.key)
        if name is not None and one.key not in named and name.base_offset < end_offset:
            yield one


def _numbers(objects: Iterable[Stored]) -> Iterator[int]:
    return (number for one in objects if (number := number_of(one.key)) is not None)


def _before(objects: Iterable[Stored], end: int) -> Iterator[Stored]:
    """Those whose number is smaller."""
    return (one for one in objects if (number := number_of(one.key)) is not None and number < end)
