"""`__transaction_state`, where transactions are kept: which partition an id is in, writing, and reading it all at the start.

The topic is an ordinary compacted topic of this broker's log, made when the first transactional id needs it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

from horolog.broker.clock import Clock
from horolog.broker.cluster import Cluster
from horolog.broker.cluster_errors import ClusterError
from horolog.broker.committer import Committer, Failures
from horolog.broker.internal_topics import overrides_of
from horolog.broker.java_hash import partition_for
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.suspects import BeingMended
from horolog.broker.log.validate import Refused
from horolog.broker.topic_names import TRANSACTION_STATE
from horolog.broker.transactions import records
from horolog.broker.transactions.states import State, Transaction
from horolog.protocol.errors import DecodeError, ErrorCode
from horolog.protocol.records.batch import encode_batch, is_cut, iter_batch, read_header
from horolog.protocol.records.record import Record
from horolog.protocol.records.timestamps import TimestampType

log = logging.getLogger(__name__)

READ_BYTES = 1024 * 1024
NEWEST_PRODUCE_VERSION = 13

END_RESERVE_BYTES = 128
"""What the record of a transaction's end may take more than the one before: an open transaction must leave room for it."""

_CREATE_TIME = int(TimestampType.CREATE_TIME)


class NotWritten(Exception):
    """Nothing was written, and this is what the client is told."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class _Write:
    """A record that is appended but not yet written: the committer finishes it."""

    __slots__ = ("_done", "durable", "partitions")

    def __init__(self, partition: Partition, done: Callable[[bool], None], *, durable: bool) -> None:
        self.partitions: Sequence[Partition] = (partition,)
        self.durable = durable
        self._done = done

    def finish(self, failures: Failures) -> None:
        self._done(not failures)


class Journal:
    """The topic as the coordinator uses it."""

    def __init__(self, cluster: Cluster, committer: Committer, clock: Clock) -> None:
        self._cluster = cluster
        self._committer = committer
        self._clock = clock

    def __repr__(self) -> str:
        return f"<Journal of {len(self.partitions)} partitions>"

    @property
    def partitions(self) -> Sequence[Partition]:
        topic = self._cluster.topics.get(TRANSACTION_STATE)
        return topic.partitions if topic is not None else ()

    @property
    def is_readable(self) -> bool:
        """Whether the disk gives back what was written."""
        return all(one.fault is None for one in self.partitions)

    def open(self) -> None:
        """Make the topic if there is none; raises NotWritten."""
        if TRANSACTION_STATE in self._cluster.topics:
            return
        settings = self._cluster.settings
        overrides = overrides_of(TRANSACTION_STATE, settings)
        try:
            self._cluster.create_topic(TRANSACTION_STATE, settings.transaction_state_log_num_partitions, overrides)
        except ClusterError as error:
            log.error("%s cannot be made: %s", TRANSACTION_STATE, error)
            raise NotWritten(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error

    def partition_of(self, transactional_id: str) -> Partition:
        """Where an id is kept; raises NotWritten when its disk fails."""
        self.open()
        partition = self.partitions[partition_for(transactional_id, len(self.partitions))]
        if partition.fault is not None:
            raise NotWritten(ErrorCode.COORDINATOR_NOT_AVAILABLE, partition.fault)
        if partition.stopped is not None:
            raise NotWritten(ErrorCode.COORDINATOR_NOT_AVAILABLE, partition.stopped)
        return partition

    def write(self, transaction: Transaction) -> None:
        """Have it written, not synced, when this returns; raises NotWritten."""
        value = records.value_bytes(transaction)
        limit_bytes = self.partition_of(transaction.id).config.max_message_bytes - END_RESERVE_BYTES
        if transaction.state == State.ONGOING and len(value) + len(transaction.id.encode()) > limit_bytes:
            raise NotWritten(ErrorCode.POLICY_VIOLATION, f"a transaction's record of {len(value)} bytes is too large")
        self._write_now(transaction.id, value)

    def forget(self, transactional_id: str) -> None:
        """Write the tombstone of an id; raises NotWritten."""
        self._write_now(transactional_id, None)

    def _write_now(self, transactional_id: str, value: bytes | None) -> None:
        partition = self._append(transactional_id, value)
        try:
            partition.write_pending()
        except StorageFault as fault:
            raise NotWritten(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(fault)) from fault
        finally:
            # A failed write is told again by the next flush: let that come, so that the partition goes on.
            self._committer.submit(_Write(partition, _nobody_waits, durable=False))

    def commit(self, transaction: Transaction, done: Callable[[bool], None]) -> None:
        """Have it on the disk, and tell `done` whether that went well; raises NotWritten where it cannot even be tried."""
        partition = self._append(transaction.id, records.value_bytes(transaction))
        durable = self._cluster.settings.horolog_acks_all_sync
        self._committer.submit(_Write(partition, done, durable=durable))

    def _append(self, transactional_id: str, value: bytes | None) -> Partition:
        partition = self.partition_of(transactional_id)
        now_ms = self._clock.wall_ms()
        batch = encode_batch([Record(0, now_ms, _CREATE_TIME, records.key_bytes(transactional_id), value)])
        try:
            partition.append(batch, now_ms, produce_version=NEWEST_PRODUCE_VERSION)  # type: ignore[arg-type]
        except StorageFault as fault:
            raise NotWritten(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(fault)) from fault
        except Refused as refused:
            raise NotWritten(ErrorCode.POLICY_VIOLATION, refused.message) from refused
        return partition

    def read(self) -> Iterator[tuple[str, Transaction | None]]:
        """Every record in order; what cannot be read is logged and left out."""
        for partition in self.partitions:
            if partition.fault is None:
                try:
                    yield from self.read_partition(partition)
                except BeingMended:
                    raise
                except StorageFault as fault:
                    partition.fault = f"it can not be read: {fault}"
                    log.error("%r: %s", partition, fault)

    @staticmethod
    def read_partition(partition: Partition) -> Iterator[tuple[str, Transaction | None]]:
        """Every record of one partition, likewise."""
        offset = partition.log_start_offset
        while offset < partition.high_watermark:
            data = partition.read(offset, READ_BYTES)
            if not data:
                return
            position = 0
            while position < len(data) and not (position and is_cut(data, position)):
                header = read_header(data, position)
                if not header.is_control:
                    yield from _read_batch(data, position, partition)
                offset = header.last_offset + 1
                position += header.size_bytes


def _nobody_waits(written: bool) -> None:
    """What is written at once is known to be."""


def _read_batch(data: bytes, position: int, partition: Partition) -> Iterator[tuple[str, Transaction | None]]:
    try:
        for record in iter_batch(data, position):
            transactional_id = records.read_key(record.key or b"")
            if transactional_id is not None:
                value = record.value
                yield transactional_id, None if value is None else records.read_value(transactional_id, value)
    except DecodeError as error:
        log.error("%r: a record of a transaction cannot be read: %s", partition, error)
