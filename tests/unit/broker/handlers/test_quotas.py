"""DescribeClientQuotas and AlterClientQuotas: a request must make sense, entities are changed one by one, and found by a filter."""

import pytest

from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.quotas import (
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    ComponentData,
    OpData,
)
from tests.unit.broker.handlers.stand_ins import StandIn

RATE = "producer_byte_rate"


def described(broker, *components, strict=False, version=1):
    wanted = [ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
    answer = broker.ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, version, components=wanted, strict=strict)
    assert (answer.error_code, answer.error_message) == (0, "")
    return {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries
    }


def change(entity, *ops):
    """Of an operation without a value the value is removed."""
    return AlterClientQuotasRequestEntryData(
        entity=[AlterClientQuotasRequestEntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[OpData(key=key, value=0.0 if value is None else value, remove=value is None) for key, value in ops],
    )


def altered(broker, *changes, validate_only=False, version=1):
    answer = broker.ask(ApiKey.ALTER_CLIENT_QUOTAS, version, entries=list(changes), validate_only=validate_only)
    return [(entry.error_code, entry.error_message) for entry in answer.entries]


@pytest.mark.parametrize("version", [0, 1])
def test_at_first_there_are_no_quotas(version):
    assert described(StandIn(), version=version) == {}


@pytest.mark.parametrize(
    ("version", "components", "code"),
    [
        (1, [("", 2, None)], ErrorCode.INVALID_REQUEST),
        (1, [("nobody", 2, None)], ErrorCode.UNSUPPORTED_VERSION),
        (0, [("user", 7, None)], ErrorCode.INVALID_REQUEST),
        (0, [("user", 0, None)], ErrorCode.INVALID_REQUEST),
        (0, [("user", 1, "u")], ErrorCode.INVALID_REQUEST),
        (1, [("user", 2, None), ("user", 0, "u")], ErrorCode.INVALID_REQUEST),
        (1, [("user", 2, None), ("ip", 2, None)], ErrorCode.INVALID_REQUEST),
        (1, [("user", 2, None), ("client-id", 1, None)], 0),
    ],
)
def test_what_is_asked_for_must_make_sense(version, components, code):
    wanted = [ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
    answer = StandIn().ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, version, components=wanted, strict=False)
    assert (answer.error_code, bool(answer.error_message)) == (code, bool(code))


@pytest.mark.parametrize("version", [0, 1])
def test_values_are_put_changed_and_removed(version):
    broker = StandIn()
    assert altered(broker, change([("user", "ann")], (RATE, 5.0), ("request_percentage", 0.5)), version=version) == [
        (0, None)
    ]
    altered(broker, change([("user", "ann")], (RATE, 6.0)), version=version)
    assert described(broker) == {(("user", "ann"),): {RATE: 6.0, "request_percentage": 0.5}}
    altered(broker, change([("user", "ann")], (RATE, None), ("consumer_byte_rate", None)), version=version)
    assert described(broker) == {(("user", "ann"),): {"request_percentage": 0.5}}
    assert altered(broker, change([("user", "ann")], ("request_percentage", None))) == [(0, None)]
    assert described(broker) == {}


def test_quotas_are_there_after_a_start():
    broker = StandIn()
    altered(broker, change([("user", None), ("client-id", "c")], (RATE, 5.0)))
    assert described(StandIn(broker.machine)) == {(("client-id", "c"), ("user", None)): {RATE: 5.0}}


def test_each_entity_is_refused_by_itself():
    broker = StandIn()
    found = altered(
        broker,
        change([("user", "ann")], (RATE, 5.0)),
        change([("group", "g")], (RATE, 5.0)),
        change([("user", "bob")], (RATE, -1.0)),
        change([("user", "carl")], (RATE, 1.0), (RATE, 2.0)),
        change([("ip", "example.com")], ("connection_creation_rate", 2.0)),
    )
    assert [code for code, _ in found] == [0, *[ErrorCode.INVALID_REQUEST] * 4]
    assert found[3][1] == "Ignoring duplicate entity ClientQuotaEntity(entries={user=carl})"
    assert described(broker) == {(("user", "ann"),): {RATE: 5.0}}


def test_an_entity_that_is_named_twice_is_not_changed():
    broker = StandIn()
    ((code, _),) = altered(broker, change([("user", "a")], (RATE, 1.0)), change([("user", "a")], (RATE, 2.0)))
    assert (code, described(broker)) == (ErrorCode.INVALID_REQUEST, {})


def test_what_is_only_checked_changes_nothing():
    broker = StandIn()
    assert altered(broker, change([("user", "ann")], (RATE, 5.0)), validate_only=True) == [(0, None)]
    assert described(broker) == {}


def test_a_change_that_cannot_be_kept_is_refused(monkeypatch):
    broker = StandIn()
    failure = ClusterError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")
    monkeypatch.setattr(broker.cluster, "change_rules", lambda decide, done: (decide({}), done(failure)))
    found = altered(broker, change([("user", "ann")], (RATE, 5.0)), change([("user", "bob")], (RATE, -1.0)))
    assert found[0] == (ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")
    assert found[1][0] == ErrorCode.INVALID_REQUEST


def test_a_filter_finds_by_name_by_default_and_by_kind():
    broker = StandIn()
    ann, both, default = [("user", "ann")], [("user", "ann"), ("client-id", "c")], [("user", None)]
    altered(broker, *(change(entity, (RATE, 5.0)) for entity in (ann, both, default)))
    both = sorted(both)
    assert list(described(broker, ("user", 0, "ann"))) == [tuple(ann), tuple(both)]
    assert list(described(broker, ("user", 0, "ann"), strict=True)) == [tuple(ann)]
    assert list(described(broker, ("user", 1, None))) == [tuple(default)]
    assert list(described(broker, ("user", 2, None), strict=True)) == [tuple(ann), tuple(default)]
    assert list(described(broker, ("client-id", 2, None))) == [tuple(both)]
    assert len(described(broker)) == 3
