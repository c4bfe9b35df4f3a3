"""Local copies of segments in the bucket stay while there is room, and go in the order in which they came."""

import random

from horolog.broker.bucket.local_segments import LocalSegments
from horolog.broker.bucket.remote_front import RemoteFront
from tests.support.bucket_segments import CountingStore, Reader, filled, upload
from tests.support.log_model import NOW_MS
from tests.support.shipping import new_partition


class Room:
    def __init__(self):
        self.local, self.reader = filled(random.Random(3)), Reader(CountingStore())
        self.described = upload(self.local, self.reader.store)
        self.local.have_front(RemoteFront(self.reader.metas))
        self.bytes = 1 << 30
        self.copies = LocalSegments(lambda: self.bytes, lambda: NOW_MS)
        for one in self.described:
            self.copies.add(self.local, one)

    @property
    def remote_count(self):
        ends = [one.next_offset for one in self.described]
        return sum(end <= self.local.front.end_offset for end in ends)


def test_the_oldest_go_when_there_is_no_room():
    room = Room()
    assert room.copies.kept_bytes == sum(one.contents.size_bytes for one in room.described)
    room.copies.look()
    assert room.remote_count == 0
    room.bytes = room.copies.kept_bytes - room.described[0].contents.size_bytes
    room.copies.look()
    assert room.remote_count == 1
    room.bytes = 0
    room.copies.look()
    assert (room.remote_count, room.copies.kept_bytes) == (len(room.described), 0)


def test_a_partition_that_goes_takes_its_copies_along():
    room = Room()
    room.copies.drop(room.local)
    room.bytes = -1
    room.copies.look()
    assert (room.remote_count, room.copies.kept_bytes) == (0, 0)


class Watched:
    """A segment that notes when its size is asked for."""

    def __init__(self, log_key, contents, asked):
        self.log_key, self._contents, self._asked = log_key, contents, asked

    @property
    def contents(self):
        self._asked.append(self.log_key)
        return self._contents


def test_a_partition_that_goes_costs_the_others_nothing():
    """Thousands may go with one entry."""
    room, asked = Room(), []
    copies = LocalSegments(lambda: 1 << 30, lambda: NOW_MS)
    partitions = [new_partition(index) for index in range(50)]
    for one in partitions:
        copies.add(one, Watched(f"log {one.index}", room.described[0].contents, asked))
    asked.clear()
    copies.drop(partitions[7])
    assert asked == ["log 7"]
    assert copies.kept_bytes == 49 * room.described[0].contents.size_bytes


def test_a_disk_that_fails_keeps_its_copy(caplog):
    room = Room()
    room.local.folder.storage.fail("rename")
    room.bytes = room.copies.kept_bytes - 1
    room.copies.look()
    assert "the local copy of a segment could not be given up" in caplog.text
    assert room.remote_count == 0
