"""`__consumer_offsets`, the topic that keeps groups: appends that report when they are written, and reads of all of it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from horolog.base.clock import Clock
from horolog.base.readable import counted
from horolog.broker.base.topic_names import GROUP_OFFSETS
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.commit.committer import Committer
from horolog.broker.commit.safety import Failures
from horolog.broker.coordination.topic_journal import (
    StoredBatch,
    TopicJournal,
    put_offline,
)
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.validation import RefusedSet, own_batch
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.protocol.errors import DecodeError, ErrorCode
from horolog.protocol.records.batch import Entry
from horolog.protocol.records.control import decode_marker

log = logging.getLogger(__name__)

Done = Callable[[ErrorCode, int], None]
"""Called with an error and -1, or with NONE and the offset of the first record, once a batch is written or has failed."""


class TransactionalProducer(NamedTuple):
    """The producer in whose transaction a batch is written."""

    id: int
    epoch: int


class Marked(NamedTuple):
    """The end of a producer's transaction in the log."""

    producer_id: int
    committed: bool


class Stored(NamedTuple):
    """One record of the log; `producer_id` is -1 outside of transactions."""

    offset: int
    key: bytes
    value: bytes | None
    producer_id: int


class GroupJournal(TopicJournal):
    """The coordinator's view of the topic."""

    def __init__(self, cluster: Cluster, committer: Committer, clock: Clock) -> None:
        super().__init__(GROUP_OFFSETS, cluster, committer, clock)
        self._writing: Counter[int] = Counter()

    def append(
        self,
        shard: int,
        entries: Sequence[Entry],
        done: Done,
        *,
        durable: bool = False,
        producer: TransactionalProducer | None = None,
        is_state: bool = False,
    ) -> None:
        """Append records as one batch; `done` is called when they are written (with `durable`: synced), or with an error.

        The state of a group (`is_state`) may exceed the limit of producers' batches: it grows with the members.
        With `horolog.read.only` groups live in memory: nothing is appended, and `done` gets NONE.
        """
        if self._cluster.settings.horolog_read_only:
            self.submit((), lambda _: done(ErrorCode.NONE, -1), durable=False)
            return
        try:
            self.make_topic()
            partition = self._led_here(shard)
            base_offset = self._append(partition, entries, producer, is_state=is_state)
        except (ClusterError, StorageFault) as error:
            log.error("group state could not be written: %s", error)
            is_elsewhere = isinstance(error, ClusterError) and error.code == ErrorCode.NOT_COORDINATOR
            done(ErrorCode.NOT_COORDINATOR if is_elsewhere else ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
        except RefusedSet as refused:
            log.warning("%s of a group could not be written: %s", counted(len(entries), "record"), refused.message)
            done(refused.code, -1)
        else:
            self._submit_append(shard, partition, base_offset, done, durable=durable, records=len(entries))

    def _submit_append(
        self, shard: int, partition: Partition, base_offset: int, done: Done, *, durable: bool, records: int
    ) -> None:
        self._writing[shard] += 1

        def written(failures: Failures) -> None:
            self._writing[shard] -= 1
            if self.find(shard) == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                done(ErrorCode.NOT_COORDINATOR, -1)
            elif failures:
                done(ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
            else:
                done(ErrorCode.NONE, base_offset)

        self.submit((partition,), written, durable=durable, records=records)

    def when_written(self, shards: Iterable[int], action: Callable[[], None]) -> None:
        """Call `action` once the pending records of these partitions are written or have failed; at once if there are none."""
        writing = (self.find(shard) for shard in shards if self._writing[shard])
        waiting = [one for one in writing if not isinstance(one, ErrorCode)]
        if not waiting:
            action()
            return
        # A commit that waits for a sync may be overtaken by one that does not, but never by another that waits.
        durable = self._cluster.settings.horolog_offsets_commit_sync
        self.submit(waiting, lambda _: action(), durable=durable)

    def _append(
        self, partition: Partition, entries: Sequence[Entry], producer: TransactionalProducer | None, *, is_state: bool
    ) -> int:
        """Append without sequence numbers, which the coordinator lacks: producers' states are updated, but not checked."""
        partition.check_takes_appends()
        now_ms = self._clock.wall_ms()
        checked = own_batch(
            entries,
            partition.log_end_offset,
            partition.config,
            now_ms,
            leader_epoch=partition.leader_epoch,
            producer=producer,
            largest_bytes=self._cluster.settings.horolog_group_state_max_bytes if is_state else 0,
        )
        partition.append_checked(checked, now_ms)
        return checked.first_offset

    def is_offline(self, shard: int) -> bool:
        found = self.find(shard)
        return not isinstance(found, ErrorCode) and found.condition.fault is not None

    def put_offline(self, shard: int, fault: StorageFault) -> None:
        put_offline(self._led_here(shard), fault)

    def _led_here(self, shard: int) -> Partition:
        """Raises ClusterError if another broker coordinates these groups."""
        found = self.find(shard)
        if isinstance(found, ErrorCode):
            raise ClusterError(ErrorCode.NOT_COORDINATOR, f"shard {shard} of the groups is led by another broker")
        return found

    def read(self, shard: int) -> Iterator[list[Stored | Marked]]:
        """The records of one partition, in order and in pieces; unreadable batches are logged and skipped."""
        partition = self.find(shard)
        if isinstance(partition, ErrorCode):
            return  # no records here
        for batches in self.read_batches(partition):
            piece: list[Stored | Marked] = []
            for batch in batches:
                try:
                    piece += _read_batch(batch)
                except DecodeError as error:
                    log.error("%s: the batch at %s cannot be read: %s", partition, batch.header.base_offset, error)
            yield piece


def _read_batch(batch: StoredBatch) -> list[Stored | Marked]:
    header, records = batch.header, list(batch.records())
    if header.is_control:
        return [Marked(header.producer_id, decode_marker(one.key, one.value).committed) for one in records]
    producer_id = header.producer_id if header.is_transactional else -1
    return [Stored(one.offset, one.key, one.value, producer_id) for one in records if one.key is not None]
