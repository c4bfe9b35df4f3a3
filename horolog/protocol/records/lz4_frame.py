"""The LZ4 frame header's checksum: the right one, and the wrong one that the first Kafka clients wrote and expect.

A frame opens with magic number (4 bytes), FLG, BD, then 8 bytes of content size if FLG bit 3 is set, 4 bytes of dictionary
id if bit 0 is, and HC: the second byte of the xxh32 of everything from FLG on. Clients of message format v0 computed it
from the magic number on, and read no other.
"""

from horolog.protocol.errors import DecodeError

MAGIC = b"\x04\x22\x4d\x18"
_FLAG_CONTENT_SIZE = 0x08
_FLAG_DICTIONARY_ID = 0x01
_DESCRIPTOR_AT = len(MAGIC)

_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
_WORD = 0xFFFFFFFF


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _WORD


def _lanes(data: bytes) -> int:
    """The part of xxh32 that mixes 16 bytes: a header has at most one such block."""
    accumulators = ((_PRIME_1 + _PRIME_2) & _WORD, _PRIME_2, 0, -_PRIME_1 & _WORD)
    mixed = []
    for lane, accumulator in enumerate(accumulators):
        word = int.from_bytes(data[4 * lane : 4 * lane + 4], "little")
        mixed.append(_rotate((accumulator + word * _PRIME_2) & _WORD, 13) * _PRIME_1 & _WORD)
    return sum(_rotate(value, bits) for value, bits in zip(mixed, (1, 7, 12, 18), strict=True)) & _WORD


def xxh32(data: bytes) -> int:
    """The hash, with seed 0, of less than 32 bytes: a frame's header is at most 18."""
    position = 16 if len(data) >= 16 else 0
    value = (_lanes(data) if position else _PRIME_5) + len(data) & _WORD
    while position + 4 <= len(data):
        word = int.from_bytes(data[position : position + 4], "little")
        value = _rotate((value + word * _PRIME_3) & _WORD, 17) * _PRIME_4 & _WORD
        position += 4
    for byte in data[position:]:
        value = _rotate((value + byte * _PRIME_5) & _WORD, 11) * _PRIME_1 & _WORD
    value = (value ^ value >> 15) * _PRIME_2 & _WORD
    value = (value ^ value >> 13) * _PRIME_3 & _WORD
    return value ^ value >> 16


def _checksum_position(frame: bytes) -> int:
    if frame[:_DESCRIPTOR_AT] != MAGIC or len(frame) < _DESCRIPTOR_AT + 3:
        raise DecodeError("no lz4 frame")
    flags = frame[_DESCRIPTOR_AT]
    position = _DESCRIPTOR_AT + 2
    position += 8 if flags & _FLAG_CONTENT_SIZE else 0
    position += 4 if flags & _FLAG_DICTIONARY_ID else 0
    if position >= len(frame):
        raise DecodeError("the lz4 frame ends inside its header")
    return position


def _with_checksum_from(frame: bytes, start: int) -> bytes:
    position = _checksum_position(frame)
    checksum = xxh32(frame[start:position]) >> 8 & 0xFF
    return frame if frame[position] == checksum else frame[:position] + bytes([checksum]) + frame[position + 1 :]


def with_right_checksum(frame: bytes) -> bytes:
    """A frame of any header checksum, with the one that lz4 needs: readers of format v0 never checked that byte."""
    return _with_checksum_from(frame, _DESCRIPTOR_AT)


def with_first_clients_checksum(frame: bytes) -> bytes:
    return _with_checksum_from(frame, 0)


def claimed_size(frame: bytes) -> int | None:
    """The size of the content, if the header names it."""
    if _checksum_position(frame) and frame[_DESCRIPTOR_AT] & _FLAG_CONTENT_SIZE:
        return int.from_bytes(frame[_DESCRIPTOR_AT + 2 : _DESCRIPTOR_AT + 10], "little")
    return None
