"""Partitions change hands while their leader lives, and a broker that stops leaves nothing behind."""

from horolog.broker.base.answers import run
from horolog.broker.bucket.balance import surplus
from horolog.broker.bucket.detection import FenceOff
from horolog.broker.bucket.passing import HOLDS_S
from horolog.broker.cluster.cluster_state import Lead
from tests.simulation.bucket.processes import TOPIC
from tests.unit.broker.bucket.test_members_watch import Calm, entries


def give(world, node, leads):
    outcomes = []

    async def steps():
        outcomes.append(await world[node].handing.give(leads))

    run(steps())
    return outcomes


def some(world, node):
    """A partition that a broker leads."""
    return world.journal().led_by(node)[0]


def test_all_that_was_appended_is_there_for_the_next_leader():
    world = Calm()
    place = some(world, 1)
    for number in range(5):
        world[1].append(place, (number, 1))
    outcomes = give(world, 1, {place: Lead(2, 1)})
    assert world[1].high_watermark(place) is None
    assert world[1].handing.moves == {place: 2}
    world.run_for(3)
    assert outcomes == [None]
    assert world.journal().leads[place] == Lead(2, 1)
    assert world[2].served[place].records == [(number, 1) for number in range(5)]
    assert world[1].handing.moves == {}
    assert "{} under way" in repr(world[1].handing)


def test_a_move_to_a_broker_that_is_no_member_moves_nothing_and_it_is_served_again():
    world = Calm()
    place = some(world, 1)
    outcomes = give(world, 1, {place: Lead(9, 1)})
    world.run_for(3)
    assert outcomes == [None]
    assert world.journal().leads[place].node == 1
    assert world[1].high_watermark(place) is not None


def test_what_is_being_moved_is_not_moved_twice():
    world = Calm()
    place = some(world, 1)
    first, second = give(world, 1, {place: Lead(2, 1)}), give(world, 1, {place: Lead(3, 1)})
    world.run_for(3)
    assert (first, second) == ([None], [None])
    assert world.journal().leads[place] == Lead(2, 1)


def test_a_fenced_broker_hands_over_nothing():
    world = Calm()
    place = some(world, 1)
    world[1].fenced = lambda _: None
    world[1].append(place, (1, 1))
    world[1].log.writer.is_fenced = True
    outcomes = give(world, 1, {place: Lead(2, 1)})
    assert outcomes[0].message == "the broker is fenced"
    run(world[1].handing.leave())
    world.run_for(1)
    assert world.journal().leads[place].node == 1


def test_a_broker_that_is_fenced_while_it_hands_over_is_refused():
    world = Calm()
    place = some(world, 1)
    world[1].fenced = lambda _: None
    world[1].watch.end()
    world[2].watch._detection.is_against = lambda _: True
    world[2].watch._do(FenceOff(world[1].wal))
    world.run_for(2)
    outcomes = give(world, 1, {place: Lead(2, 1)})
    world.run_for(2)
    assert outcomes[0] is None or outcomes[0].message == "the broker is fenced"
    number = world.journal().number
    run(world[1].handing.leave())
    world.run_for(2)
    assert world.journal().number == number


def test_a_broker_that_stops_leaves_with_one_entry():
    world = Calm()
    mine = world.journal().led_by(1)
    assert mine
    world[1].stop()
    world.run_for(3)
    state = world.journal()
    assert state.nodes == (2, 3)
    assert not state.fenced
    assert type(entries(world)[-1]).__name__ == "BrokerLeft"
    assert all(any(one.high_watermark(place) for one in world.processes()) for place in mine)


def test_nothing_passes_behind_a_broker_that_has_left():
    """Requests for a partition that it was still giving away are answered before it stops."""
    world = Calm()
    handing, place = world[1].handing, some(world, 1)
    give(world, 1, {place: Lead(2, 1)})
    world.run_for(3)
    handing._passing.begin([place])
    world[1].watch.end()
    run(handing.leave())
    world.run_for(HOLDS_S / 2)
    assert world.journal().nodes == (2, 3)
    assert not handing._passing.places


def test_a_broker_that_joins_takes_its_share():
    world = Calm(brokers=2)
    world.machines[2].end_process()
    world.run_for(6)
    world.machines[2].start()
    world.run_for(3)
    leads = surplus(world.journal(), 1, 10)
    assert len(leads) == 2
    give(world, 1, leads)
    world.run_for(3)
    assert len(world.journal().led_by(2)) == 2
    assert {place[0] for place in leads} == {TOPIC}
