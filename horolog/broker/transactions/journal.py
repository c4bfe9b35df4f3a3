"""`__transaction_state`, the topic that keeps transactions: writes them, and reads all of them at startup."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from horolog.base.clock import Clock
from horolog.broker.base.topic_names import TRANSACTION_STATE
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.commit.committer import Committer
from horolog.broker.commit.safety import Failures
from horolog.broker.coordination.topic_journal import (
    StoredBatch,
    TopicJournal,
    put_offline,
)
from horolog.broker.log.integrity import BeingRescanned
from horolog.broker.log.partition import SERVING, Partition
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.validation import RefusedSet, own_batch
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.transactions import records
from horolog.broker.transactions.states import Transaction, TransactionState
from horolog.protocol.errors import DecodeError, ErrorCode

log = logging.getLogger(__name__)

END_RESERVE_BYTES = 128
"""How much larger the record of a transaction's end may be than the one before: an open transaction must leave room for it."""


class NotWritten(Exception):
    """Nothing was written; `code` is for the client."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class TransactionJournal(TopicJournal):
    """The coordinator's view of the topic."""

    def __init__(self, cluster: Cluster, committer: Committer, clock: Clock) -> None:
        super().__init__(TRANSACTION_STATE, cluster, committer, clock)

    @property
    def is_readable(self) -> bool:
        """Whether all partitions that this broker is to lead are open here, and none has a disk fault."""
        return not self.is_opening and all(one.condition.fault is None for one in self.led_here)

    @property
    def is_opening(self) -> bool:
        """Whether a partition is led here and is not served yet: its transactions are not known to any broker."""
        topic = self._cluster.topics.get(self._topic)
        if topic is None or not self._cluster.is_shared:
            return False
        me, state = self._cluster.settings.node_id, self._cluster.state
        led = (index for index in range(topic.partition_count) if state.leader(topic.id, index) == me)
        return any(isinstance(topic.find(index), ErrorCode) for index in led)

    def open(self) -> None:
        """Create the topic if it is missing; raises NotWritten."""
        try:
            self.make_topic()
        except ClusterError as error:
            log.error("%s cannot be created: %s", TRANSACTION_STATE, error)
            raise NotWritten(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error

    def partition_of(self, transactional_id: str) -> Partition:
        """The partition that keeps an id; raises NotWritten if it is not led here or not writable."""
        self.open()
        shard = self.shard_of(transactional_id)
        partition = self.find(shard)
        if isinstance(partition, ErrorCode):
            raise NotWritten(self.absence(shard), f"{transactional_id} is kept in a partition that is not served here")
        condition = partition.condition
        why_not = None if condition.state is SERVING else condition.fault or condition.stopped
        if why_not is not None:
            raise NotWritten(ErrorCode.COORDINATOR_NOT_AVAILABLE, why_not)
        return partition

    def write(self, transaction: Transaction) -> None:
        """Write it, unsynced, before this returns; raises NotWritten."""
        value = records.value_bytes(transaction)
        partition = self.partition_of(transaction.id)
        limit_bytes = partition.config.max_message_bytes - END_RESERVE_BYTES
        if transaction.state == TransactionState.ONGOING and len(value) + len(transaction.id.encode()) > limit_bytes:
            raise NotWritten(ErrorCode.POLICY_VIOLATION, f"a transaction's record of {len(value)} bytes is too large")
        self._write_now(partition, transaction.id, value)

    def forget(self, transactional_id: str) -> None:
        """Write the tombstone of an id; raises NotWritten."""
        self._write_now(self.partition_of(transactional_id), transactional_id, None)

    def _write_now(self, partition: Partition, transactional_id: str, value: bytes | None) -> None:
        self._append(partition, transactional_id, value)
        try:
            partition.write_pending()
        except StorageFault as fault:
            raise NotWritten(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(fault)) from fault
        finally:
            # The next flush reports a failed write again: submit one, so that the partition goes on.
            self.submit((partition,), _nobody_waits, durable=False)

    def commit(self, transaction: Transaction, done: Callable[[bool], None]) -> None:
        """Write it to the disk, and call `done` with the outcome; raises NotWritten if it cannot be tried."""
        partition = self.partition_of(transaction.id)
        self._append(partition, transaction.id, records.value_bytes(transaction))
        durable = self._cluster.settings.horolog_acks_all_sync
        self.submit((partition,), lambda failures: done(not failures), durable=durable)

    def when_safe(self, transactional_id: str, done: Callable[[ErrorCode], None]) -> None:
        """Call `done` once every record of an id is on the disk; raises NotWritten if that cannot be tried, or too many wait for it."""
        if not self.has_room:
            raise NotWritten(ErrorCode.COORDINATOR_NOT_AVAILABLE, "too much waits for the disk or the store")
        durable = self._cluster.settings.horolog_acks_all_sync

        def synced(failures: Failures) -> None:
            done(ErrorCode.COORDINATOR_NOT_AVAILABLE if failures else ErrorCode.NONE)

        self.submit((self.partition_of(transactional_id),), synced, durable=durable)

    def _append(self, partition: Partition, transactional_id: str, value: bytes | None) -> None:
        now_ms = self._clock.wall_ms()
        entries = [(records.key_bytes(transactional_id), value)]
        end_offset = partition.log_end_offset
        try:
            partition.check_takes_appends()
            checked = own_batch(entries, end_offset, partition.config, now_ms, leader_epoch=partition.leader_epoch)
            partition.append_checked(checked, now_ms)
        except StorageFault as fault:
            raise NotWritten(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(fault)) from fault
        except RefusedSet as refused:
            raise NotWritten(ErrorCode.POLICY_VIOLATION, refused.message) from refused

    def read(self, partition: Partition) -> Iterator[tuple[str, Transaction | None]]:
        """Every record of a partition in order; unreadable ones are logged and skipped."""
        if partition.condition.fault is None:
            try:
                yield from self._read(partition)
            except BeingRescanned:
                raise
            except StorageFault as fault:
                put_offline(partition, fault)

    def _read(self, partition: Partition) -> Iterator[tuple[str, Transaction | None]]:
        _have_synced(partition)
        for batches in self.read_batches(partition):
            for batch in batches:
                if not batch.header.is_control:
                    yield from _read_batch(batch, partition)


def _have_synced(partition: Partition) -> None:
    """Sync the partition: a killed broker may have left its last records in the page cache alone.

    Records must survive a power cut before they are acted on. Otherwise markers are written for a decision that is lost, or written
    again after the next transaction has begun.
    """
    if not partition.condition.takes_appends:
        return  # its data is rewritten before it takes appends
    try:
        partition.sync()
    except StorageFault as fault:
        log.error("%s: no transaction is decided until its disk works: %s", partition, fault)


def _nobody_waits(failures: Failures) -> None:
    """For a write whose outcome the caller already knows."""


def _read_batch(batch: StoredBatch, partition: Partition) -> Iterator[tuple[str, Transaction | None]]:
    try:
        for record in batch.records():
            transactional_id = records.read_key(record.key or b"")
            if transactional_id is not None:
                value = record.value
                yield transactional_id, None if value is None else records.read_value(transactional_id, value)
    except DecodeError as error:
        log.error("%s: a record of a transaction cannot be read: %s", partition, error)
