"""The leader that a refusal names."""

from types import SimpleNamespace

import pytest

from horolog.broker.cluster.placement import Endpoint
from horolog.broker.handlers.next_leaders import leader_to_name

TOPIC = SimpleNamespace(name="t", id=b"t" * 16)
TWO = Endpoint(2, "two", 9002, "b")


@pytest.fixture
def broker():
    placement = SimpleNamespace(
        me=1,
        lead=lambda topic_id, index: {0: (2, 4), 1: (1, 5), 2: (3, 6)}[index],
        brokers=lambda listener: [Endpoint(1, listener, 9001), TWO],
    )
    return SimpleNamespace(cluster=SimpleNamespace(topics={"t": TOPIC}, by_id={TOPIC.id: TOPIC}), placement=placement)


@pytest.mark.parametrize("topic", [TOPIC.name, TOPIC.id])
def test_another_broker_is_named_once_with_its_address(broker, topic):
    endpoints = []
    for _ in range(2):
        assert leader_to_name(broker, topic, 0, "SSL", endpoints) == (2, 4)
    assert endpoints == [TWO]


def test_this_broker_is_named_for_a_partition_that_it_serves(broker):
    endpoints = []
    assert leader_to_name(broker, "t", 1, "SSL", endpoints) is None
    assert leader_to_name(broker, "t", 1, "SSL", endpoints, is_here=True) == (1, 5)
    assert endpoints == [Endpoint(1, "SSL", 9001)]


@pytest.mark.parametrize(("topic", "index"), [("t", 2), ("gone", 0), (b"gone", 0)])
def test_a_leader_that_is_not_live_and_a_topic_that_is_gone_have_no_name(broker, topic, index):
    endpoints = []
    assert leader_to_name(broker, topic, index, "SSL", endpoints) is None
    assert endpoints == []
