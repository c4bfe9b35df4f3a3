"""Quotas of a Kafka's metadata become rules, once, and again where that Kafka has changed them."""

from horolog.broker.adoption.adopted_quotas import with_quotas
from horolog.broker.adoption.kraft_state import KraftState
from horolog.broker.on_record.stored_rules import ACL, StoredRule
from horolog.broker.security.quota_entities import ADOPTED, entity_of, rule_of, stored_quotas

ANN, BOB = (("user", "ann"),), (("user", "bob"),)


def state(**values):
    return KraftState(quotas={(("user", name),): {"request_percentage": value} for name, value in values.items()})


def quotas(rules):
    return {dict(entity)["user"]: values["request_percentage"] for entity, values in stored_quotas(rules)}


def test_quotas_come_into_force_with_the_folder():
    acl = StoredRule(ACL, "a", {})
    rules = with_quotas({acl.id: acl}, None, state(ann=5.0))
    assert rules[acl.id] is acl
    assert quotas(rules) == {"ann": 5.0}


def test_nothing_is_left_behind_where_there_are_none():
    assert with_quotas({}, None, KraftState(quotas={ANN: {}})) == {}


def test_those_that_an_older_release_left_aside_come_into_force():
    before = state(ann=5.0)
    assert quotas(with_quotas({}, before, before)) == {"ann": 5.0}


def test_a_quota_removed_here_stays_removed():
    before = state(ann=5.0)
    assert quotas(with_quotas({ADOPTED.id: ADOPTED}, before, before)) == {}


def test_what_kafka_has_changed_since_counts():
    own = rule_of(entity_of({"user": "carl"}), {"request_percentage": 1.0})
    rules = with_quotas({own.id: own}, None, state(ann=5.0, bob=6.0))
    rules = with_quotas(rules, state(ann=5.0, bob=6.0), state(ann=7.0, dora=8.0))
    assert quotas(rules) == {"carl": 1.0, "ann": 7.0, "dora": 8.0}
