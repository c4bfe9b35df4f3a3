"""The placement of a broker alone: it leads everything that there is, and nothing else."""

import pytest

from horolog.broker.cluster.cluster_state import Lead, LeadsChanged
from horolog.broker.cluster.placement import NOBODY, Endpoint, SoleBroker, endpoint_of
from tests.support.at_once import at_once
from tests.unit.broker.cluster.cluster_stand_ins import Machine


class Endpoints:
    def advertised(self, listener):
        return f"{listener.lower()}.example", 9099


@pytest.fixture
def cluster():
    return Machine(node_id="7", broker_rack="r1").start()


def test_it_leads_every_partition_in_the_epoch_of_its_log(cluster):
    topic, placement = cluster.create_topic("t", 2), SoleBroker(cluster, Endpoints())
    topic.find(1).epoch_ends = [3, 8]
    assert (placement.me, placement.controller()) == (7, 7)
    assert [placement.lead(topic.id, index) for index in range(2)] == [Lead(7, 0), Lead(7, 2)]


@pytest.mark.parametrize("index", [-1, 2])
def test_nobody_leads_a_partition_that_is_not_there(cluster, index):
    topic, placement = cluster.create_topic("t", 2), SoleBroker(cluster, Endpoints())
    assert placement.lead(topic.id, index) == NOBODY
    assert placement.lead(bytes(16), 0) == NOBODY


def test_clients_of_each_listener_are_told_its_address(cluster):
    placement = SoleBroker(cluster, Endpoints())
    assert placement.brokers("INSIDE") == (Endpoint(7, "inside.example", 9099, "r1"),)
    assert endpoint_of(placement, 7, "OUTSIDE") == Endpoint(7, "outside.example", 9099, "r1")
    assert endpoint_of(placement, 8, "OUTSIDE") is None


def test_a_partition_that_was_given_to_another_broker_is_led_there(cluster):
    topic, placement = cluster.create_topic("t", 2), SoleBroker(cluster, Endpoints())
    at_once(cluster.changes.make, lambda _: LeadsChanged((((topic.id, 1), Lead(8, 5)),)))
    assert [placement.lead(topic.id, index) for index in range(2)] == [Lead(7, 0), Lead(8, 5)]
    assert [placement.keeper(topic.id, index) for index in range(3)] == [7, 8, -1]
    assert repr(placement).startswith("<SoleBroker 7 of <Cluster")
