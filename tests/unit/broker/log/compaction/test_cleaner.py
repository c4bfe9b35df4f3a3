"""Compaction of whole folders: as real brokers did it, and what must hold when things go wrong."""

import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest

from horolog.broker.config.settings import load
from horolog.broker.config.topic_settings import resolve
from horolog.broker.log.compaction.clean_batch import CleanedBatch
from horolog.broker.log.compaction.cleaner import CleaningRefused, CleaningStopped, _append, clean
from horolog.broker.log.compaction.offset_map import BYTES_PER_KEY
from horolog.broker.log.counters import LogCounters
from horolog.broker.log.indexes import IndexCache
from horolog.broker.log.integrity import seals
from horolog.broker.log.segments import Segment, SegmentFolder
from horolog.broker.log.storage import MemoryStorage, RealStorage, StorageFault
from horolog.protocol.records.batch import encode_batch, read_header
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.control import Marker, encode_marker
from horolog.protocol.records.message_set import encode_message, encode_set, encode_wrapper
from horolog.protocol.records.record import Record
from tests.support.compaction import Folder, load_aborted
from tests.support.golden import Case

NOW = 1_700_000_000_000
DAY = 86_400_000
HORIZON_BIT = 0x40
CONFIG = replace(
    resolve({"cleanup.policy": "compact"}, load(None, {}, {})[0]),
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=DAY,
    segment_bytes=10_000,
)


@pytest.fixture
def folder():
    storage = MemoryStorage()
    storage.make_dir("/p")
    return Folder(storage, "/p", CONFIG)


def record(offset, key, value="v", timestamp=None):
    return Record(
        offset,
        NOW - 1000 + offset if timestamp is None else timestamp,
        0,
        key.encode(),
        None if value is None else value.encode(),
    )


def v2(*rows, **settings):
    return bytes(encode_batch([record(*row) for row in rows], **settings))


def transactional(*rows, pid=7, sequence=0):
    return v2(*rows, attributes=0x10, producer_id=pid, producer_epoch=0, base_sequence=sequence)


def marker(offset, *, committed, pid=7):
    return bytes(encode_marker(Marker(committed, 0), offset, NOW, producer_id=pid, producer_epoch=0, leader_epoch=0))


def live(folder):
    return [(one.offset, one.key.decode(), one.value and one.value.decode()) for one in folder.records()]


# -- as real brokers did it


def golden_folder(golden_root, name, tmp_path):
    case = Case(name, golden_root)
    directory = tmp_path / "t-0"
    shutil.copytree(case.stage("before"), directory)
    storage = RealStorage()
    settings = {key: value for key, value in case.topic_config.items() if key != "min.cleanable.dirty.ratio"}
    config = replace(resolve(settings, load(None, {}, {})[0]), min_cleanable_dirty_ratio=0.0)
    folder = Folder(storage, str(directory), config)
    for path, mtime_ms in case.mtimes_ms("before").items():
        if path.endswith(".log"):
            storage.set_mtime_ms(f"{directory}/{path}", mtime_ms)
    load_aborted(folder)
    return case, folder


@pytest.mark.parametrize("name", ["v0-compacted-none", "v1-compacted-none", "v2-compacted-txn"])
def test_uncompressed_cases_come_out_byte_for_byte(golden_root, tmp_path, name):
    case, folder = golden_folder(golden_root, name, tmp_path)
    cleaned = folder.compact(NOW)
    for part in cleaned.segments:
        stem = f"{part.base_offset:020d}"
        expected = case.files("clean")
        assert folder.storage.read_all(folder.path(part.base_offset)) == expected[f"{stem}.log"]
        assert (
            folder.storage.stat(folder.path(part.base_offset))[1] // 1_000_000 == case.mtimes_ms("clean")[f"{stem}.log"]
        )
        if f"{stem}.txnindex" in expected:
            assert folder.storage.read_all(folder.path(part.base_offset, ".txnindex")) == expected[f"{stem}.txnindex"]
    checkpoint = (case.stage("clean") / "logdir/cleaner-offset-checkpoint").read_text()
    assert f"{name} 0 {cleaned.first_dirty_offset}\n" in checkpoint


