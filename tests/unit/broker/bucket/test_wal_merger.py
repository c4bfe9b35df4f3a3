"""When the numbers of a WAL are merged, and what of them is kept."""

import pytest

from horolog.broker.base.answers import run
from horolog.broker.bucket import wal_merger
from horolog.broker.bucket.names import key
from horolog.broker.bucket.wal_index import index_of
from horolog.broker.bucket.wal_merger import LEAST_NUMBERS, MOST_SECONDS, MOST_SMALL, WalMerger
from horolog.broker.bucket.wal_writer import WalWriter
from tests.support.shipping import TOPIC_ID, WAL, HeldStore, ReadyStore, access_to, in_full, run_at

PLACE, OTHER = (TOPIC_ID, 0), (TOPIC_ID, 1)


class Events:
    def safe(self, upto): ...

    def fenced(self, fence): ...


class World:
    def __init__(self, store=None, history_ms=0):
        self.store, self.now, self.needed = store or ReadyStore(), 0.0, {PLACE, OTHER}
        nonces = iter(range(10_000))

        def new_nonce():
            return b"%16d" % next(nonces)

        self.access = access_to(self.store)
        self.writer = WalWriter(WAL, self.access, new_nonce, Events())
        self.merger = WalMerger(
            self.access, self.writer, self.is_needed, new_nonce, lambda: self.now, lambda: history_ms
        )

    def is_needed(self, run):
        return (run.topic_id, run.partition) in self.needed

    def ship(self, count, partition=0):
        for _ in range(count):
            number = self.writer.next_number
            self.writer.ship([run_at(number, number, partition=partition)])

    def keys(self, folder):
        return sorted(one for one in self.store.objects if one.startswith(f"{folder}/"))

    def offsets(self, place=PLACE):
        index = in_full(index_of(access_to(self.store), WAL, self.writer.safe_end, {place: [0]}))
        return [one.run.base_offset for one in index.get((place, 0), ())]


@pytest.fixture
def world():
    return World()


def test_nothing_is_merged_before_there_is_enough(world):
    world.merger.look()
    world.ship(LEAST_NUMBERS - 1)
    world.merger.look()
    world.now = MOST_SECONDS + 1
    world.merger.look()
    assert (world.merger.unmerged_count, world.keys("merged")) == (LEAST_NUMBERS - 1, [])


def test_old_numbers_are_merged_and_removed(world):
    world.ship(LEAST_NUMBERS)
    world.merger.look()
    assert world.keys("merged") == []
    world.now = MOST_SECONDS
    world.merger.look()
    assert len(world.keys("merged")) == len(world.keys("mark")) == 1
    assert world.keys("wal") == []
    assert (world.merger.unmerged_count, world.merger.unmerged_bytes) == (0, 0)
    assert world.offsets() == list(range(LEAST_NUMBERS))


def test_what_was_merged_stays_as_long_as_a_restore_may_go_back(monkeypatch):
    monkeypatch.setattr(wal_merger, "MOST_NUMBERS", 2)
    world = World(history_ms=10_000)
    for _ in range(3):
        world.now += 4
        world.ship(2)
        world.needed = {OTHER}
        world.merger.look()
    in_full(world.merger.remove_rest())
    assert (len(world.keys("wal")), len(world.keys("mark"))) == (6, 3)
    world.now = 14
    world.merger.look()
    assert world.keys("wal") == [key(WAL.folder, number) for number in range(2, 6)]
    world.now = 22
    world.merger.look()
    assert (world.keys("wal"), world.keys("mark")) == ([], [key(WAL.marks, 2)])


def test_age_counts_from_the_oldest_number_that_is_not_merged(world):
    test_old_numbers_are_merged_and_removed(world)
    world.ship(LEAST_NUMBERS)
    world.merger.look()
    world.now += MOST_SECONDS - 1
    world.merger.look()
    assert len(world.keys("merged")) == 1
    world.now += 1
    world.merger.look()
    assert len(world.keys("merged")) == 2
    assert world.offsets() == list(range(2 * LEAST_NUMBERS))


@pytest.mark.parametrize(("bound", "value"), [("MOST_NUMBERS", 3), ("MOST_BYTES", 900)])
def test_many_numbers_or_bytes_are_merged_at_once(world, monkeypatch, bound, value):
    monkeypatch.setattr(wal_merger, bound, value)
    world.ship(2)
    world.merger.look()
    assert world.keys("merged") == []
    world.ship(1)
    world.merger.look()
    assert len(world.keys("merged")) == 1
    assert world.offsets() == [0, 1, 2]


def test_runs_that_nobody_needs_are_left_out(world, monkeypatch):
    monkeypatch.setattr(wal_merger, "MOST_NUMBERS", 2)
    world.ship(1)
    world.ship(1, partition=1)
    world.needed.remove(OTHER)
    world.merger.look()
    assert (world.offsets(), world.offsets(OTHER)) == ([0], [])


def test_a_broker_that_leaves_merges_the_rest(world):
    world.ship(LEAST_NUMBERS - 1)
    in_full(world.merger.merge_rest())
    assert world.keys("merged") == []
    world.ship(1)
    in_full(world.merger.merge_rest())
    assert (len(world.keys("merged")), len(world.keys("mark")), world.merger.unmerged_count) == (1, 1, 0)
    assert world.keys("wal") == [], "the next leaders list none of them"
    assert world.offsets() == list(range(LEAST_NUMBERS))
    world.ship(LEAST_NUMBERS)
    world.writer.is_fenced = True
    in_full(world.merger.merge_rest())
    assert len(world.keys("merged")) == 1


