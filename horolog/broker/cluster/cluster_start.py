"""At a start, makes topics that agree with the cluster file and with the folders.

What the file does not know is adopted as `broker.adoption.takeover` decides.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from horolog.base.readable import counted, ranges
from horolog.broker.adoption import adopted_file, takeover
from horolog.broker.adoption.folders import Renaming, count_and_foreign
from horolog.broker.adoption.report import UNKNOWN_MEANS, summary
from horolog.broker.adoption.takeover import Takeover
from horolog.broker.cluster.cluster_configs import ClusterConfigs
from horolog.broker.cluster.cluster_state import ClusterState
from horolog.broker.cluster.topic import Topic
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Settings
from horolog.broker.config.topic_settings import as_unknown
from horolog.broker.log.files import log_starts
from horolog.broker.log.manager import LogManager
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import DataFolderError, Storage, StorageFault
from horolog.broker.on_record.cluster_file import FILE_NAME, ClusterFile, StoredCluster, StoredTopic
from horolog.broker.security.password_encoder import SECRET, NotDecoded, PasswordEncoder, secrets_in
from horolog.protocol.uuids import show_uuid

log = logging.getLogger(__name__)

NOT_TAKEN = as_unknown({})
"""For folders that belong to no topic: nothing in them may be deleted."""


BEYOND_COUNTERS = 1 << 41
"""Producer ids that no counter from 0 reaches."""


def next_producer_id_of(stored: StoredCluster, new_id: Callable[[], bytes], *, has_topics: bool) -> int:
    """Without the file it is unknown which ids were given out: if there is data, go on where no counter has been."""
    if stored.next_producer_id is not None:
        return stored.next_producer_id
    return beyond_counters(new_id) if has_topics else 0


def beyond_counters(new_id: Callable[[], bytes]) -> int:
    """Random, and not by the clock, which may show the same time when the record is lost again."""
    return BEYOND_COUNTERS + (int.from_bytes(new_id()[:8]) >> 2)


def _is_deleted(partition: Partition, stored: StoredCluster, taken: Takeover) -> bool:
    """Whether a folder belongs to a topic that was being deleted. If the folder has no id, `taken` knows."""
    ids = stored.deleting.get(partition.topic, ())
    if partition.topic_id is None:
        return bool(ids) and partition.topic not in taken.topics
    return partition.topic_id in ids


def _may_have_id(found: Iterable[Partition]) -> bool:
    """Whether a folder that cannot be read now may have the topic's id."""
    return any(map(is_unread, found)) and all(one.topic_id is None for one in found)


def record_of(logs: LogManager, topic: Topic) -> StoredTopic:
    """A topic as the file is to have it."""
    places = logs.places_of(topic.led_here)
    return StoredTopic(topic.name, topic.id, topic.partition_count, dict(topic.overrides), places)


def is_unread(partition: Partition) -> bool:
    """Whether the id in its folder could not be read yet."""
    return partition.condition.fault is not None and partition.topic_id is None


def identify(logs: LogManager, partitions: Iterable[Partition], topic_id: bytes) -> None:
    """Write the topic's id into every folder that can be read; else a start that finds only one makes another topic of it.

    A full disk does not keep a partition from being served: its folder gets the id before its next record is safe.
    """
    for partition in partitions:
        if partition.condition.fault is not None or partition.topic_id == topic_id:
            continue
        if partition.topic_id is not None:
            log.warning("%s: its folder has another topic's id, %s", partition, show_uuid(partition.topic_id))
        try:
            logs.identify(partition, topic_id)
        except StorageFault as fault:
            log.error("%s: the topic's id could not be written into its folder: %s", partition, fault)


