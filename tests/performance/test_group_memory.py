"""What ten thousand groups and ten thousand idle members cost in memory, and that heartbeats leave nothing behind."""

import gc
import tracemalloc

import pytest

from tests.support.group_members import ClassicClient, ConsumerClient, commit, stabilise
from tests.support.group_world import GroupWorld

COUNT = 10_000
MOST_BYTES_A_GROUP = 6_000
MOST_BYTES_A_MEMBER = 4_000

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def world():
    world = GroupWorld()
    world.topic()
    world.offsets_partition("g")
    return world


def measured(what, world, make):
    """Bytes for each of the things that `make` leaves in the coordinator; the log in memory is not counted."""
    gc.collect()
    tracemalloc.start()
    make()
    world.tick()
    gc.collect()
    snapshot = tracemalloc.take_snapshot()
    tracemalloc.stop()
    in_broker = snapshot.filter_traces(
        [tracemalloc.Filter(True, "*/broker/groups/*"), tracemalloc.Filter(True, "*protocol*")]
    )
    each = sum(one.size for one in in_broker.statistics("filename")) / COUNT
    print(f"{what}: {each:.0f} bytes each, {each * COUNT / 1e6:.1f} MB for {COUNT}")
    return each


@pytest.mark.long
def test_groups_with_one_member_and_one_offset(world):
    def make():
        for number in range(COUNT):
            one = ClassicClient(world, f"group-{number}")
            stabilise(one)
            own = {"member_id": one.id, "generation_id_or_member_epoch": one.generation}
            assert commit(world, 5, group_id=one.group_id, **own) == 0

    assert measured("a classic group, its member and an offset", world, make) < MOST_BYTES_A_GROUP


def test_groups_that_only_have_an_offset(world):
    def make():
        for number in range(COUNT):
            assert commit(world, 5, group_id=f"group-{number}") == 0

    assert measured("a group with an offset and nobody in it", world, make) < MOST_BYTES_A_GROUP


def test_idle_members_of_one_group(world):
    clients = [ClassicClient(world) for _ in range(COUNT)]

    def make():
        for client in clients:
            client.send_join()
        stabilise(*clients)

    assert measured("an idle member of a classic group", world, make) < MOST_BYTES_A_MEMBER
    heap = len(world.timers._heap)
    for _ in range(20):
        world.clock.advance(3_000)
        for client in clients:
            assert client.heartbeat() == 0
        world.timers.run_due()
    assert len(world.timers._heap) <= heap


@pytest.mark.long
def test_members_of_the_newer_protocol(world):
    clients = [ConsumerClient(world, f"member-{n:05}", f"group-{n // 10}") for n in range(COUNT)]

    def make():
        for client in clients:
            client.join()

    assert measured("a member of a group of ten of the newer protocol", world, make) < MOST_BYTES_A_MEMBER
