"""The segments of one leader, from their upload to their removal."""

import itertools
import random

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.bucket import manifest_pages
from horolog.broker.bucket.covered import NOTHING
from horolog.broker.bucket.led_segments import REMOVALS_AT_ONCE, SWEEPS_EVERY_S, TRIES_AGAIN_S, LedSegments, SegmentCare
from horolog.broker.bucket.manifest import decode
from horolog.broker.bucket.manifest_reader import StoredManifests
from horolog.broker.bucket.names import SegmentName, Wal, segments
from horolog.broker.bucket.remote_front import RemoteFront
from horolog.broker.bucket.seams import Opening, Stretch
from horolog.broker.bucket.store_access import StoreAccess
from horolog.stores.faults import StoreRefusal
from tests.support.bucket_segments import CountingStore, Reader, filled
from tests.support.log_model import NOW_MS
from tests.support.shipping import TOPIC_ID, access_to, in_full


class DatedStore(CountingStore):
    """All of its objects were written at one moment."""

    modified_ms = 0

    def list(self, prefix, done, limit=None):
        dated = lambda found: done([one._replace(last_modified_ms=self.modified_ms) for one in found])  # noqa: E731
        super().list(prefix, dated, limit)


class World:
    def __init__(self, history_ms=0):
        self.store, self.partition, self.room_bytes = DatedStore(), filled(random.Random(1)), 1 << 30
        self.partition.have_front(RemoteFront(Reader(self.store).metas))
        self.clock, nonces = ManualClock(NOW_MS), itertools.count()
        care = SegmentCare(delete_delay_ms=lambda: 1_000, history_ms=lambda: history_ms)
        self.led = LedSegments(
            StoreAccess(self.store, lambda seconds, done: None),
            self.clock,
            lambda: b"%16d" % next(nonces),
            care,
            lambda: self.room_bytes,
            lambda turn: turn(),
        )
        self.led.keep(self.partition, NOTHING)

    def keys(self, folder):
        return [one for one in self.store.objects if one.startswith(f"{folder}/")]


def test_segments_are_uploaded_named_evicted_and_removed():
    world = World()
    world.led.look()
    count = len(world.partition.segments) - 1
    newest = decode(world.store.objects[max(world.keys("manifest"))])
    assert (len(newest.segments), len(world.keys("data"))) == (count, 2 * count)
    assert world.partition.front.end_offset == 0
    world.room_bytes = 0
    world.led.look()
    assert world.partition.front.end_offset == world.partition.high_watermark
    moved = []
    world.led.move_start(world.partition, newest.segments[1].next_offset, moved.append)
    world.led.look()
    assert (moved, len(world.keys("data"))) == ([True], 2 * count)
    world.clock.advance(1_000)
    world.led.look()
    assert len(world.keys("data")) == 2 * count - 4


def test_what_is_not_led_here_any_more_is_left_alone():
    for leave in (LedSegments.drop, LedSegments.remove):
        world = World()
        leave(world.led, world.partition)
        world.led.look()
        assert world.store.objects == {}
        assert "0 partitions" in repr(world.led)


@pytest.mark.parametrize("history_ms", [0, 86_400_000])
def test_objects_of_a_few_deleted_partitions_are_removed_at_a_time(history_ms):
    world, lists = World(history_ms), []
    world.store.list = lambda prefix, done, limit=None: lists.append(done)
    for index in range(100):
        world.led.remove_objects((TOPIC_ID, index))
    asked = 0
    while lists:
        assert len(lists) <= REMOVALS_AT_ONCE
        asked += 1
        lists.pop()([])
    assert asked == 200, "manifests and segments of each"


def test_a_partition_that_goes_while_its_folder_is_swept_is_swept_no_more():
    world, lists = World(), []
    world.store.list = lambda prefix, done, limit=None: lists.append(done)
    world.clock.advance(1_000)
    world.led.look()
    world.led.drop(world.partition)
    lists.pop()([])
    world.clock.advance(int(1_000 * SWEEPS_EVERY_S))
    world.led.look()
    assert lists == []


def test_what_an_upload_that_died_has_left_is_swept_once_a_manifest_is_of_this_epoch():
    world = World()
    world.led.uploader.drop(world.partition)  # so that nothing is uploaded
    old = SegmentName(0, 0, b"x" * 16).log_key(segments(TOPIC_ID, 0))
    later = SegmentName(9, 0, b"x" * 16).log_key(segments(TOPIC_ID, 0))
    world.store.objects |= {old: b"", later: b""}
    world.led.look()
    assert world.keys("manifest") == []
    world.clock.advance(1_000)
    world.led.look()
    assert (old in world.store.objects, len(world.keys("manifest"))) == (True, 1)
    world.clock.advance(int(1_000 * TRIES_AGAIN_S))
    world.led.look()
    assert world.keys("data") == [later]
    world.store.objects[old] = b""
    world.clock.advance(int(1_000 * SWEEPS_EVERY_S))
    world.led.drop(world.partition)
    world.led.look()
    assert old in world.store.objects, "it is not led here"


