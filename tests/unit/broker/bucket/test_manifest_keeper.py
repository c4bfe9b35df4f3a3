"""The start of a partition moves once a manifest says so, whatever other leaders have made meanwhile."""

import itertools

import pytest

from horolog.broker.bucket import manifest_pages
from horolog.broker.bucket.bucket_segment import described
from horolog.broker.bucket.covered import NOTHING, Covered
from horolog.broker.bucket.manifest import Manifest, decode
from horolog.broker.bucket.manifest_keeper import ManifestEvents, ManifestKeeper
from horolog.broker.bucket.names import SegmentName, segments
from horolog.broker.bucket.unread_pages import stand_in
from horolog.broker.log.integrity import Contents
from tests.support.shipping import MADE, TAKEN, TOPIC_ID, HeldStore, ReadyStore, access_to, append, new_partition

EPOCH = 5


class World:
    def __init__(self, store):
        self.store, self.moved, nonces = store, [], itertools.count()
        self.named, self.gone = [], []
        events = ManifestEvents(lambda _, segments: self.named.append(segments), self.gone.extend)
        self.keeper = ManifestKeeper(access_to(store), lambda: b"%16d" % next(nonces), events)
        self.partition = new_partition()
        self.partition.lead(EPOCH)
        append(self.partition, *range(20))
        self.partition.shipped(20)

    def move(self, offset):
        self.keeper.move(self.partition, offset, lambda is_moved: self.moved.append((offset, is_moved)))

    @property
    def start(self):
        return self.partition.log_start_offset

    def name(self, *segments):
        for one in segments:
            self.keeper.name(self.partition, one)

    def manifests(self):
        found = {key: data for key, data in self.store.objects.items() if key.startswith("manifest/")}
        return {decode(data).number: decode(data) for data in found.values()}

    @property
    def newest(self):
        return max(self.manifests().items())[1]


def segment(base, next_offset, epoch=EPOCH):
    name = SegmentName(epoch, base, b"%16d" % base)
    return described(segments(TOPIC_ID, 0), name, Contents(9, next_offset), 5)


def keys(*several):
    return {name for one in several for name in (one.log_key, one.meta_key)}


def key_of(number):
    return Manifest(TOPIC_ID, 0, number, 0, 0, b"").key


def put(store, number, epoch, start):
    made = Manifest(TOPIC_ID, 0, number, epoch, start, b"z" * 16)
    store.objects[made.key] = made.encode()
    return made


@pytest.fixture
def world():
    world = World(ReadyStore())
    world.keeper.keep(world.partition, NOTHING)
    return world


def test_the_first_and_the_newest_manifest_of_an_epoch_stay(world):
    for offset in (3, 7, 2, 9, 11):
        world.move(offset)
    assert world.moved == [(3, True), (7, True), (2, True), (9, True), (11, True)]
    assert world.start == 11
    assert {number: one.start_offset for number, one in world.manifests().items()} == {0: 3, 3: 11}


def test_it_goes_on_from_the_newest_manifest(world):
    world.keeper.keep(world.partition, Covered(2, manifest=put(world.store, 4, EPOCH - 1, 2)))
    world.move(8)
    assert {number: one.epoch for number, one in world.manifests().items()} == {4: EPOCH - 1, 5: EPOCH}


def test_a_new_leader_learns_what_an_earlier_one_has_made_meanwhile(world):
    assert world.keeper.newest(world.partition) is None
    found = put(world.store, 1, EPOCH - 1, 6)
    world.keeper.learn(world.partition, found)
    assert (world.start, world.keeper.newest(world.partition)) == (6, found)
    world.keeper.learn(world.partition, put(world.store, 0, EPOCH - 2, 3))
    assert world.keeper.newest(world.partition) == found
    world.move(8)
    assert world.manifests()[2].start_offset == 8
    world.keeper.drop(world.partition)
    world.keeper.learn(world.partition, put(world.store, 9, EPOCH - 1, 9))
    assert (world.start, world.keeper.newest(world.partition)) == (8, None)


def test_the_start_waits_for_the_store_and_requests_share_a_manifest():
    world = World(HeldStore())
    world.keeper.keep(world.partition, NOTHING)
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
    world.keeper.keep(world.partition, NOTHING)
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
    world.keeper.keep(world.partition, NOTHING)
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


def test_segments_are_named_and_expire_with_the_start(world):
    first, second = segment(0, 7), segment(7, 12)
    world.name(first, second)
    assert world.newest.segments == (first, second)
    assert (world.named, world.gone) == ([[first], [second]], [])
    assert world.keeper.covered_end(world.partition) == 12
    assert world.keeper.named(world.partition).keys == keys(first, second)
    world.move(7)
    assert (world.newest.segments, set(world.gone)) == ((second,), keys(first))
    world.move(15)
    assert (world.newest.segments, set(world.gone)) == ((), keys(first, second))
    assert world.keeper.covered_end(world.partition) == 15


