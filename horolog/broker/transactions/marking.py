"""Writes the markers of a decided transaction into its partitions, and reports the end to the group coordinator.

A deleted partition needs no marker, nor does one that refuses it because a newer producer has written there. A marker whose write fails
stays to be written. Other brokers mark the partitions that they lead; those that they do not confirm stay to be marked, too.

A single broker has the only coordinator. Its marker carries the higher of its own epoch and the epoch that the partition knows, so that
a marker written by a tool cannot fence it. With several brokers the epoch distinguishes an old coordinator from a new one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from horolog.base.clock import Clock
from horolog.broker.base.topic_names import GROUP_OFFSETS
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.commit.committer import Committer
from horolog.broker.commit.safety import Failures
from horolog.broker.coordination.keyed_queue import gather
from horolog.broker.log.partition import Partition, append_marker
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.validation import RefusedSet
from horolog.broker.transactions.states import Producer, Transaction, TransactionState
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.control import Marker
from horolog.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from horolog.broker.transactions.other_brokers import Left, OtherBrokers

log = logging.getLogger(__name__)

NO_EPOCH = -1

OffsetsEnded = Callable[[int, bool], None]
"""Called with a producer id and whether its transaction was committed, once the marker is in the log of offsets."""


class Marking:
    """Writes markers to the disk, or has the partitions' leaders do so."""

    def __init__(
        self,
        cluster: Cluster,
        committer: Committer,
        clock: Clock,
        offsets_ended: OffsetsEnded,
        others: OtherBrokers,
    ) -> None:
        self._cluster = cluster
        self._committer = committer
        self._clock = clock
        self._offsets_ended = offsets_ended
        self._others = others

    def mark(
        self,
        transaction: Transaction,
        partitions: Iterable[TopicPartition],
        coordinator_epoch: int,
        done: Callable[[Left], None],
    ) -> None:
        """End a transaction in these partitions; `done` gets those in which it has not ended yet."""
        here: list[Partition] = []
        elsewhere: list[TopicPartition] = []
        for topic, index in sorted(partitions):
            partition = self._find(topic, index)
            if not isinstance(partition, ErrorCode):
                here.append(partition)
            elif partition == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                elsewhere.append((topic, index))
        if not elsewhere:
            self._mark_here(transaction, here, coordinator_epoch, done)
        else:

            def both_told(lefts: list[Left]) -> None:
                done(lefts[0] | lefts[1])

            asks = [
                partial(self._mark_here, transaction, here, coordinator_epoch),
                partial(self._others.write_markers, transaction, elsewhere, coordinator_epoch),
            ]
            gather(asks, both_told)

    def _mark_here(
        self,
        transaction: Transaction,
        partitions: Iterable[Partition],
        coordinator_epoch: int,
        done: Callable[[Left], None],
    ) -> None:
        committed = transaction.state == TransactionState.PREPARE_COMMIT
        marked: list[Partition] = []
        left: list[TopicPartition] = []
        for partition in partitions:
            try:
                self._append(partition, transaction.producer, coordinator_epoch, committed=committed)
                marked.append(partition)
            except RefusedSet as refused:
                if refused.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                    log.error("%s accepts no marker of %s: %s", partition, transaction.id, refused.message)
                    left.append((partition.topic, partition.index))
                else:
                    log.warning("%s needs no marker of %s: %s", partition, transaction.id, refused.message)
            except StorageFault as fault:
                log.error("%s has no marker of %s yet: %s", partition, transaction.id, fault)
                left.append((partition.topic, partition.index))

        def written(failures: Failures) -> None:
            self._tell(marked, failures, transaction.producer_id, committed=committed)
            done(frozenset(left) | {(one.topic, one.index) for one in failures})

        if marked:
            self._submit(marked, written)
        else:
            done(frozenset(left))

    def _find(self, topic: str, index: int) -> Partition | ErrorCode:
        found = self._cluster.topics.get(topic)
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if found is None else found.find(index)

    def _append(self, partition: Partition, producer: Producer, coordinator_epoch: int, *, committed: bool) -> None:
        known = partition.producers.get(producer.id)
        is_only_one = coordinator_epoch == NO_EPOCH or not self._cluster.is_shared
        epoch = coordinator_epoch
        if known is not None and is_only_one:
            epoch = max(coordinator_epoch, known.coordinator_epoch)
        append_marker(partition, producer.id, producer.epoch, Marker(committed, epoch), self._clock.wall_ms())

    def _submit(self, partitions: Sequence[Partition], done: Callable[[Failures], None]) -> None:
        durable = self._cluster.settings.horolog_acks_all_sync
        self._committer.submit_own(partitions, done, durable=durable, records=len(partitions))

    def _tell(self, marked: Iterable[Partition], failures: Failures, producer_id: int, *, committed: bool) -> None:
        if any(one.topic == GROUP_OFFSETS and one not in failures for one in marked):
            self._offsets_ended(producer_id, committed)

    def write_foreign(
        self,
        partitions: Sequence[Partition],
        producer: Producer,
        marker: Marker,
        done: Callable[[Mapping[Partition, ErrorCode]], None],
    ) -> None:
        """Write a marker that an admin tool or another broker's coordinator requests; `done` gets the errors."""
        errors: dict[Partition, ErrorCode] = {}
        for partition in partitions:
            try:
                append_marker(partition, producer.id, producer.epoch, marker, self._clock.wall_ms())
            except RefusedSet as refused:
                errors[partition] = refused.code
            except StorageFault:
                errors[partition] = ErrorCode.KAFKA_STORAGE_ERROR
        marked = [one for one in partitions if one not in errors]

        def written(failures: Failures) -> None:
            self._tell(marked, failures, producer.id, committed=marker.committed)
            done(errors | dict.fromkeys(failures, ErrorCode.KAFKA_STORAGE_ERROR))

        if marked:
            self._submit(marked, written)
        else:
            done(errors)

    def open_places(self) -> Iterator[tuple[Producer, Partition]]:
        """Every open transaction, with each partition led here in which it is open."""
        for topic in self._cluster.topics.values():
            for partition in topic.led_here:
                if partition.condition.fault is None and partition.producers.first_undecided_offset is not None:
                    yield from ((producer, partition) for producer in _with_open_transactions(partition))

    def abort_stray(self, producer: Producer, partition: Partition, failed: Callable[[], None]) -> None:
        """Abort a transaction without a record; `failed` is called if the write fails."""
        log.warning(
            "%s: the open transaction of producer %s is unknown to its coordinator: aborted", partition, producer.id
        )
        try:
            self._append(partition, producer, NO_EPOCH, committed=False)
        except RefusedSet as refused:
            log.error("%s: producer %s could not be aborted: %s", partition, producer.id, refused.message)
            return
        except StorageFault as fault:
            log.error("%s: producer %s could not be aborted yet: %s", partition, producer.id, fault)
            failed()
            return

        def written(failures: Failures) -> None:
            self._tell([partition], failures, producer.id, committed=False)
            if failures:
                failed()

        self._submit([partition], written)


def _with_open_transactions(partition: Partition) -> list[Producer]:
    return [Producer(number, one.epoch) for number, one in partition.producers if one.transaction_start >= 0]
