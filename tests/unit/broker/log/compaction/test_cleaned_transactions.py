"""Which batches are aborted and which markers are needed, as the log is walked."""

from horolog.broker.log.compaction.cleaned_transactions import CleanedTransactions
from horolog.broker.log.indexes import AbortedTransaction

COMMIT, ABORT = True, False
ABORTED = AbortedTransaction(7, 10, 20, 21)


def test_batches_from_first_record_to_marker_are_aborted():
    walk = CleanedTransactions([ABORTED])
    assert not walk.is_aborted(7, 9, transactional=True)
    assert walk.is_aborted(7, 10, transactional=True)
    assert not walk.is_aborted(8, 12, transactional=True)
    assert not walk.is_aborted(7, 13, transactional=False)
    assert walk.is_aborted(7, 15, transactional=True)
    assert walk.end(7, 20, ABORT) is ABORTED, "its records are in the log, so the marker and its entry stay"
    assert not walk.is_aborted(7, 21, transactional=True)


def test_a_marker_without_records_is_not_needed():
    walk = CleanedTransactions([ABORTED])
    assert walk.end(7, 20, ABORT) is True
    assert walk.end(8, 30, COMMIT) is True
    assert walk.end(8, 31, None) is True


def test_a_commit_is_needed_once_for_the_records_before_it():
    walk = CleanedTransactions()
    walk.is_aborted(8, 12, transactional=True)
    assert walk.end(8, 13, COMMIT) is False
    assert walk.end(8, 14, COMMIT) is True


def test_a_lost_marker_makes_nothing_behind_it_aborted():
    walk = CleanedTransactions([ABORTED])
    assert walk.is_aborted(7, 12, transactional=True)
    assert not walk.is_aborted(7, 22, transactional=True)
    assert walk.end(7, 23, COMMIT) is False


def test_one_producer_after_the_other_transaction():
    walk = CleanedTransactions([AbortedTransaction(7, 30, 32, 33), ABORTED])
    assert walk.is_aborted(7, 11, transactional=True)
    assert walk.end(7, 20, ABORT) == ABORTED
    assert not walk.is_aborted(7, 25, transactional=True)
    assert walk.end(7, 26, COMMIT) is False
    assert walk.is_aborted(7, 31, transactional=True)
    assert walk.end(7, 32, ABORT).first_offset == 30
