"""A prefix as it was at a moment: which objects count, and how far back it reaches."""

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.bucket.mark import WalMark
from horolog.broker.bucket.names import Wal, key
from horolog.broker.bucket.prefix_contents import found_in
from horolog.broker.transfer.moment_store import MARKS_BEFORE_MS, MomentStore
from horolog.stores.faults import StoreError
from horolog.stores.memory_store import MemoryStore
from horolog.stores.object_store import Outcome
from tests.support.log_model import NOW_MS
from tests.support.prefix_objects import ENDED, LIVES, NONCE, new_prefix


class World:
    def __init__(self):
        self.clock = ManualClock(NOW_MS)
        self.store = MemoryStore(self.clock)

    def put(self, name, data=b"x", after_ms=0):
        self.clock.advance(after_ms)
        self.store.create(name, data)

    def mark(self, wal, number, upto, after_ms=0):
        self.put(key(wal.marks, number), WalMark(wal, number, upto, (), NONCE).encode(), after_ms)

    def moment(self):
        return MomentStore(self.store, self.clock.wall_ms())


def test_only_objects_of_the_moment_are_there():
    world = World()
    world.put("manifest/a/0/1")
    moment = world.moment()
    world.put("manifest/a/0/2", after_ms=1)
    world.put("manifest/ab/0/1")
    later = world.moment()
    assert [one.key for one in moment.list()] == ["manifest/a/0/1"]
    then = MomentStore(world.store, NOW_MS)
    assert [one.key for one in then.list("manifest")] == [one.key for one in then.list("/manifest/a/")]
    assert (then.get("manifest/a/0/1"), then.get_range("manifest/a/0/1", 0, 1)) == (b"x", b"x")
    assert then.stat("manifest/a/0/1").last_modified_ms == NOW_MS
    assert list(then.folders("manifest")) == ["a"]
    for name in ("manifest/a/0/2", "none"):
        with pytest.raises(FileNotFoundError):
            then.get(name)
    assert [one.key for one in later.list("manifest/a")] == ["manifest/a/0/1", "manifest/a/0/2"]
    assert "2 objects" not in repr(moment)


def test_it_is_only_read():
    moment = World().moment()
    assert (moment.create("a", b"").outcome, moment.create("a", b"").is_refused) == (Outcome.UNKNOWN, True)
    with pytest.raises(StoreError):
        moment.delete("a")


def test_marks_count_once_they_are_older_than_the_manifests_that_stay():
    world = World()
    world.mark(LIVES, 0, 3)
    world.clock.advance(MARKS_BEFORE_MS - 1)
    assert not list(world.moment().list("mark"))
    world.clock.advance(1)
    assert [one.key for one in world.moment().list("mark")] == [key(LIVES.marks, 0)]


def test_a_wal_whose_numbers_are_gone_is_not_reached():
    world, state = World(), found_in(new_prefix()).state
    assert not world.moment().merged_since(state)
    world.mark(LIVES, 0, 2)
    world.put(key(LIVES.folder, 2), after_ms=MARKS_BEFORE_MS)
    assert not world.moment().merged_since(state)
    world.mark(LIVES, 1, 3)
    assert not world.moment().merged_since(state), "the number is there still"
    world.store.delete(key(LIVES.folder, 2))
    assert world.moment().merged_since(state) == [LIVES]
    world.mark(ENDED, 0, 2)
    world.mark(Wal(7, 7), 0, 2)
    assert world.moment().merged_since(state) == [ENDED, LIVES]
    world.clock.advance(MARKS_BEFORE_MS)
    assert not world.moment().merged_since(state)
