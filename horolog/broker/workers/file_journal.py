"""The journal that workers share: `horolog-journal`, one line for each change since `horolog-cluster` was written (`entry_lines`).

Who appends holds the file (flock), reads what others have appended, and only then writes the next number, synced before anybody
can see it: who reads holds the file as well, and writes and syncs what it finds once more, for a writer may have been killed before
its sync, or after one that failed. A tail that was not written whole is cut by the next writer. What the disk does not take is cut
again: then nothing has happened.

A journal that has grown is *shortened* by whoever appends: another file takes its name, with the whole state in the place of its lines,
and those lines again that not every worker has applied yet. It has other bytes for a head, by which the others notice. Until the folder
is synced the old file may come back with a power cut, so whoever appends to a file that has the name since it looked last syncs first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from horolog.broker import cluster_file
from horolog.broker.cluster_file import JOURNAL, StoredCluster
from horolog.broker.cluster_state import ClusterState, Entry
from horolog.broker.journal import Appended
from horolog.broker.log.storage import DataFolderError, File, FileMissing, Storage, StorageFault, parent_of
from horolog.broker.workers.entry_lines import (
    Head,
    Illegible,
    Whole,
    decode_entry,
    decode_head,
    encode_entry,
    encode_head,
)

log = logging.getLogger(__name__)

DAMAGE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)

GROWTH_BYTES = 1 << 20
"""A journal is shortened when its lines take more than this, and more than the state that it began with."""


class FellBehind(Exception):
    """Entries that this worker has not applied are not there any more: only a successor can go on, from the whole state."""


class Read(NamedTuple):
    """Entries of a journal, each the next after the one before; `end` is where the last of them ends."""

    entries: list[Entry]
    end: int
    damages: list[str]


class Found(NamedTuple):
    """A whole journal."""

    path: str
    head: Head
    head_line: bytes
    whole: StoredCluster | None
    """The state that its entries go on from; without one they go on from `horolog-cluster`."""
    read: Read

    @property
    def number(self) -> int:
        """Of the last entry."""
        return number_of(self.head) + len(self.read.entries)


def number_of(head: Head) -> int:
    """Of the last entry that a journal began with."""
    return 0 if head.whole is None else head.whole.number


def start_of(head: Head, line: bytes) -> int:
    """Where the lines of entries begin."""
    return len(line) + (0 if head.whole is None else head.whole.size_bytes)


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


def parse_head(data: bytes) -> tuple[Head, bytes] | None:
    """The head of a journal and its line; None where it cannot be read."""
    line, newline, _ = data.partition(b"\n")
    try:
        return decode_head(line), line + newline
    except DAMAGE:
        return None


def parse(path: str, data: bytes) -> Found | None:
    """A whole journal; None where not even its head can be read: it was never begun. Raises NewerJournal."""
    begun = parse_head(data)
    if begun is None:
        return None
    head, line = begun
    start = start_of(head, line)
    whole = None if head.whole is None else cluster_file.parse(data[len(line) : start])
    read = read_entries(data[start:], number_of(head))
    return Found(path, head, line, whole, read._replace(end=start + read.end))


def lines_behind(lines: bytes, number: int) -> bytes:
    """Those of the entries that follow one."""
    start = len(lines)
    while start > 0:
        before = lines.rfind(b"\n", 0, start - 1) + 1
        try:
            if decode_entry(lines[before : start - 1])[0] <= number:
                break
        except DAMAGE:
            pass  # a damaged line stays where it is
        start = before
    return lines[start:]


def encode_whole(state: ClusterState) -> bytes:
    return cluster_file.encode(
        state.topics.values(),
        number=state.number,
        broker_configs=state.broker_configs,
        next_producer_id=state.next_producer_id,
        deleting=state.deleting,
        leads=state.leads,
        epochs=state.epochs,
        rules=state.rules.values(),
        lost_rules=state.lost_rules,
    )


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
            data = file.pread(file.size(), 0)
            taken = parse(found.path, data)
            if taken is not None:
                _make_sure(file, data[: taken.read.end], 0)
        finally:
            file.close()
        found = taken
    finally:
        lock.release()
    if found is not None and found.whole is not None and not found.whole.head_found:
        raise DataFolderError(
            f"{found.path}: it cannot be read who leads which partition; stop all workers and start again"
        )
    return found


def _make_sure(file: File, data: bytes, position: int) -> None:
    """Have entries on the disk that were read: whoever wrote them may have failed to sync them, and been killed before it cut them off.

    The system takes such bytes for written, so a sync alone proves nothing: they are written again.
    """
    if data:
        file.pwritev([data], position)
        file.datasync()


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

    def __init__(self, storage: Storage, found: Found, applied_by_all: Callable[[], int] = lambda: 0) -> None:
        """`applied_by_all` tells up to which entry every worker has surely applied the journal."""
        self._storage = storage
        self._path = found.path
        self._applied_by_all = applied_by_all
        self._begin_with(found.head, found.head_line)
        self._is_named = found.head.whole is None
        """Whether it is sure that this file keeps its name; the first one is begun before there are workers."""
        self._end = found.read.end
        self._number = found.number
        self._unseen: list[Entry] = []
        """Entries up to `_number` that nobody has asked for."""
        self.written_count = 0

    def __repr__(self) -> str:
        return f"<FileJournal {self._path} at {self._number}>"

    def append(self, entry: Entry, becomes: ClusterState, done: Callable[[Appended], None]) -> None:
        try:
            outcome = self._append(entry, becomes)
        except StorageFault as fault:
            log.error("%r: could not write: %s", self, fault)
            outcome = Appended.FAILED
        done(outcome)

    def _append(self, entry: Entry, becomes: ClusterState) -> Appended:
        number = becomes.number
        lock = self._storage.lock_in_turn(self._path)
        try:
            self._catch_up()
            if self._number >= number:
                return Appended.TAKEN
            assert number == self._number + 1, f"{number} does not follow {self._number}"
            self._write(encode_entry(number, entry))
            self._number = number
            self.written_count += 1
            self._shorten_if_long(becomes)
        finally:
            lock.release()
        return Appended.WRITTEN

    def _write(self, line: bytes) -> None:
        if not self._is_named:
            self._storage.sync_dir(parent_of(self._path))
            self._is_named = True
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
                self._take_back(file, len(line))
                raise
        finally:
            file.close()
        self._end += len(line)

    def _take_back(self, file: File, size_bytes: int) -> None:
        """A line that may not outlive the page cache is read by nobody."""
        try:
            file.truncate(self._end)
        except StorageFault:
            file.pwritev([b"\n" * size_bytes], self._end)

    def tail(self, after: int) -> Sequence[Entry]:
        """The entries of others behind this number; none while the disk does not say."""
        try:
            if self._has_news():
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

    def _has_news(self) -> bool:
        file = self._storage.open_apart(self._path)
        try:
            return file.size() != self._end or not self._has_known_head(file)
        finally:
            file.close()

    def _has_known_head(self, file: File) -> bool:
        return file.pread(min(len(self._head_line), file.size()), 0) == self._head_line

    def _catch_up(self) -> None:
        """Read what others have appended; the file is held."""
        file = self._storage.open_apart(self._path)
        try:
            if not self._has_known_head(file):
                self._follow_into(file)
            size = file.size()
            if size <= self._end:
                return
            data = file.pread(size - self._end, self._end)
            read = read_entries(data, self._number)
            _make_sure(file, data[: read.end], self._end)
        finally:
            file.close()
        for damage in read.damages:
            log.error("%r is damaged %s", self, damage)
        self._unseen += read.entries
        self._number += len(read.entries)
        self._end += read.end

    def _follow_into(self, file: File) -> None:
        """Another worker has shortened the journal: its lines begin elsewhere."""
        found = parse_head(file.pread(file.size(), 0))
        if found is None:
            raise StorageFault(f"{self._path}: its head cannot be read", path=self._path)
        head, line = found
        if head.whole is not None and head.whole.after > self._number:
            raise FellBehind(f"{self!r}: its lines begin behind entry {head.whole.after}")
        self._begin_with(head, line)
        self._is_named = False

    def _begin_with(self, head: Head, line: bytes) -> None:
        """Go on from the begin of a file."""
        self._head, self._head_line = head, line
        self._start = self._end = start_of(head, line)
        self._most_bytes = max(GROWTH_BYTES, self._start)

    # -- shortening

    def _shorten_if_long(self, state: ClusterState) -> None:
        """What the disk does not take, or who is late, keeps it long for a while; the file is held."""
        if self._end - self._start <= self._most_bytes:
            return
        try:
            is_shorter = self._shorten(state)
        except StorageFault as fault:
            log.error("%r: could not be shortened: %s", self, fault)
            is_shorter = False
        if not is_shorter:
            self._most_bytes += GROWTH_BYTES // 8

    def _shorten(self, state: ClusterState) -> bool:
        """Put the whole state in the place of entries that all workers have applied; False where these are less than half."""
        after, old_bytes = min(self._applied_by_all(), state.number), self._end - self._start
        file = self._storage.open_apart(self._path)
        try:
            lines = lines_behind(file.pread(old_bytes, self._start), after)
        finally:
            file.close()
        if len(lines) > old_bytes // 2:
            return False
        whole = encode_whole(state)
        head = self._head._replace(whole=Whole(state.number, after, len(whole)))
        line = encode_head(head)
        self._storage.write_atomically(self._path, line + whole + lines)
        self._begin_with(head, line)
        self._end += len(lines)
        self._is_named = True
        log.info("%r: %s bytes of entries became a state of %s", self, old_bytes - len(lines), len(whole))
        return True

    def keep(self, state: ClusterState) -> bool:  # noqa: ARG002
        """Whole states are kept by who settles the folder, and by nobody else."""
        return False
