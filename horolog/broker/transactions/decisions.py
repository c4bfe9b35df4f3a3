"""Decides what a request does to a transaction: the result is the next transaction, or the client's error.

Pure functions. A repeated request that changes nothing gets the same transaction back. The errors:

- INVALID_PRODUCER_ID_MAPPING: the transactional id belongs to another producer id; or the producer aborts nothing, see `end`.
- PRODUCER_FENCED: a newer producer or a timeout has bumped the epoch.
- CONCURRENT_TRANSACTIONS: the last transaction is still ending; retry.
- INVALID_TXN_STATE: there is nothing to end, or it ended the other way.
"""

from __future__ import annotations

from collections.abc import Callable

from horolog.broker.transactions.states import (
    LARGEST_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIME,
    VERSION_2,
    Producer,
    Transaction,
    TransactionState,
)
from horolog.protocol.errors import ErrorCode
from horolog.protocol.topic_partition import TopicPartition

TransactionOrError = Transaction | ErrorCode
NewProducerId = Callable[[], int]

_PREPARE = {True: TransactionState.PREPARE_COMMIT, False: TransactionState.PREPARE_ABORT}
_COMPLETE = {
    TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
    TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
}
_ENDED = {TransactionState.COMPLETE_COMMIT: True, TransactionState.COMPLETE_ABORT: False}


