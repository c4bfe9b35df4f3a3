"""Access rules, quotas and users in the words of the command line."""

import pytest

from horolog.base.acl_types import Operation, PatternType, Permission, ResourceType
from horolog.base.acls import Acl
from horolog.commands.errors import UsageError
from horolog.commands.online.access_words import (
    QUOTA_KEYS,
    acl_of_words,
    known_quota,
    operation_of,
    principal_of,
    rate_of,
    resource_of,
    resource_text,
)


@pytest.mark.parametrize(
    "text", ["topic:orders", "topic:orders-*", "topic:*", "group:g", "transactional-id:x", "cluster"]
)
def test_a_resource_is_shown_as_it_is_typed(text):
    assert resource_text(acl_of_words("alice", "describe", text, "*", deny=False)) == text


def test_a_rule():
    made = acl_of_words("alice", "idempotent-write", "cluster", "192.0.2.7", deny=True)
    assert made == Acl(
        ResourceType.CLUSTER,
        "kafka-cluster",
        PatternType.LITERAL,
        "User:alice",
        "192.0.2.7",
        Operation.IDEMPOTENT_WRITE,
        Permission.DENY,
    )
    assert principal_of("Group:ops") == "Group:ops"
    assert resource_of("topic:a*") == (ResourceType.TOPIC, "a", True)


@pytest.mark.parametrize("text", ["t", "topic:", "planet:t"])
def test_no_resource(text):
    with pytest.raises(UsageError, match="is not a resource"):
        resource_of(text)


def test_what_is_no_rule_is_refused():
    with pytest.raises(UsageError, match="'fly' is not an operation"):
        operation_of("fly")
    with pytest.raises(UsageError, match="only valid name"):
        acl_of_words("alice", "read", "cluster:x", "*", deny=False)


def test_quotas():
    assert [known_quota(key) for key in QUOTA_KEYS] == list(QUOTA_KEYS)
    assert rate_of("request_percentage", "12.5") == 12.5
    with pytest.raises(UsageError, match="expected a number"):
        rate_of("request_percentage", "much")
    with pytest.raises(UsageError, match=r"do you mean 'producer_byte_rate'\?"):
        known_quota("producer_byte_rat")
    with pytest.raises(UsageError, match="the quotas are producer_byte_rate"):
        known_quota("zzz")
