"""Caches pieces of logs that were converted for readers, evicting the least recently used first, and a log's pieces with the log."""

from typing import NamedTuple

from horolog.protocol.records.convert_up import UpBatch

CONVERTED_BYTES = 32 * 1024 * 1024
"""The default limit of cached bytes."""


class Chunk(NamedTuple):
    """A piece of a log from some place on, as batches, with ends relative to that place."""

    batches: list[UpBatch]
    size_bytes: int


class ConvertedChunks:
    """The recently used chunks, by the number of their log and their start in it."""

    __slots__ = ("_chunks", "limit_bytes", "used_bytes")

    def __init__(self, limit_bytes: int = CONVERTED_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._chunks: dict[tuple[int, int], Chunk] = {}

    def __repr__(self) -> str:
        return f"<ConvertedChunks: {len(self._chunks)}, {self.used_bytes} of {self.limit_bytes} bytes>"

    def get(self, log: int, position: int) -> Chunk | None:
        """`log` is a number that identifies one log file while the process runs."""
        key = (log, position)
        chunk = self._chunks.pop(key, None)
        if chunk is not None:
            self._chunks[key] = chunk
        return chunk

    def put(self, log: int, position: int, chunk: Chunk) -> None:
        if chunk.size_bytes > self.limit_bytes:
            return
        self._drop((log, position))
        self._chunks[log, position] = chunk
        self.used_bytes += chunk.size_bytes
        while self.used_bytes > self.limit_bytes:
            self._drop(next(iter(self._chunks)))

    def forget(self, log: int) -> None:
        """The log is closed, removed or replaced."""
        for key in [key for key in self._chunks if key[0] == log]:
            self._drop(key)

    def _drop(self, key: tuple[int, int]) -> None:
        chunk = self._chunks.pop(key, None)
        if chunk is not None:
            self.used_bytes -= chunk.size_bytes
