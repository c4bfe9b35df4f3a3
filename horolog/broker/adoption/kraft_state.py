"""The state of a KRaft controller: the records of its log, replayed.

Records between BeginTransactionRecord and EndTransactionRecord are applied together, at the end; without an end, or after an
AbortTransactionRecord, they are dropped. An undeclared type of record is skipped and counted: nothing kept here depends on it.
A newer version of a declared type cannot be read: everything that it covers counts as unknown.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from horolog.base.readable import counted
from horolog.broker.adoption import kraft_log
from horolog.broker.adoption.kraft_log import MetadataLog
from horolog.broker.log.storage import Storage
from horolog.protocol.compile import decode
from horolog.protocol.errors import DecodeError
from horolog.protocol.messages import metadata_records as records
from horolog.protocol.primitives import decode_unsigned_varint
from horolog.protocol.uuids import show_uuid
from horolog.protocol.wire import Message

FRAME_VERSION = 1
TOPIC, BROKER = 2, 4
ALL_BROKERS = ""
NO_DIRECTORY = bytes(15)
"""An id with this prefix is not a folder's: it stands for an unassigned or lost one."""

OF_NO_CONCERN = frozenset({0, 1, 7, 8, 10, 17, 20, 21, 26, 27, 28})
"""Types for brokers, controllers, delegation tokens, and records that only keep a log going."""

_OF_SETTINGS = (records.TopicRecord, records.RemoveTopicRecord, records.ConfigRecord)
"""If one of these cannot be read, the settings of topics are unknown."""

Configs = dict[str, str]


@dataclass(slots=True)
class KraftTopic:
    name: str
    id: bytes
    replicas: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The brokers of each partition."""
    directories: dict[int, tuple[bytes, ...]] = field(default_factory=dict)
    """The data folder on each of these brokers, by its id; empty in the metadata of old releases."""
    configs: Configs = field(default_factory=dict)

    @property
    def partition_count(self) -> int:
        return max(self.replicas, default=-1) + 1

    def partitions_of(self, node_id: int) -> list[int]:
        return sorted(index for index, brokers in self.replicas.items() if node_id in brokers)

    def folders_of(self, node_id: int) -> dict[str, list[int]]:
        """The partitions of a node by the ids of their data folders, as far as these are known."""
        found: dict[str, list[int]] = {}
        for index in self.partitions_of(node_id):
            for broker, directory in zip(self.replicas[index], self.directories.get(index, ()), strict=False):
                if broker == node_id and not directory.startswith(NO_DIRECTORY):
                    found.setdefault(show_uuid(directory), []).append(index)
        return found


@dataclass(slots=True)
class KraftState:
    """`damages` is empty if the settings are known to be complete; `notes` has other remarks for the operator."""

    end_offset: int = 0
    epoch: int = 0
    topics: dict[str, KraftTopic] = field(default_factory=dict)
    removed_ids: set[bytes] = field(default_factory=set)
    broker_configs: dict[str, Configs] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    scram: dict[tuple[str, int], records.UserScramCredentialRecord] = field(default_factory=dict, repr=False)
    acls: dict[bytes, records.AccessControlEntryRecord] = field(default_factory=dict)
    quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = field(default_factory=dict)
    next_producer_id: int = 0
    passed_over: Counter[int] = field(default_factory=Counter)
    damages: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        return not self.damages


def load(storage: Storage, data_dir: str) -> KraftState | None:
    """The state of the folder's controller; None if there was none."""
    if not kraft_log.is_there(storage, data_dir):
        return None
    return replay(kraft_log.read(storage, data_dir))


def replay(log: MetadataLog) -> KraftState:
    state = KraftState(log.end_offset, log.epoch, damages=list(log.damages), notes=list(log.notes))
    if log.voters != 1:
        state.notes.append("it was one of several controllers: its newest records may not have been committed")
    replaying = _Replay(state)
    for record in log.records:
        if record.value is not None:
            replaying.take(record.offset, record.value)
    replaying.end()
    return state


def decode_record(value: bytes) -> tuple[int, int, Message | None]:
    """Type and version of a record, and the message if its type and version are declared. Raises DecodeError."""
    frame, position = decode_unsigned_varint(value, 0)
    if frame != FRAME_VERSION:
        raise DecodeError(f"frame version {frame} is not known")
    kind, position = decode_unsigned_varint(value, position)
    version, position = decode_unsigned_varint(value, position)
    cls = records.RECORDS.get(kind)
    if cls is None or version not in cls.VERSIONS:
        return kind, version, None
    return kind, version, decode(cls, version, value, position, to_the_end=True)


