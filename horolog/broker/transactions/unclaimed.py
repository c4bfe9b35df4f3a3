"""Settles open transactions that may have no coordinator among several: one is aborted once all coordinators disclaim it twice.

A partition's record in a transaction is synced before the transaction writes to the partition. So a coordinator knows every transaction
found open at startup, except for those left by a single broker, by a broker that does not sync, or by a tool. Until it is ended, such a
transaction holds back readers of committed records.

- All brokers are asked for the transactions of the producer. While one does not answer or is still loading, no transaction counts as
  unknown. They are asked twice, because a coordinator may change between two responses.
- A transaction on record is left to its coordinator. If only its producer is known, the partition joins the producer's transaction: its
  records and the others end the same way.
- A transaction that no coordinator knows, or that its producer's transaction does not take, is aborted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from horolog.broker.log.partition import Partition
from horolog.broker.transactions.marking import Marking
from horolog.broker.transactions.open_transaction import OpenTransaction
from horolog.broker.transactions.other_brokers import Codes, OtherBrokers, Question
from horolog.broker.transactions.states import Producer, Transaction
from horolog.protocol.errors import ErrorCode
from horolog.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)

ROUNDS = 2
"""How often all coordinators must disclaim a transaction before it is aborted."""

_NOT_TAKEN = frozenset({ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE})


class Here(Protocol):
    """The coordinator of this broker."""

    @property
    def is_loading(self) -> bool: ...

    def __iter__(self) -> Iterator[Transaction]: ...

    def add(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Iterable[TopicPartition],
        client_version: int,
        done: Callable[[ErrorCode], None],
    ) -> None: ...


class Suspect(NamedTuple):
    """A transaction that is open in a partition, from the offset `since` on."""

    producer: Producer
    partition: Partition
    since: int

    @property
    def place(self) -> TopicPartition:
        return self.partition.topic, self.partition.index


Claims = Mapping[int, list[tuple[int, Transaction]]]
"""The transactions of each producer id, each with the broker that coordinates it."""


class Unclaimed:
    """The open transactions found at startup or after a fault, until each is on record or aborted."""

    def __init__(self, here: Here, others: OtherBrokers, marking: Marking) -> None:
        self._here = here
        self._others = others
        self._marking = marking
        self._rounds: dict[Suspect, int] = {}
        self._is_asking = False

    def __repr__(self) -> str:
        return f"<Unclaimed: {len(self._rounds)} suspects>"

    def __contains__(self, producer_id: int) -> bool:
        """Always False: no transaction waits for its partitions to be recorded."""
        return False

    def is_off_record(self, entry: OpenTransaction) -> bool:  # noqa: ARG002 - as `strays` has it
        return False

    def settle(self) -> None:
        """Suspect every transaction open here; the next `try_again` asks about them."""
        for suspect in self._open():
            self._rounds.setdefault(suspect, 0)

    def try_again(self) -> None:
        """Ask about the suspects that are left."""
        if not self._rounds or self._is_asking:
            return
        self._forget_ended()
        if self._rounds and not self._here.is_loading:
            self._is_asking = True
            self._others.transactions_of({one.producer.id for one in self._rounds}, self._told)

    def _forget_ended(self) -> None:
        still_open = set(self._open())
        self._rounds = {suspect: rounds for suspect, rounds in self._rounds.items() if suspect in still_open}

    def _open(self) -> Iterator[Suspect]:
        for producer, partition in self._marking.open_places():
            known = partition.producers.get(producer.id)
            assert known is not None, "its transaction is open"
            yield Suspect(producer, partition, known.transaction_start)

    def _told(self, elsewhere: list[tuple[int, Transaction]] | None) -> None:
        self._is_asking = False
        if elsewhere is None or self._here.is_loading:
            return
        self._forget_ended()  # those that have ended meanwhile are no longer on record
        claims: dict[int, list[tuple[int, Transaction]]] = {}
        for node, transaction in (*elsewhere, *((self._others.me, one) for one in self._here)):
            claims.setdefault(transaction.producer_id, []).append((node, transaction))
        for suspect in list(self._rounds):
            self._judge(suspect, claims.get(suspect.producer.id, ()))

    def _judge(self, suspect: Suspect, claims: Iterable[tuple[int, Transaction]]) -> None:
        for node, transaction in claims:
            if suspect.place in transaction.partitions:
                del self._rounds[suspect]
            elif not transaction.state.is_prepared:
                self._put_on_record(suspect, node, transaction)
            return
        self._not_known(suspect)

    def _put_on_record(self, suspect: Suspect, node: int, transaction: Transaction) -> None:
        def answered(code: ErrorCode) -> None:
            if code == ErrorCode.NONE:
                self._rounds.pop(suspect, None)
            elif code in _NOT_TAKEN:
                self._not_known(suspect)

        place, version = suspect.place, transaction.client_version
        if node == self._others.me:
            self._here.add(transaction.id, suspect.producer, [place], version, answered)
            return

        def told(found: list[Codes]) -> None:
            answered(found[0][place])

        self._others.ask(node, [Question(transaction.id, suspect.producer, [place], adds=True)], told)

    def _not_known(self, suspect: Suspect) -> None:
        rounds = self._rounds.pop(suspect, 0) + 1
        if rounds < ROUNDS:
            self._rounds[suspect] = rounds
            return
        self._marking.abort_stray(
            suspect.producer, suspect.partition, partial(self._rounds.__setitem__, suspect, ROUNDS - 1)
        )
