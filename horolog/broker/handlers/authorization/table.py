"""The requirements of each API: one table of the operations that each part of a request needs, and on which resources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from horolog.base.acl_types import CLUSTER_NAME, Operation, ResourceType
from horolog.broker.handlers.authorization import changes, delegation, groups, topics
from horolog.broker.handlers.authorization.authorized_request import FAILED, AuthorizedRequest
from horolog.broker.handlers.authorization.changes import ChangingApi
from horolog.broker.handlers.authorization.checks import (
    AnswerChange,
    Needs,
    OnEach,
    OnOne,
    Special,
    cluster,
    listed,
    needs,
)
from horolog.broker.handlers.config_resources import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from horolog.protocol.apis import ApiKey

if TYPE_CHECKING:
    from horolog.broker.handlers.authorization.checks import CheckRequest

CONFIGURED: Final = {
    TOPIC: ResourceType.TOPIC,
    GROUP: ResourceType.GROUP,
    BROKER: ResourceType.CLUSTER,
    BROKER_LOGGER: ResourceType.CLUSTER,
    CLIENT_METRICS: ResourceType.CLUSTER,
}
"""By the type of a resource that has a configuration: the resource that a principal needs a right on. Unknown types go on to the
handler."""


@dataclass(frozen=True, slots=True)
class OnConfigs:
    """An operation on each resource whose configuration is asked for or changed; brokers are the cluster."""

    operation: Operation

    @property
    def told(self) -> str:
        return f"{self.operation.name} on each topic or group, for brokers on the cluster"

    def of_requests(self, key: ApiKey) -> CheckRequest:  # noqa: ARG002 - the same for all
        def check(asked: AuthorizedRequest) -> None:
            for kind, code in FAILED.items():
                asked.keep_if(partial(self._may, asked, kind), "resources", code)

        return check

    def _may(self, asked: AuthorizedRequest, kind: ResourceType, each: Any) -> bool:
        name = CLUSTER_NAME if kind is ResourceType.CLUSTER else each.resource_name
        return CONFIGURED.get(each.resource_type) is not kind or asked.may(self.operation, kind, name)


_ON_GROUP: Final = OnOne(Operation.READ, ResourceType.GROUP, "group_id")
_IN_TRANSACTION: Final = OnOne(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id")
_FREE: Final = needs()

NEEDS: Final[Mapping[ApiKey, Needs]] = {
    ApiKey.PRODUCE: needs(
        Special("WRITE on the transactional id of transactional records", topics.transactional),
        OnEach(Operation.WRITE, ResourceType.TOPIC, "topic_data", by_id_from=13),
        Special("a closed connection with acks=0", topics.closed_if_unanswered),
    ),
    ApiKey.FETCH: needs(
        Special("READ on each topic; CLUSTER_ACTION on the cluster for followers", topics.checked_later),
        handle=topics.guarded_fetch,
    ),
    ApiKey.LIST_OFFSETS: needs(
        OnEach(Operation.DESCRIBE, ResourceType.TOPIC, "topics", unless=Operation.CLUSTER_ACTION, replicas_alone=True)
    ),
    ApiKey.METADATA: needs(
        Special(
            "DESCRIBE on each topic; CREATE on the cluster or on the topic to create a missing one",
            topics.describable,
        )
    ),
    ApiKey.OFFSET_COMMIT: needs(_ON_GROUP, OnEach(Operation.READ, ResourceType.TOPIC, "topics", by_id_from=10)),
    ApiKey.OFFSET_FETCH: needs(Special("DESCRIBE on each group; DESCRIBE on each topic", groups.committed)),
    ApiKey.FIND_COORDINATOR: needs(Special("DESCRIBE on each group or transactional id", groups.coordinators)),
    ApiKey.JOIN_GROUP: needs(_ON_GROUP),
    ApiKey.HEARTBEAT: needs(_ON_GROUP),
    ApiKey.LEAVE_GROUP: needs(_ON_GROUP),
    ApiKey.SYNC_GROUP: needs(_ON_GROUP),
    ApiKey.DESCRIBE_GROUPS: needs(
        OnEach(Operation.DESCRIBE, ResourceType.GROUP, "groups", None),
        AnswerChange("the response has the principal's own operations", groups.own_group_operations),
    ),
    ApiKey.LIST_GROUPS: needs(listed("groups", ResourceType.GROUP, "group_id", unless=Operation.DESCRIBE)),
    ApiKey.SASL_HANDSHAKE: _FREE,
    ApiKey.API_VERSIONS: _FREE,
    ApiKey.CREATE_TOPICS: needs(
        Special(
            "CREATE on the cluster or on each topic; DESCRIBE_CONFIGS on those whose configuration is returned",
            topics.creatable,
        ),
        changes=ChangingApi(Operation.CREATE, changes.created_topics),
    ),
    ApiKey.DELETE_TOPICS: needs(
        Special("DELETE on the cluster or on each topic", topics.deletable),
        changes=ChangingApi(Operation.DELETE, changes.parts),
    ),
    ApiKey.DELETE_RECORDS: needs(
        OnEach(Operation.DELETE, ResourceType.TOPIC, "topics"),
        changes=ChangingApi(Operation.DELETE, changes.cut_partitions),
    ),
    ApiKey.INIT_PRODUCER_ID: needs(
        Special(
            "WRITE on the transactional id; without one IDEMPOTENT_WRITE on the cluster or WRITE on any topic",
            groups.producer,
        )
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: needs(
        OnEach(Operation.DESCRIBE, ResourceType.TOPIC, "topics", "topic", unless=Operation.CLUSTER_ACTION)
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: needs(
        Special(
            "WRITE on the transactional id and on all topics; from v4 on CLUSTER_ACTION on the cluster",
            groups.joined_partitions,
        )
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: needs(_IN_TRANSACTION, _ON_GROUP),
    ApiKey.END_TXN: needs(_IN_TRANSACTION),
    ApiKey.WRITE_TXN_MARKERS: needs(
        cluster(Operation.ALTER, Operation.CLUSTER_ACTION), changes=ChangingApi(Operation.ALTER, changes.parts)
    ),
    ApiKey.TXN_OFFSET_COMMIT: needs(_IN_TRANSACTION, _ON_GROUP, OnEach(Operation.READ, ResourceType.TOPIC, "topics")),
    ApiKey.DESCRIBE_ACLS: needs(cluster(Operation.DESCRIBE)),
    ApiKey.CREATE_ACLS: needs(cluster(Operation.ALTER), changes=ChangingApi(Operation.ALTER, changes.created_rules)),
    ApiKey.DELETE_ACLS: needs(cluster(Operation.ALTER), changes=ChangingApi(Operation.ALTER, changes.removed_rules)),
    ApiKey.DESCRIBE_CONFIGS: needs(OnConfigs(Operation.DESCRIBE_CONFIGS)),
    ApiKey.ALTER_CONFIGS: needs(
        OnConfigs(Operation.ALTER_CONFIGS), changes=ChangingApi(Operation.ALTER_CONFIGS, changes.configs)
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: needs(cluster(Operation.ALTER), changes=ChangingApi(Operation.ALTER, changes.parts)),
    ApiKey.DESCRIBE_LOG_DIRS: needs(Special("DESCRIBE on the cluster", groups.folders)),
    ApiKey.SASL_AUTHENTICATE: _FREE,
    ApiKey.CREATE_PARTITIONS: needs(
        Special("ALTER on each topic", topics.growable), changes=ChangingApi(Operation.ALTER, changes.grown_topics)
    ),
    ApiKey.DELETE_GROUPS: needs(
        OnEach(Operation.DELETE, ResourceType.GROUP, "groups_names", None),
        changes=ChangingApi(Operation.DELETE, changes.parts),
    ),
    ApiKey.ELECT_LEADERS: needs(cluster(Operation.ALTER), changes=ChangingApi(Operation.ALTER, changes.parts)),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: needs(
        OnConfigs(Operation.ALTER_CONFIGS), changes=ChangingApi(Operation.ALTER_CONFIGS, changes.configs)
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: needs(
        cluster(Operation.ALTER), changes=ChangingApi(Operation.ALTER, changes.parts)
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: needs(cluster(Operation.DESCRIBE)),
    ApiKey.OFFSET_DELETE: needs(
        OnOne(Operation.DELETE, ResourceType.GROUP, "group_id"),
        OnEach(Operation.READ, ResourceType.TOPIC, "topics", asks_in_any_case=True),
        changes=ChangingApi(Operation.DELETE, changes.forgotten_offsets),
    ),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: needs(cluster(Operation.DESCRIBE_CONFIGS)),
    ApiKey.ALTER_CLIENT_QUOTAS: needs(
        cluster(Operation.ALTER_CONFIGS), changes=ChangingApi(Operation.ALTER_CONFIGS, changes.quotas)
    ),
    ApiKey.CREATE_DELEGATION_TOKEN: needs(
        Special("nothing for own tokens; CREATE_TOKENS on the future owner for others", delegation.creatable),
        changes=ChangingApi(Operation.CREATE_TOKENS, changes.created_token),
    ),
    ApiKey.RENEW_DELEGATION_TOKEN: needs(
        Special("the owner of the token or one of its renewers", delegation.only_owners)
    ),
    ApiKey.EXPIRE_DELEGATION_TOKEN: needs(
        Special("the owner of the token or one of its renewers", delegation.only_owners)
    ),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: needs(
        AnswerChange(
            "nothing for own tokens; DESCRIBE on each other token that is listed, or DESCRIBE_TOKENS on its owner",
            delegation.hide_tokens,
        )
    ),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: needs(cluster(Operation.DESCRIBE)),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: needs(
        cluster(Operation.ALTER), changes=ChangingApi(Operation.ALTER, changes.users)
    ),
    ApiKey.DESCRIBE_QUORUM: needs(cluster(Operation.DESCRIBE)),
    ApiKey.UPDATE_FEATURES: needs(
        cluster(Operation.ALTER), changes=ChangingApi(Operation.ALTER, changes.feature_levels)
    ),
    ApiKey.UNREGISTER_BROKER: needs(
        cluster(Operation.ALTER), changes=ChangingApi(Operation.ALTER, changes.unregistered_broker)
    ),
    ApiKey.DESCRIBE_CLUSTER: needs(
        AnswerChange("nothing; DESCRIBE on the cluster to see operations", groups.own_operations_on_cluster)
    ),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: needs(
        _ON_GROUP, Special("DESCRIBE on all topics subscribed to by name", groups.subscribed)
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: needs(
        OnEach(Operation.DESCRIBE, ResourceType.GROUP, "group_ids", None),
        AnswerChange("DESCRIBE on all topics assigned in a group", groups.hide_assignments),
        AnswerChange("the response has the principal's own operations", groups.own_group_operations),
    ),
    ApiKey.SHARE_GROUP_HEARTBEAT: needs(_ON_GROUP, Special("DESCRIBE on all topics subscribed to", groups.subscribed)),
    ApiKey.SHARE_GROUP_DESCRIBE: needs(
        OnEach(Operation.DESCRIBE, ResourceType.GROUP, "group_ids", None),
        AnswerChange("DESCRIBE on all topics assigned in a group", groups.hide_assignments),
        AnswerChange("the response has the principal's own operations", groups.own_group_operations),
    ),
    ApiKey.STREAMS_GROUP_HEARTBEAT: needs(
        _ON_GROUP,
        Special(
            "DESCRIBE on all topics of the topology; CREATE on the cluster or on the internal topics to create them",
            groups.in_topology,
        ),
    ),
    ApiKey.STREAMS_GROUP_DESCRIBE: needs(
        OnEach(Operation.DESCRIBE, ResourceType.GROUP, "group_ids", None),
        AnswerChange("DESCRIBE on all topics of a group's topology", groups.hide_topologies),
        AnswerChange("the response has the principal's own operations", groups.own_group_operations),
    ),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: needs(
        Special("DESCRIBE on each group; DESCRIBE on each topic", groups.share_offsets)
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: needs(
        _ON_GROUP, OnEach(Operation.READ, ResourceType.TOPIC, "topics", "topic_name", asks_in_any_case=True)
    ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: needs(
        OnOne(Operation.DELETE, ResourceType.GROUP, "group_id"),
        OnEach(Operation.READ, ResourceType.TOPIC, "topics", "topic_name", asks_in_any_case=True),
        changes=ChangingApi(Operation.DELETE, changes.forgotten_offsets),
    ),
    ApiKey.BROKER_HEARTBEAT: needs(cluster(Operation.CLUSTER_ACTION)),
    ApiKey.DESCRIBE_PRODUCERS: needs(OnEach(Operation.READ, ResourceType.TOPIC, "topics")),
    ApiKey.DESCRIBE_TRANSACTIONS: needs(
        OnEach(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "transactional_ids", None),
        AnswerChange("DESCRIBE on each topic that is returned", groups.hide_topics_of_transactions),
    ),
    ApiKey.LIST_TRANSACTIONS: needs(listed("transaction_states", ResourceType.TRANSACTIONAL_ID, "transactional_id")),
    ApiKey.SHARE_FETCH: needs(_ON_GROUP, Special("READ on each topic", topics.checked_later)),
    ApiKey.SHARE_ACKNOWLEDGE: needs(_ON_GROUP, Special("READ on each topic", topics.checked_later)),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: needs(cluster(Operation.CLUSTER_ACTION)),
    ApiKey.READ_SHARE_GROUP_STATE: needs(cluster(Operation.CLUSTER_ACTION)),
    ApiKey.WRITE_SHARE_GROUP_STATE: needs(cluster(Operation.CLUSTER_ACTION)),
    ApiKey.DELETE_SHARE_GROUP_STATE: needs(cluster(Operation.CLUSTER_ACTION)),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: needs(cluster(Operation.CLUSTER_ACTION)),
    ApiKey.LIST_CONFIG_RESOURCES: needs(cluster(Operation.DESCRIBE_CONFIGS)),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: needs(
        Special("DESCRIBE on each topic", topics.describable_pages), handle=topics.describe_pages
    ),
}