def test_a_sweep_says_how_many_objects_are_gone(caplog):
    caplog.set_level("INFO")
    world = World()
    world.led.look()
    names = [SegmentName(0, base, b"x" * 16).log_key(segments(TOPIC_ID, 0)) for base in (0, 5)]
    world.store.objects |= dict.fromkeys(names, b"")
    delete = world.store.delete
    world.store.delete = lambda name, done: done(StoreRefusal("held")) if name == names[0] else delete(name, done)
    for seconds in (1, SWEEPS_EVERY_S):
        world.clock.advance(int(1_000 * seconds))
        world.led.look()
    assert names[0] in world.store.objects
    said = [one.getMessage().partition(": ")[2] for one in caplog.records if "nothing refers to" in one.getMessage()]
    assert said == ["removed 1 object that nothing refers to"]


@pytest.mark.parametrize("leave", ["missing", "damaged"])
def test_what_a_page_names_that_the_next_leader_cannot_read_is_not_swept(leave, monkeypatch):
    monkeypatch.setattr(manifest_pages, "MOST_SEGMENTS", 1)
    monkeypatch.setattr(manifest_pages, "PAGE_SEGMENTS", 1)
    world = World()
    world.led.look()
    (page,) = [one for one in world.keys("data") if one.endswith(".page")][:1]
    if leave == "missing":
        del world.store.objects[page]
    else:
        world.store.objects[page] = b"damage"
    before = dict(world.store.objects)
    lineage = Stretch(0, Wal(1, 1), 5), Stretch(1, Wal(2, 2))
    opening = Opening("t", TOPIC_ID, 0, None, lineage)
    covered = in_full(StoredManifests(access_to(world.store)).newest(opening))
    world.led.drop(world.partition)
    world.partition.lead(1)
    world.led.keep(world.partition, covered)
    for seconds in (2, TRIES_AGAIN_S, SWEEPS_EVERY_S):
        world.clock.advance(int(1_000 * seconds))
        world.led.look()
    assert {one for one in before.keys() - world.store.objects.keys() if one.startswith("data/")} == set()
    newest = decode(world.store.objects[max(world.keys("manifest"))])
    assert (newest.epoch, newest.pages[0].name.page_key(newest.folder)) == (1, page)


def test_a_sweep_leaves_what_is_named():
    world = World()
    world.led.look()
    before = dict(world.store.objects)
    world.clock.advance(1_000)
    world.led.look()
    assert world.store.objects == before


def test_superseded_manifests_and_what_they_name_stay_for_a_while_and_no_more_of_them_than_a_restore_needs():
    day_ms = 86_400_000
    world = World(day_ms)
    world.store.modified_ms = NOW_MS
    world.led.look()
    data, manifests = world.keys("data"), len(world.keys("manifest"))
    assert manifests == 3, "the first one, the newest one, and one of a minute"
    world.led.move_start(world.partition, world.partition.high_watermark, lambda _: None)
    assert len(world.keys("manifest")) == manifests, "the one before goes at once"
    world.clock.advance(day_ms - 1_000)
    world.led.look()
    assert set(data) <= set(world.keys("data"))
    world.clock.advance(2_000)
    world.led.look()
    assert (world.keys("data"), len(world.keys("manifest"))) == ([], 2)


def test_a_sweep_keeps_what_a_restore_needs_and_removes_manifests_that_are_too_old(caplog):
    world = World(86_400_000)
    world.led.look()
    world.led.move_start(world.partition, world.partition.high_watermark, lambda _: None)
    before = dict(world.store.objects)
    old = world.led.manifests.newest(world.partition)
    lineage = Stretch(0, Wal(1, 1), 5), Stretch(1, Wal(2, 2))
    covered = in_full(StoredManifests(access_to(world.store)).newest(Opening("t", TOPIC_ID, 0, None, lineage)))
    world.led.drop(world.partition)
    world.led.removals._waiting.clear()  # another broker goes on
    world.partition.lead(1)
    world.led.keep(world.partition, covered)
    world.store.modified_ms = world.clock.wall_ms()
    for seconds in (1, TRIES_AGAIN_S):
        world.clock.advance(int(1_000 * seconds))
        world.led.look()
    assert before.keys() <= world.store.objects.keys()
    world.store.modified_ms = 0
    for seconds in (SWEEPS_EVERY_S, TRIES_AGAIN_S):
        world.clock.advance(int(1_000 * seconds))
        world.led.look()
    found = [decode(world.store.objects[one]) for one in sorted(world.keys("manifest"))]
    assert ([(one.number, one.epoch) for one in found], world.keys("data")) == ([(0, 0), (old.number + 1, 1)], [])
    world.store.objects[min(world.keys("manifest"))] = b"damage"
    world.clock.advance(int(1_000 * SWEEPS_EVERY_S))
    world.led.look()
    assert "nothing is swept, since a manifest of it cannot be read" in caplog.text
