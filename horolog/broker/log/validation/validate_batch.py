"""Checks a v2 batch as 3.9 and 4.3 do, and gives it its place in the log.

Base offset and leader epoch are set in place; the crc does not cover them. It is recomputed only when something that it
covers is corrected: the max timestamp, which is what the records say, or the timestamp type. Compressed records are opened
once to be checked and stored as they came, unless the topic asks for another codec or the producer numbered them wrongly.

Records in a writable view are handed over: they are corrected where they lie and stored from there. Others are copied first.
"""

from collections.abc import Sequence
from typing import Final

from crc32c import crc32c

from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.producers import ProducerBatch
from horolog.broker.log.validation.validate_set import PRODUCER_CODEC, check_size, refuse_bytes, store
from horolog.broker.log.validation.validation_result import (
    MOST_RECORD_ERRORS,
    RecordError,
    RefusedSet,
    Validated,
    refuse_records,
)
from horolog.protocol.errors import DecodeError, ErrorCode
from horolog.protocol.primitives import Buffer
from horolog.protocol.records.batch import (
    BatchHeader,
    assemble,
    check_count,
    encode_records,
    iter_records_of,
    write_crc,
)
from horolog.protocol.records.compression import CODEC_MASK, CODEC_NAMES, Codec, codec_of, decompress
from horolog.protocol.records.head import (
    ATTRIBUTES,
    ATTRIBUTES_AT,
    CONTROL_BIT,
    HEADER,
    HEADER_BYTES,
    LENGTH_ENDS_AT,
    MAX_TIMESTAMP_AT,
    PREFIX,
    PREFIX_BYTES,
    SMALLEST_MESSAGE_LENGTH,
    TIMESTAMP,
    TRANSACTIONAL_BIT,
    UP_TO_EPOCH,
)
from horolog.protocol.records.record import Record
from horolog.protocol.records.scan import Scan, scan_records
from horolog.protocol.records.timestamps import (
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    Accepted,
    all_accepted,
    describe_refusal,
    is_accepted_in_batch,
)

_MAGIC: Final = 2
_LARGEST_SEQUENCE: Final = 2**31 - 1
_SUSPECT_BITS: Final = CONTROL_BIT | 0x04  # control batches, zstd and codecs that do not exist are looked at closer
_Fields = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]
"""Of a `BatchHeader`. Declared, so that compiled code compares and adds them in place."""
_unpack_header: Final = HEADER.unpack_from
_pack_up_to_epoch: Final = UP_TO_EPOCH.pack_into
_new_tuple: Final = tuple.__new__  # a third of the cost of a named tuple's own constructor


def check_batch(
    records: Buffer, next_offset: int, config: TopicConfig, now_ms: int, *, zstd_is_known: bool, leader_epoch: int
) -> Validated:
    view = memoryview(records)
    size_bytes = len(view)
    if size_bytes < HEADER_BYTES:
        raise _no_batch(view)
    fields: _Fields = _unpack_header(view)
    offset, length, _, magic, crc, attributes, last_delta, base_timestamp, claimed, producer_id, _, sequence, count = (
        fields
    )
    if magic != _MAGIC or length + LENGTH_ENDS_AT != size_bytes:
        size_bytes = _size_of_only_batch(view, magic, length)
        view = view[:size_bytes]
    if (
        offset
        or size_bytes > config.max_message_bytes
        or attributes & _SUSPECT_BITS
        or count <= 0
        or last_delta != count - 1
        or (sequence < 0 <= producer_id)
        or crc32c(view[ATTRIBUTES_AT:]) != crc
    ):
        _check_header(BatchHeader(*fields), view, config, zstd_is_known=zstd_is_known)
    batch: bytearray | memoryview = bytearray(view) if view.readonly or not isinstance(records, memoryview) else view
    content: Buffer = batch
    try:
        if attributes & CODEC_MASK:
            content = decompress(codec_of(attributes, _MAGIC), view[HEADER_BYTES:])
            check_count(count, len(content))
            scan = scan_records(content, 0, count)
        else:
            check_count(count, size_bytes - HEADER_BYTES)
            scan = scan_records(batch, HEADER_BYTES, count)
    except DecodeError as error:
        raise refuse_bytes(error, ErrorCode.INVALID_RECORD) from error
    if config.log_append_time:
        append_time = lowest = highest = now_ms
        corrected = attributes | TIMESTAMP_TYPE_BIT
        if corrected == attributes:
            raise RefusedSet(ErrorCode.INVALID_TIMESTAMP, "a producer cannot set the timestamp type LogAppendTime")
    else:
        append_time = NO_TIMESTAMP
        lowest = base_timestamp + scan.lowest_delta
        highest = max(base_timestamp + scan.highest_delta, NO_TIMESTAMP)
        corrected = attributes & ~TIMESTAMP_TYPE_BIT
    before_max_ms, after_max_ms = config.before_max_ms, config.after_max_ms
    all_timely = all_accepted(lowest, highest, now_ms, before_max_ms, after_max_ms)
    if not all_timely or (scan.has_null_key and config.compact):
        times = Accepted(now_ms, before_max_ms, after_max_ms)
        _check_records(_payload(batch, content), BatchHeader(*fields), config, times)
    if config.compression != PRODUCER_CODEC or config.stored_magic is not None or not scan.in_order:
        header = BatchHeader(*fields)._replace(
            base_offset=next_offset, leader_epoch=leader_epoch, attributes=corrected, max_timestamp=highest
        )
        return _store_changed(batch, _payload(batch, content), header, scan, config)
    _pack_up_to_epoch(batch, 0, next_offset, length, leader_epoch)
    if highest != claimed or corrected != attributes:
        ATTRIBUTES.pack_into(batch, ATTRIBUTES_AT, corrected)
        TIMESTAMP.pack_into(batch, MAX_TIMESTAMP_AT, highest)
        write_crc(batch)
    producer = (_producer_batch(fields, next_offset, highest),) if producer_id >= 0 else ()
    return _stored(batch, next_offset, count, highest, append_time, producer)


