"""One partition on its way into a bucket: segments and a manifest, or runs of a WAL for what brokers keep there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from horolog.broker.bucket import manifest_pages
from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.manifest import Manifest
from horolog.broker.bucket.names import NONCE_SIZE
from horolog.broker.bucket.parallel import in_parallel
from horolog.broker.bucket.producers_behind import ProducersAt, known_at
from horolog.broker.bucket.shipped_partition import MOST_BYTES
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.wal_object import NewRun
from horolog.broker.log.indexes import AbortedTransaction
from horolog.broker.log.partition import Partition
from horolog.broker.on_record.cluster_file import Place
from horolog.broker.transfer.log_pieces import LogPiece, pieces_of
from horolog.broker.transfer.piece_objects import PieceFacts, PieceObjects, objects_of
from horolog.protocol.records.head import heads_in

AT_ONCE = 2
"""Pieces are held in memory."""
RUN_BYTES = 1 << 20

Seen = Callable[[int], None]
"""Called with the number of bytes that are done."""


class PrefixTaken(Exception):
    """The prefix has an object with other content than this import gives it."""


class Partway(NamedTuple):
    """A partition that is read, and what its objects are named by."""

    partition: Partition
    place: Place
    nonce: bytes
    """Of the whole import."""

    @property
    def epoch(self) -> int:
        return self.partition.leader_epoch

    def nonce_of(self, kind: str, number: int) -> bytes:
        """The same for every attempt, so that an import that was interrupted finds its objects."""
        topic_id, index = self.place
        text = f"{topic_id.hex()} {index} {kind} {number}"
        return hashlib.sha256(self.nonce + text.encode()).digest()[:NONCE_SIZE]


async def put(store: StoreAccess, key: str, data: bytes) -> None:
    """Raises PrefixTaken."""
    if await store.create(key, data) is not None:
        raise PrefixTaken(f"{key} has other content: what was copied has changed since, or the prefix is in use")


# -- segments


async def bring_segments(store: StoreAccess, one: Partway, there: frozenset[str], seen: Seen) -> Manifest:
    """Put the log of a partition into segments, and the manifest that names them. Raises PrefixTaken, DamagedLog and StorageFault.

    `there` has the keys of the objects that an earlier attempt has made.
    """
    named: list[BucketSegment] = []
    several: list[PieceObjects] = []
    for found in segments_of(one):
        named.append(found.segment)
        several.append(found)
        if len(several) == AT_ONCE:
            await _put_all(store, several, there, seen)
            several = []
    await _put_all(store, several, there, seen)
    manifest = Manifest(*one.place, 0, one.epoch, one.partition.log_start_offset, one.nonce_of("manifest", 0))
    manifest = replace(manifest, segments=tuple(named))
    while (turned := manifest_pages.turned(manifest, one.nonce_of("page", len(manifest.pages)))) is not None:
        manifest, page = turned
        await put(store, manifest.pages[-1].name.page_key(manifest.folder), page.encode())
    await put(store, manifest.key, manifest.encode())
    return manifest


def segments_of(one: Partway) -> Iterator[PieceObjects]:
    """The last one has the producers that the partition was opened with: they may be older than its log."""
    partition = one.partition
    around = PieceFacts(one.place, one.epoch, partition.config, partition.epochs.entries, _aborted(partition))
    before = ProducersAt(partition.segments[0].base_offset)
    waiting: LogPiece | None = None
    for piece in pieces_of(partition, MOST_BYTES):
        if waiting is not None:
            found = objects_of(waiting, around, before, one.nonce_of("segment", waiting.base_offset))
            before = found.producers
            yield found
        waiting = piece
    if waiting is not None:
        last = known_at(partition.producers, waiting.next_offset)
        yield objects_of(waiting, around, before, one.nonce_of("segment", waiting.base_offset), last)


def _aborted(partition: Partition) -> Sequence[AbortedTransaction]:
    return partition.aborted.overlapping(partition.segments[0].base_offset, partition.log_end_offset)


async def _put_all(store: StoreAccess, several: Sequence[PieceObjects], there: frozenset[str], seen: Seen) -> None:
    await in_parallel([partial(_put_segment, store, one, there, seen) for one in several], AT_ONCE)


async def _put_segment(store: StoreAccess, one: PieceObjects, there: frozenset[str], seen: Seen) -> None:
    """The `.meta` has the sums of the log and is made after it: if it is there, so is the log."""
    if one.segment.meta_key not in there:
        await put(store, one.segment.log_key, one.log)
    await put(store, one.segment.meta_key, one.meta)
    seen(len(one.log))


# -- runs of a WAL


def runs_of(one: Partway, first_number: Callable[[int], int]) -> Iterator[NewRun]:
    """The whole log as runs, each of one leader epoch; `first_number` gives a run of so many bytes its number in the WAL."""
    reached = -1
    for piece in pieces_of(one.partition, RUN_BYTES, is_of_one_epoch=True):
        base_offset = piece.base_offset if reached < 0 else reached
        reached = piece.next_offset
        times = [head.max_timestamp for head in heads_in(piece.data)]
        number = first_number(len(piece.data))
        yield NewRun(*one.place, one.epoch, number, base_offset, reached, times[0], max(times), [piece.data])
