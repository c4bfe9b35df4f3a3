"""The journal that workers share: `horolog-journal`, one line for each change since `horolog-cluster` was written (`entry_lines`).

Who appends holds the file (flock), reads what others have appended, and only then writes the next number, synced before anybody
can see it: who reads holds the file as well, and syncs what it finds, for a writer may have been killed between the two. A tail
that was not written whole is cut by the next writer. What the disk does not take is cut again: then nothing has happened.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from horolog.broker.cluster_file import JOURNAL
from horolog.broker.cluster_state import ClusterState, Entry
from horolog.broker.journal import Appended
from horolog.broker.log.storage import FileMissing, Storage, StorageFault
from horolog.broker.workers.entry_lines import Head, Illegible, decode_entry, decode_head, encode_entry, encode_head

log = logging.getLogger(__name__)

DAMAGE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


class Read(NamedTuple):
    """Entries of a journal, each the next after the one before; `end` is where the last of them ends."""

    entries: list[Entry]
    end: int
    damages: list[str]


class Found(NamedTuple):
    """A whole journal."""

    path: str
    head: Head
    read: Read


def read_entries(data: bytes, after: int) -> Read:
    """What lines say behind the entry `after`. One that cannot be read counts as damaged if others follow, else as torn."""
    read = Read([], 0, [])
    end, position, number, suspects = 0, 0, after, list[str]()
    while (line_end := data.find(b"\n", position)) >= 0:
        line, position = data[position:line_end], line_end + 1
        try:
            found, entry = decode_entry(line)
        except DAMAGE as damage:
            suspects.append(f"behind entry {number}: {damage}")
            continue
        read.damages.extend(suspects)
        suspects.clear()
        if found > number:
            read.entries.extend([Illegible()] * (found - number - 1))
            read.entries.append(entry)
            number = found
        end = position
    return read._replace(end=end)


def parse(path: str, data: bytes) -> Found | None:
    """A whole journal; None where not even its head can be read: it was never begun. Raises NewerJournal."""
    first, newline, rest = data.partition(b"\n")
    try:
        head = decode_head(first)
    except DAMAGE:
        return None
    start = len(first) + len(newline)
    read = read_entries(rest, 0)
    return Found(path, head, read._replace(end=start + read.end))


def find(storage: Storage, data_dirs: Iterable[str]) -> Found | None:
    """The newest journal of these folders: one in a folder that was away is older. Raises StorageFault and NewerJournal."""
    newest: Found | None = None
    for data_dir in data_dirs:
        path = f"{data_dir}/{JOURNAL}"
        try:
            found = parse(path, storage.read_all(path))
        except FileMissing:
            continue
        if found is not None and (newest is None or found.head.base > newest.head.base):
            newest = found
    return newest


def take_up(storage: Storage, data_dirs: Iterable[str]) -> Found | None:
    """The same for a worker that goes on from there: whoever appends is through, and what was read stays. Raises as `find` does."""
    found = find(storage, data_dirs)
    if found is None:
        return None
    lock = storage.lock_in_turn(found.path)
    try:
        file = storage.open_apart(found.path)
        try:
            file.datasync()
        finally:
            file.close()
        return parse(found.path, storage.read_all(found.path))
    finally:
        lock.release()


def begin(storage: Storage, data_dir: str, head: Head) -> None:
    """An empty journal in the place of whatever there is. Raises StorageFault."""
    storage.write_atomically(f"{data_dir}/{JOURNAL}", encode_head(head))


def remove(storage: Storage, data_dir: str) -> None:
    """Raises StorageFault."""
    try:
        storage.remove(f"{data_dir}/{JOURNAL}")
    except FileMissing:
        return
    storage.sync_dir(data_dir)


class FileJournal:
    """The journal as one worker reads and writes it, from where it has been read to."""

    def __init__(self, storage: Storage, found: Found) -> None:
        self._storage = storage
        self._path = found.path
        self._end = found.read.end
        self._number = len(found.read.entries)
        self._unseen: list[Entry] = []
        """Entries up to `_number` that nobody has asked for."""
        self.written_count = 0

    def __repr__(self) -> str:
        return f"<FileJournal {self._path} at {self._number}>"

    def append(self, entry: Entry, becomes: ClusterState, done: Callable[[Appended], None]) -> None:
        try:
            outcome = self._append(entry, becomes.number)
        except StorageFault as fault:
            log.error("%r: could not write: %s", self, fault)
            outcome = Appended.FAILED
        done(outcome)

    def _append(self, entry: Entry, number: int) -> Appended:
        lock = self._storage.lock_in_turn(self._path)
        try:
            self._catch_up()
            if self._number >= number:
                return Appended.TAKEN
            assert number == self._number + 1, f"{number} does not follow {self._number}"
            self._write(encode_entry(number, entry))
        finally:
            lock.release()
        self._number = number
        self.written_count += 1
        return Appended.WRITTEN

    def _write(self, line: bytes) -> None:
        file = self._storage.open_apart(self._path)
        try:
            if file.size() > self._end:
                log.warning(
                    "%r: %s bytes of an entry that was not written whole are cut", self, file.size() - self._end
                )
                file.truncate(self._end)
            try:
                file.pwritev([line], self._end)
                file.datasync()
            except StorageFault:
                file.truncate(self._end)
                raise
        finally:
            file.close()
        self._end += len(line)

    def tail(self, after: int) -> Sequence[Entry]:
        """The entries of others behind this number; none while the disk does not say."""
        try:
            if self._storage.stat(self._path)[0] != self._end:
                lock = self._storage.lock_in_turn(self._path)
                try:
                    self._catch_up()
                finally:
                    lock.release()
        except StorageFault as fault:
            log.error("%r: could not read: %s", self, fault)
        first = self._number - len(self._unseen)
        found, self._unseen = self._unseen[max(0, after - first) :], []
        return found

    def _catch_up(self) -> None:
        """Read what others have appended; the file is held."""
        file = self._storage.open_apart(self._path)
        try:
            size = file.size()
            if size <= self._end:
                return
            read = read_entries(file.pread(size - self._end, self._end), self._number)
            if read.end:
                file.datasync()
        finally:
            file.close()
        for damage in read.damages:
            log.error("%r is damaged %s", self, damage)
        self._unseen += read.entries
        self._number += len(read.entries)
        self._end += read.end

    def keep(self, state: ClusterState) -> bool:  # noqa: ARG002
        """Whole states are kept by who settles the folder, and by nobody else."""
        return False
