"""Encodes batches into Produce requests, in the record format of the request's version."""

from collections.abc import Iterable
from operator import index
from typing import SupportsIndex

from horolog.client.producing.accumulator import Batch
from horolog.client.values.errors import KafkaError
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.primitives import Buffer
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.head import NO_PRODUCER, TRANSACTIONAL_BIT
from horolog.protocol.records.message_set import encode_set, encode_wrapper
from horolog.protocol.records.record import MAX_INT64, MIN_INT64, Record

_BATCHES_FROM = 3  # the version of Produce that carries format v2
_TIMES_FROM = 2  # format v1
_ZSTD_FROM = 7
_BYTES = (bytes, bytearray, memoryview)
_new_tuple = tuple.__new__  # costs a third of a named tuple's own constructor


def refuse_unwritable(
    key: object, value: object, headers: Iterable[tuple[object, object]], timestamp_ms: object
) -> None:
    """Refuse an unwritable record in `send`, not when its batch is sent. Raises TypeError and ValueError."""
    _refuse_other_than_bytes("the value", value)
    _refuse_other_than_bytes("the key", key)
    for name, content in headers:
        if name is None:
            raise TypeError("a header without a name; give it bytes")
        _refuse_other_than_bytes("the name of a header", name)
        _refuse_other_than_bytes(f"the header {name!r}", content)
    if timestamp_ms is None:
        return
    if not isinstance(timestamp_ms, SupportsIndex):
        raise TypeError(f"timestamp_ms is {type(timestamp_ms).__name__}, not int; give milliseconds since 1970")
    if not MIN_INT64 <= index(timestamp_ms) <= MAX_INT64:
        raise ValueError(f"timestamp_ms {timestamp_ms} does not fit into 64 bits; give milliseconds since 1970")


def _refuse_other_than_bytes(what: str, given: object) -> None:
    if given is not None and not isinstance(given, _BYTES):
        advice = "; encode it, as with .encode()" if isinstance(given, str) else ""
        raise TypeError(f"{what} is {type(given).__name__}, not bytes{advice}")


def encode_records(batch: Batch, codec: Codec, version: int, *, transactional: bool = False) -> Buffer:
    """The record set of a batch; KafkaError if the format is too old for its records."""
    if codec == Codec.ZSTD and version < _ZSTD_FROM:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "the broker is too old for zstd")
    records = [
        _new_tuple(Record, (place, each.timestamp_ms, 0, each.key, each.value, each.headers))
        for place, each in enumerate(batch.records)
    ]
    if version < _BATCHES_FROM:
        return _encode_messages(records, codec, 1 if version >= _TIMES_FROM else 0)
    producer_id, epoch, sequence = batch.producer or (NO_PRODUCER, -1, -1)
    return encode_batch(
        records,
        codec,
        attributes=TRANSACTIONAL_BIT if transactional else 0,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


def _encode_messages(records: list[Record], codec: Codec, magic: int) -> bytes:
    if any(record.headers for record in records):
        raise KafkaError(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, "the broker is too old for headers")
    return encode_wrapper(records, magic, codec) if codec else encode_set(records, magic)


def build_produce(
    encoded: Iterable[tuple[Batch, Buffer]], *, acks: int, timeout_ms: int, transactional_id: str | None
) -> ProduceRequest:
    topics: dict[str, list[PartitionProduceData]] = {}
    for batch, records in encoded:
        data = PartitionProduceData(index=batch.partition.partition, records=records)
        topics.setdefault(batch.partition.topic, []).append(data)
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[TopicProduceData(name=topic, partition_data=data) for topic, data in topics.items()],
    )