def refuse_lost_rules(state: ClusterState | StoredCluster, settings: Settings) -> bool:
    """Refuse to serve without rules that may forbid something. Whether rules are still in doubt; raises DataFolderError.

    Without an authorizer, rules of which nothing is left do no harm: the doubt stays until there is one.
    """
    if state.lost_rules:
        lost = f"{FILE_NAME}: {state.lost_rules} or more rules (users, access lists, quotas) cannot be read"
    elif state.rules_in_doubt and settings.authorizer_class_name:
        lost = f"{FILE_NAME}: rules (users, access lists, quotas) may be lost, for what recorded them is missing or damaged"
    else:
        return state.rules_in_doubt
    if not settings.horolog_lost_rules_accept:
        raise DataFolderError(
            f"{lost}: restore a copy of the file, or start with horolog.lost.rules.accept=true to continue with the other rules"
        )
    log.warning("%s: continuing with the others (horolog.lost.rules.accept)", lost)
    return False


def as_older(stored: StoredCluster, written: int) -> StoredCluster:
    """The content of an older copy of the file, marked as lacking later changes, which are unknown."""
    topics = {name: replace(one, overrides=as_unknown(one.overrides), line="") for name, one in stored.topics.items()}
    return replace(
        stored,
        topics=topics,
        next_producer_id=None,
        rules_in_doubt=True,
        lost_rules=stored.lost_rules + bool(stored.rules),
        damages=[*stored.damages, f"it is an older copy, number {stored.number} of {written}"],
    )


def load_record(
    file: ClusterFile, storage: Storage, data_dirs: Iterable[str], own_base: int | None = None
) -> StoredCluster:
    """The record; of an older copy only the safe parts. A later save gets a number above every one so far.

    `own_base` is what the journal of a broker alone continues: its changes count, too, so the record is older than they only if it is
    older than the journal.
    """
    kept, written = file.load(), max(log_starts.record_in(storage, one) for one in data_dirs)
    file.go_on_from(written)
    is_continued = own_base is not None and own_base >= kept.number
    needed = min(written, own_base - 1) if own_base is not None and is_continued else written
    return as_older(kept, written) if kept.found and kept.number < needed else kept


def with_doubts(stored: StoredCluster, taken: Takeover, settings: Settings) -> StoredCluster:
    """Without the file, rules of the topics that exist are in doubt, unless Kafka's metadata has just given them."""
    is_told = taken.kraft is not None and taken.kraft.is_whole and taken.is_news
    is_missed = taken.is_record_lost or (bool(settings.authorizer_class_name) and not is_told)
    is_missing = not stored.found and bool(taken.topics) and is_missed
    return replace(stored, rules_in_doubt=stored.rules_in_doubt or is_missing)


def decoded(kept: StoredCluster, encoder: PasswordEncoder) -> StoredCluster:
    """The record with its secrets decoded. Raises SettingsError."""
    try:
        rules = encoder.decoded_rules(kept.rules)
        configs = {node: encoder.decoded_configs(one) for node, one in kept.broker_configs.items()}
    except NotDecoded as error:
        raise SettingsError(SECRET, None, f"{FILE_NAME}: {error}") from error
    return replace(kept, rules=rules, broker_configs=configs)


def tell_plain_secrets(state: ClusterState) -> None:
    """Log that secrets are kept in plain text, which is accepted, as in Kafka 4."""
    count = secrets_in(state.rules, state.broker_configs)
    if count:
        log.info(
            "%s has %s (users, passwords); %s encrypts them", FILE_NAME, counted(count, "unencrypted secret"), SECRET
        )


