"""The table of APIs: their keys, names, versions and headers; the messages themselves are imported on first use.

`ApiKey` names every API that clients and tools may ask a broker for; `API` has those that this code speaks, serves or plans to.
"""

from enum import IntEnum
from importlib import import_module
from typing import Final

from horolog.protocol.wire import Message

NEVER: Final = 32767  # the first version with something, of an API that has it in none


class ApiKey(IntEnum):
    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_QUORUM = 55
    UPDATE_FEATURES = 57
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92

    @property
    def api_name(self) -> str:
        """The name in Kafka's schemas."""
        return "".join(word.capitalize() for word in self.name.split("_"))


class Api:
    """One API; `request` and `response` are its message classes."""

    __slots__ = ("_family", "_request", "_response", "flexible_from", "key", "max_version", "min_version", "name")

    def __init__(self, key: ApiKey, family: str, versions: tuple[int, int], flexible_from: int = NEVER) -> None:
        self.key = key
        self.name = key.api_name
        self.min_version, self.max_version = versions
        self.flexible_from = flexible_from
        self._family = family
        self._request: type[Message] | None = None
        self._response: type[Message] | None = None

    @property
    def request(self) -> type[Message]:
        if self._request is None:
            self._request = self._message("Request")
        return self._request

    @property
    def response(self) -> type[Message]:
        if self._response is None:
            self._response = self._message("Response")
        return self._response

    def _message(self, kind: str) -> type[Message]:
        found: type[Message] = getattr(import_module(f"horolog.protocol.messages.{self._family}"), self.name + kind)
        return found

    def request_header_version(self, version: int) -> int:
        return 2 if version >= self.flexible_from else 1

    def response_header_version(self, version: int) -> int:
        # A client asks for ApiVersions before it knows what the broker can do, so its header never grew tags.
        return 1 if version >= self.flexible_from and self.key is not ApiKey.API_VERSIONS else 0

    def __repr__(self) -> str:
        return f"Api({self.key.name}, v{self.min_version} to v{self.max_version})"


