"""Bounds the memory of the indexes of complete segments: the least recently used are dropped and read again when needed."""

from typing import Protocol

INDEX_CACHE_BYTES = 32 * 1024 * 1024


class HasIndexes(Protocol):
    @property
    def index_bytes(self) -> int: ...
    def drop_indexes(self) -> None: ...


class IndexCache:
    """The segments with indexes in memory, least recently used first."""

    __slots__ = ("_sizes", "limit_bytes", "used_bytes")

    def __init__(self, limit_bytes: int = INDEX_CACHE_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._sizes: dict[HasIndexes, int] = {}

    def __repr__(self) -> str:
        return f"<IndexCache of {len(self._sizes)} segments, {self.used_bytes} of {self.limit_bytes} bytes>"

    def touch(self, segment: HasIndexes) -> None:
        """Note a use, and evict others if needed; the segment just used always stays."""
        size_bytes = segment.index_bytes
        self.used_bytes += size_bytes - self._sizes.pop(segment, 0)
        self._sizes[segment] = size_bytes
        while self.used_bytes > self.limit_bytes and len(self._sizes) > 1:
            idle = next(iter(self._sizes))
            self.forget(idle)
            idle.drop_indexes()

    def forget(self, segment: HasIndexes) -> None:
        """The segment is active, closed or removed: its indexes no longer count."""
        self.used_bytes -= self._sizes.pop(segment, 0)
