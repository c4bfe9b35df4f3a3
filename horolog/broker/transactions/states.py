"""The states of a transaction as a table, and a transaction as a value.

    Empty          the transactional id has a producer, no transaction has begun
    Ongoing        partitions were added; producers write
    Prepare...     decided and on record: whatever happens now, it ends so; markers are on their way
    Complete...    every partition has its marker; the next transaction may begin
    Dead           the id is about to be forgotten
    PrepareEpochFence  never on record: Kafka's name for an abort that fences the producer, which here is one step

A transaction is never changed, only replaced: what was decided can be written first and believed afterwards.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIME = -1
LARGEST_EPOCH = 2**15 - 1

VERSION_0 = 0
"""Clients that add partitions and offsets themselves, and keep their epoch."""

VERSION_2 = 2
"""Clients that get a new epoch with every end (KIP-890); writing adds the partitions written to."""

TopicPartition = tuple[str, int]


class State(IntEnum):
    """By the numbers they have in the log."""

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
        return self in (State.PREPARE_COMMIT, State.PREPARE_ABORT)


STATES_BY_TITLE = {state.title: state for state in State}

_IDLE = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})

COMES_FROM: dict[State, frozenset[State]] = {
    State.EMPTY: _IDLE,
    State.ONGOING: _IDLE | {State.ONGOING},
    State.PREPARE_COMMIT: frozenset({State.ONGOING}),
    State.PREPARE_ABORT: _IDLE | {State.ONGOING},  # a client of version 2 may abort what never began
    State.COMPLETE_COMMIT: frozenset({State.PREPARE_COMMIT}),
    State.COMPLETE_ABORT: frozenset({State.PREPARE_ABORT}),
    State.DEAD: _IDLE,
    State.PREPARE_EPOCH_FENCE: frozenset(),
}
"""From which states each may be reached."""


class IllegalStep(Exception):
    """A fault of ours: the table does not know this step."""


class Producer(NamedTuple):
    """A producer as it names itself."""

    id: int
    epoch: int


class Transaction(NamedTuple):
    """The knowledge of one transactional id; times are wall times in ms."""

    id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = NO_TIME
    updated_ms: int = NO_TIME
    previous_producer_id: int = NO_PRODUCER_ID  # before its epochs were used up
    next_producer_id: int = NO_PRODUCER_ID  # to go on with once this transaction is complete
    last_epoch: int = NO_EPOCH  # the one before, by which a repeated request is known; not on record
    client_version: int = VERSION_0

    @property
    def producer(self) -> Producer:
        return Producer(self.producer_id, self.producer_epoch)

    @property
    def is_idle(self) -> bool:
        return self.state in _IDLE

    @property
    def epochs_are_used_up(self) -> bool:
        """One more is left, to fence the last producer with."""
        return self.producer_epoch >= LARGEST_EPOCH - 1

    def to(self, state: State, now_ms: int, **changes: object) -> Transaction:
        """The next state; raises IllegalStep for one that the table does not know."""
        if self.state not in COMES_FROM[state]:
            raise IllegalStep(f"{self.id}: {self.state.title} is not followed by {state.title}")
        return self._replace(state=state, updated_ms=now_ms, **changes)  # type: ignore[arg-type]
