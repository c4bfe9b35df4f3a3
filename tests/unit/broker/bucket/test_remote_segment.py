"""A segment in the bucket: what its manifest says, until its `.meta` is here, and what that adds."""

import random
from dataclasses import replace

import pytest

from horolog.broker.bucket.block_fetcher import LOST_FOR_S
from horolog.broker.bucket.manifest import Page
from horolog.broker.bucket.names import SegmentName
from horolog.broker.bucket.remote_segment import RemoteSegment
from horolog.broker.bucket.unread_pages import stand_in
from horolog.broker.log.indexes import AbortedTransaction, transaction_index
from horolog.broker.log.integrity import BLOCK_BYTES, IndexSum, RescanQueue
from horolog.broker.log.partition import DecidedHere
from horolog.broker.log.producers import snapshot_file
from horolog.broker.log.segments import indexes_of
from horolog.broker.log.storage import NotHere, StorageFault
from tests.support.bucket_segments import CountingStore, Reader, decode, filled, upload
from tests.support.log_model import small_config


@pytest.fixture
def store():
    return CountingStore()


@pytest.fixture
def reader(store):
    return Reader(store)


def first_segment(reader, store):
    described = upload(filled(random.Random(1)), store)
    remote = reader.open(described, small_config())
    return remote.segments[0], remote.front._remotes[0]


def test_it_is_known_from_the_manifest_alone(reader, store):
    segment, remote = first_segment(reader, store)
    contents = remote.described.contents
    assert (segment.next_offset, segment.size_bytes, segment.max_timestamp) == (
        contents.next_offset,
        contents.size_bytes,
        contents.max_timestamp,
    )
    assert segment.seal is not None
    assert store.gets == 0
    assert remote.described.log_key in repr(remote)


def test_its_seal_is_the_real_one_once_the_meta_object_is_here(reader, store):
    segment, remote = first_segment(reader, store)
    with pytest.raises(NotHere):
        remote.parts()
    parts = reader.served(remote.parts)
    assert (segment.seal, segment.sums.encode()) == (parts.seal, parts.seal.block_sums)
    offsets, times = reader.served(lambda: indexes_of(segment))
    assert (bytes(offsets.entries), bytes(times.entries)) == (parts.offset_index, parts.time_index)
    assert store.gets == 1
    assert remote.parts() is parts
    assert "MetaReader" in repr(reader.metas)


def test_the_log_is_not_read_before_its_sums_are_known(reader, store):
    _, remote = first_segment(reader, store)
    assert len(reader.served(lambda: remote.log.pread(50, 0))) == 50
    assert store.asked == [remote.described.meta_key, remote.described.log_key]


def test_its_aborted_transactions_and_what_is_undecided(reader, store):
    _, remote = first_segment(reader, store)
    aborted = AbortedTransaction(7, 0, 3, 4)
    state = [
        snapshot_file.SnapshotEntry(producer, 0, -1, -1, 0, 0, -1, first)
        for producer, first in ((1, -1), (2, 9), (3, 5))
    ]
    key = remote.described.meta_key
    parts, index = decode(store.objects[key]), transaction_index.encode([aborted])
    seal = replace(parts.seal, transaction_index=IndexSum.of(index))
    changed = replace(parts, seal=seal, transaction_index=index, producers=snapshot_file.encode(state))
    store.objects[key] = changed.encode()
    assert reader.served(remote.decided) == DecidedHere([aborted], 5)


def test_without_open_transactions_all_is_decided(reader, store):
    _, remote = first_segment(reader, store)
    assert reader.served(remote.decided) == DecidedHere([], None)


def test_a_walk_is_expected_between_index_entries(reader, store):
    segment, remote = first_segment(reader, store)
    assert remote.log.around(77) == (77, 78)
    offsets, _ = reader.served(lambda: indexes_of(segment))
    places = [0, *(int.from_bytes(offsets.entries[at + 4 : at + 8]) for at in range(0, len(offsets.entries), 8))]
    assert remote.log.around(places[3] + 1) == (places[2], places[5])
    assert remote.log.around(5) == (0, places[2])
    assert remote.log.around(places[-1] + 1) == (places[-2], places[-1] + 1 + BLOCK_BYTES)


def test_one_that_is_not_open_knows_its_parts_too(reader, store):
    _, remote = first_segment(reader, store)
    alone, woken = RemoteSegment(remote.described, "/x.log", reader.metas, lambda: woken.append(1)), []
    reader.served(remote.parts)
    with pytest.raises(NotHere):
        alone.parts()
    reader.loop.advance()
    assert woken == [1]
    assert alone.parts().seal.base_offset == 0
    assert store.gets == 1
    assert alone.log.around(5) == (5, 6)


def test_an_opening_finds_the_meta_object_that_is_here(reader, store):
    segment, remote = first_segment(reader, store)
    reader.served(remote.parts)
    again = RemoteSegment(remote.described, segment.log.path, reader.metas, lambda: None)
    assert again.open(segment.folder, small_config()).seal == segment.seal


def test_suspected_damage_is_not_left_to_the_workers_of_local_files(reader, store):
    segment, _ = first_segment(reader, store)
    assert isinstance(segment.folder.rescan_queue, RescanQueue)
    segment.suspected("damaged")
    assert len(reader.resources.rescan_queue) == 0


@pytest.mark.parametrize("take_out", ["a byte", "a segment"])
def test_a_meta_object_that_is_damaged_or_of_another_segment_is_not_believed(reader, store, take_out):
    segment, remote = first_segment(reader, store)
    known = segment.seal
    objects, key = store.objects, remote.described.meta_key
    if take_out == "a byte":
        objects[key] = objects[key][:-1]
    else:
        second = remote.described.log_key, next(one for one in sorted(objects) if one.endswith(".meta") and one > key)
        objects[key] = objects[second[1]]
    with pytest.raises((StorageFault, AssertionError)):
        reader.served(remote.parts)
    assert segment.seal == known


def test_one_that_stands_in_for_a_page_refuses_every_reader(reader):
    page = Page(SegmentName(3, 10, b"n" * 16), 40, 5, 99)
    alone = RemoteSegment(stand_in(page, "seg/t/0"), "/x.log", reader.metas, lambda: None)
    with pytest.raises(StorageFault, match="cannot be read"):
        alone.parts()
    (line,) = [line for _, line in alone.unreadable()]
    key = page.name.page_key("seg/t/0")
    assert line.endswith(f"offsets 10 up to 40 cannot be read: {key}, which names their segments, is lost or damaged")


def test_what_cannot_be_read_of_it_is_known_until_its_objects_are_back_or_the_log_has_removed_it(reader, store):
    segment, remote = first_segment(reader, store)
    objects, meta_key, log_key = dict(store.objects), remote.described.meta_key, remote.described.log_key
    assert list(remote.unreadable()) == []
    for key in (meta_key, log_key):
        del store.objects[key]
        with pytest.raises(StorageFault, match="does not have it"):
            reader.served(lambda: remote.log.pread(50, 0))
        ((found, line),) = remote.unreadable()
        assert found == key
        assert line.startswith(f"t-0: offsets 0 up to {remote.described.next_offset} cannot be read: {key}")
        store.objects = dict(objects)
        if key == meta_key:
            reader.loop.advance(LOST_FOR_S)
            reader.served(lambda: remote.log.sums or remote.parts())
            assert list(remote.unreadable()) == []
    segment.removed = True
    assert list(remote.unreadable()) == []
