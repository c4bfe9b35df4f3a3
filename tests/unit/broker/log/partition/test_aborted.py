"""The aborted transactions of a partition: found from any offset, written behind their markers, gone with their segments."""

import logging

import pytest

from horolog.broker.log.indexes import AbortedTransaction, TransactionIndex
from horolog.broker.log.partition.aborted import AbortedTransactions
from horolog.broker.log.segments import Segment
from horolog.broker.log.storage import MemoryStorage, StorageFault
from tests.support.segments import CONFIG, new_folder

FIRST = AbortedTransaction(7, 2, 5, 6)
SECOND = AbortedTransaction(8, 12, 14, 15)


@pytest.fixture
def storage():
    storage = MemoryStorage(lambda: 0)
    storage.make_dir("/p")
    return storage


@pytest.fixture
def aborted(storage):
    folder = new_folder()
    segments = [Segment.create(folder, base, CONFIG, now_ms=0) for base in (0, 10, 20)]
    return AbortedTransactions(storage, "/p", segments, {})


def path(base_offset):
    return f"/p/{base_offset:020d}.txnindex"


def load(storage, base_offset):
    return TransactionIndex.load(storage, path(base_offset), base_offset).entries


def test_without_an_abort_there_is_no_file(storage, aborted):
    assert aborted.overlapping(0, 100) == []
    aborted.write()
    aborted.flush()
    assert storage.list_dir("/p") == []


def test_each_is_in_the_index_of_its_markers_segment(storage, aborted):
    aborted.waiting += [FIRST, SECOND]
    assert aborted.overlapping(0, 100) == [], "their markers are not written"
    assert repr(aborted) == "<AbortedTransactions of /p: 0, 2 waiting>"
    aborted.write()
    assert aborted.waiting == []
    assert (load(storage, 0), load(storage, 10)) == ([FIRST], [SECOND])
    assert repr(aborted) == "<AbortedTransactions of /p: 2, 0 waiting>"


def test_they_are_found_by_the_offsets_of_their_records(aborted):
    aborted.waiting += [FIRST, SECOND]
    aborted.write()
    assert aborted.overlapping(0, 20) == [FIRST, SECOND]
    assert aborted.overlapping(0, 12) == [FIRST]
    assert aborted.overlapping(6, 20) == [SECOND]
    assert aborted.overlapping(10, 20) == [SECOND]
    assert aborted.overlapping(20, 30) == []


def test_what_cannot_be_written_is_known_and_written_by_the_next_flush(storage, aborted, caplog):
    aborted.waiting.append(FIRST)
    storage.fail("create", ".txnindex")
    with caplog.at_level(logging.ERROR):
        aborted.write()
    assert "/p: " in caplog.text
    assert aborted.overlapping(0, 10) == [FIRST]
    assert load(storage, 0) == []
    storage.fail("create", ".txnindex")
    with pytest.raises(StorageFault):
        aborted.flush()
    aborted.flush()
    assert load(storage, 0) == [FIRST]


def test_an_index_goes_with_its_segment_and_comes_with_another(storage, aborted):
    aborted.waiting += [FIRST, SECOND]
    aborted.write()
    aborted.remove(0)
    aborted.remove(20)
    assert not storage.exists(path(0))
    assert aborted.overlapping(0, 20) == [SECOND]
    aborted.put(0, [FIRST])
    assert aborted.overlapping(0, 20) == [FIRST, SECOND]
    aborted.flush()
    assert not storage.exists(path(0)), "its file came with the segment"
