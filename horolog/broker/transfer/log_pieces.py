"""The log of a partition in pieces: whole batches of one segment that lie one behind the other, with Kafka's own bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from horolog.broker.log.integrity import Batch, scan
from horolog.broker.log.partition import Partition
from horolog.broker.log.segments import Segment


class DamagedLog(Exception):
    """A log has bytes that are no batches. What readers skip cannot be carried over."""


class LogPiece(NamedTuple):
    """A part of a segment."""

    base_offset: int
    """That of the segment, or the first offset of the batches."""
    next_offset: int
    data: bytes
    epoch: int
    """Of the leader that wrote the last batch; -1 if it is not known."""
    created_ms: int


class _Cut(NamedTuple):
    """Where a piece begins, and what its end is so far."""

    position: int
    base_offset: int
    end: int
    next_offset: int
    epoch: int


def pieces_of(partition: Partition, most_bytes: int, *, is_of_one_epoch: bool = False) -> Iterator[LogPiece]:
    """The pieces of a partition's log, none longer than that unless one batch is. Raises DamagedLog and StorageFault.

    Each has batches of one leader epoch, if that is wanted. The first one begins at the start of the log, even if compaction has emptied
    the segments there: positions of groups may lie before the first record.
    """
    lowest = partition.log_start_offset
    for segment in partition.segments:
        for cut in _cuts(segment, most_bytes, is_of_one_epoch=is_of_one_epoch):
            data = segment.log.pread(cut.end - cut.position, cut.position)
            yield LogPiece(min(cut.base_offset, lowest), cut.next_offset, data, cut.epoch, segment.created_ms)
            lowest = cut.next_offset


def _cuts(segment: Segment, most_bytes: int, *, is_of_one_epoch: bool) -> Iterator[_Cut]:
    cut: _Cut | None = None
    for batch in _batches(segment):
        is_next = cut is not None and (
            batch.end - cut.position > most_bytes or (is_of_one_epoch and batch.leader_epoch != cut.epoch)
        )
        if cut is not None and is_next:
            yield cut
        if cut is None:
            cut = _Cut(batch.position, segment.base_offset, batch.end, batch.last_offset + 1, batch.leader_epoch)
        elif is_next:
            cut = _Cut(batch.position, batch.base_offset, batch.end, batch.last_offset + 1, batch.leader_epoch)
        else:
            cut = cut._replace(end=batch.end, next_offset=batch.last_offset + 1, epoch=batch.leader_epoch)
    if cut is not None:
        yield cut


def _batches(segment: Segment) -> Iterator[Batch]:
    for span in scan(
        segment.log.pread,
        segment.size_bytes,
        first_offset=segment.base_offset,
        end_offset=segment.next_offset,
    ):
        if not isinstance(span, Batch):
            raise DamagedLog(f"{segment.log.path}: bytes {span.position} up to {span.end}: {span.reason}")
        yield span
