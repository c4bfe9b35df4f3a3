"""A segment's files and index entries, as the brokers of each era write them."""

import itertools
import random
import struct
from dataclasses import replace

import pytest

from horolog.broker.log.counters import LogCounters
from horolog.broker.log.indexes import IndexCache
from horolog.broker.log.integrity import Contents, IndexSum, Known, fingerprint
from horolog.broker.log.segments import Segment, SegmentFolder, segment_for
from horolog.broker.log.storage import MemoryStorage, StorageFault
from horolog.broker.log.validation import check
from tests.support.log_model import NEW, NOW_MS, OLD, encode, small_config

CONFIG = small_config(index_interval_bytes=100, segment_index_bytes=1000)


@pytest.fixture
def folder():
    storage = MemoryStorage(lambda: NOW_MS * 1_000_000)
    storage.make_dir("/d")
    return SegmentFolder(storage, "/d", IndexCache(), LogCounters())


def append(segment, magic, timestamps, codec=0, size=40, config=CONFIG):
    data = encode(magic, codec, timestamps, [random.Random(1).randbytes(size)] * len(timestamps))
    version = NEW if magic == 2 else OLD
    checked = check(data, segment.next_offset, config, NOW_MS, produce_version=version, leader_epoch=0)
    segment.append(checked)
    return checked


def offset_entries(segment):
    return list(struct.iter_unpack(">ii", segment.indexes()[0].entries))


def time_entries(segment):
    return list(struct.iter_unpack(">qi", segment.indexes()[1].entries))


def test_the_first_append_of_a_segment_never_gets_an_entry(folder):
    """Finding 1, with an interval of 0."""
    segment = Segment.create(folder, 0, small_config(index_interval_bytes=0), NOW_MS)
    append(segment, 2, [5])
    assert offset_entries(segment) == []
    append(segment, 2, [6])
    assert len(offset_entries(segment)) == 1


def test_an_entry_needs_more_than_the_interval(folder):
    first = len(encode(2, 0, [5], [b"v" * 40]))
    for interval, entries in ((first, 0), (first - 1, 1)):
        segment = Segment.create(folder, 0, small_config(index_interval_bytes=interval), NOW_MS)
        append(segment, 2, [5])
        append(segment, 2, [6])
        assert len(offset_entries(segment)) == entries


@pytest.mark.parametrize(("magic", "codec", "named"), [(2, 0, 3), (2, 1, 3), (1, 1, 1), (1, 0, 1)])
def test_an_entry_names_the_last_offset_of_a_batch_or_the_first_of_a_set(folder, magic, codec, named):
    """Finding 4."""
    segment = Segment.create(folder, 100, CONFIG, NOW_MS)
    append(segment, magic, [5], codec, size=150)
    first = segment.end_bytes
    append(segment, magic, [8, 9, 10], codec, size=5)
    assert offset_entries(segment)[0] == (named, first)


@pytest.mark.parametrize(("magic", "codec", "holder"), [(2, 0, 3), (1, 0, 2), (1, 1, 3)])
def test_a_time_entry_holds_the_largest_so_far_and_where_it_is(folder, magic, codec, holder):
    """Findings 2 and 3: the batch being appended counts; the record itself in a plain set, else the last offset."""
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    append(segment, magic, [5], codec, size=150)
    append(segment, magic, [3, 9, 1], codec, size=5)
    assert time_entries(segment)[0] == (9, holder)


def test_a_time_entry_is_left_out_unless_it_is_later(folder):
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    for timestamp in (50, 60, 10, 20, 30):
        append(segment, 2, [timestamp], size=60)
    assert len(offset_entries(segment)) == 4
    assert time_entries(segment) == [(60, 1)]


def test_records_without_a_time_add_no_time_entry(folder):
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    for _ in range(4):
        append(segment, 1, [-1], size=120)
    segment.flush()
    segment.complete()
    assert offset_entries(segment)
    assert time_entries(segment) == []


def test_one_large_append_gets_entries_inside(folder):
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    append(segment, 1, list(range(100)), size=40)
    entries = offset_entries(segment)
    assert len(entries) > 10
    positions = [position for _, position in entries]
    steps = [b - a for a, b in itertools.pairwise(positions)]
    assert max(steps) < 400
    segment.flush()
    for offset, position in entries:
        assert struct.unpack(">q", segment.log.pread(8, position))[0] == offset


