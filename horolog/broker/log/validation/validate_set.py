"""Checks a set of v0 and v1 messages as a 0.10 broker does, and gives it its place in the log.

- Plain v1 messages keep their bytes but for the offset, which the crc does not cover. Under LogAppendTime each gets time, type
  and crc anew.
- One v1 wrapper whose inner offsets count from 0 keeps its compressed bytes: it gets the offset of its last message and the
  largest of the inner times, or the append time.
- Everything else is rewritten: v0 becomes v1 (unless the topic keeps v0), several messages of which one is a wrapper become
  one wrapper with the last one's codec, and so does what the topic wants compressed otherwise.
- A message that the set's end cuts off is passed over, as clients of the time asked of brokers.

Stricter than 0.10: lengths that run past the message, magic numbers that do not exist, and inner messages that claim an append
time are refused, and times are judged in compressed v0 sets too.
"""

import struct
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from operator import attrgetter

from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.validation.plain_set import number, read_offsets, read_plain, stamp
from horolog.broker.log.validation.validation_result import (
    MOST_RECORD_ERRORS,
    Mark,
    RefusedSet,
    Validated,
    nothing,
    refuse_records,
)
from horolog.protocol.errors import DecodeError, ErrorCode
from horolog.protocol.primitives import Buffer
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.compression import (
    CODEC_MASK,
    CODEC_NAMES,
    Codec,
    TooMuchDataError,
    UnknownCodecError,
    decompress,
)
from horolog.protocol.records.head import MAGIC_AT, MESSAGE_ATTRIBUTES_AT, OFFSET, PREFIX_BYTES, SMALLEST_MESSAGE_LENGTH
from horolog.protocol.records.message_set import (
    SetEntry,
    crc_matches,
    encode_message,
    encode_wrapper,
    inner_messages,
    is_cut_short,
    read_message,
    write_crc,
)
from horolog.protocol.records.record import Record
from horolog.protocol.records.timestamps import (
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    Accepted,
    TimestampType,
    all_accepted,
    describe_refusal,
    is_accepted_in_set,
)

PRODUCER_CODEC = "producer"  # the setting that keeps whatever codec the producer chose
PLAIN_CODECS = frozenset({PRODUCER_CODEC, *(name for name, codec in CODEC_NAMES.items() if codec == Codec.NONE)})
_TYPE_AND_TIME = struct.Struct(">Bq")
_new_tuple = tuple.__new__  # a third of the cost of a named tuple's own constructor


def check_set(records: Buffer, next_offset: int, config: TopicConfig, now_ms: int, *, leader_epoch: int) -> Validated:
    try:
        verdict = _check_in_place(records, next_offset, config, now_ms)
        return verdict or _check_any(records, next_offset, config, now_ms, leader_epoch)
    except DecodeError as error:
        raise refuse_bytes(error, ErrorCode.CORRUPT_MESSAGE) from error


def _check_in_place(records: Buffer, next_offset: int, config: TopicConfig, now_ms: int) -> Validated | None:
    """The fast path, for valid v1 sets that keep their bytes; None for all others."""
    if config.stored_magic not in (None, 1) or len(records) <= MESSAGE_ATTRIBUTES_AT or records[MAGIC_AT] != 1:
        return None
    if records[MESSAGE_ATTRIBUTES_AT] & CODEC_MASK:
        return _check_wrapper(bytes(records), next_offset, config, now_ms)
    if config.compression in PLAIN_CODECS:
        return _check_plain(bytes(records), next_offset, config, now_ms)
    return None


def refuse_bytes(error: DecodeError, code: ErrorCode) -> RefusedSet:
    """The refusal of unreadable bytes: with `code`, unless the codec or the size is the cause."""
    if isinstance(error, UnknownCodecError):
        code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    elif isinstance(error, TooMuchDataError):
        code = ErrorCode.MESSAGE_TOO_LARGE
    return RefusedSet(code, str(error))


def check_size(size_bytes: int, config: TopicConfig) -> None:
    if size_bytes > config.max_message_bytes:
        raise RefusedSet(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{size_bytes} bytes are more than max.message.bytes, {config.max_message_bytes}",
        )


def _check_plain(data: bytes, next_offset: int, config: TopicConfig, now_ms: int) -> Validated | None:
    found = read_plain(data, config.max_message_bytes, keys_needed=config.compact)
    if found is None:
        return None
    starts, timestamps = found
    append_time = NO_TIMESTAMP
    kept = bytearray(data)
    if config.log_append_time:
        append_time = now_ms
        timestamps = (now_ms,) * len(starts)
        stamp(kept, starts, now_ms)
    elif _is_untimely(timestamps, config, now_ms):
        return None
    number(kept, starts, next_offset)
    return _stored(kept, starts, timestamps, next_offset, append_time, config)


