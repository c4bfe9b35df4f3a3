"""Checksums of a log file, block by block, so that a part of it can be verified without reading all of it.

A log is divided into blocks of 1 MiB, the last one shorter. The sum of a block is the crc32c of all its bytes, so it also covers
bytes that no batch's own checksum covers. Sums grow with the log and are kept in seals.
"""

from typing import Final

from crc32c import crc32c

from horolog.broker.log.integrity.crc_combine import COMBINES, combine, shift
from horolog.broker.log.storage import File
from horolog.protocol.primitives import Buffer
from horolog.protocol.records.head import ATTRIBUTES_AT, CRC, CRC_AT, LENGTH, LENGTH_AT, LENGTH_ENDS_AT, MAGIC_AT

BLOCK_BYTES = 1 << 20
COMBINED_FROM_BYTES: Final = 64 * 1024
"""A batch of this size takes longer to sum than its own checksum takes to combine."""
_SUM_BYTES: Final = 4
_BATCH_MAGIC: Final = 2


class BlockSums:
    """The sums of a log that grows at its end."""

    __slots__ = ("_complete", "_last", "size_bytes")

    def __init__(self, size_bytes: int = 0, sums: bytes = b"") -> None:
        """`sums` as `encode` returned them for a log of that size. Raises ValueError if they do not fit the size."""
        if len(sums) != _SUM_BYTES * blocks_in(size_bytes):
            raise ValueError(f"{len(sums)} bytes are not checksums of {size_bytes} bytes")
        self.size_bytes = size_bytes
        has_open_block = size_bytes % BLOCK_BYTES != 0
        self._complete = bytearray(sums[:-_SUM_BYTES] if has_open_block else sums)
        self._last = int.from_bytes(sums[-_SUM_BYTES:], "big") if has_open_block else 0

    def __repr__(self) -> str:
        return f"<BlockSums of {self.size_bytes} bytes>"

    def encode(self) -> bytes:
        """Four bytes per block, the last one as it is now."""
        last = self._last.to_bytes(_SUM_BYTES, "big") if self.size_bytes % BLOCK_BYTES else b""
        sums = bytes(self._complete) + last
        assert len(sums) == _SUM_BYTES * blocks_in(self.size_bytes), f"{self!r} has {len(sums)} bytes of sums"
        return sums

    def extend(self, data: Buffer) -> None:
        """Add the bytes that follow."""
        size = len(data)
        room = BLOCK_BYTES - self.size_bytes % BLOCK_BYTES
        if size < room:
            self._last = crc32c(data, self._last)
            self.size_bytes += size
            return
        view = memoryview(data)
        at = 0
        while at < size:
            part = view[at : at + room]
            self._last = crc32c(part, self._last)
            self.size_bytes += len(part)
            if len(part) == room:
                self._complete += self._last.to_bytes(_SUM_BYTES, "big")
                self._last = 0
            at += room
            room = BLOCK_BYTES

    def extend_with(self, stored: Buffer) -> None:
        """Add the bytes that follow, as they were appended: the checksum of a large v2 batch, which has been checked, is used again."""
        if COMBINES and len(stored) >= COMBINED_FROM_BYTES and _is_one_batch(stored):
            self.extend_by_batch(stored)
        else:
            self.extend(stored)

    def extend_by_batch(self, batch: Buffer) -> None:
        """Add a batch, whose bytes from the attributes on have the sum that is in its header. At most one block ends in it."""
        size = len(batch)
        room = BLOCK_BYTES - self.size_bytes % BLOCK_BYTES
        if room <= ATTRIBUTES_AT or size - room >= BLOCK_BYTES:
            self.extend(batch)
            return
        (covered,) = CRC.unpack_from(batch, CRC_AT)
        view = memoryview(batch)
        self._last = crc32c(view[:ATTRIBUTES_AT], self._last)
        if size < room:
            self._last = combine(self._last, covered, size - ATTRIBUTES_AT)
        else:
            up_to_end = crc32c(view[ATTRIBUTES_AT:room])
            self._last = combine(self._last, up_to_end, room - ATTRIBUTES_AT)
            self._complete += self._last.to_bytes(_SUM_BYTES, "big")
            self._last = covered ^ shift(up_to_end, size - room)
        self.size_bytes += size

    def sum_of(self, block: int) -> int:
        at = block * _SUM_BYTES
        return int.from_bytes(self._complete[at : at + _SUM_BYTES], "big") if at < len(self._complete) else self._last

    def span_of(self, block: int) -> tuple[int, int]:
        """Where a block begins and ends."""
        assert 0 <= block < blocks_in(self.size_bytes), f"{self!r} has no block {block}"
        return block * BLOCK_BYTES, min((block + 1) * BLOCK_BYTES, self.size_bytes)


def _is_one_batch(stored: Buffer) -> bool:
    return bool(
        stored[MAGIC_AT] == _BATCH_MAGIC and LENGTH.unpack_from(stored, LENGTH_AT)[0] + LENGTH_ENDS_AT == len(stored)
    )


def blocks_in(size_bytes: int) -> int:
    return (size_bytes + BLOCK_BYTES - 1) // BLOCK_BYTES


def extend_from(sums: BlockSums, file: File, end: int) -> None:
    """Add the file's bytes up to `end`."""
    while sums.size_bytes < end:
        size = min(BLOCK_BYTES, end - sums.size_bytes)
        sums.extend(file.pread(size, sums.size_bytes))
    assert sums.size_bytes == end, f"{sums!r} of a log that ends at {end}"
