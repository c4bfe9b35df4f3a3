"""The settings of a share group that its partitions' leaders work with."""

from horolog.broker.config.settings import Settings, load
from horolog.broker.groups.share.share_settings import (
    BY_DURATION,
    EARLIEST,
    LATEST,
    EffectiveSettings,
    ShareReset,
    share_settings,
)


def test_the_defaults():
    assert share_settings({}, Settings()) == (30_000, 5, 2_000, False, ShareReset(LATEST), True)


def test_the_brokers_values_and_the_groups_own():
    broker, _ = load(
        None, {}, {"group.share.record.lock.duration.ms": "20000", "group.share.delivery.count.limit": "3"}
    )
    found = share_settings(
        {
            "share.delivery.count.limit": "7",
            "share.isolation.level": "read_committed",
            "share.auto.offset.reset": EARLIEST,
            "share.renew.acknowledge.enable": "false",
            "share.partition.max.record.locks": "100",
        },
        broker,
    )
    assert found == (20_000, 7, 100, True, ShareReset(EARLIEST), False)


def test_a_duration_is_in_milliseconds():
    found = share_settings({"share.auto.offset.reset": "by_duration:P1DT2H3M4.5S"}, Settings())
    assert found.reset == ShareReset(BY_DURATION, ((26 * 60 + 3) * 60 + 4) * 1000 + 500)


def test_the_values_of_a_group_are_kept_until_something_is_set(monkeypatch):
    known, broker, own = EffectiveSettings(), Settings(), {"share.delivery.count.limit": "7"}
    first = known.of("g", own, broker)
    assert known.of("g", own, broker) is first
    assert first.delivery_count_limit == 7
    assert known.of("g", {}, broker).delivery_count_limit == 5
    changed, _ = load(None, {}, {"group.share.delivery.count.limit": "3"})
    assert known.of("g", own, broker).delivery_count_limit == 7
    assert known.of("g", {}, changed).delivery_count_limit == 3
    monkeypatch.setattr(EffectiveSettings, "MOST", 2)
    for group in ("a", "b", "c"):
        assert known.of(group, own, changed).delivery_count_limit == 7
    assert repr(known) == "<EffectiveSettings of 2 share groups>"
