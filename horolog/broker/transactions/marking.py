"""Writes the markers of a decided transaction into its partitions, and tells who keeps offsets how it ended.

A partition that is gone needs none; one that refuses it because a newer producer has written there neither. What the disk refuses
stays to be done. What other brokers lead they are asked to mark; what they do not say to be marked stays to be done, too.

A broker alone has the only coordinator: its marker carries its epoch or, if that is higher, the one that the partition knows, so that
a marker that a tool has written by hand cannot fence it. Among several brokers the epoch tells an old coordinator from a new one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from horolog.broker.clock import Clock
from horolog.broker.cluster import Cluster
from horolog.broker.committer import Appended, Committer
from horolog.broker.coordination.turns import gather
from horolog.broker.log.partition import Partition, append_marker
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.validation import Refused
from horolog.broker.safety import Failures
from horolog.broker.topic_names import GROUP_OFFSETS
from horolog.broker.transactions.states import Producer, State, TopicPartition, Transaction
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.control import Marker

if TYPE_CHECKING:
    from horolog.broker.transactions.others import Left, Others

log = logging.getLogger(__name__)

NO_EPOCH = -1

OffsetsEnded = Callable[[int, bool], None]
"""Told a producer id and whether its transaction was committed, once the marker is in the log of offsets."""


class Marking:
    """Appends markers and has them on the disk, or has others do so where they lead."""

    def __init__(
        self,
        cluster: Cluster,
        committer: Committer,
        clock: Clock,
        offsets_ended: OffsetsEnded,
        others: Others | None = None,
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
        """End a transaction in these partitions; `done` is told in which of them it is not ended yet."""
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
        elif self._others is None:
            self._mark_here(transaction, here, coordinator_epoch, lambda left: done(left.union(elsewhere)))
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
        committed = transaction.state == State.PREPARE_COMMIT
        marked: list[Partition] = []
        left: list[TopicPartition] = []
        for partition in partitions:
            try:
                self._append(partition, transaction.producer, coordinator_epoch, committed=committed)
                marked.append(partition)
            except Refused as refused:
                if refused.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                    log.error("%r takes no marker of %s: %s", partition, transaction.id, refused.message)
                    left.append((partition.topic, partition.index))
                else:
                    log.warning("%r needs no marker of %s: %s", partition, transaction.id, refused.message)
            except StorageFault as fault:
                log.error("%r has no marker of %s yet: %s", partition, transaction.id, fault)
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
        is_only_one = self._others is None or coordinator_epoch == NO_EPOCH
        epoch = coordinator_epoch
        if known is not None and is_only_one:
            epoch = max(coordinator_epoch, known.coordinator_epoch)
        append_marker(partition, producer.id, producer.epoch, Marker(committed, epoch), self._clock.wall_ms())

    def _submit(self, partitions: Sequence[Partition], done: Callable[[Failures], None]) -> None:
        durable = self._cluster.settings.horolog_acks_all_sync
        self._committer.submit(Appended(partitions, done, durable=durable))

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
        """Write a marker that an admin tool or another broker's coordinator asks for; `done` is told what went wrong."""
        errors: dict[Partition, ErrorCode] = {}
        for partition in partitions:
            try:
                append_marker(partition, producer.id, producer.epoch, marker, self._clock.wall_ms())
            except Refused as refused:
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
        """Every transaction that is open in some partition."""
        for topic in self._cluster.topics.values():
            for partition in topic.led_here:
                if partition.condition.fault is None and partition.producers.first_undecided_offset is not None:
                    yield from ((producer, partition) for producer in _with_open_transactions(partition))

    def abort_stray(self, producer: Producer, partition: Partition, failed: Callable[[], None]) -> None:
        """Abort what no record knows; `failed` is called if the disk does not take it."""
        log.warning("%r: the open transaction of producer %s is on no record: aborted", partition, producer.id)
        try:
            self._append(partition, producer, NO_EPOCH, committed=False)
        except Refused as refused:
            log.error("%r: producer %s could not be aborted: %s", partition, producer.id, refused.message)
            return
        except StorageFault as fault:
            log.error("%r: producer %s could not be aborted yet: %s", partition, producer.id, fault)
            failed()
            return

        def written(failures: Failures) -> None:
            self._tell([partition], failures, producer.id, committed=False)
            if failures:
                failed()

        self._submit([partition], written)


def _with_open_transactions(partition: Partition) -> list[Producer]:
    return [Producer(number, one.epoch) for number, one in partition.producers if one.transaction_start >= 0]
