"""A broker in memory with an access list, and clients that log in as any user the test names."""

from __future__ import annotations

from typing import Any

from horolog.base.acl_types import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from horolog.base.acls import Acl
from horolog.broker.base.principal import USER, Principal
from horolog.broker.cluster.cluster_state import RulesChanged
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.security.acls import rule_of
from tests.support.at_once import at_once
from tests.support.memory_broker import MemoryBroker, Wire

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
HOST = "192.0.2.7"


def acl(
    who: str,
    operation: str,
    kind: str = "TOPIC",
    name: str = CLUSTER_NAME,
    *,
    prefixed: bool = False,
    deny: bool = False,
    host: str = "*",
) -> Acl:
    """A rule for `User:who`."""
    return Acl(
        ResourceType[kind],
        name,
        PatternType.PREFIXED if prefixed else PatternType.LITERAL,
        f"User:{who}",
        host,
        Operation[operation],
        Permission.DENY if deny else Permission.ALLOW,
    )


class GuardedBroker(MemoryBroker):
    """`User:admin` is a super user."""

    def __init__(self, storage: MemoryStorage | None = None, **settings: object) -> None:
        given: dict[str, Any] = {
            "authorizer_class_name": STANDARD_AUTHORIZER,
            "super_users": "User:admin",
            "auto_create_topics_enable": "false",
            "group_initial_rebalance_delay_ms": 0,
            "offsets_topic_num_partitions": 1,
            "transaction_state_log_num_partitions": 1,
            "delegation_token_secret_key": "a key",
            **settings,
        }
        super().__init__(storage, **given)

    def put(self, *acls: Acl) -> None:
        change = RulesChanged(put=tuple(map(rule_of, acls)))
        assert at_once(self.broker.cluster.change_rules, lambda _: change) is None

    def remove(self, *acls: Acl) -> None:
        change = RulesChanged(removed=frozenset(rule_of(one).id for one in acls))
        assert at_once(self.broker.cluster.change_rules, lambda _: change) is None

    def wire(self, user: str = "alice") -> Wire:
        wire = self.connect()
        wire.conversation.serve_as(Principal(USER, user))
        wire.conversation.peer_host = HOST
        return wire
