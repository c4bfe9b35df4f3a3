"""Reads and writes `<offset>.snapshot`, the state of a partition's producers just before an offset.

Version 1, big-endian:

    version      int16   1
    crc          uint32  CRC-32C of everything behind it
    count        int32
    entries      46 bytes each:
        producer id               int64
        producer epoch            int16
        last sequence             int32   -1 when only markers are known
        last offset               int64   of the producer's last data batch, or -1
        offset delta              int32   last offset minus first offset of that batch
        timestamp                 int64   of the last batch or marker
        coordinator epoch         int32   of the last marker, -1 when there was none
        current txn first offset  int64   -1 when no transaction is open

Brokers write one at every roll and at a clean stop. Only the last batch of each producer is kept; `producers_file` keeps those before
it, and the log behind the snapshot fills in the rest.
"""

import struct
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from horolog.broker.log.producers import row_file
from horolog.broker.log.producers.row_file import RowFileError
from horolog.broker.log.storage import FileMissing, Storage

SUFFIX = ".snapshot"
VERSION = 1
_ENTRY = struct.Struct(">qhiqiqiq")


@dataclass(frozen=True, slots=True)
class SnapshotEntry:
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_txn_first_offset: int


def encode(entries: Iterable[SnapshotEntry]) -> bytes:
    rows = [
        _ENTRY.pack(
            one.producer_id,
            one.producer_epoch,
            one.last_sequence,
            one.last_offset,
            one.offset_delta,
            one.timestamp,
            one.coordinator_epoch,
            one.current_txn_first_offset,
        )
        for one in entries
    ]
    return row_file.encode(VERSION, _ENTRY, rows)


def decode(data: bytes) -> list[SnapshotEntry]:
    """The entries; raises RowFileError."""
    return [SnapshotEntry(*numbers) for numbers in row_file.decode(data, VERSION, _ENTRY)]


def file_name(offset: int) -> str:
    return f"{offset:020d}{SUFFIX}"


def offset_of(name: str) -> int | None:
    """The offset in a file name, None for other files."""
    stem = name.removesuffix(SUFFIX)
    if stem == name or len(stem) != 20 or not (stem.isascii() and stem.isdigit()):
        return None
    return int(stem)


def offsets_in(storage: Storage, directory: str) -> list[int]:
    """The offsets of all snapshots in a partition's folder, ascending."""
    return sorted(offset for offset in map(offset_of, storage.list_dir(directory)) if offset is not None)


@dataclass(frozen=True, slots=True)
class FoundSnapshot:
    """The newest usable snapshot, and the faults of newer ones. Offset -1: there is none, the whole log has to be read."""

    offset: int
    entries: list[SnapshotEntry]
    faults: tuple[str, ...]


def load_newest(storage: Storage, directory: str, *, not_before: int, not_after: int) -> FoundSnapshot:
    """The newest undamaged snapshot between two offsets, usually log start and log end.

    Damaged ones are removed: they would be tried again at every start.
    """
    faults: list[str] = []
    for offset in reversed(offsets_in(storage, directory)):
        if not not_before <= offset <= not_after:
            continue
        path = f"{directory}/{file_name(offset)}"
        try:
            return FoundSnapshot(offset, _of_offset(decode(storage.read_all(path)), offset), tuple(faults))
        except RowFileError as damage:
            faults.append(f"{path}: {damage}")
            storage.remove(path)
        except FileMissing as missing:
            faults.append(str(missing))
    return FoundSnapshot(-1, [], tuple(faults))


def _of_offset(entries: list[SnapshotEntry], offset: int) -> list[SnapshotEntry]:
    """Raises RowFileError if the entries go beyond the offset in the name: it is another partition's file, or a stale name."""
    ahead = ahead_of(entries, offset)
    if ahead:
        raise RowFileError(f"it knows of offset {max(one.last_offset for one in ahead)}, behind {offset}")
    return entries


def ahead_of(entries: Iterable[SnapshotEntry], offset: int) -> list[SnapshotEntry]:
    """Entries that go beyond the snapshot's offset. Asserted to be none on writing, damage on reading."""
    return [one for one in entries if max(one.last_offset, one.current_txn_first_offset) >= offset]


def save(storage: Storage, directory: str, offset: int, entries: Sequence[SnapshotEntry]) -> None:
    assert not ahead_of(entries, offset), f"a snapshot of {offset} with {ahead_of(entries, offset)}"
    storage.write_atomically(f"{directory}/{file_name(offset)}", encode(entries))


def remove(storage: Storage, directory: str, offset: int) -> None:
    """Remove a snapshot, if it exists."""
    path = f"{directory}/{file_name(offset)}"
    if storage.exists(path):
        storage.remove(path)


def remove_superseded(storage: Storage, directory: str, before: int, base_offsets: Collection[int]) -> None:
    """Remove snapshots of offsets inside of segments that a newer one supersedes."""
    for offset in offsets_in(storage, directory):
        if offset < before and offset not in base_offsets:
            remove(storage, directory, offset)


def remove_outside(storage: Storage, directory: str, *, not_before: int, not_after: int) -> list[int]:
    """Remove snapshots of offsets outside of the log, after truncation or retention; returns their offsets."""
    removed = [offset for offset in offsets_in(storage, directory) if not not_before <= offset <= not_after]
    for offset in removed:
        storage.remove(f"{directory}/{file_name(offset)}")
    return removed
