"""Records of a KRaft controller's log: what topics, settings, users, rights and quotas a Kafka cluster has.

A record's value is a frame: varint frame version (1), varint type (the message's `TYPE`), varint version of the message, the message.
Only what a folder's new owner needs is declared here; `RECORDS` has the messages by type. Of a partition, the declared part
is the front that all versions share; the rest is left unread.
"""

from horolog.protocol.wire import (
    Message,
    Struct,
    array,
    binary,
    boolean,
    field,
    float64,
    int8,
    int16,
    int32,
    int64,
    string,
    uuid,
)


class TopicRecord(Message, versions="0", flexible="0+"):
    name: str = field(string)
    topic_id: bytes = field(uuid)


class PartitionRecord(Message, versions="0-2", flexible="0+"):
    partition_id: int = field(int32, default=-1)
    topic_id: bytes = field(uuid)
    replicas: list[int] = field(array(int32))
    isr: list[int] = field(array(int32))
    removing_replicas: list[int] = field(array(int32))
    adding_replicas: list[int] = field(array(int32))
    leader: int = field(int32, default=-1)
    leader_recovery_state: int = field(int8, tag=0)
    leader_epoch: int = field(int32, default=-1)
    partition_epoch: int = field(int32, default=-1)
    directories: list[bytes] = field(array(uuid), "1+")
    eligible_leader_replicas: list[int] | None = field(array(int32), "2+", nullable="2+", tag=1, default=None)
    last_known_elr: list[int] | None = field(array(int32), "2+", nullable="2+", tag=2, default=None)


class ConfigRecord(Message, versions="0", flexible="0+"):
    """The resource types are those of DescribeConfigs; a value of None takes the key away."""

    resource_type: int = field(int8)
    resource_name: str = field(string)
    name: str = field(string)
    value: str | None = field(string, nullable="0+")


class PartitionChangeRecord(Message, versions="0-2", flexible="0+"):
    """A field that is None, or -2 for the leader and -1 for its recovery, has not changed."""

    partition_id: int = field(int32, default=-1)
    topic_id: bytes = field(uuid)
    isr: list[int] | None = field(array(int32), nullable="0+", tag=0, default=None)
    leader: int = field(int32, tag=1, default=-2)
    replicas: list[int] | None = field(array(int32), nullable="0+", tag=2, default=None)
    removing_replicas: list[int] | None = field(array(int32), nullable="0+", tag=3, default=None)
    adding_replicas: list[int] | None = field(array(int32), nullable="0+", tag=4, default=None)
    leader_recovery_state: int = field(int8, tag=5, default=-1)
    directories: list[bytes] | None = field(array(uuid), "1+", nullable="1+", tag=8, default=None)
    eligible_leader_replicas: list[int] | None = field(array(int32), "2+", nullable="2+", tag=6, default=None)
    last_known_elr: list[int] | None = field(array(int32), "2+", nullable="2+", tag=7, default=None)


class RemoveTopicRecord(Message, versions="0", flexible="0+"):
    topic_id: bytes = field(uuid)


class UserScramCredentialRecord(Message, versions="0", flexible="0+"):
    name: str = field(string)
    mechanism: int = field(int8)
    salt: bytes = field(binary)
    stored_key: bytes = field(binary)
    server_key: bytes = field(binary)
    iterations: int = field(int32)


class RemoveUserScramCredentialRecord(Message, versions="0", flexible="0+"):
    name: str = field(string)
    mechanism: int = field(int8)


class FeatureLevelRecord(Message, versions="0", flexible="0+"):
    name: str = field(string)
    feature_level: int = field(int16)


class EntityData(Struct):
    entity_type: str = field(string)
    entity_name: str | None = field(string, nullable="0+")


class ClientQuotaRecord(Message, versions="0", flexible="0+"):
    """An entity is one or several of user, client-id and ip; a name of None is the default of that kind."""

    entity: list[EntityData] = field(array(EntityData))
    key: str = field(string)
    value: float = field(float64)
    remove: bool = field(boolean)


class ProducerIdsRecord(Message, versions="0", flexible="0+"):
    broker_id: int = field(int32)
    broker_epoch: int = field(int64, default=-1)
    next_producer_id: int = field(int64)


class AccessControlEntryRecord(Message, versions="0", flexible="0+"):
    id: bytes = field(uuid)
    resource_type: int = field(int8)
    resource_name: str = field(string)
    pattern_type: int = field(int8)
    principal: str = field(string)
    host: str = field(string)
    operation: int = field(int8)
    permission_type: int = field(int8)


class RemoveAccessControlEntryRecord(Message, versions="0", flexible="0+"):
    id: bytes = field(uuid)


class BeginTransactionRecord(Message, versions="0", flexible="0+"):
    """The records up to the end or the abort count as one, or not at all."""

    name: str | None = field(string, nullable="0+", tag=0, default=None)


class EndTransactionRecord(Message, versions="0", flexible="0+"):
    pass


class AbortTransactionRecord(Message, versions="0", flexible="0+"):
    reason: str | None = field(string, nullable="0+", tag=0, default=None)


RECORDS: dict[int, type[Message]] = {
    2: TopicRecord,
    3: PartitionRecord,
    4: ConfigRecord,
    5: PartitionChangeRecord,
    9: RemoveTopicRecord,
    11: UserScramCredentialRecord,
    12: FeatureLevelRecord,
    14: ClientQuotaRecord,
    15: ProducerIdsRecord,
    18: AccessControlEntryRecord,
    19: RemoveAccessControlEntryRecord,
    22: RemoveUserScramCredentialRecord,
    23: BeginTransactionRecord,
    24: EndTransactionRecord,
    25: AbortTransactionRecord,
}
