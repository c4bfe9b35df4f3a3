"""Converts v0 and v1 up to v2 batches, for readers that know nothing older.

Plain messages that follow each other become batches of about `BATCH_BYTES`, each wrapper a batch with its codec, and v2 batches
stay the same, byte for byte. Offsets are kept with their gaps. A record of v0 is one of CreateTime without a time; under
LogAppendTime a batch holds records of one time. What v0 and v1 do not have is marked as unknown: producer and sequence, and the
leader epoch unless the log knows it.

Checksums are verified first: a batch gets one of its own, which would hide any damage.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from horolog.protocol.errors import DecodeError
from horolog.protocol.records import head
from horolog.protocol.records.batch import BatchHeader, assemble
from horolog.protocol.records.compression import DECOMPRESSED_LIMIT_BYTES, Codec, decompress
from horolog.protocol.records.entries import check_crc
from horolog.protocol.records.head import heads_in
from horolog.protocol.records.message_set import SetEntry, inner_messages, read_message
from horolog.protocol.records.plain_messages import LARGEST_DELTA, UNBOUNDED, AsRecords, as_records
from horolog.protocol.records.timestamps import TIMESTAMP_TYPE_BIT, TimestampType

BATCH_BYTES = 16 * 1024
"""The size of a batch of plain messages: the default of producers."""

_NEWEST_MAGIC = 2

EpochOf = Callable[[int], int]
"""The leader epoch in which an offset was written."""


def unknown_epoch(offset: int) -> int:  # noqa: ARG001 - an EpochOf
    return head.NO_EPOCH


class WrongChecksumError(DecodeError):
    """The checksum of a message does not match its bytes."""


class UpBatch(NamedTuple):
    """A batch of v2; `end` is where its source ends in the given bytes.

    `work_bytes`: how many uncompressed bytes were read one by one; none for v2 batches.
    """

    data: bytes | bytearray
    end: int
    next_offset: int
    work_bytes: int


def iter_up(
    data: bytes,
    *,
    batch_bytes: int = BATCH_BYTES,
    limit_bytes: int = DECOMPRESSED_LIMIT_BYTES,
    epoch_of: EpochOf = unknown_epoch,
) -> Iterator[UpBatch]:
    """A slice of a log as v2 batches, one at a time, so that the caller pays only for those that it takes.

    Ends silently where an entry is cut short; raises DecodeError after the last batch before an entry that cannot be read. The
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
            yield _of_wrapper(message, limit_bytes, epoch_of)
        else:
            held = as_records(data, start, message.magic, batch_bytes - head.HEADER_BYTES)
            position, last_offset = held.end, held.last_offset
            batch = _batch(held, Codec.NONE, 0, last_offset, epoch_of)
            yield UpBatch(batch, position, last_offset + 1, position - start)


def _of_wrapper(wrapper: SetEntry, limit_bytes: int, epoch_of: EpochOf) -> UpBatch:
    """One batch, compressed together; several only where one cannot express it, which no client has ever written.

    The last one ends where the wrapper does; otherwise a reader would get it again.
    """
    content = decompress(wrapper.codec, wrapper.value or b"", limit_bytes, wrapper.magic)
    append_time = wrapper.timestamp if wrapper.timestamp_type == TimestampType.LOG_APPEND_TIME else None
    held: list[AsRecords] = []
    position = 0
    while position < len(content) or not held:
        one = as_records(content, position, wrapper.magic, UNBOUNDED, wrapped=True, append_time=append_time)
        if not one.count:
            inner_messages(wrapper, limit_bytes)  # which names the fault
            raise DecodeError(f"the messages of a wrapper end at {position} of {len(content)} bytes")
        held.append(one)
        position = one.end
    distance = wrapper.offset - held[-1].last_offset if wrapper.magic else 0
    last_offset = max(held[-1].last_offset + distance, wrapper.offset)
    ends = [*[one.last_offset + distance for one in held[:-1]], last_offset]
    parts = [_batch(one, wrapper.codec, distance, end, epoch_of) for one, end in zip(held, ends, strict=True)]
    end = wrapper.position + wrapper.size_bytes
    return UpBatch(b"".join(parts), end, last_offset + 1, len(content))


def _batch(held: AsRecords, codec: Codec, distance: int, last_offset: int, epoch_of: EpochOf) -> bytearray:
    """The batch of records that reaches to `last_offset`; their own offsets are `distance` too small."""
    base_offset = held.first_offset + distance
    if last_offset - base_offset > LARGEST_DELTA:
        raise DecodeError(f"a wrapper of offset {last_offset} holds offset {base_offset}")
    header = BatchHeader(
        base_offset=base_offset,
        length=0,
        leader_epoch=epoch_of(base_offset),
        magic=_NEWEST_MAGIC,
        crc=0,
        attributes=codec | TIMESTAMP_TYPE_BIT if held.is_appended else codec,
        last_offset_delta=last_offset - base_offset,
        base_timestamp=held.base_timestamp,
        max_timestamp=held.max_timestamp,
        producer_id=head.NO_PRODUCER,
        producer_epoch=-1,
        base_sequence=-1,
        count=held.count,
    )
    return assemble(header, held.records)
