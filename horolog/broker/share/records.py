"""The records of `__share_group_state`: snapshots of share partitions, and updates since.

    key     int16 0 . ShareSnapshotKey, or int16 1 . ShareUpdateKey: group, topic id, partition
    value   int16 version = 0 . ShareSnapshotValue, or ShareUpdateValue

A snapshot holds the whole state; updates since have its epoch and hold what has changed. A snapshot without a value is a tombstone: the
state was deleted. Format and order are Kafka's, so each reads what the other has written.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from horolog.broker.share.state_batches import StateBatch
from horolog.protocol.compile import decode, flat_encoder
from horolog.protocol.errors import DecodeError
from horolog.protocol.messages.share_state_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    StoredStateBatch,
)
from horolog.protocol.primitives import Buffer

SNAPSHOT, UPDATE = 0, 1
"""The kinds of keys."""
VALUE_VERSION = 0

_VERSION = Struct(">h")


class SharePartitionKey(NamedTuple):
    """A partition, as one share group reads it."""

    group: str
    topic_id: bytes
    partition: int


class Snapshot(NamedTuple):
    """The fields of ShareSnapshotValue, in their order."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    created_ms: int
    written_ms: int
    batches: tuple[StateBatch, ...]


class Update(NamedTuple):
    """The fields of ShareUpdateValue, in their order."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    batches: tuple[StateBatch, ...]


def key_bytes(kind: int, key: SharePartitionKey) -> bytes:
    parts: list[Buffer] = [_VERSION.pack(kind)]
    flat_encoder(ShareSnapshotKey if kind == SNAPSHOT else ShareUpdateKey, kind)(tuple(key), parts)
    return b"".join(parts)


def value_bytes(value: Snapshot | Update) -> bytes:
    parts: list[Buffer] = [_VERSION.pack(VALUE_VERSION)]
    flat_encoder(ShareSnapshotValue if isinstance(value, Snapshot) else ShareUpdateValue, VALUE_VERSION)(value, parts)
    return b"".join(parts)


def read_key(data: Buffer) -> tuple[int, SharePartitionKey] | None:
    """The kind and the share partition; None for a kind that is not known. Raises DecodeError."""
    kind, body = _version_and_body(data)
    if kind not in {SNAPSHOT, UPDATE}:
        return None
    key: ShareSnapshotKey | ShareUpdateKey
    key = decode(ShareSnapshotKey, kind, body) if kind == SNAPSHOT else decode(ShareUpdateKey, kind, body)
    return kind, SharePartitionKey(key.group_id, bytes(key.topic_id), key.partition)


def read_value(kind: int, data: Buffer) -> Snapshot | Update:
    """Raises DecodeError."""
    version, body = _version_and_body(data)
    if version != VALUE_VERSION:
        raise DecodeError(f"a share partition's state in version {version}, which is not known")
    if kind == SNAPSHOT:
        value = decode(ShareSnapshotValue, version, body)
        return Snapshot(
            value.snapshot_epoch,
            value.state_epoch,
            value.leader_epoch,
            value.start_offset,
            value.delivery_complete_count,
            value.create_timestamp,
            value.write_timestamp,
            _batches(value.state_batches),
        )
    update = decode(ShareUpdateValue, version, body)
    return Update(
        update.snapshot_epoch,
        update.leader_epoch,
        update.start_offset,
        update.delivery_complete_count,
        _batches(update.state_batches),
    )


def _batches(stored: list[StoredStateBatch]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(one.first_offset, one.last_offset, one.delivery_state, one.delivery_count) for one in stored
    )


def _version_and_body(data: Buffer) -> tuple[int, memoryview]:
    if len(data) < _VERSION.size:
        raise DecodeError("a record of share partitions that is too short for a version")
    (version,) = _VERSION.unpack_from(data)
    return version, memoryview(data)[_VERSION.size :]
