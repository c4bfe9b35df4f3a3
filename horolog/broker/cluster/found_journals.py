"""Journals in data folders: which one counts, what a worker may go on from, and how one begins and goes away.

No worker starts from a journal that it cannot read. When none runs, `FoundJournal.damages` lists the damage, and `settling` saves what
it can.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from zlib import crc32

from horolog.broker.cluster.entry_lines import Head, encode_head
from horolog.broker.cluster.journal_contents import FoundJournal, ReadEntries, parse
from horolog.broker.log.storage import DAMAGED_SUFFIX, DataFolderError, File, FileMissing, Storage
from horolog.broker.on_record.cluster_file import JOURNAL


def not_begun(data_dir: str, head: Head) -> FoundJournal:
    """A journal that there was no room for: appends fail until a worker has begun it."""
    lines = encode_head(head)
    return FoundJournal(
        f"{data_dir}/{JOURNAL}", head, lines, None, ReadEntries([], len(lines), []), [], sum=crc32(lines)
    )


def find(storage: Storage, data_dirs: Iterable[str]) -> FoundJournal | None:
    """The newest journal of these folders: one in a folder that was away is older. Raises StorageFault and NewerJournal."""
    return max(find_all(storage, data_dirs), key=_how_new, default=None)


def find_all(storage: Storage, data_dirs: Iterable[str]) -> list[FoundJournal]:
    """The journals of these folders. Raises StorageFault and NewerJournal."""
    found = []
    for data_dir in data_dirs:
        path = f"{data_dir}/{JOURNAL}"
        with contextlib.suppress(FileMissing):
            found.append(parse(path, storage.read_all(path)))
    return found


def continuing(journals: Sequence[FoundJournal], record: int) -> FoundJournal | None:
    """The newest of these journals. A broker alone has copies: one that continues this record counts, even if others cannot be read."""
    copies = [one for one in journals if one.head.is_of_one and one.head.base >= record]
    return max(copies or journals, key=_how_new, default=None)


def _how_new(found: FoundJournal) -> tuple[int, int, bool]:
    return found.head.base, found.number, not found.damages


def take_up(storage: Storage, data_dirs: Iterable[str]) -> FoundJournal | None:
    """The same for a worker that goes on from there: no append is under way, and what was read is durable. Raises as `find` does.

    A journal that cannot be read whole is refused: it may say who leads which partition, and workers that know it write it again.
    """
    found = find(storage, data_dirs)
    if found is None:
        return None
    lock = storage.lock_in_turn(found.path)
    try:
        file = storage.open_apart(found.path)
        try:
            data = file.pread(file.size(), 0)
            found = parse(found.path, data)
            if not found.damages:
                make_durable(file, data[: found.read.end], 0)
        finally:
            file.close()
    finally:
        lock.release()
    if found.damages:
        raise DataFolderError(
            f"{found.path} is damaged ({found.damages[0]}), and no other worker has rewritten it,"
            " so the leaders of partitions are unknown; stop all workers and start again"
        )
    return found


def content(storage: Storage, path: str) -> bytes:
    """Raises StorageFault."""
    try:
        file = storage.open_apart(path)
    except FileMissing:
        return b""
    try:
        return file.pread(file.size(), 0)
    finally:
        file.close()


def make_durable(file: File, data: bytes, position: int) -> None:
    """Make entries durable that were read: their writer may have failed to sync them, and been killed before it cut them off.

    The kernel takes such bytes for written, so a sync alone proves nothing: they are written again.
    """
    if data:
        file.pwritev([data], position)
        file.datasync()


def begin(storage: Storage, data_dir: str, head: Head) -> None:
    """Write an empty journal in place of any that is there. Raises StorageFault."""
    storage.write_atomically(f"{data_dir}/{JOURNAL}", encode_head(head))


def remove(storage: Storage, data_dir: str, *, is_damaged: bool = False) -> None:
    """Remove the journal; a damaged one is kept under another name. Raises StorageFault."""
    path = f"{data_dir}/{JOURNAL}"
    try:
        if is_damaged:
            storage.rename(path, path + DAMAGED_SUFFIX)
        else:
            storage.remove(path)
    except FileMissing:
        return
    storage.sync_dir(data_dir)
