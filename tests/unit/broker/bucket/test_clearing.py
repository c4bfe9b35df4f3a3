"""Local files of partitions that are given up go in turns, and never those that are made again."""

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.bucket import clearing
from horolog.broker.bucket.clearing import Clearing
from horolog.broker.log.manager import LogManager, made_elsewhere
from horolog.broker.log.storage import MemoryStorage
from tests.support.log_model import NOW_MS, small_config
from tests.support.logs import broker_settings

CONFIG = small_config()
TOPIC_ID = bytes(range(16))


class World:
    """Partitions in memory, turns that the test gives, and a clock that goes on with each rename."""

    def __init__(self, count):
        self.storage, self.turns, self.now_s, self.rename_s = MemoryStorage(), [], 0.0, 0.0
        self.logs = LogManager(["/data"], self.storage, ManualClock(NOW_MS), broker_settings())
        self.logs.open(lambda _: CONFIG)
        self.partitions = [self.logs.create("t", index, CONFIG, TOPIC_ID) for index in range(count)]
        self.clearing = Clearing(self.logs, self.turns.append, lambda: self.now_s)
        rename = self.storage.rename

        def slow_rename(*paths):
            self.now_s += self.rename_s
            rename(*paths)

        self.storage.rename = slow_rename

    def give_up(self):
        for one in self.partitions:
            self.clearing.add((TOPIC_ID, one.index), one.topic, one.index, one.config)

    def left(self):
        return [one.index for one in self.partitions if self.storage.is_dir(one.directory)]

    def turn(self):
        (turn,) = self.turns
        self.turns.clear()
        turn()


def test_partitions_are_gone_at_once_and_their_files_in_turns(monkeypatch):
    monkeypatch.setattr(clearing, "MOST_IN_TURN", 4)
    world = World(10)
    world.give_up()
    assert all(one.condition.is_deleted for one in world.partitions)
    assert world.logs.partitions == {}
    assert world.left() == list(range(10))
    assert repr(world.clearing) == "<Clearing: 10 partitions>"
    lefts = []
    while world.turns:
        world.turn()
        lefts.append(len(world.left()))
    assert lefts == [6, 2, 0]
    for job in world.logs.removal_jobs(NOW_MS + 1_000_000):
        job()
    assert [name for name in world.storage.list_dir("/data") if name.startswith("t-")] == []


def test_a_turn_ends_in_time():
    world = World(10)
    world.rename_s = clearing.TURN_S * 0.6
    world.give_up()
    lefts = []
    while world.turns:
        world.turn()
        lefts.append(len(world.left()))
    assert lefts == [8, 6, 4, 2, 0]


def test_one_that_is_made_again_is_left_alone():
    world = World(3)
    world.give_up()
    world.clearing.drop((TOPIC_ID, 1))
    world.turn()
    assert world.left() == [1]
    assert world.turns == []


def test_files_of_a_deleted_topic_go_at_once_and_others_in_their_turn():
    world = World(2)
    world.give_up()
    world.clearing.finish((TOPIC_ID, 0))
    world.clearing.finish((TOPIC_ID, 7))
    assert world.left() == [1]
    world.turn()
    assert world.left() == []


def test_nothing_is_cleared_after_the_end():
    world = World(2)
    world.give_up()
    world.clearing.end()
    world.turn()
    assert world.left() == [0, 1]
    assert world.turns == []


def test_a_fault_of_the_disk_keeps_no_other_waiting(caplog):
    world = World(3)
    world.give_up()
    world.storage.fail("rename", times=1)
    world.turn()
    assert world.left() == [0]
    assert "t-0 could not be removed; the broker removes them when it leads the partition again" in caplog.text


@pytest.mark.parametrize("compacted", [True, False])
def test_a_compacted_one_begins_again(compacted):
    world = World(1)
    config = small_config(compact=compacted)
    forgotten = []
    world.logs.folders[0].checkpoints.forget_cleaned = forgotten.append
    made_elsewhere.clear(world.logs, "t", 0, config)
    assert forgotten == ([("t", 0)] if compacted else [])
