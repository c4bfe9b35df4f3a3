"""Reads v0 and v1 as v2: a piece of a log is converted on its first read, and cached for later readers.

A log is converted in chunks, which begin where a reader begins and end with the message that reaches over the next multiple of
`CHUNK_BYTES`: readers that begin at different places soon share them. Reads of less than a chunk get batches of their own. No
batch is ever cut, and v2 batches stay unchanged.
"""

import sys
from collections.abc import Iterator
from typing import NamedTuple

from horolog.broker.log.segments import reader
from horolog.broker.log.segments.converted_chunks import Chunk
from horolog.broker.log.segments.segment import Segment
from horolog.broker.log.segments.verification import verify
from horolog.broker.log.storage import StorageFault
from horolog.protocol.errors import DecodeError
from horolog.protocol.records.convert_up import (
    BATCH_BYTES,
    EpochOf,
    UpBatch,
    WrongChecksumError,
    iter_up,
    unknown_epoch,
)

CHUNK_BYTES = 64 * 1024
AT_ONCE_BYTES = 1024 * 1024

OLD_FORMATS = 0b011
"""In `Segment.magics`: v0 or v1 occurs."""


class Allowance:
    """How much a request may still have converted, in bytes of uncompressed messages; its response has what that gives.

    `epoch_of` is that of the partition that is read; `room_bytes` is how much of the answer may still be in memory.
    """

    __slots__ = ("epoch_of", "left_bytes", "room_bytes")

    def __init__(
        self, left_bytes: int = AT_ONCE_BYTES, epoch_of: EpochOf = unknown_epoch, room_bytes: int = sys.maxsize
    ) -> None:
        self.left_bytes = left_bytes
        self.epoch_of = epoch_of
        self.room_bytes = room_bytes


class ConvertedSlice(NamedTuple):
    """The reader's data, the place in the log where it will go on, and the offset that it will request then."""

    data: bytes
    end: int
    next_offset: int


_NOTHING = ConvertedSlice(b"", -1, -1)


def read_converted(
    segment: Segment, position: int, end: int, max_bytes: int, allowance: Allowance, *, at_least_one: bool
) -> ConvertedSlice:
    """Batches made from the log between two batch boundaries, at most `max_bytes`, unless the first one is larger and required.

    Raises BeingRescanned for damage, and DecodeError for a whole batch that cannot be read, whichever comes first.
    """
    taken: list[UpBatch] = []
    at, room = position, max_bytes
    while at < end and (room > 0 or (at_least_one and not taken)):
        must = at_least_one and not taken
        try:
            batches = _batches_at(segment, at, end, max_bytes, allowance, needed=must)
        except (StorageFault, DecodeError):
            if not taken:
                raise
            break
        fitting = _that_fit(batches, room) or batches[:must]
        if not fitting or (taken and len(fitting) < len(batches)):
            break  # next time the chunk is found again
        taken += fitting
        at += fitting[-1].end
        room -= sum(len(one.data) for one in fitting)
        if len(fitting) < len(batches) or max_bytes < CHUNK_BYTES:
            break
    if not taken:
        return _NOTHING
    return ConvertedSlice(b"".join([one.data for one in taken]), at, taken[-1].next_offset)


def _that_fit(batches: list[UpBatch], room: int) -> list[UpBatch]:
    for number, one in enumerate(batches):
        room -= len(one.data)
        if room < 0:
            return batches[:number]
    return batches


def _batches_at(
    segment: Segment, position: int, end: int, max_bytes: int, allowance: Allowance, *, needed: bool
) -> list[UpBatch]:
    """The batches of a chunk, or a few small ones for a smaller read; none if the allowance is used up, unless they are `needed`."""
    if max_bytes < CHUNK_BYTES:
        return list(_convert(segment, position, end, allowance, max_bytes))
    chunks = segment.folder.converted
    chunk = chunks.get(segment.number, position)
    if chunk is not None and position + chunk.batches[-1].end <= end:
        return chunk.batches
    if allowance.left_bytes <= 0 and not needed:
        return []
    batches = list(_convert(segment, position, end, allowance))
    if any(one.work_bytes for one in batches):
        chunks.put(segment.number, position, Chunk(batches, sum(len(one.data) for one in batches)))
    return batches


def _convert(
    segment: Segment, start: int, end: int, allowance: Allowance, most_bytes: int | None = None
) -> Iterator[UpBatch]:
    """The batches up to the end of a chunk, fewer when the allowance is used up; if `most_bytes` are given, small ones up to there."""
    position, given_bytes = start, 0
    chunk_end = min(end, (start // CHUNK_BYTES + 1) * CHUNK_BYTES)
    batch_bytes = BATCH_BYTES if most_bytes is None else min(BATCH_BYTES, most_bytes)
    while position < chunk_end:
        size = max(chunk_end - position, reader.batch_size(segment, position))
        if segment.unverified is not None:
            verify(segment, position, position + size)
        begin = position
        try:
            for one in iter_up(segment.log.pread(size, begin), batch_bytes=batch_bytes, epoch_of=allowance.epoch_of):
                position = begin + one.end
                allowance.left_bytes -= one.work_bytes
                given_bytes += len(one.data)
                yield one._replace(end=position - start)
                if allowance.left_bytes <= 0 or (most_bytes is not None and given_bytes >= most_bytes):
                    return
        except DecodeError as error:
            if position > start:
                return
            if isinstance(error, WrongChecksumError):
                raise segment.suspected(f"damaged at {position}: {error}") from error
            raise
        if position == begin:
            raise reader.misfit(segment, position)


def convert_whole(data: bytes, epoch_of: EpochOf) -> bytes:
    """Batches made of the whole entries of a slice. Raises DecodeError if the first cannot be read."""
    parts: list[bytes | bytearray] = []
    try:
        parts.extend(one.data for one in iter_up(data, epoch_of=epoch_of))
    except DecodeError:
        if not parts:
            raise
    return b"".join(parts)
