"""Whole segments come out of the bucket as they were uploaded, or not at all."""

import random

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.bucket import segment_bringing
from horolog.broker.bucket.covered import Covered
from horolog.broker.bucket.local_copy import LocalCopy
from horolog.broker.bucket.manifest import Page
from horolog.broker.bucket.names import SegmentName, Wal, segments
from horolog.broker.bucket.seams import Opening, Stretch
from horolog.broker.bucket.segment_bringing import bring
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.unread_pages import stand_in
from horolog.broker.log.manager import LogManager
from horolog.broker.log.partition import append_marker
from horolog.protocol.records.control import Marker
from tests.support import transactional
from tests.support.bucket_segments import CountingStore, filled, upload
from tests.support.log_model import NEW, NOW_MS, encode, new_storage, read_all, small_config
from tests.support.logs import broker_settings
from tests.support.shipping import TOPIC_ID, access_to, in_full, new_partition

COMPACTED = small_config(compact=True)


class World:
    def __init__(self, local):
        self.store, self.local = CountingStore(), local
        self.segments = upload(local, self.store)
        self.logs = LogManager(["/data"], new_storage(), ManualClock(NOW_MS), broker_settings(), kind=ShippedPartition)
        opening = Opening("t", TOPIC_ID, 0, COMPACTED, (Stretch(3, Wal(3, 30)),))
        self.copy = LocalCopy(self.logs, opening, NOW_MS, Covered(0, tuple(self.segments)))

    def bring(self, segments=None, is_wanted=lambda: True):
        self.access = access_to(self.store)
        in_full(bring(self.access, self.copy, segments or self.segments, is_wanted))
        return self.copy.open(0)


@pytest.fixture
def world():
    return World(filled(random.Random(2)))


def test_all_segments_are_here_as_they_were_and_the_log_goes_on_behind_them(world):
    partition = world.bring()
    assert read_all(partition) == read_all(world.local)
    assert [one.base_offset for one in partition.segments] == [one.base_offset for one in world.local.segments]
    assert partition.log_end_offset == world.local.log_end_offset
    assert (partition.segments[-1].size_bytes, partition.unread_bases) == (0, ())


def test_a_long_one_comes_in_pieces_a_few_at_a_time():
    local = new_partition()
    local.configure(small_config(segment_bytes=1 << 30))
    for number in range(25):
        local.append(encode(2, 0, [NOW_MS], [bytes([number]) * 900_000]), NOW_MS, produce_version=NEW)
        local.flush()
    local.roll(NOW_MS)
    local.shipped(25)
    world = World(local)
    assert read_all(world.bring()) == read_all(local)
    sizes = [end - start for _, start, end in world.store.ranges]
    assert max(sizes) == segment_bringing.PIECE_BYTES
    assert sum(sizes) == sum(one.contents.size_bytes for one in world.segments)


def test_aborted_transactions_come_with_their_segment(caplog):
    local = new_partition()
    local.append(transactional.batch([b"v"], 7, 0, 0), NOW_MS, produce_version=NEW)
    local.flush()
    append_marker(local, 7, 0, Marker(False, 0), NOW_MS)
    local.sync()
    local.roll(NOW_MS)
    local.sync()
    local.shipped(local.written_end)
    world = World(local)
    partition = world.bring()
    assert partition.aborted.overlapping(0, 9) == local.aborted.overlapping(0, 9)
    assert len(partition.aborted.overlapping(0, 9)) == 1
    assert "txnindex" not in caplog.text


def damage_log(world, one):
    data = world.store.objects[one.log_key]
    world.store.objects[one.log_key] = data[:50] + b"~" + data[51:]


@pytest.mark.parametrize(
    ("hurt", "reason"),
    [
        (lambda world, one: world.store.objects.pop(one.log_key), "are missing, or not those"),
        (damage_log, "are missing, or not those"),
        (lambda world, one: world.store.objects.pop(one.meta_key), "its .meta is missing"),
        (lambda world, one: world.store.objects.update({one.meta_key: b"damage"}), "checksum"),
        (
            lambda world, one: world.store.objects.update(
                {one.meta_key: world.store.objects[world.segments[0].meta_key]}
            ),
            "belongs to another segment",
        ),
    ],
)
def test_one_that_is_not_there_as_it_was_is_left_out_with_its_place(world, caplog, hurt, reason):
    one = world.segments[1]
    hurt(world, one)
    partition = world.bring()
    assert reason in caplog.text
    wanted = [row for row in read_all(world.local) if not one.base_offset <= row[0] < one.next_offset]
    assert read_all(partition) == wanted
    assert partition.unread_bases == (one.base_offset,)
    assert world.access.given_up == {one.log_key}


def test_what_a_lost_page_names_is_left_out(world, caplog):
    first, *rest = world.segments
    name = SegmentName(0, first.base_offset, b"p" * 16)
    page = Page(name, first.next_offset, 1, first.contents.size_bytes)
    partition = world.bring([stand_in(page, segments(TOPIC_ID, 0)), *rest])
    assert "the page that names its segments cannot be read" in caplog.text
    assert partition.unread_bases == (first.base_offset,)


def test_what_is_not_wanted_any_more_is_not_read(world):
    in_full(bring(access_to(world.store), world.copy, world.segments, lambda: False))
    assert world.store.gets == 0


@pytest.mark.parametrize(("hurt", "looks_until_lost"), [(None, 100), ("log_key", 4), ("meta_key", 2)])
@pytest.mark.parametrize("looks", range(1, 6))
def test_one_that_is_given_up_while_the_store_answers_touches_no_file_afterwards(
    world, caplog, hurt, looks_until_lost, looks
):
    """Its folder is gone by then, or that of the next copy."""
    if hurt is not None:
        world.store.objects.pop(getattr(world.segments[0], hurt))
    storage, left = world.logs.resources.storage, iter(range(looks))

    def is_wanted():
        if next(left, None) is not None:
            return True
        storage.fail("create", times=1000)
        storage.fail("write", times=1000)
        storage.fail("remove", times=1000)
        return False

    in_full(bring(access_to(world.store), world.copy, world.segments, is_wanted))
    assert ("are lost" in caplog.text) is (looks >= looks_until_lost)
