"""A prefix looks like the data folder that it came from, and no more of it is read than readers need."""

import random
from types import SimpleNamespace

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.log.files import checkpoints, leader_epochs
from horolog.broker.log.integrity import SEALS, seals
from horolog.broker.log.partition import Resources, lookups
from horolog.broker.log.producers import producers_file, snapshot_file
from horolog.broker.log.recovery import Circumstances, PartitionFolder, open_partition
from horolog.broker.log.storage import FileMissing, NotHere, OverlayStorage, StorageFault
from horolog.broker.prefix.prefix_files import PrefixFiles, PrefixOptions
from horolog.broker.prefix.prefix_reader import PrefixReader
from horolog.broker.prefix.stored_partitions import StoredPartition
from horolog.stores.memory_store import MemoryStore
from tests.support.bucket_segments import CONFIG, filled, upload
from tests.support.log_model import NOW_MS, place, read_all
from tests.support.prefix_objects import change
from tests.support.shipping import TOPIC_ID

ROOT = "s3://bucket/prefix"
FOLDER = f"{ROOT}/t-0"
START = 3


@pytest.fixture(scope="module")
def made():
    """A partition, its segments in a bucket, and the objects there."""
    objects = SimpleNamespace(objects={})
    partition = filled(random.Random(3))
    return partition, tuple(upload(partition, objects)), objects.objects


@pytest.fixture
def segments(made):
    return made[1]


@pytest.fixture
def store(made):
    found = MemoryStore(ManualClock(0))
    for name, data in made[2].items():
        found.create(name, data)
    return found


@pytest.fixture
def files(store, segments):
    """Makes the storage."""
    partitions = [StoredPartition("t", TOPIC_ID, 0, START, segments), StoredPartition("t", TOPIC_ID, 1, 7)]
    with PrefixReader(store, 2) as reader:
        yield lambda **how: PrefixFiles(reader, ROOT, partitions, PrefixOptions(**{"least_bytes": 100} | how))


def opened(storage, index=0, start_offset=START, *, records_only=False):
    known = Circumstances(
        was_clean=True, log_start_offset=start_offset, now_ms=NOW_MS, recovery_point=0, records_only=records_only
    )
    place = PartitionFolder("t", index, f"{ROOT}/t-{index}")
    return open_partition(place, CONFIG, Resources(OverlayStorage(storage)), known)


def name_of(segment, suffix):
    return f"{FOLDER}/{segment.base_offset:020d}{suffix}"


def test_a_partition_is_opened_with_all_that_it_had(made, files):
    storage = files()
    partition, origin = opened(storage), made[0]
    assert partition.topic_id == TOPIC_ID
    assert (partition.log_start_offset, partition.log_end_offset) == (START, origin.segments[-1].base_offset)
    assert partition.epochs.entries == origin.epochs.entries
    assert [one.seal.block_sums for one in partition.segments] == [one.seal.block_sums for one in origin.segments[:-1]]
    assert not partition.folder.counters.segments_scanned.value
    assert read_all(partition) == [row for row in read_all(origin) if row[0] >= START]


def test_a_look_up_reads_the_meta_of_one_segment(made, files, segments):
    storage, origin = files(presumes=True, with_state=False), made[0]
    wanted = segments[3].contents.max_timestamp
    with pytest.raises(NotHere):
        lookups.first_at_or_after(opened(storage, records_only=True), wanted)
    partition = opened(storage, records_only=True)
    found = lookups.first_at_or_after(partition, wanted)
    assert place(found) == place(lookups.first_at_or_after(origin, wanted))
    (known,) = (one for one in segments if storage.is_known(one))
    assert known.base_offset <= found.offset < known.next_offset
    assert not partition.folder.counters.indexes_rebuilt.value


