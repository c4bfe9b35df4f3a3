"""The start of a partition moves once a manifest says so, whatever other leaders have made meanwhile."""

import itertools

import pytest

from horolog.broker.bucket.manifest import Manifest, decode
from horolog.broker.bucket.start_keeper import StartKeeper
from tests.support.shipping import MADE, TAKEN, TOPIC_ID, HeldStore, ReadyStore, access_to, append, new_partition

EPOCH = 5


class World:
    def __init__(self, store):
        self.store, self.moved, nonces = store, [], itertools.count()
        self.keeper = StartKeeper(access_to(store), lambda: b"%16d" % next(nonces))
        self.partition = new_partition()
        self.partition.lead(EPOCH)
        append(self.partition, *range(20))
        self.partition.shipped(20)

    def move(self, offset):
        self.keeper.move(self.partition, offset, lambda is_moved: self.moved.append((offset, is_moved)))

    @property
    def start(self):
        return self.partition.log_start_offset

    def manifests(self):
        return {decode(data).number: decode(data) for data in self.store.objects.values()}


def key_of(number):
    return Manifest(TOPIC_ID, 0, number, 0, 0, b"").key


def put(store, number, epoch, start):
    made = Manifest(TOPIC_ID, 0, number, epoch, start, b"z" * 16)
    store.objects[made.key] = made.encode()
    return made


@pytest.fixture
def world():
    world = World(ReadyStore())
    world.keeper.keep(world.partition, None)
    return world


def test_the_first_and_the_newest_manifest_of_an_epoch_stay(world):
    for offset in (3, 7, 2, 9, 11):
        world.move(offset)
    assert world.moved == [(3, True), (7, True), (2, True), (9, True), (11, True)]
    assert world.start == 11
    assert {number: one.start_offset for number, one in world.manifests().items()} == {0: 3, 3: 11}


def test_it_goes_on_from_the_newest_manifest(world):
    world.keeper.keep(world.partition, put(world.store, 4, EPOCH - 1, 2))
    world.move(8)
    assert {number: one.epoch for number, one in world.manifests().items()} == {4: EPOCH - 1, 5: EPOCH}


def test_the_start_waits_for_the_store_and_requests_share_a_manifest():
    world = World(HeldStore())
    world.keeper.keep(world.partition, None)
    for offset in (3, 9, 7):
        world.move(offset)
    assert (world.start, world.moved, list(world.store.waiting)) == (0, [], [key_of(0)])
    world.store.answer(key_of(0))
    assert (world.start, world.moved, list(world.store.waiting)) == (3, [(3, True)], [key_of(1)])
    world.store.answer(key_of(1))
    assert (world.start, world.moved[1:], list(world.store.waiting)) == (9, [(9, True), (7, True)], [])


def test_what_an_earlier_leader_has_made_is_taken_up(world):
    put(world.store, 0, EPOCH - 1, 6)
    put(world.store, 1, EPOCH - 2, 12)
    world.move(3)
    assert (world.moved, world.start) == ([(3, True)], 6)
    world.move(15)
    assert (world.moved[1:], world.start) == ([(15, True)], 15)
    assert world.manifests()[2].epoch == EPOCH


@pytest.mark.parametrize("is_readable", [True, False])
def test_a_later_leader_ends_it(world, is_readable):
    put(world.store, 0, EPOCH + 1, 6)
    if not is_readable:
        world.store.objects[key_of(0)] = b"of a later release"
    world.move(3)
    world.move(4)
    assert (world.moved, world.start) == ([(3, False), (4, False)], 0)


def test_a_partition_that_is_given_up_moves_no_more():
    world = World(HeldStore())
    world.keeper.drop(world.partition)
    world.move(1)
    world.keeper.keep(world.partition, None)
    world.move(3)
    world.keeper.drop(world.partition)
    assert world.moved == [(1, False), (3, False)]
    world.store.answer(key_of(0))
    assert (world.start, list(world.store.waiting)) == (0, [])


@pytest.mark.parametrize("answer", [MADE, TAKEN])
def test_a_manifest_that_is_under_way_when_the_topic_is_deleted_goes_too(answer):
    world, deleted = World(HeldStore()), []
    world.store.delete = lambda key, done: (deleted.append(key), done(None))
    world.keeper.remove(world.partition)
    world.keeper.keep(world.partition, None)
    world.move(3)
    if answer is TAKEN:
        put(world.store, 0, EPOCH + 1, 6)
    world.keeper.remove(world.partition)
    world.store.answer(key_of(0), answer)
    assert (deleted, world.start) == ([key_of(0)] if answer is MADE else [], 0)


def test_a_fault_of_the_local_disk_does_not_hold_the_start_back(world):
    world.partition.lead(EPOCH + 1)
    append(world.partition, 1)
    world.partition.shipped(21)
    world.partition.folder.storage.fail("write")
    world.move(20)
    assert (world.moved, world.start) == ([(20, True)], 20)
