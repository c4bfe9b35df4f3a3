"""The journal of a broker alone: the same in each data folder, begun with the first change after a start.

It begins with the whole state, and grows by a line for each change (`file_journal`). `horolog-cluster` says that there is a journal. The
state is encoded once for all of these files. A folder whose disk failed meanwhile gets the whole state again with the first change that
it takes. A clean stop writes `horolog-cluster` anew and removes the journal; after a crash the next start does (`settling.merge`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cache

from horolog.broker.cluster import found_journals
from horolog.broker.cluster.cluster_state import ClusterState, Entry
from horolog.broker.cluster.entry_lines import Head, head_of_one
from horolog.broker.cluster.file_journal import ALL_OF_IT, FileJournal
from horolog.broker.cluster.journal import AppendOutcome
from horolog.broker.log.storage import Storage, StorageFault
from horolog.broker.on_record.cluster_file import ClusterFile, StateLines

log = logging.getLogger(__name__)


class OwnJournal:
    """The files of the journal, one in each of the folders that are usable now, and the record that they continue."""

    def __init__(self, storage: Storage, record: ClusterFile, folders: Callable[[], Sequence[str]]) -> None:
        self._storage = storage
        self._record = record
        self._folders = folders
        self._head: Head | None = None
        """None until there is a journal."""
        self._number = 0
        """Of the last entry that is on the disk."""
        self._files: dict[str, FileJournal] = {}
        self._is_behind = False
        """Whether the record could not be written at the start."""
        self._lacks_topics = False
        """Whether topics with a provisional id are left out of what was written."""
        self.written_count = 0

    def __repr__(self) -> str:
        return f"<OwnJournal of {self._record!r} at {self._number}>"

    def record_number(self) -> int:
        """How often the record was written, each change in the journal counting as once: an older copy of either has a lower one."""
        return self._record.number if self._head is None else self._head.base + self._number

    def begin(self, state: ClusterState, *, is_news: bool) -> bool:
        """Go on from the state that a start has found, which is put on record if it is news. False if that fails."""
        self._is_behind = is_news and not self._save(state)
        return not self._is_behind

    def append(self, entry: Entry, becomes: ClusterState) -> AppendOutcome:
        head = self._head or head_of_one(self._record.next_number)
        lines = cache(becomes.lines)
        is_written = [self._append_in(folder, head, entry, becomes, lines) for folder in self._folders()]
        if not any(is_written):
            return AppendOutcome.FAILED
        is_first, self._head, self._number = self._head is None, head, becomes.number
        self._lacks_topics = bool(becomes.unidentified)
        self.written_count += 1
        if is_first:
            self._save(becomes, lines(), has_journal=True)
        return AppendOutcome.WRITTEN

    def _append_in(
        self, folder: str, head: Head, entry: Entry, becomes: ClusterState, lines: Callable[[], StateLines]
    ) -> bool:
        """Whether one folder has the change now. It has missed changes if it was away, or if a fact could not be written."""
        file = self._files.get(folder)
        has_all = file is not None and file.number == becomes.number - 1 and not self._lacks_topics
        if has_all and file is not None and file.append(entry, becomes) is AppendOutcome.WRITTEN:
            return True
        return self._put_in(folder, head, becomes, lines())

    def _put_in(self, folder: str, head: Head, state: ClusterState, lines: StateLines) -> bool:
        begun = found_journals.not_begun(folder, head)
        file = FileJournal(self._storage, begun, lambda: ALL_OF_IT)
        try:
            file.put(state, lines)
        except StorageFault as fault:
            log.error("%s: could not write: %s", begun.path, fault)
            self._files.pop(folder, None)
            return False
        self._files[folder] = file
        return True

    def tail(self, after: int) -> Sequence[Entry]:  # noqa: ARG002
        """There is no other writer."""
        return ()

    def check(self, state: ClusterState) -> None:
        """Write again what the disk has damaged."""
        for file in self._files.values():
            file.check(state)
        if self._head is None and (self._is_behind or self._record.is_hurt()):
            log.error("%s is damaged: it is rewritten from the state in memory", self._record)
            self._is_behind = not self._save(state)

    def end(self, state: ClusterState) -> None:
        """Put everything on record: the folders are left as they were before there was a journal."""
        if self._head is None:
            self.check(state)
            return
        self._record.go_on_from(self.record_number())
        if self._save(state):
            self._head = None
            self._remove()

    def _remove(self) -> None:
        """A journal that stays is older than the record, and does not count."""
        try:
            for folder in self._folders():
                found_journals.remove(self._storage, folder)
        except StorageFault as fault:
            log.error("%s: its journal could not be removed: %s", self._record, fault)

    def _save(self, state: ClusterState, lines: StateLines | None = None, *, has_journal: bool = False) -> bool:
        if not self._folders():
            return False
        try:
            state.save(self._record, has_journal=has_journal, lines=lines)
        except StorageFault as fault:
            log.error("%s: could not write: %s", self._record, fault)
            return False
        return True
