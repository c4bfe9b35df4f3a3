"""Objects of a WAL: record batches of many partitions, as they travel, and a footer that finds each run of them.

An object holds the numbers of its WAL from `first` up to `upto`: one number as a broker ships it, several in a *merged* object. All
numbers are big-endian.

    head    "HWAL"  format u8  kind u8 (0 shipped, 1 merged)  node i32  incarnation u64  first u64  upto u64  nonce 16 bytes
            crc32c of the head u32
    runs    the bytes of one run after the other
    footer  "HWAF", then as in the head up to the nonce
            count u32, then for each run
                topic id 16 bytes  partition i32  leader epoch i32  number u64  base offset i64  next offset i64
                first timestamp i64  largest timestamp i64  position u64  length u32  crc32c u32  kind u8 (0 bytes)
    tail    crc32c of the footer u32  length of the footer u32

Runs lie in the order of topic id, partition, number and base offset, one behind the other, without a gap; no two have the same. Of one
partition and epoch each run begins where the one before ended, or later. The footer repeats the identity, so that a reader that fetches the
end alone knows whose object it is. Every byte is under a checksum, and under one that the reader of a part reads as well.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from crc32c import crc32c

from horolog.broker.bucket.names import NONCE_SIZE, Wal
from horolog.broker.bucket.sealed_lines import FormatError, NewerFormat

FORMAT = 1
MAX_BYTES = 1 << 30
"""A larger object is refused unread."""
MAX_RUNS = 1 << 20

_HEAD_MAGIC, _FOOTER_MAGIC = b"HWAL", b"HWAF"
_IDENTITY = struct.Struct(f">4sBBiQQQ{NONCE_SIZE}s")
_SUM = struct.Struct(">I")
_COUNT = struct.Struct(">I")
_RUN = struct.Struct(">16siiQqqqqQIIB")
_TAIL = struct.Struct(">II")
_BYTES = 0
HEAD_SIZE = _IDENTITY.size + _SUM.size
TAIL_SIZE = _TAIL.size


class Identity(NamedTuple):
    """Whose object it is, and the numbers in it."""

    wal: Wal
    first: int
    upto: int
    nonce: bytes
    is_merged: bool = False


class Run(NamedTuple):
    """Batches of one partition that lie one behind the other."""

    topic_id: bytes
    partition: int
    leader_epoch: int
    number: int
    base_offset: int
    next_offset: int
    first_timestamp: int
    max_timestamp: int
    position: int
    length: int
    crc: int

    @property
    def end(self) -> int:
        """Where its bytes end in the object."""
        return self.position + self.length

    def check(self, data: bytes | memoryview) -> bytes | memoryview:
        """The bytes of the run as a range of the object; raises FormatError if they are not those that were written."""
        if len(data) != self.length or crc32c(data) != self.crc:
            raise FormatError(f"run at {self.position}: the bytes are not those that were written")
        return data


class Footer(NamedTuple):
    identity: Identity
    runs: Sequence[Run]


class NewRun(NamedTuple):
    """A run that is to be written, in pieces as they come from batches."""

    topic_id: bytes
    partition: int
    leader_epoch: int
    number: int
    base_offset: int
    next_offset: int
    first_timestamp: int
    max_timestamp: int
    pieces: Sequence[bytes | memoryview]


def encode(identity: Identity, runs: Iterable[NewRun]) -> bytes:
    """The bytes of an object."""
    parts: list[bytes | memoryview] = []
    placed: list[Run] = []
    position = HEAD_SIZE
    for run in sorted(runs, key=_order):
        length, crc = 0, 0
        for piece in run.pieces:
            length, crc = length + len(piece), crc32c(piece, crc)
        parts += run.pieces
        placed.append(Run(*run[:-1], position, length, crc))
        position += length
    footer = _encode_identity(_FOOTER_MAGIC, identity) + _COUNT.pack(len(placed)) + b"".join(map(_encode_run, placed))
    fault = _fault(identity, placed, position)
    if fault:
        raise ValueError(fault)
    head = _encode_identity(_HEAD_MAGIC, identity)
    return b"".join([head, _SUM.pack(crc32c(head)), *parts, footer, _TAIL.pack(crc32c(footer), len(footer))])


def decode(data: bytes | memoryview) -> Footer:
    """The footer of a whole object of which every byte is checked; raises FormatError."""
    footer = decode_end(len(data), data)
    head = bytes(data[: _IDENTITY.size])
    if head != _encode_identity(_HEAD_MAGIC, footer.identity):
        raise FormatError("head and footer differ")
    if bytes(data[_IDENTITY.size : HEAD_SIZE]) != _SUM.pack(crc32c(head)):
        raise FormatError("the head is damaged")
    view = memoryview(data)
    for run in footer.runs:
        run.check(view[run.position : run.end])
    return footer


def footer_start(size: int, tail: bytes | memoryview) -> int:
    """Where the footer of an object of that size begins, from its last `TAIL_SIZE` bytes; raises FormatError."""
    if not HEAD_SIZE < size <= MAX_BYTES or len(tail) != TAIL_SIZE:
        raise FormatError(f"an object of {size} bytes")
    length: int = _TAIL.unpack(tail)[1]
    start = size - TAIL_SIZE - length
    if start < HEAD_SIZE or length < _IDENTITY.size + _COUNT.size:
        raise FormatError(f"a footer of {length} bytes in an object of {size}")
    return start


def decode_end(size: int, end: bytes | memoryview) -> Footer:
    """The footer of an object of that size, from its last bytes, at least from `footer_start` on; raises FormatError."""
    start = footer_start(size, end[-TAIL_SIZE:])
    if len(end) > size or size - start > len(end):
        raise FormatError(f"{len(end)} bytes of the end, and the footer begins at {start} of {size}")
    footer = end[len(end) - (size - start) : len(end) - TAIL_SIZE]
    if crc32c(footer) != _TAIL.unpack(end[-TAIL_SIZE:])[0]:
        raise FormatError("the footer is damaged")
    identity = decode_identity(footer, _FOOTER_MAGIC)
    (count,) = _COUNT.unpack_from(footer, _IDENTITY.size)
    runs_at = _IDENTITY.size + _COUNT.size
    if count > MAX_RUNS or len(footer) != runs_at + count * _RUN.size:
        raise FormatError(f"a footer of {len(footer)} bytes for {count} runs")
    runs = list(_decode_runs(footer[runs_at:]))
    fault = _fault(identity, runs, start)
    if fault:
        raise FormatError(fault)
    return Footer(identity, runs)


def is_object(data: bytes | memoryview) -> bool:
    """Whether bytes begin as an object of a WAL does."""
    return bytes(data[: len(_HEAD_MAGIC)]) == _HEAD_MAGIC


def decode_head(data: bytes | memoryview) -> Identity:
    """The identity of an object, from its first `HEAD_SIZE` bytes; raises FormatError."""
    head = bytes(data[: _IDENTITY.size])
    if bytes(data[_IDENTITY.size : HEAD_SIZE]) != _SUM.pack(crc32c(head)):
        raise FormatError("the head is damaged")
    return decode_identity(head, _HEAD_MAGIC)


def decode_identity(data: bytes | memoryview, magic: bytes) -> Identity:
    """The fields that head and footer begin with; their bytes are under a checksum that was right."""
    found, number, kind, node, incarnation, first, upto, nonce = _IDENTITY.unpack_from(data)
    if found != magic:
        raise FormatError("no object of a WAL")
    if number != FORMAT or kind > 1:
        raise NewerFormat(f"format {number}, kind {kind}; this release knows format {FORMAT}")
    return Identity(Wal(node, incarnation), first, upto, nonce, is_merged=kind == 1)


def _encode_identity(magic: bytes, identity: Identity) -> bytes:
    wal, first, upto, nonce, is_merged = identity
    if len(nonce) != NONCE_SIZE:
        raise ValueError(f"a nonce has {NONCE_SIZE} bytes, not {len(nonce)}")
    return _IDENTITY.pack(magic, FORMAT, is_merged, wal.node, wal.incarnation, first, upto, nonce)


def _encode_run(run: Run) -> bytes:
    return _RUN.pack(*run, _BYTES)


def _decode_runs(data: bytes | memoryview) -> Iterator[Run]:
    for *fields, kind in _RUN.iter_unpack(data):
        if kind != _BYTES:
            raise NewerFormat(f"a run of kind {kind}; this release knows kind {_BYTES}")
        yield Run(*fields)


def _order(run: NewRun | Run) -> tuple[bytes, int, int, int]:
    return run.topic_id, run.partition, run.number, run.base_offset


def _fault(identity: Identity, runs: Sequence[Run], end: int) -> str:
    """The first rule that an object breaks; empty if it keeps all of them."""
    wal, first, upto, _, is_merged = identity
    if wal.node < 0 or not first < upto or (not is_merged and upto != first + 1):
        return f"numbers {first} up to {upto} of {wal}"
    position = HEAD_SIZE
    for run in runs:
        if run.position != position or run.length < 1 or run.end > end:
            return f"a run at {run.position} of {run.length} bytes, where {position} up to {end} are left"
        if run.partition < 0 or run.leader_epoch < 0 or not 0 <= run.base_offset < run.next_offset:
            return f"offsets {run.base_offset} up to {run.next_offset} of partition {run.partition}, epoch {run.leader_epoch}"
        if not first <= run.number < upto:
            return f"a run of number {run.number} among {first} up to {upto}"
        position = run.end
    for before, run in pairwise(runs):
        if _order(before) >= _order(run):
            return f"runs at {before.position} and {run.position} are out of order"
        if before[:3] == run[:3] and run.base_offset < before.next_offset:
            return f"runs at {before.position} and {run.position} overlap"
    return "" if position == end else f"{end - position} bytes belong to no run"
