"""Brings data folders into an empty prefix: a cluster that goes on with their topics, records, times, groups, settings and users.

The founding of the cluster is written first. It says how many entries the journal begins with, and no broker starts before the last of them
is there. Then come segments, manifests and a WAL, and the entries at the end. Every object has the same name and the same content in every
attempt, so an import that was interrupted goes on where it ended, and one of a folder that has changed since is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from horolog.broker.bucket import wal_object
from horolog.broker.bucket.journal_objects import (
    Founding,
    NumberedEntry,
    decode_founding,
    encode_founding,
    encode_log_entry,
)
from horolog.broker.bucket.manifest import Manifest
from horolog.broker.bucket.names import LOG, NONCE_SIZE, key
from horolog.broker.bucket.prefix_contents import KINDS, OTHER, kind_of
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.upload_plan import is_whole
from horolog.broker.bucket.wal_object import Identity, NewRun
from horolog.broker.log.partition import Partition
from horolog.broker.on_record.cluster_file import Place, StoredTopic
from horolog.broker.transfer.founding_entries import FIRST_ENTRY, Beginning
from horolog.broker.transfer.partition_import import (
    Partway,
    PrefixTaken,
    Seen,
    bring_segments,
    put,
    runs_of,
    segments_of,
)

OBJECT_BYTES = 4 << 20
"""So many bytes of runs make one object of the WAL."""
_OF_NO_BROKER = (KINDS["check"], OTHER)


@dataclass(frozen=True, slots=True)
class Source:
    """Data folders that no broker uses."""

    cluster_id: str
    beginning: Beginning
    """Without the epochs of partitions."""
    open: Callable[[StoredTopic, int], Partition | None]
    """Opens a partition for reading; None if the folders have nothing of it. Raises StorageFault."""
    close: Callable[[Partition], None]

    @property
    def text(self) -> str:
        """What the founding says."""
        return f"the folder of cluster {self.cluster_id}"


@dataclass(slots=True)
class Brought:
    """What an import has put into a prefix, or would put."""

    topics: int = 0
    partitions: int = 0
    segments: int = 0
    size_bytes: int = 0
    wal_objects: int = 0
    ends: dict[Place, tuple[int, int]] = field(default_factory=dict)
    """Where the log of each partition starts and ends."""
    epochs: dict[Place, int] = field(default_factory=dict)


class Prefix(NamedTuple):
    """A prefix that is empty, or that has a part of the same import."""

    founding: Founding
    there: frozenset[str]
    """The keys of its objects."""
    is_whole: bool
    """Whether all of it is there."""


async def look(store: StoreAccess, source: Source, new_nonce: Callable[[], bytes]) -> Prefix:
    """Look whether the source can go there. Raises PrefixTaken and FormatError."""
    there = frozenset(one.key for one in await store.list("") if kind_of(one.key) not in _OF_NO_BROKER)
    entries = len(source.beginning.entries(0))
    if not there:
        return Prefix(Founding(source.cluster_id, new_nonce(), entries, source.text), there, False)
    data = await store.read(key(LOG, 0))
    founding = None if data is None else decode_founding(data)
    if founding is None or not founding.entries:
        raise PrefixTaken("the prefix is not empty: brokers use it, or have used it")
    if founding != Founding(source.cluster_id, founding.nonce, entries, source.text):
        raise PrefixTaken(f"the prefix is not empty: it has {founding.source}")
    if key(LOG, founding.entries + 1) in there:
        raise PrefixTaken("the prefix is not empty: this folder was imported, and brokers have started since")
    return Prefix(founding, there, key(LOG, founding.entries) in there)


async def bring(store: StoreAccess, source: Source, prefix: Prefix, seen: Seen = lambda _: None) -> Brought:
    """Bring everything. Raises PrefixTaken, DamagedLog and StorageFault; what was brought stays for the next attempt."""
    await put(store, key(LOG, 0), encode_founding(prefix.founding))
    brought = Brought(len(source.beginning.topics))
    wal = _Wal(store, source.beginning, prefix.founding.nonce)
    for topic, index in _places(source):
        with _opened(source, topic, index) as partition:
            if partition is not None:
                await _bring(
                    store, Partway(partition, (topic.id, index), prefix.founding.nonce), prefix, wal, brought, seen
                )
    await wal.end()
    brought.wal_objects = wal.number
    beginning = replace(source.beginning, epochs=brought.epochs)
    for number, entry in enumerate(beginning.entries(wal.number), FIRST_ENTRY):
        nonce = _nonce(prefix.founding.nonce, f"entry {number}")
        await put(store, key(LOG, number), encode_log_entry(NumberedEntry(number, entry, nonce)))
    return brought


def weigh(source: Source, seen: Seen = lambda _: None) -> Brought:
    """What `bring` would bring; all of it is read. Raises DamagedLog and StorageFault."""
    brought = Brought(len(source.beginning.topics))
    for topic, index in _places(source):
        with _opened(source, topic, index) as partition:
            if partition is None:
                continue
            one = Partway(partition, (topic.id, index), bytes(NONCE_SIZE))
            _note(brought, one)
            if not is_whole(partition.topic, partition.config):
                for found in segments_of(one):
                    brought.segments += 1
                    _add(brought, len(found.log), seen)
            else:
                for run in runs_of(one, lambda _: 0):
                    _add(brought, len(run.pieces[0]), seen)
    return brought


def _places(source: Source) -> Iterator[tuple[StoredTopic, int]]:
    for topic in source.beginning.topics:
        for index in range(topic.partition_count):
            yield topic, index


@contextmanager
def _opened(source: Source, topic: StoredTopic, index: int) -> Iterator[Partition | None]:
    partition = source.open(topic, index)
    try:
        yield partition
    finally:
        if partition is not None:
            source.close(partition)


async def _bring(store: StoreAccess, one: Partway, prefix: Prefix, wal: _Wal, brought: Brought, seen: Seen) -> None:
    _note(brought, one)
    if not is_whole(one.partition.topic, one.partition.config):
        manifest = await bring_segments(store, one, prefix.there, lambda size: _add(brought, size, seen))
        brought.segments += len(manifest.segments) + sum(page.segment_count for page in manifest.pages)
        return
    if one.partition.log_start_offset > 0:
        start = Manifest(*one.place, 0, one.epoch, one.partition.log_start_offset, one.nonce_of("manifest", 0))
        await put(store, start.key, start.encode())
    for run in runs_of(one, lambda _: wal.number):
        await wal.add(run)
        _add(brought, len(run.pieces[0]), seen)


def _note(brought: Brought, one: Partway) -> None:
    brought.partitions += 1
    brought.ends[one.place] = one.partition.log_start_offset, one.partition.log_end_offset
    brought.epochs[one.place] = one.epoch


def _add(brought: Brought, size_bytes: int, seen: Seen) -> None:
    brought.size_bytes += size_bytes
    seen(size_bytes)


def _nonce(of_import: bytes, text: str) -> bytes:
    return hashlib.sha256(of_import + text.encode()).digest()[:NONCE_SIZE]


class _Wal:
    """The WAL of an import, object by object."""

    def __init__(self, store: StoreAccess, beginning: Beginning, nonce: bytes) -> None:
        self._store = store
        self._wal = beginning.wal
        self._nonce = nonce
        self._runs: list[NewRun] = []
        self._size_bytes = 0
        self.number = 0
        """Of the object that is gathered."""

    async def add(self, run: NewRun) -> None:
        self._runs.append(run)
        self._size_bytes += len(run.pieces[0])
        if self._size_bytes >= OBJECT_BYTES:
            await self.end()

    async def end(self) -> None:
        """Put the gathered runs into an object."""
        if not self._runs:
            return
        nonce = _nonce(self._nonce, f"wal {self.number}")
        data = wal_object.encode(Identity(self._wal, self.number, self.number + 1, nonce), self._runs)
        await put(self._store, key(self._wal.folder, self.number), data)
        self._runs, self._size_bytes = [], 0
        self.number += 1
