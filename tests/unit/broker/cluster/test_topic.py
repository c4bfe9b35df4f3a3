"""A topic as it is served: its partitions are found by number where this broker leads them, and follow its settings."""

import pytest

from horolog.broker.base.topic_names import GROUP_OFFSETS
from horolog.broker.cluster.topic import Topic
from horolog.broker.config.topic_settings import SETTINGS_UNKNOWN
from horolog.protocol.errors import ErrorCode
from tests.support.logs import topic_config
from tests.unit.broker.cluster.cluster_stand_ins import new_partition

ID = bytes(range(16))


def partition(index=0):
    return new_partition("t", index, topic_config(), ID)


def topic(*partitions, name="t", **overrides):
    return Topic(name, ID, partitions, overrides, topic_config())


def test_partitions_that_are_led_here_are_found_by_number():
    first, third = partition(0), partition(2)
    found = topic(first, None, third)
    assert (found.find(0), found.find(2)) == (first, third)
    assert found.led_here == [first, third]
    assert found.partition_count == 3


def test_a_partition_that_another_broker_leads_is_there_and_not_found_here():
    found = topic(partition(0), None)
    assert found.find(1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert found.has(1)


@pytest.mark.parametrize("index", [-1, 1, 100])
def test_a_partition_that_is_not_there_is_unknown(index):
    found = topic(partition(0))
    assert found.find(index) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not found.has(index)


def test_a_partition_may_come_go_and_be_added():
    first, second = partition(0), partition(1)
    found = topic(first)
    found.put(1, second)
    assert (found.partition_count, found.led_here) == (2, [first, second])
    found.put(0, None)
    assert (found.partition_count, found.led_here) == (2, [second])
    found.put(0, first)
    assert found.led_here == [first, second]


def test_a_change_of_settings_reaches_every_partition_at_once():
    parts = [partition(0), partition(1)]
    found = topic(parts[0], None, parts[1])
    config = topic_config({"retention.ms": "5"})
    given = {"retention.ms": "5"}
    found.configure(given, config)
    assert [one.config for one in (found, *parts)] == [config] * 3
    given["retention.ms"] = "6"
    assert found.overrides == {"retention.ms": "5"}


@pytest.mark.parametrize(("name", "internal"), [("t", False), (GROUP_OFFSETS, True)])
def test_the_brokers_own_topics_are_internal(name, internal):
    assert topic(name=name).internal is internal


def test_settings_are_unknown_until_somebody_gives_them():
    found = topic(**{SETTINGS_UNKNOWN: "true"})
    assert found.settings_unknown
    found.configure({}, topic_config())
    assert not found.settings_unknown
    assert repr(found) == "<Topic t with 0 partitions>"


def test_its_standings_say_what_is_served_here_in_which_epoch_and_whether_its_disk_works():
    first, third = partition(0), partition(2)
    found = topic(first, None, third)
    assert found.standings(range(3)) == [0, -1, 0]
    third.lead(3)
    assert found.standings(range(3)) == [0, -1, 6]
    third.condition.go_offline("the disk is gone")
    assert found.standings(range(1, 3)) == [-1, 7]
    assert found.standings(range(2, 9)) == [7]
