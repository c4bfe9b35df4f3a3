"""Transactions that are open in partitions and on no record: they join theirs again, or are aborted, or wait for the disk."""

from types import SimpleNamespace

import pytest

from horolog.broker.transactions.open_transaction import OpenTransaction
from horolog.broker.transactions.states import Producer, Transaction, TransactionState
from horolog.broker.transactions.strays import Strays
from horolog.protocol.errors import ErrorCode

T0, T1 = ("t", 0), ("t", 1)
NOT_NOW = ErrorCode.COORDINATOR_NOT_AVAILABLE


class World:
    """What strays ask of the coordinator."""

    def __init__(self):
        self.entries = {}
        self.leads_all = True
        self.open = []
        self.joined = []
        self.aborted = []
        self.answer = ErrorCode.NONE
        self.abort_fails = False
        self.strays = Strays(self.entries, self, self, self.join)

    def entry(self, name="x", producer_id=7, state=TransactionState.ONGOING):
        made = OpenTransaction(Transaction(name, producer_id, 0, 1000, state, frozenset({T0}), 0, 0))
        self.entries[name] = made
        return made

    def open_places(self):
        return [(Producer(producer_id, 0), SimpleNamespace(topic=t, index=i)) for producer_id, (t, i) in self.open]

    def join(self, entry, producer, places, client_version):
        self.joined.append((entry.transaction.id, producer.id, places, client_version))
        return self.answer

    def abort_stray(self, producer, partition, failed):
        self.aborted.append((producer.id, (partition.topic, partition.index)))
        if self.abort_fails:
            failed()


@pytest.fixture
def world():
    return World()


def test_partitions_of_a_known_producer_join_its_transaction(world):
    entry = world.entry()
    world.open = [(7, T0), (7, T1)]
    world.strays.settle()
    version = entry.transaction.client_version
    assert world.joined == [("x", 7, [T0], version), ("x", 7, [T1], version)]
    assert world.aborted == []
    assert not world.strays.is_off_record(entry)


def test_what_nobody_knows_is_aborted(world):
    world.open = [(7, T0)]
    world.strays.settle()
    assert world.aborted == [(7, T0)]
    assert 7 not in world.strays


def test_what_another_coordinator_may_know_is_left_to_it(world):
    world.leads_all = False
    world.open = [(7, T0)]
    world.strays.settle()
    assert world.aborted == []


def test_what_its_transaction_does_not_take_is_aborted(world):
    world.entry()
    world.answer = ErrorCode.INVALID_PRODUCER_EPOCH
    world.open = [(7, T0)]
    world.strays.settle()
    assert world.aborted == [(7, T0)]


def test_what_is_being_ended_already_is_left_alone(world):
    world.entry(state=TransactionState.PREPARE_COMMIT)
    world.entry("y", 8).busy = True
    world.open = [(7, T0), (8, T0)]
    world.strays.settle()
    assert (world.joined, world.aborted) == ([], [])


class TestADiskThatDoesNotTakeIt:
    def test_holds_up_the_producer_until_it_does(self, world):
        entry = world.entry()
        world.answer = NOT_NOW
        world.open = [(7, T0)]
        world.strays.settle()
        assert 7 in world.strays
        assert repr(world.strays) == "<Strays of 1 producers>"
        assert world.strays.is_off_record(entry)
        world.answer = ErrorCode.NONE
        assert not world.strays.is_off_record(entry)

    def test_is_tried_again_now_and_then(self, world):
        world.strays.try_again()
        world.abort_fails = True
        world.open = [(7, T0)]
        world.strays.settle()
        world.abort_fails = False
        world.strays.try_again()
        world.strays.try_again()
        assert len(world.aborted) == 2
        assert 7 not in world.strays

    def test_holds_up_nobody_else(self, world):
        other = world.entry("y", 8)
        world.entry()
        world.answer = NOT_NOW
        world.open = [(7, T0)]
        world.strays.settle()
        assert not world.strays.is_off_record(other)
        assert len(world.joined) == 1