@pytest.mark.parametrize("name", ["v1-compacted-gzip", "v2-compacted-zstd"])
def test_compressed_cases_come_out_record_for_record(golden_root, tmp_path, name):
    case, folder = golden_folder(golden_root, name, tmp_path)
    expected = Folder(folder.storage, str(case.stage("clean")), folder.config)
    cleaned_at = 1795276226683 - folder.config.delete_retention_ms  # what the broker's delete horizons say
    folder.compact(cleaned_at)
    assert folder.records() == expected.records()
    for base in folder.bases():
        ours, theirs = folder.batches(base), expected.batches(base)
        assert [shape(one) for one in ours] == [shape(one) for one in theirs]
    wanted = [(one.offset, one.timestamp, one.key, one.value) for one in case.records()]
    assert [(one.offset, one.timestamp, one.key, one.value) for one in folder.records()] == wanted


def shape(batch):
    """Everything of a batch that does not depend on which library compressed it."""
    if batch.magic < 2:
        return batch.last_offset, batch.attributes, batch.max_timestamp
    return read_header(batch.data)._replace(length=0, crc=0)


def test_tombstones_of_format_v1_go_on_a_later_pass(golden_root, tmp_path):
    case, folder = golden_folder(golden_root, "v1-compacted-tombstones", tmp_path)
    first = folder.compact(NOW)
    assert first.first_dirty_offset == 53
    kept = [one.offset for one in folder.records() if one.value is None]
    assert len(kept) > 3, "the first pass keeps every tombstone that is the last of its key"
    for name, data in case.files("clean").items():
        if name.endswith(".log") and int(name[:20]) > 53:
            folder.write(int(name[:20]), data, case.mtimes_ms("clean")[name])
    folder.compact(NOW)
    expected = {name: data for name, data in case.files("clean").items() if name.endswith(".log")}
    assert {f"{base:020d}.log": folder.storage.read_all(folder.path(base)) for base in folder.bases()} == expected


# -- the rules, one by one


def test_the_last_record_of_each_key_stays(folder):
    folder.write(0, v2((0, "a"), (1, "b"), (2, "a")) + v2((3, "c")))
    folder.write(4, v2((4, "b", "new")))
    folder.write(5, b"")
    cleaned = folder.compact(NOW)
    assert live(folder) == [(2, "a", "v"), (3, "c", "v"), (4, "b", "new")]
    assert [part.replaces for part in cleaned.segments] == [(0, 4)]
    assert cleaned.first_dirty_offset == 5


def test_the_active_segment_is_neither_read_nor_changed(folder):
    folder.write(0, v2((0, "a"), (1, "b")))
    folder.write(2, v2((2, "a")))
    folder.compact(NOW)
    assert live(folder) == [(0, "a", "v"), (1, "b", "v"), (2, "a", "v")]


def test_a_batch_keeps_its_frame(folder):
    folder.write(
        0,
        v2((10, "a"), (11, "b", "x" * 99), (12, "a"), producer_id=3, producer_epoch=1, base_sequence=5, leader_epoch=4),
    )
    folder.write(13, b"")
    before = read_header(folder.batches(0)[0].data)
    folder.compact(NOW)
    after = read_header(folder.batches(0)[0].data)
    assert after._replace(crc=0, length=0, count=3, base_timestamp=before.base_timestamp) == before._replace(
        crc=0, length=0
    )
    assert (after.count, after.base_timestamp) == (2, NOW - 1000 + 11)


def test_the_largest_timestamp_is_computed_again(folder):
    folder.write(0, v2((0, "a", "v", NOW), (1, "b", "v", 5), (2, "a", "v", 7)))
    folder.write(3, b"")
    seal = folder.compact(NOW).segments[0].seal
    assert read_header(folder.batches(0)[0].data).max_timestamp == 7
    assert (seal.contents.max_timestamp, seal.contents.next_offset) == (7, 3)


def test_records_without_a_key_go(folder):
    folder.write(0, encode_message(0, NOW, None, b"v", 1) + encode_message(1, NOW, b"k", b"v", 1))
    folder.write(2, b"")
    folder.compact(NOW)
    assert live(folder) == [(1, "k", "v")]