def test_a_log_is_read_in_ranges(files, segments, store):
    storage = files(presumes=True)
    segment = segments[1]
    file = storage.open(name_of(segment, ".log"))
    with pytest.raises(NotHere):
        file.pread(10, 20)
    data = store.get(segment.log_key)
    assert file.pread(10, 20) == data[20:30]
    before = dict(storage.bytes_read)
    assert file.pread(40, 60) == data[60:100]
    assert file.pread(0, 5) == b""
    assert storage.bytes_read == before, "the request brought more than was asked for"
    assert file.size() == len(data) == storage.end_of_data(file.path)
    file.close()
    assert file.pread(10, 20) == data[20:30]
    assert storage.read_all(file.path) == data
    with pytest.raises(StorageFault, match="ends 5 bytes before"):
        file.pread(10, len(data) - 5)
    change(store, segment.log_key, None)
    with pytest.raises(FileMissing, match="the object is gone"):
        file.pread(10, 200)
    assert segment.log_key in repr(file)


def test_what_is_read_at_once_is_known(files, segments):
    storage = files(presumes=True)
    storage.bring([(FOLDER, segments[0])])
    path = name_of(segments[0], ".log")
    assert storage.is_known(storage.log_at(path))
    assert storage.open(path).pread(5, 0)
    assert storage.object_path(path) == f"{ROOT}/{segments[0].log_key}"
    assert storage.segments_in(FOLDER) == segments


def test_seals_say_what_is_known(files, segments):
    presumed, whole = files(presumes=True), files()
    presumed.bring([(FOLDER, segments[0])])
    some, all_ = (seals.decode(one.read_all(f"{FOLDER}/{SEALS}")) for one in (presumed, whole))
    assert some.keys() == all_.keys()
    assert some[segments[0].base_offset] == all_[segments[0].base_offset]
    assert some[segments[1].base_offset] != all_[segments[1].base_offset]
    assert some[segments[1].base_offset].contents.next_offset == segments[1].next_offset


def test_files_of_the_whole_partition(files, segments):
    storage = files()
    end = segments[-1].next_offset
    assert leader_epochs.decode(storage.read_all(f"{FOLDER}/{checkpoints.LEADER_EPOCHS}"))
    assert snapshot_file.decode(storage.read_all(f"{FOLDER}/{snapshot_file.file_name(end)}")) == []
    assert producers_file.decode(storage.read_all(f"{FOLDER}/{producers_file.FILE_NAME}")) == []
    assert not files(with_state=False).exists(f"{FOLDER}/{producers_file.FILE_NAME}")
    starts = storage.read_all(f"{ROOT}/{checkpoints.LOG_START_OFFSETS}")
    assert checkpoints.decode_offsets(starts) == {("t", 0): START, ("t", 1): 7}


def test_a_partition_without_segments_is_empty(files):
    storage = files()
    partition = opened(storage, 1, 7)
    assert (partition.log_start_offset, partition.log_end_offset) == (7, 7)
    assert storage.open(f"{ROOT}/t-1/{7:020d}.log").size() == 0


def test_names(files, segments):
    storage = files()
    assert storage.list_dir(ROOT) == [checkpoints.LOG_START_OFFSETS, "t-0", "t-1"]
    assert storage.is_dir(ROOT)
    assert storage.is_dir(FOLDER)
    assert not storage.is_dir(f"{ROOT}/t-2")
    assert storage.exists(FOLDER)
    assert storage.exists(f"{ROOT}/{checkpoints.LOG_START_OFFSETS}")
    for name in storage.list_dir(FOLDER):
        path = f"{FOLDER}/{name}"
        assert storage.exists(path)
        file = storage.open_apart(path)
        size = storage.stat(path)[0]
        assert len(file.pread(size, 0)) == file.size() == size
    assert "t-0" in repr(storage.open(f"{FOLDER}/{SEALS}"))
    assert "2 partitions" in repr(storage)
    assert storage.disk_space(ROOT) == (0, 0)
    assert storage.now_ns() > 0
    for ask in (storage.open, storage.stat, storage.read_all, storage.list_dir):
        with pytest.raises(FileMissing):
            ask(f"{ROOT}/none/{0:020d}.log")
    with pytest.raises(StorageFault, match="it ends at"):
        storage.open(f"{FOLDER}/{SEALS}").pread(1 << 20, 0)
    with pytest.raises(StorageFault, match="only read"):
        storage.remove(name_of(segments[0], ".log"))
