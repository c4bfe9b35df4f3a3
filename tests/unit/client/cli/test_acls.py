"""`horolog acls` as a user types it: rules come, say what they do, and go."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.fixtures import BrokerStarter
from tests.support.guarded_broker import STANDARD_AUTHORIZER


@pytest.fixture
def acls(horolog: Callable[..., Any], start_broker: BrokerStarter) -> Callable[..., Any]:
    """A command at a broker where nobody is known and everybody is a super user."""
    broker = start_broker(authorizer__class__name=STANDARD_AUTHORIZER, super__users="User:ANONYMOUS;User:root")
    return lambda *words: horolog("acls", *words, "--bootstrap", broker.address)


def rules(done: Any) -> list[tuple[str, ...]]:
    assert done.code == 0, done.err
    keys = ("principal", "host", "permission", "operation", "resource_type", "pattern", "name")
    return [tuple(one[key] for key in keys) for one in json.loads(done.out)]


PREFIXED = ("User:alice", "*", "ALLOW", "READ", "TOPIC", "PREFIXED", "orders-")
DENIED = ("User:*", "192.0.2.7", "DENY", "ALL", "TOPIC", "LITERAL", "*")


def test_rules_are_added_listed_and_removed(acls: Callable[..., Any]) -> None:
    assert rules(acls("add", "alice", "read", "topic:orders-*", "-o", "json")) == [PREFIXED]
    assert rules(acls("add", "*", "all", "topic:*", "--deny", "--host", "192.0.2.7", "-o", "json")) == [DENIED]
    assert acls("add", "Group:ops", "idempotent-write", "cluster").code == 0
    assert acls("add", "bob", "write", "transactional-id:x").code == 0
    shown = acls("list")
    assert shown.out.splitlines()[0].split() == ["PRINCIPAL", "HOST", "OPERATION", "RESOURCE"]
    assert all(word in shown.out for word in ("topic:orders-*", "transactional-id:x", "cluster", "deny", "Group:ops"))
    assert rules(acls("list", "alice", "-o", "json")) == [DENIED, PREFIXED]
    assert rules(acls("list", "--resource", "topic:orders-eu", "-o", "json")) == [DENIED, PREFIXED]
    assert rules(acls("list", "--resource", "topic:orders-*", "-o", "json")) == [PREFIXED]
    assert rules(acls("list", "--resource", "topic:*", "-o", "json")) == [DENIED]
    assert rules(acls("remove", "alice", "read", "topic:orders-*", "-o", "json")) == [PREFIXED]
    gone = acls("remove", "alice", "read", "topic:orders-*")
    assert (gone.code, "there is no such rule" in gone.err) == (4, True)


def test_why_somebody_may_or_may_not_is_said(acls: Callable[..., Any]) -> None:
    acls("add", "alice", "read", "topic:orders-*")
    acls("add", "*", "all", "topic:*", "--deny", "--host", "192.0.2.7")
    allowed = acls("check", "alice", "describe", "topic:orders-eu")
    assert allowed.code == 0
    assert allowed.out == "allowed: ALLOW READ on every topic that begins with orders- for User:alice from *\n"
    denied = acls("check", "alice", "read", "topic:orders-eu", "--host", "192.0.2.7")
    assert (denied.code, denied.out) == (1, "denied: DENY ALL on topic * for User:* from 192.0.2.7\n")
    assert "no rule about it allows this" in acls("check", "bob", "read", "topic:orders-eu").out
    assert "allow.everyone.if.no.acl.found is false" in acls("check", "bob", "alter", "cluster").out
    root = acls("check", "root", "alter", "cluster", "-o", "json")
    assert json.loads(root.out) == [{"allowed": True, "reason": "User:root is a super user", "rule": None}]
    (found,) = json.loads(acls("check", "alice", "read", "topic:orders-eu", "-o", "json").out)
    assert found["rule"]["name"] == "orders-"


def test_rules_are_made_before_the_first_start(
    horolog: Callable[..., Any], start_broker: BrokerStarter, tmp_path: Path
) -> None:
    folder = tmp_path / "new"
    rule = ("alice", "read", "topic:orders-*")
    assert rules(horolog("acls", "add", *rule, "--data", folder, "-o", "json")) == [PREFIXED]
    horolog("acls", "add", "bob", "read", "topic:t", "--data", folder)
    assert rules(horolog("acls", "list", "alice", "--data", folder, "-o", "json")) == [PREFIXED]
    assert rules(horolog("acls", "list", "--resource", "group:g", "--data", folder, "-o", "json")) == []
    assert horolog("acls", "remove", "bob", "read", "topic:t", "--data", folder).code == 0
    assert horolog("acls", "remove", "bob", "read", "topic:t", "--data", folder).code == 4
    settings = {"authorizer__class__name": STANDARD_AUTHORIZER, "super__users": "User:ANONYMOUS"}
    broker = start_broker(folder, **settings)
    assert rules(horolog("acls", "list", "--bootstrap", broker.address, "-o", "json")) == [PREFIXED]
    refused = horolog("acls", "add", *rule, "--data", folder)
    assert (refused.code, "a broker runs on" in refused.err) == (1, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("add", "alice", "fly", "topic:t"), "is not an operation"),
        (("add", "alice", "read", "t"), "is not a resource"),
        (("add", "alice", "read", "topic:"), "is not a resource"),
        (("add", "alice", "read", "planet:t"), "is not a resource"),
        (("check", "alice", "read", "topic:t*"), "not a single resource"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_words_that_make_no_sense_are_refused_before_anything_is_asked(
    horolog: Callable[..., Any], words: tuple[str, ...], told: str
) -> None:
    done = horolog("acls", *words, "--bootstrap", "127.0.0.1:1")
    assert done.code == 2
    assert told in done.err


def test_without_an_authorizer_there_are_no_rules(horolog: Callable[..., Any], start_broker: BrokerStarter) -> None:
    done = horolog("acls", "list", "--bootstrap", start_broker().address)
    assert done.code == 1
    assert "SECURITY_DISABLED" in done.err
