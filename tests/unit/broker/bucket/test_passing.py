"""Partitions pass for a moment, and no longer; callers that wait for them hear of each end once."""

from horolog.broker.bucket.passing import HOLDS_S, Passing
from tests.support.simulated_store import Schedule

A, B, C = ((b"t" * 16, index) for index in range(3))


class World:
    def __init__(self):
        self.schedule = Schedule()
        self.passing = Passing(self.schedule.later, lambda: self.schedule.now)
        self.heard = []
        self.passing.changed = lambda: self.heard.append((self.schedule.now, sorted(self.passing.places)))

    def run_for(self, seconds):
        self.schedule.run(until=self.schedule.now + seconds)


def test_what_has_passed_is_reported_at_once():
    world = World()
    world.passing.begin([A, B])
    assert sorted(world.passing.places) == [A, B]
    world.passing.end([A, C])
    assert world.heard == [(0, [B])]
    world.passing.end([A])
    assert world.heard == [(0, [B])]
    assert repr(world.passing) == "<Passing of 1 partitions>"


def test_what_takes_too_long_passes_no_more():
    world = World()
    world.passing.begin([A])
    world.run_for(HOLDS_S / 2)
    world.passing.begin([B])
    world.run_for(HOLDS_S)
    assert world.heard == [(HOLDS_S, [B]), (HOLDS_S * 1.5, [])]


def test_a_partition_that_passes_on_begins_anew():
    world = World()
    world.passing.begin([A])
    world.run_for(HOLDS_S / 2)
    world.passing.end([A])
    world.passing.begin([A])
    world.run_for(HOLDS_S * 0.75)
    assert sorted(world.passing.places) == [A]
    world.run_for(HOLDS_S)
    assert world.heard == [(HOLDS_S / 2, []), (HOLDS_S * 1.5, [])]


def test_what_begins_to_pass_while_it_passes_takes_no_longer():
    """A partition that this broker leads, loses and leads again: its requests wait no longer than those of any other."""
    world = World()
    for _ in range(4):
        world.passing.begin([A])
        world.run_for(HOLDS_S / 4)
    assert world.heard == [(HOLDS_S, [])]


def test_nothing_has_to_listen():
    schedule = Schedule()
    passing = Passing(schedule.later, lambda: schedule.now)
    passing.begin([A])
    passing.end([A])
    schedule.run(until=HOLDS_S * 2)
    assert not passing.places
