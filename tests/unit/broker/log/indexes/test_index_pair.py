"""Both indexes of a segment are created, written, cut and closed together."""

import pytest

from horolog.broker.log.indexes import IndexPair
from horolog.broker.log.storage import MemoryStorage

PATHS = ("/d/x.index", "/d/x.timeindex")


@pytest.fixture
def storage():
    made = MemoryStorage(lambda: 0)
    made.make_dir("/d")
    return made


@pytest.fixture
def pair(storage):
    made = IndexPair.at(storage, PATHS, 100)
    made.create()
    return made


def sizes(storage):
    return [storage.stat(path)[0] for path in PATHS]


def test_files_have_room_for_whole_entries_until_they_are_trimmed(storage, pair):
    assert sizes(storage) == [96, 96]
    pair.append(3, 100, 5, 2)
    pair.trim()
    assert sizes(storage) == [8, 12]
    pair.preallocate()
    assert sizes(storage) == [96, 96]


def test_a_time_is_considered_with_each_offset(pair):
    pair.append(3, 100, -1, -1)
    assert (len(pair.offsets), len(pair.times)) == (1, 0)
    pair.append(5, 200, 50, 4)
    pair.append(7, 300, 50, 4)
    assert (len(pair.offsets), len(pair.times)) == (3, 1)
    assert pair.size_bytes == 3 * 8 + 12


def test_a_pair_is_full_when_one_of_the_two_is(storage):
    by_time = IndexPair.at(storage, PATHS, 24)
    assert not by_time.is_full
    by_time.append(0, 0, 5, 0)
    assert by_time.is_full, "the time index keeps room for its closing entry"
    by_offset = IndexPair.at(storage, PATHS, 24)
    for number in range(3):
        assert not by_offset.is_full
        by_offset.append(number, number, -1, -1)
    assert by_offset.is_full


def test_entries_are_flushed_cut_back_and_rewritten(storage, pair):
    pair.append(3, 100, 5, 2)
    before = len(pair.offsets.entries), len(pair.times.entries)
    pair.append(4, 200, 6, 3)
    pair.cut_back(*before)
    pair.flush()
    assert [storage.read_all(path)[:24].rstrip(b"\0") for path in PATHS] == [bytes(one.entries) for one in pair]
    for path in PATHS:
        storage.remove(path)
    pair.rewrite()
    assert [storage.read_all(path) for path in PATHS] == [bytes(one.entries) for one in pair]
    again = IndexPair.at(storage, PATHS, 100, (bytes(pair.offsets.entries), bytes(pair.times.entries)))
    assert [one.entries for one in again] == [one.entries for one in pair]


def test_both_files_are_synced_and_closed(storage, pair):
    pair.datasync()
    assert storage.operations["sync"] == 2
    pair.close()
    pair.datasync()
    assert storage.operations["sync"] == 2
