"""Converts v0 and v1 up to v2 batches, for readers that know nothing older.

Plain messages that follow each other become batches of about `BATCH_BYTES`, each wrapper a batch with its codec, and batches of v2
already stays as it is, byte for byte. Offsets are kept with their gaps. A record of v0 is one of CreateTime without a time; under
LogAppendTime a batch holds records of one time. What v0 and v1 do not say is told as unknown: leader epoch, producer, sequence.

Checksums are held against the bytes first: a batch gets one of its own, behind which no damage would be seen.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from horolog.protocol.errors import DecodeError
from horolog.protocol.records import batch, head
from horolog.protocol.records.compression import DECOMPRESSED_LIMIT_BYTES, Codec, decompress
from horolog.protocol.records.entries import check_crc
from horolog.protocol.records.head import heads_in
from horolog.protocol.records.message_set import Message, iter_message, read_message
from horolog.protocol.records.plain_messages import Walked, walk_plain
from horolog.protocol.records.record import MAX_INT64, MIN_INT64, Record
from horolog.protocol.records.timestamps import TimestampType

BATCH_BYTES = 16 * 1024
"""The size of a batch of plain messages: as producers send by default."""

_RECORD_HEAD_BYTES = 28
"""The most that a record takes beside key and value, as long as times and offsets are not ages apart."""
_UNBOUNDED = 2**62
_LARGEST_DELTA = 2**31 - 1
_NEWEST_MAGIC = 2
_LOG_APPEND_TIME = int(TimestampType.LOG_APPEND_TIME)
_new_tuple = tuple.__new__  # a third of the cost of a named tuple's own constructor


class WrongChecksumError(DecodeError):
    """The bytes of a message are not those that its checksum was made of."""


class UpBatch(NamedTuple):
    """A batch of v2; `end` is where that ends, in the bytes given, of which it was made.

    `work_bytes` were looked at one by one: uncompressed, and none for batches of v2.
    """

    data: bytes | bytearray
    end: int
    next_offset: int
    work_bytes: int


def iter_up(
    data: bytes, *, batch_bytes: int = BATCH_BYTES, limit_bytes: int = DECOMPRESSED_LIMIT_BYTES
) -> Iterator[UpBatch]:
    """A slice of a log as v2 batches, one at a time, so that nobody pays for more than is taken.

    Ends silently where an entry is cut short; raises DecodeError behind the last batch in front of what cannot be read. The
    batches made of plain messages are no larger than `batch_bytes`, unless one message is.
    """
    position = 0
    while (entry := next(heads_in(data, position), None)) is not None:
        start, position = position, position + entry.size_bytes
        if entry.magic == _NEWEST_MAGIC:
            yield UpBatch(data[start:position], position, entry.last_offset + 1, 0)
            continue
        if not check_crc(data, start, entry.size_bytes, entry.magic):
            raise WrongChecksumError(f"the checksum of the message at {start} does not match")
        message = read_message(data, start)
        if message.is_wrapper:
            yield _of_wrapper(message, limit_bytes)
        else:
            messages = walk_plain(data, start, message.magic, checked=False)
            records, position = _gather(messages, batch_bytes - head.HEADER_BYTES)
            yield UpBatch(_encode(records, Codec.NONE), position, records[-1].offset + 1, position - start)


def _gather(messages: Iterable[Walked], most_bytes: int) -> tuple[list[Record], int]:
    """The messages, at least the first, that one batch can hold, and where the last of them ends.

    They have one timestamp type and one append time, their offsets ascend, and no distance is too large for a batch.
    """
    records: list[Record] = []
    end = first_type = first_time = next_offset = last_offset = earliest = latest = 0
    left_bytes = most_bytes
    for message in messages:
        record, stop = message
        offset, timestamp, timestamp_type, key, value, _ = record
        left_bytes -= _RECORD_HEAD_BYTES + (len(key) if key else 0) + (len(value) if value else 0)
        if not records:
            first_type, first_time, last_offset = timestamp_type, timestamp, offset + _LARGEST_DELTA
            earliest, latest = timestamp + MIN_INT64, timestamp + MAX_INT64
        elif (
            left_bytes < 0
            or timestamp_type != first_type
            or (timestamp != first_time and first_type == _LOG_APPEND_TIME)
            or not next_offset <= offset <= last_offset
            or not earliest <= timestamp <= latest
        ):
            break
        records.append(record)
        next_offset = offset + 1
        end = stop
    return records, end


def _of_wrapper(wrapper: Message, limit_bytes: int) -> UpBatch:
    """One batch, compressed together; several only where one cannot say it, which no client has ever written.

    The last one ends where the wrapper does, or who has read it would be given it again.
    """
    records, content_bytes = _inside(wrapper, limit_bytes)
    last_offset = max(records[-1].offset, wrapper.offset)
    parts: list[bytearray] = []
    done = 0
    while done < len(records):
        begin = done
        held, done = _gather(zip(records[begin:], range(begin + 1, len(records) + 1), strict=True), _UNBOUNDED)
        up_to = last_offset if done == len(records) else held[-1].offset
        if up_to - held[0].offset > _LARGEST_DELTA:
            raise DecodeError(f"a wrapper of offset {wrapper.offset} holds offset {held[0].offset}")
        parts.append(_encode(held, wrapper.codec, up_to))
    end = wrapper.position + wrapper.size_bytes
    return UpBatch(b"".join(parts), end, last_offset + 1, content_bytes)


def _inside(wrapper: Message, limit_bytes: int) -> tuple[list[Record], int]:
    """The records inside a wrapper, and how many bytes they were."""
    content = decompress(wrapper.codec, wrapper.value or b"", limit_bytes, wrapper.magic)
    walked = list(walk_plain(content, 0, wrapper.magic, checked=True))
    if not walked or walked[-1][1] != len(content):
        return list(iter_message(wrapper, limit_bytes)), len(content)  # names the fault, or knows the rare form
    if not wrapper.magic:
        return [record for record, _ in walked], len(content)
    outer_time, outer_type = wrapper.timestamp, int(wrapper.timestamp_type)
    distance = wrapper.offset - walked[-1][0].offset
    appended = outer_type == _LOG_APPEND_TIME
    records = [
        _new_tuple(Record, (distance + offset, outer_time if appended else timestamp, outer_type, key, value, ()))
        for (offset, timestamp, _, key, value, _), _ in walked
    ]
    return records, len(content)


def _encode(records: list[Record], codec: Codec, last_offset: int | None = None) -> bytearray:
    first = records[0]
    append_time = first.timestamp if first.timestamp_type == _LOG_APPEND_TIME else None
    return batch.encode_batch(records, codec, append_time=append_time, last_offset=last_offset)