API: Final[dict[int, Api]] = {
    api.key: api
    for api in (
        Api(ApiKey.PRODUCE, "produce", (0, 13), 9),
        Api(ApiKey.FETCH, "fetch", (0, 18), 12),
        Api(ApiKey.LIST_OFFSETS, "list_offsets", (0, 11), 6),
        Api(ApiKey.METADATA, "metadata", (0, 13), 9),
        Api(ApiKey.OFFSET_COMMIT, "offsets", (0, 10), 8),
        Api(ApiKey.OFFSET_FETCH, "offsets", (0, 10), 6),
        Api(ApiKey.FIND_COORDINATOR, "groups", (0, 6), 3),
        Api(ApiKey.JOIN_GROUP, "groups", (0, 9), 6),
        Api(ApiKey.HEARTBEAT, "groups", (0, 4), 4),
        Api(ApiKey.LEAVE_GROUP, "groups", (0, 5), 4),
        Api(ApiKey.SYNC_GROUP, "groups", (0, 5), 4),
        Api(ApiKey.DESCRIBE_GROUPS, "groups", (0, 6), 5),
        Api(ApiKey.LIST_GROUPS, "groups", (0, 5), 3),
        Api(ApiKey.SASL_HANDSHAKE, "sasl", (0, 1)),
        Api(ApiKey.API_VERSIONS, "api_versions", (0, 4), 3),
        Api(ApiKey.CREATE_TOPICS, "topics", (0, 7), 5),
        Api(ApiKey.DELETE_TOPICS, "topics", (0, 6), 4),
        Api(ApiKey.DELETE_RECORDS, "topics", (0, 2), 2),
        Api(ApiKey.INIT_PRODUCER_ID, "transactions", (0, 6), 2),
        Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, "list_offsets", (0, 4), 4),
        Api(ApiKey.ADD_PARTITIONS_TO_TXN, "transactions", (0, 5), 3),
        Api(ApiKey.ADD_OFFSETS_TO_TXN, "transactions", (0, 4), 3),
        Api(ApiKey.END_TXN, "transactions", (0, 5), 3),
        Api(ApiKey.WRITE_TXN_MARKERS, "transactions", (0, 2), 1),
        Api(ApiKey.TXN_OFFSET_COMMIT, "transactions", (0, 5), 3),
        Api(ApiKey.DESCRIBE_ACLS, "acls", (0, 3), 2),
        Api(ApiKey.CREATE_ACLS, "acls", (0, 3), 2),
        Api(ApiKey.DELETE_ACLS, "acls", (0, 3), 2),
        Api(ApiKey.DESCRIBE_CONFIGS, "configs", (0, 4), 4),
        Api(ApiKey.ALTER_CONFIGS, "configs", (0, 2), 2),
        Api(ApiKey.ALTER_REPLICA_LOG_DIRS, "log_dirs", (0, 2), 2),
        Api(ApiKey.DESCRIBE_LOG_DIRS, "log_dirs", (0, 5), 2),
        Api(ApiKey.SASL_AUTHENTICATE, "sasl", (0, 2), 2),
        Api(ApiKey.CREATE_PARTITIONS, "topics", (0, 3), 2),
        Api(ApiKey.CREATE_DELEGATION_TOKEN, "delegation_tokens", (0, 3), 2),
        Api(ApiKey.RENEW_DELEGATION_TOKEN, "delegation_tokens", (0, 2), 2),
        Api(ApiKey.EXPIRE_DELEGATION_TOKEN, "delegation_tokens", (0, 2), 2),
        Api(ApiKey.DESCRIBE_DELEGATION_TOKEN, "delegation_tokens", (0, 3), 2),
        Api(ApiKey.DELETE_GROUPS, "groups", (0, 2), 2),
        Api(ApiKey.ELECT_LEADERS, "reassignments", (0, 2), 2),
        Api(ApiKey.INCREMENTAL_ALTER_CONFIGS, "configs", (0, 1), 1),
        Api(ApiKey.ALTER_PARTITION_REASSIGNMENTS, "reassignments", (0, 1), 0),
        Api(ApiKey.LIST_PARTITION_REASSIGNMENTS, "reassignments", (0, 0), 0),
        Api(ApiKey.OFFSET_DELETE, "offsets", (0, 0)),
        Api(ApiKey.DESCRIBE_CLIENT_QUOTAS, "quotas", (0, 1), 1),
        Api(ApiKey.ALTER_CLIENT_QUOTAS, "quotas", (0, 1), 1),
        Api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "scram", (0, 0), 0),
        Api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "scram", (0, 0), 0),
        Api(ApiKey.DESCRIBE_QUORUM, "quorum", (0, 2), 0),
        Api(ApiKey.UPDATE_FEATURES, "features", (0, 2), 0),
        Api(ApiKey.UNREGISTER_BROKER, "unregister_broker", (0, 0), 0),
        Api(ApiKey.BROKER_HEARTBEAT, "broker_heartbeat", (0, 2), 0),
        Api(ApiKey.DESCRIBE_CLUSTER, "metadata", (0, 2), 0),
        Api(ApiKey.DESCRIBE_PRODUCERS, "transactions", (0, 0), 0),
        Api(ApiKey.DESCRIBE_TRANSACTIONS, "transactions", (0, 0), 0),
        Api(ApiKey.LIST_TRANSACTIONS, "transactions", (0, 2), 0),
        Api(ApiKey.CONSUMER_GROUP_HEARTBEAT, "consumer_groups", (0, 1), 0),
        Api(ApiKey.CONSUMER_GROUP_DESCRIBE, "consumer_groups", (0, 1), 0),
        Api(ApiKey.LIST_CONFIG_RESOURCES, "configs", (0, 1), 0),
        Api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "metadata", (0, 0), 0),
        Api(ApiKey.SHARE_FETCH, "share_fetch", (1, 2), 0),
        Api(ApiKey.SHARE_ACKNOWLEDGE, "share_fetch", (1, 2), 0),
        Api(ApiKey.INITIALIZE_SHARE_GROUP_STATE, "share_state", (0, 0), 0),
        Api(ApiKey.READ_SHARE_GROUP_STATE, "share_state", (0, 0), 0),
        Api(ApiKey.WRITE_SHARE_GROUP_STATE, "share_state", (0, 1), 0),
        Api(ApiKey.DELETE_SHARE_GROUP_STATE, "share_state", (0, 0), 0),
        Api(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, "share_state", (0, 1), 0),
        Api(ApiKey.SHARE_GROUP_HEARTBEAT, "share_groups", (1, 1), 0),
        Api(ApiKey.SHARE_GROUP_DESCRIBE, "share_groups", (1, 1), 0),
        Api(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, "share_groups", (0, 1), 0),
        Api(ApiKey.ALTER_SHARE_GROUP_OFFSETS, "share_groups", (0, 0), 0),
        Api(ApiKey.DELETE_SHARE_GROUP_OFFSETS, "share_groups", (0, 0), 0),
        Api(ApiKey.STREAMS_GROUP_HEARTBEAT, "streams_groups", (0, 0), 0),
        Api(ApiKey.STREAMS_GROUP_DESCRIBE, "streams_groups", (0, 0), 0),
    )
}