def _check_wrapper(data: bytes, next_offset: int, config: TopicConfig, now_ms: int) -> Validated | None:
    """A wrapper may stay as it is if it is alone, in the codec that the topic wants, and its messages are numbered from 0."""
    if is_cut_short(data, 0):
        return None
    wrapper = read_message(data)
    if (
        wrapper.value is None
        or wrapper.timestamp_type != TimestampType.CREATE_TIME
        or CODEC_NAMES.get(config.compression, wrapper.codec) != wrapper.codec
        or wrapper.size_bytes > config.max_message_bytes
        or not is_cut_short(data, wrapper.size_bytes)
        or not crc_matches(data, 0, wrapper.size_bytes)
    ):
        return None
    content = decompress(wrapper.codec, wrapper.value, magic=wrapper.magic)
    found = read_plain(content, len(content), keys_needed=config.compact)
    if found is None:
        return None
    starts, timestamps = found
    if tuple(read_offsets(content, starts)) != tuple(range(len(starts))):
        return None
    if not config.log_append_time and _is_untimely(timestamps, config, now_ms):
        return None
    timestamp = now_ms if config.log_append_time else max(NO_TIMESTAMP, *timestamps)
    last_offset = next_offset + len(starts) - 1
    attributes = wrapper.attributes | (TIMESTAMP_TYPE_BIT if config.log_append_time else 0)
    kept = bytearray(data[: wrapper.size_bytes])
    OFFSET.pack_into(kept, 0, last_offset)
    _TYPE_AND_TIME.pack_into(kept, MESSAGE_ATTRIBUTES_AT, attributes, timestamp)
    write_crc(kept)
    return _stored_whole(kept, next_offset, last_offset, timestamp, now_ms if config.log_append_time else None, magic=1)


def _is_untimely(timestamps: Sequence[int], config: TopicConfig, now_ms: int) -> bool:
    """Whether some time may be unacceptable and needs a closer check."""
    earliest = min(timestamps)
    bounds = config.before_max_ms, config.after_max_ms
    return earliest < NO_TIMESTAMP or not all_accepted(earliest, max(timestamps), now_ms, *bounds)


def _check_any(records: Buffer, next_offset: int, config: TopicConfig, now_ms: int, leader_epoch: int) -> Validated:
    """The slow path: every message becomes a value, the rules are checked one by one, and the set is mostly rewritten."""
    data = bytes(records)
    outer = _split(data, config)
    append_time = now_ms if config.log_append_time else None
    if not outer:
        magic = 1 if config.stored_magic is None else config.stored_magic
        return nothing(next_offset, NO_TIMESTAMP if append_time is None else append_time, magic)
    inner: list[SetEntry] = []
    for message in outer:
        inner += _open(message)
    _check_types(outer, inner)
    _check_messages(inner, config, now_ms)
    source = next((message.codec for message in reversed(outer) if message.is_wrapper), Codec.NONE)
    records_of_set = [
        Record(next_offset + index, message.timestamp, TimestampType.CREATE_TIME, message.key, message.value)
        for index, message in enumerate(inner)
    ]
    return store(records_of_set, source, config, append_time, leader_epoch)


def _split(data: bytes, config: TopicConfig) -> list[SetEntry]:
    """The whole messages of a set, of possible sizes and with the right crc."""
    messages: list[SetEntry] = []
    position = 0
    while not is_cut_short(data, position):
        message = read_message(data, position)
        check_size(message.size_bytes, config)
        if not crc_matches(data, position, message.size_bytes):
            raise DecodeError(f"the crc of message {len(messages)} does not match")
        messages.append(message)
        position += message.size_bytes
    if len(data) - position >= PREFIX_BYTES and data[position + MAGIC_AT] not in SMALLEST_MESSAGE_LENGTH:
        raise DecodeError(f"magic {data[position + MAGIC_AT]} is not that of a message")
    return messages


def _open(message: SetEntry) -> list[SetEntry]:
    if not message.is_wrapper:
        return [message]
    content, inner = inner_messages(message)
    for index, each in enumerate(inner):
        if not crc_matches(content, each.position, each.size_bytes):
            raise DecodeError(f"the crc of inner message {index} does not match")
    return inner


def _check_types(outer: list[SetEntry], inner: list[SetEntry]) -> None:
    """The bit of LogAppendTime is the broker's to set, on messages, on wrappers and inside of them."""
    if any(message.timestamp_type == TimestampType.LOG_APPEND_TIME for message in outer):
        raise RefusedSet(ErrorCode.INVALID_TIMESTAMP, "a producer cannot set the timestamp type LogAppendTime")
    errors = [
        (index, "a message inside a wrapper cannot have the timestamp type LogAppendTime")
        for index, message in enumerate(inner)
        if message.timestamp_type == TimestampType.LOG_APPEND_TIME
    ]
    if errors:
        raise refuse_records(ErrorCode.INVALID_TIMESTAMP, errors)


