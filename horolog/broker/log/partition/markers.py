"""Appends the markers that end transactions: control batches, which no client may write.

A marker has an offset, but no time for lookups, rolling and retention: `Validated` describes it as a later scan will.
"""

from horolog.broker.log.partition.partition import Partition
from horolog.broker.log.producers import ProducerBatch, Rejected
from horolog.broker.log.validation import RefusedSet, Validated
from horolog.protocol.records.control import Marker, encode_marker
from horolog.protocol.records.timestamps import NO_TIMESTAMP

_MAGIC = 2
_NO_SEQUENCE = -1


def append_marker(partition: Partition, producer_id: int, producer_epoch: int, marker: Marker, now_ms: int) -> None:
    """Queue the marker that ends a producer's transaction. Raises Refused (an older epoch) or StorageFault."""
    partition.check_takes_appends()
    offset = partition.log_end_offset
    batch = ProducerBatch(
        producer_id,
        producer_epoch,
        _NO_SEQUENCE,
        _NO_SEQUENCE,
        offset,
        offset,
        now_ms,
        transactional=True,
        marker=marker,
    )
    verdict = partition.producers.check(batch)
    if isinstance(verdict, Rejected):
        raise RefusedSet(verdict.code, verdict.message)
    data = encode_marker(
        marker,
        offset,
        now_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        leader_epoch=partition.leader_epoch,
    )
    partition.append_checked(_validated(data, offset, batch), now_ms)


def _validated(data: bytearray, offset: int, batch: ProducerBatch) -> Validated:
    return Validated(
        data,
        len(data),
        offset,
        offset,
        1,
        NO_TIMESTAMP,
        offset,
        NO_TIMESTAMP,
        NO_TIMESTAMP,
        (),
        [batch],
        _MAGIC,
    )