def _payload(batch: bytearray | memoryview, content: Buffer) -> bytes:
    return bytes(batch[HEADER_BYTES:]) if content is batch else bytes(content)


def _stored(
    batch: bytearray | memoryview,
    first_offset: int,
    count: int,
    max_timestamp: int,
    append_time: int,
    producer: Sequence[ProducerBatch],
) -> Validated:
    last_offset = first_offset + count - 1
    return _new_tuple(
        Validated,
        (
            batch,
            len(batch),
            first_offset,
            last_offset,
            count,
            max_timestamp,
            last_offset,
            max_timestamp,
            append_time,
            (),
            producer,
            _MAGIC,
        ),
    )


def _producer_batch(header: Sequence[int], first_offset: int, max_timestamp: int) -> ProducerBatch:
    """Sequences count up to the largest int32 and go on from 0."""
    _, _, _, _, _, attributes, last_delta, _, _, producer_id, epoch, sequence, _ = header
    return _new_tuple(
        ProducerBatch,
        (
            producer_id,
            epoch,
            sequence,
            (sequence + last_delta) & _LARGEST_SEQUENCE,
            first_offset,
            first_offset + last_delta,
            max_timestamp,
            bool(attributes & TRANSACTIONAL_BIT),
            None,
        ),
    )


def _no_batch(view: memoryview) -> RefusedSet:
    """The refusal of bytes that are too short for a batch, or of another format."""
    if len(view) >= PREFIX_BYTES:
        _, length, magic = PREFIX.unpack_from(view)
        if not 0 <= magic <= _MAGIC:
            return RefusedSet(ErrorCode.CORRUPT_MESSAGE, f"magic {magic} does not exist")
        if magic == _MAGIC and length < HEADER_BYTES - LENGTH_ENDS_AT:
            return RefusedSet(ErrorCode.CORRUPT_MESSAGE, f"a batch of {length + LENGTH_ENDS_AT} bytes is too short")
        if magic < _MAGIC:
            return RefusedSet(ErrorCode.INVALID_RECORD, f"Produce v3 and newer carry record batches, not magic {magic}")
    return RefusedSet(ErrorCode.INVALID_RECORD, "there is no complete record batch")


def _size_of_only_batch(view: memoryview, magic: int, length: int) -> int:
    """The size of a batch with bytes behind it: these are ignored if they are not a second batch, as in Kafka."""
    size_bytes = length + LENGTH_ENDS_AT
    if magic != _MAGIC or not HEADER_BYTES <= size_bytes <= len(view):
        raise _no_batch(view)
    rest = view[size_bytes:]
    if len(rest) >= PREFIX_BYTES:
        _, length, magic = PREFIX.unpack_from(rest)
        if not 0 <= magic <= _MAGIC or length < SMALLEST_MESSAGE_LENGTH[0]:
            raise RefusedSet(ErrorCode.CORRUPT_MESSAGE, f"invalid data after the batch: magic {magic}, size {length}")
        if length + LENGTH_ENDS_AT <= len(rest):
            raise RefusedSet(ErrorCode.INVALID_RECORD, "a request carries one record batch per partition")
    return size_bytes


