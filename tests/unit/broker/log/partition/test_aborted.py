"""The aborted transactions of a partition: found from any offset, written behind their markers, gone with their segments."""

import logging
from functools import partial

import pytest

from horolog.broker.log.indexes import AbortedTransaction, TransactionIndex
from horolog.broker.log.partition.aborted import AbortedTransactions, DecidedHere
from horolog.broker.log.segments import HAS_PRODUCERS, Segment
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


class Elsewhere:
    """Segments in a store, which count how often they are asked."""

    def __init__(self, aborted, **decided):
        self.asked = []
        for name, (entries, undecided) in decided.items():
            base = int(name.removeprefix("at_"))
            segment = next(one for one in aborted._segments if one.base_offset == base)
            segment.magics, segment.next_offset = HAS_PRODUCERS | 4, base + 10
            aborted.elsewhere[base] = partial(self.ask, base, DecidedHere(entries, undecided))

    def ask(self, base, decided):
        self.asked.append(base)
        return decided


def test_a_segment_in_a_store_is_asked_when_a_reader_comes_there_and_no_further_than_transactions_reach(aborted):
    elsewhere = Elsewhere(aborted, at_0=([FIRST], None), at_10=([SECOND], None))
    assert aborted.overlapping(0, 100) == [FIRST]
    assert elsewhere.asked == [0]
    assert aborted.overlapping(11, 100) == [SECOND]
    assert elsewhere.asked == [0, 10]


def test_a_transaction_that_goes_on_is_looked_for_in_the_next_segments(aborted):
    long = AbortedTransaction(9, 8, 25, 26)
    elsewhere = Elsewhere(aborted, at_0=([FIRST], 8), at_10=([], 8))
    aborted.put(20, [long])
    assert aborted.overlapping(0, 100) == [FIRST, long]
    assert elsewhere.asked == [0, 10]
    assert aborted.overlapping(20, 100) == [long]
    assert elsewhere.asked == [0, 10]


def test_one_that_begins_behind_what_is_read_is_not_looked_for(aborted):
    elsewhere = Elsewhere(aborted, at_0=([], 8), at_10=([], None))
    assert aborted.overlapping(0, 8) == []
    assert elsewhere.asked == [0]


def test_a_segment_in_a_store_without_producers_is_not_asked(aborted):
    elsewhere = Elsewhere(aborted, at_0=([], None))
    aborted._segments[0].magics = 4
    assert aborted.overlapping(0, 100) == []
    assert elsewhere.asked == []


def test_a_reader_in_a_gap_reads_of_the_next_segment(aborted):
    elsewhere = Elsewhere(aborted, at_0=([], None), at_10=([SECOND], None))
    aborted._segments[0].next_offset = 7
    assert aborted.overlapping(8, 100) == [SECOND]
    assert elsewhere.asked == [10]


def test_a_segment_that_has_left_the_store_is_not_asked(aborted):
    elsewhere = Elsewhere(aborted, at_0=([FIRST], None))
    aborted.remove(0)
    assert aborted.overlapping(0, 100) == []
    assert elsewhere.asked == []
