"""Index files are believed if they are what was sealed; otherwise the log is read, by whoever asks or by a worker."""

import errno
from dataclasses import replace

import pytest

from horolog.broker.log.integrity import BeingRescanned, IndexSum
from horolog.broker.log.segments import Segment, index_loading, indexes_of
from horolog.broker.log.storage import StorageFault
from tests.support.log_model import NOW_MS
from tests.support.segments import CONFIG, completed, new_folder, offset_entries, reopened, time_entries


@pytest.fixture
def folder():
    return new_folder()


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("change", ["remove", "empty", "zeros", "shorter", "other"])
def test_an_index_file_that_is_not_the_sealed_one_is_made_anew(folder, suffix, change):
    segment = completed(folder)
    good = folder.storage.read_all(segment.files.path(suffix))
    bad = {
        "empty": b"",
        "zeros": bytes(len(good)),
        "shorter": good[:-4],
        "other": good[:-1] + b"\x7f",
    }
    if change == "remove":
        folder.storage.remove(segment.files.path(suffix))
    else:
        folder.storage.create(segment.files.path(suffix)).pwritev([bad[change]], 0)
    again = reopened(segment)
    assert (offset_entries(again), time_entries(again)) == (offset_entries(segment), time_entries(segment))
    assert folder.counters.indexes_rebuilt.value == 1
    assert folder.storage.read_all(again.files.path(suffix)) == good


def test_an_index_that_was_sealed_out_of_order_is_made_anew(folder):
    """Lookups in it would find wrong records."""
    segment = completed(folder)
    seal = segment.seal
    good = folder.storage.read_all(segment.files.path(".index"))
    bad = good[:-16] + good[-8:] + good[-16:-8]
    folder.storage.create(segment.files.path(".index")).pwritev([bad], 0)
    again = Segment(folder, 0, seal.contents, CONFIG, NOW_MS, seal=replace(seal, offset_index=IndexSum.of(bad)))
    assert offset_entries(again) == offset_entries(segment)
    assert folder.counters.indexes_rebuilt.value == 1


@pytest.mark.parametrize("behind", [bytes(4096), b"\x7f" * 12])
@pytest.mark.parametrize("can_be_cut", [True, False])
def test_what_follows_the_sealed_entries_of_an_index_file_is_cut_off(folder, behind, can_be_cut):
    """Room for appends that a kill has left, or somebody's bytes: no reason to read the log again."""
    segment = completed(folder)
    good = {suffix: folder.storage.read_all(segment.files.path(suffix)) for suffix in (".index", ".timeindex")}
    for suffix, entries in good.items():
        folder.storage.open(segment.files.path(suffix)).pwritev([entries + behind], 0)
    if not can_be_cut:
        folder.storage.fail("truncate", ".index")
        folder.storage.fail("truncate", ".timeindex")
    again = reopened(segment)
    assert (offset_entries(again), time_entries(again)) == (offset_entries(segment), time_entries(segment))
    assert folder.counters.indexes_rebuilt.value == 0
    for suffix, entries in good.items():
        left = entries if can_be_cut else entries + behind
        assert folder.storage.read_all(again.files.path(suffix)) == left


def test_good_index_files_are_believed_and_dropped_from_memory(folder):
    segment = completed(folder)
    seal = segment.seal
    again = reopened(segment)
    assert again.index_bytes == 0
    indexes_of(again)
    assert again.index_bytes == seal.offset_index.size_bytes + seal.time_index.size_bytes
    again.drop_indexes()
    assert (offset_entries(again), folder.counters.indexes_rebuilt.value) == (offset_entries(segment), 0)


def without_index(folder):
    """A sealed segment whose offset index is gone, as a start finds it; and as it was."""
    segment = completed(folder)
    folder.storage.remove(segment.files.path(".index"))
    return reopened(segment), segment


def test_a_large_log_is_left_to_a_worker(folder, monkeypatch):
    monkeypatch.setattr(index_loading, "REBUILD_AT_ONCE_BYTES", 100)
    again, _ = without_index(folder)
    with pytest.raises(BeingRescanned):
        indexes_of(again)
    assert folder.rescan_queue.take() == ("/d", 0, "its index files do not match its log")


def test_a_log_that_cannot_be_read_now_keeps_all_that_is_known_of_it(folder):
    again, segment = without_index(folder)
    folder.storage.fail("read", ".log", code=errno.EIO)
    with pytest.raises(StorageFault):
        indexes_of(again)
    assert (again.seal, again.contents) == (segment.seal, segment.contents)
    assert offset_entries(again) == offset_entries(segment)


@pytest.mark.parametrize("stays_full", [True, False])
def test_a_log_that_cannot_be_corrected_now_is_not_cut(folder, stays_full):
    """Its index files are gone, something is wrong outside of the checksums, and there is no room to write."""
    again, segment = without_index(folder)
    again.log.pwritev([(7).to_bytes(4, "big")], 12)
    folder.storage.fail("write", ".log", code=errno.ENOSPC)
    if stays_full:
        folder.storage.fail("write", ".log", code=errno.ENOSPC)
        with pytest.raises(StorageFault):
            indexes_of(again)
    assert again.contents == segment.contents
    assert offset_entries(again) == offset_entries(segment)
    assert again.log.pread(again.size_bytes, 0) == segment.log.pread(segment.size_bytes, 0)


def test_where_nothing_can_be_written_the_indexes_are_kept_in_memory(folder):
    again, segment = without_index(folder)
    folder.storage.fail("create", ".index", code=errno.EROFS)
    assert (offset_entries(again), time_entries(again)) == (offset_entries(segment), time_entries(segment))
    assert not folder.storage.exists(segment.files.path(".index"))


def test_a_segment_that_nobody_has_sealed_is_read(folder):
    segment = completed(folder)
    again = Segment(folder, 0, segment.contents, CONFIG, NOW_MS)
    assert offset_entries(again) == offset_entries(segment)
    assert again.seal == segment.seal
