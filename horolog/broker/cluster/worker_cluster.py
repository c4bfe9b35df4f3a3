"""The cluster as one worker of several serves it: it opens what it leads, follows the changes of others, and tells them its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from horolog.broker.adoption.folders import count_and_foreign
from horolog.broker.cluster import file_journal, settling
from horolog.broker.cluster.cluster import Cluster, random_topic_id
from horolog.broker.cluster.cluster_start import NOT_TAKEN, identify, refuse_lost_rules
from horolog.broker.cluster.cluster_state import ClusterState, Step
from horolog.broker.cluster.entry_lines import Head
from horolog.broker.cluster.file_journal import FileJournal
from horolog.broker.cluster.link import LOOK_AT_THE_RECORD
from horolog.broker.cluster.new_topics import Planner
from horolog.broker.cluster.served_topics import remove_deleted
from horolog.broker.cluster.settling import replayed, state_of
from horolog.broker.cluster.topic import Topic
from horolog.broker.config.settings import Settings
from horolog.broker.log.files import CheckpointError, checkpoints
from horolog.broker.log.manager import LogManager, Mine
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import DataFolderError, Storage, StorageFault
from horolog.broker.on_record.cluster_file import ClusterFile, StoredTopic

if TYPE_CHECKING:
    from horolog.broker.cluster.link import Link
    from horolog.broker.cluster.worker_context import WorkerContext

log = logging.getLogger(__name__)


class WorkerCluster(Cluster):
    """The part of a cluster that one worker leads, and the whole of what all workers know."""

    def __init__(
        self,
        cluster_id: str,
        settings: Settings,
        logs: LogManager,
        file: ClusterFile,
        new_topic_id: Callable[[], bytes] = random_topic_id,
        *,
        context: WorkerContext,
        link: Link,
    ) -> None:
        paths = [folder.path for folder in logs.folders.usable()]
        found = file_journal.take_up(logs.resources.storage, paths)
        self._is_begun = found is not None
        """Whether there is a journal: on a full disk there may be none at first."""
        if found is None:
            stored = file.load()
            if stored.has_journal or not stored.found or _was_closed_alone(logs.resources.storage, paths):
                raise DataFolderError(f"{', '.join(paths)}: no worker has settled what lies there")
            found = file_journal.not_begun(paths[0], Head(stored.number + 1, context.nodes))
        journal = FileJournal(
            logs.resources.storage,
            found,
            self._applied_by_all,
            told_of=lambda: self._told_of,
            base_is_hurt=file.is_hurt,
        )
        super().__init__(cluster_id, settings, logs, file, new_topic_id, journal=journal, followers=self)
        self.nodes = context.nodes
        self._me = context.node
        self._found = found
        self._link = link
        self._told_applied = -1
        self._told_of = 0
        """How far the journal is written, as the others have announced."""
        self._settled: dict[str, tuple[bytes, int]] = {}
        """Topics that Kafka's checkpoints may cover: id and number of partitions."""
        logs.share.find = self._mine
        logs.share.journal_at = lambda: (found.head.base, self.state.number)

    # -- the start

    def open(self, now_ms: int) -> None:  # noqa: ARG002 - the settling of the folder has reported what it took over
        """Go on from what was settled, and what the journal has since: open the partitions that this worker leads."""
        stored = self._file.load()
        settling.refuse_what_others_know(stored, self._found)
        self._settled = {name: (topic.id, topic.partition_count) for name, topic in stored.topics.items()}
        state = replayed(state_of(stored, self.nodes), self._found, stored)
        state = replace(state, broker_configs=self._configs.take_usable(state.broker_configs))
        if state.broker_configs:
            self._take_settings(self._configs.settings)
        refuse_lost_rules(state, self.settings)
        self.changes.begin(state, is_news=False)
        self._tell_rules(state.rules)
        self._look_at_folders(state)
        overrides = {name: self._configs.usable(name, topic.overrides) for name, topic in state.topics.items()}
        self._logs.open(lambda name: self._configs.topic(overrides.get(name, NOT_TAKEN)))
        for name, record in state.topics.items():
            self._serve(record, overrides[name])
        self.partition_cache.clear()
        self._tell_epochs(self._logs.partitions.values())
        self._link.on_journal = self.catch_up
        self.catch_up()

    def _mine(self, name: str, index: int) -> Mine | None:
        record = self.state.topics.get(name)
        if record is None or index >= record.partition_count or not self.state.leads_here(record, index, self._me):
            return None
        topic_id, count = self._settled.get(name, (b"", 0))
        return Mine(record.id, is_settled=topic_id == record.id and index < count)

    def _look_at_folders(self, state: ClusterState) -> None:
        """Remove folders of topics that were deleted while this worker was away, and note names with folders of no partition."""
        storage = self._logs.resources.storage
        found: dict[str, list[int]] = {}
        for name, index, directory in self._folders():
            found.setdefault(name, []).append(index)
            doomed = state.deleting.get(name, ())
            if doomed and _topic_id_of(storage, directory) in doomed:
                remove_deleted(storage, directory)
        counts = {name: topic.partition_count for name, topic in state.topics.items()}
        self._foreign = {name for name, indexes in found.items() if count_and_foreign(counts.get(name, 0), indexes)[1]}

    def _folders(self) -> Iterator[tuple[str, int, str]]:
        """The folders of partitions, wherever they are led: topic, number and path."""
        for folder in self._logs.folders.usable():
            keys = folder.keys()
            for name, index in keys:
                yield name, index, f"{folder.path}/{name}-{index}"

    def _serve(self, record: StoredTopic, overrides: dict[str, str]) -> None:
        topic = Topic(record.name, record.id, (), overrides, self._configs.topic(overrides))
        places = record.places()
        for index in range(record.partition_count):
            partition = self._logs.partitions.get((record.name, index))
            if partition is None and self.state.leads_here(record, index, self._me):
                partition = self._logs.create_or_offline(record.name, index, topic.config, record.id, places.get(index))
            topic.put(index, partition)
        identify(self._logs, topic.led_here, record.id)
        self.topics[record.name] = topic
        self.by_id[record.id] = topic

    # -- changes of all workers

    def catch_up(self, written: int = -1) -> None:
        """Apply what others have changed: now and then, and when they announce how far they have written.

        A worker that cannot read the record announces `LOOK_AT_THE_RECORD`, a number that every worker has reached.
        """
        self._told_of = max(self._told_of, written)
        self.changes.catch_up()
        self._tell_applied()
        if written == LOOK_AT_THE_RECORD:
            self.check_record()

    def check_record(self) -> None:
        """If there was no room for a journal, the first worker begins it as soon as there is."""
        if self._is_begun:
            super().check_record()
        elif self._me == self.nodes[0]:
            self._is_begun = file_journal.could_begin(self._logs.resources.storage, self._found)
        else:
            self._is_begun = self._logs.resources.storage.exists(self._found.path)

    def _tell_applied(self) -> None:
        """Announce how far this worker has applied the journal, even if it caught up while making a change of its own."""
        if self.state.number > self._told_applied:
            self._told_applied = self.state.number
            self._link.applied(self._told_applied)

    def _applied_by_all(self) -> int:
        """0 while a worker is away: its successor goes on from where it has read to at its start."""
        if not self._link.live.issuperset(self.nodes):
            return 0
        others = (self._link.applied_by(node) for node in self.nodes if node != self._me)
        return min(others, default=self.state.number)

    def journal_is_at(self, number: int, done: Callable[[], None]) -> None:
        self._link.journal_is_at(number, done)

    def follow(self, steps: Sequence[Step]) -> None:
        """Carry out what others have decided."""
        self._carry_out(steps)

    def _new_partition(self, topic: Topic, index: int, topic_id: bytes | None, place: str | None) -> Partition:
        """The journal decides, whichever worker wrote the entry: a partition whose files cannot be made is offline."""
        self._link.goes_on()
        return self._logs.create_or_offline(topic.name, index, topic.config, topic_id, place)

    def _remove_folder(self, partition: Partition) -> None:
        self._link.goes_on()
        super()._remove_folder(partition)

    def _planner(self) -> Planner:
        return replace(super()._planner(), is_leaving=self._is_leaving)

    def _is_leaving(self, name: str) -> bool:
        """Whether a deleted topic of this name has folders that another worker is still to remove."""
        return name in self.state.deleting and any(name == one for one, _, _ in self._folders())

    def _note_removed(self, topics: Collection[tuple[str, bytes]]) -> None:
        """Only the folders can tell whether all workers have removed theirs; the next settling removes the rest."""
        storage = self._logs.resources.storage
        there = [(name, directory) for name, _, directory in self._folders()]

        def is_left(name: str, topic_id: bytes) -> bool:
            return any(one == name and _topic_id_of(storage, path) in (topic_id, None) for one, path in there)

        super()._note_removed({one for one in topics if not is_left(*one)})


def _topic_id_of(storage: Storage, directory: str) -> bytes | None:
    try:
        return checkpoints.load_topic_id(storage, directory)
    except (CheckpointError, StorageFault):
        return None


def _was_closed_alone(storage: Storage, data_dirs: Iterable[str]) -> bool:
    """Whether a broker alone has closed the folders, and no worker has settled them since: `settle` takes the mark away."""
    return any(storage.exists(f"{path}/{checkpoints.CLEAN_SHUTDOWN}") for path in data_dirs)
