"""Decides a data folder's topics and their settings, from all records about them.

The sources for a topic, in this order:

1. `horolog-cluster`, if it has the topic's line. If Kafka has used the folder since (its metadata log has grown, see
   `adopted_file`), its changes count: each key that differs from its value at the takeover, a topic deleted, a topic created
   again. Things unknown to Kafka (topics created here, settings changed here) stay.
2. The KRaft metadata, if the topic is not recorded here and all of its log can be read.
3. Kafka's own settings for its internal topics.
4. Otherwise the settings are unknown: known ones count, and nothing is deleted or compacted.

If `horolog-cluster` is damaged, or gone although `horolog-adopted` shows that it existed, the settings of the topics that it no
longer has are unknown, whatever an older source says. Without its head the settings that all topics share are gone, too.

A topic of Kafka's metadata without anything in this folder is created only if this node was assigned a partition of it, and if
it was not deleted here. This module writes nothing; `Takeover.renamings` are the folders to be renamed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from horolog.base.readable import counted
from horolog.broker.adoption import adopted_file, folders, kraft_log, kraft_state
from horolog.broker.adoption.adopted_file import Adopted
from horolog.broker.adoption.adopted_rules import with_acls, with_quotas, with_users
from horolog.broker.adoption.folders import Folders, Renaming
from horolog.broker.adoption.kraft_state import ALL_BROKERS, KraftState, KraftTopic
from horolog.broker.config.settings import Settings
from horolog.broker.config.topic_settings import DECIDING, as_unknown, is_unknown, settled
from horolog.broker.log.files import log_starts
from horolog.broker.log.storage import Storage
from horolog.broker.on_record import internal_topics
from horolog.broker.on_record.cluster_file import StoredCluster, StoredTopic
from horolog.broker.on_record.stored_rules import ACL, QUOTA, USER, Rules
from horolog.broker.security.quota_entities import ADOPTED
from horolog.broker.security.users import id_of

Configs = dict[str, str]


class Origin(StrEnum):
    """The source of a topic's settings."""

    RECORD = "horolog-cluster"
    CHANGED = "horolog-cluster, and what Kafka has changed since"
    KRAFT = "KRaft metadata"
    INTERNAL = "Kafka's settings of its internal topics"
    GIVEN = "given"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Takeover:
    """`topics` and `broker_configs` are for `horolog-cluster`; `kraft` is None if there never was a KRaft controller."""

    topics: dict[str, StoredTopic] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    broker_configs: dict[str, Configs] = field(default_factory=dict)
    rules: Rules = field(default_factory=dict)
    renamings: list[Renaming] = field(default_factory=list)
    kraft: KraftState | None = None
    is_news: bool = False
    """Whether the metadata has something that is not in `horolog-adopted`."""
    written: str = ""
    is_record_lost: bool = False
    """Whether `horolog-cluster` is gone though this folder was ours before."""
    places: dict[tuple[str, int], str] = field(default_factory=dict)
    """The folder of each partition, by its present name."""
    absent: list[str] = field(default_factory=list)
    """Topics of the metadata without anything in this folder."""
    notes: list[str] = field(default_factory=list)

    @property
    def unknown(self) -> list[str]:
        return sorted(name for name, topic in self.topics.items() if is_unknown(topic.overrides))

    def is_known_there(self, name: str) -> bool:
        """Whether the metadata has the topic, and so its id."""
        return self.kraft is not None and name in self.kraft.topics

    @property
    def adopted(self) -> list[str]:
        """Topics that were not recorded here."""
        return sorted(name for name, origin in self.origins.items() if origin not in (Origin.RECORD, Origin.CHANGED))


def plan(
    storage: Storage,
    data_dirs: Sequence[str],
    stored: StoredCluster,
    settings: Settings,
    new_topic_id: Callable[[], bytes],
) -> Takeover:
    """Raises StorageFault if not even the folders can be listed."""
    return _Planning(storage, data_dirs, stored, settings, new_topic_id).plan()


