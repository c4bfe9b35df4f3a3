"""Coordinates transactions: decides, syncs the decision, writes the markers, records that the transaction is complete.

What happens after a crash depends on the records alone, so the order is always the same:

1. A partition is written to the transaction's record before any of the transaction's data is written to the partition.
2. The decision to commit or abort is on the disk before the first marker is written.
3. All markers are on the disk before the record says that the transaction is complete, and that record is on the disk before
   the next transaction begins.

At startup every decision is carried out, possibly again: an extra marker does no harm. The records of a transaction's partitions are
written but not synced, so a power cut may lose them. Transactions found open in partitions are then recorded again, so that their
producers can go on, or aborted if the transactional id is unknown. With several brokers these records are synced before they are
acknowledged: only the coordinator knows which partitions of other brokers belong to a transaction.

Everything runs on the event loop's thread. Each `done` is called once, immediately or when the write has finished. While a write for
an id is in progress, other requests for it get CONCURRENT_TRANSACTIONS; `handlers.transaction_lines` has those of clients wait for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Iterator
from typing import TYPE_CHECKING

from horolog.base.clock import Clock
from horolog.broker.base.late_answers import InTime
from horolog.broker.base.topic_names import TRANSACTION_STATE
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.commit.committer import Committer
from horolog.broker.log.integrity import BeingRescanned
from horolog.broker.log.partition import Partition
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.transactions import decisions
from horolog.broker.transactions.ending import Ending
from horolog.broker.transactions.journal import NotWritten, TransactionJournal
from horolog.broker.transactions.marking import Marking, OffsetsEnded
from horolog.broker.transactions.open_transaction import Done, OpenTransaction
from horolog.broker.transactions.states import NO_EPOCH, TO_BE_TRIED_AGAIN, Producer, Transaction, TransactionState
from horolog.broker.transactions.strays import Strays
from horolog.protocol.errors import ErrorCode
from horolog.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from horolog.broker.transactions.other_brokers import OtherBrokers

log = logging.getLogger(__name__)


class TransactionCoordinator:
    """Every transaction of the shards that this broker leads."""

    def __init__(
        self,
        cluster: Cluster,
        committer: Committer,
        clock: Clock,
        offsets_ended: OffsetsEnded,
        others: OtherBrokers,
        expiry_clock: Clock | None = None,
        *,
        settled: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`others` are the brokers that lead the other partitions and coordinate the other ids.

        `settled` is called with a transactional id when a step of its transaction has ended.
        """
        self._cluster = cluster
        self._clock = clock
        self._expiry_clock = expiry_clock or clock
        self._journal = TransactionJournal(cluster, committer, clock)
        self.marking = Marking(cluster, committer, clock, offsets_ended, others)
        self._entries: dict[str, OpenTransaction] = {}
        self._unread: set[int] = set()
        """Shards that this broker coordinates but could not read yet."""
        self._ending = Ending(self._journal, self.marking, clock, settled)
        self._strays = Strays(
            self._entries,
            self._join,
            lambda: not self._unread and self._journal.is_readable,
            others,
            self.marking,
        )

    def __repr__(self) -> str:
        return f"<TransactionCoordinator of {len(self._entries)} transactional ids>"

    # -- start

    def open(self) -> None:
        """Read the records, carry out their decisions, and abort open transactions without a record."""
        for partition in self._journal.led_here:
            self._take_in(partition, ())
        self._settle()

    def _settle(self) -> None:
        if self._journal.is_readable:
            self._strays.settle()
        elif not self._journal.is_opening:
            log.error("%s cannot be read: unknown transactions stay open", TRANSACTION_STATE)
        self.finish_prepared()

    def reopened(self, partition: Partition) -> None:
        """A partition has become readable: its open producers rejoin their transactions."""
        if partition.topic == TRANSACTION_STATE:
            self._take_in(partition, set(self._entries))
        if self._journal.is_readable:
            self._strays.settle()

    def _take_in(self, partition: Partition, known: Container[str]) -> None:
        """Read a partition of the log, except for transactions `known` in memory, which are newer."""
        for transactional_id, transaction in self._journal.read(partition):
            if transactional_id in known:
                continue
            if transaction is None:
                self._entries.pop(transactional_id, None)
            else:
                self._entries[transactional_id] = OpenTransaction(transaction, may_have_begun=True)

    def gained(self, shard: int) -> None:
        """Coordinate the ids of a shard from now on. Until it is read, requests for them get a retriable error."""
        found = self._journal.find(shard)
        if isinstance(found, ErrorCode):
            return
        self._unread.add(shard)
        try:
            self._take_in(found, ())
        except BeingRescanned as damage:
            log.warning("shard %s of the transactions will be read after its rescan: %s", shard, damage)
            return
        self._unread.discard(shard)
        self._settle()

    def lost(self, shard: int) -> None:
        """Another broker now coordinates the ids of a shard: requests in progress for them fail here."""
        self._unread.discard(shard)
        for transactional_id, entry in list(self._entries.items()):
            if self._journal.shard_of(transactional_id) == shard:
                entry.is_lost = True
                del self._entries[transactional_id]

    def ensure_topic(self, done: Callable[[ErrorCode], None]) -> None:
        """Create the topic of transactions if it is missing; clients look up their coordinator before anything else."""
        self._journal.when_made(lambda refusal: done(ErrorCode.NONE if refusal is None else refusal.code))

    # -- producers

    def initialize(self, transactional_id: str, timeout_ms: int, expected: Producer | None, done: Done) -> None:
        """Give a transactional id's producer its id and epoch, and fence the previous one."""

        def begin() -> None:
            entry = self._entries.get(transactional_id)
            try:
                if entry is None:
                    entry = self._new_entry(transactional_id, timeout_ms)
                code = self._initialize(entry, timeout_ms, expected, done)
            except NotWritten as fault:
                code = fault.code
            except ClusterError:
                code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # no producer id is available now: clients retry
            if code is not None:
                done(code, None)

        self._cluster.producer_ids.when_there(begin)

    def _new_entry(self, transactional_id: str, timeout_ms: int) -> OpenTransaction:
        """A new entry, which the caller keeps once its first record is submitted."""
        limit = self._cluster.settings.horolog_transactional_ids_max
        if len(self._entries) >= limit:
            raise NotWritten(
                ErrorCode.POLICY_VIOLATION,
                f"{limit} transactional ids are in use, which is the maximum (horolog.transactional.ids.max)",
            )
        code = self._unknown(transactional_id)
        if code != ErrorCode.INVALID_PRODUCER_ID_MAPPING:
            raise NotWritten(code, f"this broker cannot begin a transaction of {transactional_id}")
        producer_id = self._cluster.producer_ids.take()
        return OpenTransaction(decisions.first(transactional_id, producer_id, timeout_ms, self._clock.wall_ms()))

    def _initialize(
        self, entry: OpenTransaction, timeout_ms: int, expected: Producer | None, done: Done
    ) -> ErrorCode | None:
        """An error known immediately, or None: `done` is called later."""
        if entry.busy:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if self._strays.still_hold_up(entry):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        now_ms = self._clock.wall_ms()
        decision = decisions.initialize(
            entry.transaction, timeout_ms, expected, now_ms, self._cluster.producer_ids.take
        )
        if isinstance(decision, ErrorCode):
            return decision
        entry.may_have_begun = False
        if decision.state == TransactionState.PREPARE_ABORT:
            self._ending.decide(entry, decision)
            return ErrorCode.CONCURRENT_TRANSACTIONS

        def failed(code: ErrorCode, _: Producer | None) -> None:
            is_new = entry.transaction.producer_epoch == NO_EPOCH
            if is_new and self._entries.get(decision.id) is entry:
                del self._entries[decision.id]
            done(code, None)

        self._ending.commit(entry, decision, lambda: done(ErrorCode.NONE, decision.producer), failed)
        self._entries[decision.id] = entry
        return None

    def _unknown(self, transactional_id: str) -> ErrorCode:
        """The error for an id that is not here: it is unknown, could not be read, or belongs to another broker."""
        try:
            partition = self._journal.partition_of(transactional_id)
        except NotWritten as fault:
            return fault.code
        if partition.index in self._unread:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING

    # -- what belongs to a transaction

    def add(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Iterable[TopicPartition],
        client_version: int,
        done: Callable[[ErrorCode], None],
    ) -> None:
        """Add partitions to the transaction; when `done` is called, this is written, with several brokers also synced."""
        entry = self._entries.get(transactional_id)
        if entry is None:
            done(self._unknown(transactional_id))
            return
        if self._strays.still_hold_up(entry):
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        else:
            code = self._join(entry, producer, partitions, client_version)
        if code in TO_BE_TRIED_AGAIN:
            entry.may_have_begun = True
        if code or not self._cluster.is_shared:
            done(code)
            return
        try:
            late = ErrorCode.COORDINATOR_NOT_AVAILABLE
            self._journal.when_safe(transactional_id, InTime(done, late, self._cluster.later))
        except NotWritten as fault:
            done(fault.code)

    def _join(
        self, entry: OpenTransaction, producer: Producer, partitions: Iterable[TopicPartition], client_version: int
    ) -> ErrorCode:
        if entry.busy:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        now_ms = self._clock.wall_ms()
        decision = decisions.add(entry.transaction, producer, frozenset(partitions), now_ms, client_version)
        if isinstance(decision, ErrorCode):
            return decision
        if decision is entry.transaction:
            return ErrorCode.NONE
        if len(decision.partitions) > self._cluster.settings.horolog_transaction_partitions_max:
            return ErrorCode.POLICY_VIOLATION
        try:
            self._journal.write(decision)
        except NotWritten as fault:
            log.warning("%s: partitions could not be added: %s", entry.transaction.id, fault)
            return fault.code
        entry.transaction = decision
        entry.may_have_begun = False
        entry.age_ms(self._clock)
        return ErrorCode.NONE

    def verify(
        self, transactional_id: str, producer: Producer, partition: TopicPartition, done: Callable[[ErrorCode], None]
    ) -> None:
        """Whether a producer may write to a partition now; TRANSACTION_ABORTABLE if the partition was not added."""
        entry = self._entries.get(transactional_id)
        if entry is None:
            done(self._unknown(transactional_id))
        elif entry.busy:
            done(ErrorCode.CONCURRENT_TRANSACTIONS)
        else:
            done(decisions.verify(entry.transaction, producer, partition))

    def refused(self, transactional_id: str) -> None:
        """A request that adds to the transaction was refused for now, before it came here: its producer may have begun it on its side."""
        entry = self._entries.get(transactional_id)
        if entry is not None:
            entry.may_have_begun = True

    # -- the end of a transaction

    def end(self, transactional_id: str, producer: Producer, client_version: int, done: Done, *, commit: bool) -> None:
        """Commit or abort; `done` is called once every marker is written or left to a retry."""
        entry = self._entries.get(transactional_id)
        if entry is None:
            done(self._unknown(transactional_id), None)
            return
        if entry.busy:
            done(ErrorCode.CONCURRENT_TRANSACTIONS, None)
            return
        if self._strays.still_hold_up(entry):
            done(ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
            return
        try:
            decision = decisions.end(
                entry.transaction,
                producer,
                client_version,
                self._clock.wall_ms(),
                self._cluster.producer_ids.take,
                commit=commit,
                may_have_begun=entry.may_have_begun,
            )
        except ClusterError:
            done(ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
            return
        if isinstance(decision, ErrorCode):
            done(decision, None)
        elif decision is entry.transaction:
            done(ErrorCode.NONE, decision.producer)
        else:
            self._ending.decide(entry, decision, done)

    # -- periodic work

    def finish_prepared(self) -> None:
        """Carry out decisions with missing markers: after a restart, or after writes that failed."""
        for shard in sorted(self._unread):
            self.gained(shard)
        self._strays.try_again()
        for entry in self._entries.values():
            if entry.transaction.state.is_prepared and not entry.busy:
                self._ending.mark(entry)

    def abort_timed_out(self) -> None:
        """Abort transactions that have exceeded their producers' timeouts."""
        now_ms = self._clock.wall_ms()
        for entry in list(self._entries.values()):
            if self._strays.hold_up(entry):
                continue
            if not entry.busy and decisions.is_timed_out(entry.transaction, entry.age_ms(self._clock)):
                log.info(
                    "transaction %s timed out after %s ms: aborted", entry.transaction.id, entry.transaction.timeout_ms
                )
                self._ending.decide(entry, decisions.time_out(entry.transaction, now_ms))

    def forget_expired(self) -> None:
        """Forget transactional ids that were not used for `transactional.id.expiration.ms`."""
        now_ms = self._expiry_clock.wall_ms()
        expiration_ms = self._cluster.settings.transactional_id_expiration_ms
        for transactional_id, entry in list(self._entries.items()):
            if not entry.busy and decisions.is_expired(entry.transaction, now_ms, expiration_ms):
                try:
                    self._journal.forget(transactional_id)
                except NotWritten as fault:
                    log.error("transactional id %s could not be forgotten: %s", transactional_id, fault)
                    return
                del self._entries[transactional_id]

    # -- lookups

    @property
    def is_loading(self) -> bool:
        """Whether a list of transactions would be incomplete: a broker that asks takes it for all that this broker coordinates."""
        return bool(self._unread) or (self._cluster.is_shared and not self._journal.is_readable)

    def absence_of(self, transactional_id: str) -> ErrorCode:
        """Why an id is not here: it is unknown, not loaded yet, or belongs to another broker."""
        shard = self._journal.shard_of(transactional_id)
        if self._journal.find(shard) == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            return self._journal.absence(shard)
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if shard in self._unread else ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

    def get(self, transactional_id: str) -> Transaction | None:
        entry = self._entries.get(transactional_id)
        return entry.transaction if entry is not None else None

    def __iter__(self) -> Iterator[Transaction]:
        return (entry.transaction for entry in self._entries.values())
