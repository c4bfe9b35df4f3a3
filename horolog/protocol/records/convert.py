"""Converts between the formats: down for readers that know only older ones, up or down for a log of one format.

Going down: v1 has no headers, no producer and no control batches, v0 no times either, and neither has zstd. Headers are
dropped; so are control batches, which old consumers would take for data. What was compressed stays compressed with its
codec, batch by batch, as 3.9 does it; what was plain becomes plain messages.
"""

from collections.abc import Sequence

from horolog.protocol.errors import ErrorCode, ProtocolError
from horolog.protocol.primitives import Buffer
from horolog.protocol.records import batch, message_set
from horolog.protocol.records.compression import DECOMPRESSED_LIMIT_BYTES, Codec, codec_of
from horolog.protocol.records.entries import records_of_entry
from horolog.protocol.records.head import heads_in
from horolog.protocol.records.record import Record
from horolog.protocol.records.timestamps import TimestampType


class ConversionError(ProtocolError):
    """The records cannot be said in the older format; `code` is what the reader is told."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def convert_down(data: Buffer, magic: int, first_offset: int = 0, limit_bytes: int = DECOMPRESSED_LIMIT_BYTES) -> bytes:
    """A slice of a log in formats no newer than `magic`, without the converted plain records below `first_offset`.

    May be empty although records were there: control batches only. Stops in front of what cannot be converted, and raises
    ConversionError only when that comes first, so that a reader gets all that it can read.
    """
    parts: list[Buffer] = []
    for entry in heads_in(data):
        if entry.magic <= magic:
            parts.append(memoryview(data)[entry.position : entry.position + entry.size_bytes])
            continue
        if entry.is_control:
            continue
        codec = codec_of(entry.attributes, entry.magic)
        if codec == Codec.ZSTD:
            if parts:
                break
            raise ConversionError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd records have no older format")
        records = list(records_of_entry(data, entry, limit_bytes))
        if codec == Codec.NONE:
            records = [record for record in records if record.offset >= first_offset]
        if records:
            parts.append(encode(records, magic, codec))
    return b"".join(parts)


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
