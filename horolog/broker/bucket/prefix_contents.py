"""The content of a prefix that brokers share, read without being one of them: the state of the cluster, and the amount of each kind."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.journal_objects import decode_founding, decode_log_entry, decode_snapshot
from horolog.broker.bucket.names import DATA, LOG, MANIFESTS, MARKS, MERGED, SNAPSHOTS, WALS, key, number_of
from horolog.stores.object_store import ObjectStore, Stored

KINDS = {
    LOG: "journal",
    SNAPSHOTS: "snapshots of the journal",
    WALS: "write-ahead logs",
    MERGED: "merged write-ahead logs",
    MARKS: "marks",
    MANIFESTS: "manifests",
    DATA: "segments",
    "check": "tests of the store",
}
HISTORY = "kept for restores"
OTHER = "of other programs"
ENTRIES_AT_ONCE = 16


class Amount(NamedTuple):
    """How much there is of one kind of object."""

    kind: str
    objects: int
    size_bytes: int


class FoundCluster(NamedTuple):
    """A cluster as its journal has it."""

    cluster_id: str
    state: BucketState


def amounts(objects: Iterable[Stored], history: Collection[Stored] = ()) -> list[Amount]:
    """What lies in a prefix, in the order of `KINDS`, and the history as a kind of its own; kinds without an object are left out."""
    found: dict[str, list[int]] = {kind: [] for kind in (*KINDS.values(), HISTORY, OTHER)}
    kept = {one.key for one in history}
    for one in objects:
        found[HISTORY if one.key in kept else kind_of(one.key)].append(one.size_bytes)
    return [Amount(kind, len(sizes), sum(sizes)) for kind, sizes in found.items() if sizes]


def kind_of(name: str) -> str:
    return next((kind for folder, kind in KINDS.items() if name.startswith(f"{folder}/")), OTHER)


def found_in(store: ObjectStore) -> FoundCluster | None:
    """The cluster of a prefix; None if no broker has used it. Raises StoreError and FormatError."""
    founding = _read(store, key(LOG, 0))
    if founding is None:
        return None
    state = next(_snapshots(store), BucketState())
    for number, data in _entries(store, state.number + 1):
        state = state.apply(decode_log_entry(data, number).entry)
    return FoundCluster(decode_founding(founding).cluster_id, state)


def _entries(store: ObjectStore, first: int) -> Iterator[tuple[int, bytes]]:
    """The entries of the journal from one on, several of them read at a time: there may be a thousand behind a snapshot."""
    with ThreadPoolExecutor(ENTRIES_AT_ONCE, thread_name_prefix="journal") as threads:
        while True:
            numbers = range(first, first + ENTRIES_AT_ONCE)
            for number, data in zip(
                numbers, threads.map(lambda one: _read(store, key(LOG, one)), numbers), strict=True
            ):
                if data is None:
                    return
                yield number, data
            first = numbers.stop


def _snapshots(store: ObjectStore) -> Iterator[BucketState]:
    """The newest first."""
    numbers = [number_of(one.key) for one in store.list(SNAPSHOTS)]
    for number in sorted((one for one in numbers if one is not None), reverse=True):
        data = _read(store, key(SNAPSHOTS, number))
        if data is not None:
            yield decode_snapshot(data, number)


def _read(store: ObjectStore, name: str) -> bytes | None:
    try:
        return store.get(name)
    except FileNotFoundError:
        return None
