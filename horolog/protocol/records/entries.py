"""Reads what follows the heads of entries, v2 batches and v0 and v1 messages in any mixture: records and checksums."""

from collections.abc import Iterator

from horolog.protocol.primitives import Buffer
from horolog.protocol.records import batch, message_set
from horolog.protocol.records.compression import DECOMPRESSED_LIMIT_BYTES
from horolog.protocol.records.head import BATCH_MAGIC, NO_OFFSET, Head, heads_in
from horolog.protocol.records.record import Record


def base_offset_of(data: Buffer, entry: Head, limit_bytes: int = DECOMPRESSED_LIMIT_BYTES) -> int:
    """The offset of an entry's first record; a wrapper is opened for it."""
    if entry.base_offset != NO_OFFSET:
        return entry.base_offset
    return next(records_of_entry(data, entry, limit_bytes)).offset


def check_crc(data: Buffer, position: int, size_bytes: int, magic: int) -> bool:
    """Whether the entry's checksum is right; its size must have been checked before, as `heads_in` does."""
    if magic == BATCH_MAGIC:
        return batch.crc_matches(data, position, size_bytes)
    return message_set.crc_matches(data, position, size_bytes)


def records_of_entry(data: Buffer, entry: Head, limit_bytes: int = DECOMPRESSED_LIMIT_BYTES) -> Iterator[Record]:
    if entry.magic == BATCH_MAGIC:
        return batch.iter_batch(data, entry.position, limit_bytes)
    return message_set.iter_message(message_set.read_message(data, entry.position), limit_bytes)


def iter_records(
    data: Buffer, start: int = 0, *, include_control: bool = False, limit_bytes: int = DECOMPRESSED_LIMIT_BYTES
) -> Iterator[Record]:
    """All records, batches and wrappers opened one at a time; transaction markers and the like only when asked for."""
    for entry in heads_in(data, start):
        if include_control or not entry.is_control:
            yield from records_of_entry(data, entry, limit_bytes)
