"""Settles transactions that are open in partitions here and not on record: each is recorded again, or aborted if it is unknown.

The record of a transaction's partitions may be lost in a power cut: a sole broker does not sync it, and with several brokers it may have
been left by one that did not. Until such a transaction is ended, it holds back readers of committed records.

- If this broker coordinates the producer, the partition joins the producer's transaction again: its records and the others end the same
  way. Until that is written, the producer's requests are refused with a retriable error: they would miss those records, or take them into
  the wrong transaction.
- Else all other coordinators are asked for the producer's transactions. While one does not answer, or does not serve all that it leads on
  record, or some ids here are not read yet, no transaction counts as unknown. A transaction on record is left to its coordinator; if only its producer is known, the partition joins.
- A transaction that its producer's coordinator does not take, or that no coordinator knows, is aborted. Two rounds have to agree
  on that, because a coordinator may change between two responses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from horolog.broker.base.answers import Answer, run
from horolog.broker.log.partition import Partition
from horolog.broker.transactions.marking import Marking
from horolog.broker.transactions.open_transaction import OpenTransaction
from horolog.broker.transactions.other_brokers import Codes, Found, OtherBrokers, Question
from horolog.broker.transactions.states import Producer, Transaction
from horolog.protocol.errors import ErrorCode
from horolog.protocol.topic_partition import TopicPartition

ROUNDS = 2
"""How often a transaction must be disclaimed before it is aborted."""

_NOT_TAKEN = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.POLICY_VIOLATION,
    }
)


Join = Callable[[OpenTransaction, Producer, list[TopicPartition], int], ErrorCode]
"""Adds partitions to a transaction that is coordinated here, as a client of this version would."""


class Suspect(NamedTuple):
    """A transaction that is open in a partition, from the offset `since` on."""

    producer: Producer
    partition: Partition
    since: int

    @property
    def place(self) -> TopicPartition:
        return self.partition.topic, self.partition.index


Claims = Mapping[int, tuple[int, Transaction]]
"""The transaction of each producer id, with the broker that coordinates it."""


class Strays:
    """The open transactions found at a start or after a fault, until each is on record or aborted."""

    def __init__(
        self,
        entries: Mapping[str, OpenTransaction],
        join: Join,
        knows_its_own: Callable[[], bool],
        others: OtherBrokers,
        marking: Marking,
    ) -> None:
        """`knows_its_own` says whether all `entries` that this broker coordinates have been read, and could be."""
        self._entries = entries
        self._join = join
        self._knows_its_own = knows_its_own
        self._others = others
        self._marking = marking
        self._rounds: dict[Suspect, int] = {}
        self._is_asking = False

    def __repr__(self) -> str:
        return f"<Strays: {len(self._rounds)} suspects>"

    def hold_up(self, entry: OpenTransaction) -> bool:
        """Whether a producer has records that are not part of its transaction yet: until then the transaction stays as it is."""
        transaction = entry.transaction
        return any(
            one.producer.id == transaction.producer_id and one.place not in transaction.partitions
            for one in self._rounds
        )

    def still_hold_up(self, entry: OpenTransaction) -> bool:
        """As `hold_up`, after another try."""
        if self.hold_up(entry):
            self.try_again()
        return self.hold_up(entry)

    def settle(self) -> None:
        """Suspect every transaction that is open here, and settle at once those that need no question to another broker."""
        for suspect in self._open():
            self._rounds.setdefault(suspect, 0)
        for _ in range(ROUNDS):
            self.try_again()

    def try_again(self) -> None:
        """Retry what failed before, and ask about the suspects that are left."""
        if not self._rounds:
            return
        self._forget_ended()
        known = self._record_again()
        wanted = {one.producer.id for one in self._rounds} - known
        if wanted and not self._is_asking and self._knows_its_own():
            run(self._ask(wanted))

    def _forget_ended(self) -> None:
        still_open = set(self._open())
        self._rounds = {suspect: rounds for suspect, rounds in self._rounds.items() if suspect in still_open}

    def _open(self) -> Iterator[Suspect]:
        for producer, partition in self._marking.open_places():
            known = partition.producers.get(producer.id)
            assert known is not None, "its transaction is open"
            yield Suspect(producer, partition, known.transaction_start)

    def _record_again(self) -> set[int]:
        """Record what belongs to producers that are coordinated here; returns their ids."""
        known = {entry.transaction.producer_id: entry for entry in self._entries.values()}
        for suspect in [one for one in self._rounds if one.producer.id in known]:
            self._judged(suspect, self._recorded(suspect, known[suspect.producer.id]))
        return set(known)

    def _recorded(self, suspect: Suspect, entry: OpenTransaction) -> ErrorCode:
        transaction, place = entry.transaction, suspect.place
        if not entry.busy and transaction.state.is_prepared and place in transaction.partitions:
            entry.unmarked |= {place}  # its marker is lost
            return ErrorCode.NONE
        return self._join(entry, suspect.producer, [place], transaction.client_version)

    async def _ask(self, wanted: Iterable[int]) -> None:
        """Ask all other coordinators about producers that are unknown here, and judge by their answers."""
        self._is_asking = True
        elsewhere = await Answer[Found | None](partial(self._others.transactions_of, wanted))
        self._is_asking = False
        if elsewhere is None or not self._knows_its_own():
            return
        self._forget_ended()  # those that have ended meanwhile are no longer on record
        claims = {transaction.producer_id: (node, transaction) for node, transaction in elsewhere}
        unknown_here = set(wanted).difference(one.transaction.producer_id for one in self._entries.values())
        for suspect in [one for one in self._rounds if one.producer.id in unknown_here]:
            run(self._judge(suspect, claims))

    async def _judge(self, suspect: Suspect, claims: Claims) -> None:
        node, transaction = claims.get(suspect.producer.id, (None, None))
        if transaction is None or node is None:
            self._not_known(suspect)
        elif suspect.place in transaction.partitions:
            del self._rounds[suspect]
        elif not transaction.state.is_prepared:
            question = Question(transaction.id, suspect.producer, [suspect.place], adds=True)
            found = await Answer[list[Codes]](partial(self._others.ask, node, [question]))
            self._judged(suspect, found[0][suspect.place])

    def _judged(self, suspect: Suspect, code: ErrorCode) -> None:
        if code == ErrorCode.NONE:
            self._rounds.pop(suspect, None)
        elif code in _NOT_TAKEN:
            self._not_known(suspect)

    def _not_known(self, suspect: Suspect) -> None:
        rounds = self._rounds.pop(suspect, 0) + 1
        if rounds < ROUNDS:
            self._rounds[suspect] = rounds
            return
        self._marking.abort_stray(
            suspect.producer, suspect.partition, partial(self._rounds.__setitem__, suspect, ROUNDS - 1)
        )
