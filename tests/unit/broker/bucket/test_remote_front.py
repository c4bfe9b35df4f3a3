"""A partition whose segments lie in the bucket answers as one whose segments are here, and asks the store no more than it takes."""

import random
from dataclasses import replace

import pytest

from horolog.broker.bucket.manifest import Page
from horolog.broker.bucket.names import SegmentName
from horolog.broker.bucket.remote_front import RemoteFront
from horolog.broker.bucket.unread_pages import stand_in
from horolog.broker.log.integrity import Contents
from horolog.broker.log.partition import append_marker, lookups
from horolog.broker.log.segments import segment_for
from horolog.broker.log.storage import NotHere, StorageFault
from horolog.protocol.records.control import Marker
from horolog.protocol.records.entries import iter_records
from tests.support import transactional
from tests.support.bucket_segments import CONFIG, CountingStore, Reader, filled, upload
from tests.support.log_model import NEW, NOW_MS, encode, place
from tests.support.shipping import new_partition


@pytest.fixture
def store():
    return CountingStore()


def rows(partition, read, upto=None):
    offset, found = partition.log_start_offset, []
    while offset < (partition.high_watermark if upto is None else upto):
        data = read(offset)
        records = [one for one in iter_records(data) if one.offset >= offset]
        found += [(one.offset, one.timestamp, one.value) for one in records]
        offset = records[-1].offset + 1
    return found


@pytest.mark.parametrize("seed", range(5))
def test_it_reads_and_looks_up_as_a_local_one(store, seed):
    chance = random.Random(seed)
    local = filled(chance)
    reader = Reader(store)
    remote = reader.open(upload(local, store), CONFIG)
    assert store.gets == 0, "opening asks for nothing"
    assert (remote.log_start_offset, remote.high_watermark) == (0, local.high_watermark)
    wanted = rows(local, lambda offset: local.read(offset, 1 << 20))
    assert rows(remote, lambda offset: reader.served(lambda: remote.read(offset, 1 << 20))) == wanted
    for _ in range(200):
        time = NOW_MS + chance.randrange(-30_000, 100_000)
        found = reader.served(lambda time=time: lookups.first_at_or_after(remote, time))
        assert place(found) == place(lookups.first_at_or_after(local, time))
    found = reader.served(lambda: lookups.largest_timestamp(remote))
    assert place(found) == place(lookups.largest_timestamp(local))
    assert lookups.offsets_before(remote, -1, 99, NOW_MS) == lookups.offsets_before(local, -1, 99, NOW_MS)
    assert store.gets == 2 * (len(local.segments) - 1), "one for each log, which is one block, and one for each .meta"


def test_a_look_up_costs_two_gets_then_one_then_none(store):
    local = filled(random.Random(7))
    described = upload(local, store)
    time = local.segments[1].max_timestamp
    wanted = place(lookups.first_at_or_after(local, time))
    reader = Reader(store)
    remote = reader.open(described, CONFIG)

    def look_up():
        return place(reader.served(lambda: lookups.first_at_or_after(remote, time)))

    assert look_up() == wanted
    assert store.gets == 2
    assert look_up() == wanted
    assert store.gets == 2
    for block in [one for one in list(reader.files._files) if one.key.endswith(".log")]:
        reader.files.drop(block)
    assert look_up() == wanted
    assert store.gets == 3


def test_what_goes_out_of_use_is_read_again(store):
    local = filled(random.Random(3))
    reader = Reader(store, limit_bytes=12_000)
    remote = reader.open(upload(local, store), CONFIG)
    wanted = rows(local, lambda offset: local.read(offset, 1 << 20))
    for _ in range(2):
        assert rows(remote, lambda offset: reader.served(lambda: remote.read(offset, 1 << 20))) == wanted
        assert reader.files.kept_bytes <= 12_000
        remote.reader.forget()
        for segment in remote.segments[:-1]:
            segment.drop_indexes()


def test_a_block_that_is_not_what_was_sealed_is_never_returned(store):
    local = filled(random.Random(4))
    described = upload(local, store)
    key = described[0].log_key
    store.objects[key] = store.objects[key][:-1] + b"x"
    reader = Reader(store)
    remote = reader.open(described, CONFIG)
    with pytest.raises(StorageFault, match="other bytes"):
        reader.served(lambda: remote.read(0, 1 << 20))


def test_a_meta_object_of_another_segment_is_not_believed(store):
    described = upload(filled(random.Random(4)), store)
    store.objects[described[0].meta_key] = store.objects[described[1].meta_key]
    store.objects[described[1].meta_key] = b"nothing"
    reader = Reader(store)
    remote = reader.open(described, CONFIG)
    for segment in described[:2]:
        with pytest.raises(StorageFault, match="other bytes"):
            reader.served(lambda offset=segment.base_offset: remote.read(offset, 1 << 20))


def test_the_log_goes_on_behind_what_lies_in_the_bucket(store):
    local = filled(random.Random(5))
    reader = Reader(store)
    remote = reader.open(upload(local, store), CONFIG)
    end = remote.written_end
    remote.append(encode(2, 0, [NOW_MS + 10**6], [b"new"]), NOW_MS, produce_version=NEW)
    remote.flush()
    remote.shipped(end + 1)
    assert remote.read(end, 1 << 20)
    assert lookups.first_at_or_after(remote, NOW_MS + 10**6).offset == end
    assert store.gets == 0


