"""Items of batches, messages and their records, and the decoded records of internal topics."""

import base64
from collections.abc import Callable, Iterator
from typing import Any

from horolog.broker.log.integrity import Batch
from horolog.client.cli.dumping.items import Item, put_bytes
from horolog.protocol.errors import DecodeError
from horolog.protocol.records import batch, control, message_set
from horolog.protocol.records.compression import UnknownCodecError, codec_of
from horolog.protocol.records.entries import records_of_entry
from horolog.protocol.records.head import heads_in
from horolog.protocol.records.record import Record
from horolog.protocol.records.timestamps import NO_TIMESTAMP, TIMESTAMP_TYPE_BIT
from horolog.protocol.wire import Struct

DELETE_HORIZON_BIT = 0x40
Decode = Callable[[Record], Item | None]


def header_item(found: Batch) -> Item:
    """A good batch or message without its records."""
    return _batch_item(found) if found.magic == 2 else _message_item(found)


def _batch_item(found: Batch) -> Item:
    header = batch.read_header(found.data)
    horizon = header.base_timestamp if header.attributes & DELETE_HORIZON_BIT else None
    has_sequence = header.base_sequence >= 0
    return {
        "type": "batch",
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.count,
        "base_sequence": header.base_sequence,
        "last_sequence": _advance(header.base_sequence, header.last_offset_delta) if has_sequence else -1,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "partition_leader_epoch": header.leader_epoch,
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
        "delete_horizon_ms": horizon,
        "position": found.position,
        "timestamp_type": type_name(2, header.attributes),
        "timestamp": header.max_timestamp,
        "size_bytes": found.size_bytes,
        "magic": 2,
        "codec": _codec_name(header.attributes, 2),
        "crc": header.crc,
        "is_valid": True,
    }


def _message_item(found: Batch) -> Item:
    message = message_set.read_message(found.data)
    return {
        "type": "message",
        "offset": message.offset,
        "position": found.position,
        "timestamp_type": type_name(message.magic, message.attributes),
        "timestamp": message.timestamp if message.magic else NO_TIMESTAMP,
        "is_valid": True,
        "key_size": size_of(message.key),
        "value_size": size_of(message.value),
        "size_bytes": found.size_bytes,
        "magic": message.magic,
        "codec": _codec_name(message.attributes, message.magic),
        "crc": message.crc,
    }


def _advance(sequence: int, delta: int) -> int:
    """The next sequence number, which wraps to 0 after the largest."""
    return (sequence + delta) % 2**31


def _codec_name(attributes: int, magic: int) -> str:
    try:
        return codec_of(attributes, magic).name.lower()
    except UnknownCodecError:
        return f"unknown ({attributes & 7})"


def type_name(magic: int, attributes: int) -> str:
    if magic == 0:
        return "NoTimestampType"
    return "LogAppendTime" if attributes & TIMESTAMP_TYPE_BIT else "CreateTime"


def size_of(data: bytes | None) -> int:
    """The size; -1 for null, as in Kafka."""
    return -1 if data is None else len(data)


def record_items(found: Batch, decode: Decode | None, *, with_data: bool) -> Iterator[Item]:
    """The records of a good batch or message. Raises DecodeError if the checksum is right but the contents are not."""
    (entry,) = heads_in(found.data)
    header = batch.read_header(found.data) if found.magic == 2 else None
    kind = type_name(found.magic, found.attributes)
    for record in records_of_entry(found.data, entry):
        item: Item = {
            "type": "record",
            "offset": record.offset,
            "batch_position": found.position,
            "timestamp_type": kind,
            "timestamp": record.timestamp,
            "key_size": size_of(record.key),
            "value_size": size_of(record.value),
        }
        if header is not None:
            numbered = header.base_sequence >= 0
            item["sequence"] = _advance(header.base_sequence, record.offset - header.base_offset) if numbered else -1
            item["header_keys"] = [key.decode(errors="backslashreplace") for key, _ in record.headers]
        if found.is_control:
            item["control"] = _control(record)
        elif with_data:
            put_bytes(item, "key", record.key)
            put_bytes(item, "value", record.value)
            if header is not None:
                item["header_values"] = [_text_or_base64(value) for _, value in record.headers]
        if decode is not None and not found.is_control:
            item["decoded"] = decode(record)
        yield item


def _text_or_base64(value: bytes | None) -> Item:
    item: Item = {}
    put_bytes(item, "text", value)
    return item


def _control(record: Record) -> Item:
    kind = control.control_type(record.key)
    if kind in {control.ControlType.ABORT, control.ControlType.COMMIT}:
        marker = control.decode_marker(record.key, record.value)
        return {
            "end_txn_marker": "COMMIT" if marker.committed else "ABORT",
            "coordinator_epoch": marker.coordinator_epoch,
        }
    if kind == control.ControlType.LEADER_CHANGE:
        change = control.decode_leader_change(record.key, record.value)
        return {"leader_change": change.leader_id, "voters": list(change.voters)}
    return {"control_type": kind}


def decode_offsets(record: Record) -> Item | None:
    """A record of `__consumer_offsets`; None for unknown kinds."""
    from horolog.broker.groups import records

    if record.key is None:
        raise DecodeError("a record without a key")
    if record.value is None:
        said = records.read_key(record.key)
        return None if said is None else {"kind": type(said[1]).__name__, "key": plain(said[1]), "value": None}
    entry = records.read_entry(record.key, record.value)
    if entry is None:
        return None
    _, key, value = entry
    return {"kind": type(key).__name__, "key": plain(key), "value": plain(value)}


def decode_transactions(record: Record) -> Item | None:
    """A record of `__transaction_state`; None for unknown keys."""
    from horolog.broker.transactions import records

    transactional_id = records.read_key(record.key or b"")
    if transactional_id is None:
        return None
    item: Item = {"kind": "TransactionLogKey", "key": {"transactional_id": transactional_id}, "value": None}
    if record.value is not None:
        said = records.read_value(transactional_id, record.value)
        item["value"] = {
            "producer_id": said.producer_id,
            "producer_epoch": said.producer_epoch,
            "state": said.state.name,
            "partitions": sorted(f"{topic}-{index}" for topic, index in said.partitions),
            "timeout_ms": said.timeout_ms,
            "started_timestamp": said.started_ms,
            "updated_timestamp": said.updated_ms,
        }
    return item


DECODERS: dict[str, Decode] = {"offsets": decode_offsets, "transactions": decode_transactions}


def plain(value: Any) -> Any:
    """A message of the protocol as JSON; bytes in base64."""
    if isinstance(value, Struct):
        return {name: plain(getattr(value, name)) for name in value.FIELDS}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    return value
