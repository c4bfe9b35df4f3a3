"""The manifests of other leaders' partitions are read when a reader needs them, and readers go back to the leader where they end."""

import random
from types import SimpleNamespace

import pytest

from horolog.broker.base.answers import Answer
from horolog.broker.bucket.covered import NOTHING, Covered
from horolog.broker.bucket.followed_partitions import (
    AGAIN_S,
    KEPT_S,
    LOOKS_EVERY_S,
    WAITS_S,
    FollowedPartitions,
    FollowingMeans,
)
from horolog.broker.bucket.producers_behind import ProducersAt
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.log.partition import Partition
from horolog.broker.log.producers import SnapshotEntry, snapshot_file
from horolog.broker.log.storage import StorageFault
from horolog.protocol.errors import ErrorCode
from tests.support.bucket_segments import CONFIG, CountingStore, Reader, filled, upload

TOPIC = SimpleNamespace(name="t", id=b"t" * 16, config=CONFIG)
BACK = ErrorCode.NOT_LEADER_OR_FOLLOWER


class World:
    def __init__(self):
        store = CountingStore()
        self.segments = tuple(upload(filled(random.Random(2)), store))
        self.reader, self.now, self.changed, self.waiting, self.asked = Reader(store), 0.0, [], [], 0
        self.covered, self.is_slow = self.of(2), False
        means = FollowingMeans(self, self.metas, self.reader.resources, self.changed.extend, lambda: self.now)
        self.partitions = FollowedPartitions(means)

    def metas(self):
        return self.reader.metas

    def of(self, count, start=0):
        return Covered(start, self.segments[:count], epochs=((0, 0),))

    async def at(self, place, known=NOTHING):
        self.asked += 1
        if self.is_slow:
            await Answer(self.waiting.append)
        if isinstance(self.covered, Exception):
            raise self.covered
        return self.covered

    def find(self, offset, committed=False, epoch=7, index=0):
        return self.partitions.find(TOPIC, index, epoch, offset, committed=committed)


@pytest.fixture
def world():
    return World()


def test_a_reader_gets_the_partition_up_to_the_end_of_its_segments(world):
    found = world.find(0)
    assert isinstance(found, Partition)
    assert (found.leader_epoch, found.high_watermark) == (7, world.segments[1].next_offset)
    world.reader.served(lambda: found.read(0, 1 << 20))
    assert world.partitions.served_bytes > 0
    assert world.find(found.high_watermark - 1) is found
    assert world.asked == 1
    assert world.find(found.high_watermark) == BACK, "the manifest was read just now"
    assert world.asked == 1
    world.now += AGAIN_S
    world.covered = world.of(3)
    assert world.find(found.high_watermark) is found
    assert found.high_watermark == world.segments[2].next_offset
    assert "1, " in repr(world.partitions)


def test_readers_wait_for_a_manifest_but_not_long(world):
    world.is_slow = True
    found = world.find(0)
    assert isinstance(found, Partition)
    assert world.find(0) is found
    assert world.changed == []
    world.now = WAITS_S + 1
    assert world.find(0) == BACK
    world.waiting.pop()(None)
    assert world.changed == [found]
    assert world.find(0) is found
    assert world.asked == 1


def test_the_start_is_looked_for_now_and_then_while_readers_come(world):
    found = world.find(0)
    world.covered = world.of(2, start=world.segments[1].base_offset)
    world.now += LOOKS_EVERY_S - 1
    assert world.find(0).log_start_offset == 0
    world.now += 1
    assert world.find(0) is found
    assert found.log_start_offset == world.segments[1].base_offset
    assert found.leader_epoch == 7


def test_a_transaction_that_is_open_at_the_end_sends_readers_of_committed_records_back(world):
    entry = SnapshotEntry(7, 0, 0, 5, 0, 0, -1, 5)
    world.covered = world.of(2)._replace(producers=snapshot_file.encode([entry]))
    found = world.find(0, committed=True)
    assert (found.last_stable_offset, found.high_watermark) == (5, world.segments[1].next_offset)
    assert world.find(5, committed=True) == BACK
    assert world.find(5) is found


@pytest.mark.parametrize("covered", [NOTHING, FormatError("damaged")])
def test_readers_go_back_where_there_is_nothing_to_serve(world, covered):
    world.covered = covered
    assert world.find(0) == BACK


def test_segments_are_not_served_if_the_producers_behind_them_are_not_known(world):
    world.covered = Covered(0, world.segments, ProducersAt(0).snapshot())
    assert world.find(0) == BACK


def test_readers_go_back_if_there_is_no_cache(world, monkeypatch):
    def failing():
        raise StorageFault("no disk")

    world.partitions._means = world.partitions._means._replace(metas=failing)
    assert world.find(0) == BACK


def test_a_partition_without_readers_is_forgotten(world):
    first = world.find(0)
    world.now = KEPT_S
    world.find(0, index=1)
    assert len(world.partitions._followed) == 1
    assert world.find(0) is not first