class _Replay:
    """Applies records one by one."""

    def __init__(self, state: KraftState) -> None:
        self._state = state
        self._by_id: dict[bytes, KraftTopic] = {}
        self._configs: dict[tuple[int, str], Configs] = {}
        self._begun: list[Message] | None = None

    def take(self, offset: int, value: bytes) -> None:
        try:
            kind, version, message = decode_record(value)
        except DecodeError as error:
            self._state.damages.append(f"the record at offset {offset} cannot be read: {error}")
            return
        if message is None:
            self._pass_over(offset, kind, version)
        elif isinstance(message, records.BeginTransactionRecord):
            self._begun = []
        elif isinstance(message, records.EndTransactionRecord | records.AbortTransactionRecord):
            begun, self._begun = self._begun or [], None
            if isinstance(message, records.EndTransactionRecord):
                for one in begun:
                    self._carry_out(one)
        elif self._begun is not None:
            self._begun.append(message)
        else:
            self._carry_out(message)

    def _pass_over(self, offset: int, kind: int, version: int) -> None:
        cls = records.RECORDS.get(kind)
        if cls in _OF_SETTINGS:
            self._state.damages.append(f"the {cls.__name__} at offset {offset} has version {version}, which is newer")
        else:
            self._state.passed_over[kind] += 1

    def _carry_out(self, message: Message) -> None:
        handler = _HANDLERS.get(type(message))
        if handler is not None:
            handler(self, message)

    def end(self) -> None:
        """Assign the settings to their topics and brokers: settings may precede and outlast a topic."""
        state = self._state
        state.topics = {topic.name: topic for topic in self._by_id.values()}
        for (kind, name), configs in self._configs.items():
            if kind == TOPIC and name in state.topics:
                state.topics[name].configs = configs
            elif kind == BROKER and configs:
                state.broker_configs[name] = configs
        if self._begun:
            state.notes.append(f"ignored an unfinished transaction of {counted(len(self._begun), 'record')}")
        newer = {kind: count for kind, count in state.passed_over.items() if kind not in OF_NO_CONCERN}
        if newer:
            kinds = ", ".join(map(str, sorted(newer)))
            state.notes.append(
                f"passed over {counted(sum(newer.values()), 'record')} of unknown types or versions: type {kinds}"
            )

    # -- the records

    def topic(self, said: records.TopicRecord) -> None:
        self._by_id[said.topic_id] = KraftTopic(said.name, said.topic_id)
        self._state.removed_ids.discard(said.topic_id)

    def partition(self, said: records.PartitionRecord) -> None:
        topic = self._by_id.get(said.topic_id)
        if topic is not None and said.partition_id >= 0:
            topic.replicas[said.partition_id] = tuple(said.replicas)
            topic.directories[said.partition_id] = tuple(said.directories)

    def partition_change(self, said: records.PartitionChangeRecord) -> None:
        topic = self._by_id.get(said.topic_id)
        if topic is None or said.partition_id not in topic.replicas:
            return
        if said.replicas is not None:
            topic.replicas[said.partition_id] = tuple(said.replicas)
        if said.directories is not None:
            topic.directories[said.partition_id] = tuple(said.directories)

    def remove_topic(self, said: records.RemoveTopicRecord) -> None:
        topic = self._by_id.pop(said.topic_id, None)
        self._state.removed_ids.add(said.topic_id)
        if topic is not None:
            self._configs.pop((TOPIC, topic.name), None)

    def config(self, said: records.ConfigRecord) -> None:
        configs = self._configs.setdefault((said.resource_type, said.resource_name), {})
        if said.value is None:
            configs.pop(said.name, None)
        else:
            configs[said.name] = said.value

    def feature(self, said: records.FeatureLevelRecord) -> None:
        self._state.features[said.name] = said.feature_level

    def scram(self, said: records.UserScramCredentialRecord) -> None:
        self._state.scram[said.name, said.mechanism] = said

    def remove_scram(self, said: records.RemoveUserScramCredentialRecord) -> None:
        self._state.scram.pop((said.name, said.mechanism), None)

    def acl(self, said: records.AccessControlEntryRecord) -> None:
        self._state.acls[said.id] = said

    def remove_acl(self, said: records.RemoveAccessControlEntryRecord) -> None:
        self._state.acls.pop(said.id, None)

    def quota(self, said: records.ClientQuotaRecord) -> None:
        entity = tuple((one.entity_type, one.entity_name) for one in said.entity)
        values = self._state.quotas.setdefault(entity, {})
        if said.remove:
            values.pop(said.key, None)
        else:
            values[said.key] = said.value
        if not values:
            del self._state.quotas[entity]

    def producer_ids(self, said: records.ProducerIdsRecord) -> None:
        self._state.next_producer_id = max(self._state.next_producer_id, said.next_producer_id)


_HANDLERS: Mapping[type[Message], Callable[[_Replay, Any], None]] = {
    records.TopicRecord: _Replay.topic,
    records.PartitionRecord: _Replay.partition,
    records.PartitionChangeRecord: _Replay.partition_change,
    records.RemoveTopicRecord: _Replay.remove_topic,
    records.ConfigRecord: _Replay.config,
    records.FeatureLevelRecord: _Replay.feature,
    records.UserScramCredentialRecord: _Replay.scram,
    records.RemoveUserScramCredentialRecord: _Replay.remove_scram,
    records.AccessControlEntryRecord: _Replay.acl,
    records.RemoveAccessControlEntryRecord: _Replay.remove_acl,
    records.ClientQuotaRecord: _Replay.quota,
    records.ProducerIdsRecord: _Replay.producer_ids,
}