def test_completing_adds_the_closing_entry_and_cuts_the_files(folder):
    """Finding 5, and the preallocation of finding 6."""
    storage = folder.storage
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    assert storage.stat(segment.path(".index"))[0] == 1000
    assert storage.stat(segment.path(".timeindex"))[0] == 996
    for timestamp in (5, 6, 7):
        append(segment, 2, [timestamp], size=10)
    append(segment, 2, [8], size=10)
    segment.flush()
    before = time_entries(segment)
    seal = segment.complete()
    assert time_entries(segment) == [*before, (8, 3)]
    assert storage.stat(segment.path(".timeindex"))[0] == seal.time_index.size_bytes == 12 * len(time_entries(segment))
    assert storage.stat(segment.path(".index"))[0] == seal.offset_index.size_bytes == 8 * len(offset_entries(segment))
    assert seal.contents == segment.contents
    assert seal.fingerprint == fingerprint(segment.log, segment.size_bytes)


def test_a_reopened_segment_keeps_its_entries_and_grows_again(folder):
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    for timestamp in (5, 6, 7):
        append(segment, 2, [timestamp])
    segment.flush()
    seal = segment.complete()
    again = Segment(folder, 0, seal.contents, CONFIG, NOW_MS, seal=seal)
    again.prepare_to_append()
    assert again.seal is None
    assert folder.storage.stat(again.path(".index"))[0] == 1000
    assert (offset_entries(again), time_entries(again)) == (offset_entries(segment), time_entries(segment))
    append(again, 2, [9])
    append(again, 2, [10])
    again.flush()
    again.complete()
    assert time_entries(again)[-1] == (10, 4)
    assert again.max_timestamp == 10


def test_a_full_index_says_so(folder):
    config = small_config(index_interval_bytes=0, segment_index_bytes=96)
    segment = Segment.create(folder, 0, config, NOW_MS)
    count = 0
    while not segment.index_is_full:
        append(segment, 2, [count], size=5)
        count += 1
    assert count == 8, "finding 9: 7 of 8 time entries, and the first append has none"


def test_a_preallocated_log_is_cut_when_it_is_complete(folder):
    segment = Segment.create(folder, 0, small_config(preallocate=True), NOW_MS)
    assert folder.storage.stat(segment.path(".log"))[0] == 1200
    append(segment, 2, [5])
    segment.flush()
    segment.complete()
    assert folder.storage.stat(segment.path(".log"))[0] == segment.size_bytes < 1200


def test_rolling_back_returns_to_the_last_flush_in_every_respect(folder):
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    for timestamp in (5, 6, 7):
        append(segment, 2, [timestamp])
    segment.flush()

    def state():
        return (
            segment.contents,
            segment.end_bytes,
            segment.bytes_since_entry,
            offset_entries(segment),
            time_entries(segment),
        )

    before, size = state(), folder.storage.stat(segment.path(".log"))
    for fault in ("/00000000000000000000.log", ".index", ".timeindex"):
        append(segment, 1, list(range(90, 140)))
        assert state() != before
        folder.storage.fail("write", fault, torn_bytes=30)
        with pytest.raises(StorageFault):
            segment.flush()
        segment.roll_back()
        assert state() == before
        assert folder.storage.stat(segment.path(".log")) == size
    append(segment, 2, [8])
    segment.flush()
    segment.complete()
    assert segment.rebuild_indexes()
    assert segment.next_offset == 4


def test_a_segment_without_a_flush_rolls_back_to_nothing(folder):
    segment = Segment.create(folder, 7, CONFIG, NOW_MS)
    append(segment, 2, [5])
    segment.roll_back()
    assert segment.contents == Contents(0, 7)


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", [0, 1])
def test_what_is_rebuilt_from_the_log_is_what_was_written(folder, magic, codec):
    """For appends of one batch or set each; where several messages came in one append the log does not tell that."""
    config = small_config(index_interval_bytes=100, segment_index_bytes=1000, stored_magic=magic)
    segment = Segment.create(folder, 50, config, NOW_MS)
    for timestamp in (5, 9, 3, 12, 12, 11, 40):
        times = [timestamp, timestamp - 1] if codec or magic == 2 else [timestamp]
        append(segment, magic, times, codec, config=config)
    segment.flush()
    seal = segment.complete()
    before = (segment.contents, offset_entries(segment), time_entries(segment))
    again = Segment(folder, 50, Contents(0, 50), config, NOW_MS)
    again.recover(seal.contents.size_bytes, Known(50, 1 << 31), cut_tail=True)
    assert again.complete().contents == seal.contents
    assert (again.contents, offset_entries(again), time_entries(again)) == before


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("change", ["remove", "empty", "zeros", "shorter", "other"])
def test_an_index_file_that_is_not_the_sealed_one_is_made_anew(folder, suffix, change):
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    for timestamp in (5, 6, 7, 8):
        append(segment, 2, [timestamp], size=60)
    segment.flush()
    seal = segment.complete()
    good = folder.storage.read_all(segment.path(suffix))
    bad = {
        "empty": b"",
        "zeros": bytes(len(good)),
        "shorter": good[:-4],
        "other": good[:-1] + b"\x7f",
    }
    if change == "remove":
        folder.storage.remove(segment.path(suffix))
    else:
        folder.storage.create(segment.path(suffix)).pwritev([bad[change]], 0)
    again = Segment(folder, 0, seal.contents, CONFIG, NOW_MS, seal=seal)
    assert (offset_entries(again), time_entries(again)) == (offset_entries(segment), time_entries(segment))
    assert folder.counters.indexes_rebuilt.value == 1
    assert folder.storage.read_all(again.path(suffix)) == good


