"""A partition whose segments lie in the bucket answers as one whose segments are here, and asks the store no more than it takes."""

import random

import pytest

from horolog.broker.log.partition import lookups
from horolog.broker.log.storage import NotHere, StorageFault
from horolog.protocol.records.entries import iter_records
from tests.support.bucket_segments import CONFIG, CountingStore, Reader, filled, upload
from tests.support.log_model import NEW, NOW_MS, encode


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
        assert reader.served(lambda time=time: lookups.first_at_or_after(remote, time)) == lookups.first_at_or_after(
            local, time
        )
    assert reader.served(lambda: lookups.largest_timestamp(remote)) == lookups.largest_timestamp(local)
    assert lookups.offsets_before(remote, -1, 99, NOW_MS) == lookups.offsets_before(local, -1, 99, NOW_MS)
    assert store.gets == 2 * (len(local.segments) - 1), "one for each log, which is one block, and one for each .meta"


def test_a_look_up_costs_two_gets_then_one_then_none(store):
    local = filled(random.Random(7))
    described = upload(local, store)
    time = local.segments[1].max_timestamp
    wanted = lookups.first_at_or_after(local, time)
    reader = Reader(store)
    remote = reader.open(described, CONFIG)

    def look_up():
        return reader.served(lambda: lookups.first_at_or_after(remote, time))

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
