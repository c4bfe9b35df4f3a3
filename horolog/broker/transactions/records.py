"""The records of `__transaction_state`: the newest one of a transactional id holds its whole state.

    key     int16 version = 0 . TransactionLogKey: the transactional id
    value   int16 version . TransactionLogValue: producer, state, partitions by topic, timeout, times

Values are written in version 1, with tagged fields for transactions of version 2; versions 0 and 1 are read. A record without a
value is a tombstone: the id is forgotten. Partitions are null if the state is Empty.
"""

from __future__ import annotations

from struct import Struct

from horolog.broker.transactions.states import NO_EPOCH, Transaction, TransactionState
from horolog.protocol.compile import decode, flat_encoder
from horolog.protocol.errors import DecodeError
from horolog.protocol.messages.coordinator_records import TransactionLogKey, TransactionLogValue
from horolog.protocol.primitives import Buffer
from horolog.protocol.topic_partition import by_topic

KEY_VERSION = 0
VALUE_VERSION = 1

_VERSION = Struct(">h")


def key_bytes(transactional_id: str) -> bytes:
    parts: list[Buffer] = [_VERSION.pack(KEY_VERSION)]
    flat_encoder(TransactionLogKey, KEY_VERSION)((transactional_id,), parts)
    return b"".join(parts)


def is_possible(transaction: Transaction) -> bool:
    """Whether a transaction is consistent: an empty one has no partitions. Asserted on writing, an error on reading."""
    return transaction.state != TransactionState.EMPTY or not transaction.partitions


def value_bytes(transaction: Transaction) -> bytes:
    assert is_possible(transaction), f"{transaction} is empty and has partitions"
    value = (
        transaction.producer_id,
        transaction.previous_producer_id,
        transaction.next_producer_id,
        transaction.producer_epoch,
        NO_EPOCH,  # the next producer has not begun
        transaction.timeout_ms,
        transaction.state,
        None if transaction.state == TransactionState.EMPTY else list(by_topic(sorted(transaction.partitions)).items()),
        transaction.updated_ms,
        transaction.started_ms,
        transaction.client_version,
    )
    parts: list[Buffer] = [_VERSION.pack(VALUE_VERSION)]
    flat_encoder(TransactionLogValue, VALUE_VERSION)(value, parts)
    return b"".join(parts)


def read_key(key: Buffer) -> str | None:
    """The transactional id; None for a key of another kind. Raises DecodeError."""
    if _version_of(key) != KEY_VERSION:
        return None
    return decode(TransactionLogKey, KEY_VERSION, key, _VERSION.size).transactional_id


def read_value(transactional_id: str, value: Buffer) -> Transaction:
    """Raises DecodeError."""
    version = _version_of(value)
    if not 0 <= version <= VALUE_VERSION:
        raise DecodeError(f"version {version} of a transaction's value is not known")
    said = decode(TransactionLogValue, version, value, _VERSION.size)
    try:
        state = TransactionState(said.transaction_status)
    except ValueError:
        raise DecodeError(f"a transaction in state {said.transaction_status}") from None
    transaction = Transaction(
        transactional_id,
        said.producer_id,
        said.producer_epoch,
        said.transaction_timeout_ms,
        state,
        frozenset((each.topic, index) for each in said.transaction_partitions or () for index in each.partition_ids),
        said.transaction_start_timestamp_ms,
        said.transaction_last_update_timestamp_ms,
        said.previous_producer_id,
        said.next_producer_id,
        client_version=said.client_transaction_version,
    )
    if not is_possible(transaction):
        raise DecodeError(f"{transaction} is empty and has partitions")
    return transaction


def _version_of(data: Buffer) -> int:
    if len(data) < _VERSION.size:
        raise DecodeError(f"{len(data)} bytes have no version")
    return int(_VERSION.unpack_from(data)[0])
