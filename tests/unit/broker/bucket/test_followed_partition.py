"""A partition of another leader is what its manifest names: its closed segments, and nothing behind them."""

import random
from types import SimpleNamespace

import pytest

from horolog.broker.bucket.covered import Covered
from horolog.broker.bucket.followed_partition import FollowedPartition
from horolog.broker.bucket.remote_front import RemoteFront
from horolog.broker.log.partition import OffsetOutOfRange, Partition
from horolog.broker.log.producers import snapshot_file
from horolog.broker.log.producers.snapshot_file import SnapshotEntry
from horolog.broker.log.storage import NotHere
from horolog.protocol.records.entries import iter_records
from tests.support.bucket_segments import CONFIG, CountingStore, Reader, filled, upload

TOPIC = SimpleNamespace(name="t", id=b"t" * 16, config=CONFIG)


@pytest.fixture
def store():
    return CountingStore()


def followed(reader, covered=None, served=lambda size: None):
    partition = FollowedPartition(TOPIC, 0, RemoteFront(reader.metas), reader.resources, served)
    if covered is not None:
        partition.show(TOPIC, covered, RemoteFront(reader.metas, covered.segments))
    return partition


def values(partition, reader):
    offset, found = partition.log_start_offset, []
    while offset < partition.high_watermark:
        data = reader.served(lambda at=offset: partition.read(at, 1 << 20))
        records = [one for one in iter_records(data) if one.offset >= offset]
        found += [(one.offset, one.value) for one in records]
        offset = records[-1].offset + 1
    return found


def test_it_has_no_records_before_its_manifest_is_known(store):
    partition = followed(Reader(store))
    assert (partition.log_start_offset, partition.end_for(committed=True), partition.high_watermark) == (0, 0, 0)
    with pytest.raises(NotHere):
        partition.read(0, 1 << 20)
    assert partition.unread(0, 1 << 20, 0) is None


def test_it_reads_what_the_leader_has_written_from_the_start_on(store):
    local, counted = filled(random.Random(1)), []
    segments = tuple(upload(local, store))
    reader = Reader(store)
    partition = followed(reader, Covered(3, segments, epochs=((0, 0),)), counted.append)
    assert (partition.log_start_offset, partition.high_watermark) == (3, segments[-1].next_offset)
    found = values(partition, reader)
    assert [offset for offset, _ in found] == list(range(3, partition.high_watermark))
    assert sum(counted) >= sum(len(value) for _, value in found)
    assert partition.unread(3, 1 << 20, partition.high_watermark) is None, "files of this storage are read"
    with pytest.raises(OffsetOutOfRange):
        partition.read(2, 1 << 20)
    with pytest.raises(NotHere):
        partition.read(partition.high_watermark, 1 << 20)
    with pytest.raises(NotHere):
        partition.read(5, 1 << 20, upto=5)


def test_slices_that_stay_where_they_are_are_counted(store, monkeypatch):
    counted = []
    partition = followed(Reader(store), Covered(0, tuple(upload(filled(random.Random(1)), store))), counted.append)
    monkeypatch.setattr(Partition, "unread", lambda *_: b"slice")
    assert partition.unread(0, 1 << 20, 1) == b"slice"
    assert counted == [5]


def test_a_transaction_that_is_open_at_the_end_bounds_committed_records(store):
    segments = tuple(upload(filled(random.Random(1)), store))
    is_open = snapshot_file.encode([SnapshotEntry(7, 0, 0, 5, 0, 0, -1, 5)])
    partition = followed(Reader(store), Covered(0, segments, producers=is_open))
    assert partition.end_for(committed=True) == 5
    assert partition.end_for(committed=False) == segments[-1].next_offset
