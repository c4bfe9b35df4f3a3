"""The names of a segment's files, and the steps that all of them take together."""

import errno

import pytest

from horolog.broker.log.indexes import transaction_index
from horolog.broker.log.integrity import IndexSum
from horolog.broker.log.segments import segment_path, syncing
from horolog.broker.log.segments.segment_files import SegmentFiles
from horolog.broker.log.storage import StorageFault
from tests.support.segments import completed, new_folder

NAMES = ["00000000000000000000.index", "00000000000000000000.log", "00000000000000000000.timeindex"]


@pytest.fixture
def folder():
    return new_folder()


@pytest.fixture
def segment(folder):
    return completed(folder)


def test_names_are_the_base_offset_in_20_digits_and_the_kind(folder):
    assert segment_path("/d", 17, ".log") == "/d/00000000000000000017.log"
    files = SegmentFiles(folder, 17, ".cleaned")
    assert files.path(".log") == "/d/00000000000000000017.log.cleaned"
    assert files.index_paths == ("/d/00000000000000000017.index.cleaned", "/d/00000000000000000017.timeindex.cleaned")
    assert "/d/00000000000000000017" in repr(files)


def test_a_segment_taken_out_of_use_is_renamed_and_removed(folder, segment):
    segment.retire(".deleted")
    assert sorted(folder.storage.list_dir("/d")) == [f"{name}.deleted" for name in NAMES]
    syncing.datasync(segment)
    segment.files.remove()
    assert folder.storage.list_dir("/d") == []
    segment.files.remove()


def test_a_log_that_keeps_its_name_keeps_those_of_its_indexes(folder, segment):
    folder.storage.fail("rename", ".log")
    with pytest.raises(StorageFault):
        segment.files.rename(".deleted")
    assert sorted(folder.storage.list_dir("/d")) == NAMES
    assert segment.files.path(".log").endswith("0.log")


def test_an_index_that_keeps_its_name_is_left_behind(folder, segment):
    folder.storage.fail("rename", ".index", code=errno.EIO)
    segment.files.rename(".deleted")
    assert sorted(folder.storage.list_dir("/d")) == [NAMES[0], f"{NAMES[1]}.deleted", f"{NAMES[2]}.deleted"]


def test_the_age_of_a_segment_is_that_of_its_log(folder, segment):
    folder.storage.set_mtime_ms(segment.files.path(".log"), 123_456)
    assert (segment.files.modified_ms(), segment.files.modified_ns()) == (123_456, 123_456_000_000)


def test_transactions_are_summed_where_there_are_any(folder, segment):
    assert segment.files.sum_of_transactions() == IndexSum(0, 0)
    folder.storage.create(segment.files.path(transaction_index.SUFFIX)).pwritev([b"entries"], 0)
    assert segment.files.sum_of_transactions() == IndexSum.of(b"entries")
