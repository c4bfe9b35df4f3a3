"""The journal of the cluster: `horolog-journal`, one line for each change since `horolog-cluster` was written (`entry_lines`).

Several workers share one. A broker alone has one for itself in each data folder (`own_journal`), and everything here holds for it.

An appender locks the file (flock), reads what others have appended, and only then writes and syncs the next entry. A reader locks the
file, too, so it sees no entry before its sync. It writes and syncs what it finds again, because the writer may have been killed before
its sync, or after one that failed. The next writer cuts a torn tail. A writer whose write or sync fails cuts its line again: the change
has not happened.

An appender *shortens* a journal that has grown: a new file takes its name, with the whole state in place of its lines, and with the
lines that not every worker has applied yet. Its head differs, by which the others notice. Until the folder is synced a power cut may
bring the old file back, so a worker that finds a new file under the name syncs the folder before it appends.

Running workers know everything that was in the file: a worker that finds other bytes there than were written puts a whole state in their
place (`check`). No worker appends to a journal that it cannot read. `journal_contents` reads it, and `found_journals` looks for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from zlib import crc32

from horolog.broker.cluster.cluster_state import ClusterState, Entry
from horolog.broker.cluster.entry_lines import Head, Whole, encode_entry, encode_head, find_head
from horolog.broker.cluster.found_journals import content, make_durable
from horolog.broker.cluster.journal import AppendOutcome
from horolog.broker.cluster.journal_contents import (
    FoundJournal,
    encode_whole,
    lines_behind,
    newest_in,
    read_on,
    start_of,
)
from horolog.broker.log.storage import DAMAGED_SUFFIX, File, FileMissing, Storage, StorageFault, parent_of
from horolog.broker.on_record.cluster_file import StateLines

log = logging.getLogger(__name__)

GROWTH_BYTES = 1 << 20
"""A journal is shortened when its lines take more than this, and more than the state that it began with."""

ALL_OF_IT = 1 << 62
"""How far a journal without other readers counts as applied by them: no entry has this number."""

MOST_RECENT = 200
"""A worker that is further behind ends if the journal has to be rewritten."""


class FellBehind(Exception):
    """The journal no longer has the entries that this worker applies next: only a successor can go on, from the whole state."""


def _keep(storage: Storage, path: str, data: bytes) -> None:
    """Keep a copy next to the journal if there is room; the journal is rewritten in any case."""
    log.error("%s is damaged: its content differs from what was written; a copy is kept beside it", path)
    try:
        storage.write_atomically(path + DAMAGED_SUFFIX, data)
    except StorageFault as fault:
        log.error("the copy of %s could not be written: %s", path, fault)


def _take_back(file: File, position: int, size_bytes: int) -> None:
    """Keep readers from a line that may not outlive the page cache."""
    try:
        file.truncate(position)
    except StorageFault:
        file.pwritev([b"\n" * size_bytes], position)


class FileJournal:
    """The journal as one worker reads and writes it, from where it has been read to. Each call waits for the disk and for others' turns."""

    def __init__(
        self,
        storage: Storage,
        found: FoundJournal,
        applied_by_others: Callable[[], int] = lambda: 0,
        *,
        told_of: Callable[[], int] = lambda: 0,
        base_is_hurt: Callable[[], bool] = lambda: False,
        is_begun: bool = True,
        put_on_record: Callable[[ClusterState], None] | None = None,
    ) -> None:
        """`applied_by_others` is the last entry that every other worker has surely applied, `told_of` the last that they have announced.

        `base_is_hurt` says whether the record that the journal continues is no longer what was written. A journal that there was no room
        for is not `is_begun`; one worker begins it for all as soon as there is, and calls `put_on_record` to say so in the record.
        """
        self._storage = storage
        self._path = found.path
        self._applied_by_others = applied_by_others
        self._is_begun = is_begun
        self._put_on_record = put_on_record
        self._told_of = told_of
        self._base_is_hurt = base_is_hurt
        self._begin_with(found.head)
        self._is_named = found.head.whole is None
        """Whether this file's name is durable; the first journal is begun before there are workers."""
        self._end = found.read.end
        self._sum = found.sum
        """The checksum of everything up to `_end`, as it was written."""
        self._is_hurt = False
        """Whether the file was found to differ from what was written."""
        self._unread: str | None = None
        """Why lines after `_end` cannot be read."""
        self._was_unread = False
        self._number = found.number
        self._unseen: list[Entry] = []
        """Entries up to `_number` that `tail` has not returned yet."""
        self._recent: dict[int, bytes] = {}
        """StateLines of the last entries, which other workers may still have to read."""
        self.written_count = 0

    def __repr__(self) -> str:
        return f"<FileJournal {self._path} at {self._number}>"

    @property
    def number(self) -> int:
        """Of the last entry."""
        return self._number

    def put(self, state: ClusterState, lines: StateLines) -> None:
        """Put this state, encoded as `lines`, in place of the contents of a file that has no other writer. Raises StorageFault."""
        self._put(state, encode_whole(state, lines), state.number, b"")
        self._number = state.number

    def append(self, entry: Entry, becomes: ClusterState) -> AppendOutcome:
        try:
            return self._append(entry, becomes)
        except StorageFault as fault:
            log.error("%s: could not write: %s", self._path, fault)
            return AppendOutcome.FAILED

    def _append(self, entry: Entry, becomes: ClusterState) -> AppendOutcome:
        number = becomes.number
        if not self._is_begun and not self._is_there():
            raise StorageFault("there was no room to begin it", path=self._path)
        lock = self._storage.lock_in_turn(self._path)
        try:
            self._catch_up()
            if self._number >= number:
                return AppendOutcome.TAKEN
            assert number == self._number + 1, f"{number} does not follow {self._number}"
            line = encode_entry(number, entry)
            self._remember(number, line)
            self._write_or_mend(line, becomes)
            self._number = number
            self.written_count += 1
            self._shorten_if_long(becomes)
        finally:
            lock.release()
        return AppendOutcome.WRITTEN

    def _remember(self, number: int, line: bytes) -> None:
        self._recent[number] = line
        if len(self._recent) > MOST_RECENT:
            del self._recent[next(iter(self._recent))]

    def _write_or_mend(self, line: bytes, becomes: ClusterState) -> None:
        if self._unread is not None and self._applied_by_others() != ALL_OF_IT:
            raise StorageFault(f"it is damaged: {self._unread}", path=self._path)
        if not self._is_hurt and self._unread is None:
            self._write(line)
            return
        data = content(self._storage, self._path)
        if self._others_know_more(data):
            raise StorageFault("it is damaged, and another worker has to rewrite it", path=self._path)
        _keep(self._storage, self._path, data)
        self._write_anew(becomes)

    def _write(self, line: bytes) -> None:
        if not self._is_named:
            self._storage.sync_dir(parent_of(self._path))
            self._is_named = True
        file = self._storage.open_apart(self._path)
        try:
            if file.size() > self._end:
                log.warning("%s: cut %s bytes of an incomplete entry", self._path, file.size() - self._end)
                file.truncate(self._end)
            try:
                file.pwritev([line], self._end)
                file.datasync()
            except StorageFault:
                _take_back(file, self._end, len(line))
                raise
        finally:
            file.close()
        self._end += len(line)
        self._sum = crc32(line, self._sum)

    def tail(self, after: int) -> Sequence[Entry]:
        """The entries of others after this number; none while the disk cannot be read."""
        try:
            if self._has_news():
                lock = self._storage.lock_in_turn(self._path)
                try:
                    self._catch_up()
                finally:
                    lock.release()
        except StorageFault as fault:
            log.error("%s: could not read: %s", self._path, fault)
        first = self._number - len(self._unseen)
        found, self._unseen = self._unseen[max(0, after - first) :], []
        return found

    def _is_there(self) -> bool:
        """Whether a worker has begun this journal. Until then the journal of a broker alone may have its name."""
        try:
            head = find_head(content(self._storage, self._path))
        except StorageFault:
            return False
        self._is_begun = head is not None and head.base == self._head.base
        return self._is_begun

    def _has_news(self) -> bool:
        if not self._is_begun and not self._is_there():
            return False
        try:
            file = self._storage.open_apart(self._path)
        except FileMissing:
            return False  # until there is one again: see `check`
        try:
            return file.size() != self._end or not self._has_known_head(file)
        finally:
            file.close()

    def _has_known_head(self, file: File) -> bool:
        return file.pread(min(len(self._head_line), file.size()), 0) == self._head_line

    def _catch_up(self) -> None:
        """Read what others have appended, as far as it can be read; the caller holds the lock."""
        file = self._storage.open_apart(self._path)
        try:
            self._is_hurt = not self._has_known_head(file) and not self._follow_into(file)
            size = file.size()
            self._is_hurt |= size < self._end
            data = file.pread(size - self._end, self._end) if size > self._end else b""
            read = read_on(data, self._number)
            if self._number + len(read.entries) > self._told_of():  # a writer announces what it has synced
                make_durable(file, data[: read.end], self._end)
        finally:
            file.close()
        self._unread = next(iter(read.damages), None)
        self._unseen += read.entries
        for entry in read.entries:
            self._number += 1
            self._remember(self._number, encode_entry(self._number, entry))
        self._end += read.end
        self._sum = crc32(data[: read.end], self._sum)

    def _follow_into(self, file: File) -> bool:
        """Follow into a journal that another worker has shortened: its lines begin elsewhere. False if it is the old one, damaged."""
        data = file.pread(file.size(), 0)
        head = find_head(data)
        if head is None or head == self._head or newest_in(data) < self._number:
            return False
        if head.whole is not None and head.whole.after > self._number:
            raise FellBehind(f"{self._path}: its lines begin behind entry {head.whole.after}")
        self._begin_with(head)
        self._sum = crc32(data[: self._start])
        self._is_named = False
        return True

    def _begin_with(self, head: Head) -> None:
        """Go on from the start of a file."""
        self._head, self._head_line = head, encode_head(head)
        self._start = self._end = start_of(head)
        self._most_bytes = max(GROWTH_BYTES, self._start)

    # -- damage while workers run

    def check(self, state: ClusterState) -> None:
        """Compare the file with what was written, and rewrite it from this state if the disk has damaged it.

        If the record that the journal continues is damaged, the journal has the whole state from now on.
        """
        if not self._is_begun:
            self._is_begun = self._could_begin(state)
            return
        try:
            needs_state = self._head.whole is None and self._base_is_hurt()
            if self._is_as_written() and not needs_state:
                return
            if not self._storage.exists(self._path):
                self._storage.create(self._path).close()
            lock = self._storage.lock_in_turn(self._path)
            try:
                self._mend(state, needs_state=needs_state)
            finally:
                lock.release()
        except StorageFault as fault:
            log.error("%s: could not be compared with what was written: %s", self._path, fault)

    def _could_begin(self, state: ClusterState) -> bool:
        """Begin a journal that there was no room for. It has the whole state, for the record is written behind it."""
        if self._put_on_record is None:
            return self._is_there()
        try:
            self._put(state, encode_whole(state), state.number, b"")
        except StorageFault:
            return False  # logged at the start
        log.info("%s was created: there is free space again", self._path)
        try:
            self._put_on_record(state)
        except StorageFault as fault:
            log.error("%s: could not record that there is a journal: %s", self._path, fault)
        return True

    def _is_as_written(self) -> bool:
        return self._unread is None and crc32(content(self._storage, self._path)[: self._end]) == self._sum

    def _mend(self, state: ClusterState, *, needs_state: bool) -> None:
        """Only a worker that knows all entries does it. A line that it cannot read may be a new entry, about to be announced."""
        self._catch_up()
        was_unread, self._was_unread = self._was_unread, self._unread is not None
        data = content(self._storage, self._path)
        is_whole = self._unread is None and crc32(data[: self._end]) == self._sum
        if is_whole and not (needs_state and self._head.whole is None):
            return
        if self._number != state.number or self._others_know_more(data):
            return
        if self._unread is not None and not was_unread:
            return
        if not is_whole:
            _keep(self._storage, self._path, data)
        self._write_anew(state)

    def _others_know_more(self, data: bytes) -> bool:
        return max(newest_in(data), self._told_of()) > self._number

    def _write_anew(self, state: ClusterState) -> None:
        """Write the whole state, with the lines that others may not have applied yet."""
        known = b"".join((content(self._storage, self._path), b"\n", *self._recent.values()))
        after, lines = lines_behind(known, min(self._applied_by_others(), state.number), state.number)
        self._put(state, encode_whole(state), after, lines)
        log.warning("%s is rewritten from the state in memory", self._path)

    def _put(self, state: ClusterState, whole: bytes, after: int, lines: bytes) -> None:
        """Replace the file by a state, encoded as `whole`, and lines of entries."""
        head = self._head._replace(whole=Whole(state.number, after, len(whole)))
        written = encode_head(head) + whole + lines
        self._storage.write_atomically(self._path, written)
        self._begin_with(head)
        self._end = len(written)
        self._sum = crc32(written)
        self._is_named = True
        self._is_hurt, self._unread = False, None

    # -- shortening

    def _shorten_if_long(self, state: ClusterState) -> None:
        """A write that fails, or a worker that is behind, keeps it long for a while. The caller holds the lock."""
        if self._end - self._start <= self._most_bytes:
            return
        try:
            is_shorter = self._shorten(state)
        except StorageFault as fault:
            log.error("%s: could not be shortened: %s", self._path, fault)
            is_shorter = False
        if not is_shorter:
            self._most_bytes += GROWTH_BYTES // 8

    def _shorten(self, state: ClusterState) -> bool:
        """Put the whole state in place of entries that all workers have applied; False if these are less than half."""
        old_bytes = self._end - self._start
        old = content(self._storage, self._path)[self._start : self._end]
        after, lines = lines_behind(old, min(self._applied_by_others(), state.number), state.number)
        if len(lines) > old_bytes // 2:
            return False
        whole = encode_whole(state)
        self._put(state, whole, after, lines)
        log.info("%s: compacted %s bytes of entries to a state of %s", self._path, old_bytes - len(lines), len(whole))
        return True
