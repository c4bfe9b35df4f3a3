"""Closed segments come into the bucket in their order: below the high watermark, verified, in the term in which they were uploaded."""

import itertools
import random

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.base.own_thread import AtOnce
from horolog.broker.bucket import segment_meta, segment_uploader, upload_plan
from horolog.broker.bucket.covered import NOTHING, Covered
from horolog.broker.bucket.names import segments
from horolog.broker.bucket.producers_behind import ProducersAt
from horolog.broker.bucket.segment_uploader import SegmentUploader, Uploads
from horolog.broker.bucket.short_turns import MOST_IN_TURN
from horolog.broker.log.compaction import Compactor
from horolog.broker.log.producers import snapshot_file
from horolog.broker.log.segments import LOG_SUFFIX
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record
from tests.support import transactional
from tests.support.bucket_segments import filled, upload
from tests.support.log_model import NEW, NOW_MS, small_config
from tests.support.shipping import TOPIC_ID, HeldStore, ReadyStore, access_to, append, new_partition

AT_ONCE = AtOnce().run
FOLDER = segments(TOPIC_ID, 0)


class World:
    def __init__(self, store=None, partition=None, covered=NOTHING, off_loop=AT_ONCE, soon=lambda turn: turn()):
        self.store, self.uploaded, nonces = store or ReadyStore(), [], itertools.count()
        self.partition = partition or filled(random.Random(1))
        self.clock = ManualClock(NOW_MS)
        uploads = Uploads(
            self.clock,
            lambda: b"%16d" % next(nonces),
            off_loop,
            soon,
            lambda: 60_000,
            lambda _, segment: self.uploaded.append(segment),
        )
        self.uploader = SegmentUploader(access_to(self.store), uploads)
        self.uploader.keep(self.partition, covered)

    @property
    def bases(self):
        return [one.base_offset for one in self.uploaded]


def test_closed_segments_are_uploaded_one_after_the_other():
    world = World()
    storage, local = world.partition.folder.storage, world.partition.segments
    world.uploader.look()
    assert world.bases == [one.base_offset for one in local[:-1]]
    for one, segment in zip(world.uploaded, local, strict=False):
        assert world.store.objects[one.log_key] == storage.read_all(segment.files.path(LOG_SUFFIX))
        assert segment_meta.decode(world.store.objects[one.meta_key]).seal == segment.seal
    assert world.uploader.figures() == (len(local) - 1, sum(one.size_bytes for one in local), 0, 0)
    assert world.partition.ends == {}
    world.uploader.look()
    assert len(world.uploaded) == len(local) - 1


def test_thousands_of_partitions_are_looked_at_in_several_turns(monkeypatch):
    turns, asked = [], []
    world = World(soon=turns.append)
    for index in range(1, 3 * MOST_IN_TURN):
        world.uploader.keep(new_partition(index), NOTHING)
    monkeypatch.setattr(upload_plan, "next_upload", lambda partition, _: asked.append(partition))
    world.uploader.look()
    counts = [0]
    while turns:
        turns.pop()()
        counts.append(len(asked))
    assert (counts[-1], len(set(asked))) == (3 * MOST_IN_TURN, 3 * MOST_IN_TURN)
    assert max(after - before for before, after in itertools.pairwise(counts)) <= MOST_IN_TURN


def test_only_shipped_segments_are_uploaded():
    partition = new_partition()
    append(partition, 1)
    partition.roll(NOW_MS)
    append(partition, 2)
    partition.roll(NOW_MS)
    partition.shipped(1)
    world = World(partition=partition)
    world.uploader.look()
    assert world.bases == [0]
    partition.shipped(2)
    world.uploader.look()
    assert world.bases == [0, 1]


