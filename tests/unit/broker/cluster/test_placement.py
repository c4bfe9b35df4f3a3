"""Who leads what, as each broker tells clients: a broker alone, and workers."""

import pytest

from horolog.broker.cluster.cluster_state import NO_NODE, Lead, LeadsChanged
from horolog.broker.cluster.membership import Members
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.cluster.placement import NOBODY, Endpoint, Placement, endpoint_of
from tests.support.at_once import at_once
from tests.support.crew import Crew
from tests.unit.broker.cluster.cluster_stand_ins import Machine


class Endpoints:
    def advertised(self, listener, node):
        return f"{listener.lower()}.example", 9100 + node

    def rack(self, node, mine):
        return "r9" if node == 9 else mine


def members_of(crew, node):
    return Members(node, crew.nodes, frozenset(crew.clusters) | {node})


@pytest.fixture
def crew():
    crew = Crew((1, 2, 3), broker_rack="r1").start()
    at_once(crew.clusters[1].create_topics, [NewTopic("t", 6)])
    return crew


def placement(crew, node):
    return Placement(crew.clusters[node], Endpoints(), members_of(crew, node))


class TestAlone:
    @pytest.fixture
    def cluster(self):
        return Machine(node_id="7", broker_rack="r1").start()

    @pytest.fixture
    def alone(self, cluster):
        return Placement(cluster, Endpoints(), Members.of_one(7))

    def test_it_leads_every_partition_in_the_epoch_of_its_log(self, cluster, alone):
        topic = cluster.create_topic("t", 2)
        topic.find(1).lead(2)
        assert (alone.me, alone.controller()) == (7, 7)
        assert [alone.lead(topic.id, index) for index in range(2)] == [Lead(7, 0), Lead(7, 2)]
        assert [alone.keeper(topic.id, index) for index in range(3)] == [7, 7, NO_NODE]

    def test_a_lead_of_a_node_that_is_not_there_is_nobodys(self, cluster, alone):
        topic = cluster.create_topic("t", 2)
        at_once(cluster.changes.make, lambda _: LeadsChanged((((topic.id, 1), Lead(8, 5)),)))
        assert [alone.keeper(topic.id, index) for index in range(2)] == [7, 7]

    def test_clients_of_each_listener_are_told_its_address(self, alone):
        assert alone.brokers("INSIDE") == (Endpoint(7, "inside.example", 9107, "r1"),)
        assert endpoint_of(alone, 7, "OUTSIDE") == Endpoint(7, "outside.example", 9107, "r1")
        assert endpoint_of(alone, 8, "OUTSIDE") is None
        assert repr(alone) == "<Placement of 7, live are [7]>"


def test_all_workers_say_the_same(crew):
    topic_id = crew.clusters[1].topics["t"].id
    told = [[placement(crew, node).lead(topic_id, index) for index in range(6)] for node in crew.nodes]
    assert told[0] == told[1] == told[2]
    assert sorted(lead.node for lead in told[0]) == [1, 1, 2, 2, 3, 3]
    for index, lead in enumerate(told[0]):
        assert crew.clusters[lead.node].topics["t"].find(index) is crew.partition("t", index)


def test_epochs_are_those_of_the_leader(crew):
    topic = crew.clusters[2].topics["t"]
    partition = topic.led_here[0]
    partition.leader_epoch = 4
    crew.clusters[2].reopened(partition)
    assert {placement(crew, node).lead(topic.id, partition.index) for node in crew.nodes} == {Lead(2, 4)}


def test_nobody_leads_while_a_worker_is_away(crew):
    topic = crew.clusters[1].topics["t"]
    lost = [one.index for one in crew.clusters[3].topics["t"].led_here]
    crew.kill(3)
    for index in range(6):
        assert (placement(crew, 1).lead(topic.id, index).node == NO_NODE) is (index in lost)
        assert (placement(crew, 1).keeper(topic.id, index) == 3) is (index in lost)
    assert [one.node for one in placement(crew, 1).brokers("PLAINTEXT")] == [1, 2]


@pytest.mark.parametrize("index", [-1, 6])
def test_nobody_leads_what_is_not_there(crew, index):
    topic_id = crew.clusters[1].topics["t"].id
    assert placement(crew, 1).lead(topic_id, index) == NOBODY
    assert placement(crew, 1).lead(bytes(16), 0) == NOBODY
    assert placement(crew, 1).keeper(bytes(16), 0) == placement(crew, 1).keeper(topic_id, index) == NO_NODE


def test_nobody_leads_what_is_handed_over_just_now(crew):
    topic = crew.clusters[2].topics["t"]
    index = topic.led_here[0].index
    crew.clusters[2].withdraw("t", index)
    assert placement(crew, 2).lead(topic.id, index) == NOBODY


def test_each_worker_is_found_at_its_own_port(crew):
    assert placement(crew, 2).brokers("PLAINTEXT") == tuple(
        Endpoint(node, "plaintext.example", 9100 + node, "r1") for node in (1, 2, 3)
    )


def test_the_lowest_node_that_lives_is_the_controller(crew):
    told = placement(crew, 3)
    assert (told.controller(), told.me) == (1, 3)
    told.live_are(frozenset({2, 3}))
    assert told.controller() == 2
    assert repr(told) == "<Placement of 3, live are [2, 3]>"


def test_a_broker_serves_whatever_others_know_of_it(crew):
    told = placement(crew, 3)
    told.live_are(frozenset({1, 2}))
    assert told.members.live == {1, 2, 3}


def test_brokers_that_are_away_serve_no_old_records(crew):
    class Selector:
        def readers(self, topic, index):
            return [2, 9]

    one = placement(crew, 1)
    topic = crew.clusters[1].topics["t"]
    assert list(one.readers(topic, 0)) == []
    one.selector = Selector()
    assert list(one.readers(topic, 0)) == [2]
