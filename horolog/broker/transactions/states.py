"""The states of a transaction as a table, and a transaction as a value.

    Empty          the transactional id has a producer, no transaction has begun
    Ongoing        partitions were added; producers write
    Prepare...     decided and on record: it ends this way whatever happens; markers are being written
    Complete...    every partition has its marker; the next transaction may begin
    Dead           the id is about to be forgotten
    PrepareEpochFence  never on record: Kafka's name for an abort that fences the producer, which here is one step

A transaction is never changed, only replaced: a decision is written first and applied afterwards.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from horolog.broker.coordination.topic_journal import COORDINATOR_IS_AWAY
from horolog.protocol.errors import ErrorCode
from horolog.protocol.topic_partition import TopicPartition

TO_BE_TRIED_AGAIN = COORDINATOR_IS_AWAY | {ErrorCode.CONCURRENT_TRANSACTIONS}
"""Behind these a producer asks for the same again."""

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIME = -1
LARGEST_EPOCH = 2**15 - 1

VERSION_0 = 0
"""Clients that add partitions and offsets themselves, and keep their epoch."""

VERSION_2 = 2
"""Clients that get a new epoch with every end (KIP-890); a write adds its partition to the transaction."""


class TransactionState(IntEnum):
    """The states, by their numbers in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """The name that clients and tools know."""
        return self.name.title().replace("_", "")

    @property
    def is_prepared(self) -> bool:
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


STATES_BY_TITLE = {state.title: state for state in TransactionState}

_IDLE = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})

COMES_FROM: dict[TransactionState, frozenset[TransactionState]] = {
    TransactionState.EMPTY: _IDLE,
    TransactionState.ONGOING: _IDLE | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: _IDLE
    | {TransactionState.ONGOING},  # a client of version 2 may abort what never began
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
    TransactionState.DEAD: _IDLE,
    TransactionState.PREPARE_EPOCH_FENCE: frozenset(),
}
"""The states from which each one may be reached."""


class IllegalStep(Exception):
    """A bug: the table does not have this step."""


class Producer(NamedTuple):
    """A producer's id and epoch, as its requests carry them."""

    id: int
    epoch: int


class Transaction(NamedTuple):
    """The state of one transactional id; times are wall times in ms."""

    id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = NO_TIME
    updated_ms: int = NO_TIME
    previous_producer_id: int = NO_PRODUCER_ID  # before its epochs were used up
    next_producer_id: int = NO_PRODUCER_ID  # to go on with once this transaction is complete
    last_epoch: int = NO_EPOCH  # the previous one, which identifies a repeated request; not on record
    client_version: int = VERSION_0

    @property
    def producer(self) -> Producer:
        return Producer(self.producer_id, self.producer_epoch)

    @property
    def is_idle(self) -> bool:
        return self.state in _IDLE

    @property
    def epochs_are_used_up(self) -> bool:
        """Whether only one epoch is left, which is reserved for fencing the last producer."""
        return self.producer_epoch >= LARGEST_EPOCH - 1

    def to(self, state: TransactionState, now_ms: int, **changes: object) -> Transaction:
        """The transaction in its next state; raises IllegalStep if the table does not have the step."""
        if self.state not in COMES_FROM[state]:
            raise IllegalStep(f"{self.id}: {self.state.title} is not followed by {state.title}")
        return self._replace(state=state, updated_ms=now_ms, **changes)  # type: ignore[arg-type]