def test_it_goes_on_behind_what_the_bucket_has_with_its_producers():
    partition = new_partition()
    for number in range(4):
        partition.append(transactional.batch([b"v"], 7 + number // 2, 0, number % 2), NOW_MS, produce_version=NEW)
        partition.roll(NOW_MS)
    partition.shipped(4)
    store = ReadyStore()
    described = upload(partition, store)
    meta = segment_meta.decode(store.objects[described[1].meta_key])
    partition.ends.clear()
    world = World(store, partition, Covered(0, tuple(described[:2]), meta.producers, meta.leader_epochs, meta.batches))
    world.uploader.look()
    assert world.bases == [2, 3]
    last = segment_meta.decode(store.objects[described[-1].meta_key])
    found = segment_meta.decode(store.objects[world.uploaded[-1].meta_key])
    assert (found.producers, found.batches) == (last.producers, last.batches)


def test_producers_that_cannot_be_read_are_not_known(caplog):
    World(covered=Covered(0, (), b"damaged"))
    assert "are not known" in caplog.text


def compacted_world():
    """Six segments of one producer and one key lie in the bucket; here they have become one."""
    partition = new_partition()
    partition.configure(small_config(compact=True, min_cleanable_dirty_ratio=0.0, segment_index_bytes=10_000))
    for number in range(6):
        data = bytes(encode_batch([Record(0, NOW_MS, 0, b"k", b"v")], producer_id=7, base_sequence=number))
        partition.append(data, NOW_MS, produce_version=NEW)
        partition.roll(NOW_MS)
    partition.shipped(6)
    world = World(partition=partition)
    world.uploader.look()
    assert world.bases == list(range(6))
    storage = partition.folder.storage
    compactor = Compactor(storage, storage, ["/data"])
    task = compactor.next_pass([partition], NOW_MS, 1 << 20)
    assert compactor.finish(task, compactor.run(task), NOW_MS)
    return world


def test_a_segment_in_the_place_of_others_goes_with_the_producers_that_were_known_behind_them():
    world = compacted_world()
    world.partition.ends.clear()
    world.uploader._going[world.partition].before = ProducersAt(0)
    world.uploader.look()
    *_, last, again = world.uploaded
    assert (again.base_offset, again.next_offset, len(world.uploaded)) == (0, 6, 7)
    found, wanted = (segment_meta.decode(world.store.objects[one.meta_key]) for one in (again, last))
    assert (found.producers, found.batches) == (wanted.producers, wanted.batches)
    world.uploader.look()
    assert len(world.uploaded) == 7


def test_producers_are_found_out_from_its_batches_where_the_bucket_does_not_know_them(caplog):
    world = compacted_world()
    (wanted,) = snapshot_file.decode(segment_meta.decode(world.store.objects[world.uploaded[-1].meta_key]).producers)
    world.uploader._going[world.partition].before = ProducersAt(99)
    world.store.objects[world.uploaded[-1].meta_key] = b"damage"
    world.uploader.look()
    meta = segment_meta.decode(world.store.objects[world.uploaded[-1].meta_key])
    (found,) = snapshot_file.decode(meta.producers)
    assert (found.producer_id, found.last_sequence) == (wanted.producer_id, wanted.last_sequence) == (7, 5)
    assert "producers before offset 6 are not known" in caplog.text


def test_what_manifests_name_no_more_goes_again():
    world = World()
    world.uploader.look()
    first, *rest = world.uploaded
    world.uploader.left(world.partition, {one.log_key for one in rest})
    world.uploader.look()
    assert world.bases[len(rest) + 1 :] == [first.base_offset]
    world.uploader.drop(world.partition)
    world.uploader.left(world.partition, set())


def test_a_segment_that_is_old_and_large_enough_is_closed(monkeypatch):
    monkeypatch.setattr(segment_uploader, "LEAST_BYTES", 200)
    partition = new_partition()
    world = World(partition=partition)
    append(partition, 1)
    partition.shipped(1)
    world.clock.advance(60_000)
    world.uploader.look()
    assert len(partition.segments) == 1, "it is small"
    append(partition, 1, 1)
    partition.shipped(3)
    world.clock.set_wall_ms(NOW_MS + 59_999)
    world.uploader.look()
    assert len(partition.segments) == 1, "it is young"
    world.clock.set_wall_ms(NOW_MS + 60_000)
    partition.folder.storage.fail("create")
    world.uploader.look()
    assert len(partition.segments) == 1
    world.uploader.look()
    assert world.bases == [0]


def test_a_segment_is_closed_when_asked_for_unless_it_is_empty():
    partition = new_partition()
    world = World(partition=partition)
    world.uploader.close(partition)
    assert len(partition.segments) == 1, "it is empty"
    append(partition, 1)
    partition.shipped(1)
    world.uploader.close(partition)
    world.uploader.look()
    assert world.bases == [0]


def test_bytes_that_are_not_those_that_were_written_wait(caplog):
    world = World()
    path = world.partition.segments[0].files.path(LOG_SUFFIX)
    file = world.partition.folder.storage.open(path)
    right = file.pread(1, 100)
    file.pwritev([b"~"], 100)
    for _ in range(2):
        world.uploader.look()
    assert (world.uploaded, world.store.objects) == ([], {})
    assert caplog.text.count("could not be uploaded") == 1
    assert world.uploader.figures() == (0, 0, 1, sum(one.size_bytes for one in world.partition.segments))
    file.pwritev([right], 100)
    world.uploader.look()
    assert world.bases[0] == 0


def test_indexes_that_are_not_here_wait(monkeypatch, caplog):
    world = World()
    world.partition.segments[0].drop_indexes()
    monkeypatch.setattr("horolog.broker.log.segments.index_loading.REBUILD_AT_ONCE_BYTES", 0)
    for path in world.partition.segments[0].files.index_paths:
        world.partition.folder.storage.remove(path)
    world.uploader.look()
    assert world.uploaded == []
    assert "read again in the background" in caplog.text


@pytest.mark.parametrize("answered", range(3))
def test_an_upload_of_a_term_that_is_over_is_forgotten(answered):
    """Whichever step it has come to: the sweep finds its objects."""
    jobs = []
    world = World(HeldStore(), off_loop=lambda job, done: jobs.append((job, done)))
    world.uploader.look()
    steps = [lambda: run(jobs), lambda: world.store.answer(next(iter(world.store.waiting)))]
    for number in range(answered):
        steps[min(number, 1)]()
    world.uploader.drop(world.partition)
    world.uploader.drop(world.partition)
    run(jobs)
    while world.store.waiting:
        world.store.answer(next(iter(world.store.waiting)))
    assert world.uploaded == []
    assert len(world.store.objects) == answered


def run(jobs):
    while jobs:
        job, done = jobs.pop()
        done(job())


def test_a_few_uploads_are_under_way_at_a_time():
    world, others = World(HeldStore()), [filled(random.Random(number)) for number in range(3)]
    for one in others:
        world.uploader.keep(one, NOTHING)
    for _ in range(2):
        world.uploader.look()
    assert len(world.store.waiting) == segment_uploader.AT_ONCE
    assert f"{segment_uploader.AT_ONCE} uploads are under way" in repr(world.uploader)


def test_a_look_that_asks_for_more_at_a_time_has_them_until_none_waits_for_that():
    world, others = World(HeldStore()), [filled(random.Random(number)) for number in range(5)]
    for one in others:
        world.uploader.keep(one, NOTHING)
    for at_once in (segment_uploader.AT_ONCE + 1, segment_uploader.AT_ONCE):
        world.uploader.look(at_once)
        assert len(world.store.waiting) == segment_uploader.AT_ONCE + 1
    while world.store.waiting:
        world.store.answer(next(iter(world.store.waiting)))
    for one in (world.partition, *others):
        append(one, 7)
        one.roll(NOW_MS)
        one.shipped(one.log_end_offset)
    world.uploader.look()
    assert len(world.store.waiting) == segment_uploader.AT_ONCE


def test_one_look_is_enough_for_the_segments_of_all_partitions():
    world, others = World(HeldStore()), [filled(random.Random(number)) for number in range(3)]
    for one in others:
        world.uploader.keep(one, NOTHING)
    world.uploader.look()
    while world.store.waiting:
        assert len(world.store.waiting) <= segment_uploader.AT_ONCE
        world.store.answer(next(iter(world.store.waiting)))
    assert len(world.uploaded) == sum(len(one.segments) - 1 for one in (world.partition, *others))
