"""Who may do what: each rule of Kafka's authorizer, and all of them against a walk over all rules."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as some

from horolog.base.acl_types import Operation, PatternType, Permission, ResourceType
from horolog.base.acls import Acl
from horolog.broker.base.principal import Principal
from horolog.broker.config.settings import load
from horolog.broker.on_record.stored_rules import StoredRule
from horolog.broker.security import authorizer as authorizers
from horolog.broker.security.acls import rule_of
from horolog.broker.security.authorizer import Authorizer, KnownAcls, authorizer_of
from tests.support.guarded_broker import STANDARD_AUTHORIZER, acl

ALICE, BOB, GROUP_OF_OPS = Principal("User", "alice"), Principal("User", "bob"), Principal("Group", "ops")
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
HOST = "192.0.2.7"


def authorizer(*acls, allow_without_rules=False, super_users=("User:root",)):
    return Authorizer(super_users, allow_without_rules=allow_without_rules, acls=acls)


def may(asked, operation, name="t", *, who=ALICE, host=HOST, kind=TOPIC):
    return asked.rights(who, host).may(Operation[operation], kind, name)


def test_nothing_is_allowed_without_a_rule():
    assert not may(authorizer(), "READ")
    assert may(authorizer(allow_without_rules=True), "READ")


def test_a_rule_about_a_resource_closes_it_to_all_others():
    asked = authorizer(acl("bob", "READ", name="t"), allow_without_rules=True)
    assert not may(asked, "READ")
    assert may(asked, "READ", "u")
    assert may(asked, "READ", kind=GROUP)
    assert not may(authorizer(acl("bob", "READ", name="*"), allow_without_rules=True), "READ", "u")


def test_super_users_may_do_everything():
    asked = authorizer(acl("*", "ALL", name="*", deny=True))
    assert may(asked, "READ", who=Principal("User", "root"))
    assert not may(asked, "READ")


def test_names_are_literal_prefixed_or_all():
    asked = authorizer(
        acl("alice", "READ", name="t"),
        acl("alice", "READ", name="orders-", prefixed=True),
        acl("alice", "WRITE", name="*"),
    )
    assert [name for name in ("t", "tt", "orders-", "orders-eu", "orders", "x") if may(asked, "READ", name)] == [
        "t",
        "orders-",
        "orders-eu",
    ]
    assert all(may(asked, "WRITE", name) for name in ("t", "x", "orders-eu"))
    assert not may(asked, "READ", "t", kind=GROUP)


def test_a_prefix_of_a_star_is_no_wildcard():
    asked = authorizer(acl("alice", "READ", name="*", prefixed=True))
    assert not may(asked, "READ", "t")
    assert may(asked, "READ", "*t")


def test_the_principal_is_one_or_everybody_of_any_type():
    asked = authorizer(acl("*", "READ", name="t"), acl("bob", "WRITE", name="t"))
    assert may(asked, "READ", who=GROUP_OF_OPS)
    assert may(asked, "WRITE", who=BOB)
    assert not may(asked, "WRITE", who=ALICE)
    assert not may(asked, "WRITE", who=Principal("Group", "bob"))


def test_the_host_is_one_or_all():
    asked = authorizer(
        acl("alice", "READ", name="t", host=HOST), acl("alice", "READ", name="six", host="0:0:0:0:0:0:0:1")
    )
    assert may(asked, "READ")
    assert not may(asked, "READ", host="192.0.2.8")
    assert may(asked, "READ", "six", host="::1")
    assert may(asked, "READ", host=f"::ffff:{HOST}")


def test_denying_wins_wherever_it_stands():
    for denying in (
        acl("alice", "READ", name="t", deny=True),
        acl("*", "ALL", name="*", deny=True),
        acl("alice", "READ", name="", prefixed=True, deny=True)._replace(name="t"),
        acl("alice", "READ", name="t", deny=True, host=HOST),
    ):
        asked = authorizer(acl("alice", "ALL", name="t"), acl("alice", "READ", name="*"), denying)
        assert not may(asked, "READ")


def test_what_is_implied_is_allowed_and_never_denied():
    for operation in ("READ", "WRITE", "DELETE", "ALTER"):
        assert may(authorizer(acl("alice", operation, name="t")), "DESCRIBE")
        asked = authorizer(acl("alice", operation, name="t", deny=True), acl("alice", "DESCRIBE", name="t"))
        assert may(asked, "DESCRIBE")
    assert may(authorizer(acl("alice", "ALTER_CONFIGS", name="t")), "DESCRIBE_CONFIGS")
    for operation in ("CREATE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "CLUSTER_ACTION"):
        assert not may(authorizer(acl("alice", operation, name="t")), "DESCRIBE")
    everything = authorizer(acl("alice", "ALL", name="t"))
    assert all(may(everything, each.name) for each in Operation if each > Operation.ALL)


def test_the_operations_of_a_resource_are_told():
    rights = authorizer(acl("alice", "READ", name="t")).rights(ALICE, HOST)
    assert rights.operations(TOPIC, "t") == [Operation.READ, Operation.DESCRIBE]


def test_the_verdict_says_which_rule_decided():
    allowing = acl("alice", "READ", name="t")
    asked = authorizer(allowing)
    ask = lambda who, name: asked.verdict(who, HOST, Operation.READ, TOPIC, name)  # noqa: E731
    assert ask(ALICE, "t") == (True, allowing, "")
    assert str(ask(ALICE, "t")) == str(allowing)
    assert str(ask(BOB, "t")) == "no rule about it allows this"
    assert "allow.everyone.if.no.acl.found is false" in str(ask(BOB, "x"))
    assert str(ask(Principal("User", "root"), "x")) == "User:root is a super user"


def any_of(*acls, host=HOST, **more):
    return authorizer(*acls, **more).rights(ALICE, host).may_any(Operation.WRITE, TOPIC)


def test_any_name_will_do_for_an_idempotent_producer():
    assert not any_of()
    assert any_of(allow_without_rules=True)
    assert any_of(acl("alice", "WRITE", name="t"))
    assert any_of(acl("*", "ALL", name="t", prefixed=True))
    assert not any_of(acl("alice", "READ", name="t"))
    assert not any_of(acl("bob", "WRITE", name="t"))
    assert not any_of(acl("alice", "WRITE", name="t", host="192.0.2.8"))
    assert any_of(acl("alice", "WRITE", name="*"))


def test_what_is_denied_as_a_whole_is_no_such_name():
    write = acl("alice", "WRITE", name="orders")
    assert not any_of(write, acl("alice", "WRITE", name="orders", deny=True))
    assert not any_of(write, acl("alice", "WRITE", name="or", prefixed=True, deny=True))
    assert not any_of(write, acl("alice", "WRITE", name="*", deny=True))
    assert any_of(write, acl("alice", "WRITE", name="orders-eu", deny=True))
    prefix = acl("alice", "WRITE", name="or", prefixed=True)
    assert any_of(prefix, acl("alice", "WRITE", name="or", deny=True))
    assert any_of(prefix, acl("alice", "WRITE", name="orders", prefixed=True, deny=True))
    assert not any_of(prefix, acl("alice", "WRITE", name="o", prefixed=True, deny=True))
    hard = acl("alice", "WRITE", name="hardcode", deny=True)
    assert any_of(acl("alice", "WRITE", name="*"), hard)


def test_what_was_found_is_forgotten_when_rules_change():
    told = []
    asked = authorizer(acl("alice", "READ", name="t"))
    asked.on_change = lambda: told.append(asked.count)
    rights = asked.rights(ALICE, HOST)
    assert may(asked, "READ")
    assert asked.rights(ALICE, HOST) is rights
    asked.replace([])
    assert not may(asked, "READ")
    assert told == [0]
    assert "0 rules, 1 super users" in repr(asked)
    assert "User:alice from 192.0.2.7" in repr(rights)


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(authorizers, "MAX_REMEMBERED", 3)
    monkeypatch.setattr(authorizers, "MAX_SUBJECTS", 3)
    asked = authorizer(acl("alice", "READ", name="t5"))
    for number in range(10):
        assert may(asked, "READ", f"t{number}") == (number == 5)
        assert not may(asked, "READ", who=Principal("User", str(number)))
    assert len(asked._subjects) <= 3
    assert all(len(rights._known) <= 3 for rights in asked._subjects.values())


# -- against a walk over all rules

NAMES = some.sampled_from(["a", "ab", "abc", "abd", "b", "ba", "*", "hardcode"])
PRINCIPALS = some.sampled_from(["User:alice", "User:bob", "User:*", "Group:ops"])
ACLS = some.builds(
    Acl,
    some.sampled_from([TOPIC, GROUP]),
    NAMES,
    some.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    PRINCIPALS,
    some.sampled_from(["*", HOST, "192.0.2.8"]),
    some.sampled_from([each for each in Operation if each > Operation.ANY]),
    some.sampled_from([Permission.ALLOW, Permission.DENY]),
)


def naively(acls, who, host, operation, kind, name, *, allow_without_rules):
    about = [one for one in acls if one.resource_type is kind and one.is_about(name)]
    mine = [one for one in about if one.principal in (str(who), "User:*") and one.host in ("*", host)]
    if any(one.permission is Permission.DENY and one.operation in (operation, Operation.ALL) for one in mine):
        return False
    implying = {
        "DESCRIBE": {"DESCRIBE", "READ", "WRITE", "DELETE", "ALTER"},
        "DESCRIBE_CONFIGS": {"DESCRIBE_CONFIGS", "ALTER_CONFIGS"},
    }.get(operation.name, {operation.name}) | {"ALL"}
    allowed = any(one.permission is Permission.ALLOW and one.operation.name in implying for one in mine)
    return allowed or (allow_without_rules and not about)


@given(
    some.lists(ACLS, max_size=12),
    some.sampled_from([ALICE, BOB, GROUP_OF_OPS]),
    some.sampled_from([HOST, "192.0.2.8", "192.0.2.9"]),
    some.sampled_from([each for each in Operation if each > Operation.ALL]),
    NAMES,
    some.booleans(),
)
def test_a_walk_over_all_rules_says_the_same(acls, who, host, operation, name, allow_without_rules):
    asked = authorizer(*acls, allow_without_rules=allow_without_rules)
    for kind in (TOPIC, GROUP):
        expected = naively(acls, who, host, operation, kind, name, allow_without_rules=allow_without_rules)
        assert asked.rights(who, host).may(operation, kind, name) == expected
    # somebody who may with one of the names may with any
    if any(naively(acls, who, host, operation, TOPIC, one, allow_without_rules=False) for one in ("a", "ab", "b")):
        direct = [one for one in acls if one.operation in (operation, Operation.ALL)]
        some_name = any(
            naively(direct, who, host, operation, TOPIC, one, allow_without_rules=False) for one in ("a", "ab", "b")
        )
        if some_name:
            assert asked.rights(who, host).may_any(operation, TOPIC)


def test_ten_thousand_rules_cost_microseconds():
    chance = random.Random(7)
    rules = [
        acl(f"u{number % 500}", "READ", name=f"topic-{number // 3}-", prefixed=number % 3 == 0)
        for number in range(10_000)
    ]
    asked = authorizer(*rules)
    asked.verdict(ALICE, HOST, Operation.READ, TOPIC, "x")  # puts the rules in order
    names = [f"topic-{chance.randrange(4_000)}-{chance.randrange(10)}" for _ in range(2_000)]
    began = time.process_time()
    for name in names:
        asked.verdict(Principal("User", "u7"), HOST, Operation.READ, TOPIC, name)
    assert (time.process_time() - began) / len(names) < 200e-6


# -- from the settings and the cluster


def test_settings_ask_for_an_authorizer():
    assert authorizer_of(load(None, {}, {})[0]) is None
    given = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": " User:a ; User:CN=b,O=c;",
        "allow.everyone.if.no.acl.found": "true",
    }
    made = authorizer_of(load(None, {}, given)[0])
    assert made is not None
    for who, host in ((Principal("User", "a"), "h"), (Principal("User", "CN=b,O=c"), "h"), (ALICE, "h")):
        assert may(made, "ALTER", who=who, host=host)


def test_rules_of_the_cluster_are_read_once():
    first, second = rule_of(acl("a", "READ")), rule_of(acl("b", "READ"))
    user = StoredRule("user", "a", {})
    known = KnownAcls()
    rules = {one.id: one for one in (first, second, user)}
    assert list(known.of(rules)) == [acl("a", "READ"), acl("b", "READ")]
    kept = next(known.of(rules))
    assert next(known.of({first.id: first})) is kept
    with pytest.raises(KeyError):
        known.of({("acl", "x"): StoredRule("acl", "x", {})})
