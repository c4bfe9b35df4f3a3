"""Reads the producer's state from a stored v2 batch."""

from horolog.broker.log.integrity import Batch
from horolog.broker.log.producers import LARGEST_SEQUENCE, ProducerBatch
from horolog.protocol.errors import DecodeError
from horolog.protocol.records.batch import iter_batch, read_header
from horolog.protocol.records.control import ControlType, Marker, control_type, decode_marker
from horolog.protocol.records.head import TRANSACTIONAL_BIT


def producer_batch(batch: Batch) -> ProducerBatch | None:
    """None for batches without a producer id, and for control batches that end no transaction."""
    if batch.producer_id < 0:
        return None
    header = read_header(batch.data)
    marker = _marker(batch) if batch.is_control else None
    if batch.is_control and marker is None:
        return None
    return ProducerBatch(
        batch.producer_id,
        header.producer_epoch,
        header.base_sequence,
        last_sequence(header.base_sequence, header.last_offset_delta),
        batch.base_offset,
        batch.last_offset,
        header.max_timestamp,
        bool(header.attributes & TRANSACTIONAL_BIT),
        marker,
    )


def last_sequence(base_sequence: int, last_offset_delta: int) -> int:
    """Sequences count up to the largest int32 and begin again at 0; a marker has none (-1)."""
    if base_sequence < 0:
        return base_sequence
    last = base_sequence + last_offset_delta
    return last if last <= LARGEST_SEQUENCE else last - LARGEST_SEQUENCE - 1


def _marker(batch: Batch) -> Marker | None:
    try:
        record = next(iter_batch(batch.data))
        if control_type(record.key) in (ControlType.ABORT, ControlType.COMMIT):
            return decode_marker(record.key, record.value)
    except (DecodeError, StopIteration):
        return None
    return None