def test_an_index_that_was_sealed_out_of_order_is_made_anew(folder):
    """Whoever sealed it so, look-ups in it would go astray."""
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    for timestamp in (5, 6, 7, 8):
        append(segment, 2, [timestamp], size=60)
    segment.flush()
    seal = segment.complete()
    good = folder.storage.read_all(segment.path(".index"))
    bad = good[:-16] + good[-8:] + good[-16:-8]
    folder.storage.create(segment.path(".index")).pwritev([bad], 0)
    again = Segment(folder, 0, seal.contents, CONFIG, NOW_MS, seal=replace(seal, offset_index=IndexSum.of(bad)))
    assert offset_entries(again) == offset_entries(segment)
    assert folder.counters.indexes_rebuilt.value == 1


def test_offsets_that_the_segment_has_are_not_appended_again(folder):
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    appended = append(segment, 2, [5])
    with pytest.raises(AssertionError, match="got offset 0"):
        segment.append(appended)


@pytest.mark.parametrize("behind", [bytes(4096), b"\x7f" * 12])
@pytest.mark.parametrize("can_be_cut", [True, False])
def test_what_follows_the_sealed_entries_of_an_index_file_is_cut_off(folder, behind, can_be_cut):
    """Room for appends that a kill has left, or somebody's bytes: no reason to read the log again."""
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    for timestamp in (5, 6, 7, 8):
        append(segment, 2, [timestamp], size=60)
    segment.flush()
    seal = segment.complete()
    good = {suffix: folder.storage.read_all(segment.path(suffix)) for suffix in (".index", ".timeindex")}
    for suffix, entries in good.items():
        folder.storage.open(segment.path(suffix)).pwritev([entries + behind], 0)
    if not can_be_cut:
        folder.storage.fail("truncate", ".index")
        folder.storage.fail("truncate", ".timeindex")
    again = Segment(folder, 0, seal.contents, CONFIG, NOW_MS, seal=seal)
    assert (offset_entries(again), time_entries(again)) == (offset_entries(segment), time_entries(segment))
    assert folder.counters.indexes_rebuilt.value == 0
    for suffix, entries in good.items():
        left = entries if can_be_cut else entries + behind
        assert folder.storage.read_all(again.path(suffix)) == left


def test_good_index_files_are_believed_and_dropped_from_memory(folder):
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    for timestamp in (5, 6, 7, 8):
        append(segment, 2, [timestamp], size=60)
    segment.flush()
    seal = segment.complete()
    again = Segment(folder, 0, seal.contents, CONFIG, NOW_MS, seal=seal)
    assert again.index_bytes == 0
    again.indexes()
    assert again.index_bytes == seal.offset_index.size_bytes + seal.time_index.size_bytes
    again.drop_indexes()
    assert (offset_entries(again), folder.counters.indexes_rebuilt.value) == (offset_entries(segment), 0)


def test_a_segment_taken_out_of_use_is_renamed_and_removed(folder):
    segment = Segment.create(folder, 3, CONFIG, NOW_MS)
    segment.removed = True
    segment.rename(".deleted")
    assert sorted(folder.storage.list_dir("/d")) == [
        f"{3:020d}.index.deleted",
        f"{3:020d}.log.deleted",
        f"{3:020d}.timeindex.deleted",
    ]
    segment.datasync()
    segment.remove_files()
    assert folder.storage.list_dir("/d") == []


def test_only_complete_segments_sync_their_indexes(folder):
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    append(segment, 2, [5])
    segment.flush()
    segment.datasync()
    assert folder.storage.operations["sync"] == 1
    segment.complete()
    segment.datasync()
    assert folder.storage.operations["sync"] == 4


def test_the_segment_for_an_offset_is_the_last_that_begins_before(folder):
    segments = [Segment(folder, base, Contents(0, base), CONFIG, NOW_MS) for base in (5, 9, 20)]
    assert [segment_for(segments, offset) for offset in (0, 5, 8, 9, 19, 20, 99)] == [0, 0, 0, 1, 1, 2, 2]
