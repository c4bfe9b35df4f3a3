"""The log of a segment that lies in the bucket, as a file: it is read in blocks that are brought here and kept.

Each block is held against the seal's sums before it is believed. A reader that goes through the blocks in order has the next ones brought
before it asks.
"""

from __future__ import annotations

from collections.abc import Callable

from crc32c import crc32c

from horolog.broker.bucket.block_fetcher import BlockFetcher, Wake, Wanted
from horolog.broker.bucket.block_ledger import Block
from horolog.broker.log.integrity import BLOCK_BYTES, BlockSums, blocks_in
from horolog.broker.log.storage import RefusingFile, StorageFault

MOST_AHEAD = 4
SHARE_AHEAD = 16
"""One reader has no more than this part of the kept blocks brought ahead, but one block at least."""


class RemoteLog(RefusingFile):
    """See `storage.File`. Reads raise `NotHere` until their blocks are here."""

    __slots__ = ("_fetcher", "_find_sums", "_wake", "around", "key", "size_bytes", "sums")

    def __init__(
        self,
        path: str,
        key: str,
        size_bytes: int,
        fetcher: BlockFetcher,
        wake: Wake,
        sums: Callable[[], BlockSums],
    ) -> None:
        """`sums` raises NotHere until they are known."""
        super().__init__(path)
        self.key = key
        self.size_bytes = size_bytes
        self.sums: BlockSums | None = None
        self.around: Callable[[int], tuple[int, int]] = lambda position: (position, position + 1)
        """Where a walk begins and ends, probably, that comes to a position: what it takes comes with one GET."""
        self._fetcher = fetcher
        self._wake = wake
        self._find_sums = sums

    def __repr__(self) -> str:
        return f"<RemoteLog {self.key} of {self.size_bytes} bytes>"

    def pread(self, size: int, position: int) -> bytes:
        if position + size > self.size_bytes:
            raise StorageFault(f"read {self.path}: it ends before {position + size}", path=self.path)
        if not size:
            return b""
        numbers = range(position // BLOCK_BYTES, blocks_in(position + size))
        if len(numbers) > 1 and len(numbers) * BLOCK_BYTES > self._fetcher.files.limit_bytes():
            raise StorageFault(f"read {self.path}: a batch is larger than horolog.store.cache.bytes", path=self.path)
        parts: list[bytes] = []
        for number in numbers:
            begin = number * BLOCK_BYTES
            start, end = max(position, begin), min(position + size, begin + BLOCK_BYTES)
            part = self._fetcher.files.read(Block(self.key, number), end - start, start - begin)
            if part is None:
                raise self._ask_for(number, numbers[-1], position)
            parts.append(part)
        self._read_ahead(numbers[-1])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _ask_for(self, first: int, last: int, position: int) -> StorageFault:
        """Have blocks brought; returns what to raise. Raises NotHere for the sums."""
        if self.sums is None:
            self.sums = self._find_sums()
        start, end = self.around(position)
        before = max(start // BLOCK_BYTES, first - 1)
        until = min(blocks_in(min(end, self.size_bytes)) - 1, last + 1)
        return self._fetcher.want(self._wanted(min(before, first), max(until, last)), self._wake)

    def _read_ahead(self, number: int) -> None:
        """Have the next blocks brought for a reader that has come here in order: as many as hide the time of a GET."""
        files, key = self._fetcher.files, self.key
        if self.sums is None or (number > 0 and Block(key, number - 1) not in files):
            return
        count = max(1, min(MOST_AHEAD, files.limit_bytes() // (BLOCK_BYTES * SHARE_AHEAD)))
        for following in range(number + 1, min(number + 1 + count, blocks_in(self.size_bytes))):
            if Block(key, following) not in files:
                self._fetcher.want_next(self._wanted(following, following))

    def _wanted(self, first: int, last: int) -> Wanted:
        return Wanted(self.key, first, last, self.size_bytes, self._is_right)

    def _is_right(self, number: int, data: bytes) -> bool:
        assert self.sums is not None
        start, end = self.sums.span_of(number)
        return len(data) == end - start and crc32c(data) == self.sums.sum_of(number)

    def size(self) -> int:
        return self.size_bytes
