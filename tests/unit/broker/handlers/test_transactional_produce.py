"""Records in a transaction: which of them are asked about, and what each version of Produce is told."""

from types import SimpleNamespace

import pytest

from horolog.broker.coordination.turns import Turns
from horolog.broker.handlers.transactional_produce import verify
from horolog.broker.transactions.states import VERSION_2, Producer
from horolog.protocol.errors import ErrorCode
from tests.support import raw_records as raw
from tests.support.at_once import at_once
from tests.support.transactional import batch


class Place:
    topic, index = "t", 3


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


def checked(records, version, code=ErrorCode.NONE):
    broker = SimpleNamespace(transactions=Transactions(code), turns=Turns())
    refused = at_once(verify, broker, "x", [(PARTITION, memoryview(records))], version)
    return refused.get(PARTITION, ErrorCode.NONE), broker.transactions.asked


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
