"""A group's settings: Kafka's names and bounds, and which value counts."""

import pytest

from horolog.broker.config.setting_types import ConfigSource, SettingsError, Synonym
from horolog.broker.config.settings import Settings, load
from horolog.broker.groups import group_settings
from horolog.broker.groups.group_settings import ROWS, SESSION_TIMEOUT
from horolog.broker.on_record.stored_rules import GROUP

SETTINGS = Settings()


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (SESSION_TIMEOUT, "45000"),
        (SESSION_TIMEOUT, "60000"),
        ("consumer.heartbeat.interval.ms", "15000"),
        ("share.auto.offset.reset", "by_duration:PT1H"),
        ("share.auto.offset.reset", "earliest"),
        ("share.isolation.level", "read_committed"),
        ("share.delivery.count.limit", "2"),
        ("share.renew.acknowledge.enable", "false"),
        ("streams.num.standby.replicas", "2"),
    ],
)
def test_what_a_group_may_be_given(key, text):
    group_settings.check({key: text}, SETTINGS)


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        (SESSION_TIMEOUT, "44999", "must be greater than or equal to group.consumer.min.session.timeout.ms"),
        (SESSION_TIMEOUT, "60001", "must be less than or equal to group.consumer.max.session.timeout.ms"),
        (SESSION_TIMEOUT, "soon", "a whole number"),
        ("consumer.heartbeat.interval.ms", "4999", "group.consumer.min.heartbeat.interval.ms"),
        ("consumer.session.timeout", "45000", "did you mean consumer.session.timeout.ms?"),
        ("share.auto.offset.reset", "sometimes", "by_duration:PnDTnHnMn.nS"),
        ("share.auto.offset.reset", "by_duration:-PT1H", "by_duration:PnDTnHnMn.nS"),
        ("share.isolation.level", "none", "one of read_committed, read_uncommitted"),
        ("share.delivery.count.limit", "1", "from 2"),
        ("share.delivery.count.limit", "11", "less than or equal to group.share.max.delivery.count.limit, 10"),
        ("share.record.lock.duration.ms", "14999", "greater than or equal to group.share.min.record.lock.duration.ms"),
        ("share.partition.max.record.locks", "4001", "group.share.max.partition.max.record.locks, 4000"),
        ("share.session.timeout.ms", "44999", "group.share.min.session.timeout.ms, 45000"),
        ("share.heartbeat.interval.ms", "15001", "group.share.max.heartbeat.interval.ms, 15000"),
        ("streams.num.standby.replicas", "3", "group.streams.max.standby.replicas, 2"),
    ],
)
def test_what_a_group_may_not_be_given(key, text, reason):
    with pytest.raises(SettingsError, match=key.replace(".", r"\.")) as refused:
        group_settings.check({key: text}, SETTINGS)
    assert reason in str(refused.value)


def test_the_bounds_are_settings_of_the_broker():
    wider, _ = load(None, {}, {"group.consumer.min.session.timeout.ms": "1000"})
    group_settings.check({SESSION_TIMEOUT: "1000"}, wider)


def test_the_groups_own_value_counts_before_the_brokers_and_that_before_the_default():
    broker, _ = load(None, {}, {"group.consumer.session.timeout.ms": "50000"})
    assert group_settings.number({}, SESSION_TIMEOUT, SETTINGS) == 45_000
    assert group_settings.number({}, SESSION_TIMEOUT, broker) == 50_000
    assert group_settings.number({SESSION_TIMEOUT: "60000"}, SESSION_TIMEOUT, broker) == 60_000
    (own,) = group_settings.describe({SESSION_TIMEOUT: "60000"}, broker, [SESSION_TIMEOUT, "no.such"])
    assert (own.value, own.source) == ("60000", ConfigSource.GROUP)
    assert [(one.name, one.value, one.source) for one in own.synonyms] == [
        (SESSION_TIMEOUT, "60000", ConfigSource.GROUP),
        ("group.consumer.session.timeout.ms", "50000", ConfigSource.STATIC_BROKER),
        ("group.consumer.session.timeout.ms", "45000", ConfigSource.DEFAULT),
    ]


@pytest.mark.parametrize(
    ("name", "value"), [("share.auto.offset.reset", "latest"), ("share.isolation.level", "read_uncommitted")]
)
def test_a_setting_that_brokers_do_not_have_is_its_own_synonym(name, value):
    (default,) = group_settings.describe({}, SETTINGS, [name])
    assert default.synonyms == (Synonym(name, value, ConfigSource.DEFAULT),)


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_the_brokers_assignment_interval_is_that_of_its_groups(kind):
    name = f"{kind}.assignment.interval.ms"
    brokers = f"group.{name}"
    broker, _ = load(None, {}, {brokers: "1500"})
    (given,) = group_settings.describe({}, broker, [name])
    assert (given.value, given.source) == ("1500", ConfigSource.STATIC_BROKER)
    assert given.synonyms == (
        Synonym(brokers, "1500", ConfigSource.STATIC_BROKER),
        Synonym(brokers, "1000", ConfigSource.DEFAULT),
    )
    (own,) = group_settings.describe({name: "2000"}, broker, [name])
    assert (own.value, own.synonyms[0].name) == ("2000", name)


def test_everything_is_described_with_its_default():
    described = group_settings.describe({}, SETTINGS)
    assert [one.name for one in described] == list(ROWS)
    assert {one.source for one in described} == {ConfigSource.DEFAULT}
    assert all(one.documentation and one.synonyms for one in described)


def test_overrides_are_a_rule_of_the_cluster():
    rule = group_settings.rule_of("g", {SESSION_TIMEOUT: "60000"})
    assert rule.id == (GROUP, "g")
    assert group_settings.overrides_of({rule.id: rule}, "g") == {SESSION_TIMEOUT: "60000"}
    assert group_settings.overrides_of({rule.id: rule}, "h") == {}
