"""Control batches: the markers that end a transaction, and the note of a new leader.

A control batch is a v2 batch with attribute bit 5 whose one record says in its key what it is:

    key:                        version int16 . type int16 (0 abort, 1 commit, 2 leader change)
    value of abort and commit:  version int16 . coordinator epoch int32
    value of leader change:     version int16 = 0 . leader id int32 . voters . granting voters . tag section, where a list of
                                voters is a varint of its size plus 1, then per voter id int32 . tag section
"""

import struct
from enum import IntEnum
from typing import NamedTuple

from horolog.protocol.errors import DecodeError
from horolog.protocol.primitives import Buffer, decode_unsigned_varint, encode_unsigned_varint, skip_tags
from horolog.protocol.records.batch import encode_own
from horolog.protocol.records.head import CONTROL_BIT, TRANSACTIONAL_BIT

NO_SEQUENCE = -1
_KEY = struct.Struct(">hh")
_MARKER = struct.Struct(">hi")
_LEADER = struct.Struct(">hi")
_VOTER = struct.Struct(">i")
_NO_TAGS = b"\x00"


class ControlType(IntEnum):
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2


class Marker(NamedTuple):
    """The end of a producer's transaction in one partition."""

    committed: bool
    coordinator_epoch: int


class LeaderChange(NamedTuple):
    leader_id: int
    voters: tuple[int, ...]
    granting_voters: tuple[int, ...]


def control_type(key: Buffer | None) -> int:
    """The type of a control record: a ControlType, or a number that is of no concern here."""
    if key is None or len(key) < _KEY.size:
        raise DecodeError("a control record without a type")
    return int(_KEY.unpack_from(key)[1])


def encode_marker(
    marker: Marker, offset: int, timestamp: int, *, producer_id: int, producer_epoch: int, leader_epoch: int
) -> bytearray:
    kind = ControlType.COMMIT if marker.committed else ControlType.ABORT
    return encode_own(
        [(_KEY.pack(0, kind), _MARKER.pack(0, marker.coordinator_epoch))],
        offset,
        timestamp,
        attributes=CONTROL_BIT | TRANSACTIONAL_BIT,
        leader_epoch=leader_epoch,
        producer=(producer_id, producer_epoch, NO_SEQUENCE),
    )


def decode_marker(key: bytes | None, value: bytes | None) -> Marker:
    kind = control_type(key)
    if kind not in (ControlType.ABORT, ControlType.COMMIT) or value is None or len(value) < _MARKER.size:
        raise DecodeError(f"control type {kind} does not end a transaction")
    return Marker(kind == ControlType.COMMIT, _MARKER.unpack_from(value)[1])


def encode_leader_change(change: LeaderChange, offset: int, timestamp: int, *, leader_epoch: int) -> bytearray:
    value = b"".join(
        (
            _LEADER.pack(0, change.leader_id),
            _encode_voters(change.voters),
            _encode_voters(change.granting_voters),
            _NO_TAGS,
        )
    )
    entries = [(_KEY.pack(0, ControlType.LEADER_CHANGE), value)]
    return encode_own(entries, offset, timestamp, attributes=CONTROL_BIT, leader_epoch=leader_epoch)


def decode_leader_change(key: bytes | None, value: bytes | None) -> LeaderChange:
    if control_type(key) != ControlType.LEADER_CHANGE or value is None or len(value) < _LEADER.size:
        raise DecodeError("no leader change")
    version, leader_id = _LEADER.unpack_from(value)
    if version != 0:
        raise DecodeError(f"a leader change of version {version}")
    voters, position = _decode_voters(value, _LEADER.size)
    granting_voters, _ = _decode_voters(value, position)
    return LeaderChange(leader_id, voters, granting_voters)


def _encode_voters(voters: tuple[int, ...]) -> bytes:
    return encode_unsigned_varint(len(voters) + 1) + b"".join(_VOTER.pack(voter) + _NO_TAGS for voter in voters)


def _decode_voters(value: bytes, position: int) -> tuple[tuple[int, ...], int]:
    size, position = decode_unsigned_varint(value, position)
    voters: list[int] = []
    for _ in range(size - 1):
        if len(value) - position <= _VOTER.size:
            raise DecodeError(f"{size - 1} voters do not fit")
        voters.append(_VOTER.unpack_from(value, position)[0])
        position += _VOTER.size
        position, _ = skip_tags(value, position + 1, value[position], len(value))
    return tuple(voters), position