def test_a_log_that_is_opened_again_keeps_its_front(store):
    local = filled(random.Random(6))
    reader = Reader(store)
    remote = reader.open(upload(local, store), CONFIG, log_start_offset=3)
    from horolog.broker.log.recovery import Circumstances, PartitionFolder, open_readable

    known = Circumstances(was_clean=True, log_start_offset=0, now_ms=NOW_MS, recovery_point=remote.written_end)
    opened = open_readable(PartitionFolder("t", 0, remote.directory), CONFIG, reader.resources, known)
    remote.replace_log(opened)
    assert (remote.log_start_offset, len(remote.segments)) == (3, len(local.segments))
    assert reader.served(lambda: remote.read(3, 1 << 20))


def test_a_reader_is_woken_when_its_block_is_here(store):
    reader = Reader(store)
    remote = reader.open(upload(filled(random.Random(2)), store), CONFIG)
    woken = []
    remote.front.wake = lambda: woken.append(store.gets)
    for _ in range(2):
        with pytest.raises(NotHere):
            remote.read(0, 1 << 20)
        reader.loop.advance()
    assert woken == [1, 2]
    assert remote.read(0, 1 << 20)
    assert "segments" in repr(remote.front)


def test_local_segments_move_into_the_bucket_under_readers(store):
    local = filled(random.Random(9))
    wanted = rows(local, lambda offset: local.read(offset, 1 << 20))
    largest = place(lookups.largest_timestamp(local))
    described, reader = upload(local, store), Reader(store)
    local.have_front(RemoteFront(reader.metas))
    storage, before = local.folder.storage, len(local.segments)
    for number, one in enumerate(described):
        assert local.front.take(local, one, NOW_MS)
        assert not local.front.take(local, one, NOW_MS), "it is there already"
        assert local.front.end_offset == one.contents.next_offset
        offset = local.segments[number].base_offset
        assert reader.served(lambda offset=offset: local.read(offset, 1 << 20))
    assert rows(local, lambda offset: reader.served(lambda: local.read(offset, 1 << 20))) == wanted
    assert place(reader.served(lambda: lookups.largest_timestamp(local))) == largest
    assert len(local.segments) == before
    for one in local.doomed.take(NOW_MS, 0):
        one.files.remove()
    assert [one for one in storage.list_dir(local.directory) if ".log" in one] == [f"{local.written_end:020d}.log"]


def test_a_segment_that_is_not_the_local_one_does_not_move(store):
    local = filled(random.Random(9))
    first, *_, last = upload(local, store)
    front = RemoteFront(Reader(store).metas)
    other = first._replace(contents=replace(first.contents, next_offset=first.contents.next_offset + 1))
    active = last._replace(base_offset=local.written_end, contents=Contents(0, local.written_end))
    assert not front.take(local, other, NOW_MS)
    assert not front.take(local, active, NOW_MS)
    assert all(not one.removed for one in local.segments)


def test_a_segment_that_cannot_be_renamed_stays(store):
    local = filled(random.Random(9))
    first, *_ = upload(local, store)
    local.folder.storage.fail("rename")
    with pytest.raises(StorageFault):
        RemoteFront(Reader(store).metas).take(local, first, NOW_MS)
    assert local.read(0, 1 << 20)


def test_a_reader_of_committed_records_leaves_out_what_was_aborted(store):
    partition = new_partition()
    partition.configure(CONFIG)
    for number in range(60):
        records = transactional.batch([b"%d" % number * 60] * 3, 7, 0, 3 * number)
        partition.append(records, NOW_MS, produce_version=NEW)
        partition.flush()
        if number % 4 == 2:  # several batches to a transaction, over the ends of segments
            append_marker(partition, 7, 0, Marker(number % 8 == 2, 0), NOW_MS)
            partition.flush()
        partition.sync()
    partition.roll(NOW_MS)
    partition.sync()
    partition.shipped(partition.written_end)
    reader = Reader(store)
    remote = reader.open(upload(partition, store), CONFIG)
    assert len(remote.segments) > 3
    several = 0
    for offset in range(0, partition.written_end, 2):
        upto = partition.segments[segment_for(partition.segments, offset)].next_offset
        wanted = partition.aborted.overlapping(offset, upto)
        found = reader.served(lambda offset=offset: remote.aborted.overlapping(offset, remote.high_watermark))
        assert found == wanted
        several += len(found)
    assert several


def test_what_cannot_be_read_is_known_by_the_objects_that_are_lost(store):
    local, reader = filled(random.Random(3)), Reader(store)
    first, second, *rest = upload(local, store)
    name = SegmentName(0, first.base_offset, b"p" * 16)
    page = stand_in(Page(name, first.next_offset, 1, first.contents.size_bytes), "data/t/0")
    remote = reader.open([page, second, *rest], CONFIG, second.base_offset)
    assert list(remote.front.unreadable()) == [page.meta_key]
    del store.objects[second.meta_key]
    with pytest.raises(StorageFault, match="does not have it"):
        reader.served(lambda: remote.read(second.base_offset, 1 << 20))
    assert list(remote.front.unreadable()) == [page.meta_key, second.meta_key]
    remote.segments[0].removed = True
    assert list(remote.front.unreadable()) == [second.meta_key]
