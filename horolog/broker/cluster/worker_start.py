"""The start of one worker among several: it goes on from what was settled and from the journal, and opens the partitions that it leads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from horolog.broker.adoption.folders import count_and_foreign
from horolog.broker.cluster import settling
from horolog.broker.cluster.cluster_configs import ClusterConfigs
from horolog.broker.cluster.cluster_start import NOT_TAKEN, identify, refuse_lost_rules
from horolog.broker.cluster.cluster_state import ClusterState
from horolog.broker.cluster.journal_contents import FoundJournal
from horolog.broker.cluster.served_topics import folders_of, remove_deleted, topic_id_of
from horolog.broker.cluster.topic import Topic
from horolog.broker.config.settings import Settings
from horolog.broker.log.manager import LogManager, Mine
from horolog.broker.on_record.cluster_file import ClusterFile, StoredTopic


class WorkerStart:
    """The settling of the folders has reported what it took over: nothing is news here."""

    def __init__(
        self,
        logs: LogManager,
        file: ClusterFile,
        configs: ClusterConfigs,
        found: FoundJournal,
        nodes: tuple[int, ...],
        me: int,
    ) -> None:
        self.topics: dict[str, Topic] = {}
        self.foreign: set[str] = set()
        self._logs = logs
        self._file = file
        self._configs = configs
        self._found = found
        self._nodes = nodes
        self._me = me
        self._settled: dict[str, tuple[bytes, int]] = {}
        """Topics that Kafka's checkpoints may cover: id and number of partitions."""

    def __repr__(self) -> str:
        return f"<WorkerStart of {self._me} with {len(self.topics)} topics>"

    def run(
        self,
        now_ms: int,  # noqa: ARG002 - as `membership.ClusterStart` has it
        settings_changed: Callable[[Settings], None],
        begin: Callable[[ClusterState, bool], None],
    ) -> None:
        stored = self._file.load()
        settling.refuse_what_others_know(stored, self._found)
        self._settled = {name: (topic.id, topic.partition_count) for name, topic in stored.topics.items()}
        state = settling.replayed(settling.state_of(stored, self._nodes), self._found, stored)
        state = replace(state, broker_configs=self._configs.take_usable(state.broker_configs))
        if state.broker_configs:
            settings_changed(self._configs.settings)
        refuse_lost_rules(state, self._configs.settings)
        begin(state, False)
        self._logs.share.find = partial(self.mine, state)
        self._look_at_folders(state)
        overrides = {name: self._configs.usable(name, topic.overrides) for name, topic in state.topics.items()}
        self._logs.open(lambda name: self._configs.topic(overrides.get(name, NOT_TAKEN)))
        for name, record in state.topics.items():
            self.topics[name] = self._served(state, record, overrides[name])

    def remember(self) -> None:
        """The settling has done so."""

    def mine(self, state: ClusterState, name: str, index: int) -> Mine | None:
        """A partition that this worker leads by a state; None if it does not lead it."""
        record = state.topics.get(name)
        if record is None or index >= record.partition_count or not state.leads_here(record, index, self._me):
            return None
        topic_id, count = self._settled.get(name, (b"", 0))
        return Mine(record.id, is_settled=topic_id == record.id and index < count)

    def _look_at_folders(self, state: ClusterState) -> None:
        """Remove folders of topics that were deleted while this worker was away, and note names with folders of no partition."""
        storage = self._logs.resources.storage
        found: dict[str, list[int]] = {}
        for name, index, directory in folders_of(self._logs):
            found.setdefault(name, []).append(index)
            doomed = state.deleting.get(name, ())
            if doomed and topic_id_of(storage, directory) in doomed:
                remove_deleted(storage, directory)
        counts = {name: topic.partition_count for name, topic in state.topics.items()}
        self.foreign = {name for name, indexes in found.items() if count_and_foreign(counts.get(name, 0), indexes)[1]}

    def _served(self, state: ClusterState, record: StoredTopic, overrides: dict[str, str]) -> Topic:
        topic = Topic(record.name, record.id, (), overrides, self._configs.topic(overrides))
        places = record.places()
        for index in range(record.partition_count):
            partition = self._logs.partitions.get((record.name, index))
            if partition is None and state.leads_here(record, index, self._me):
                partition = self._logs.create_or_offline(record.name, index, topic.config, record.id, places.get(index))
            topic.put(index, partition)
        identify(self._logs, topic.led_here, record.id)
        return topic
