"""The records of `__transaction_state`: the newest one of a transactional id says all there is to know of it.

    key     int16 version = 0 . TransactionLogKey: the transactional id
    value   int16 version . TransactionLogValue: producer, state, partitions by topic, timeout, times

Values are written in version 1, with tags for what transactions of version 2 need; versions 0 and 1 are read. No value is a
tombstone: the id is forgotten. Partitions are null where the state is Empty.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from struct import Struct

from horolog.broker.transactions.states import State, TopicPartition, Transaction
from horolog.protocol.compile import decode, encode
from horolog.protocol.errors import DecodeError
from horolog.protocol.messages.coordinator_records import PartitionsSchema, TransactionLogKey, TransactionLogValue
from horolog.protocol.primitives import Buffer

KEY_VERSION = 0
VALUE_VERSION = 1

_VERSION = Struct(">h")
_topic_of = itemgetter(0)


def key_bytes(transactional_id: str) -> bytes:
    return _VERSION.pack(KEY_VERSION) + encode(TransactionLogKey(transactional_id=transactional_id), KEY_VERSION)


def is_possible(transaction: Transaction) -> bool:
    """Whether a transaction can be so: an empty one has no partitions. Asserted of those that are written, an error in those read."""
    return transaction.state != State.EMPTY or not transaction.partitions


def value_bytes(transaction: Transaction) -> bytes:
    assert is_possible(transaction), f"{transaction} is empty and has partitions"
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None if transaction.state == State.EMPTY else _by_topic(transaction.partitions),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.client_version,
    )
    return _VERSION.pack(VALUE_VERSION) + encode(value, VALUE_VERSION)


def _by_topic(partitions: frozenset[TopicPartition]) -> list[PartitionsSchema]:
    return [
        PartitionsSchema(topic=topic, partition_ids=[index for _, index in group])
        for topic, group in groupby(sorted(partitions), _topic_of)
    ]


def read_key(key: Buffer) -> str | None:
    """The transactional id; None for a key that is something else. Raises DecodeError."""
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
        state = State(said.transaction_status)
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