class _Planning:
    """The steps of a plan and what they share."""

    def __init__(
        self,
        storage: Storage,
        data_dirs: Sequence[str],
        stored: StoredCluster,
        settings: Settings,
        new_topic_id: Callable[[], bytes],
    ) -> None:
        self._storage = storage
        self._stored = stored
        self._settings = settings
        self._new_topic_id = new_topic_id
        self._folders: Folders = folders.look(storage, data_dirs)
        self._result = Takeover()
        self._used_ids = {topic.id for topic in stored.topics.values()}
        self._deleted_ids: set[bytes] = set()
        """Ids of topics that Kafka has deleted."""
        notes = [one for each in data_dirs if (one := adopted_file.load(storage, each)) is not None]
        self._before: Adopted | None = notes[0] if notes else None
        was_here = bool(notes) or any(storage.exists(f"{each}/{log_starts.LOG_STARTS}") for each in data_dirs)
        self._result.is_record_lost = was_here and not stored.found
        self._load_kraft(data_dirs)

    def _load_kraft(self, data_dirs: Sequence[str]) -> None:
        result, before = self._result, self._before
        if before is not None and before.damages:
            result.notes += before.damages
        result.kraft = before.state if before is not None else None
        place = next((one for one in data_dirs if kraft_log.is_there(self._storage, one)), None)
        if place is None:
            return
        result.written = kraft_log.fingerprint(self._storage, place)
        if before is None or before.damages or before.written != result.written:
            result.kraft = kraft = kraft_state.load(self._storage, place)
            result.is_news = True
            if kraft is not None:
                self._deleted_ids |= kraft.removed_ids

    @property
    def _record_is_whole(self) -> bool:
        """Whether the record is complete: a topic that is not in it never was, or was deleted here."""
        return not self._stored.damages and (self._stored.found or self._before is None)

    def plan(self) -> Takeover:
        result, kraft = self._result, self._result.kraft
        for name, topic in self._stored.topics.items():
            self._plan_known(name, topic)
        names = dict.fromkeys([*(kraft.topics if kraft is not None else ()), *self._folders.found])
        for name in names:
            if name not in self._stored.topics or (name not in result.topics and self._is_new_there(name)):
                self._plan_found(name)
        self._plan_folders()
        self._plan_brokers()
        self._plan_rules()
        if kraft is not None and result.is_news:
            result.notes += [*kraft.damages, *kraft.notes]
        return result

    def _plan_rules(self) -> None:
        """If the metadata cannot be read completely, deleted rules are unknown: the recorded ones count."""
        kraft, before = self._result.kraft, self._before
        self._result.rules = rules = self._stored.rules
        if kraft is not None and kraft.is_whole:
            known = before.state if before is not None and not before.damages else None
            now = with_quotas(with_acls(with_users(rules, known, kraft), known, kraft), known, kraft)
            self._result.rules = now
            changed = [one for one, rule in now.items() if rules.get(one) != rule]
            for count, noun in (
                (sum(kind == USER and bool(id_of(key)) for kind, key in changed), "SCRAM credential"),
                (sum(kind == ACL for kind, _ in changed), "ACL"),
                (sum(kind == QUOTA and (kind, key) != ADOPTED.id for kind, key in changed), "quota"),
            ):
                if count:
                    self._result.notes.append(f"applied {counted(count, noun)} from Kafka's metadata")

    # -- topics on record

    def _plan_known(self, name: str, topic: StoredTopic) -> None:
        origin, overrides, count = Origin.RECORD, dict(topic.overrides), topic.partition_count
        places = topic.folders
        kraft = self._result.kraft
        if kraft is not None and self._result.is_news and kraft.is_whole:
            theirs = kraft.topics.get(name)
            if theirs is not None and theirs.id != topic.id:
                self._result.notes.append(f"topic {name} was recreated by Kafka: Kafka's topic is used")
                return
            if theirs is None and self._was_known_there(topic):
                self._result.notes.append(f"topic {name} was deleted in Kafka")
                self._deleted_ids.add(topic.id)
                return
            if theirs is not None:
                overrides = self._merged(name, overrides, theirs.configs)
                count = max(count, theirs.partition_count)
                places = self._places(theirs, topic)
                origin = Origin.RECORD if overrides == topic.overrides else Origin.CHANGED
        if self._stored.found and not self._stored.head_found and not _decides_alone(name, overrides, self._settings):
            overrides = as_unknown(overrides)
        if is_unknown(overrides):
            origin = Origin.UNKNOWN
        self._take(StoredTopic(name, topic.id, count, overrides, places), origin)

    def _places(self, theirs: KraftTopic, ours: StoredTopic | None = None) -> Mapping[str, Sequence[int]]:
        """The data folders of partitions: as recorded here; for the others, as in Kafka's metadata."""
        places = {one: list(indexes) for one, indexes in (ours.folders if ours is not None else {}).items()}
        recorded = {index for indexes in places.values() for index in indexes}
        for one, indexes in theirs.folders_of(self._settings.node_id).items():
            if others := [index for index in indexes if index not in recorded]:
                places.setdefault(one, []).extend(others)
        return places

    def _was_known_there(self, topic: StoredTopic) -> bool:
        before = self._before
        known = before.state.topics.get(topic.name) if before is not None and not before.damages else None
        return known is not None and known.id == topic.id

    def _merged(self, name: str, ours: Configs, theirs: Configs) -> Configs:
        """Keys that Kafka has changed since the takeover get its values. Without a record of the takeover, ours take precedence."""
        before = self._before
        if before is None or before.damages:
            return settled({**theirs, **ours}, theirs)
        known = before.state.topics.get(name)
        merged, changed = three_ways(known.configs if known is not None else {}, theirs, ours)
        return settled(merged, changed)

    # -- topics that are not on record

    def _is_new_there(self, name: str) -> bool:
        return self._result.is_known_there(name)

    def _plan_found(self, name: str) -> None:
        result = self._result
        theirs = result.kraft.topics.get(name) if result.kraft is not None else None
        found = {index: one for index, one in self._folders.found.get(name, {}).items() if not self._is_going(one)}
        if theirs is None and self._is_removed(found):
            return
        if not found and not (theirs is not None and self._is_wanted(theirs)):
            result.absent.append(name)
            return
        overrides, origin = self._settings_of(name, theirs)
        topic_id = theirs.id if theirs is not None else self._id_in(found)
        count, _ = folders.count_and_foreign(theirs.partition_count if theirs is not None else 0, found)
        if count:
            self._used_ids.add(topic_id)
            places = self._places(theirs) if theirs is not None else {}
            self._take(StoredTopic(name, topic_id, count, overrides, places), origin)

    def _is_going(self, folder: folders.AdoptedFolder) -> bool:
        """Whether the folder was left behind by a deletion that the start finishes.

        The power may have failed before its id was on the disk. A topic created again would be recorded, if the record is whole.
        """
        ids = self._stored.deleting.get(folder.topic)
        if ids is None:
            return False
        topic_id = folders.topic_id_of(self._storage, folder)
        if topic_id is None:
            return self._record_is_whole or folders.is_blank(self._storage, folder)
        return topic_id in ids

    def _is_removed(self, found: Mapping[int, folders.AdoptedFolder]) -> bool:
        """Whether these are leftovers of a topic that Kafka has deleted."""
        if not self._deleted_ids:
            return False
        return any(folders.topic_id_of(self._storage, one) in self._deleted_ids for one in found.values())

    def _is_wanted(self, theirs: KraftTopic) -> bool:
        """Whether a topic without a folder must exist: Kafka created it, but ended before it made the folder."""
        if not self._result.is_news or not self._record_is_whole or not theirs.partitions_of(self._settings.node_id):
            return False
        known = self._before.state.topics.get(theirs.name) if self._before is not None else None
        return known is None or known.id != theirs.id

    def _settings_of(self, name: str, theirs: KraftTopic | None) -> tuple[Configs, Origin]:
        kraft, before = self._result.kraft, self._before
        internal = internal_topics.overrides_of(name, self._settings)
        if theirs is not None and kraft is not None:
            known = before.state.topics.get(name) if before is not None else None
            is_same = known is not None and known.id == theirs.id
            if kraft.is_whole and (self._record_is_whole or not is_same) and (self._stored.found or before is None):
                return dict(theirs.configs), Origin.KRAFT
            if internal is not None:
                return {**internal, **theirs.configs}, Origin.INTERNAL
            return as_unknown(theirs.configs), Origin.UNKNOWN
        return (internal, Origin.INTERNAL) if internal is not None else (as_unknown({}), Origin.UNKNOWN)

    def _id_in(self, found: Mapping[int, folders.AdoptedFolder]) -> bytes:
        ids = (folders.topic_id_of(self._storage, found[index]) for index in sorted(found))
        return next((one for one in ids if one and one not in self._used_ids), None) or self._new_topic_id()

    def _take(self, topic: StoredTopic, origin: Origin) -> None:
        self._result.topics[topic.name] = topic
        self._result.origins[topic.name] = origin

    # -- folders and brokers

    def _plan_folders(self) -> None:
        result = self._result
        result.places = {
            (name, index): one.path
            for name in result.topics
            for index, one in self._folders.found.get(name, {}).items()
        }
        set_aside: set[tuple[str, int]] = set()
        if result.is_news and result.kraft is not None and result.kraft.is_whole:
            for found in self._folders.found.values():
                for folder in found.values():
                    reason = self._is_of_no_topic(folder)
                    if reason is not None:
                        result.renamings.append(folders.aside(folder, reason))
                        set_aside.add((folder.topic, folder.index))
                        result.places.pop((folder.topic, folder.index), None)
        for name, strays in self._folders.strays.items():
            topic = result.topics.get(name)
            there = self._folders.found.get(name, {})
            if topic is None:
                continue
            for index, candidates in strays.items():
                if index in there and (name, index) not in set_aside:
                    continue
                mine = [one for one in candidates if folders.topic_id_of(self._storage, one) == topic.id]
                if len(mine) == 1:
                    result.renamings.append(folders.back(mine[0]))
                    result.places[name, index] = mine[0].path

    def _is_of_no_topic(self, folder: folders.AdoptedFolder) -> str | None:
        """Why a folder is not the partition of its name, None if it is."""
        topic = self._result.topics.get(folder.topic)
        topic_id = folders.topic_id_of(self._storage, folder)
        if topic is None:
            return "its topic was deleted in Kafka" if topic_id in self._deleted_ids else None
        if topic_id is not None and topic_id != topic.id and self._is_new_there(folder.topic):
            return "it belongs to another topic of that name"
        return None

    def _plan_brokers(self) -> None:
        result, kraft, before = self._result, self._result.kraft, self._before
        result.broker_configs = {node: dict(configs) for node, configs in self._stored.broker_configs.items()}
        if kraft is None or not (result.is_news or not self._stored.head_found):
            return
        for node in (ALL_BROKERS, str(self._settings.node_id)):
            ours, theirs = self._stored.broker_configs.get(node, {}), kraft.broker_configs.get(node, {})
            if before is None or before.damages:
                merged = {**theirs, **ours}
            else:
                merged, _ = three_ways(before.state.broker_configs.get(node, {}), theirs, ours)
            if merged or ours:
                result.broker_configs[node] = merged


def three_ways(
    before: Mapping[str, str], theirs: Mapping[str, str], ours: Mapping[str, str]
) -> tuple[Configs, set[str]]:
    """Ours, with the keys that they have changed since; and these."""
    changed = {key for key in {*before, *theirs} if before.get(key) != theirs.get(key)}
    merged = {key: value for key, value in ours.items() if key not in changed}
    return merged | {key: theirs[key] for key in changed if key in theirs}, changed


def _decides_alone(name: str, overrides: Mapping[str, str], settings: Settings) -> bool:
    """Whether no broker-wide setting affects what of this topic is deleted."""
    if internal_topics.overrides_of(name, settings) is not None:
        return True
    policy = overrides.get("cleanup.policy")
    return policy is not None and ("delete" not in policy or all(key in overrides for key in DECIDING))