def test_removals_that_take_too_long_are_left_until_the_broker_has_left(world, monkeypatch):
    monkeypatch.setattr(wal_merger, "REST_REMOVED_S", 0)
    world.ship(LEAST_NUMBERS)
    in_full(world.merger.merge_rest())
    assert len(world.keys("wal")) == LEAST_NUMBERS
    in_full(world.merger.remove_rest())
    assert world.keys("wal") == []
    assert world.offsets() == list(range(LEAST_NUMBERS))


def during_a_merge(world, act):
    """Have something happen once, while a merge reads."""
    world.writer.forget(world.writer.safe_end)

    def once(_):
        world.store.before_read = lambda _: None
        act()

    world.store.before_read = once


def test_what_is_written_while_the_rest_is_merged_is_merged_too(world):
    world.ship(LEAST_NUMBERS)
    during_a_merge(world, lambda: world.ship(LEAST_NUMBERS))
    in_full(world.merger.merge_rest())
    assert world.merger.unmerged_count == 0
    assert world.offsets() == list(range(2 * LEAST_NUMBERS))
    world.merger.look()
    assert world.keys("wal") == [], "a broker that stays removes them when it looks again"


def test_the_rest_waits_for_a_merge_that_is_under_way(world, monkeypatch):
    monkeypatch.setattr(wal_merger, "MOST_NUMBERS", LEAST_NUMBERS)
    ended = []

    async def leave():
        world.ship(LEAST_NUMBERS)
        await world.merger.merge_rest()
        ended.append(world.merger.unmerged_count)

    world.ship(LEAST_NUMBERS)
    during_a_merge(world, lambda: run(leave()))
    world.merger.look()
    world.merger.look()
    assert (ended, world.keys("wal")) == ([0], [])


def test_many_small_merged_objects_become_one(world, monkeypatch):
    monkeypatch.setattr(wal_merger, "MOST_NUMBERS", 3)
    counts = []
    for _ in range(2 * MOST_SMALL + 2):
        world.ship(3)
        world.merger.look()
        counts.append(len(world.keys("merged")))
    assert counts == [*range(1, MOST_SMALL + 1), *range(1, MOST_SMALL + 1), 1, 2]
    assert world.offsets() == list(range(3 * len(counts)))
    monkeypatch.setattr(wal_merger, "SMALL_BYTES", 1)
    for _ in range(MOST_SMALL):
        world.ship(3)
        world.merger.look()
    assert len(world.keys("merged")) == MOST_SMALL + 2, "large ones stay"


def test_what_is_in_memory_is_not_read_again(world, monkeypatch):
    monkeypatch.setattr(wal_merger, "MOST_NUMBERS", 3)
    world.ship(3)
    world.merger.look()
    assert [one for one in world.store.asked if one.startswith("wal/")] == []
    assert [world.writer.kept(number) for number in range(3)] == [None] * 3
    assert world.offsets() == [0, 1, 2]


def test_one_merge_is_made_at_a_time_and_none_after_a_fence(monkeypatch):
    monkeypatch.setattr(wal_merger, "MOST_NUMBERS", 1)
    world = World(HeldStore())
    world.ship(1)
    world.store.answer(key(WAL.folder, 0))
    world.merger.look()
    (waiting,) = world.store.waiting
    world.ship(1)
    world.store.answer(key(WAL.folder, 1))
    world.merger.look()
    assert list(world.store.waiting) == [waiting]
    fenced = World()
    fenced.ship(1)
    fenced.writer.is_fenced = True
    fenced.merger.look()
    assert fenced.keys("merged") == []


@pytest.mark.parametrize("is_missing", [True, False])
def test_a_number_that_the_store_has_lost_or_altered_costs_its_own_batches(world, monkeypatch, caplog, is_missing):
    monkeypatch.setattr(wal_merger, "MOST_NUMBERS", 3)
    world.ship(3)
    world.writer.forget(3)
    name = key(WAL.folder, 1)
    if is_missing:
        del world.store.objects[name]
    else:
        world.store.objects[name] = world.store.objects[name][:-1]
    world.merger.look()
    assert world.offsets() == [0, 2]
    assert name in caplog.text
    assert world.access.given_up == {name}


def test_merged_objects_that_are_not_needed_any_more_go_and_thin_ones_are_merged_again(monkeypatch):
    monkeypatch.setattr(wal_merger, "MOST_NUMBERS", 4)
    world = World()
    world.ship(3)
    world.ship(1, partition=1)
    world.merger.look()
    (first,) = world.keys("merged")
    world.needed.remove(PLACE)
    world.ship(4, partition=1)
    world.merger.look()
    (second,) = world.keys("merged")
    assert first != second
    assert (world.offsets(OTHER), world.offsets()) == ([3, 4, 5, 6, 7], [])
    assert len(world.keys("mark")) == 1
    world.needed.clear()
    world.merger.look()
    assert world.keys("merged") == [second]
    world.now = MOST_SECONDS
    world.merger.look()
    assert (world.keys("merged"), len(world.keys("mark"))) == ([], 1)
    world.now = 2 * MOST_SECONDS
    world.merger.look()
    assert key(WAL.marks, 2) in world.store.objects, "nothing has changed"


def test_a_merged_object_that_cannot_be_read_stays(monkeypatch, caplog):
    monkeypatch.setattr(wal_merger, "MOST_NUMBERS", 4)
    world = World()
    world.ship(3)
    world.ship(1, partition=1)
    world.merger.look()
    (first,) = world.keys("merged")
    world.store.objects[first] = world.store.objects[first][:-1]
    world.needed.remove(PLACE)
    world.ship(4, partition=1)
    world.merger.look()
    assert first in world.keys("merged")
    assert len(world.keys("merged")) == 2
    assert "cannot be read" in caplog.text
