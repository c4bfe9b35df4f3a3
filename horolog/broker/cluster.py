"""The cluster as this broker serves it: topics, settings and producer ids, and every change to them, durable before anybody is told.

A topic exists when the cluster's state says so; its folders follow. Creating keeps the entry first and makes the folders then,
deleting keeps the entry first (with the topic among those `deleting`) and removes the folders then: after a crash between the two
the start finishes what was begun (`broker.cluster_start`).

Changes are told to `done`, which in a broker alone is called before the method returns.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from horolog.broker.changes import Changes, Failures
from horolog.broker.cluster_configs import ClusterConfigs
from horolog.broker.cluster_errors import ClusterError
from horolog.broker.cluster_file import ClusterFile, StoredTopic
from horolog.broker.cluster_start import Start, identify, is_unread, record_of
from horolog.broker.cluster_state import (
    PRODUCER_ID_BLOCK_SIZE,
    BrokerConfigsChanged,
    Close,
    ClusterState,
    Configure,
    ConfigureBrokers,
    Delete,
    Entry,
    FoldersRemoved,
    Identify,
    Make,
    Open,
    PartitionsAdded,
    ProducerIdsReserved,
    Step,
    TopicConfigsChanged,
    TopicsCreated,
    TopicsDeleted,
    TopicsFound,
    TopicsWithdrawn,
)
from horolog.broker.journal import WholeFile
from horolog.broker.log.manager import LogManager
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import StorageFault
from horolog.broker.new_topics import UNSET, NewPartitions, NewTopic, Planner
from horolog.broker.settings import Settings
from horolog.broker.topic import Topic
from horolog.broker.topic_settings import TopicConfig
from horolog.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

Created = list[StoredTopic | ClusterError]
"""Every topic that was asked for, as it is or would be, or why it is not."""


def random_topic_id() -> bytes:
    return uuid.uuid4().bytes


class Cluster:
    """Topics, their configurations and the producer ids, as one broker serves them."""

    def __init__(
        self,
        cluster_id: str,
        settings: Settings,
        logs: LogManager,
        file: ClusterFile,
        new_topic_id: Callable[[], bytes] = random_topic_id,
    ) -> None:
        self.cluster_id = cluster_id
        self.nodes = (settings.node_id,)
        """The brokers of the cluster."""
        self.settings = settings
        self.topics: dict[str, Topic] = {}
        self.by_id: dict[bytes, Topic] = {}
        self.led: dict[tuple[str | bytes, int], Partition] = {}
        """Partitions that requests have found, by their topic's name or id: every change of topics or leaders empties it."""
        self.on_settings_changed: Callable[[Settings], None] = lambda _: None
        self.on_led: Callable[[str, int], None] = lambda _, __: None
        """Told a topic and a partition that this broker leads from now on; `on_led_elsewhere` one that it does not."""
        self.on_led_elsewhere: Callable[[str, int], None] = lambda _, __: None
        self._logs = logs
        self._file = file
        self._new_topic_id = new_topic_id
        self._journal = WholeFile(file)
        self.changes = Changes(self._journal, settings.node_id, self._carry_out)
        self._configs = ClusterConfigs(settings)
        self._foreign: set[str] = set()
        self._producer_ids = iter(range(0))

    def __repr__(self) -> str:
        return f"<Cluster {self.cluster_id}: {len(self.topics)} topics, {self.state.partition_count} partitions>"

    @property
    def state(self) -> ClusterState:
        return self.changes.state

    @property
    def broker_configs(self) -> Mapping[str, Mapping[str, str]]:
        """What was changed while running, by the broker's number, or by an empty name for all."""
        return self.state.broker_configs

    @property
    def change_count(self) -> int:
        """How often the file was written since the start."""
        return self._journal.written_count

    def open(self, now_ms: int) -> None:
        """Read the file, have the partitions opened with their topics' configurations, and make the two agree."""
        start = Start(self._logs, self._file, self._configs, self._new_topic_id)
        state = start.run(now_ms, self._take_settings)
        self.topics = start.topics
        self.by_id = {topic.id: topic for topic in self.topics.values()}
        self.led.clear()
        self._foreign = start.foreign
        self.changes.begin(state, is_news=start.is_news)
        start.remember()

    def topic_config(self, overrides: Mapping[str, str]) -> TopicConfig:
        """The configuration that overrides give; topics with equal ones share it. Raises ClusterError."""
        return self._configs.topic(overrides)

    def reopened(self, partition: Partition) -> None:
        """A folder can be read again: a topic that waits for its id has the one that lies there.

        One without an id, or with another topic's, decides nothing while a further folder of the topic is unread.
        """
        record = self.state.topics.get(partition.topic)
        if record is None:
            return
        others = self.topics[record.name].led_here
        if record.name in self.state.unidentified:
            topic_id = partition.topic_id
            if topic_id is not None and topic_id not in self.by_id:
                record = replace(record, id=topic_id, line="")
            elif any(map(is_unread, others)):
                return
            self.changes.note(TopicsFound((record,)))
        identify(self._logs, others, record.id)

    # -- changes

    def create_topic(
        self, name: str, partition_count: int = UNSET, overrides: Mapping[str, str | None] | None = None
    ) -> Topic:
        """Create one topic; raises ClusterError, also where it takes a while, which a broker alone never needs."""
        results: Created = []
        self.create_topics([NewTopic(name, partition_count, overrides=overrides or {})], results.extend)
        for result in results:
            if isinstance(result, ClusterError):
                raise result
        if name not in self.topics:
            raise ClusterError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the topic {name} is still being made")
        return self.topics[name]

    def create_topics(
        self, wanted: Sequence[NewTopic], done: Callable[[Created], None], *, validate_only: bool = False
    ) -> None:
        """Create topics with one entry; `done` is told the result of each in its place."""
        results: Created = []

        def decide(state: ClusterState) -> Entry | None:
            results[:] = self._planner().topics(state, wanted)
            planned = tuple(one for one in results if isinstance(one, StoredTopic))
            return TopicsCreated(planned) if planned and not validate_only else None

        def made(outcome: Failures | ClusterError) -> None:
            if not isinstance(outcome, ClusterError) and outcome:
                self.changes.note(TopicsWithdrawn(frozenset(outcome)))
            done([_outcome_of(one, outcome) if isinstance(one, StoredTopic) else one for one in results])

        self.changes.make(decide, made)

    def delete_topics(self, names: Iterable[str], done: Callable[[Failures], None]) -> None:
        """Delete known topics with one entry; `done` is told those that could not be."""
        doomed = tuple(dict.fromkeys(names))
        removed: set[tuple[str, bytes]] = set()

        def decide(state: ClusterState) -> Entry:
            removed.update((name, state.topics[name].id) for name in doomed if name in state.topics)
            return TopicsDeleted(doomed)

        def made(outcome: Failures | ClusterError) -> None:
            if isinstance(outcome, ClusterError):
                done(dict.fromkeys(doomed, outcome))
                return
            self.changes.note(FoldersRemoved(frozenset(one for one in removed if one[0] not in outcome)))
            done({})

        self.changes.make(decide, made)

    def add_partitions(
        self, wanted: Sequence[NewPartitions], done: Callable[[Failures], None], *, validate_only: bool = False
    ) -> None:
        """Give topics more partitions with one entry; `done` is told those that could not have them."""
        refused: dict[str, ClusterError] = {}
        grown: list[StoredTopic] = []

        def decide(state: ClusterState) -> Entry | None:
            grown[:], failures = self._planner().growth(state, wanted)
            refused.clear()
            refused.update(failures)
            return PartitionsAdded(tuple(grown)) if grown and not validate_only else None

        def made(outcome: Failures | ClusterError) -> None:
            if isinstance(outcome, ClusterError):
                outcome = dict.fromkeys((topic.name for topic in grown), outcome)
            elif outcome:
                self.changes.note(TopicsFound(tuple(record_of(self._logs, self.topics[name]) for name in outcome)))
            done({**refused, **outcome})

        self.changes.make(decide, made)

    def _planner(self) -> Planner:
        return Planner(
            self.settings,
            self.nodes,
            self._foreign,
            self.topic_config,
            self._new_topic_id,
            self._logs.folders.placing(),
        )

    def alter_topic_configs(
        self, changes: Mapping[str, Mapping[str, str]], done: Callable[[ClusterError | None], None]
    ) -> None:
        """Give known topics other overrides, all of them with one entry; they take effect at once."""

        def decide(_: ClusterState) -> Entry | ClusterError:
            try:
                for overrides in changes.values():
                    self.topic_config(overrides)
            except ClusterError as error:
                return error
            return TopicConfigsChanged(changes)

        self.changes.make(decide, lambda outcome: done(_error_of(outcome)))

    def check_broker_configs(self, node: str, configs: Mapping[str, str]) -> None:
        """Whether a change may be made; `node` is this broker's number, or empty for all. Raises ClusterError."""
        self._configs.check({**self.broker_configs, node: configs}, (topic.overrides for topic in self.topics.values()))

    def alter_broker_configs(
        self, node: str, configs: Mapping[str, str], done: Callable[[ClusterError | None], None]
    ) -> None:
        """Replace the dynamic configuration of this broker or of all; it takes effect at once."""

        def decide(_: ClusterState) -> Entry | ClusterError:
            try:
                self.check_broker_configs(node, configs)
            except ClusterError as error:
                return error
            return BrokerConfigsChanged(node, configs)

        self.changes.make(decide, lambda outcome: done(_error_of(outcome)))

    def next_producer_id(self) -> int:
        """An id that was never given out before; raises ClusterError while no more can be reserved."""
        found = next(self._producer_ids, None)
        if found is None:
            refusal = ClusterError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "producer ids are still being reserved")
            self._reserve_producer_ids(refusals := [refusal])
            found = next(self._producer_ids, None)
            if found is None:
                raise refusals[-1]
        return found

    def _reserve_producer_ids(self, refusals: list[ClusterError]) -> None:
        first = 0

        def decide(state: ClusterState) -> Entry:
            nonlocal first
            first = state.next_producer_id
            return ProducerIdsReserved(first)

        def made(outcome: Failures | ClusterError) -> None:
            if isinstance(outcome, ClusterError):
                refusals.append(outcome)
            else:
                self._producer_ids = iter(range(first, first + PRODUCER_ID_BLOCK_SIZE))

        self.changes.make(decide, made)

    # -- what changes ask of this broker

    def _carry_out(self, steps: Sequence[Step]) -> Failures:
        failures: dict[str, ClusterError] = {}
        for step in steps:
            try:
                self._take(step)
            except StorageFault as fault:
                assert isinstance(step, Make | Delete)
                failures[_topic_of(step)] = _told(step, fault)
        return failures

    def _take(self, step: Step) -> None:
        """One step; raises StorageFault."""
        self.led.clear()
        self._logs.resources.changes.note()
        match step:
            case Make(record, indexes):
                self._make(record, indexes)
            case Delete(name, topic_id):
                self._delete(name, topic_id)
            case Identify(name, topic_id):
                topic = self.topics[name]
                del self.by_id[topic.id]
                topic.id = topic_id
                self.by_id[topic_id] = topic
            case Configure(name, overrides):
                self.topics[name].configure(overrides, self.topic_config(overrides))
            case ConfigureBrokers(configs):
                self._configure(self._configs.with_dynamic(configs))
            case Open(name, index, epoch):
                topic, partition = self.topics[name], self._logs.partitions[name, index]
                partition.configure(topic.config)
                partition.lead(epoch)
                topic.put(index, partition)
                self.on_led(name, index)
            case Close(name, index):
                self.topics[name].put(index, None)
                self.on_led_elsewhere(name, index)

    def _make(self, record: StoredTopic, indexes: Sequence[int]) -> None:
        """The folders of a new topic, all of them or none; or those by which one grows, as many as can be made."""
        config = self.topic_config(record.overrides)
        places = {index: one for one, where in record.folders.items() for index in where}
        known = self.topics.get(record.name)
        topic = known or Topic(record.name, record.id, (), dict(record.overrides), config)
        topic_id = None if record.name in self.state.unidentified else topic.id
        first = topic.partition_count
        try:
            for index in range(first, record.partition_count):
                is_mine = index in indexes
                made = self._logs.create(topic.name, index, config, topic_id, places.get(index)) if is_mine else None
                topic.put(index, made)
        except StorageFault:
            if known is None:
                self._remove_folders(topic.led_here)
            raise
        self.topics[topic.name] = topic
        self.by_id[topic.id] = topic
        for index in range(first, record.partition_count):
            if index not in indexes:
                self.on_led_elsewhere(topic.name, index)

    def _delete(self, name: str, topic_id: bytes) -> None:
        """Raises StorageFault where a folder is left, which the next start removes."""
        topic = self.by_id.pop(topic_id, None)
        if topic is not None:
            del self.topics[name]
            places = ((name, index) for index in range(topic.partition_count))
            fault = self._remove_folders(self._logs.partitions[one] for one in places if one in self._logs.partitions)
            if fault is not None:
                raise fault

    def _remove_folders(self, partitions: Iterable[Partition]) -> StorageFault | None:
        """The last fault of those folders that could not be removed."""
        last = None
        for partition in list(partitions):
            try:
                self._logs.delete(partition)
            except StorageFault as fault:
                log.error("%r: could not be removed: %s", partition, fault)
                last = fault
        return last

    def _configure(self, settings: Settings) -> None:
        self._configs.take(settings)
        for topic in self.topics.values():
            topic.configure(topic.overrides, self.topic_config(topic.overrides))
        self._take_settings(settings)

    def _take_settings(self, settings: Settings) -> None:
        self.settings = settings
        self.on_settings_changed(settings)


def _outcome_of(topic: StoredTopic, outcome: Failures | ClusterError) -> StoredTopic | ClusterError:
    return outcome if isinstance(outcome, ClusterError) else outcome.get(topic.name, topic)


def _error_of(outcome: Failures | ClusterError) -> ClusterError | None:
    return outcome if isinstance(outcome, ClusterError) else None


def _topic_of(step: Make | Delete) -> str:
    return step.topic.name if isinstance(step, Make) else step.name


def _told(step: Make | Delete, fault: StorageFault) -> ClusterError:
    """Log a fault of the disk; clients are told which files could not be made."""
    if isinstance(step, Delete):
        return ClusterError(ErrorCode.KAFKA_STORAGE_ERROR, "folders are still to be removed")
    grows = bool(step.indexes) and step.indexes[0] > 0
    log.error("topic %s: could not %s: %s", step.topic.name, "grow" if grows else "be created", fault)
    what = "the partition's files" if grows else "the topic's files"
    return ClusterError(ErrorCode.KAFKA_STORAGE_ERROR, f"{what} could not be created")