class Start:
    """One start: `run`, and its findings."""

    def __init__(
        self,
        logs: LogManager,
        file: ClusterFile,
        configs: ClusterConfigs,
        new_topic_id: Callable[[], bytes],
        merged: Storage | None = None,
    ) -> None:
        """`merged` has the folders merged in memory, if the disk has no room for that."""
        self._logs = logs
        self._merged = logs.resources.storage if merged is None else merged
        self._file = file
        self._configs = configs
        self._new_topic_id = new_topic_id
        self.topics: dict[str, Topic] = {}
        self.records: dict[str, StoredTopic] = {}
        self.broker_configs: dict[str, dict[str, str]] = {}
        self.foreign: set[str] = set()
        """Names with folders that are no partitions."""
        self.unidentified: set[str] = set()
        self.is_news = False
        """Whether the file has to change."""
        self._ids: set[bytes] = set()
        self._taken: Takeover | None = None

    def __repr__(self) -> str:
        return f"<Start with {len(self.topics)} topics>"

    def run(
        self,
        now_ms: int,
        settings_changed: Callable[[Settings], None],
        begin: Callable[[ClusterState, bool], None] = lambda _state, _is_news: None,
    ) -> ClusterState:
        """Read the file, have the partitions opened with their topics' configurations, and make the two agree."""
        paths = [one.path for one in self._logs.folders.usable()]
        kept = self._load(paths)
        encoder = self._configs.encoder
        stored = decoded(kept, encoder)
        taken = takeover.plan(
            self._logs.resources.storage,
            paths,
            stored,
            self._configs.settings,
            self._new_topic_id,
        )
        stored = with_doubts(stored, taken, self._configs.settings)
        rules_in_doubt = refuse_lost_rules(stored, self._configs.settings)
        self._rename_folders(taken.renamings)
        self.broker_configs = self._configs.take_usable(taken.broker_configs)
        if self.broker_configs:
            settings_changed(self._configs.settings)
        overrides = {name: self._configs.usable(name, topic.overrides) for name, topic in taken.topics.items()}
        self._logs.open(lambda name: self._configs.topic(overrides.get(name, NOT_TAKEN)))
        changed = self._finish_deletions(stored, taken)
        away = self._logs.folders.may_lack(one for topic in stored.topics.values() for one in topic.folders)
        changed |= self._adopt(stored, taken, overrides)
        state = ClusterState.of(
            self.records.values(),
            broker_configs={node: encoder.encoded_configs(one) for node, one in self.broker_configs.items()},
            next_producer_id=next_producer_id_of(stored, self._new_topic_id, has_topics=bool(self.topics)),
            deleting={name: frozenset(ids) for name, ids in stored.deleting.items()} if away else {},
            unidentified=frozenset(self.unidentified),
            rules=encoder.encoded_rules(taken.rules),
            rules_in_doubt=rules_in_doubt,
        )
        changed |= state.rules != kept.rules or state.broker_configs != kept.broker_configs
        self._report(stored, taken, now_ms)
        tell_plain_secrets(state)
        has_lost = bool(stored.damages or stored.lost_rules or stored.rules_in_doubt)
        self.is_news = changed or has_lost or self._merged is not self._logs.resources.storage
        self._taken = taken
        begin(state, self.is_news)
        return state

    def _load(self, paths: list[str]) -> StoredCluster:
        if self._merged is self._logs.resources.storage:
            return load_record(self._file, self._merged, paths)
        merged = ClusterFile(self._merged, paths[0], lambda: paths)
        kept = load_record(merged, self._merged, paths)
        self._file.go_on_from(merged.number - 1)  # the merge has written once, in memory
        return kept

    def _report(self, stored: StoredCluster, taken: Takeover, now_ms: int) -> None:
        for damage in stored.damages:
            log.warning("%s is damaged: %s", self._file, damage)
        if taken.is_record_lost and self.topics:
            log.warning("%s is missing: found %s by their folders", self._file, counted(len(self.topics), "topic"))
        for line in summary(taken, self._logs.partitions.values(), now_ms):
            log.warning("%s", line)
        for topic in self.topics.values():
            if topic.settings_unknown:
                log.warning("topic %s: %s", topic.name, UNKNOWN_MEANS)

    def _rename_folders(self, renamings: Iterable[Renaming]) -> None:
        """A folder that keeps its name is served as before, or not at all: nothing of it is lost."""
        for renaming in renamings:
            log.warning("%s becomes %s: %s", renaming.folder.path, renaming.name, renaming.reason)
            try:
                renaming.carry_out(self._logs.resources.storage)
            except StorageFault as fault:
                log.error("%s could not be renamed: %s", renaming.folder.path, fault)

    def remember(self) -> None:
        """Keep what Kafka's metadata said; without this note, the next start does the same again."""
        taken = self._taken
        if taken is None or not taken.is_news or taken.kraft is None:
            return
        try:
            for folder in self._logs.folders.usable():
                adopted_file.save(self._logs.resources.storage, folder.path, taken.kraft, taken.written)
        except StorageFault as fault:
            log.error("the Kafka metadata in the folder could not be kept: %s", fault)

    def _finish_deletions(self, stored: StoredCluster, taken: Takeover) -> bool:
        """Remove the folders that a crash left of deleted topics."""
        doomed = [partition for partition in self._logs.partitions.values() if _is_deleted(partition, stored, taken)]
        for partition in doomed:
            try:
                self._logs.delete(partition)
            except StorageFault as fault:
                log.error("%s is deleted, but its files cannot be removed: %s", partition, fault)
                self._logs.forget(partition)
        return bool(stored.deleting)

    def _adopt(self, stored: StoredCluster, taken: Takeover, overrides: Mapping[str, dict[str, str]]) -> bool:
        """Make topics from what was decided and the folders that are there; True if the file has to change."""
        found: dict[str, dict[int, Partition]] = {}
        for (name, index), partition in self._logs.partitions.items():
            found.setdefault(name, {})[index] = partition
        for name, topic in taken.topics.items():
            partitions = found.pop(name, {})
            if name not in stored.topics and not taken.is_known_there(name):
                if not partitions:
                    continue  # only when opened did its folders show that it was being deleted
                topic = self._as_folders_say(topic, partitions)
            self._adopt_topic(topic, partitions, overrides[name])
        for name, others in found.items():
            self._adopted_count(name, 0, others)
        return self.records != stored.topics

    def _as_folders_say(self, planned: StoredTopic, found: Mapping[int, Partition]) -> StoredTopic:
        """The topic with the id that a folder has, even if that could not be read when this was planned."""
        if _may_have_id(found.values()):
            self.unidentified.add(planned.name)
        ids = (found[index].topic_id for index in sorted(found))
        return replace(planned, id=next((one for one in ids if one and one not in self._ids), planned.id), line="")

    def _adopt_topic(self, planned: StoredTopic, found: dict[int, Partition], overrides: dict[str, str]) -> None:
        name, topic_id = planned.name, planned.id
        count = self._adopted_count(name, planned.partition_count, found)
        if not count:
            return
        if topic_id in self._ids:
            topic_id = self._new_topic_id()
        config = self._configs.topic(overrides)
        topic = Topic(name, topic_id, (), overrides, config)
        missing = [index for index in range(count) if index not in found]
        if missing:
            log.warning("topic %s: partitions without a folder start empty: %s", name, ranges(missing))
        recorded = {index: one for one, indexes in planned.folders.items() for index in indexes}
        is_sure = name not in self.unidentified
        for index in range(count):
            topic.put(
                index,
                found.get(index)
                or self._logs.create_or_offline(
                    name, index, config, topic_id if is_sure else None, recorded.get(index)
                ),
            )
        if is_sure:
            identify(self._logs, topic.led_here, topic_id)
        self.topics[name] = topic
        self._ids.add(topic_id)
        self.records[name] = record_of(self._logs, topic)

    def _adopted_count(self, name: str, stored_count: int, found: Iterable[int]) -> int:
        """How many partitions a topic has by the file and its folders, without folders that cannot be its partitions."""
        count, foreign = count_and_foreign(stored_count, found)
        if foreign:
            log.warning("folders %s-%s are not partitions and are left unchanged", name, foreign[:20])
            self.foreign.add(name)
        return count
