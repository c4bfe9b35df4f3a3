"""The log of a segment that lies in the bucket, as a file: it is read in blocks that are brought here and kept.

Each block is held against the seal's sums before it is believed. A reader that goes through the blocks in order has the next ones brought
before it asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from crc32c import crc32c

from horolog.broker.bucket.block_fetcher import AHEAD_SHARE, BlockFetcher, Wake, Wanted
from horolog.broker.bucket.block_ledger import MOST_AWAITED_BYTES, Block
from horolog.broker.bucket.block_slices import BlockSlices
from horolog.broker.log.integrity import BLOCK_BYTES, BlockSums, blocks_in
from horolog.broker.log.storage import RefusingFile, StorageFault
from horolog.protocol.primitives import Unread
from horolog.stores.object_store import Bytes

READ_AT_ONCE_BYTES = MOST_AWAITED_BYTES // 2
"""A read of so much succeeds however little is kept: blocks stay until those that wait for them have read them."""
RUN_BLOCKS = 4
"""Blocks that come ahead come with one GET, from one multiple of this number to the next: a GET costs much beside one block."""
SHARE_OF_RUN = 4
"""A run is no longer than this part of the kept blocks, but one block at least."""
RUNS_AHEAD = 2
"""With its own one, a reader has no more runs brought ahead than are let in: see `AHEAD_SHARE`."""
PLACES = 16
"""Of readers in one log, for which is known that all has been asked for that comes ahead."""


_Span = tuple[int, int, int]
"""The part of a read that lies in one block: the block's number, the size of the part, and where it begins in the block."""


def _spans(size: int, position: int) -> list[_Span]:
    found = []
    for number in range(position // BLOCK_BYTES, blocks_in(position + size)):
        begin = number * BLOCK_BYTES
        start, end = max(position, begin), min(position + size, begin + BLOCK_BYTES)
        found.append((number, end - start, start - begin))
    return found


def _place_alone(position: int) -> tuple[int, int]:
    return position, position + 1


class RemoteLog(RefusingFile):
    """See `storage.File`. Reads raise `NotHere` until their blocks are here."""

    __slots__ = ("_ahead_of", "_fetcher", "_find_sums", "_wake", "around", "key", "records", "size_bytes", "sums")

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
        self.around: Callable[[int], tuple[int, int]] = _place_alone
        """Where a walk begins and ends, probably, that comes to a position: what it takes comes with one GET."""
        self.records: Callable[[], str] = partial(str, path)
        """Which records it has, in words."""
        self._ahead_of: tuple[int, ...] = ()
        """The blocks for which the newest reads have had all brought that comes ahead: readers in different places have one each."""
        self._fetcher = fetcher
        self._wake = wake
        self._find_sums = sums

    def __repr__(self) -> str:
        return f"<RemoteLog {self.key} of {self.size_bytes} bytes>"

    def pread(self, size: int, position: int) -> bytes:
        number = position // BLOCK_BYTES
        start = position - number * BLOCK_BYTES
        if start + size <= BLOCK_BYTES and position + size <= self.size_bytes:  # most reads are of one head
            found = self._fetcher.files.read(Block(self.key, number), size, start)
            if found is not None:
                self._read_ahead(number)
                return found
        return self._read_blocks(size, position)

    def _read_blocks(self, size: int, position: int) -> bytes:
        if position + size > self.size_bytes:
            raise StorageFault(f"read {self.path}: it ends before {position + size}", path=self.path)
        if not size:
            return b""
        spans, files = _spans(size, position), self._fetcher.files
        most_bytes = max(files.limit_bytes(), READ_AT_ONCE_BYTES)
        if len(spans) > 1 and len(spans) * BLOCK_BYTES > most_bytes:
            raise StorageFault(f"read {self.path}: a batch is larger than horolog.store.cache.bytes", path=self.path)
        last = spans[-1][0]
        missing = self._first_missing(spans)
        if missing >= 0:  # before one is read: those that were read may go for others
            raise self._ask_for(missing, last, position)
        parts: list[bytes] = []
        for number, part_size, start in spans:
            part = files.read(Block(self.key, number), part_size, start)
            if part is None:
                raise self._ask_for(number, last, position)
            parts.append(part)
        self._read_ahead(last)
        return b"".join(parts)

    def unread(self, size: int, position: int) -> Unread | None:
        """None if a block is not here: reading asks for it."""
        spans, files = _spans(size, position), self._fetcher.files
        if self.sums is None or position + size > self.size_bytes or self._first_missing(spans) >= 0:
            return None
        kept: list[Unread] = []
        for number, part_size, start in spans:
            part = files.unread(Block(self.key, number), part_size, start)
            if part is not None:
                kept.append(part)
        slices = BlockSlices(kept)
        if len(kept) < len(spans):
            return None  # letting go of the others
        self._read_ahead(spans[-1][0])
        return slices

    def _first_missing(self, spans: Sequence[_Span]) -> int:
        """The number of a block; -1 if all are here."""
        for number, _, _ in spans:
            if Block(self.key, number) not in self._fetcher.files:
                return number
        return -1

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
        files = self._fetcher.files
        if number in self._ahead_of or self.sums is None or (number > 0 and Block(self.key, number - 1) not in files):
            return
        most = files.limit_bytes() // BLOCK_BYTES
        run = max(1, min(RUN_BLOCKS, most // SHARE_OF_RUN))
        runs = 1 + max(1, min(RUNS_AHEAD, most // AHEAD_SHARE // run - 1))  # with the rest of its own
        first, end = number + 1, min((number // run + runs) * run, blocks_in(self.size_bytes))
        all_come = True
        while first < end:
            following = min(first - first % run + run, end)
            all_come &= self._fetcher.want_next(self._wanted(first, following - 1))
            first = following
        if all_come:
            self._ahead_of = (number, *self._ahead_of[: PLACES - 1])

    def _wanted(self, first: int, last: int) -> Wanted:
        return Wanted(self.key, first, last, self.size_bytes, self._is_right, self.records)

    def _is_right(self, number: int, data: Bytes) -> bool:
        assert self.sums is not None
        start, end = self.sums.span_of(number)
        return len(data) == end - start and crc32c(data) == self.sums.sum_of(number)

    def size(self) -> int:
        return self.size_bytes
