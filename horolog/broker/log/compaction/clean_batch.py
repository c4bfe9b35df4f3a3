"""Decides what compaction keeps of one v2 batch, or of one v0 or v1 message, and makes the resulting bytes.

A record stays if it is the last one of its key in the map, and not an expired tombstone. Records without a key are removed: there
should be none. The remaining records keep their offsets, their timestamps and the batch's frame:

- Nothing removed: the same bytes.
- Something removed: a batch with the same base offset, last offset, producer, sequence and codec, so that a producer's next
  sequence and a reader's next offset come out the same. Its largest timestamp is computed again.
- A tombstone, or a marker no longer needed, is seen for the first time: the batch gets a *delete horizon*, `delete.retention.ms`
  from now, in the place of its base timestamp (attribute bit 6); the timestamp deltas count from it. When it has passed, they
  go.
- Nothing left, but it is a producer's last batch: an empty batch, a header alone that keeps the sequence. Else nothing.

A plain message of an old format stays unchanged or is removed. A wrapper that loses some of its messages is rebuilt from the rest,
with the same codec and version, their old offsets and times, and the largest of these times as its own. These formats have no field
for a delete horizon: whether tombstones stay is decided for a whole segment (`clean_plan.tombstone_horizon_ms`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from horolog.broker.log.compaction.cleaned_transactions import CleanedTransactions
from horolog.broker.log.compaction.offset_map import OffsetMap
from horolog.broker.log.indexes import AbortedTransaction
from horolog.protocol.records.batch import (
    BatchHeader,
    assemble,
    encode_records,
    iter_records_of,
    read_header,
    records_of,
)
from horolog.protocol.records.compression import CODEC_MASK, Codec
from horolog.protocol.records.control import ControlType, control_type
from horolog.protocol.records.message_set import encode_wrapper, iter_message, read_message
from horolog.protocol.records.record import Record
from horolog.protocol.records.timestamps import NO_TIMESTAMP, TimestampType

DELETE_HORIZON_BIT = 0x40


@dataclass(frozen=True, slots=True)
class CleanPass:
    """The facts of one pass."""

    offsets: OffsetMap
    now_ms: int
    delete_retention_ms: int
    last_records: Mapping[int, tuple[int, int]]  # producer -> its last data offset (-1: none) and epoch


@dataclass(frozen=True, slots=True)
class CleanedBatch:
    """The remains of a batch or message."""

    data: bytes | bytearray | memoryview
    count: int
    first_offset: int
    last_offset: int
    max_timestamp: int = NO_TIMESTAMP  # of records that carry time: not of markers and empty batches
    max_timestamp_offset: int = -1


def keeps(record_offset: int, key: bytes | None, offsets: OffsetMap) -> bool:
    """Whether a record is the last of its key; records that the map has not seen stay."""
    if record_offset > offsets.latest_offset:
        return True
    return key is not None and record_offset >= offsets.get(key)


def clean_batch(
    data: memoryview, rules: CleanPass, transactions: CleanedTransactions, reindex: list[AbortedTransaction]
) -> CleanedBatch | None:
    """The remains of the batch that is all of `data`. An aborted transaction whose marker stays is added to `reindex`."""
    header = read_header(data)
    if header.is_control:
        return _clean_marker(data, header, rules, transactions, reindex)
    aborted = transactions.is_aborted(header.producer_id, header.last_offset, transactional=header.is_transactional)
    if not aborted and header.base_offset > rules.offsets.latest_offset:
        return _unchanged(data, header)
    records: list[Record] = []
    if not aborted:
        expired = _horizon_passed(header, rules.now_ms)
        records = [
            one
            for one in iter_records_of(records_of(data, header), header)
            if keeps(one.offset, one.key, rules.offsets)
            and not (expired and one.value is None and one.offset <= rules.offsets.latest_offset)
        ]
    if not records:
        return _emptied(header) if _is_last_of_producer(header, rules) else None
    marks = not _horizon(header) and any(one.value is None for one in records)
    if len(records) == header.count and not marks:
        return _unchanged(data, header)
    return _rewritten(header, records, rules.now_ms + rules.delete_retention_ms if marks else _horizon(header))


def _clean_marker(
    data: memoryview,
    header: BatchHeader,
    rules: CleanPass,
    transactions: CleanedTransactions,
    reindex: list[AbortedTransaction],
) -> CleanedBatch | None:
    records = list(iter_records_of(records_of(data, header), header))
    ended = transactions.end(header.producer_id, header.last_offset, _committed(records))
    if isinstance(ended, AbortedTransaction):
        reindex.append(ended)
    unneeded = ended is True
    if not records or (unneeded and _horizon_passed(header, rules.now_ms)):
        return _emptied(header) if _is_last_of_producer(header, rules) else None
    if unneeded and not _horizon(header):
        return _rewritten(header, records, rules.now_ms + rules.delete_retention_ms)
    return _unchanged(data, header)


def _committed(records: list[Record]) -> bool | None:
    """How a control batch ends its transaction; None for an emptied one and for those that end none."""
    kind = control_type(records[0].key) if records else None
    return kind == ControlType.COMMIT if kind in {ControlType.ABORT, ControlType.COMMIT} else None


def _horizon(header: BatchHeader) -> int | None:
    return header.base_timestamp if header.attributes & DELETE_HORIZON_BIT else None


def _horizon_passed(header: BatchHeader, now_ms: int) -> bool:
    horizon = _horizon(header)
    return horizon is not None and horizon <= now_ms


def _is_last_of_producer(header: BatchHeader, rules: CleanPass) -> bool:
    """Whether a producer's last sequence or epoch is restored from this batch after a restart."""
    last = rules.last_records.get(header.producer_id) if header.producer_id >= 0 else None
    if last is None:
        return False
    last_data_offset, epoch = last
    if last_data_offset >= 0:
        return header.last_offset == last_data_offset
    return header.is_control and header.producer_epoch == epoch


