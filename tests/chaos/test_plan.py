"""The plan of a chaos run: the same for the same seed, and every fault ends in time."""

from itertools import pairwise

from tests.chaos.plan import BROKER_FAULTS, KILL_EVERY_S, STORE_FAULTS, kills, plan

NODES = (1, 2, 3)


def test_a_seed_gives_one_plan_and_another_seed_another():
    assert plan(1, 300, NODES) == plan(1, 300, NODES)
    assert plan(1, 300, NODES) != plan(2, 300, NODES)


def test_a_long_plan_has_everything_and_ends_in_time():
    events = plan(3, 3_600, NODES)
    assert {one.kind for one in events} == {*BROKER_FAULTS, *STORE_FAULTS}
    assert all(one.at_s + one.lasts_s <= 3_600 for one in events)
    assert {one.node for one in events} == {0, *NODES}
    assert all((one.node == 0) is (one.kind in STORE_FAULTS) for one in events)
    assert any(one.at_s + one.lasts_s > after.at_s for one, after in pairwise(events))


def test_a_broker_has_one_fault_at_a_time():
    for node in (0, *NODES):
        mine = [one for one in plan(4, 3_600, NODES) if one.node == node]
        assert all(one.at_s + one.lasts_s < after.at_s for one, after in pairwise(mine))


def test_brokers_without_a_store_have_faults_of_their_own_alone():
    events = plan(5, 600, NODES, has_store=False)
    assert {one.kind for one in events} == set(BROKER_FAULTS)
    assert str(events[0]).split(", ")[1].startswith("broker ")


def test_a_soak_has_a_kill_a_minute():
    events = kills(6, 3_600, NODES)
    assert [one.at_s for one in events] == list(range(KILL_EVERY_S, 3_600, KILL_EVERY_S))
    assert ({one.kind for one in events}, {one.node for one in events}) == ({"kill"}, set(NODES))
