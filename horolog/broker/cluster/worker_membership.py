"""The membership of one worker among several over the same folders: one journal, and messages of each other over the supervisor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from horolog.broker.cluster import found_journals
from horolog.broker.cluster.cluster_state import ClusterState, plain_leads
from horolog.broker.cluster.entry_lines import Head
from horolog.broker.cluster.file_journal import ALL_OF_IT, FileJournal
from horolog.broker.cluster.journal_beside import JournalBeside, KeptBySettling
from horolog.broker.cluster.journal_contents import FoundJournal
from horolog.broker.cluster.left_folders import as_left
from horolog.broker.cluster.link import LOOK_AT_THE_RECORD
from horolog.broker.cluster.membership import Members
from horolog.broker.cluster.worker_start import WorkerStart
from horolog.broker.log.files import checkpoints
from horolog.broker.log.manager import LogManager
from horolog.broker.log.storage import DataFolderError, Storage
from horolog.broker.on_record.cluster_file import ClusterFile

if TYPE_CHECKING:
    from horolog.broker.base.own_thread import Beside
    from horolog.broker.cluster.cluster_configs import ClusterConfigs
    from horolog.broker.cluster.journal import Journal
    from horolog.broker.cluster.link import Link
    from horolog.broker.cluster.worker_context import WorkerContext


class WorkerMembership:
    """One worker among several; raises DataFolderError if the folders are not settled for them."""

    is_shared = True

    def __init__(self, context: WorkerContext, link: Link, logs: LogManager, file: ClusterFile, beside: Beside) -> None:
        self.members = Members(context.node, context.nodes, link.live | {context.node})
        self.later = beside.later
        self._link = link
        self._file = file
        self._found, is_begun, self._record = _found(logs, file, context.nodes)
        journal = FileJournal(
            logs.resources.storage,
            self._found,
            self._applied_by_others,
            told_of=lambda: self._told_of,
            base_is_hurt=file.is_hurt,
            is_begun=is_begun,
            put_on_record=self._put_on_record if context.node == context.nodes[0] else None,
        )
        self.journal: Journal = JournalBeside(journal, beside, KeptBySettling())
        self._told_applied = -1
        self._told_of = 0
        """How far the journal is written, as the others have announced."""
        self._share = logs.share
        self._start: WorkerStart

    def __repr__(self) -> str:
        return f"<WorkerMembership of {self.members.me} in {self.members.nodes}>"

    def start(
        self,
        logs: LogManager,
        file: ClusterFile,  # noqa: ARG002
        configs: ClusterConfigs,
        new_topic_id: Callable[[], bytes],  # noqa: ARG002
    ) -> WorkerStart:
        self._start = WorkerStart(logs, self._record, configs, self._found, self.members.nodes, self.members.me)
        return self._start

    def announce(self, number: int, done: Callable[[], None]) -> None:
        self._link.journal_is_at(number, done)

    def applied(self, number: int) -> None:
        """Announce it, even if it was applied on the way to a change of our own."""
        if number > self._told_applied:
            self._told_applied = number
            self._link.applied(number)

    def listen(
        self, catch_up: Callable[[], None], check_record: Callable[[], None], state: Callable[[], ClusterState]
    ) -> None:
        """A worker that cannot read the record announces `LOOK_AT_THE_RECORD`, a number that every worker has reached."""

        def heard(written: int) -> None:
            self._told_of = max(self._told_of, written)
            catch_up()
            if written == LOOK_AT_THE_RECORD:
                check_record()

        self._share.find = lambda name, index: self._start.mine(state(), name, index)
        self._share.journal_at = lambda: (self._found.head.base, state().number)
        self._link.on_journal = heard

    def follow_live(self, changed: Callable[[frozenset[int]], None]) -> None:
        self._link.on_live_changed = changed

    def goes_on(self) -> None:
        self._link.goes_on()

    def _put_on_record(self, state: ClusterState) -> None:
        self._file.go_on_from(self._found.head.base - 1)
        state.save(self._file, plain_leads(state.leads), has_journal=True)

    def _applied_by_others(self) -> int:
        """0 while a worker is away: its successor goes on from where it has read to at its start."""
        if not self._link.live.issuperset(self.members.nodes):
            return 0
        return min(map(self._link.applied_by, self.members.others), default=ALL_OF_IT)


def _found(logs: LogManager, file: ClusterFile, nodes: tuple[int, ...]) -> tuple[FoundJournal, bool, ClusterFile]:
    """The journal, whether it is there, and the record that it continues. On a full disk there may be none at first.

    Then the record is the present one, or the one that the journal of a broker alone leads to, merged in memory.
    """
    storage, paths = logs.resources.storage, [folder.path for folder in logs.folders.usable()]
    found = found_journals.take_up(storage, paths)
    if found is not None and not found.head.is_of_one:
        return found, True, file
    record = file if found is None else ClusterFile(as_left(storage, paths), paths[0], lambda: paths)
    stored = record.load()
    if stored.has_journal or not stored.found or _was_closed_alone(storage, paths):
        raise DataFolderError(f"{', '.join(paths)}: no worker has settled the folders")
    return found_journals.not_begun(paths[0], Head(stored.number + 1, nodes)), False, record


def _was_closed_alone(storage: Storage, data_dirs: Iterable[str]) -> bool:
    """Whether a broker alone has closed the folders, and no worker has settled them since: `settle` takes the mark away."""
    return any(storage.exists(f"{path}/{checkpoints.CLEAN_SHUTDOWN}") for path in data_dirs)