def test_segments_and_starts_share_a_manifest():
    world = World(HeldStore())
    world.keeper.keep(world.partition, NOTHING)
    first, second, third = segment(0, 5), segment(5, 9), segment(9, 12)
    world.name(first)
    world.name(second, third)
    world.move(5)
    assert world.keeper.named(world.partition) is None
    world.store.answer(key_of(0))
    assert world.named == [[first]]
    world.store.answer(key_of(1))
    assert (world.named, world.newest.segments) == ([[first], [second, third]], (second, third))
    assert (world.start, set(world.gone), world.store.waiting) == (5, keys(first), {})


def test_segments_of_a_leader_that_was_are_replaced_once_there_are_others(world):
    old = segment(0, 8, epoch=EPOCH - 1)
    zombie = Manifest(TOPIC_ID, 0, 0, EPOCH - 1, 0, b"z" * 16, (old,))
    world.store.objects[zombie.key] = zombie.encode()
    world.name(segment(0, 6))
    assert (world.named, world.newest) == ([], zombie), "it is taken up, and has more"
    assert world.keeper.named(world.partition) is None, "none is of this epoch"
    world.name(segment(6, 10))
    assert world.newest.segments == (segment(0, 6), segment(6, 10))
    assert set(world.gone) == keys(old)


def test_a_claim_makes_one_manifest_of_the_epoch(world):
    known = Manifest(TOPIC_ID, 0, 3, EPOCH - 1, 2, b"z" * 16, (segment(2, 9, EPOCH - 1),))
    world.store.objects[known.key] = known.encode()
    world.keeper.keep(world.partition, Covered(2, known.segments, manifest=known))
    for _ in range(2):
        world.keeper.claim(world.partition)
    assert (world.newest.number, world.newest.epoch, world.newest.segments) == (4, EPOCH, known.segments)
    assert world.keeper.named(world.partition).keys == keys(*known.segments)


def test_old_segments_of_a_long_log_go_into_pages_and_leave_with_them(world, monkeypatch):
    monkeypatch.setattr(manifest_pages, "MOST_SEGMENTS", 2)
    monkeypatch.setattr(manifest_pages, "PAGE_SEGMENTS", 2)
    several = [segment(number, number + 1) for number in range(6)]
    world.name(*several)
    assert [page.segment_count for page in world.newest.pages] == [2, 2]
    pages = {page.name.page_key(world.newest.folder) for page in world.newest.pages}
    assert pages <= world.store.objects.keys()
    assert world.keeper.named(world.partition).keys == keys(*several) | pages
    world.keeper.keep(world.partition, Covered(0, tuple(several), manifest=world.newest))
    first = world.newest.pages[0].name.page_key(world.newest.folder)
    world.move(3)
    assert set(world.gone) == keys(*several[:3]) | {first}
    assert world.keeper.named(world.partition).keys == keys(*several[3:]) | (pages - set(world.gone))


def test_a_page_that_cannot_be_read_stays_with_all_that_it_may_name_until_it_expires(world, monkeypatch):
    monkeypatch.setattr(manifest_pages, "MOST_SEGMENTS", 2)
    monkeypatch.setattr(manifest_pages, "PAGE_SEGMENTS", 2)
    several = [segment(base, base + 3) for base in range(0, 9, 3)]
    world.name(*several)
    known = world.newest
    (page,) = known.pages
    unread = stand_in(page, known.folder)
    world.keeper.keep(world.partition, Covered(segments=(unread, *several[2:]), manifest=known))
    world.name(segment(9, 12))
    named = world.keeper.named(world.partition)
    page_key = page.name.page_key(known.folder)
    assert (world.newest.pages, page_key in named.keys, named.unread) == ((page,), True, [range(6)])
    assert world.gone == []
    world.move(6)
    assert (world.gone, world.newest.pages, world.keeper.named(world.partition).unread) == ([page_key], (), [])


def test_what_was_compacted_before_a_manifest_names_it_is_not_named():
    store = HeldStore()
    held = World(store)
    held.keeper.keep(held.partition, NOTHING)
    first, second = segment(0, 3), segment(3, 6)
    both = described(segments(TOPIC_ID, 0), SegmentName(EPOCH, 0, b"again".ljust(16)), Contents(9, 6), 5)
    held.name(first, second, both)
    assert (held.gone, held.keeper.ends(held.partition)) == ([], (0, 0))
    while store.waiting:
        store.answer(next(iter(store.waiting)))
    assert held.named == [[both]]
    assert set(held.gone) == keys(first), "a manifest named it; the sweep finds the other one"
    assert held.keeper.ends(held.partition) == (0, 6)


def test_what_is_not_led_here_names_nothing(world):
    world.keeper.drop(world.partition)
    world.name(segment(0, 5))
    world.keeper.claim(world.partition)
    assert (world.store.objects, world.keeper.named(world.partition)) == ({}, None)
    assert world.keeper.covered_end(world.partition) == 0