def test_a_tombstone_stays_until_its_horizon(folder):
    folder.write(0, v2((0, "a"), (1, "b")))
    folder.write(2, v2((2, "a", None), (3, "c")))
    folder.write(4, b"")
    folder.compact(NOW)
    header = read_header(folder.batches(0)[1].data)
    assert (header.attributes, header.base_timestamp) == (HORIZON_BIT, NOW + DAY)
    assert live(folder) == [(1, "b", "v"), (2, "a", None), (3, "c", "v")]
    assert [one.timestamp for one in folder.records()] == [NOW - 999, NOW - 998, NOW - 997]
    for when, offsets in ((NOW + DAY - 1, [1, 2, 3]), (NOW + DAY, [1, 3])):
        folder.checkpoint = None
        folder.compact(when)
        assert [one.offset for one in folder.records()] == offsets


@pytest.mark.parametrize("magic", [0, 1])
def test_old_wrappers_are_made_anew_from_what_stays(folder, magic):
    rows = [record(n, key) for n, key in enumerate("abac")]
    if not magic:
        rows = [row._replace(timestamp=-1, timestamp_type=-1) for row in rows]
    folder.write(
        0, encode_wrapper(rows, magic, Codec.GZIP) + encode_wrapper([rows[3]._replace(offset=4)], magic, Codec.GZIP)
    )
    folder.write(5, b"")
    folder.compact(NOW)
    assert [(one.offset, one.key, one.timestamp) for one in folder.records()] == [
        (row.offset, row.key, row.timestamp) for row in (rows[1], rows[2])
    ] + [(4, b"c", rows[3].timestamp)]
    assert len(folder.batches(0)) == 2


def test_what_is_left_of_a_segment_without_times_is_as_old_as_it_was(folder):
    folder.write(0, encode_set([record(0, "a", "v", -1), record(1, "b", "v", -1)], 0), mtime_ms=NOW - 9 * DAY)
    folder.write(2, encode_set([record(2, "a", "v", -1)], 0), mtime_ms=NOW - 8 * DAY)
    folder.write(3, b"")
    folder.compact(NOW)
    assert folder.storage.stat(folder.path(0))[1] // 1_000_000 == NOW - 8 * DAY


# -- producers and transactions


def test_a_producers_last_batch_leaves_its_header(folder):
    folder.write(0, v2((0, "a"), (1, "b"), producer_id=7, producer_epoch=2, base_sequence=4) + v2((2, "a"), (3, "b")))
    folder.write(4, b"")
    folder.compact(NOW, last_records={7: (1, 2)})
    empty = read_header(folder.batches(0)[0].data)
    assert (empty.count, empty.base_offset, empty.last_offset, empty.base_sequence) == (0, 0, 1, 4)
    assert (empty.producer_id, empty.producer_epoch, empty.base_timestamp, empty.max_timestamp) == (7, 2, -1, NOW - 999)
    folder.checkpoint = None
    seal = folder.compact(NOW, last_records={7: (1, 2)}).segments[0].seal
    assert len(folder.batches(0)) == 2, "and keeps it"
    assert seal.contents.first_timestamp == -1, "an empty batch carries no time"
    folder.checkpoint = None
    folder.compact(NOW, last_records={7: (99, 2)})
    assert len(folder.batches(0)) == 1, "until there is a later one"


def aborted_history(folder):
    folder.write(0, transactional((0, "a", "old")) + marker(1, committed=True))
    folder.write(2, transactional((2, "a", "aborted"), sequence=1) + marker(3, committed=False))
    folder.write(4, b"")
    folder.aborted = [folder_abort(7, 2, 3)]


def folder_abort(pid, first, last):
    from horolog.broker.log.indexes import AbortedTransaction

    return AbortedTransaction(pid, first, last, last + 1)


def test_aborted_records_go_and_supersede_nothing(folder):
    aborted_history(folder)
    folder.compact(NOW)
    assert live(folder) == [(0, "a", "old")]
    assert folder.aborted == [folder_abort(7, 2, 3)], "its marker is still there"


def test_a_marker_gets_a_horizon_when_its_records_are_gone_and_goes_when_it_has_passed(folder):
    aborted_history(folder)
    folder.compact(NOW)
    ends = []
    for when in (NOW + 1, NOW + DAY, NOW + 1 + DAY):
        folder.checkpoint = None
        folder.compact(when)
        ends.append(
            [(one.last_offset, bool(one.attributes & HORIZON_BIT)) for one in folder.batches(0) if one.is_control]
        )
    assert ends == [[(1, False), (3, True)], [(1, False), (3, True)], [(1, False)]]
    assert folder.aborted == []


