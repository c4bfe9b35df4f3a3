"""Transactions that are open in partitions and on no record: they join theirs again, are left to their coordinator, or are aborted."""

from types import SimpleNamespace

import pytest

from horolog.broker.transactions.open_transaction import OpenTransaction
from horolog.broker.transactions.states import Producer, Transaction, TransactionState
from horolog.broker.transactions.strays import Strays
from horolog.protocol.errors import ErrorCode

OTHER = 2
T0, T1 = ("t", 0), ("t", 1)
NONE, FENCED, NOT_NOW = ErrorCode.NONE, ErrorCode.PRODUCER_FENCED, ErrorCode.COORDINATOR_NOT_AVAILABLE


class Place:
    """A partition, as far as it is looked at."""

    def __init__(self, topic, index):
        self.topic = topic
        self.index = index
        self.producers = {}


class World:
    """What strays ask of the coordinator here, of coordinators elsewhere, and of the partitions of this broker."""

    def __init__(self):
        self.knows_its_own = True
        self.here = {}
        self.recorded = []
        self.elsewhere = []
        self.answers = True
        self.questions = []
        self.asked = []
        self.answer = NONE
        self.partitions = {}
        self.aborted = []
        self.abort_fails = False
        self.strays = Strays(self.here, self.join, lambda: self.knows_its_own, self, self)

    # the coordinator here

    def coordinate(self, state=TransactionState.ONGOING, *places, name="x", producer_id=7):
        entry = self.here[name] = OpenTransaction(transaction(state, *places, producer_id=producer_id, name=name))
        return entry

    def join(self, entry, producer, places, client_version):
        (place,) = places
        assert client_version == entry.transaction.client_version
        self.recorded.append((entry.transaction.id, producer, place))
        if self.answer == NONE:
            entry.transaction = entry.transaction._replace(partitions=entry.transaction.partitions | {place})
        return self.answer

    # others

    def transactions_of(self, producer_ids, done):
        self.questions.append(sorted(producer_ids))
        if self.answers is not None:
            done(list(self.elsewhere) if self.answers else None)

    def ask(self, node, questions, done):
        (question,) = questions
        assert question.adds
        self.asked.append((node, question.transactional_id, question.producer, question.places))
        done([dict.fromkeys(question.places, self.answer)])

    # partitions here

    def begin(self, producer_id=7, place=T0, since=0):
        partition = self.partitions.setdefault(place, Place(*place))
        partition.producers[producer_id] = SimpleNamespace(transaction_start=since)

    def end(self, producer_id=7, place=T0):
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
            self.strays.try_again()


def transaction(state=TransactionState.ONGOING, *places, producer_id=7, name="x"):
    return Transaction(name, producer_id, 0, 1000, state, frozenset(places), 0, 0)


@pytest.fixture
def world():
    return World()


class TestOfAProducerThatIsCoordinatedHere:
    def test_each_partition_joins_its_transaction_at_once(self, world):
        entry = world.coordinate(TransactionState.ONGOING, T0)
        world.begin(place=T0)
        world.begin(place=T1)
        world.strays.settle()
        assert world.recorded == [("x", Producer(7, 0), T0), ("x", Producer(7, 0), T1)]
        assert (world.questions, world.aborted) == ([], [])
        assert not world.strays.still_hold_up(entry)
        assert repr(world.strays) == "<Strays: 0 suspects>"

    def test_it_is_aborted_if_its_transaction_does_not_take_it(self, world):
        world.coordinate()
        world.answer = FENCED
        world.begin()
        world.strays.settle()
        assert (world.questions, world.aborted) == ([], [(7, T0)])

    def test_it_waits_for_the_end_of_another_transaction(self, world):
        entry = world.coordinate(TransactionState.PREPARE_COMMIT, T1)
        world.answer = ErrorCode.CONCURRENT_TRANSACTIONS
        world.begin()
        world.strays.settle()
        assert (world.questions, world.aborted) == ([], [])
        assert world.strays.hold_up(entry)
        world.answer = NONE
        world.rounds()
        assert not world.strays.hold_up(entry)

    def test_its_lost_marker_is_written_again(self, world):
        """The transaction is decided, and all of its markers count as written."""
        entry = world.coordinate(TransactionState.PREPARE_COMMIT, T0)
        entry.unmarked = frozenset()
        world.begin()
        world.strays.settle()
        assert entry.unmarked == {T0}
        assert (world.recorded, world.aborted, repr(world.strays)) == ([], [], "<Strays: 0 suspects>")

    def test_it_is_settled_while_others_do_not_answer(self, world):
        world.answers = None
        entry = world.coordinate()
        world.begin(8)
        world.begin(7, T1)
        world.strays.settle()
        assert not world.strays.still_hold_up(entry)
        assert world.questions == [[8]]


class TestADiskThatDoesNotTakeIt:
    def test_holds_up_the_producer_until_it_does(self, world):
        entry = world.coordinate()
        world.answer = NOT_NOW
        world.begin()
        world.strays.settle()
        assert world.strays.hold_up(entry)
        assert world.strays.still_hold_up(entry)
        world.answer = NONE
        assert not world.strays.still_hold_up(entry)

    def test_holds_up_nobody_else(self, world):
        other = world.coordinate(name="y", producer_id=8)
        world.coordinate()
        world.answer = NOT_NOW
        world.begin()
        world.strays.settle()
        tries = len(world.recorded)
        assert not world.strays.still_hold_up(other)
        assert len(world.recorded) == tries

    def test_is_tried_again_with_an_abort_too(self, world):
        world.abort_fails = True
        world.begin()
        world.strays.settle()
        world.abort_fails = False
        world.rounds()
        assert world.aborted == [(7, T0), (7, T0)]
        world.rounds()
        assert len(world.aborted) == 2


