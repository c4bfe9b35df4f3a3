"""The configurations that topics have by the settings as they are now."""

import logging

import pytest

from horolog.broker.cluster.cluster_configs import MAX_SHARED_CONFIGS, ClusterConfigs
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.protocol.errors import ErrorCode


@pytest.fixture
def configs():
    return ClusterConfigs(from_layers(Layers(static={"node.id": "7", "log.retention.ms": "100"})))


def test_an_override_goes_before_the_brokers_setting(configs):
    assert configs.topic({}).retention_ms == 100
    assert configs.topic({"retention.ms": "5"}).retention_ms == 5


def test_equal_overrides_share_one_configuration_in_whatever_order(configs):
    one = configs.topic({"retention.ms": "5", "segment.ms": "7"})
    assert configs.topic({"segment.ms": "7", "retention.ms": "5"}) is one


def test_what_is_shared_is_bounded(configs):
    for number in range(MAX_SHARED_CONFIGS + 1):
        configs.topic({"retention.ms": str(number)})
    assert "with 1 of topics" in repr(configs)
    assert configs.topic({"retention.ms": "3"}).retention_ms == 3


@pytest.mark.parametrize("overrides", [{"no.such": "1"}, {"retention.ms": "soon"}])
def test_overrides_that_are_not_allowed_are_refused(configs, overrides):
    with pytest.raises(ClusterError) as caught:
        configs.topic(overrides)
    assert caught.value.code == ErrorCode.INVALID_CONFIG


def test_an_override_that_this_release_does_not_take_costs_only_itself(configs, caplog):
    with caplog.at_level(logging.WARNING):
        assert configs.usable("t", {"no.such": "1", "retention.ms": "5"}) == {"retention.ms": "5"}
    assert "topic t" in caplog.text
    assert "no.such" in caplog.text


class TestSettingsThatChangeWhileRunning:
    def test_those_of_this_broker_go_before_those_of_all(self, configs):
        changes = {"": {"log.retention.ms": "200", "log.segment.bytes": "5000"}, "7": {"log.retention.ms": "300"}}
        settings = configs.with_dynamic({**changes, "8": {"log.retention.ms": "400"}})
        assert (settings.log_retention_ms, settings.log_segment_bytes) == (300, 5000)
        assert configs.settings.log_retention_ms == 100

    def test_taken_up_they_count_for_topics(self, configs):
        assert configs.topic({}).retention_ms == 100
        configs.take(configs.with_dynamic({"": {"log.retention.ms": "200"}}))
        assert configs.topic({}).retention_ms == 200

    def test_one_that_cannot_change_is_refused(self, configs):
        with pytest.raises(SettingsError):
            configs.with_dynamic({"": {"node.id": "8"}})
        with pytest.raises(ClusterError) as caught:
            configs.check({"": {"node.id": "8"}}, [])
        assert caught.value.code == ErrorCode.INVALID_REQUEST

    def test_one_that_a_topic_cannot_live_with_is_refused(self, configs):
        change = {"": {"log.cleaner.min.compaction.lag.ms": "2000"}}
        assert configs.check(change, [{}, {"retention.ms": "5"}]).log_cleaner_min_compaction_lag_ms == 2000
        with pytest.raises(ClusterError) as caught:
            configs.check(change, [{}, {"max.compaction.lag.ms": "1000"}])
        assert caught.value.code == ErrorCode.INVALID_REQUEST


def test_settings_of_another_broker_follow_what_was_changed_for_it(configs):
    changed = {"": {"log.retention.ms": "1"}, "8": {"log.retention.ms": "2"}}
    assert configs.with_dynamic(changed).log_retention_ms == 1
    assert configs.with_dynamic(changed, "8").log_retention_ms == 2
    with pytest.raises(ClusterError):
        configs.check({"8": {"log.retention.ms": "soon"}}, [], "8")


def test_what_this_release_does_not_take_is_left_out(configs, caplog):
    kept = configs.take_usable({"": {"log.retention.ms": "1", "no.such": "1"}, "7": {"node.id": "9"}})
    assert kept == {"": {"log.retention.ms": "1"}}
    assert configs.settings.log_retention_ms == 1
    assert caplog.text.count("is ignored") == 2
