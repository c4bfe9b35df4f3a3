"""Varints, tag sections and the small helpers that generated codecs call off their fast path.

An unsigned varint carries seven bits a byte, lowest first, the top bit set on all bytes but the last. Signed ones are
zigzagged first (0, -1, 1, -2 ... become 0, 1, 2, 3 ...). A tag section is a varint count, then for each tag its number,
its size in bytes (both varints) and its value.
"""

from collections.abc import Iterable, MutableSequence

from horolog.protocol.errors import DecodeError, EncodeError

Buffer = bytes | bytearray | memoryview


class Unread:
    """Bytes of a frame that are not in memory: the carrier of the frame reads them, or sends them from where they lie."""

    __slots__ = ()

    def __len__(self) -> int:
        raise NotImplementedError

    def read(self) -> bytes:
        raise NotImplementedError

    def send(self, descriptor: int) -> bool:
        """Send as much as a socket takes; return whether that was all. The object stands for the rest from then on."""
        raise NotImplementedError

    def take(self, size_bytes: int) -> bytes:
        """Read the first of them. The object stands for the rest from then on."""
        raise NotImplementedError

    def keep(self) -> bool:
        """They have to wait: where they lie stays open until `let_go`. False if it may have to be opened again."""
        return False

    def let_go(self) -> None:
        """They have left, or are no longer wanted."""

    def takes_turns(self) -> bool:
        """Whether they leave only while no other bytes of this kind do: those of producers are not to wait for them."""
        return False


Part = Buffer | Unread
"""A part of a frame that is to be sent."""

Records = bytes | bytearray | memoryview | list[bytes] | list[memoryview] | list[Buffer] | None

MAX_VARINT_BYTES = 5
MAX_VARLONG_BYTES = 10
_LAST_SHIFT = 63  # of the tenth byte, of which one bit is left
MAX_TAGS = 1_000  # in all tag sections of one message; clients send a handful
MAX_STRING_BYTES = 32767  # the limit of the older, two-byte length holds for compact strings, too
# Record buffers below this size are copied between their neighbours: cheaper than a part of their own.
COPY_BELOW_BYTES = 4096

ONE_BYTE_VARINTS = tuple(bytes([value]) for value in range(128))


def encode_unsigned_varint(value: int) -> bytes:
    if 0 <= value < 128:
        return ONE_BYTE_VARINTS[value]
    if not 0 <= value < 1 << 64:
        raise EncodeError(f"{value} does not fit an unsigned varint")
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_varint(value: int) -> bytes:
    return encode_unsigned_varint(value << 1 if value >= 0 else ~value << 1 | 1)


def decode_unsigned_varint(data: Buffer, position: int, max_bytes: int = MAX_VARINT_BYTES) -> tuple[int, int]:
    """The value and the position after it; more than `max_bytes` bytes or 64 bits, or an end in the middle raise DecodeError."""
    value = shift = 0
    for index in range(position, position + max_bytes):
        if index >= len(data):
            raise DecodeError(f"the bytes end inside a varint at {position}")
        byte = data[index]
        value |= (byte & 127) << shift
        if byte < 128:
            if shift == _LAST_SHIFT and byte > 1:
                raise DecodeError(f"the varint at {position} has more than 64 bits")
            return value, index + 1
        shift += 7
    raise DecodeError(f"a varint at {position} is longer than {max_bytes} bytes")


def decode_varint(data: Buffer, position: int, max_bytes: int = MAX_VARINT_BYTES) -> tuple[int, int]:
    value, position = decode_unsigned_varint(data, position, max_bytes)
    return value >> 1 ^ -(value & 1), position


def rest_of_varint(data: Buffer, position: int) -> tuple[int, int]:
    """The varint whose first byte, just before `position`, was read and has its top bit set."""
    return decode_unsigned_varint(data, position - 1)


def skip_tags(data: Buffer, position: int, count: int, limit: int, tags_left: int = MAX_TAGS) -> tuple[int, int]:
    """The position after `count` unknown tags, and how many more the message may have.

    `count` is the section's first byte, already read.
    """
    if count > 127:
        count, position = rest_of_varint(data, position)
    tags_left = check_tag_count(count, limit - position, tags_left)
    for _ in range(count):
        _, position, stop = read_tag(data, position, limit)
        position = stop
    return position, tags_left


def check_tag_count(count: int, left: int, tags_left: int) -> int:
    """How many tags the message may have after these."""
    if count * 2 > left:
        raise DecodeError(f"{count} tags do not fit into the remaining {left} bytes")
    if count > tags_left:
        raise DecodeError(f"{count} tags, but the message may have only {tags_left} more")
    return tags_left - count


def read_tag(data: Buffer, position: int, limit: int) -> tuple[int, int, int]:
    """A tag's number, where its value begins and where it ends."""
    number, position = decode_unsigned_varint(data, position)
    size, position = decode_unsigned_varint(data, position)
    if size > limit - position:
        raise DecodeError(f"tag {number} claims {size} bytes, but {limit - position} are left")
    return number, position, position + size


def check_tag_end(name: str, position: int, stop: int) -> None:
    if position != stop:
        raise DecodeError(f"{name}: its value ends {stop - position:+d} bytes from where its tag says")


def tag_section(tags: list[tuple[int, list[Buffer]]]) -> bytes:
    """The section for (number, parts of the value) pairs in ascending order."""
    out: list[Buffer] = [encode_unsigned_varint(len(tags))]
    for number, parts in tags:
        value = b"".join(parts)
        out += (encode_unsigned_varint(number), encode_unsigned_varint(len(value)), value)
    return b"".join(out)


def refusal(name: str, size: int, left: int, objects_left: int = 0) -> DecodeError:
    """The error for an impossible length or count; negative ones stand for null."""
    if objects_left < 0:
        return DecodeError(f"{name} has {size} elements, too many for one message")
    if size < 0:
        return DecodeError(f"{name} may not be null")
    return DecodeError(f"{name} claims {size} (bytes or elements), {left} bytes are left")


def records_size(records: Records | Unread) -> int:
    if isinstance(records, list):
        return sum(map(len, records))
    return 0 if records is None else len(records)


def add_records(records: Records | Unread, size_bytes: int, out: list[Buffer], parts: MutableSequence[Part]) -> None:
    """Put record buffers after what `out` holds: copied into `out` when small, else as parts of their own."""
    if isinstance(records, Unread):
        parts.append(b"".join(out))
        out.clear()
        parts.append(records)
        return
    buffers: Iterable[Buffer] = records if isinstance(records, list) else () if records is None else (records,)
    if size_bytes < COPY_BELOW_BYTES:
        out.extend(buffers)
        return
    parts.append(b"".join(out))
    out.clear()
    parts.extend(buffers)
