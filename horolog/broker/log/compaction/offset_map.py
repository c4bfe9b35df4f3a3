"""Maps each key of the dirty part of a log to its last offset, in bounded memory.

Keys of fewer than 16 bytes stand for themselves; longer ones for a digest of 16 bytes, of which two are alike by
chance less often than the memory that holds them fails.
"""

from hashlib import blake2b

DIGEST_BYTES = 16
BYTES_PER_KEY = 200
"""Measured: a digest, an offset and their place in a dictionary, just after it has grown."""


class OffsetMap:
    """Key to last offset, up to a number of keys."""

    __slots__ = ("_offsets", "latest_offset", "max_keys")

    def __init__(self, memory_bytes: int) -> None:
        self.max_keys = max(1, memory_bytes // BYTES_PER_KEY)
        self.latest_offset = -1  # up to here the log has been read; records behind it are none of this map's business
        self._offsets: dict[bytes, int] = {}

    def __repr__(self) -> str:
        return f"<OffsetMap of {len(self._offsets)} of {self.max_keys} keys up to offset {self.latest_offset}>"

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes | memoryview, offset: int) -> bool:
        """Set the offset of a key; False if there is no room for another key."""
        name = _name(key)
        if len(self._offsets) >= self.max_keys and name not in self._offsets:
            return False
        self._offsets[name] = offset
        return True

    def get(self, key: bytes | memoryview) -> int:
        """The last offset of a key, -1 if the dirty part does not have it."""
        return self._offsets.get(_name(key), -1)


def _name(key: bytes | memoryview) -> bytes:
    return bytes(key) if len(key) < DIGEST_BYTES else blake2b(key, digest_size=DIGEST_BYTES).digest()