def _unchanged(data: memoryview, header: BatchHeader) -> CleanedBatch:
    timestamp = header.max_timestamp if header.count and not header.is_control else NO_TIMESTAMP
    return CleanedBatch(data, header.count, header.base_offset, header.last_offset, timestamp, header.last_offset)


def _rewritten(header: BatchHeader, records: list[Record], horizon: int | None) -> CleanedBatch:
    """A batch of fewer records, or with a delete horizon, in the frame of the old one."""
    appended = header.timestamp_type == TimestampType.LOG_APPEND_TIME
    base_timestamp = records[0].timestamp if horizon is None else horizon
    changed = header._replace(
        attributes=header.attributes & ~DELETE_HORIZON_BIT | (0 if horizon is None else DELETE_HORIZON_BIT),
        base_timestamp=base_timestamp,
        max_timestamp=header.max_timestamp if appended else max(one.timestamp for one in records),
        count=len(records),
    )
    batch = assemble(changed, encode_records(records, header.base_offset, base_timestamp))
    return _unchanged(memoryview(batch), changed)


def _emptied(header: BatchHeader) -> CleanedBatch:
    """The header alone. It keeps the largest timestamp as in Kafka, but it carries no time any more."""
    attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT) | Codec.NONE
    changed = header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, count=0)
    return CleanedBatch(assemble(changed, b""), 0, header.base_offset, header.last_offset)


def clean_message(data: memoryview, offsets: OffsetMap, *, keeps_tombstones: bool) -> CleanedBatch | None:
    """The remains of the message that is all of `data`."""
    message = read_message(data)
    records = list(iter_message(message))
    kept = [
        one
        for one in records
        if keeps(one.offset, one.key, offsets)
        and (one.value is not None or keeps_tombstones or one.offset > offsets.latest_offset)
    ]
    if not kept:
        return None
    left: bytes | memoryview = data
    if len(kept) < len(records):
        left = encode_wrapper(kept, message.magic, message.codec)
    first, last = kept[0], kept[-1]
    largest = max(one.timestamp for one in kept)
    return CleanedBatch(left, len(kept), first.offset, last.offset, largest, last.offset)
