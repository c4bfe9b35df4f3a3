"""Records in a transaction: which of them are asked about, and what each version of Produce is told."""

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.coordination.keyed_queue import KeyedQueue, RetryGuard
from horolog.broker.handlers.transactional_produce import verify
from horolog.broker.transactions.states import VERSION_2, Producer
from horolog.protocol.errors import ErrorCode
from tests.support import raw_records as raw
from tests.support.at_once import at_once
from tests.support.transactional import batch


class Place:
    topic, index, leader_epoch = "t", 3, 0


PARTITION = Place()
RECORDS = batch([b"v"], 7, 2, 0)


class Transactions:
    """Answers as the test says and remembers what it was asked."""

    def __init__(self, code):
        self.code = code
        self.asked = []

    def verify(self, transactional_id, producer, place, done):
        self.asked.append(("verify", transactional_id, producer, place))
        done(self.code)

    def add(self, transactional_id, producer, places, version, done):
        self.asked.append(("add", transactional_id, producer, *places, version))
        done(self.code)


class Broker:
    """A broker, as far as it is looked at."""

    def __init__(self, code=ErrorCode.NONE):
        self.joining = Transactions(code)
        self.turns = KeyedQueue()
        self.clock = ManualClock()
        self.sent_back = RetryGuard(self.clock.monotonic)

    def send(self, sequence, place=PARTITION, epoch=2):
        records = batch([b"v"], 7, epoch, sequence)
        return at_once(verify, self, "x", [(place, memoryview(records))], 12).get(place, ErrorCode.NONE)


def checked(records, version, code=ErrorCode.NONE):
    broker = Broker(code)
    refused = at_once(verify, broker, "x", [(PARTITION, memoryview(records))], version)
    return refused.get(PARTITION, ErrorCode.NONE), broker.joining.asked


def test_up_to_version_11_the_partition_must_have_been_added():
    assert checked(RECORDS, 11) == (ErrorCode.NONE, [("verify", "x", Producer(7, 2), ("t", 3))])


def test_from_version_12_on_writing_adds_it():
    assert checked(RECORDS, 12) == (ErrorCode.NONE, [("add", "x", Producer(7, 2), ("t", 3), VERSION_2)])


@pytest.mark.parametrize("records", [b"", raw.message(), raw.batch([raw.record()])])
def test_records_outside_of_any_transaction_are_not_asked_about(records):
    assert checked(records, 12, ErrorCode.PRODUCER_FENCED) == (ErrorCode.NONE, [])


@pytest.mark.parametrize(
    ("code", "version", "told"),
    [
        (ErrorCode.PRODUCER_FENCED, 12, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 12, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 12, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_each_version_is_told_what_its_clients_understand(code, version, told):
    assert checked(RECORDS, version, code)[0] == told


LATER, AGAIN = ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.CONCURRENT_TRANSACTIONS


class TestWhatIsSentBack:
    def test_comes_before_what_was_sent_behind_it(self):
        broker = Broker(AGAIN)
        assert broker.send(0) == AGAIN
        broker.joining.code = ErrorCode.NONE
        assert [broker.send(1), broker.send(2), broker.send(0), broker.send(1)] == [LATER, LATER, 0, 0]

    def test_is_what_came_first_however_many_are_sent_back(self):
        broker = Broker(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert [broker.send(3), broker.send(4)] == [LATER, LATER]
        broker.joining.code = ErrorCode.NONE
        assert [broker.send(4), broker.send(3), broker.send(4)] == [LATER, 0, 0]

    def test_is_waited_for_no_longer_than_it_may_take(self):
        broker = Broker(AGAIN)
        broker.send(0)
        broker.joining.code = ErrorCode.NONE
        broker.clock.advance(11_000)
        assert broker.send(1) == 0

    def test_holds_up_no_other_partition_and_no_other_epoch(self):
        broker = Broker(AGAIN)
        broker.send(0)
        broker.joining.code = ErrorCode.NONE
        other = Place()
        other.index = 4
        assert [broker.send(1, epoch=3), broker.send(1, other), broker.send(1)] == [0, 0, LATER]

    def test_holds_up_nothing_once_another_broker_has_led_the_partition(self):
        broker, place = Broker(AGAIN), Place()
        broker.send(0, place)
        broker.joining.code = ErrorCode.NONE
        place.leader_epoch = 2
        assert broker.send(1, place) == 0

    def test_is_not_what_is_refused_for_good(self):
        broker = Broker(ErrorCode.PRODUCER_FENCED)
        broker.send(0)
        broker.joining.code = ErrorCode.NONE
        assert broker.send(1) == 0
