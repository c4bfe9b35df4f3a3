"""The index of aborted transactions: files of real brokers, lookups against a plain filter, truncation, damage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.log.indexes import AbortedTransaction, TransactionIndex, TransactionIndexError, transaction_index
from horolog.broker.log.storage import MemoryStorage, StorageFault

PATH = "/p/00000000000000000000.txnindex"


@pytest.fixture
def storage():
    made = MemoryStorage()
    made.make_dir("/p")
    made.sync_dir("/")
    return made


def test_files_of_real_brokers_come_back_byte_for_byte(golden_root):
    paths = list(golden_root.glob("*/*/*.txnindex"))
    assert len(paths) > 5
    for path in paths:
        data = path.read_bytes()
        assert transaction_index.encode(transaction_index.decode(data, int(path.name[:20]))) == data
    entries = transaction_index.decode((golden_root / "v2-txn/clean/00000000000000000000.txnindex").read_bytes(), 0)
    assert entries == [AbortedTransaction(1, 4, 6, 7), AbortedTransaction(2, 11, 17, 18)]


@st.composite
def histories(draw):
    """Transactions as markers end them: none begins at a marker, last offsets ascend, each knows what was still open then."""
    count = draw(st.integers(0, 8))
    ends = sorted(draw(st.sets(st.integers(1, 60), min_size=count, max_size=count)))
    spans = [(draw(st.sampled_from([start for start in range(end) if start not in ends])), end) for end in ends]
    return [
        AbortedTransaction(
            number, first, last, min([start for start, end in spans if start < last < end], default=last + 1)
        )
        for number, (first, last) in enumerate(spans)
    ]


@given(histories(), st.integers(0, 70), st.integers(0, 70), st.integers(0, 8))
def test_a_look_up_finds_what_a_filter_over_everything_finds(history, start, span, cut):
    end = start + span
    found = transaction_index.overlapping([history[:cut], history[cut:]], start, end)
    assert found == [one for one in history if one.last_offset >= start and one.first_offset < end]


def test_looks_no_further_than_needed():
    def later():
        yield [AbortedTransaction(1, 0, 5, 6)]
        raise AssertionError("the next segment was asked")

    assert len(transaction_index.overlapping(later(), 0, 6)) == 1


def test_appended_flushed_truncated_and_loaded(storage):
    index = TransactionIndex(storage, PATH, 0)
    index.flush()
    assert not storage.exists(PATH), "without aborts there is no file"
    index.append(AbortedTransaction(1, 0, 5, 6))
    index.append(AbortedTransaction(1, 6, 9, 10))
    index.flush()
    storage.crash()
    loaded = TransactionIndex.load(storage, PATH, 0)
    assert loaded.entries == index.entries
    loaded.truncate(9)
    loaded.append(AbortedTransaction(2, 7, 11, 12))
    loaded.flush()
    assert [one.last_offset for one in TransactionIndex.load(storage, PATH, 0).entries] == [5, 11]
    with pytest.raises(ValueError, match="does not come after"):
        loaded.append(AbortedTransaction(1, 0, 11, 12))
    loaded.reset()
    assert not storage.exists(PATH)


@pytest.mark.parametrize(
    "entries",
    [
        [AbortedTransaction(1, 6, 5, 6)],
        [AbortedTransaction(-1, 0, 5, 6)],
        [AbortedTransaction(1, 0, 5, 6), AbortedTransaction(1, 0, 5, 6)],
        [AbortedTransaction(1, 0, 5, 6), AbortedTransaction(1, 0, 7, 3)],
        [AbortedTransaction(1, 0, 3, 4)],  # before the segment
    ],
)
def test_entries_that_break_the_rules_are_refused(entries):
    with pytest.raises(TransactionIndexError):
        transaction_index.decode(transaction_index.encode(entries), 4)


@pytest.mark.parametrize("data", [bytes(33), bytes(35), b"\x00\x01" + bytes(32)])
def test_bytes_that_are_no_entries_are_refused(data):
    with pytest.raises(TransactionIndexError):
        transaction_index.decode(data, 0)


def test_an_entry_comes_behind_the_one_before_it(storage):
    index = TransactionIndex(storage, PATH, 0)
    index.append(AbortedTransaction(1, 0, 5, 6))
    with pytest.raises(ValueError, match="does not come after"):
        index.append(AbortedTransaction(2, 1, 5, 6))
    assert repr(index) == f"<TransactionIndex {PATH} of 1 aborted transactions>"


def test_what_could_not_be_written_is_written_by_the_next_attempt(storage):
    index = TransactionIndex(storage, PATH, 0)
    index.append(AbortedTransaction(1, 0, 5, 6))
    storage.fail("write", PATH)
    with pytest.raises(StorageFault):
        index.flush()
    index.flush()
    index.flush()
    assert TransactionIndex.load(storage, PATH, 0).entries == index.entries


def test_an_index_that_is_made_anew_is_gone_from_the_disk(storage):
    index = TransactionIndex(storage, PATH, 0)
    index.append(AbortedTransaction(1, 0, 5, 6))
    index.flush()
    for _ in range(2):
        index.reset()
        assert (index.entries, storage.exists(PATH)) == ([], False)


def test_entries_that_were_never_written_are_cut_off_in_memory_alone(storage):
    index = TransactionIndex(storage, PATH, 0)
    index.append(AbortedTransaction(1, 0, 5, 6))
    index.truncate(3)
    assert (index.entries, storage.exists(PATH)) == ([], False)


@pytest.mark.parametrize("entry", [AbortedTransaction(1, 4, 6, 7), AbortedTransaction(1, 12, 11, 12)])
def test_an_entry_that_is_not_read_again_is_not_appended(storage, entry):
    index = TransactionIndex(storage, PATH, 10)
    with pytest.raises(AssertionError, match="in the segment at 10"):
        index.append(entry)
