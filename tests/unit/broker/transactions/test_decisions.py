"""The decisions of the coordinator, held against what real brokers answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.transactions import decisions
from horolog.broker.transactions.states import (
    COMES_FROM,
    LARGEST_EPOCH,
    VERSION_0,
    VERSION_2,
    IllegalStep,
    Producer,
    Transaction,
    TransactionState,
)
from horolog.protocol.errors import ErrorCode

NOW_MS = 1_700_000_000_000
NEW_ID = 77
PLACES = frozenset({("t", 0), ("t", 1)})


def transaction(state=TransactionState.EMPTY, epoch=5, **more):
    partitions = (
        PLACES
        if state in (TransactionState.ONGOING, TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
        else frozenset()
    )
    return Transaction("x", 7, epoch, 60_000, state, partitions, NOW_MS - 10, NOW_MS - 5)._replace(**more)


def initialize(before, expected=None, timeout_ms=1000):
    return decisions.initialize(before, timeout_ms, expected, NOW_MS, lambda: NEW_ID)


def end(before, commit, version, epoch=None, producer_id=7, **more):
    producer = Producer(producer_id, before.producer_epoch if epoch is None else epoch)
    return decisions.end(before, producer, version, NOW_MS, lambda: NEW_ID, commit=commit, **more)


# -- a producer begins


def test_the_first_producer_has_epoch_0():
    before = decisions.first("x", 7, 1000, NOW_MS)
    assert initialize(before).producer == (7, 0)
    assert initialize(before, Producer(999_999, 3)).producer == (7, 0)


@pytest.mark.parametrize(
    "state", [TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT]
)
def test_the_next_producer_has_the_next_epoch_and_nothing_of_the_last(state):
    after = initialize(transaction(state), timeout_ms=4321)
    assert after.producer == (7, 6)
    assert (after.state, after.partitions, after.started_ms, after.timeout_ms) == (
        TransactionState.EMPTY,
        frozenset(),
        -1,
        4321,
    )


@pytest.mark.parametrize("state", [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT])
def test_nobody_begins_while_the_last_transaction_ends(state):
    assert initialize(transaction(state)) == ErrorCode.CONCURRENT_TRANSACTIONS


def test_an_open_transaction_is_aborted_first_under_an_epoch_nobody_has():
    after = initialize(transaction(TransactionState.ONGOING))
    assert (after.state, after.producer_epoch, after.partitions) == (TransactionState.PREPARE_ABORT, 6, PLACES)


def test_a_producer_that_names_itself_goes_on():
    after = initialize(transaction(), Producer(7, 5))
    assert (after.producer, after.last_epoch) == ((7, 6), 5)
    assert initialize(after, Producer(7, 5)).producer == (7, 6)  # it did not hear the answer
    assert initialize(after, Producer(7, 4)) == ErrorCode.PRODUCER_FENCED
    assert initialize(after, Producer(8, 6)) == ErrorCode.PRODUCER_FENCED


def test_a_producer_whose_transaction_timed_out_goes_on_with_a_new_epoch():
    after = decisions.complete(decisions.time_out(transaction(TransactionState.ONGOING), NOW_MS), NOW_MS)
    assert (after.state, after.producer_epoch) == (TransactionState.COMPLETE_ABORT, 6)
    assert initialize(after, Producer(7, 5)).producer == (7, 6)


@pytest.mark.parametrize("expected", [None, Producer(7, LARGEST_EPOCH - 1)])
def test_used_up_epochs_mean_a_new_producer_id(expected):
    before = transaction(epoch=LARGEST_EPOCH - 1)
    after = initialize(before, expected)
    assert after.producer == (NEW_ID, 0)
    assert after.previous_producer_id == 7
    again = initialize(after, Producer(7, LARGEST_EPOCH - 1))
    assert again == ErrorCode.PRODUCER_FENCED if expected is None else again.producer == (NEW_ID, 0)


def test_an_open_transaction_can_be_fenced_with_the_last_epoch_of_all():
    fenced = initialize(transaction(TransactionState.ONGOING, epoch=LARGEST_EPOCH - 1))
    assert fenced.producer_epoch == LARGEST_EPOCH
    assert initialize(decisions.complete(fenced, NOW_MS)).producer == (NEW_ID, 0)


# -- partitions


def add(before, places=PLACES, producer=None):
    return decisions.add(before, producer or before.producer, places, NOW_MS, VERSION_0)


@pytest.mark.parametrize(
    "state", [TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT]
)
def test_the_first_partitions_begin_the_transaction(state):
    after = add(transaction(state))
    assert (after.state, after.started_ms, after.partitions) == (TransactionState.ONGOING, NOW_MS, PLACES)


def test_more_partitions_do_not_begin_it_again():
    before = transaction(TransactionState.ONGOING)
    after = add(before, frozenset({("u", 3)}))
    assert (after.started_ms, after.partitions) == (before.started_ms, PLACES | {("u", 3)})
    assert add(before) is before


@pytest.mark.parametrize(
    ("state", "producer", "code"),
    [
        (TransactionState.EMPTY, Producer(8, 5), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (TransactionState.EMPTY, Producer(7, 4), ErrorCode.PRODUCER_FENCED),
        (TransactionState.EMPTY, Producer(7, 6), ErrorCode.PRODUCER_FENCED),
        (TransactionState.PREPARE_COMMIT, Producer(7, 5), ErrorCode.CONCURRENT_TRANSACTIONS),
        (TransactionState.PREPARE_ABORT, Producer(7, 5), ErrorCode.CONCURRENT_TRANSACTIONS),
        (TransactionState.PREPARE_ABORT, Producer(7, 4), ErrorCode.PRODUCER_FENCED),
    ],
)
def test_who_may_not_add_may_not_write_either(state, producer, code):
    before = transaction(state)
    assert add(before, producer=producer) == code
    assert decisions.verify(before, producer, ("t", 0)) == code


def test_writing_needs_the_partition_to_be_added():
    before = transaction(TransactionState.ONGOING)
    assert decisions.verify(before, before.producer, ("t", 0)) == ErrorCode.NONE
    assert decisions.verify(before, before.producer, ("t", 2)) == ErrorCode.TRANSACTION_ABORTABLE
    assert decisions.verify(transaction(), before.producer, ("t", 0)) == ErrorCode.TRANSACTION_ABORTABLE


# -- the end


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", [VERSION_0, VERSION_2])
def test_an_open_transaction_ends_as_asked(commit, version):
    prepared = end(transaction(TransactionState.ONGOING), commit, version)
    assert prepared.state == (TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT)
    assert prepared.partitions == PLACES
    assert prepared.producer_epoch == (6 if version == VERSION_2 else 5)
    completed = decisions.complete(prepared, NOW_MS + 1)
    assert completed.state == (TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT)
    assert (completed.partitions, completed.producer) == (frozenset(), prepared.producer)


INVALID, CONCURRENT, FENCED, HEARD = (
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.PRODUCER_FENCED,
    "heard the first time",
)

WITHOUT_NEW_EPOCH = [
    (TransactionState.EMPTY, True, INVALID),
    (TransactionState.EMPTY, False, INVALID),
    (TransactionState.COMPLETE_COMMIT, True, HEARD),
    (TransactionState.COMPLETE_COMMIT, False, INVALID),
    (TransactionState.COMPLETE_ABORT, False, HEARD),
    (TransactionState.COMPLETE_ABORT, True, INVALID),
    (TransactionState.PREPARE_COMMIT, True, CONCURRENT),
    (TransactionState.PREPARE_COMMIT, False, INVALID),
    (TransactionState.PREPARE_ABORT, False, CONCURRENT),
    (TransactionState.PREPARE_ABORT, True, INVALID),
]


@pytest.mark.parametrize(("state", "commit", "expected"), WITHOUT_NEW_EPOCH)
def test_ending_what_is_not_open(state, commit, expected):
    before = transaction(state)
    assert end(before, commit, VERSION_0) == (before if expected == HEARD else expected)


@pytest.mark.parametrize(("state", "commit", "expected"), WITHOUT_NEW_EPOCH)
def test_whoever_aborts_what_only_began_on_its_side_gets_a_new_epoch_from_the_next_coordinator(state, commit, expected):
    before = transaction(state)
    if expected == INVALID and not commit:
        expected = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert end(before, commit, VERSION_0, may_have_begun=True) == (before if expected == HEARD else expected)
    assert end(before, commit, VERSION_2, may_have_begun=True) == end(before, commit, VERSION_2)
    assert end(before, commit, VERSION_0, 4, may_have_begun=True) == FENCED


@pytest.mark.parametrize(
    ("state", "commit", "expected"),
    [
        *[row for row in WITHOUT_NEW_EPOCH if row[0] != TransactionState.EMPTY],
        (TransactionState.EMPTY, True, INVALID),
        (TransactionState.EMPTY, False, INVALID),
        (TransactionState.ONGOING, True, FENCED),
        (TransactionState.ONGOING, False, FENCED),
    ],
)
def test_asking_again_with_the_epoch_that_the_end_has_taken(state, commit, expected):
    before = transaction(state)
    assert end(before, commit, VERSION_2, epoch=4) == (before if expected == HEARD else expected)
    assert end(before, commit, VERSION_0, epoch=4) == FENCED


@pytest.mark.parametrize(
    "state", [TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT]
)
def test_with_version_2_even_nothing_can_be_aborted_which_takes_the_epoch(state):
    before = transaction(state)
    prepared = end(before, commit=False, version=VERSION_2)
    assert (prepared.state, prepared.producer_epoch, prepared.started_ms) == (TransactionState.PREPARE_ABORT, 6, NOW_MS)
    assert end(before, commit=True, version=VERSION_2) == ErrorCode.INVALID_TXN_STATE


def test_used_up_epochs_mean_a_new_producer_id_after_the_end():
    before = transaction(TransactionState.ONGOING, epoch=LARGEST_EPOCH - 1)
    prepared = end(before, commit=True, version=VERSION_2)
    assert (prepared.producer, prepared.next_producer_id) == ((7, LARGEST_EPOCH), NEW_ID)
    completed = decisions.complete(prepared, NOW_MS)
    assert (completed.producer, completed.previous_producer_id) == ((NEW_ID, 0), 7)
    assert completed.next_producer_id == -1
    again = end(completed, commit=True, version=VERSION_2, producer_id=7, epoch=LARGEST_EPOCH - 1)
    assert again is completed


@pytest.mark.parametrize("version", [VERSION_0, VERSION_2])
@pytest.mark.parametrize(
    ("producer_id", "epoch", "code"),
    [(8, 5, ErrorCode.INVALID_PRODUCER_ID_MAPPING), (7, 6, FENCED), (7, 3, FENCED)],
)
def test_strangers_end_nothing(version, producer_id, epoch, code):
    assert end(transaction(TransactionState.ONGOING), True, version, epoch, producer_id) == code


# -- time


def test_a_transaction_times_out_when_it_has_taken_longer_than_it_may():
    before = transaction(TransactionState.ONGOING)
    due_ms = before.timeout_ms
    assert not decisions.is_timed_out(before, due_ms)
    assert decisions.is_timed_out(before, due_ms + 1)
    assert not decisions.is_timed_out(transaction(TransactionState.COMPLETE_COMMIT), due_ms + 1)


@pytest.mark.parametrize("state", list(TransactionState))
def test_only_idle_ids_are_forgotten(state):
    before = transaction(state)
    assert not decisions.is_expired(before, before.updated_ms + 99, 100)
    idle = state in (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
    assert decisions.is_expired(before, before.updated_ms + 100, 100) == idle


# -- the table


@given(st.sampled_from(TransactionState), st.sampled_from(TransactionState))
def test_no_step_is_taken_that_the_table_does_not_know(before, after):
    if before in COMES_FROM[after]:
        assert transaction(before).to(after, NOW_MS).state == after
    else:
        with pytest.raises(IllegalStep):
            transaction(before).to(after, NOW_MS)


def test_titles_are_those_that_tools_know():
    assert [state.title for state in TransactionState] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]
