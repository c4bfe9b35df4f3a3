"""The world of several workers: whoever asks is served, or is told in time why not."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.log.storage.memory_disk import ALL
from horolog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from horolog.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.simulation.workers import machine
from tests.simulation.workers.machine import Machine
from tests.simulation.workers.network import Network
from tests.simulation.workers.simulation import KNOWN_EVERYWHERE_MS
from tests.simulation.workers.world import CALM_MS, Unanswered, WorkersWorld, in_workers_simulation
from tests.simulation.world import SimulationFailure

LATEST = ListOffsetsRequest(
    topics=[ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])]
)
LIST_VERSION, CREATE_VERSION = 5, 5


@pytest.fixture
def world() -> Iterator[WorkersWorld]:
    """Two workers and a topic of one partition."""
    world = WorkersWorld(1, 2)
    with in_workers_simulation(world):
        world.start()
        wanted = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        (made,) = world.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=1000), CREATE_VERSION).topics
        assert made.error_code == 0, made
        world.loop.advance(KNOWN_EVERYWHERE_MS)
        yield world


def lose_leader(world: WorkersWorld) -> int:
    """End it, and let no successor start: each of them ends in its turn."""
    (leader,) = [one for one in world.processes if one.broker is not None and one.broker.cluster.topics["t"].led_here]
    world.storage.fail("read", "meta.properties", times=ALL)
    leader.end()
    return leader.node


def test_a_partition_whose_leader_never_comes_back_is_told_with_what_each_worker_says(world: WorkersWorld) -> None:
    """Successors that end again and again are no calm, and yet nobody asks for ever."""
    lost = lose_leader(world)
    (other,) = [node for node in world.nodes if node != lost]
    with pytest.raises(SimulationFailure) as failure:
        world.ask(LATEST, LIST_VERSION)
    told = str(failure.value)
    assert "ListOffsetsRequest v5 is not served by Leader(topic='t', index=0)" in told
    assert f"worker {lost} is away" in told
    assert f"worker {other} names nobody (LEADER_NOT_AVAILABLE)" in told
    assert "meta.properties" in told
    assert world.has_been_calm_ms < CALM_MS


def test_nobody_is_blamed_while_the_disk_does_not_work(world: WorkersWorld) -> None:
    lose_leader(world)
    world.is_excused = lambda: True
    with pytest.raises(Unanswered):
        world.ask(LATEST, LIST_VERSION)
    world.storage.heal()
    world.is_excused = lambda: False
    (partition,) = world.ask(LATEST, LIST_VERSION).topics[0].partitions
    assert (partition.error_code, partition.offset) == (0, 0)


def test_a_machine_that_never_rests_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "MOST_STEPS", 1000)
    clock, chance = ManualClock(), random.Random(1)
    network = Network(clock, chance)

    def again() -> None:
        network.loop.call_soon(again)

    again()
    with pytest.raises(AssertionError, match="does not come to rest"):
        Machine(clock, chance, network).run_until(lambda: False, 10)
