"""The table of the APIs served: each with its versions and its handler. ApiVersions is derived from it.

A handler is named as `module:function` and imported with its first request, so that the broker starts quickly.

The ranges are the union of what Kafka 3.9 (oldest versions) and Kafka 4.3 (newest versions) serve. Not advertised: ApiVersions v5,
InitProducerId v6 (unstable in Kafka 4.3 as well).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from horolog.protocol.apis import ApiKey

__all__ = [
    "HANDLERS",
    "Handler",
    "HandlerFunction",
    "answered_in_time",
    "api_versions",
    "authorization",
    "broker_heartbeat",
    "context",
    "fetch",
    "fetch_sessions",
    "gate",
    "held_fetch",
    "held_produce",
    "leased",
    "log_dirs",
    "partition_rows",
    "pieces",
    "produce",
    "refusals",
    "throttling",
    "transaction_lines",
    "unregister_broker",
]

if TYPE_CHECKING:
    from horolog.broker.handlers.context import BrokerView, RequestContext

    HandlerFunction = Callable[[BrokerView, Any, RequestContext], object | None]


class Handler:
    """The function for the versions `min_version` to `max_version` of one API.

    A `flat` handler takes and returns tuples of fields where others have messages: see `protocol.compile.flat_decoder`.
    """

    __slots__ = ("_function", "flat", "max_version", "min_version")

    def __init__(
        self, min_version: int, max_version: int, function: HandlerFunction | str, *, flat: bool = False
    ) -> None:
        self.min_version = min_version
        self.max_version = max_version
        self.flat = flat
        self._function = function

    def __repr__(self) -> str:
        return f"Handler(v{self.min_version}-v{self.max_version}, {self._function!r})"

    @property
    def function(self) -> HandlerFunction:
        if isinstance(self._function, str):
            module, _, name = self._function.partition(":")
            self._function = getattr(import_module(f"{__name__}.{module}"), name)
        return self._function  # type: ignore[return-value]


HANDLERS: dict[ApiKey, Handler] = {
    ApiKey.PRODUCE: Handler(0, 13, "produce:handle", flat=True),
    ApiKey.FETCH: Handler(0, 18, "fetch:handle", flat=True),
    ApiKey.LIST_OFFSETS: Handler(0, 11, "list_offsets:handle", flat=True),
    ApiKey.METADATA: Handler(0, 13, "metadata:handle"),
    ApiKey.OFFSET_COMMIT: Handler(0, 10, "offsets:commit", flat=True),
    ApiKey.OFFSET_FETCH: Handler(0, 10, "offsets:fetch"),
    ApiKey.FIND_COORDINATOR: Handler(0, 6, "find_coordinator:handle"),
    ApiKey.JOIN_GROUP: Handler(0, 9, "groups:join"),
    ApiKey.HEARTBEAT: Handler(0, 4, "groups:heartbeat"),
    ApiKey.LEAVE_GROUP: Handler(0, 5, "groups:leave"),
    ApiKey.SYNC_GROUP: Handler(0, 5, "groups:sync"),
    ApiKey.DESCRIBE_GROUPS: Handler(0, 6, "groups:describe"),
    ApiKey.LIST_GROUPS: Handler(0, 5, "groups:list_groups"),
    ApiKey.SASL_HANDSHAKE: Handler(0, 1, "sasl:handshake"),
    ApiKey.API_VERSIONS: Handler(0, 4, "api_versions:handle"),
    ApiKey.CREATE_TOPICS: Handler(0, 7, "topics:create_topics"),
    ApiKey.DELETE_TOPICS: Handler(0, 6, "topics:delete_topics"),
    ApiKey.DELETE_RECORDS: Handler(0, 2, "delete_records:handle"),
    ApiKey.INIT_PRODUCER_ID: Handler(0, 5, "producer_ids:handle"),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Handler(0, 4, "epochs:handle"),
    ApiKey.ADD_PARTITIONS_TO_TXN: Handler(0, 5, "transactions:add_partitions"),
    ApiKey.ADD_OFFSETS_TO_TXN: Handler(0, 4, "transactions:add_offsets"),
    ApiKey.END_TXN: Handler(0, 5, "transactions:end"),
    ApiKey.WRITE_TXN_MARKERS: Handler(0, 2, "transaction_admin:write_markers"),
    ApiKey.TXN_OFFSET_COMMIT: Handler(0, 5, "transactions:commit_offsets", flat=True),
    ApiKey.DESCRIBE_ACLS: Handler(0, 3, "acls:describe"),
    ApiKey.CREATE_ACLS: Handler(0, 3, "acls:create"),
    ApiKey.DELETE_ACLS: Handler(0, 3, "acls:delete"),
    ApiKey.DESCRIBE_CONFIGS: Handler(0, 4, "configs:describe_configs"),
    ApiKey.ALTER_CONFIGS: Handler(0, 2, "configs:alter_configs"),
    ApiKey.ALTER_REPLICA_LOG_DIRS: Handler(0, 2, "log_dirs:alter"),
    ApiKey.DESCRIBE_LOG_DIRS: Handler(0, 5, "log_dirs:describe"),
    ApiKey.SASL_AUTHENTICATE: Handler(0, 2, "sasl:authenticate"),
    ApiKey.CREATE_PARTITIONS: Handler(0, 3, "topics:create_partitions"),
    ApiKey.CREATE_DELEGATION_TOKEN: Handler(0, 3, "delegation_tokens:create"),
    ApiKey.RENEW_DELEGATION_TOKEN: Handler(0, 2, "delegation_tokens:renew"),
    ApiKey.EXPIRE_DELEGATION_TOKEN: Handler(0, 2, "delegation_tokens:expire"),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: Handler(0, 3, "delegation_tokens:describe"),
    ApiKey.DELETE_GROUPS: Handler(0, 2, "groups:delete"),
    ApiKey.ELECT_LEADERS: Handler(0, 2, "replicas:elect_leaders"),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Handler(0, 1, "configs:incremental_alter_configs"),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Handler(0, 1, "replicas:alter_reassignments"),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Handler(0, 0, "replicas:list_reassignments"),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Handler(0, 1, "quotas:describe"),
    ApiKey.ALTER_CLIENT_QUOTAS: Handler(0, 1, "quotas:alter"),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Handler(0, 0, "users:describe"),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Handler(0, 0, "users:alter"),
    ApiKey.OFFSET_DELETE: Handler(0, 0, "offsets:delete"),
    ApiKey.DESCRIBE_QUORUM: Handler(0, 2, "quorum:handle"),
    ApiKey.UPDATE_FEATURES: Handler(0, 2, "features:update"),
    ApiKey.UNREGISTER_BROKER: Handler(0, 0, "unregister_broker:handle"),
    ApiKey.DESCRIBE_CLUSTER: Handler(0, 2, "cluster:handle"),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Handler(0, 1, "consumer_groups:heartbeat"),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Handler(0, 1, "consumer_groups:describe"),
    ApiKey.DESCRIBE_PRODUCERS: Handler(0, 0, "describe_producers:handle"),
    ApiKey.DESCRIBE_TRANSACTIONS: Handler(0, 0, "transaction_admin:describe"),
    ApiKey.LIST_TRANSACTIONS: Handler(0, 2, "transaction_admin:list_all"),
    ApiKey.LIST_CONFIG_RESOURCES: Handler(0, 1, "config_resources:handle"),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Handler(0, 0, "topic_partitions:handle"),
    ApiKey.SHARE_FETCH: Handler(1, 2, "share_fetch:fetch"),
    ApiKey.SHARE_ACKNOWLEDGE: Handler(1, 2, "share_acknowledge:acknowledge"),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: Handler(0, 0, "share_state:initialize"),
    ApiKey.READ_SHARE_GROUP_STATE: Handler(0, 0, "share_state:read"),
    ApiKey.WRITE_SHARE_GROUP_STATE: Handler(0, 1, "share_state:write"),
    ApiKey.DELETE_SHARE_GROUP_STATE: Handler(0, 0, "share_state:delete"),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: Handler(0, 1, "share_state:read_summary"),
    ApiKey.SHARE_GROUP_HEARTBEAT: Handler(1, 1, "share_groups:heartbeat"),
    ApiKey.SHARE_GROUP_DESCRIBE: Handler(1, 1, "share_groups:describe"),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: Handler(0, 1, "share_groups:describe_offsets"),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: Handler(0, 0, "share_groups:alter_offsets"),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: Handler(0, 0, "share_groups:delete_offsets"),
    ApiKey.STREAMS_GROUP_HEARTBEAT: Handler(0, 0, "streams_groups:heartbeat"),
    ApiKey.STREAMS_GROUP_DESCRIBE: Handler(0, 0, "streams_groups:describe"),
}