def _check_messages(messages: list[SetEntry], config: TopicConfig, now_ms: int) -> None:
    """Keys, and under CreateTime the times; a message without a time has -1, unless it is stored without one as well."""
    times = Accepted(now_ms, config.before_max_ms, config.after_max_ms)
    if not config.log_append_time:
        untimely = [
            (index, message.timestamp)
            for index, message in enumerate(messages)
            if not is_accepted_in_set(message.timestamp, times)
            and not (message.magic == 0 and config.stored_magic == 0)
        ]
        if untimely:
            errors = [
                (index, describe_refusal(timestamp, times) if count < MOST_RECORD_ERRORS else "")
                for count, (index, timestamp) in enumerate(untimely)
            ]
            raise refuse_records(ErrorCode.INVALID_TIMESTAMP, errors)
    if config.compact:
        keyless = [index for index, message in enumerate(messages) if message.key is None]
        if keyless:
            errors = [(index, "a compacted topic accepts no message without a key") for index in keyless]
            raise refuse_records(ErrorCode.CORRUPT_MESSAGE, errors)


def store(
    records: list[Record], source: Codec, config: TopicConfig, append_time: int | None, leader_epoch: int
) -> Validated:
    """Write records in the format and the codec that the topic asks for; `source` is the codec in which they came."""
    magic = 1 if config.stored_magic is None else config.stored_magic
    codec = CODEC_NAMES.get(config.compression, source)
    if codec == Codec.ZSTD and magic < 2:
        # Only batches carry zstd: they are what a topic gets that wants it, unless it wants older messages too.
        if config.stored_magic is not None:
            raise RefusedSet(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"message format v{magic} has no zstd")
        magic = 2
    first_offset, last_offset = records[0].offset, records[-1].offset
    if magic < 2 and codec == Codec.NONE:
        return _store_plain(records, magic, append_time, config)
    if magic == 2:
        data: Buffer = encode_batch(records, codec, append_time=append_time, leader_epoch=leader_epoch)
    else:
        data = encode_wrapper(records, magic, codec, append_time)
    check_size(len(data), config)
    timestamp = append_time
    if magic == 0:
        timestamp = NO_TIMESTAMP
    elif timestamp is None:
        timestamp = max(NO_TIMESTAMP, *(record.timestamp for record in records))
    return _stored_whole(data, first_offset, last_offset, timestamp, append_time, magic=magic)


def _store_plain(records: list[Record], magic: int, append_time: int | None, config: TopicConfig) -> Validated:
    if magic == 0:
        timestamps = [NO_TIMESTAMP] * len(records)
    elif append_time is None:
        timestamps = [record.timestamp for record in records]
    else:
        timestamps = [append_time] * len(records)
    attributes = TIMESTAMP_TYPE_BIT if magic and append_time is not None else 0
    messages = [
        encode_message(record.offset, timestamp, record.key, record.value, magic, attributes=attributes)
        for record, timestamp in zip(records, timestamps, strict=True)
    ]
    check_size(max(map(len, messages)), config)
    starts = [0, *accumulate(map(len, messages[:-1]))]
    append_time = NO_TIMESTAMP if append_time is None else append_time
    return _stored(b"".join(messages), starts, timestamps, records[0].offset, append_time, config, magic=magic)


def _stored_whole(
    data: Buffer, first_offset: int, last_offset: int, timestamp: int, append_time: int | None, *, magic: int
) -> Validated:
    """The result for records stored as one wrapper or batch."""
    return Validated(
        data,
        len(data),
        first_offset,
        last_offset,
        last_offset - first_offset + 1,
        timestamp,
        last_offset,
        timestamp,
        NO_TIMESTAMP if append_time is None else append_time,
        (),
        (),
        magic,
    )


def _stored(
    data: Buffer,
    starts: Sequence[int],
    timestamps: Sequence[int],
    first_offset: int,
    append_time: int,
    config: TopicConfig,
    *,
    magic: int = 1,
) -> Validated:
    """The result for records stored as plain messages, which begin at `starts` and have these times."""
    last_offset = first_offset + len(starts) - 1
    if starts[-1] <= config.index_interval_bytes:  # one place, as of most sets
        marks: Sequence[Mark] = ()
        highest, highest_at = _first_highest(timestamps, first_offset)
    else:
        marks = _marks(starts, timestamps, first_offset, config.index_interval_bytes)
        _, _, _, highest, highest_at = max(marks, key=attrgetter("max_timestamp"))
    return _new_tuple(
        Validated,
        (
            data,
            len(data),
            first_offset,
            last_offset,
            len(starts),
            highest,
            highest_at,
            timestamps[0],
            append_time,
            marks,
            (),
            magic,
        ),
    )


def _marks(starts: Sequence[int], timestamps: Sequence[int], first_offset: int, interval_bytes: int) -> list[Mark]:
    """One mark for every group of messages that begin within the interval: a segment needs no more index entries."""
    marks: list[Mark] = []
    begin = 0
    while begin < len(starts):
        stop = bisect_right(starts, starts[begin] + interval_bytes, begin)
        highest, highest_at = _first_highest(timestamps[begin:stop], first_offset + begin)
        fields = (starts[begin], first_offset + begin, first_offset + stop - 1, highest, highest_at)
        marks.append(_new_tuple(Mark, fields))
        begin = stop
    return marks


def _first_highest(timestamps: Sequence[int], first_offset: int) -> tuple[int, int]:
    """The largest time, at least that of none, and the first offset that has it."""
    highest = max(timestamps)
    return max(highest, NO_TIMESTAMP), first_offset + timestamps.index(highest)
