"""The topics as one broker serves them: what changes of the cluster ask of this broker is carried out here, step by step."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from horolog.broker.cluster.changes import Failures
from horolog.broker.cluster.cluster_configs import ClusterConfigs
from horolog.broker.cluster.cluster_start import identify
from horolog.broker.cluster.cluster_state import (
    Close,
    ClusterState,
    Configure,
    ConfigureBrokers,
    Delete,
    Identify,
    Make,
    Open,
    Step,
    TakeRules,
)
from horolog.broker.cluster.topic import Topic
from horolog.broker.config.settings import Settings
from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.files import CheckpointError, checkpoints
from horolog.broker.log.manager import LogManager, doom
from horolog.broker.log.partition import Partition, closing, log_start
from horolog.broker.log.storage import Storage, StorageFault
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.cluster_file import Place, StoredTopic
from horolog.broker.on_record.stored_rules import Rules
from horolog.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

StartMoved = Callable[[StorageFault | None], None]
"""Gets the fault if the start of a partition has not moved."""

LED_ELSEWHERE = "another broker leads it"


class ServedTopics(ABC):
    """Topics with the partitions that this broker leads, and their settings."""

    def __init__(self, settings: Settings, logs: LogManager) -> None:
        self.settings = settings
        self.topics: dict[str, Topic] = {}
        self.by_id: dict[bytes, Topic] = {}
        self.partition_cache: dict[tuple[str | bytes, int], Partition] = {}
        """Partitions that requests have found, by their topic's name or id: every change of topics or leaders empties it."""
        self.on_settings_changed: Callable[[Settings], None] = lambda _: None
        self.on_led: Callable[[str, int], None] = lambda _, __: None
        """Called with a topic and a partition that this broker leads from now on; `on_led_elsewhere` with one that it does not."""
        self.on_led_elsewhere: Callable[[str, int], None] = lambda _, __: None
        self.rule_watchers: list[Callable[[Rules], None]] = []
        """Called with the rules that apply from now on: once at the start, and after each change of them."""
        self._logs = logs
        self._configs = ClusterConfigs(settings)
        self.settings_checks = self._configs.checks

    @property
    @abstractmethod
    def state(self) -> ClusterState:
        """The cluster as it is now."""

    def topic_config(self, overrides: Mapping[str, str]) -> TopicConfig:
        """The configuration that overrides give; topics with equal ones share it. Raises ClusterError."""
        return self._configs.topic(overrides)

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
        self._forget_found()
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
            case TakeRules(rules):
                self._tell_rules(rules)
            case Open(name, index, epoch):
                self._open(name, index, epoch)
            case Close(name, index):
                self._close(name, index)

    def _tell_rules(self, rules: Rules) -> None:
        for watcher in self.rule_watchers:
            watcher(rules)

    def _make(self, record: StoredTopic, indexes: Sequence[int]) -> None:
        """Make the folders of a new topic, all of them or none; or those of added partitions, as many as can be made."""
        config = self.topic_config(record.overrides)
        places = record.places()
        known = self.topics.get(record.name)
        topic = known or Topic(record.name, record.id, (), dict(record.overrides), config)
        topic_id = None if record.name in self.state.unidentified else topic.id
        first = topic.partition_count
        try:
            for index in range(first, record.partition_count):
                is_mine = index in indexes
                made = self._new_partition(topic, index, topic_id, places.get(index)) if is_mine else None
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

    @abstractmethod
    def _new_partition(self, topic: Topic, index: int, topic_id: bytes | None, place: str | None) -> Partition:
        """Raises StorageFault."""

    def _delete(self, name: str, topic_id: bytes) -> None:
        """Raises StorageFault if a folder is left, which the next start removes."""
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
                self._remove_folder(partition)
            except StorageFault as fault:
                log.error("%s: could not be removed: %s", partition, fault)
                last = fault
        return last

    def _remove_folder(self, partition: Partition) -> None:
        """Raises StorageFault."""
        self._logs.delete(partition)

    # -- partitions change hands

    def is_opening(self, place: Place) -> bool:  # noqa: ARG002 - a folder's partitions are served at once
        """Whether a partition is led here and not served yet."""
        return False

    def _open(self, name: str, index: int, epoch: int) -> None:
        topic = self.topics[name]
        partition = topic.find(index)
        if isinstance(partition, ErrorCode):
            partition = self._opened(topic, index, was_clean=True)
        partition.lead(max(epoch, partition.leader_epoch))
        self._lead(topic, partition)

    def _lead(self, topic: Topic, partition: Partition) -> None:
        topic.put(partition.index, partition)
        self.on_led(topic.name, partition.index)
        self._tell_epochs([partition])

    def _opened(self, topic: Topic, index: int, *, was_clean: bool) -> Partition:
        place = self.state.topics[topic.name].places().get(index)
        partition = self._logs.take_over(topic.name, index, topic.config, topic.id, place, was_clean=was_clean)
        identify(self._logs, [partition], topic.id)
        return partition

    def _close(self, name: str, index: int) -> None:
        """Nothing is left to do after a hand-over, which withdraws and closes the partition first."""
        partition = self.withdraw(name, index)
        if partition is not None:
            log.error("%s: another broker leads it, but it was not closed here: its log is still being read", partition)
            closing.close_files(partition)
            partition.condition.go_offline(LED_ELSEWHERE)

    def withdraw(self, name: str, index: int) -> Partition | None:
        """Stop serving a partition; None if it is not served. The caller closes it, or has it led here again."""
        topic = self.topics[name]
        partition = topic.find(index)
        if isinstance(partition, ErrorCode):
            return None
        self._forget_found()
        self._logs.forget(partition)
        topic.put(index, None)
        self.on_led_elsewhere(name, index)
        return partition

    def lead_again(self, topic_id: bytes, index: int, *, was_clean: bool) -> None:
        """Open a withdrawn partition again, and serve it."""
        topic = self.by_id[topic_id]
        self._forget_found()
        self._lead(topic, self._opened(topic, index, was_clean=was_clean))

    def move_start(self, partition: Partition, offset: int, moved: StartMoved) -> None:
        """Make an offset up to the high watermark the start of a partition. The caller writes the log start checkpoint."""
        fault = None
        try:
            log_start.delete_records_before(partition, offset)
        except StorageFault as found:
            fault = found
        moved(fault)

    def remove_withdrawn(self, partition: Partition) -> None:
        """Remove the folder of a partition whose topic was deleted meanwhile, while it was not found here."""
        remove_deleted(self._logs.resources.storage, partition.directory)

    def _forget_found(self) -> None:
        self.partition_cache.clear()
        self._logs.resources.changes.note()

    @abstractmethod
    def _tell_epochs(self, partitions: Iterable[Partition]) -> None:
        """Record the leader epochs of partitions here: other brokers report them to clients."""

    def _configure(self, settings: Settings) -> None:
        self._configs.take(settings)
        for topic in self.topics.values():
            topic.configure(topic.overrides, self.topic_config(topic.overrides))
        self._take_settings(settings)

    def _take_settings(self, settings: Settings) -> None:
        self.settings = settings
        self.on_settings_changed(settings)


