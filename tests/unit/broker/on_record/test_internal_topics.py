"""Internal topics are made with the settings that Kafka gives them."""

import pytest

from horolog.broker.on_record.internal_topics import overrides_of, partition_count_of
from tests.support.logs import broker_settings


@pytest.mark.parametrize(
    ("topic", "policy", "compression"),
    [
        ("__consumer_offsets", "compact", "producer"),
        ("__transaction_state", "compact", "uncompressed"),
        ("__share_group_state", "delete", "producer"),
    ],
)
def test_an_internal_topic_has_kafkas_settings(topic, policy, compression):
    found = overrides_of(topic, broker_settings())
    assert (found["cleanup.policy"], found["compression.type"]) == (policy, compression)


@pytest.mark.parametrize(
    ("topic", "key"),
    [
        ("__consumer_offsets", "offsets.topic.segment.bytes"),
        ("__transaction_state", "transaction.state.log.segment.bytes"),
    ],
)
def test_the_brokers_settings_say_how_large_segments_become(topic, key):
    assert overrides_of(topic, broker_settings({key: "1048576"}))["segment.bytes"] == "1048576"


def test_share_state_is_kept_for_ever():
    assert overrides_of("__share_group_state", broker_settings())["retention.ms"] == "-1"


def test_other_topics_have_settings_of_their_own():
    assert overrides_of("orders", broker_settings()) is None


def test_the_brokers_settings_say_how_many_partitions_there_are():
    settings = broker_settings({"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "5"})
    assert partition_count_of("__consumer_offsets", settings) == 3
    assert partition_count_of("__transaction_state", settings) == 5