def _check_header(header: BatchHeader, view: memoryview, config: TopicConfig, *, zstd_is_known: bool) -> None:
    """Check the header's rules one by one, in Kafka's order: the first violated one is reported."""
    if header.attributes & CODEC_MASK == Codec.ZSTD and not zstd_is_known:
        raise RefusedSet(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce v7 or newer")
    if header.base_offset != 0:
        raise RefusedSet(ErrorCode.INVALID_RECORD, f"the base offset must be 0, not {header.base_offset}")
    check_size(len(view), config)
    if crc32c(view[ATTRIBUTES_AT:]) != header.crc:
        raise RefusedSet(ErrorCode.CORRUPT_MESSAGE, "the batch's crc does not match")
    if header.is_control:
        raise RefusedSet(ErrorCode.INVALID_RECORD, "clients cannot write control batches")
    if header.count <= 0 or header.last_offset_delta != header.count - 1:
        raise RefusedSet(
            ErrorCode.INVALID_RECORD,
            f"the batch has {header.count} records, and the last offset delta {header.last_offset_delta}",
        )
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise RefusedSet(
            ErrorCode.INVALID_RECORD, f"producer {header.producer_id} sent the negative sequence {header.base_sequence}"
        )


def _check_records(payload: bytes, header: BatchHeader, config: TopicConfig, times: Accepted) -> None:
    """Check the key of every record, and under CreateTime its time; report all that are wrong."""
    untimely: list[RecordError] = []
    keyless: list[RecordError] = []
    try:
        for index, record in enumerate(iter_records_of(payload, _with_own_times(header))):
            if config.compact and record.key is None:
                keyless.append((index, "a compacted topic accepts no record without a key"))
            elif not config.log_append_time and not is_accepted_in_batch(record.timestamp, times):
                named = len(untimely) < MOST_RECORD_ERRORS
                untimely.append((index, describe_refusal(record.timestamp, times) if named else ""))
    except DecodeError as error:  # a time beyond 64 bits: everything else was found to be right before
        raise RefusedSet(ErrorCode.INVALID_TIMESTAMP, str(error)) from error
    if untimely:
        raise refuse_records(ErrorCode.INVALID_TIMESTAMP, sorted(untimely + keyless))
    if keyless:
        raise refuse_records(ErrorCode.INVALID_RECORD, keyless)


def _with_own_times(header: BatchHeader) -> BatchHeader:
    return header._replace(attributes=header.attributes & ~TIMESTAMP_TYPE_BIT)


def _store_changed(
    batch: bytearray | memoryview, payload: bytes, header: BatchHeader, scan: Scan, config: TopicConfig
) -> Validated:
    """Store the batch with other bytes than it arrived with: another codec or format, or corrected offsets.

    Offsets out of order are refused in compressed batches, and kept in plain ones where nothing else makes it necessary to write
    the records anew, as Kafka does, but only inside of the range that the batch claims.
    """
    if not scan.in_order and header.codec != Codec.NONE:
        raise RefusedSet(ErrorCode.INVALID_RECORD, "the offset deltas of a compressed batch do not count up from 0")
    if config.stored_magic is not None and config.stored_magic < _MAGIC:
        return _store_older(payload, header, config)
    codec = CODEC_NAMES.get(config.compression, header.codec)
    if codec == header.codec:
        if not scan.in_order:
            _check_offsets(payload, header)
        HEADER.pack_into(batch, 0, *header)
        write_crc(batch)
    else:
        if not scan.in_order:
            payload = encode_records(_renumbered(payload, header), header.base_offset, header.base_timestamp)
        batch = assemble(header._replace(attributes=header.attributes & ~CODEC_MASK | codec), payload)
        check_size(len(batch), config)
    highest = header.max_timestamp
    append_time = highest if config.log_append_time else NO_TIMESTAMP
    producer = (_producer_batch(header, header.base_offset, highest),) if header.producer_id >= 0 else ()
    return _stored(batch, header.base_offset, header.count, highest, append_time, producer)


def _check_offsets(payload: bytes, header: BatchHeader) -> None:
    for record in iter_records_of(payload, header):
        if not header.base_offset <= record.offset <= header.last_offset:
            raise RefusedSet(
                ErrorCode.INVALID_RECORD, f"offset delta {record.offset - header.base_offset} is out of range"
            )


def _renumbered(payload: bytes, header: BatchHeader) -> list[Record]:
    records = iter_records_of(payload, _with_own_times(header))
    return [record._replace(offset=header.base_offset + index) for index, record in enumerate(records)]


def _store_older(payload: bytes, header: BatchHeader, config: TopicConfig) -> Validated:
    """Store the records in the topic's message format, if it can express them."""
    records = _renumbered(payload, header)
    if header.producer_id >= 0 or header.is_transactional or any(record.headers for record in records):
        raise RefusedSet(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            f"message format v{config.stored_magic} has neither producers nor headers",
        )
    append_time = header.max_timestamp if config.log_append_time else None
    return store(records, header.codec, config, append_time, header.leader_epoch)