def test_an_expired_marker_that_holds_a_producers_epoch_leaves_its_header(folder):
    folder.write(0, marker(0, committed=True) + v2((1, "k")))
    folder.write(2, b"")
    folder.compact(NOW)
    for last_records, left in (({7: (-1, 0)}, 2), ({7: (-1, 1)}, 1)):
        folder.checkpoint = None
        folder.compact(NOW + DAY, last_records=last_records)
        assert len(folder.batches(0)) == left


# -- bounds and faults


def test_a_full_map_ends_the_pass_and_the_next_one_goes_on(folder):
    for n in range(6):
        folder.write(2 * n, v2((2 * n, f"key-{n}"), (2 * n + 1, f"key-{n % 3}")))
    folder.write(12, b"")
    model = {one.key: one for one in folder.records()}
    rounds = 0
    while folder.checkpoint is None or folder.checkpoint < 12:
        before = folder.checkpoint or 0
        folder.compact(NOW, memory_bytes=2 * BYTES_PER_KEY)
        assert folder.checkpoint > before
        assert {one.key: one for one in folder.records()} == model
        rounds += 1
    assert rounds > 1
    assert len(folder.records()) == len(model)


def files(folder):
    return sorted(folder.storage.list_dir(folder.directory))


@pytest.mark.parametrize("position", [0, 30, 100])
def test_a_damaged_segment_is_refused_and_nothing_is_left_behind(folder, position):
    data = bytearray(v2((0, "a")) + v2((1, "a")))
    data[position] ^= 1
    folder.write(0, v2((0, "x"))[:0] + bytes(data))
    folder.write(2, b"")
    before = files(folder)
    inputs = folder_inputs_without_scan(folder)
    with pytest.raises(CleaningRefused, match="damaged"):
        folder.clean(inputs)
    assert files(folder) == before


def folder_inputs_without_scan(folder):
    healthy = Folder(MemoryStorage(), "/p", CONFIG)
    healthy.storage.make_dir("/p")
    healthy.write(0, v2((0, "a")) + v2((1, "a")))
    healthy.write(2, b"")
    return healthy.inputs(NOW)


@pytest.mark.parametrize("operation", ["read", "write", "sync", "create"])
def test_a_failing_disk_leaves_the_old_segments_alone(folder, operation):
    folder.write(0, v2((0, "a"), (1, "a")))
    folder.write(2, b"")
    inputs = folder.inputs(NOW)
    before = files(folder)
    folder.storage.fail(operation, "0.log", times=1)
    with pytest.raises(StorageFault):
        folder.clean(inputs)
    assert files(folder) == before


def test_stops_when_asked_to(folder):
    folder.write(0, v2((0, "a"), (1, "a")))
    folder.write(2, b"")
    before = files(folder)
    asked = iter([False, True])
    with pytest.raises(CleaningStopped):
        clean(folder.inputs(NOW), SegmentFolder(folder.storage, "/p", IndexCache(), LogCounters()), lambda: next(asked))
    assert files(folder) == before


def test_the_seal_fits_the_files(folder):
    folder.write(0, b"".join(v2((n, f"key-{n}", "x" * 500)) for n in range(15)))
    folder.write(15, b"")
    (part,) = folder.compact(NOW).segments
    storage, seal = folder.storage, part.seal
    log = storage.read_all(folder.path(0))
    assert (seal.contents.size_bytes, seal.modified_ns) == storage.stat(folder.path(0))
    assert seal.fingerprint == seals.fingerprint(storage.open(folder.path(0)), len(log))
    for summed, suffix in ((seal.offset_index, ".index"), (seal.time_index, ".timeindex")):
        entries = storage.read_all(folder.path(0, suffix))
        assert entries
        assert summed == seals.IndexSum.of(entries)


def test_the_remains_of_batches_keep_their_order(folder):
    target = Segment.create(
        SegmentFolder(folder.storage, folder.directory, IndexCache(), LogCounters()),
        0,
        folder.config,
        0,
        suffix=".cleaned",
    )
    target.next_offset = 9
    with pytest.raises(AssertionError, match="got CleanedBatch"):
        _append(target, CleanedBatch(b"", 0, 8, 8), SimpleNamespace(magic=2, last_offset=8))
