"""Seals: how a broker knows, without reading a log again, that a log and its index files are those that it wrote.

Kafka's index files carry no checksum and nothing that ties them to a log, so a missing, emptied, swapped or plausibly
wrong one is believed, and look-ups go wrong. Here each partition folder has one more file, `horolog-seals`, which Kafka
leaves alone. It says of every segment that is complete what the log holds and what the bytes of its indexes sum up to.

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

**When it is written.** After a segment has been rolled *and* its log has been synced, with its indexes where the log is too large
to make them anew at once (in a worker, see `Partition.sync`), after retention and compaction, and at a clean stop, when the active segment is sealed like the others. While it
grows the active segment is sealed *up to where it has been synced* with every checkpoint, if it has grown by some megabytes. Always
aside, synced and renamed. A seal never gets ahead of the log: what it says of that is on the disk before it is.

**Trust.** On opening, a segment whose log has the sealed size is not read. If its mtime is the sealed one too
nothing more is looked at; after a copy, when every mtime is new, the ends of the log are checked against the
fingerprint. If the log is longer than its seal says and begins as it was sealed, only what was added is read: what a seal describes
never changes in place. A seal that was made while the log grew (its mtime is -1) is read like that even if nothing was added. If it is shorter, the seal still tells up to where offsets have been given out. The index files are held
against size and crc when they are first used: thousands of partitions open without reading one. The log's blocks are held against
their sums when they are first read, and again and again by the scrub. Whatever does not fit — no file, a damaged one, a segment
without a line, another fingerprint — is scanned, its indexes are made anew from the log, and it is sealed again.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from crc32c import crc32c

from horolog.broker.log.integrity.block_sums import BlockSums, blocks_in
from horolog.broker.log.storage import File, FileMissing, Storage

SEALS = "horolog-seals"
FINGERPRINT_BYTES = 4096
NEVER_MODIFIED = -1
"""In the seal of a log that goes on growing: the time of its file tells nothing, and its index files have room for more."""
_HEAD = "horolog-seals 2"
_CHECKSUM = "checksum "
_FIELDS = 18


class SealsDamaged(ValueError):
    """The file is not what it should be: all its segments count as unsealed."""


Hole = tuple[int, int]
"""Where damage begins in a log file, and where the next good batch does."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What a log file holds."""

    size_bytes: int
    next_offset: int
    max_timestamp: int = -1
    max_timestamp_offset: int = -1
    first_timestamp: int = -1
    magics: int = 0
    holes: tuple[Hole, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexSum:
    """What the bytes of an index file sum up to."""

    size_bytes: int
    crc: int

    @classmethod
    def of(cls, entries: bytes | bytearray) -> "IndexSum":
        return cls(len(entries), crc32c(entries))


@dataclass(frozen=True, slots=True)
class Seal:
    """All that is recorded of one complete segment."""

    base_offset: int
    contents: Contents
    modified_ns: int
    fingerprint: int
    created_ms: int
    offset_index: IndexSum
    time_index: IndexSum
    transaction_index: IndexSum = IndexSum(0, 0)
    """Nothing where there is no such file."""
    block_sums: bytes = b""
    """As `block_sums.BlockSums.encode` gives them."""

    def sums(self) -> BlockSums:
        """The sums of the log's blocks, which go on from here."""
        return BlockSums(self.contents.size_bytes, self.block_sums)


def fingerprint(log: File, size_bytes: int) -> int:
    """The crc32c of the first and last bytes of a log."""
    if size_bytes <= FINGERPRINT_BYTES:
        return crc32c(log.pread(size_bytes, 0)) if size_bytes else 0
    head = crc32c(log.pread(FINGERPRINT_BYTES, 0))
    return crc32c(log.pread(FINGERPRINT_BYTES, size_bytes - FINGERPRINT_BYTES), head)


def contradiction(seal: Seal) -> str | None:
    """Why no segment can be as the seal says. Asserted of seals that are written, and damage in those that are read."""
    holds, sums = seal.contents, seal.block_sums
    if len(sums) != 4 * blocks_in(holds.size_bytes):
        return f"{len(sums)} bytes are no sums of {holds.size_bytes} bytes"
    if holds.next_offset < seal.base_offset:
        return f"offsets end at {holds.next_offset}, before {seal.base_offset}"
    if any(not 0 <= start < end <= holds.size_bytes for start, end in holds.holes):
        return f"holes {holds.holes} are not inside of {holds.size_bytes} bytes"
    return None


def encode(seals: Iterable[Seal]) -> bytes:
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


def save(storage: Storage, directory: str, seals: Iterable[Seal]) -> None:
    storage.write_atomically(f"{directory}/{SEALS}", encode(seals))


def save_unsynced(storage: Storage, directory: str, seals: Iterable[Seal]) -> None:
    """For a log that is empty or short: seals that a power cut takes or garbles cost a look at it."""
    file = storage.create(f"{directory}/{SEALS}")
    file.pwritev([encode(seals)], 0)
    file.close()
