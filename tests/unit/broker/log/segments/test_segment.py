"""A segment's files and index entries, as the brokers of each era write them."""

import itertools
import struct
from dataclasses import replace

import pytest

from horolog.broker.log.integrity import Contents, fingerprint
from horolog.broker.log.segments import Segment, indexes_of, segment_for
from horolog.broker.log.segments import segment as segment_module
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.storage.memory_storage import MemoryFile
from tests.support.log_model import NOW_MS, encode, small_config
from tests.support.segments import CONFIG, append, completed, new_folder, offset_entries, reopened, time_entries
from tools import compiled


@pytest.fixture
def folder():
    return new_folder()


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
    assert storage.stat(segment.files.path(".index"))[0] == 1000
    assert storage.stat(segment.files.path(".timeindex"))[0] == 996
    for timestamp in (5, 6, 7):
        append(segment, 2, [timestamp], size=10)
    append(segment, 2, [8], size=10)
    segment.flush()
    before = time_entries(segment)
    seal = segment.complete()
    assert time_entries(segment) == [*before, (8, 3)]
    assert (
        storage.stat(segment.files.path(".timeindex"))[0]
        == seal.time_index.size_bytes
        == 12 * len(time_entries(segment))
    )
    assert (
        storage.stat(segment.files.path(".index"))[0]
        == seal.offset_index.size_bytes
        == 8 * len(offset_entries(segment))
    )
    assert seal.contents == segment.contents
    assert seal.fingerprint == fingerprint(segment.log, segment.size_bytes)


def test_a_reopened_segment_keeps_its_entries_and_grows_again(folder):
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    for timestamp in (5, 6, 7):
        append(segment, 2, [timestamp])
    segment.flush()
    seal = segment.complete()
    again = Segment(folder, 0, seal.contents, CONFIG, NOW_MS, seal=seal)
    again.prepare_to_append(indexes_of(again))
    assert again.seal is None
    assert folder.storage.stat(again.files.path(".index"))[0] == 1000
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
    assert folder.storage.stat(segment.files.path(".log"))[0] == 1200
    append(segment, 2, [5])
    segment.flush()
    segment.complete()
    assert folder.storage.stat(segment.files.path(".log"))[0] == segment.size_bytes < 1200


@pytest.fixture
def reserved(monkeypatch):
    """What a segment asks the file system for, which has it; logs of 1,000 bytes ask."""
    if compiled.extensions():
        pytest.skip("a constant of a compiled module cannot be replaced")
    calls = []
    monkeypatch.setattr(segment_module, "RESERVES_FROM_BYTES", 1000)
    monkeypatch.setattr(MemoryFile, "reserve", lambda _file, at, size: calls.append((at, size)) or True)
    return calls


def fill(segment, count):
    for _ in range(count):
        append(segment, 2, [5], size=100)
        segment.flush()


def test_a_log_that_grows_has_room_set_aside_in_proportion(folder, reserved):
    segment = Segment.create(folder, 0, small_config(segment_bytes=1 << 20), NOW_MS)
    fill(segment, 5)
    assert reserved == []
    fill(segment, 40)
    assert [at > 800 for at, _ in reserved] == [True] * len(reserved)
    for (at, size), (following, _) in itertools.pairwise(reserved):
        assert 800 < at < following <= at + size <= following + 200, "the next call comes when the room is used"
        assert size <= at // 8 + 400


def test_no_room_is_set_aside_behind_the_largest_size(folder, reserved):
    segment = Segment.create(folder, 0, small_config(segment_bytes=1100), NOW_MS)
    fill(segment, 6)
    assert max(at + size for at, size in reserved) <= max(1100, segment.size_bytes)


def test_a_file_system_that_cannot_set_aside_is_asked_once(folder, reserved, monkeypatch):
    monkeypatch.setattr(MemoryFile, "reserve", lambda _file, at, size: bool(reserved.append((at, size))))
    segment = Segment.create(folder, 0, small_config(segment_bytes=1 << 20), NOW_MS)
    fill(segment, 40)
    assert len(reserved) == 1


