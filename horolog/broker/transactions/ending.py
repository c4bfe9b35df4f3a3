"""Ends a transaction: syncs the decision, writes the markers, writes the record of completion, answers the clients."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from horolog.base.clock import Clock
from horolog.base.readable import counted
from horolog.broker.base.answers import Answer, run
from horolog.broker.transactions import decisions
from horolog.broker.transactions.journal import NotWritten, TransactionJournal
from horolog.broker.transactions.marking import Marking
from horolog.broker.transactions.open_transaction import Done, OpenTransaction
from horolog.broker.transactions.states import NO_PRODUCER_ID, Producer, Transaction
from horolog.protocol.errors import ErrorCode
from horolog.protocol.topic_partition import TopicPartition

log = logging.getLogger(__name__)


class Ending:
    """The steps that end a transaction, each begun once the previous one is on the disk."""

    def __init__(
        self, journal: TransactionJournal, marking: Marking, clock: Clock, settled: Callable[[str], None]
    ) -> None:
        """`settled` is called with the transactional id when a step is on the disk: requests that waited may be made again."""
        self._journal = journal
        self._marking = marking
        self._clock = clock
        self._settled = settled

    def __repr__(self) -> str:
        return f"<Ending by {self._journal!r} and {self._marking!r}>"

    def commit(self, entry: OpenTransaction, decision: Transaction, then: Callable[[], None], failed: Done) -> None:
        """Write a decision to the disk, apply it, and go on with `then`; raises NotWritten."""

        def written(well: bool) -> None:
            entry.busy = False
            if entry.is_lost:
                failed(ErrorCode.NOT_COORDINATOR, None)
            elif well:
                entry.transaction = decision
                entry.unmarked = decision.partitions
                then()
                self._settled(decision.id)
            else:
                failed(ErrorCode.COORDINATOR_NOT_AVAILABLE, None)

        self._journal.commit(decision, written)
        entry.busy = True

    def decide(self, entry: OpenTransaction, prepared: Transaction, done: Done | None = None) -> None:
        """Write the decision to the disk, then carry it out."""
        if done is not None:
            entry.waiting.append(done)
        run(self._decide(entry, prepared, done or _nobody_waits))

    async def _decide(self, entry: OpenTransaction, prepared: Transaction, failed: Done) -> None:
        code = await self._written(entry, prepared)
        if code:
            entry.waiting.clear()
            failed(code, None)
        else:
            await self._mark(entry)

    def mark(self, entry: OpenTransaction) -> None:
        """Carry out a decision that is on the disk."""
        run(self._mark(entry))

    async def _mark(self, entry: OpenTransaction) -> None:
        """Markers that are left are retried by `finish_prepared`, or by the id's new coordinator."""
        try:
            epoch = self._journal.partition_of(entry.transaction.id).leader_epoch
        except NotWritten as fault:
            log.error("transaction %s is decided, but has no markers yet: %s", entry.transaction.id, fault)
        else:
            entry.busy = True
            mark = partial(self._marking.mark, entry.transaction, entry.unmarked, epoch)
            entry.unmarked = await Answer[frozenset[TopicPartition]](mark)
            if not entry.is_lost:
                await self._complete(entry)
        self._answer(entry)

    async def _complete(self, entry: OpenTransaction) -> None:
        """Record it on the disk before the next transaction begins: else, after a power cut, its records would get this one's markers."""
        if entry.unmarked:
            log.error(
                "transaction %s: no marker yet in %s", entry.transaction.id, counted(len(entry.unmarked), "partition")
            )
        else:
            code = await self._written(entry, decisions.complete(entry.transaction, self._clock.wall_ms()))
            if code:
                log.error("transaction %s is complete, but could not be written: %s", entry.transaction.id, code.name)
        entry.busy = False

    async def _written(self, entry: OpenTransaction, decision: Transaction) -> ErrorCode:
        """Write a decision to the disk and apply it; returns why that failed."""

        def begin(told: Callable[[ErrorCode], None]) -> None:
            try:
                self.commit(entry, decision, lambda: told(ErrorCode.NONE), lambda code, _: told(code))
            except NotWritten as fault:
                log.error("transaction %s could not be written: %s", entry.transaction.id, fault)
                told(fault.code)

        return await Answer[ErrorCode](begin)

    def _answer(self, entry: OpenTransaction) -> None:
        """Answer without error: the transaction is decided, whatever happens to the markers."""
        transaction = entry.transaction
        if transaction.next_producer_id != NO_PRODUCER_ID:
            producer = Producer(transaction.next_producer_id, 0)
        else:
            producer = transaction.producer
        waiting, entry.waiting = entry.waiting, []
        for done in waiting:
            done(ErrorCode.NONE, producer)


def _nobody_waits(_code: ErrorCode, _producer: Producer | None) -> None:
    """For the broker's own aborts: a failed one is retried."""
