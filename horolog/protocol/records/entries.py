"""Walks over the entries of a log or record set, which are v2 batches and v0 and v1 messages in any mixture.

The three formats agree in their first bytes, see `head`.
"""

from collections.abc import Iterator
from typing import NamedTuple

from horolog.protocol.errors import DecodeError
from horolog.protocol.primitives import Buffer
from horolog.protocol.records import batch, head, message_set
from horolog.protocol.records.compression import CODEC_MASK, DECOMPRESSED_LIMIT_BYTES
from horolog.protocol.records.head import (
    HEADER_BYTES,
    LENGTH_ENDS_AT,
    MESSAGE_TYPE_AND_TIME,
    PREFIX,
    PREFIX_BYTES,
    SMALLEST_MESSAGE_LENGTH,
)
from horolog.protocol.records.record import Record
from horolog.protocol.records.timestamps import NO_TIMESTAMP

NO_OFFSET = -1
NO_EPOCH = -1
_NEWEST_MAGIC = 2
_SMALLEST_LENGTH = (*SMALLEST_MESSAGE_LENGTH.values(), HEADER_BYTES - LENGTH_ENDS_AT)


class Entry(NamedTuple):
    """One whole batch or message. `base_offset` is -1 for a wrapper: only its content tells, see `base_offset_of`."""

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    magic: int
    max_timestamp: int  # -1: none; an empty batch, as the cleaner leaves them behind, has none whatever it says
    attributes: int
    leader_epoch: int

    @property
    def is_control(self) -> bool:
        return self.magic == _NEWEST_MAGIC and bool(self.attributes & batch.CONTROL_BIT)

    @property
    def is_compressed(self) -> bool:
        return bool(self.attributes & CODEC_MASK)


def iter_entries(data: Buffer, start: int = 0) -> Iterator[Entry]:
    """The entries that lie whole in `data`: ends silently where one is cut short, with DecodeError where none can be."""
    position = start
    end = len(data)
    while position + PREFIX_BYTES <= end:
        offset, size, magic = PREFIX.unpack_from(data, position)
        if not 0 <= magic <= _NEWEST_MAGIC or size < _SMALLEST_LENGTH[magic]:
            size += LENGTH_ENDS_AT
            raise DecodeError(f"no batch or message at {position}: magic {magic}, {size} bytes")
        size += LENGTH_ENDS_AT
        if position + size > end:
            return
        if magic == _NEWEST_MAGIC:
            yield _batch_entry(data, position, size)
        else:
            yield _message_entry(data, position, size, offset, magic)
        position += size


def _batch_entry(data: Buffer, position: int, size_bytes: int) -> Entry:
    fields = head.HEADER.unpack_from(data, position)
    base_offset, _, leader_epoch, magic, _, attributes, last_offset_delta, _, max_timestamp, _, _, _, count = fields
    return Entry(
        position,
        size_bytes,
        base_offset,
        base_offset + last_offset_delta,
        magic,
        max_timestamp if count else NO_TIMESTAMP,
        attributes,
        leader_epoch,
    )


def _message_entry(data: Buffer, position: int, size_bytes: int, offset: int, magic: int) -> Entry:
    attributes, timestamp = MESSAGE_TYPE_AND_TIME.unpack_from(data, position + head.MESSAGE_ATTRIBUTES_AT)
    base_offset = NO_OFFSET if attributes & CODEC_MASK else offset
    return Entry(
        position, size_bytes, base_offset, offset, magic, timestamp if magic else NO_TIMESTAMP, attributes, NO_EPOCH
    )


def base_offset_of(data: Buffer, entry: Entry, limit_bytes: int = DECOMPRESSED_LIMIT_BYTES) -> int:
    """The offset of an entry's first record; a wrapper is opened for it."""
    if entry.base_offset != NO_OFFSET:
        return entry.base_offset
    return next(records_of_entry(data, entry, limit_bytes)).offset


def check_crc(data: Buffer, position: int, size_bytes: int, magic: int) -> bool:
    """Whether the entry's checksum is right; its size must have been found possible before, as `iter_entries` does."""
    if magic == _NEWEST_MAGIC:
        return batch.crc_matches(data, position, size_bytes)
    return message_set.crc_matches(data, position, size_bytes)


def records_of_entry(data: Buffer, entry: Entry, limit_bytes: int = DECOMPRESSED_LIMIT_BYTES) -> Iterator[Record]:
    if entry.magic == _NEWEST_MAGIC:
        return batch.iter_batch(data, entry.position, limit_bytes)
    return message_set.iter_message(message_set.read_message(data, entry.position), limit_bytes)


def iter_records(
    data: Buffer, start: int = 0, *, include_control: bool = False, limit_bytes: int = DECOMPRESSED_LIMIT_BYTES
) -> Iterator[Record]:
    """All records, batches and wrappers opened one at a time; transaction markers and the like only when asked for."""
    for entry in iter_entries(data, start):
        if include_control or not entry.is_control:
            yield from records_of_entry(data, entry, limit_bytes)
