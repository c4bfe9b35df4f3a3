"""Reads MessagePack; a reader of its own, to bound nesting and to keep extensions that are not times.

Times (extension -1) become instants; other extensions an object with `type` and `data`. Map keys that are maps or lists
become their JSON.
"""

from collections.abc import Callable
from struct import Struct
from typing import Any

from horolog.client.decoding.values import DEEPEST, DecodingError, Instant, as_json

NAME = "MessagePack"
_NUMBERS = {
    0xCA: Struct(">f"),
    0xCB: Struct(">d"),
    0xCC: Struct(">B"),
    0xCD: Struct(">H"),
    0xCE: Struct(">I"),
    0xCF: Struct(">Q"),
    0xD0: Struct(">b"),
    0xD1: Struct(">h"),
    0xD2: Struct(">i"),
    0xD3: Struct(">q"),
}
_LENGTH_BYTES = {
    0xC4: 1,
    0xC5: 2,
    0xC6: 4,
    0xC7: 1,
    0xC8: 2,
    0xC9: 4,
    0xD9: 1,
    0xDA: 2,
    0xDB: 4,
    0xDC: 2,
    0xDD: 4,
    0xDE: 2,
    0xDF: 4,
}
"""The first bytes that are followed by a length, and the size of that length."""
_SECONDS_AND_NS = Struct(">Iq")


def read(data: bytes) -> Any:
    """Decode the bytes as one value. Raises DecodingError."""
    source = _Source(data)
    value = source.value(0)
    if source.position != len(data):
        raise DecodingError(f"not MessagePack: {len(data) - source.position} bytes are left over")
    return value


class _Source:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, size: int) -> bytes:
        end = self.position + size
        if end > len(self.data):
            raise DecodingError("not MessagePack: it ends too early")
        taken = self.data[self.position : end]
        self.position = end
        return taken

    def value(self, depth: int) -> Any:
        if depth > DEEPEST:
            raise DecodingError(f"the MessagePack value nests deeper than {DEEPEST}")
        first = self.take(1)[0]
        if first < 0x80:
            return first
        if first >= 0xE0:
            return first - 256
        if first < 0xC0:
            return self._short(first, depth)
        if first in _CONSTANTS:
            return _CONSTANTS[first]
        if first in _NUMBERS:
            number = _NUMBERS[first]
            return number.unpack(self.take(number.size))[0]
        if 0xD4 <= first <= 0xD8:
            return self._extension(1 << (first - 0xD4))
        if first not in _LENGTH_BYTES:
            raise DecodingError("not MessagePack: it has the byte c1, which is never used")
        length = int.from_bytes(self.take(_LENGTH_BYTES[first]), "big")
        return self._long(first, length, depth)

    def _short(self, first: int, depth: int) -> Any:
        """Lengths that are part of the first byte."""
        if first < 0x90:
            return self._map(first & 15, depth)
        return self._list(first & 15, depth) if first < 0xA0 else self._text(first & 31)

    def _long(self, first: int, length: int, depth: int) -> Any:
        if first <= 0xC6:
            return self.take(length)
        if first <= 0xC9:
            return self._extension(length)
        if first <= 0xDB:
            return self._text(length)
        return self._list(length, depth) if first <= 0xDD else self._map(length, depth)

    def _text(self, length: int) -> str | bytes:
        """Text, or bytes, which old writers put there too."""
        data = self.take(length)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data

    def _list(self, length: int, depth: int) -> list[Any]:
        return [self.value(depth + 1) for _ in range(length)]

    def _map(self, length: int, depth: int) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for _ in range(length):
            key = self.value(depth + 1)
            found[as_json(key) if isinstance(key, (dict, list)) else key] = self.value(depth + 1)
        return found

    def _extension(self, length: int) -> Any:
        kind = int.from_bytes(self.take(1), "big", signed=True)
        data = self.take(length)
        reader = _TIMES.get(length) if kind == -1 else None
        return {"type": kind, "data": data} if reader is None else reader(data)


def _of_seconds(data: bytes) -> Instant:
    return Instant(int.from_bytes(data, "big") * 1_000_000_000)


def _of_both(data: bytes) -> Instant:
    whole = int.from_bytes(data, "big")
    return Instant((whole & (1 << 34) - 1) * 1_000_000_000 + (whole >> 34))


def _of_long(data: bytes) -> Instant:
    ns, seconds = _SECONDS_AND_NS.unpack(data)
    return Instant(seconds * 1_000_000_000 + ns)


_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_TIMES: dict[int, Callable[[bytes], Instant]] = {4: _of_seconds, 8: _of_both, 12: _of_long}
