"""The steps of a transaction's end, each after the one before is on the disk: decision, markers, record, answers."""

from types import SimpleNamespace

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.transactions.ending import Ending
from horolog.broker.transactions.journal import NotWritten
from horolog.broker.transactions.open_transaction import OpenTransaction
from horolog.broker.transactions.states import NO_PRODUCER_ID, Producer, Transaction, TransactionState
from horolog.protocol.errors import ErrorCode

NOW_MS = 1_700_000_000_000
PLACES = frozenset({("t", 0), ("t", 1)})
ONGOING = Transaction("x", 7, 3, 60_000, TransactionState.ONGOING, PLACES, NOW_MS, NOW_MS)
PREPARED = ONGOING._replace(state=TransactionState.PREPARE_COMMIT)
NOT_NOW = ErrorCode.COORDINATOR_NOT_AVAILABLE


class Disk:
    """Journal and markers, which answer when the test says so."""

    def __init__(self):
        self.written = []
        self.marked = []
        self.refusal = None
        self.waiting = []

    def commit(self, transaction, done):
        self._refuse()
        self.written.append(transaction.state)
        self.waiting.append(done)

    def partition_of(self, _transactional_id):
        self._refuse()
        return SimpleNamespace(leader_epoch=4)

    def mark(self, transaction, partitions, epoch, done):
        self.marked.append((transaction.state, partitions, epoch))
        self.waiting.append(done)

    def answer(self, outcome):
        (done,), self.waiting = self.waiting, []
        done(outcome)

    def _refuse(self):
        if self.refusal is not None:
            raise NotWritten(self.refusal, "no disk")


@pytest.fixture
def disk():
    return Disk()


@pytest.fixture
def settled():
    return []


@pytest.fixture
def ending(disk, settled):
    return Ending(disk, disk, ManualClock(NOW_MS), settled.append)


@pytest.fixture
def entry():
    return OpenTransaction(ONGOING)


@pytest.fixture
def told():
    return []


@pytest.fixture
def done(told):
    return lambda *outcome: told.append(outcome)


ALL_MARKED, NONE_LEFT = True, frozenset()


def test_every_step_follows_the_one_before(ending, disk, entry, told, done):
    ending.decide(entry, PREPARED, done)
    assert (disk.written, disk.marked, entry.busy) == ([TransactionState.PREPARE_COMMIT], [], True)
    assert entry.transaction is ONGOING, "nobody believes a decision that is not on the disk"
    disk.answer(True)
    assert disk.marked == [(TransactionState.PREPARE_COMMIT, PLACES, 4)]
    assert entry.transaction is PREPARED
    disk.answer(NONE_LEFT)
    assert (disk.written[-1], told) == (TransactionState.COMPLETE_COMMIT, [])
    disk.answer(True)
    assert told == [(ErrorCode.NONE, Producer(7, 3))]
    assert (entry.transaction.state, entry.busy, entry.waiting) == (TransactionState.COMPLETE_COMMIT, False, [])


def test_requests_that_wait_hear_of_each_step_behind_the_client_that_asked_for_it(ending, disk, entry, settled):
    ending.decide(entry, PREPARED, lambda *_: settled.append("answered"))
    disk.answer(True)
    disk.answer(NONE_LEFT)
    assert settled == ["x"]
    disk.answer(True)
    assert settled == ["x", "answered", "x"]


def test_the_next_producer_is_told_where_epochs_have_run_out(ending, disk, entry, told, done):
    ending.decide(entry, PREPARED._replace(next_producer_id=99), done)
    disk.answer(True)
    disk.answer(frozenset({("t", 0)}))
    assert told == [(ErrorCode.NONE, Producer(99, 0))]
    assert ONGOING.next_producer_id == NO_PRODUCER_ID


class TestADecision:
    def test_that_could_not_be_written_is_none(self, ending, disk, entry, told, done, settled):
        ending.decide(entry, PREPARED, done)
        disk.answer(False)
        assert (told, settled) == ([(NOT_NOW, None)], [])
        assert (entry.transaction, entry.busy, entry.waiting, disk.marked) == (ONGOING, False, [], [])

    def test_that_cannot_even_be_tried_is_refused_at_once(self, ending, disk, entry, told, done):
        disk.refusal = ErrorCode.NOT_COORDINATOR
        ending.decide(entry, PREPARED, done)
        assert told == [(ErrorCode.NOT_COORDINATOR, None)]
        assert (entry.busy, entry.waiting) == (False, [])

    def test_of_the_brokers_own_answers_nobody(self, ending, disk, entry):
        ending.decide(entry, PREPARED)
        disk.answer(False)
        assert entry.transaction is ONGOING

    def test_is_another_brokers_to_carry_out_where_the_shard_has_gone(self, ending, disk, entry, told, done):
        ending.decide(entry, PREPARED, done)
        entry.is_lost = True
        disk.answer(True)
        assert told == [(ErrorCode.NOT_COORDINATOR, None)]
        assert disk.marked == []


class TestMarkers:
    @pytest.fixture
    def decided(self, ending, disk, entry, told, done):
        ending.decide(entry, PREPARED, done)
        disk.answer(True)
        return entry

    def test_that_are_left_are_tried_again_and_the_client_need_not_wait(self, ending, disk, decided, told):
        left = frozenset({("t", 1)})
        disk.answer(left)
        assert told == [(ErrorCode.NONE, Producer(7, 3))]
        assert (decided.unmarked, decided.busy) == (left, False)
        ending.mark(decided)
        assert disk.marked[-1][1] == left
        disk.answer(NONE_LEFT)
        disk.answer(True)
        assert decided.transaction.state == TransactionState.COMPLETE_COMMIT
        assert len(told) == 1

    def test_that_are_written_when_the_shard_has_gone_are_completed_by_who_has_it(self, disk, decided, told):
        decided.is_lost = True
        disk.answer(NONE_LEFT)
        assert told == [(ErrorCode.NONE, Producer(7, 3))]
        assert disk.written == [TransactionState.PREPARE_COMMIT]

    def test_wait_where_the_journal_cannot_be_asked(self, ending, disk, entry, told, done):
        entry.transaction = PREPARED
        entry.waiting.append(done)
        disk.refusal = NOT_NOW
        ending.mark(entry)
        assert (disk.marked, entry.busy) == ([], False)
        assert told == [(ErrorCode.NONE, Producer(7, 3))]


class TestTheRecordThatSaysComplete:
    @pytest.fixture
    def marked(self, ending, disk, entry, told, done):
        ending.decide(entry, PREPARED, done)
        disk.answer(True)
        return entry

    @pytest.mark.parametrize("can_be_tried", [True, False])
    def test_that_could_not_be_written_leaves_it_decided(self, ending, disk, marked, told, can_be_tried):
        disk.refusal = None if can_be_tried else NOT_NOW
        disk.answer(NONE_LEFT)
        if can_be_tried:
            disk.answer(False)
        assert told == [(ErrorCode.NONE, Producer(7, 3))]
        assert (marked.transaction, marked.busy) == (PREPARED, False)


def test_it_shows_what_it_goes_by(ending):
    assert repr(ending).startswith("<Ending by ")