def first(transactional_id: str, producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
    """A new transactional id, before its first producer has an epoch."""
    return Transaction(transactional_id, producer_id, NO_EPOCH, timeout_ms, updated_ms=now_ms)


def initialize(
    before: Transaction, timeout_ms: int, expected: Producer | None, now_ms: int, new_producer_id: NewProducerId
) -> TransactionOrError:
    """A producer begins and fences the previous one: it gets the next epoch, or a new id if the epochs are used up.

    `expected` is the id and epoch that a producer sends to go on after an error. An open transaction has to be aborted first: the
    decision is that abort, under an epoch that no producer gets.
    """
    if expected is not None and not _may_go_on(before, expected):
        return ErrorCode.PRODUCER_FENCED
    if before.state.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if before.state == TransactionState.ONGOING:
        return fence(before, now_ms)
    current = before.producer_epoch
    if before.epochs_are_used_up and expected in (None, before.producer):
        return _renewed(
            before, timeout_ms, now_ms, new_producer_id(), 0, NO_EPOCH if expected is None else current
        )._replace(previous_producer_id=before.producer_id)
    if expected is None:
        return _renewed(before, timeout_ms, now_ms, before.producer_id, current + 1, NO_EPOCH)
    if current in (NO_EPOCH, expected.epoch):
        return _renewed(before, timeout_ms, now_ms, before.producer_id, current + 1, current)
    if expected.epoch == before.last_epoch:
        return _renewed(before, timeout_ms, now_ms, before.producer_id, current, before.last_epoch)
    return ErrorCode.PRODUCER_FENCED


def _may_go_on(before: Transaction, expected: Producer) -> bool:
    """Whether the producer that the request names is the known one, or had the id before the known one."""
    return (
        before.producer_epoch == NO_EPOCH
        or expected.id == before.producer_id
        or (expected.id == before.previous_producer_id and expected.epoch >= LARGEST_EPOCH - 1)
    )


def _renewed(
    before: Transaction, timeout_ms: int, now_ms: int, producer_id: int, epoch: int, last_epoch: int
) -> Transaction:
    return before.to(
        TransactionState.EMPTY,
        now_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
        last_epoch=last_epoch,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        started_ms=NO_TIME,
    )


def _wrong_producer(transaction: Transaction, producer: Producer) -> ErrorCode | None:
    if producer.id != transaction.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if producer.epoch != transaction.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    return None


def add(
    before: Transaction, producer: Producer, partitions: frozenset[TopicPartition], now_ms: int, client_version: int
) -> TransactionOrError:
    """Add partitions to the transaction; the first ones begin it."""
    wrong = _wrong_producer(before, producer)
    if wrong is not None:
        return wrong
    if before.state.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if before.state == TransactionState.ONGOING and partitions <= before.partitions:
        return before
    return before.to(
        TransactionState.ONGOING,
        now_ms,
        partitions=before.partitions | partitions,
        started_ms=before.started_ms if before.state == TransactionState.ONGOING else now_ms,
        client_version=client_version,
    )


def verify(transaction: Transaction, producer: Producer, partition: TopicPartition) -> ErrorCode:
    """Whether a producer may write to a partition now; TRANSACTION_ABORTABLE if the partition was not added."""
    wrong = _wrong_producer(transaction, producer)
    if wrong is not None:
        return wrong
    if transaction.state.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if partition not in transaction.partitions:
        return ErrorCode.TRANSACTION_ABORTABLE
    return ErrorCode.NONE


def end(
    before: Transaction,
    producer: Producer,
    client_version: int,
    now_ms: int,
    new_producer_id: NewProducerId,
    *,
    commit: bool,
    may_have_begun: bool = False,
) -> TransactionOrError:
    """The client commits or aborts. With version 2 this also uses up its epoch: the decision carries the next one.

    A producer may abort a transaction that has only begun on its side, because its request to add a partition was lost with the coordinator
    before, or refused. Where that is possible (`may_have_begun`), the answer has such a producer get a new epoch; librdkafka takes Kafka's
    answer, INVALID_TXN_STATE, for a fatal error. It still learns that nothing was aborted.
    """
    newest = client_version >= VERSION_2
    repeated = newest and _is_repeated(before, producer)
    if not repeated:
        wrong = _wrong_producer(before, producer)
        if wrong is not None:
            return wrong
    nothing_to_end = ErrorCode.INVALID_TXN_STATE
    if may_have_begun and not (commit or newest):
        nothing_to_end = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if before.state.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS if before.state == _PREPARE[commit] else nothing_to_end
    if before.state == TransactionState.ONGOING:
        if repeated:
            return ErrorCode.PRODUCER_FENCED
        return _prepare(before, client_version, now_ms, new_producer_id, commit=commit)
    if _ENDED.get(before.state) == commit and repeated == newest:
        return before  # a repeated request, already carried out
    if newest and not commit and not repeated:
        return _prepare(before, client_version, now_ms, new_producer_id, commit=False)
    return nothing_to_end


def _is_repeated(before: Transaction, producer: Producer) -> bool:
    """Whether a producer names the epoch that the end of its transaction has used up."""
    if producer.id == before.producer_id:
        return producer.epoch + 1 == before.producer_epoch
    return (
        producer.id == before.previous_producer_id
        and producer.epoch == LARGEST_EPOCH - 1
        and before.producer_epoch == 0
    )


def _prepare(
    before: Transaction, client_version: int, now_ms: int, new_producer_id: NewProducerId, *, commit: bool
) -> Transaction:
    began = before.state == TransactionState.ONGOING
    prepared = before.to(
        _PREPARE[commit],
        now_ms,
        started_ms=before.started_ms if began else now_ms,
        partitions=before.partitions if began else frozenset(),
        client_version=client_version,
    )
    if client_version < VERSION_2:
        return prepared
    return prepared._replace(
        producer_epoch=before.producer_epoch + 1,
        last_epoch=before.producer_epoch,
        next_producer_id=new_producer_id() if before.epochs_are_used_up else NO_PRODUCER_ID,
    )


def fence(before: Transaction, now_ms: int, last_epoch: int = NO_EPOCH) -> Transaction:
    """Abort an open transaction under the next epoch, which fences its producer.

    With the producer's epoch as `last_epoch`, the producer may request the new epoch and go on.
    """
    return before.to(
        TransactionState.PREPARE_ABORT, now_ms, producer_epoch=before.producer_epoch + 1, last_epoch=last_epoch
    )


def time_out(before: Transaction, now_ms: int) -> Transaction:
    """Abort a transaction that timed out; its producer may go on with a new epoch."""
    return fence(before, now_ms, before.producer_epoch)


def complete(before: Transaction, now_ms: int) -> Transaction:
    """Every partition has its marker."""
    completed = before.to(_COMPLETE[before.state], now_ms, partitions=frozenset(), next_producer_id=NO_PRODUCER_ID)
    if before.next_producer_id == NO_PRODUCER_ID:
        return completed
    return completed._replace(
        producer_id=before.next_producer_id, producer_epoch=0, previous_producer_id=before.producer_id
    )


def is_timed_out(transaction: Transaction, age_ms: int) -> bool:
    """Whether the transaction has exceeded its producer's timeout."""
    return transaction.state == TransactionState.ONGOING and age_ms > transaction.timeout_ms


def is_expired(transaction: Transaction, now_ms: int, expiration_ms: int) -> bool:
    """Whether an id has been idle for long enough to be forgotten."""
    return transaction.is_idle and transaction.updated_ms + expiration_ms <= now_ms
