"""The registry of topics: what exists, under which configuration, and every change to it, durable before it returns.

A topic exists when the cluster file says so (`broker.cluster_file`); its folders follow. Creating writes the file first and makes
the folders then, deleting writes the file first (with the topic among those `deleting`) and removes the folders then: after a crash
between the two the start finishes what was begun. What the file does not know is adopted as `broker.adoption.takeover` decides.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from horolog.broker.adoption import adopted_file, takeover
from horolog.broker.adoption.folders import Renaming, count_and_foreign
from horolog.broker.adoption.report import UNKNOWN_MEANS, summary
from horolog.broker.adoption.takeover import Takeover
from horolog.broker.cluster_errors import ClusterError
from horolog.broker.cluster_file import ClusterFile, StoredCluster, StoredTopic
from horolog.broker.log.manager import LogManager, Placing
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import StorageFault
from horolog.broker.new_topics import (
    UNSET,
    NewPartitions,
    NewTopic,
    added_count,
    check_name,
    check_room,
    partition_count_of,
    required_values,
)
from horolog.broker.setting_types import SettingsError
from horolog.broker.settings import Settings
from horolog.broker.topic_names import INTERNAL_TOPICS, collision_key
from horolog.broker.topic_settings import TopicConfig, as_unknown, is_unknown, resolve, usable
from horolog.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

MAX_SHARED_CONFIGS = 1_000
"""Resolved configurations that are kept to be shared by topics with equal overrides."""

PRODUCER_ID_BLOCK_SIZE = 1_000
"""Producer ids reserved by one write of the file; those left of a block are lost at a restart."""

NO_TOPIC_ID = bytes(16)

NOT_TAKEN = as_unknown({})
"""For folders that no topic was made of: nothing of them may go."""


class Topic:
    """One topic, and the door to its partitions: to those that this broker leads, and to no others."""

    __slots__ = ("_partitions", "config", "id", "internal", "name", "overrides")

    def __init__(
        self,
        name: str,
        topic_id: bytes,
        partitions: Iterable[Partition | None],
        overrides: dict[str, str],
        config: TopicConfig,
    ) -> None:
        """`partitions` has None in the place of those that another broker leads."""
        self.name = name
        self.id = topic_id
        self.overrides = overrides
        self.config = config
        self.internal = name in INTERNAL_TOPICS
        self._partitions = list(partitions)

    @property
    def partition_count(self) -> int:
        """How many partitions the topic has, whoever leads them."""
        return len(self._partitions)

    def has(self, index: int) -> bool:
        """Whether there is such a partition, whoever leads it."""
        return 0 <= index < len(self._partitions)

    def find(self, index: int) -> Partition | ErrorCode:
        """The partition, if this broker leads it."""
        if not 0 <= index < len(self._partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partition = self._partitions[index]
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if partition is None else partition

    @property
    def led_here(self) -> list[Partition]:
        """The partitions that this broker leads, in the order of numbers."""
        return [partition for partition in self._partitions if partition is not None]

    def put(self, index: int, partition: Partition | None) -> None:
        """Take up a partition that this broker leads from now on, or with None one that it leads no more; the next index adds one."""
        self._partitions[index : index + 1] = [partition]

    @property
    def settings_unknown(self) -> bool:
        """Nothing of it is deleted or compacted until its owner has given its settings."""
        return is_unknown(self.overrides)

    def __repr__(self) -> str:
        return f"<Topic {self.name} with {self.partition_count} partitions>"


def random_topic_id() -> bytes:
    return uuid.uuid4().bytes


def next_producer_id_of(stored: StoredCluster, now_ms: int, *, has_topics: bool) -> int:
    """Without the file nobody knows which ids were given out: with data here, go on where no counter has been."""
    if stored.next_producer_id is not None:
        return stored.next_producer_id
    return now_ms if has_topics else 0


def _is_deleted(partition: Partition, stored: StoredCluster, taken: Takeover) -> bool:
    """Whether a folder belongs to a topic that was being deleted. Where it does not say so, `taken` knows."""
    ids = stored.deleting.get(partition.topic, ())
    if partition.topic_id is None:
        return bool(ids) and partition.topic not in taken.topics
    return partition.topic_id in ids


def _may_have_id(found: Iterable[Partition]) -> bool:
    """Whether a folder that nobody can read now may say whose it is."""
    return any(one.fault is not None for one in found) and all(one.topic_id is None for one in found)


def unknown_topic(name: str) -> ClusterError:
    return ClusterError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name} here")


class Cluster:
    """Topics, their configurations and the producer ids of one broker that is a whole cluster."""

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
        self.broker_configs: dict[str, dict[str, str]] = {}
        self.on_settings_changed: Callable[[Settings], None] = lambda _: None
        self._logs = logs
        self._file = file
        self._new_topic_id = new_topic_id
        self._stored: dict[str, StoredTopic] = {}
        self._deleting: dict[str, set[bytes]] = {}
        self._collision_keys: dict[str, str] = {}
        self._configs: dict[tuple[tuple[str, str], ...], TopicConfig] = {}
        self._foreign: set[str] = set()
        self._unidentified: set[str] = set()
        """Topics whose id lies in folders that cannot be read yet: the one they have is for now, and never on record."""
        self._partition_count = 0
        self.change_count = 0
        """How often the file was written since the start."""
        self._next_producer_id = 0
        self._reserved_producer_ids = 0

    def __repr__(self) -> str:
        return f"<Cluster {self.cluster_id}: {len(self.topics)} topics, {self._partition_count} partitions>"

    # -- start

    def open(self, now_ms: int) -> None:
        """Read the file, have the partitions opened with their topics' configurations, and make the two agree."""
        stored = self._file.load()
        taken = takeover.plan(
            self._logs.resources.storage,
            [one.path for one in self._logs.folders.usable()],
            stored,
            self.settings,
            self._new_topic_id,
        )
        self._rename_folders(taken.renamings)
        self._take_broker_configs(taken.broker_configs)
        if self.broker_configs:
            self.on_settings_changed(self.settings)
        overrides = {name: self._usable_overrides(name, topic.overrides) for name, topic in taken.topics.items()}
        self._logs.open(lambda name: self.topic_config(overrides.get(name, NOT_TAKEN)))
        changed = self._finish_deletions(stored, taken)
        if self._logs.folders.may_lack(one for topic in stored.topics.values() for one in topic.folders):
            self._deleting = {name: set(ids) for name, ids in stored.deleting.items()}
        changed |= self._adopt(stored, taken, overrides)
        self._next_producer_id = next_producer_id_of(stored, now_ms, has_topics=bool(self.topics))
        self._reserved_producer_ids = self._next_producer_id
        self._report(stored, taken, now_ms)
        if changed or stored.damages or self.broker_configs != stored.broker_configs:
            self._save_or_warn()
        if taken.is_news and taken.kraft is not None:
            self._remember(taken)

    def _report(self, stored: StoredCluster, taken: Takeover, now_ms: int) -> None:
        for damage in stored.damages:
            log.warning("%r is damaged: %s", self._file, damage)
        if taken.is_record_lost and self.topics:
            log.warning("%r is missing: %d topics were found by their folders", self._file, len(self.topics))
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

    def _remember(self, taken: Takeover) -> None:
        """Without this note, the next start does the same again."""
        assert taken.kraft is not None
        try:
            for folder in self._logs.folders.usable():
                adopted_file.save(self._logs.resources.storage, folder.path, taken.kraft, taken.written)
        except StorageFault as fault:
            log.error("the metadata of the folder's Kafka could not be kept: %s", fault)

    def _take_broker_configs(self, stored: Mapping[str, Mapping[str, str]]) -> None:
        """Apply what was changed while running; a key that this release does not take is left out."""
        for node, configs in stored.items():
            for key, value in configs.items():
                changed = {**self.broker_configs, node: {**self.broker_configs.get(node, {}), key: value}}
                try:
                    self.settings = self._settings_with(changed)
                    self.broker_configs = changed
                except SettingsError as error:
                    log.warning("%r: %s; it is left out", self._file, error)

    def _usable_overrides(self, name: str, overrides: Mapping[str, str]) -> dict[str, str]:
        kept, left_out = usable(overrides, self.settings)
        for error in left_out:
            log.warning("topic %s: %s; it is left out", name, error)
        return kept

    def topic_config(self, overrides: Mapping[str, str]) -> TopicConfig:
        """The configuration that overrides give; topics with equal ones share it. Raises ClusterError."""
        key = tuple(sorted(overrides.items()))
        config = self._configs.get(key)
        if config is None:
            try:
                config = resolve(overrides, self.settings)
            except SettingsError as error:
                raise ClusterError(ErrorCode.INVALID_CONFIG, str(error)) from error
            if len(self._configs) >= MAX_SHARED_CONFIGS:
                self._configs.clear()
            self._configs[key] = config
        return config

    def _finish_deletions(self, stored: StoredCluster, taken: Takeover) -> bool:
        """Remove the folders that a crash left of deleted topics."""
        doomed = [partition for partition in self._logs.partitions.values() if _is_deleted(partition, stored, taken)]
        for partition in doomed:
            try:
                self._logs.delete(partition)
            except StorageFault as fault:
                log.error("%r is deleted and cannot be removed: %s", partition, fault)
                self._logs.forget(partition)
        return bool(stored.deleting)

    def _adopt(self, stored: StoredCluster, taken: Takeover, overrides: Mapping[str, dict[str, str]]) -> bool:
        """Make topics of what was decided and the folders that are there; True if the file has to say more than it did."""
        found: dict[str, dict[int, Partition]] = {}
        for (name, index), partition in self._logs.partitions.items():
            found.setdefault(name, {})[index] = partition
        for name, topic in taken.topics.items():
            partitions = found.pop(name, {})
            if name not in stored.topics and not taken.is_known_there(name):
                if not partitions:
                    continue  # its folders said only when they were opened that it was being deleted
                topic = self._as_folders_say(topic, partitions)
            self._adopt_topic(topic, partitions, overrides[name])
        for name, others in found.items():
            self._adopted_count(name, 0, others)
        return self._stored != stored.topics

    def _as_folders_say(self, planned: StoredTopic, found: Mapping[int, Partition]) -> StoredTopic:
        """With the id that a folder has, also where it could not be read when this was planned."""
        if _may_have_id(found.values()):
            self._unidentified.add(planned.name)
        ids = (found[index].topic_id for index in sorted(found))
        return replace(planned, id=next((one for one in ids if one and one not in self.by_id), planned.id), line="")

    def _adopt_topic(self, planned: StoredTopic, found: dict[int, Partition], overrides: dict[str, str]) -> None:
        name, topic_id = planned.name, planned.id
        count = self._adopted_count(name, planned.partition_count, found)
        if not count:
            return
        if topic_id in self.by_id:
            topic_id = self._new_topic_id()
        config = self.topic_config(overrides)
        topic = Topic(name, topic_id, (), overrides, config)
        missing = [index for index in range(count) if index not in found]
        if missing:
            log.warning("topic %s: partitions %s have no folder and start empty", name, missing[:20])
        recorded = {index: one for one, indexes in planned.folders.items() for index in indexes}
        for index in range(count):
            partition = found.get(index) or self._logs.create_or_offline(
                name, index, config, topic_id, recorded.get(index)
            )
            if partition.topic_id is None and partition.fault is None:
                self._identify(partition, topic_id)
            topic.put(index, partition)
        self._register(topic)

    def reopened(self, partition: Partition) -> None:
        """A folder can be read again: a topic that waits for its id has the one that lies there."""
        topic = self.topics.get(partition.topic)
        if topic is None or topic.name not in self._unidentified:
            return
        self._unidentified.discard(topic.name)
        if partition.topic_id is None or partition.topic_id in self.by_id:
            self._identify(partition, topic.id)
        else:
            del self.by_id[topic.id]
            topic.id = partition.topic_id
            self.by_id[topic.id] = topic
            self._stored[topic.name] = replace(self._stored[topic.name], id=topic.id, line="")
        self._save_or_warn()

    def _identify(self, partition: Partition, topic_id: bytes) -> None:
        """A full disk does not keep a partition from being served: its folder gets the id at the next start."""
        try:
            self._logs.identify(partition, topic_id)
        except StorageFault as fault:
            log.error("%r: the topic's id could not be written into its folder: %s", partition, fault)

    def _adopted_count(self, name: str, stored_count: int, found: Iterable[int]) -> int:
        """How many partitions a topic has by the file and its folders, without folders that cannot be its partitions."""
        count, foreign = count_and_foreign(stored_count, found)
        if foreign:
            log.warning("folders %s-%s are not taken for partitions and left alone", name, foreign[:20])
            self._foreign.add(name)
        return count

    def _register(self, topic: Topic) -> None:
        self.topics[topic.name] = topic
        self.by_id[topic.id] = topic
        self._stored[topic.name] = self._record_of(topic)
        self._collision_keys[collision_key(topic.name)] = topic.name
        self._partition_count += topic.partition_count

    def _record_of(self, topic: Topic) -> StoredTopic:
        """A topic as the file is to have it."""
        places = self._logs.places_of(topic.led_here)
        return StoredTopic(topic.name, topic.id, topic.partition_count, dict(topic.overrides), places)

    def _save(self) -> None:
        """Write the file; a disk that fails is a refusal with Kafka's code for it."""
        try:
            known = [one for one in self._stored.values() if one.name not in self._unidentified]
            self._file.save(known, self.broker_configs, self._reserved_producer_ids, self._deleting)
        except StorageFault as fault:
            log.error("%r: could not write: %s", self._file, fault)
            raise ClusterError(ErrorCode.KAFKA_STORAGE_ERROR, "the cluster file could not be written") from fault
        self.change_count += 1

    # -- topics

    def create_topic(
        self, name: str, partition_count: int = UNSET, overrides: Mapping[str, str | None] | None = None
    ) -> Topic:
        """Create one topic; raises ClusterError."""
        (result,) = self.create_topics([NewTopic(name, partition_count, overrides=overrides or {})])
        if isinstance(result, ClusterError):
            raise result
        return self.topics[name]

    def create_topics(
        self, wanted: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[StoredTopic | ClusterError]:
        """Create topics with one write of the file; the result of each is in its place."""
        planned: dict[str, StoredTopic] = {}
        keys: dict[str, str] = {}
        partition_count = 0
        placing = self._logs.folders.placing()
        results: list[StoredTopic | ClusterError] = []
        for new in wanted:
            try:
                plan = self._plan_topic(new, keys, partition_count, placing)
            except ClusterError as error:
                results.append(error)
            else:
                planned[plan.name] = plan
                keys[collision_key(plan.name)] = plan.name
                partition_count += plan.partition_count
                results.append(plan)
        if planned and not validate_only:
            failures = self._carry_out_creation(planned)
            results = [failures.get(r.name, r) if isinstance(r, StoredTopic) else r for r in results]
        return results

    def _plan_topic(
        self, new: NewTopic, keys: Mapping[str, str], already_planned: int, placing: Placing
    ) -> StoredTopic:
        """The topic as it would be; raises ClusterError if it may not be."""
        check_name(new.name)
        if new.name in self.topics:
            raise ClusterError(ErrorCode.TOPIC_ALREADY_EXISTS, f"there is a topic {new.name} already")
        key = collision_key(new.name)
        other = self._collision_keys.get(key) or keys.get(key)
        if other is not None:
            reason = f"{new.name} is too like the topic {other}: metric names turn dots into underscores"
            raise ClusterError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
        self._check_no_foreign_folders(new.name)
        count = partition_count_of(new, self.settings, self.nodes)
        check_room(count, already_planned=already_planned, existing=self._partition_count)
        overrides = required_values(new.overrides)
        self.topic_config(overrides)
        return StoredTopic(new.name, self._new_topic_id(), count, overrides, placing.place(range(count)))

    def _check_no_foreign_folders(self, name: str) -> None:
        """New partitions would have the names of folders that are someone else's."""
        if name in self._foreign:
            reason = (
                f"the data folder has folders that are named like partitions of {name} and are none: move them away"
            )
            raise ClusterError(ErrorCode.POLICY_VIOLATION, reason)

    def _carry_out_creation(self, planned: Mapping[str, StoredTopic]) -> dict[str, ClusterError]:
        """Write the file, make the folders; the topics that failed are not there afterwards."""
        self._stored.update(planned)
        try:
            self._save()
        except ClusterError as error:
            self._forget_stored(planned)
            return dict.fromkeys(planned, error)
        failures: dict[str, ClusterError] = {}
        for plan in planned.values():
            try:
                self._register(self._make_folders(plan))
            except StorageFault as fault:
                log.error("topic %s: could not be created: %s", plan.name, fault)
                failures[plan.name] = ClusterError(
                    ErrorCode.KAFKA_STORAGE_ERROR, "the topic's files could not be created"
                )
        if failures:
            self._forget_stored(failures)
            self._save_or_warn()
        return failures

    def _make_folders(self, plan: StoredTopic) -> Topic:
        config = self.topic_config(plan.overrides)
        partitions: list[Partition] = []
        try:
            place = {index: one for one, indexes in plan.folders.items() for index in indexes}
            partitions.extend(
                self._logs.create(plan.name, i, config, plan.id, place.get(i)) for i in range(plan.partition_count)
            )
        except StorageFault:
            self._remove_folders(partitions)
            raise
        return Topic(plan.name, plan.id, partitions, dict(plan.overrides), config)

    def _remove_folders(self, partitions: Iterable[Partition]) -> bool:
        """True if every folder is gone; the next start removes the others."""
        removed = True
        for partition in partitions:
            try:
                self._logs.delete(partition)
            except StorageFault as fault:
                log.error("%r: could not be removed: %s", partition, fault)
                removed = False
        return removed

    def _forget_stored(self, names: Iterable[str]) -> None:
        for name in names:
            self._stored.pop(name, None)

    def _save_or_warn(self) -> None:
        """Write the present state to the file; if that fails, the next start makes the two agree."""
        try:
            self._save()
        except ClusterError:
            log.warning("%r is behind the topics; the next start sets it right", self._file)

    def delete_topics(self, names: Iterable[str]) -> dict[str, ClusterError]:
        """Delete known topics with one write before and one after; returns those that could not be."""
        doomed = [self.topics[name] for name in dict.fromkeys(names)]
        kept = {topic.name: self._stored.pop(topic.name) for topic in doomed}
        for topic in doomed:
            self._deleting.setdefault(topic.name, set()).add(topic.id)
        try:
            self._save()
        except ClusterError as error:
            self._stored.update(kept)
            for topic in doomed:
                self._deleting_done(topic)
            return dict.fromkeys(kept, error)
        for topic in doomed:
            del self.topics[topic.name], self.by_id[topic.id], self._collision_keys[collision_key(topic.name)]
            self._partition_count -= topic.partition_count
            self._unidentified.discard(topic.name)
            if self._remove_folders(topic.led_here):
                self._deleting_done(topic)
        self._save_or_warn()
        return {}

    def delete_topic(self, name: str) -> None:
        """Delete one topic; raises ClusterError."""
        if name not in self.topics:
            raise unknown_topic(name)
        for error in self.delete_topics([name]).values():
            raise error

    def _deleting_done(self, topic: Topic) -> None:
        ids = self._deleting[topic.name]
        ids.discard(topic.id)
        if not ids:
            del self._deleting[topic.name]

    def add_partitions(
        self, wanted: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> dict[str, ClusterError]:
        """Give topics more partitions with one write of the file; returns those that could not have them."""
        failures: dict[str, ClusterError] = {}
        accepted: list[NewPartitions] = []
        planned = 0
        for each in wanted:
            try:
                planned += self._check_new_partitions(each, planned)
                accepted.append(each)
            except ClusterError as error:
                failures[each.name] = error
        if accepted and not validate_only:
            failures |= self._carry_out_growth(accepted)
        return failures

    def _check_new_partitions(self, wanted: NewPartitions, already_planned: int) -> int:
        topic = self.topics.get(wanted.name)
        if topic is None:
            raise unknown_topic(wanted.name)
        self._check_no_foreign_folders(topic.name)
        added = added_count(wanted, topic.partition_count, self.nodes)
        check_room(added, already_planned=already_planned, existing=self._partition_count)
        return added

    def _carry_out_growth(self, accepted: Sequence[NewPartitions]) -> dict[str, ClusterError]:
        before = {each.name: self._stored[each.name] for each in accepted}
        self._unidentified -= before.keys()
        placing = self._logs.folders.placing()
        for each in accepted:
            old = before[each.name]
            folders = {one: list(indexes) for one, indexes in old.folders.items()}
            for one, indexes in placing.place(range(old.partition_count, each.total_count)).items():
                folders.setdefault(one, []).extend(indexes)
            self._stored[each.name] = StoredTopic(old.name, old.id, each.total_count, old.overrides, folders)
        try:
            self._save()
        except ClusterError as error:
            self._stored.update(before)
            return dict.fromkeys(before, error)
        failures: dict[str, ClusterError] = {}
        for each in accepted:
            topic = self.topics[each.name]
            try:
                while topic.partition_count < each.total_count:
                    index, places = topic.partition_count, self._stored[topic.name].folders
                    place = next((one for one, indexes in places.items() if index in indexes), None)
                    topic.put(index, self._logs.create(topic.name, index, topic.config, topic.id, place))
                    self._partition_count += 1
            except StorageFault as fault:
                log.error("topic %s: could not grow: %s", topic.name, fault)
                failures[topic.name] = ClusterError(
                    ErrorCode.KAFKA_STORAGE_ERROR, "the partition's files could not be created"
                )
                self._stored[topic.name] = self._record_of(topic)
        if failures:
            self._save_or_warn()
        return failures

    # -- configurations

    def alter_topic_configs(self, changes: Mapping[str, Mapping[str, str]]) -> None:
        """Give known topics other overrides, all of them in one write; they take effect at once. Raises ClusterError."""
        configs = {name: self.topic_config(overrides) for name, overrides in changes.items()}
        before = {name: self._stored[name] for name in changes}
        self._unidentified -= before.keys()
        for name, overrides in changes.items():
            old = before[name]
            self._stored[name] = StoredTopic(name, old.id, old.partition_count, dict(overrides), old.folders)
        try:
            self._save()
        except ClusterError:
            self._stored.update(before)
            raise
        for name, overrides in changes.items():
            topic = self.topics[name]
            topic.overrides = dict(overrides)
            _configure(topic, configs[name])

    def check_broker_configs(self, node: str, configs: Mapping[str, str]) -> Settings:
        """The settings that a change would give; `node` is this broker's id, or empty for all. Raises ClusterError."""
        try:
            settings = self._settings_with({**self.broker_configs, node: configs})
            for overrides in {tuple(sorted(topic.overrides.items())) for topic in self.topics.values()} | {()}:
                resolve(dict(overrides), settings)
        except SettingsError as error:
            raise ClusterError(ErrorCode.INVALID_REQUEST, str(error)) from error
        return settings

    def alter_broker_configs(self, node: str, configs: Mapping[str, str]) -> None:
        """Replace the dynamic configuration of this broker or of all; it takes effect at once. Raises ClusterError."""
        settings = self.check_broker_configs(node, configs)
        before = self.broker_configs
        self.broker_configs = {**before, node: dict(configs)}
        try:
            self._save()
        except ClusterError:
            self.broker_configs = before
            raise
        self.settings = settings
        self._configs.clear()
        for topic in self.topics.values():
            _configure(topic, self.topic_config(topic.overrides))
        self.on_settings_changed(settings)

    def _settings_with(self, configs: Mapping[str, Mapping[str, str]]) -> Settings:
        return self.settings.with_dynamic(configs.get("", {}), configs.get(str(self.settings.node_id), {}))

    # -- producer ids

    def next_producer_id(self) -> int:
        """An id that was never given out before; raises ClusterError when no more can be reserved."""
        if self._next_producer_id == self._reserved_producer_ids:
            self._reserved_producer_ids += PRODUCER_ID_BLOCK_SIZE
            try:
                self._save()
            except ClusterError:
                self._reserved_producer_ids -= PRODUCER_ID_BLOCK_SIZE
                raise
        self._next_producer_id += 1
        return self._next_producer_id - 1


def _configure(topic: Topic, config: TopicConfig) -> None:
    topic.config = config
    for partition in topic.led_here:
        partition.config = config
