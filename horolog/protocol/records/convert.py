"""Converts between the formats: down for readers that know only older ones, up or down for a log of one format.

Going down: v1 has no headers, no producer and no control batches, v0 no times either, and neither has zstd. Headers are
dropped; so are control batches, which old consumers would take for data. What was compressed stays compressed with its
codec, batch by batch, as 3.9 does it; what was plain becomes plain messages.
"""

import sys
from collections.abc import Sequence

from horolog.protocol.errors import ErrorCode, ProtocolError
from horolog.protocol.primitives import Buffer
from horolog.protocol.records import batch, message_set
from horolog.protocol.records.compression import DECOMPRESSED_LIMIT_BYTES, Codec, codec_of
from horolog.protocol.records.entries import records_of_entry
from horolog.protocol.records.head import Head, heads_in
from horolog.protocol.records.record import Record
from horolog.protocol.records.timestamps import TimestampType


class ConversionError(ProtocolError):
    """The records cannot be expressed in the older format; `code` is the error for the reader."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def convert_down(
    data: Buffer,
    magic: int,
    first_offset: int = 0,
    *,
    max_bytes: int = sys.maxsize,
    limit_bytes: int = DECOMPRESSED_LIMIT_BYTES,
) -> bytes:
    """A slice of a log in formats no newer than `magic`, without the converted plain records below `first_offset`.

    Records grow on their way down, up to five times: what comes after the first batch or message stays within `max_bytes`. May be
    empty although records were there: control batches only. Stops before what cannot be converted, and raises ConversionError
    only when that comes first, so that a reader gets all that it can read.
    """
    parts: list[Buffer] = []
    size_bytes = 0
    for entry in heads_in(data):
        try:
            part = _entry_down(data, entry, magic, first_offset, limit_bytes)
        except ConversionError:
            if parts:
                break
            raise
        size_bytes += len(part)
        if parts and size_bytes > max_bytes:
            break
        if part:
            parts.append(part)
    return b"".join(parts)


def _entry_down(data: Buffer, entry: Head, magic: int, first_offset: int, limit_bytes: int) -> Buffer:
    """A batch or message in a format no newer than `magic`; empty if old readers see nothing of it."""
    if entry.magic <= magic:
        return memoryview(data)[entry.position : entry.position + entry.size_bytes]
    if entry.is_control:
        return b""
    codec = codec_of(entry.attributes, entry.magic)
    if codec == Codec.ZSTD:
        raise ConversionError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd records have no older format")
    records = list(records_of_entry(data, entry, limit_bytes))
    if codec == Codec.NONE:
        records = [record for record in records if record.offset >= first_offset]
    return encode(records, magic, codec) if records else b""


def encode(records: Sequence[Record], magic: int, codec: Codec) -> Buffer:
    """Records of one timestamp type in any format: a set of plain messages, a wrapper or a batch."""
    if magic == 2:
        appended = records[0].timestamp_type == TimestampType.LOG_APPEND_TIME
        return batch.encode_batch(records, codec, append_time=records[0].timestamp if appended else None)
    if codec == Codec.NONE:
        return message_set.encode_set(records, magic)
    if codec == Codec.ZSTD:
        raise ConversionError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd records have no older format")
    return message_set.encode_wrapper(records, magic, codec)
