"""Carries transactions through: decides, has the decision on the disk, writes the markers, says that all is complete.

The record decides what happens after a crash, so the order is always the same:

1. A partition is in the transaction's record, written, before anything of the transaction is in the partition.
2. The decision to commit or abort is on the disk before the first marker is anywhere.
3. All markers are on the disk before the record says that the transaction is complete, and that is before the next one begins.

At a start what was decided is carried out (again: a marker more does no harm). The records of what belongs to a transaction are written
and not synced, so a power cut may take them: what partitions hold of open transactions is then put back on record, so that
the producer can go on, or aborted, if its transactional id is not known.

Everything runs on the event loop's thread. `done` functions are called once, at once or when the disk has answered. While a write of
an id is under way, other requests for it get CONCURRENT_TRANSACTIONS and try again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from horolog.broker.clock import Clock
from horolog.broker.cluster import Cluster
from horolog.broker.cluster_errors import ClusterError
from horolog.broker.committer import Committer
from horolog.broker.log.partition import Partition
from horolog.broker.topic_names import TRANSACTION_STATE
from horolog.broker.transactions import decisions
from horolog.broker.transactions.journal import Journal, NotWritten
from horolog.broker.transactions.marking import Marking, OffsetsEnded
from horolog.broker.transactions.states import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    Producer,
    State,
    TopicPartition,
    Transaction,
)
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.control import Marker

log = logging.getLogger(__name__)

Done = Callable[[ErrorCode, Producer | None], None]
"""Told the error, or none and the producer as it goes on."""


class _Entry:
    """One transactional id: its present state, and those who wait for its end."""

    __slots__ = ("_began_at", "_started_ms", "busy", "transaction", "unmarked", "waiting")

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        self.unmarked = transaction.partitions  # of a decided transaction: where its end is not yet on the disk
        self.busy = False
        self.waiting: list[Done] = []
        self._started_ms = -1  # of the transaction that is timed
        self._began_at = 0.0

    def age_ms(self, clock: Clock) -> int:
        """For how long the transaction has been going on, on monotonic time since it was first asked for."""
        transaction, monotonic = self.transaction, clock.monotonic()
        if self._started_ms != transaction.started_ms:
            self._started_ms = transaction.started_ms
            already_ms = clock.wall_ms() - transaction.started_ms  # from before a start, or else next to nothing
            self._began_at = monotonic - min(max(already_ms, 0), transaction.timeout_ms) / 1000
        return round((monotonic - self._began_at) * 1000)

    def __repr__(self) -> str:
        return f"<{self.transaction.id} {self.transaction.state.title}{', busy' if self.busy else ''}>"


class TransactionCoordinator:
    """Every transaction of the broker."""

    def __init__(
        self,
        cluster: Cluster,
        committer: Committer,
        clock: Clock,
        offsets_ended: OffsetsEnded,
        expiry_clock: Clock | None = None,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._expiry_clock = expiry_clock or clock
        self._journal = Journal(cluster, committer, clock)
        self._marking = Marking(cluster, committer, clock, offsets_ended)
        self._entries: dict[str, _Entry] = {}
        self._unrecorded: set[int] = set()
        """Producers with a transaction that is open in some partition and on no record, which the disk did not let us change yet."""

    def __repr__(self) -> str:
        return f"<TransactionCoordinator of {len(self._entries)} transactional ids>"

    # -- start

    def open(self) -> None:
        """Read the records, carry out their decisions, abort open transactions that no record knows."""
        for transactional_id, transaction in self._journal.read():
            if transaction is None:
                self._entries.pop(transactional_id, None)
            else:
                self._entries[transactional_id] = _Entry(transaction)
        if self._journal.is_readable:
            self._put_back_on_record()
        else:
            log.error("%r cannot be read: transactions that it does not know are left open", self._journal)
        self.finish_prepared()

    def reopened(self, partition: Partition) -> None:
        """A partition is back that could not be read before: its open producers join the transactions that they belong to."""
        if partition.topic == TRANSACTION_STATE:
            self._take_in(partition)
        if self._journal.is_readable:
            self._put_back_on_record()

    def _take_in(self, partition: Partition) -> None:
        """Read a partition of the log. Transactions in memory are newer than it."""
        known = set(self._entries)
        for transactional_id, transaction in self._journal.read_partition(partition):
            if transactional_id in known:
                continue
            if transaction is None:
                self._entries.pop(transactional_id, None)
            else:
                self._entries[transactional_id] = _Entry(transaction)

    def _put_back_on_record(self) -> None:
        """Partitions of open transactions whose record went with the power join them again; what nobody knows is aborted.

        The records of ids and of decisions are on the disk, so nobody was told of a commit that is missing here.
        """
        self._unrecorded = set()
        by_producer = {entry.transaction.producer_id: entry for entry in self._entries.values()}
        for producer, partition in list(self._marking.open_places()):
            place = (partition.topic, partition.index)
            entry = by_producer.get(producer.id)
            if entry is not None and (entry.busy or (entry.transaction.state.is_prepared and place in entry.unmarked)):
                continue
            if entry is not None:
                code = self._join(entry, producer, [place], entry.transaction.client_version)
                if code == ErrorCode.COORDINATOR_NOT_AVAILABLE:
                    self._unrecorded.add(producer.id)
                if code in (ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                    continue
            self._marking.abort_stray(producer, partition, partial(self._unrecorded.add, producer.id))

    def _is_off_record(self, entry: _Entry) -> bool:
        """Whether part of what this producer has written cannot be put back on record: its transaction stays as it is until then.

        Whatever it did next would go without those records, or take them into the wrong transaction.
        """
        if entry.transaction.producer_id in self._unrecorded:
            self._put_back_on_record()
        return entry.transaction.producer_id in self._unrecorded

    def ensure_topic(self) -> ErrorCode:
        """Have the topic of transactions; clients ask for their coordinator before anything else."""
        try:
            self._journal.open()
        except NotWritten as fault:
            return fault.code
        return ErrorCode.NONE

    # -- producers

    def initialize(self, transactional_id: str, timeout_ms: int, expected: Producer | None, done: Done) -> None:
        """Give a transactional id's producer its id and epoch, and fence the one before."""
        entry = self._entries.get(transactional_id)
        try:
            if entry is None:
                entry = self._new_entry(transactional_id, timeout_ms)
            code = self._initialize(entry, timeout_ms, expected, done)
        except NotWritten as fault:
            code = fault.code
        except ClusterError:
            code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # no producer id to be had now: clients try again
        if code is not None:
            done(code, None)

    def _new_entry(self, transactional_id: str, timeout_ms: int) -> _Entry:
        """An entry that is not kept before its first record is on the disk."""
        limit = self._cluster.settings.horolog_transactional_ids_max
        if len(self._entries) >= limit:
            raise NotWritten(ErrorCode.POLICY_VIOLATION, f"{limit} transactional ids are in use, no more are taken")
        self._journal.open()
        producer_id = self._cluster.next_producer_id()
        return _Entry(decisions.first(transactional_id, producer_id, timeout_ms, self._clock.wall_ms()))

    def _initialize(self, entry: _Entry, timeout_ms: int, expected: Producer | None, done: Done) -> ErrorCode | None:
        """An error that is known at once, or None: `done` is told later."""
        if entry.busy:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if self._is_off_record(entry):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        now_ms = self._clock.wall_ms()
        decision = decisions.initialize(entry.transaction, timeout_ms, expected, now_ms, self._cluster.next_producer_id)
        if isinstance(decision, ErrorCode):
            return decision
        if decision.state == State.PREPARE_ABORT:
            self._decide(entry, decision)
            return ErrorCode.CONCURRENT_TRANSACTIONS

        def failed(code: ErrorCode, _: Producer | None) -> None:
            if entry.transaction.producer_epoch == NO_EPOCH:
                del self._entries[entry.transaction.id]
            done(code, None)

        self._commit(entry, decision, lambda: done(ErrorCode.NONE, decision.producer), failed)
        self._entries[decision.id] = entry
        return None

    def _commit(self, entry: _Entry, decision: Transaction, then: Callable[[], None], failed: Done) -> None:
        """Have a decision on the disk, believe it, go on; raises NotWritten."""

        def written(well: bool) -> None:
            entry.busy = False
            if well:
                entry.transaction = decision
                entry.unmarked = decision.partitions
                then()
            else:
                failed(ErrorCode.COORDINATOR_NOT_AVAILABLE, None)

        self._journal.commit(decision, written)
        entry.busy = True

    def _unknown(self, transactional_id: str) -> ErrorCode:
        """What a client is told of an id that is not here: it is not known, or could not be read."""
        try:
            self._journal.partition_of(transactional_id)
        except NotWritten as fault:
            return fault.code
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
        """Make partitions part of the transaction; written when `done` is told so, which here is at once."""
        entry = self._entries.get(transactional_id)
        if entry is None:
            done(self._unknown(transactional_id))
        elif self._is_off_record(entry):
            done(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        else:
            done(self._join(entry, producer, partitions, client_version))

    def _join(
        self, entry: _Entry, producer: Producer, partitions: Iterable[TopicPartition], client_version: int
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
        entry.age_ms(self._clock)
        return ErrorCode.NONE

    def verify(
        self, transactional_id: str, producer: Producer, partition: TopicPartition, done: Callable[[ErrorCode], None]
    ) -> None:
        """Whether a producer may write to a partition now; TRANSACTION_ABORTABLE where that was not added."""
        entry = self._entries.get(transactional_id)
        if entry is None:
            done(self._unknown(transactional_id))
        elif entry.busy:
            done(ErrorCode.CONCURRENT_TRANSACTIONS)
        else:
            done(decisions.verify(entry.transaction, producer, partition))

    # -- the end of a transaction

    def end(self, transactional_id: str, producer: Producer, client_version: int, done: Done, *, commit: bool) -> None:
        """Commit or abort; `done` comes when every partition has its marker, or when only the disk keeps one from it."""
        entry = self._entries.get(transactional_id)
        if entry is None:
            done(self._unknown(transactional_id), None)
            return
        if entry.busy:
            done(ErrorCode.CONCURRENT_TRANSACTIONS, None)
            return
        if self._is_off_record(entry):
            done(ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
            return
        try:
            decision = decisions.end(
                entry.transaction,
                producer,
                client_version,
                self._clock.wall_ms(),
                self._cluster.next_producer_id,
                commit=commit,
            )
        except ClusterError:
            done(ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
            return
        if isinstance(decision, ErrorCode):
            done(decision, None)
        elif decision is entry.transaction:
            done(ErrorCode.NONE, decision.producer)
        else:
            self._decide(entry, decision, done)

    def _decide(self, entry: _Entry, prepared: Transaction, done: Done | None = None) -> None:
        """Have the decision on the disk, then carry it out."""
        failed = done or _nobody_waits
        if done is not None:
            entry.waiting.append(done)

        def not_written(code: ErrorCode, _: Producer | None) -> None:
            entry.waiting.clear()
            failed(code, None)

        try:
            self._commit(entry, prepared, lambda: self._mark(entry), not_written)
        except NotWritten as fault:
            log.error("%r could not be ended: %s", entry, fault)
            not_written(fault.code, None)

    def _mark(self, entry: _Entry) -> None:
        try:
            epoch = self._journal.partition_of(entry.transaction.id).leader_epoch
        except NotWritten as fault:
            log.error("%r stays as it is: %s", entry, fault)
            self._answer(entry)
            return
        entry.busy = True
        self._marking.mark(entry.transaction, entry.unmarked, epoch, lambda left: self._marked(entry, left))

    def _marked(self, entry: _Entry, left: frozenset[TopicPartition]) -> None:
        """Every marker was tried; those that are left are tried again by `finish_prepared`."""
        entry.unmarked = left
        if left:
            entry.busy = False
            log.error("%r: %s partitions have no marker yet", entry, len(left))
            self._answer(entry)
        else:
            self._complete(entry)

    def _complete(self, entry: _Entry) -> None:
        """On the disk before the next transaction begins: else its records would get the markers of this one after a power cut."""
        completed = decisions.complete(entry.transaction, self._clock.wall_ms())

        def failed(code: ErrorCode, _: Producer | None) -> None:
            log.error("%r is complete, which could not be written: %s", entry, code.name)
            self._answer(entry)

        try:
            self._commit(entry, completed, lambda: self._answer(entry), failed)
        except NotWritten as fault:
            entry.busy = False
            failed(fault.code, None)

    def _answer(self, entry: _Entry) -> None:
        """Decided it is, whatever happens to the markers."""
        transaction = entry.transaction
        if transaction.next_producer_id != NO_PRODUCER_ID:
            producer = Producer(transaction.next_producer_id, 0)
        else:
            producer = transaction.producer
        waiting, entry.waiting = entry.waiting, []
        for done in waiting:
            done(ErrorCode.NONE, producer)

    # -- work that comes again and again

    def finish_prepared(self) -> None:
        """Carry out decisions whose markers are not all there: after a start, or when the disk refused some."""
        if self._unrecorded:
            self._put_back_on_record()
        for entry in self._entries.values():
            if entry.transaction.state.is_prepared and not entry.busy:
                self._mark(entry)

    def abort_timed_out(self) -> None:
        """Abort transactions that take longer than their producers said."""
        now_ms = self._clock.wall_ms()
        for entry in list(self._entries.values()):
            if entry.transaction.producer_id in self._unrecorded:
                continue
            if not entry.busy and decisions.is_timed_out(entry.transaction, entry.age_ms(self._clock)):
                log.info("%r has taken longer than %s ms: aborted", entry, entry.transaction.timeout_ms)
                self._decide(entry, decisions.time_out(entry.transaction, now_ms))

    def forget_expired(self) -> None:
        """Forget transactional ids that nobody has used for `transactional.id.expiration.ms`."""
        now_ms = self._expiry_clock.wall_ms()
        expiration_ms = self._cluster.settings.transactional_id_expiration_ms
        for transactional_id, entry in list(self._entries.items()):
            if not entry.busy and decisions.is_expired(entry.transaction, now_ms, expiration_ms):
                try:
                    self._journal.forget(transactional_id)
                except NotWritten as fault:
                    log.error("%r could not be forgotten: %s", entry, fault)
                    return
                del self._entries[transactional_id]

    # -- looking at it

    def get(self, transactional_id: str) -> Transaction | None:
        entry = self._entries.get(transactional_id)
        return entry.transaction if entry is not None else None

    def __iter__(self) -> Iterator[Transaction]:
        return (entry.transaction for entry in self._entries.values())

    def write_markers(
        self,
        partitions: Sequence[Partition],
        producer: Producer,
        marker: Marker,
        done: Callable[[Mapping[Partition, ErrorCode]], None],
    ) -> None:
        """Write a marker that an admin tool asks for; `done` is told what went wrong."""
        self._marking.write_foreign(partitions, producer, marker, done)


def _nobody_waits(_code: ErrorCode, _producer: Producer | None) -> None:
    """An abort of the broker's own: what fails is tried again."""
