"""Keeps the aborted transactions of each segment in a file, so that readers can leave their records out.

`<base offset>.txnindex` exists only where a transaction was aborted. Entries of 34 bytes, big-endian, one per abort marker
in the segment, in the order of the markers:

    version             int16   0
    producer id         int64
    first offset        int64   of the transaction's first record, possibly in an earlier segment
    last offset         int64   of the abort marker, in this segment
    last stable offset  int64   when the transaction was complete: the first offset not yet decided

Last offsets grow from entry to entry; the last stable offset of an entry is at least that of the one before. A reader stops by
it: transactions aborted later began at or behind it. There is no checksum, so `decode` checks these rules, and what fails them is
rebuilt from the log.
"""

import struct
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from horolog.broker.log.storage import FileMissing, Storage, parent_of

SUFFIX = ".txnindex"
ENTRY_BYTES = 34
_ENTRY = struct.Struct(">hqqqq")
assert _ENTRY.size == ENTRY_BYTES


class TransactionIndexError(ValueError):
    """The file violates the rules of its format; the message says where."""


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def encode(entries: Iterable[AbortedTransaction]) -> bytes:
    return b"".join(
        _ENTRY.pack(0, one.producer_id, one.first_offset, one.last_offset, one.last_stable_offset) for one in entries
    )


def decode(data: bytes, base_offset: int) -> list[AbortedTransaction]:
    """The entries of the segment at `base_offset`; raises TransactionIndexError."""
    if len(data) % ENTRY_BYTES:
        raise TransactionIndexError(f"{len(data)} bytes are not a whole number of entries")
    entries: list[AbortedTransaction] = []
    last_offset, last_stable_offset = base_offset - 1, -1
    for version, *numbers in _ENTRY.iter_unpack(data):
        entry = AbortedTransaction(*numbers)
        if version != 0:
            raise TransactionIndexError(f"entry {len(entries)} has version {version}")
        if entry.producer_id < 0 or not is_behind(entry, last_offset):
            raise TransactionIndexError(f"entry {len(entries)} is out of place: {entry}")
        if entry.last_stable_offset < last_stable_offset:
            raise TransactionIndexError(f"entry {len(entries)}: the last stable offset goes back: {entry}")
        last_offset, last_stable_offset = entry.last_offset, entry.last_stable_offset
        entries.append(entry)
    return entries


def is_behind(entry: AbortedTransaction, last_offset: int) -> bool:
    """Whether an entry may follow the one that ends at an offset. Asserted on appending, damage on reading."""
    return 0 <= entry.first_offset <= entry.last_offset and last_offset < entry.last_offset


def overlapping(
    indexes: Iterable[Sequence[AbortedTransaction]], fetch_offset: int, upper_offset: int
) -> list[AbortedTransaction]:
    """The aborted transactions with records in `fetch_offset` up to but not including `upper_offset`.

    `indexes` are those of the segment that holds `fetch_offset` and the ones behind it, in order; no more of them are
    looked at than needed.
    """
    found: list[AbortedTransaction] = []
    for entries in indexes:
        for entry in entries:
            if entry.last_offset >= fetch_offset and entry.first_offset < upper_offset:
                found.append(entry)
            if entry.last_stable_offset >= upper_offset:
                return found
    return found


_guard = threading.RLock()
"""Of flushes: one that failed on the loop's thread is repeated by a worker's sync."""


class TransactionIndex:
    """The aborted transactions of one segment: in memory, and in a file as soon as there is one.

    Aborts are rare, so the entries are held in memory. `append` only queues the entry; `flush` writes it, and must be called
    before the recovery point passes the marker.
    """

    __slots__ = ("_storage", "_written", "base_offset", "entries", "path")

    def __init__(
        self, storage: Storage, path: str, base_offset: int, entries: Iterable[AbortedTransaction] = ()
    ) -> None:
        self._storage = storage
        self.path = path
        self.base_offset = base_offset
        self.entries = list(entries)
        self._written = len(self.entries)

    def __repr__(self) -> str:
        return f"<TransactionIndex {self.path} of {len(self.entries)} aborted transactions>"

    @classmethod
    def load(cls, storage: Storage, path: str, base_offset: int) -> "TransactionIndex":
        """The index in the file, empty if there is no file; raises TransactionIndexError."""
        try:
            data = storage.read_all(path)
        except FileMissing:
            data = b""
        return cls(storage, path, base_offset, decode(data, base_offset))

    def append(self, entry: AbortedTransaction) -> None:
        if self.entries and entry.last_offset <= self.entries[-1].last_offset:
            raise ValueError(f"{entry} does not come after {self.entries[-1]}")
        assert is_behind(entry, self.base_offset - 1), f"{entry} in the segment at {self.base_offset}"
        self.entries.append(entry)

    def truncate(self, end_offset: int) -> None:
        """Drop transactions whose marker lies at or behind `end_offset`."""
        kept = len(self.entries)
        while kept and self.entries[kept - 1].last_offset >= end_offset:
            kept -= 1
        del self.entries[kept:]
        if kept < self._written:
            self._written = kept
            file = self._storage.open(self.path)
            file.truncate(kept * ENTRY_BYTES)
            file.close()

    def flush(self) -> None:
        """Write and sync what was appended; creates the file with its first entry."""
        with _guard:
            start, end = self._written, len(self.entries)
            if start >= end:
                return
            is_new = not self._storage.exists(self.path)
            file = self._storage.create(self.path) if is_new else self._storage.open(self.path)
            file.pwritev([encode(self.entries[start:end])], start * ENTRY_BYTES)
            file.datasync()
            file.close()
            if is_new:
                self._storage.sync_dir(parent_of(self.path))
            self._written = max(self._written, end)

    def reset(self) -> None:
        """Drop everything, on disk too: the index is about to be rebuilt from the log."""
        self.entries.clear()
        self._written = 0
        if self._storage.exists(self.path):
            self._storage.remove(self.path)
