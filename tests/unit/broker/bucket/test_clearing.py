"""Local files of partitions that are given up are closed and go in turns, and never those that are made again."""

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.bucket import clearing, short_turns
from horolog.broker.bucket.clearing import Clearing
from horolog.broker.cluster.topic import Topic
from horolog.broker.handlers.lookup import partition_of
from horolog.broker.log.manager import LogManager, made_elsewhere
from horolog.broker.log.storage import MemoryStorage, StorageFault
from horolog.protocol.errors import ErrorCode
from tests.support.log_model import NOW_MS, small_config
from tests.support.logs import broker_settings
from tests.support.shipping import append

CONFIG = small_config()
TOPIC_ID = bytes(range(16))


class World:
    """Partitions in memory, and turns that the test gives."""

    def __init__(self, count):
        self.storage, self.turns = MemoryStorage(), []
        self.logs = LogManager(["/data"], self.storage, ManualClock(NOW_MS), broker_settings())
        self.logs.open(lambda _: CONFIG)
        self.partitions = [self.logs.create("t", index, CONFIG, TOPIC_ID) for index in range(count)]
        self.clearing = Clearing(self.logs, self.turns.append, lambda: 0.0)

    def give_up(self):
        for one in self.partitions:
            self.clearing.add((one.topic, one.index), one.config)

    def left(self):
        return [one.index for one in self.partitions if self.storage.is_dir(one.directory)]

    def turn(self):
        (turn,) = self.turns
        self.turns.clear()
        turn()


@pytest.fixture
def closed(monkeypatch):
    """The partitions whose files are closed."""
    found = []
    monkeypatch.setattr(clearing.closing, "close_files", lambda partition: found.append(partition.index))
    return found


def test_partitions_are_gone_at_once_and_their_files_in_turns(closed, monkeypatch):
    monkeypatch.setattr(short_turns, "MOST_IN_TURN", 4)
    world = World(10)
    world.give_up()
    assert all(one.condition.is_deleted for one in world.partitions)
    assert world.logs.partitions == {}
    assert world.left() == list(range(10))
    assert repr(world.clearing) == "<Clearing: 10 partitions>"
    lefts = []
    while world.turns:
        assert len(closed) == 10 - len(world.left())
        world.turn()
        lefts.append(len(world.left()))
    assert lefts == [6, 2, 0]
    assert closed == list(range(10))
    for job in world.logs.removal_jobs(NOW_MS + 1_000_000):
        job()
    assert [name for name in world.storage.list_dir("/data") if name.startswith("t-")] == []


def test_nothing_is_appended_or_served_before_its_files_are_closed(closed):
    world = World(1)
    (partition,) = world.partitions
    topic = Topic("t", TOPIC_ID, [partition], {}, CONFIG)
    append(partition, 5)
    world.give_up()
    assert closed == []
    with pytest.raises(StorageFault, match="is offline: deleted"):
        append(partition, 6)
    assert partition_of(topic, 0) == ErrorCode.KAFKA_STORAGE_ERROR


def test_one_that_is_made_again_is_left_alone(closed):
    world = World(3)
    world.give_up()
    world.clearing.drop(("t", 1))
    assert closed == [1]
    world.turn()
    assert world.left() == [1]
    assert closed == [1, 0, 2]
    assert world.turns == []


def test_one_that_is_given_up_again_before_it_was_made_again_is_closed(closed):
    world = World(1)
    world.give_up()
    world.give_up()
    assert closed == [0]
    world.turn()
    assert (closed, world.left()) == ([0], [])


def test_nothing_is_cleared_after_the_end(closed):
    world = World(2)
    world.give_up()
    world.clearing.end()
    assert closed == [0, 1]
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
