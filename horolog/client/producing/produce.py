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
from horolog.protocol.records.record import MAX_INT64, MIN_INT64, Header, Record

_BATCHES_FROM = 3  # the version of Produce that carries format v2
_TIMES_FROM = 2  # format v1
_ZSTD_FROM = 7
_BYTES = (bytes, bytearray, memoryview)
_new_tuple = tuple.__new__  # costs a third of a named tuple's own constructor


def checked_bytes(what: str, given: object) -> bytes | None:
    """A copy of the key or value if it can change; TypeError, when it is sent and not with its batch, for other types."""
    if given is None or type(given) is bytes:
        return given
    if isinstance(given, _BYTES):
        return bytes(given)
    advice = "; encode it, as with .encode()" if isinstance(given, str) else ""
    raise TypeError(f"{what} is {type(given).__name__}, not bytes{advice}")


def checked_headers(given: Iterable[tuple[object, object]]) -> tuple[Header, ...]:
    """The headers as `checked_bytes`."""
    return tuple([(_header_name(name), checked_bytes(f"the header {name!r}", content)) for name, content in given])


def _header_name(given: object) -> bytes:
    name = checked_bytes("the name of a header", given)
    if name is None:
        raise TypeError("a header without a name; give it bytes")
    return name


def checked_time(given: object) -> int:
    """The timestamp as a plain integer. Raises TypeError for other types, ValueError for more than 64 bits."""
    if not isinstance(given, SupportsIndex):
        raise TypeError(f"timestamp_ms is {type(given).__name__}, not int; give milliseconds since 1970")
    timestamp_ms = index(given)
    if not MIN_INT64 <= timestamp_ms <= MAX_INT64:
        raise ValueError(f"timestamp_ms {timestamp_ms} does not fit into 64 bits; give milliseconds since 1970")
    return timestamp_ms


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
