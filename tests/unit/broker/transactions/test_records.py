"""The records of transactions, against bytes that a real broker wrote, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.transactions import records
from horolog.broker.transactions.states import Transaction, TransactionState
from horolog.protocol.errors import DecodeError

PLACES = st.frozensets(st.tuples(st.text(min_size=1, max_size=5), st.integers(0, 1000)), max_size=6)
EPOCHS = st.integers(-1, 2**15 - 1)
IDS = st.integers(-1, 2**63 - 1)
TIMES = st.integers(-1, 2**62)
TRANSACTIONS = st.builds(
    Transaction,
    st.text(max_size=20),
    IDS,
    EPOCHS,
    st.integers(0, 2**31 - 1),
    st.sampled_from([state for state in TransactionState if state != TransactionState.EMPTY]),
    PLACES,
    TIMES,
    TIMES,
    IDS,
    IDS,
    last_epoch=st.just(-1),
    client_version=st.integers(0, 2),
)


@given(TRANSACTIONS)
def test_what_is_written_is_read(transaction):
    assert records.read_key(records.key_bytes(transaction.id)) == transaction.id
    assert records.read_value(transaction.id, records.value_bytes(transaction)) == transaction


def test_an_empty_transaction_has_no_partitions_on_record():
    empty = Transaction("x", 1, 0, 1000, updated_ms=5)
    assert records.read_value("x", records.value_bytes(empty)) == empty


VERSION_0_VALUE = bytes.fromhex(
    "0000"  # version
    "0000000000000009"  # producer id
    "0003"  # epoch
    "00007530"  # timeout
    "01"  # ongoing
    "00000001" + "0001" + "74" + "00000002" + "00000000" + "00000001"  # partitions 0 and 1 of topic t
    "0000018bcfe56801"  # last update
    "0000018bcfe56800"  # start
)


def test_version_0_is_read():
    assert records.read_value("x", VERSION_0_VALUE) == Transaction(
        "x",
        9,
        3,
        30_000,
        TransactionState.ONGOING,
        frozenset({("t", 0), ("t", 1)}),
        started_ms=1_700_000_000_000,
        updated_ms=1_700_000_000_001,
    )


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\0",
        b"\0\2" + VERSION_0_VALUE[2:],
        VERSION_0_VALUE[:-1],
        VERSION_0_VALUE[:16] + b"\x09" + VERSION_0_VALUE[17:],
    ],
)
def test_what_makes_no_sense_is_refused(value):
    with pytest.raises(DecodeError):
        records.read_value("x", value)


def test_keys_of_another_kind_are_passed_over():
    assert records.read_key(b"\0\1\0\1x") is None
    with pytest.raises(DecodeError):
        records.read_key(b"\0")


STATE_AT = 2 + 8 + 2 + 4
"""Behind the version, the producer id, its epoch and the timeout."""


def test_an_empty_transaction_with_partitions_is_neither_written_nor_read():
    ongoing = Transaction("x", 1, 0, 1000, TransactionState.ONGOING, frozenset({("t", 0)}), 5, 5)
    with pytest.raises(AssertionError, match="is empty and has partitions"):
        records.value_bytes(ongoing._replace(state=TransactionState.EMPTY))
    written = bytearray(records.value_bytes(ongoing))
    written[STATE_AT] = TransactionState.EMPTY
    with pytest.raises(DecodeError, match="is empty and has partitions"):
        records.read_value("x", bytes(written))