def folders_of(logs: LogManager) -> Iterator[tuple[str, int, str]]:
    """The folders of all partitions, also of those led elsewhere: topic, number and path."""
    for folder in logs.folders.usable():
        for name, index in folder.keys():  # noqa: SIM118 - no mapping
            yield name, index, f"{folder.path}/{name}-{index}"


def are_gone(logs: LogManager, topics: Collection[str]) -> bool:
    """Whether no folder of these topics is left, and a power cut brings none back. False while the disk cannot be read or synced."""
    try:
        if any(name in topics for name, _, _ in folders_of(logs)):
            return False
        for folder in logs.folders.usable():
            logs.resources.storage.sync_dir(folder.path)
    except StorageFault as fault:
        log.error("folders of topics that were not created may remain: %s", fault)
        return False
    return True


def topic_id_of(storage: Storage, directory: str) -> bytes | None:
    """The id in the folder of a partition; None if there is none, or it cannot be read."""
    try:
        return checkpoints.load_topic_id(storage, directory)
    except (CheckpointError, StorageFault):
        return None


def remove_deleted(storage: Storage, directory: str, *, synced: bool = True) -> None:
    """Remove the folder of a partition whose topic is deleted. A fault of the disk is logged: the next start removes the rest."""
    try:
        doom(storage, directory, synced=synced)
    except StorageFault as fault:
        log.error("%s is deleted, but its files cannot be removed: %s", directory, fault)


def _topic_of(step: Make | Delete) -> str:
    return step.topic.name if isinstance(step, Make) else step.name


def _told(step: Make | Delete, fault: StorageFault) -> ClusterError:
    """Log a fault of the disk; the error names the files that could not be made."""
    if isinstance(step, Delete):
        return ClusterError(ErrorCode.KAFKA_STORAGE_ERROR, "folders are still to be removed")
    grows = bool(step.indexes) and step.indexes[0] > 0
    log.error("topic %s: could not %s: %s", step.topic.name, "grow" if grows else "be created", fault)
    what = "the partition's files" if grows else "the topic's files"
    return ClusterError(ErrorCode.KAFKA_STORAGE_ERROR, f"{what} could not be created")
