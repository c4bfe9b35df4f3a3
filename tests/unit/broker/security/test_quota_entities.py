"""Whom a quota is for, what it may say, and how it is kept."""

import pytest

from horolog.broker.on_record.stored_rules import ACL, StoredRule
from horolog.broker.security.quota_entities import (
    ADOPTED,
    CLIENT_ID,
    IP,
    USER,
    entity_of,
    rule_of,
    shown,
    stored_quotas,
    wrong_with,
    wrong_with_value,
)

BOTH = entity_of({USER: "ann", CLIENT_ID: None})
ADDRESS = entity_of({IP: "10.0.0.1"})


def test_an_entity_is_the_same_however_it_is_told():
    assert entity_of({CLIENT_ID: None, USER: "ann"}) == BOTH
    assert shown(BOTH) == "ClientQuotaEntity(entries={client-id=null, user=ann})"


def test_quotas_come_back_out_of_the_rules():
    rule = rule_of(BOTH, {"producer_byte_rate": 5.0})
    assert rule.key == '[["client-id",null],["user","ann"]]'
    rules = {one.id: one for one in (rule, ADOPTED, StoredRule(ACL, "a", {}))}
    assert list(stored_quotas(rules)) == [(BOTH, {"producer_byte_rate": 5.0})]


@pytest.mark.parametrize(
    ("parts", "wrong"),
    [
        ({}, "empty"),
        ({"group": "g"}, "Unhandled"),
        ({USER: ""}, "Empty user"),
        ({IP: "10.0.0.1", USER: "ann"}, "combination"),
        ({IP: "example.com"}, "not a valid IP"),
    ],
)
def test_there_is_no_such_entity(parts, wrong):
    assert wrong in wrong_with(entity_of(parts))


@pytest.mark.parametrize(
    "parts", [{USER: None}, {CLIENT_ID: "c"}, {USER: "u", CLIENT_ID: "c"}, {IP: "::1"}, {IP: None}]
)
def test_such_entities_there_are(parts):
    assert wrong_with(entity_of(parts)) is None


@pytest.mark.parametrize(
    ("entity", "key", "value", "wrong"),
    [
        (BOTH, "bytes", 1.0, "Invalid configuration key bytes"),
        (BOTH, "connection_creation_rate", 1.0, "Invalid configuration key connection_creation_rate"),
        (ADDRESS, "producer_byte_rate", 1.0, "Invalid configuration key producer_byte_rate"),
        (BOTH, "producer_byte_rate", 0.0, "must be greater than 0"),
        (BOTH, "request_percentage", float("nan"), "must be greater than 0"),
        (BOTH, "producer_byte_rate", 1.5, "cannot be a fractional value"),
        (BOTH, "consumer_byte_rate", 2.0**64, "too large for a LONG"),
        (ADDRESS, "connection_creation_rate", 2.0**31, "too large for an INT"),
        (ADDRESS, "connection_creation_rate", 5.0, None),
        (BOTH, "consumer_byte_rate", 1e6, None),
        (BOTH, "request_percentage", 0.5, None),
        (BOTH, "controller_mutation_rate", 1.5, None),
    ],
)
def test_values(entity, key, value, wrong):
    found = wrong_with_value(entity, key, value)
    assert found is None if wrong is None else wrong in found
