"""`__share_group_state`, the topic that keeps the states of share partitions: appends, reads of all of it, and what it need not keep."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from horolog.base.clock import Clock
from horolog.broker.base.topic_names import SHARE_GROUP_STATE
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.commit.committer import Committer
from horolog.broker.commit.safety import Failures
from horolog.broker.coordination.topic_journal import StoredBatch, TopicJournal, put_offline
from horolog.broker.log.integrity import BeingRescanned
from horolog.broker.log.partition import Partition, log_start
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.validation import RefusedSet, own_batch
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.share.records import (
    SNAPSHOT,
    UPDATE,
    SharePartitionKey,
    Snapshot,
    Update,
    key_bytes,
    read_key,
    read_value,
    value_bytes,
)
from horolog.protocol.errors import DecodeError, ErrorCode
from horolog.protocol.uuids import show_uuid

log = logging.getLogger(__name__)


class StoredState(NamedTuple):
    """One record; without a value the state is deleted."""

    offset: int
    key: SharePartitionKey
    value: Snapshot | Update | None


class StateJournal(TopicJournal):
    """The keeper's view of the topic."""

    def __init__(self, cluster: Cluster, committer: Committer, clock: Clock) -> None:
        super().__init__(SHARE_GROUP_STATE, cluster, committer, clock)

    def shard_of_state(self, key: SharePartitionKey) -> int:
        """The partition that keeps a state: the same one on every Kafka broker."""
        return self.shard_of(f"{key.group}:{show_uuid(key.topic_id)}:{key.partition}")

    def append(
        self,
        shard: int,
        key: SharePartitionKey,
        value: Snapshot | Update | None,
        done: Callable[[ErrorCode], None],
        *,
        durable: bool,
    ) -> int | ErrorCode:
        """The offset of the record, or why there is none: then `done` is not called.

        Else it is called once the record is written, and synced if `durable`, or has failed.
        """
        if not self.has_room:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        partition = self._writable(shard)
        if isinstance(partition, ErrorCode):
            return partition
        kind = UPDATE if isinstance(value, Update) else SNAPSHOT
        entry = key_bytes(kind, key), None if value is None else value_bytes(value)
        offset, now_ms = partition.log_end_offset, self._clock.wall_ms()
        try:
            partition.check_takes_appends()
            checked = own_batch([entry], offset, partition.config, now_ms, leader_epoch=partition.leader_epoch)
            partition.append_checked(checked, now_ms)
        except (StorageFault, RefusedSet) as error:
            log.error("the state of a share partition could not be written: %s", error)
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        self.submit((partition,), lambda failures: done(_code_of(bool(failures))), durable=durable)
        return offset

    def _writable(self, shard: int) -> Partition | ErrorCode:
        try:
            self.make_topic()
        except ClusterError as error:
            log.error("%s cannot be created: %s", SHARE_GROUP_STATE, error)
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        found = self.find(shard)
        return self.absence(shard) if isinstance(found, ErrorCode) else found

    def read(self, shard: int) -> Iterator[StoredState] | None:
        """Every record of a partition in order; None if it cannot be read now."""
        partition = self.find(shard)
        if isinstance(partition, ErrorCode):
            return iter(())
        if partition.condition.fault is not None:
            return None
        try:
            return iter(list(self._read(partition)))
        except BeingRescanned as damage:
            log.warning("shard %s of the states of share partitions will be read after its rescan: %s", shard, damage)
        except StorageFault as fault:
            put_offline(partition, fault)
        return None

    def _read(self, partition: Partition) -> Iterator[StoredState]:
        for batches in self.read_batches(partition):
            for batch in batches:
                if not batch.header.is_control:
                    yield from _read_batch(batch, partition)

    def prune(self, shard: int, before: int) -> None:
        """Delete the records before an offset, which newer ones have made superfluous, once those are on the disk."""
        partition = self.find(shard)
        if isinstance(partition, ErrorCode) or before <= partition.log_start_offset:
            return
        durable = self._cluster.settings.horolog_acks_all_sync
        self.submit((partition,), partial(self._pruned, shard, partition, before), durable=durable)

    def _pruned(self, shard: int, partition: Partition, before: int, failures: Failures) -> None:
        if failures or self.find(shard) is not partition:
            return
        try:
            log_start.delete_records_before(partition, min(before, partition.high_watermark))
        except StorageFault as fault:
            log.error("%s: old states could not be removed: %s", partition, fault)


def _code_of(has_failed: bool) -> ErrorCode:
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if has_failed else ErrorCode.NONE


def _read_batch(batch: StoredBatch, partition: Partition) -> Iterator[StoredState]:
    try:
        for record in batch.records():
            found = read_key(record.key or b"")
            if found is not None:
                value = None if record.value is None else read_value(found[0], record.value)
                yield StoredState(record.offset, found[1], value)
    except DecodeError as error:
        log.error("%s: the state at %s cannot be read: %s", partition, batch.header.base_offset, error)
