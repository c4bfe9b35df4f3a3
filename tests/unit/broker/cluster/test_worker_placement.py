"""Who leads what among workers, as each of them tells clients."""

import pytest

from horolog.broker.cluster.cluster_state import Lead
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.cluster.placement import NO_NODE, NOBODY, Endpoint
from horolog.broker.cluster.worker_placement import WorkersPlacement
from tests.support.at_once import at_once
from tests.support.crew import Crew, context_of


class Endpoints:
    def advertised(self, listener):
        return f"{listener.lower()}.example", 9092


@pytest.fixture
def crew():
    crew = Crew((1, 2, 3), broker_rack="r1").start()
    at_once(crew.clusters[1].create_topics, [NewTopic("t", 6)])
    return crew


def placement(crew, node):
    return WorkersPlacement(crew.clusters[node], Endpoints(), context_of(node, crew.nodes), crew.ties[node])


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


def test_the_lowest_worker_that_lives_is_the_controller(crew):
    assert placement(crew, 3).controller() == 1
    crew.kill(1)
    assert placement(crew, 3).controller() == 2
    assert placement(crew, 3).me == 3
    assert repr(placement(crew, 3)) == "<WorkersPlacement of 3, live are [2, 3]>"


def test_who_asks_is_served_whatever_the_supervisor_knows(crew):
    told = placement(crew, 3)
    del crew.clusters[3]
    assert told.live() == {1, 2, 3}
