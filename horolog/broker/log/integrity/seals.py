"""Reads and writes seals, which prove without reading a log that the log and its index files are those that were written.

Kafka's index files carry no checksum and nothing that ties them to a log, so a missing, emptied, swapped or plausibly
wrong one is believed, and lookups go wrong. Here each partition folder has one more file, `horolog-seals`, which Kafka
leaves alone. For every complete segment it has the contents of the log and the checksums of its indexes.

Text, lines ended by a newline, fields parted by a space, numbers decimal unless said otherwise:

    horolog-seals 2
    <segment>                       one line per segment, base offsets ascending
    checksum <crc32c of everything before this line, 8 hex digits>

A segment's line has these 18 fields:

    base offset · log size in bytes · log's mtime in ns · crc32c of the log's first and last 4096 bytes (hex)
    next offset · largest timestamp · its offset · first record's timestamp · magics (bit n: format n occurs; bit 7: producer ids do)
    created at (ms) · offset index size · its crc32c (hex) · time index size · its crc32c (hex) · the same of the transaction index
    holes: damaged ranges of the log, `start-end` joined by commas, `-` if there are none
    sums of the log's blocks of 1 MiB (crc32c, 8 hex digits each, joined; see `block_sums`), `-` for an empty log

**When it is written.** After a segment has been rolled *and* its log has been synced, with its indexes if the log is too large to
rebuild them at once (in a worker, see `Partition.sync`), after retention and compaction, and at a clean stop, when the active
segment is sealed like the others. A growing active segment is sealed *up to its synced end* with every checkpoint, if it has grown
by some megabytes. The file is always written aside, synced and renamed. A seal never gets ahead of the log: the sealed part of the
log is on the disk first.

**Trust.** On opening, a segment whose log has the sealed size is not read. If its mtime is the sealed one too, nothing more is
checked; after a copy, when every mtime is new, the ends of the log are checked against the fingerprint. If the log is longer than
sealed and begins with the sealed bytes, only the added part is read: sealed bytes never change in place. A log whose seal was
made while it grew (mtime -1) is treated like this even if nothing was added. If the log is shorter, the seal still has the end of
the offsets that were given out. The index files are checked against size and crc on first use: thousands of partitions open
without reading one. The log's blocks are verified against their sums when they are first read, and repeatedly by the scrub.
Everything that does not fit — no file, a damaged one, a segment without a line, another fingerprint — is scanned, its indexes are
rebuilt from the log, and it is sealed again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from crc32c import crc32c

from horolog.broker.log.integrity.block_sums import BlockSums, blocks_in
from horolog.broker.log.storage import File, FileMissing, Storage

SEALS = "horolog-seals"
FINGERPRINT_BYTES = 4096
NEVER_MODIFIED = -1
"""In the seal of a growing log: the time of its file means nothing, and its index files have preallocated space."""
_HEAD = "horolog-seals 2"
_CHECKSUM = "checksum "
_FIELDS = 18


class SealsDamaged(ValueError):
    """The file is damaged: all its segments count as unsealed."""


Hole = tuple[int, int]
"""Where damage begins in a log file, and where the next good batch does."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a log file."""

    size_bytes: int
    next_offset: int
    max_timestamp: int = -1
    max_timestamp_offset: int = -1
    first_timestamp: int = -1
    magics: int = 0
    holes: tuple[Hole, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexSum:
    """The size and checksum of an index file."""

    size_bytes: int
    crc: int

    @classmethod
    def of(cls, entries: bytes | bytearray) -> "IndexSum":
        return cls(len(entries), crc32c(entries))


@dataclass(frozen=True, slots=True)
class Seal:
    """The record of one complete segment."""

    base_offset: int
    contents: Contents
    modified_ns: int
    fingerprint: int
    created_ms: int
    offset_index: IndexSum
    time_index: IndexSum
    transaction_index: IndexSum = IndexSum(0, 0)
    """Empty if there is no such file."""
    block_sums: bytes = b""
    """As `block_sums.BlockSums.encode` returns them."""

    def sums(self) -> BlockSums:
        """The sums of the log's blocks, to be extended."""
        return BlockSums(self.contents.size_bytes, self.block_sums)


def fingerprint(log: File, size_bytes: int) -> int:
    """The crc32c of the first and last bytes of a log."""
    if size_bytes <= FINGERPRINT_BYTES:
        return crc32c(log.pread(size_bytes, 0)) if size_bytes else 0
    head = crc32c(log.pread(FINGERPRINT_BYTES, 0))
    return crc32c(log.pread(FINGERPRINT_BYTES, size_bytes - FINGERPRINT_BYTES), head)


def contradiction(seal: Seal) -> str | None:
    """Why a seal is impossible, None if it is not. Asserted on writing, damage on reading."""
    holds, sums = seal.contents, seal.block_sums
    if len(sums) != 4 * blocks_in(holds.size_bytes):
        return f"{len(sums)} bytes are not checksums of {holds.size_bytes} bytes"
    if holds.next_offset < seal.base_offset:
        return f"offsets end at {holds.next_offset}, before {seal.base_offset}"
    if any(not 0 <= start < end <= holds.size_bytes for start, end in holds.holes):
        return f"holes {holds.holes} are not inside of {holds.size_bytes} bytes"
    return None


def ascend(base_offsets: Sequence[int]) -> bool:
    """Whether the segments are in their order. Asserted on writing, damage on reading."""
    return all(before < following for before, following in pairwise(base_offsets))


def encode(seals: Sequence[Seal]) -> bytes:
    assert ascend([one.base_offset for one in seals]), f"segments out of order: {seals}"
    body = "".join(f"{line}\n" for line in (_HEAD, *map(_line, seals))).encode()
    return body + f"{_CHECKSUM}{crc32c(body):08x}\n".encode()


def _line(seal: Seal) -> str:
    assert contradiction(seal) is None, f"{seal}: {contradiction(seal)}"
    holds = seal.contents
    holes = ",".join(f"{start}-{end}" for start, end in holds.holes) or "-"
    return (
        f"{seal.base_offset} {holds.size_bytes} {seal.modified_ns} {seal.fingerprint:08x}"
        f" {holds.next_offset} {holds.max_timestamp} {holds.max_timestamp_offset} {holds.first_timestamp} {holds.magics}"
        f" {seal.created_ms} {seal.offset_index.size_bytes} {seal.offset_index.crc:08x}"
        f" {seal.time_index.size_bytes} {seal.time_index.crc:08x}"
        f" {seal.transaction_index.size_bytes} {seal.transaction_index.crc:08x} {holes}"
        f" {seal.block_sums.hex() or '-'}"
    )


def decode(data: bytes) -> dict[int, Seal]:
    """The seals by base offset; raises SealsDamaged."""
    end = data.rfind(b"\n", 0, -1) + 1
    if data[end:] != f"{_CHECKSUM}{crc32c(data[:end]):08x}\n".encode():
        raise SealsDamaged("the checksum does not match")
    head, *lines = data[:end].decode().splitlines()
    if head != _HEAD:
        raise SealsDamaged(f"{head!r} is not {_HEAD!r}")
    seals = [_parse(line) for line in lines]
    if not ascend([one.base_offset for one in seals]):
        raise SealsDamaged("its segments are not in their order")
    return {seal.base_offset: seal for seal in seals}


def _parse(line: str) -> Seal:
    fields = line.split(" ")
    if len(fields) != _FIELDS:
        raise SealsDamaged(f"{line!r} has not {_FIELDS} fields")
    base, size, modified, ends, next_offset, largest, at, first, magics, created, *sums, holes, blocks = fields
    block_sums = b"" if blocks == "-" else bytes.fromhex(blocks)
    seal = Seal(
        int(base),
        Contents(
            int(size),
            int(next_offset),
            int(largest),
            int(at),
            int(first),
            int(magics),
            () if holes == "-" else _holes(holes),
        ),
        int(modified),
        int(ends, 16),
        int(created),
        IndexSum(int(sums[0]), int(sums[1], 16)),
        IndexSum(int(sums[2]), int(sums[3], 16)),
        IndexSum(int(sums[4]), int(sums[5], 16)),
        block_sums,
    )
    reason = contradiction(seal)
    if reason is not None:
        raise SealsDamaged(f"{line!r}: {reason}")
    return seal


def _holes(text: str) -> tuple[Hole, ...]:
    pairs = (pair.partition("-") for pair in text.split(","))
    return tuple((int(start), int(end)) for start, _, end in pairs)


def load(storage: Storage, directory: str) -> dict[int, Seal]:
    """The seals of a partition folder, none if there is no file; raises SealsDamaged."""
    try:
        return decode(storage.read_all(f"{directory}/{SEALS}"))
    except FileMissing:
        return {}


def save(storage: Storage, directory: str, seals: Sequence[Seal]) -> None:
    storage.write_atomically(f"{directory}/{SEALS}", encode(seals))


def save_unsynced(storage: Storage, directory: str, seals: Sequence[Seal]) -> None:
    """For an empty or short log: if a power cut loses or garbles its seals, the log is read again."""
    file = storage.create(f"{directory}/{SEALS}")
    file.pwritev([encode(seals)], 0)
    file.close()
