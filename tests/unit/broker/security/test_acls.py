"""Rules of access lists: which make sense, which a filter chooses, and how they are kept."""

import json

import pytest

from horolog.base.acl_types import Operation, PatternType, Permission, ResourceType
from horolog.base.acls import Acl, AclFilter
from horolog.broker.security.acls import acl_of, key_of, plain_host, rule_of, wrong_with, wrong_with_filter

READ_T = Acl(ResourceType.TOPIC, "t", PatternType.LITERAL, "User:alice", "*", Operation.READ, Permission.ALLOW)
PREFIXED = READ_T._replace(name="or", pattern_type=PatternType.PREFIXED)
EVERY = READ_T._replace(name="*")


def test_a_rule_is_kept_as_readable_json_and_read_again():
    for acl in (READ_T, PREFIXED, READ_T._replace(name='a "b"\n', host="::1", permission=Permission.DENY)):
        rule = rule_of(acl)
        assert rule.kind == "acl"
        assert acl_of(json.loads(json.dumps(rule.content))) == acl
    assert rule_of(READ_T).content["operation"] == "READ"
    with pytest.raises(KeyError):
        acl_of({**rule_of(READ_T).content, "operation": "FLY"})


def test_equal_rules_have_one_key_and_others_do_not():
    others = [
        READ_T._replace(resource_type=ResourceType.GROUP),
        READ_T._replace(name="t,LITERAL"),
        READ_T._replace(pattern_type=PatternType.PREFIXED),
        READ_T._replace(principal="User:bob"),
        READ_T._replace(host="192.0.2.1"),
        READ_T._replace(operation=Operation.WRITE),
        READ_T._replace(permission=Permission.DENY),
    ]
    assert key_of(READ_T) == key_of(READ_T._replace())
    assert len({key_of(one) for one in [READ_T, *others]}) == len(others) + 1


def test_a_rule_says_what_it_does():
    assert str(READ_T) == "ALLOW READ on topic t for User:alice from *"
    assert str(PREFIXED) == "ALLOW READ on every topic that begins with or for User:alice from *"


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"resource_type": ResourceType.ANY}, "resourceType ANY"),
        ({"resource_type": ResourceType.UNKNOWN}, "resourceType UNKNOWN"),
        ({"name": ""}, "empty"),
        ({"resource_type": ResourceType.CLUSTER}, "kafka-cluster"),
        ({"pattern_type": PatternType.MATCH}, "patternType MATCH"),
        ({"operation": Operation.ANY}, "operation ANY"),
        ({"permission": Permission.UNKNOWN}, "permissionType UNKNOWN"),
        ({"principal": "alice"}, "principalType:principalName"),
    ],
)
def test_what_makes_no_sense_is_no_rule(change, word):
    assert word in (wrong_with(READ_T._replace(**change)) or "")


def test_what_makes_sense_is_one():
    cluster = READ_T._replace(resource_type=ResourceType.CLUSTER, name="kafka-cluster")
    for acl in (READ_T, PREFIXED, EVERY, cluster, READ_T._replace(principal=":")):
        assert wrong_with(acl) is None


def chosen(**parts):
    return [acl for acl in (READ_T, PREFIXED, EVERY) if AclFilter(**parts).chooses(acl)]


def test_an_open_filter_chooses_everything_and_a_closed_one_what_is_equal():
    assert chosen() == [READ_T, PREFIXED, EVERY]
    assert chosen(name="t") == [READ_T]
    assert chosen(name="or") == [PREFIXED]
    assert chosen(pattern_type=PatternType.LITERAL) == [READ_T, EVERY]
    assert chosen(pattern_type=PatternType.PREFIXED, name="orders") == []
    assert chosen(resource_type=ResourceType.GROUP) == []
    assert chosen(principal="User:alice", host="*", operation=Operation.READ) == [READ_T, PREFIXED, EVERY]
    assert chosen(principal="User:bob") == []
    assert chosen(host="192.0.2.1") == []
    assert chosen(operation=Operation.ALL) == []
    assert chosen(permission=Permission.DENY) == []


def test_match_chooses_what_counts_for_a_name():
    assert chosen(pattern_type=PatternType.MATCH, name="t") == [READ_T, EVERY]
    assert chosen(pattern_type=PatternType.MATCH, name="orders") == [PREFIXED, EVERY]
    assert chosen(pattern_type=PatternType.MATCH) == [READ_T, PREFIXED, EVERY]


def test_a_filter_of_unknown_words_chooses_nothing():
    for parts in (
        {"resource_type": ResourceType.UNKNOWN},
        {"pattern_type": PatternType.UNKNOWN},
        {"operation": Operation.UNKNOWN},
        {"permission": Permission.UNKNOWN},
    ):
        assert wrong_with_filter(AclFilter(**parts))
        assert chosen(**parts) == []
    assert wrong_with_filter(AclFilter()) is None


@pytest.mark.parametrize(
    ("host", "plain"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("2001:DB8::1", "2001:db8::1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::1"),
        ("nonsense:", "nonsense:"),
        ("*", "*"),
        ("", ""),
    ],
)
def test_an_address_has_one_form(host, plain):
    assert plain_host(host) == plain