def test_what_all_disclaim_is_aborted_at_once_if_all_answer_at_once(world):
    world.begin()
    world.strays.settle()
    assert (world.questions, world.aborted) == ([[7], [7]], [(7, T0)])
    world.rounds(3)
    assert len(world.questions) == 2


class TestWithOthersThatAnswerLater:
    @pytest.fixture
    def told(self, world):
        told = []
        world.transactions_of = lambda _, done: told.append(done)
        world.begin()
        world.strays.settle()
        return told

    def test_one_question_is_asked_at_a_time_and_two_answers_count(self, world, told):
        assert len(told) == 1
        told[0]([])
        assert world.aborted == []
        world.rounds(2)
        assert len(told) == 2
        told[1]([])
        assert world.aborted == [(7, T0)]

    def test_an_answer_from_before_this_broker_lost_its_knowledge_does_not_count(self, world, told):
        world.knows_its_own = False
        told[0]([])
        world.rounds()
        assert len(told) == 1
        world.knows_its_own = True
        world.rounds()
        told[1]([])
        assert world.aborted == []

    def test_what_began_after_the_question_is_not_judged_by_its_answer(self, world, told):
        world.begin(8)
        world.strays.settle()
        told[0]([])
        world.rounds()
        told[1]([])
        assert world.aborted == [(7, T0)]
        world.rounds()
        told[2]([])
        assert world.aborted == [(7, T0), (8, T0)]

    def test_what_has_ended_meanwhile_joins_no_transaction(self, world, told):
        """Its coordinator has had the marker written, and says that the transaction is complete."""
        world.end()
        told[0]([(OTHER, transaction(TransactionState.COMPLETE_COMMIT))])
        assert (world.asked, world.aborted) == ([], [])
        assert repr(world.strays) == "<Strays: 0 suspects>"

    def test_what_has_ended_and_begun_again_is_another_suspect(self, world, told):
        told[0]([])
        world.end()
        world.begin(since=50)
        world.rounds(3)
        assert len(told) == 1
        assert world.aborted == []

    def test_a_producer_that_came_here_meanwhile_is_left_to_the_coordinator_here(self, world, told):
        world.coordinate(TransactionState.ONGOING, T0)
        told[0]([])
        world.rounds()
        assert (world.recorded, world.aborted) == ([("x", Producer(7, 0), T0)], [])


class TestOfAProducerThatIsCoordinatedElsewhere:
    @pytest.mark.parametrize("state", [TransactionState.ONGOING, TransactionState.PREPARE_COMMIT])
    def test_what_is_on_record_is_its_coordinators_to_end(self, world, state):
        world.elsewhere = [(OTHER, transaction(state, T0))]
        world.begin()
        world.strays.settle()
        world.rounds(2)
        assert (len(world.questions), world.aborted, world.asked) == (1, [], [])

    def test_what_is_not_on_record_joins_its_transaction(self, world):
        world.elsewhere = [(OTHER, transaction(TransactionState.ONGOING, T1))]
        world.begin()
        world.strays.settle()
        world.rounds(2)
        assert world.asked == [(OTHER, "x", Producer(7, 0), (T0,))]
        assert world.aborted == []

    def test_what_its_transaction_does_not_take_twice_is_aborted(self, world):
        world.elsewhere, world.answer = [(OTHER, transaction(TransactionState.EMPTY))], FENCED
        world.begin()
        world.strays.settle()
        assert (len(world.asked), world.aborted) == (2, [(7, T0)])

    def test_it_is_asked_again_while_it_cannot_be_recorded(self, world):
        world.elsewhere, world.answer = [(OTHER, transaction())], NOT_NOW
        world.begin()
        world.strays.settle()
        world.rounds()
        assert (len(world.asked), world.aborted) == (3, [])

    def test_what_is_being_ended_without_it_is_looked_at_again_when_that_is_done(self, world):
        world.elsewhere = [(OTHER, transaction(TransactionState.PREPARE_ABORT, T1))]
        world.begin()
        world.strays.settle()
        assert (world.asked, world.aborted) == ([], [])
        world.elsewhere = []
        world.rounds(2)
        assert world.aborted == [(7, T0)]


def test_nobody_is_believed_while_one_broker_does_not_answer(world):
    world.answers = False
    world.begin()
    world.strays.settle()
    world.rounds(3)
    assert (len(world.questions), world.aborted) == (5, [])
    world.answers = True
    world.rounds(2)
    assert world.aborted == [(7, T0)]


def test_nobody_is_asked_before_this_broker_knows_its_own(world):
    world.knows_its_own = False
    world.begin()
    world.strays.settle()
    assert world.questions == []


def test_what_began_after_the_look_is_no_suspect(world):
    world.answers = False
    world.begin()
    world.strays.settle()
    world.begin(8)
    world.rounds()
    assert world.questions[-1] == [7]
    world.strays.settle()
    assert world.questions[-1] == [7, 8]