def test_what_was_set_aside_is_given_back_when_the_log_is_complete(folder, reserved, monkeypatch):
    segment = Segment.create(folder, 0, small_config(segment_bytes=1 << 20), NOW_MS)
    fill(segment, 10)
    cuts = []
    monkeypatch.setattr(MemoryFile, "truncate", lambda file, size: cuts.append((file.path, size)))
    segment.complete()
    assert (segment.log.path, segment.size_bytes) in cuts


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

    before, size = state(), folder.storage.stat(segment.files.path(".log"))
    for fault in ("/00000000000000000000.log", ".index", ".timeindex"):
        append(segment, 1, list(range(90, 140)))
        assert state() != before
        folder.storage.fail("write", fault, torn_bytes=30)
        with pytest.raises(StorageFault):
            segment.flush()
        segment.roll_back()
        assert state() == before
        assert folder.storage.stat(segment.files.path(".log")) == size
    append(segment, 2, [8])
    segment.flush()
    segment.complete()
    folder.storage.remove(segment.files.path(".index"))
    assert len(indexes_of(reopened(segment)).offsets) == 3
    assert segment.next_offset == 4


def test_a_segment_without_a_flush_rolls_back_to_nothing(folder):
    segment = Segment.create(folder, 7, CONFIG, NOW_MS)
    append(segment, 2, [5])
    segment.roll_back()
    assert segment.contents == Contents(0, 7)


def test_offsets_that_the_segment_has_are_not_appended_again(folder):
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    appended = append(segment, 2, [5])
    with pytest.raises(AssertionError, match="got offsets 0 to 0"):
        segment.append(appended)
    with pytest.raises(AssertionError, match="got offsets 1 to 0"):
        segment.append(appended._replace(first_offset=1))


def test_the_segment_for_an_offset_is_the_last_that_begins_before(folder):
    segments = [Segment(folder, base, Contents(0, base), CONFIG, NOW_MS) for base in (5, 9, 20)]
    assert [segment_for(segments, offset) for offset in (0, 5, 8, 9, 19, 20, 99)] == [0, 0, 0, 1, 1, 2, 2]


def test_what_grows_much_is_sealed_up_to_there(folder, monkeypatch):
    monkeypatch.setattr(segment_module, "PROGRESS_BYTES", 300)
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    append(segment, 2, [5], size=100)
    segment.flush()
    assert not segment.note_progress()
    append(segment, 2, [6], size=200)
    assert not segment.note_progress(), "what waits to be written is in no seal"
    segment.flush()
    assert segment.note_progress()
    assert not segment.note_progress()
    assert segment.progress.contents == segment.contents
    assert segment.sync.indexes_are_due
    assert segment.seal is None


def test_what_was_found_in_the_log_meanwhile_takes_the_place_of_what_was_known(folder):
    segment = completed(folder)
    found, number = replace(segment.seal, contents=replace(segment.contents, holes=((0, 9),))), segment.number
    segment.take_over(found)
    assert (segment.seal, segment.contents) == (found, found.contents)
    assert segment.number != number
    assert segment.index_bytes == 0
    assert segment.unverified is None


def test_whoever_comes_upon_damage_is_told_to_wait(folder):
    segment = completed(folder)
    assert "bad luck; it is read again" in str(segment.suspected("bad luck"))
    assert folder.rescan_queue.take() == ("/d", 0, "bad luck")


def test_a_segment_out_of_use_is_known_as_such_and_one_that_keeps_its_name_is_not(folder):
    segment = completed(folder)
    folder.storage.fail("rename", ".log")
    with pytest.raises(StorageFault):
        segment.retire(".deleted")
    assert not segment.removed
    segment.retire(".deleted")
    assert segment.removed
    assert folder.storage.exists("/d/00000000000000000000.log.deleted")


def test_a_segment_shows_what_it_holds(folder):
    segment = Segment.create(folder, 3, CONFIG, NOW_MS)
    assert "00000000000000000003: offsets 3 to 3, 0 bytes, largest timestamp none, open" in repr(segment)
    append(segment, 2, [5])
    assert "offsets 3 to 4, 0 bytes + " in repr(segment)
    assert "1970-01-01" in repr(segment)


def test_a_segment_that_was_closed_without_a_seal_grows_on(folder):
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    for timestamp in (5, 6):
        append(segment, 2, [timestamp], size=60)
    segment.flush()
    segment.close()
    append(segment, 2, [7], size=60)
    segment.flush()
    assert len(offset_entries(segment)) == 2
    assert segment.complete().contents.next_offset == 3


def test_a_seal_says_what_the_files_hold(folder):
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    append(segment, 2, [5])
    with pytest.raises(AssertionError, match="before all is written"):
        segment.complete()
    segment.flush()
    segment.sums.extend(b"?")
    with pytest.raises(AssertionError, match="BlockSums"):
        segment.complete()
    segment.max_timestamp -= 1
    with pytest.raises(AssertionError, match="its time index ends with 5"):
        segment.complete()
