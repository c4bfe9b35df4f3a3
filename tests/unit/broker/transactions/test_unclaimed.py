"""Open transactions that maybe nobody knows: left to their coordinator, put on record, or aborted once all have said so twice."""

from types import SimpleNamespace

import pytest

from horolog.broker.transactions.open_transaction import OpenTransaction
from horolog.broker.transactions.states import Producer, Transaction, TransactionState
from horolog.broker.transactions.unclaimed import Unclaimed
from horolog.protocol.errors import ErrorCode

ME, OTHER = 1, 2
T0, T1 = ("t", 0), ("t", 1)
NONE, FENCED, NOT_NOW = ErrorCode.NONE, ErrorCode.PRODUCER_FENCED, ErrorCode.COORDINATOR_NOT_AVAILABLE


class Place:
    """A partition, as far as it is looked at."""

    def __init__(self, topic, index):
        self.topic = topic
        self.index = index
        self.producers = {}


class World:
    """What it asks: the coordinator here, coordinators elsewhere, and the partitions of this broker."""

    me = ME

    def __init__(self):
        self.is_loading = False
        self.here = []
        self.elsewhere = []
        self.answers = True
        self.questions = []
        self.added = []
        self.answer = NONE
        self.partitions = {}
        self.aborted = []
        self.abort_fails = False
        self.unclaimed = Unclaimed(self, self, self)

    def __iter__(self):
        return iter(self.here)

    # the coordinator here

    def add(self, transactional_id, producer, places, client_version, done):
        self.added.append((ME, transactional_id, producer, tuple(places), client_version))
        done(self.answer)

    # others

    def transactions_of(self, producer_ids, done):
        self.questions.append(sorted(producer_ids))
        if self.answers is not None:
            done(list(self.elsewhere) if self.answers else None)

    def ask(self, node, questions, done):
        (question,) = questions
        assert question.adds
        self.added.append((node, question.transactional_id, question.producer, question.places))
        done([dict.fromkeys(question.places, self.answer)])

    # partitions here

    def begin(self, producer_id, place=T0, since=0):
        partition = self.partitions.setdefault(place, Place(*place))
        partition.producers[producer_id] = SimpleNamespace(transaction_start=since)

    def end(self, producer_id, place=T0):
        del self.partitions[place].producers[producer_id]

    def open_places(self):
        return [(Producer(number, 0), one) for one in self.partitions.values() for number in one.producers]

    def abort_stray(self, producer, partition, failed):
        self.aborted.append((producer.id, (partition.topic, partition.index)))
        if self.abort_fails:
            failed()
        else:
            del partition.producers[producer.id]

    def rounds(self, count=1):
        for _ in range(count):
            self.unclaimed.try_again()


def transaction(state=TransactionState.ONGOING, *places, producer_id=7):
    return Transaction("x", producer_id, 0, 1000, state, frozenset(places), 0, 0)


@pytest.fixture
def world():
    world = World()
    world.begin(7)
    world.unclaimed.settle()
    return world


def test_what_all_say_twice_not_to_know_is_aborted(world):
    world.rounds()
    assert (world.questions, world.aborted) == ([[7]], [])
    world.rounds()
    assert world.aborted == [(7, T0)]
    world.rounds(3)
    assert len(world.questions) == 2
    assert repr(world.unclaimed) == "<Unclaimed: 0 suspects>"


@pytest.mark.parametrize("state", [TransactionState.ONGOING, TransactionState.PREPARE_COMMIT])
@pytest.mark.parametrize("node", [ME, OTHER])
def test_what_is_on_record_is_its_coordinators_to_end(world, state, node):
    known = transaction(state, T0)
    world.here, world.elsewhere = ([known], []) if node == ME else ([], [(OTHER, known)])
    world.rounds(4)
    assert (len(world.questions), world.aborted, world.added) == (1, [], [])


@pytest.mark.parametrize("node", [ME, OTHER])
def test_what_is_not_on_record_of_a_known_producer_joins_its_transaction(world, node):
    known = transaction(TransactionState.ONGOING, T1)
    world.here, world.elsewhere = ([known], []) if node == ME else ([], [(OTHER, known)])
    world.rounds(4)
    assert [one[:2] for one in world.added] == [(node, "x")]
    assert world.added[0][2:4] == (Producer(7, 0), (T0,))
    assert world.aborted == []


def test_what_its_transaction_does_not_take_twice_is_aborted(world):
    world.elsewhere, world.answer = [(OTHER, transaction(TransactionState.EMPTY))], FENCED
    world.rounds(2)
    assert (len(world.added), world.aborted) == (2, [(7, T0)])


def test_an_answer_that_is_none_is_asked_for_again(world):
    world.elsewhere, world.answer = [(OTHER, transaction())], NOT_NOW
    world.rounds(3)
    assert (len(world.added), world.aborted) == (3, [])


def test_what_is_being_ended_without_it_is_looked_at_again_when_that_is_done(world):
    world.here = [transaction(TransactionState.PREPARE_ABORT, T1)]
    world.rounds(3)
    assert (world.added, world.aborted) == ([], [])
    world.here = []
    world.rounds(2)
    assert world.aborted == [(7, T0)]


def test_nobody_is_believed_while_one_broker_does_not_answer(world):
    world.answers = False
    world.rounds(5)
    assert (len(world.questions), world.aborted) == (5, [])
    world.answers = True
    world.rounds(2)
    assert world.aborted == [(7, T0)]


def test_nobody_is_asked_before_this_broker_knows_its_own(world):
    world.is_loading = True
    world.rounds(2)
    assert world.questions == []


def test_what_was_asked_before_this_broker_lost_its_knowledge_does_not_count(world):
    told = []
    world.transactions_of = lambda _, done: told.append(done)
    world.rounds(2)
    assert len(told) == 1  # one question at a time
    world.is_loading = True
    told[0]([])
    world.is_loading = False
    world.rounds()
    told[1]([])
    assert world.aborted == []


def test_what_ends_meanwhile_is_no_suspect_any_more_and_the_next_one_is_another(world):
    world.rounds()
    world.end(7)
    world.begin(7, since=50)
    world.rounds(3)
    assert (len(world.questions), world.aborted) == (1, [])


def test_what_ends_while_others_are_asked_joins_no_transaction(world):
    """Its coordinator has had the marker written, and says that the transaction is complete."""
    told = []
    world.transactions_of = lambda _, done: told.append(done)
    world.rounds()
    world.end(7)
    told[0]([(OTHER, transaction(TransactionState.COMPLETE_COMMIT))])
    assert (world.added, world.aborted) == ([], [])
    assert repr(world.unclaimed) == "<Unclaimed: 0 suspects>"


def test_what_began_after_the_look_is_no_suspect(world):
    world.begin(8)
    world.rounds()
    assert world.questions == [[7]]
    world.unclaimed.settle()
    world.rounds()
    assert world.questions == [[7], [7, 8]]


def test_an_abort_that_the_disk_does_not_take_is_tried_again(world):
    world.abort_fails = True
    world.rounds(2)
    world.abort_fails = False
    world.rounds()
    assert len(world.aborted) == 2
    world.rounds()
    assert len(world.questions) == 3


def test_nobody_waits_for_it(world):
    assert 7 not in world.unclaimed
    assert not world.unclaimed.is_off_record(OpenTransaction(transaction()))
