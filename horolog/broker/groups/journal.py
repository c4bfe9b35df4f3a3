"""`__consumer_offsets`, where groups are kept: which partition a group is in, appends that report when they are written, reading it all.

The topic is an ordinary compacted topic of this broker's log, made when the first group needs it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from horolog.broker.clock import Clock
from horolog.broker.cluster import Cluster
from horolog.broker.cluster_errors import ClusterError
from horolog.broker.committer import Committer, Failures
from horolog.broker.groups.records import Entry
from horolog.broker.internal_topics import overrides_of
from horolog.broker.java_hash import partition_for
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.validate import Refused, check
from horolog.broker.topic_names import GROUP_OFFSETS
from horolog.protocol.errors import DecodeError, ErrorCode
from horolog.protocol.records.batch import TRANSACTIONAL_BIT, encode_batch, is_cut, iter_batch, read_header
from horolog.protocol.records.control import decode_marker
from horolog.protocol.records.record import Record
from horolog.protocol.records.timestamps import TimestampType

log = logging.getLogger(__name__)

READ_BYTES = 1024 * 1024
NEWEST_PRODUCE_VERSION = 13
CREATE_TIME = int(TimestampType.CREATE_TIME)

Done = Callable[[ErrorCode, int], None]
"""Told the error, or none and the offset of the first record, once a batch is written or could not be."""


class Producer(NamedTuple):
    """In whose transaction something is written."""

    id: int
    epoch: int


class Marked(NamedTuple):
    """The end of a producer's transaction, as it stands in the log."""

    producer_id: int
    committed: bool


class Stored(NamedTuple):
    """One record of the log; `producer_id` is -1 outside of transactions."""

    offset: int
    key: bytes
    value: bytes | None
    producer_id: int


class _Write:
    """Batches that are appended but not yet written: the committer finishes it."""

    __slots__ = ("_done", "durable", "partitions")

    def __init__(self, partitions: Sequence[Partition], done: Callable[[Failures], None], *, durable: bool) -> None:
        self.partitions = partitions
        self.durable = durable
        self._done = done

    def finish(self, failures: Failures) -> None:
        self._done(failures)


class Journal:
    """The topic as the coordinator uses it."""

    def __init__(self, cluster: Cluster, committer: Committer, clock: Clock) -> None:
        self._cluster = cluster
        self._committer = committer
        self._clock = clock
        self._writing: Counter[int] = Counter()

    def __repr__(self) -> str:
        return f"<Journal of {self.partition_count} partitions>"

    @property
    def partitions(self) -> Sequence[Partition]:
        topic = self._cluster.topics.get(GROUP_OFFSETS)
        return topic.partitions if topic is not None else ()

    @property
    def partition_count(self) -> int:
        """How many partitions there are, or will be."""
        return len(self.partitions) or self._cluster.settings.offsets_topic_num_partitions

    def shard_of(self, group_id: str) -> int:
        """The partition that keeps a group: the same one on every Kafka broker."""
        return partition_for(group_id, self.partition_count)

    def open(self) -> None:
        """Make the topic if there is none; raises ClusterError."""
        if GROUP_OFFSETS not in self._cluster.topics:
            settings = self._cluster.settings
            overrides = overrides_of(GROUP_OFFSETS, settings)
            self._cluster.create_topic(GROUP_OFFSETS, settings.offsets_topic_num_partitions, overrides)

    def append(
        self,
        shard: int,
        entries: Sequence[Entry],
        done: Done,
        *,
        durable: bool = False,
        producer: Producer | None = None,
        is_state: bool = False,
    ) -> None:
        """Append records as one batch; `done` comes when they are written (with `durable`: synced), or at once with an error.

        The state of a group (`is_state`) may be larger than what producers may write: it grows with the members.
        With `horolog.read.only` groups live in memory: nothing is appended, and all is well.
        """
        if self._cluster.settings.horolog_read_only:
            self._committer.submit(_Write((), lambda _: done(ErrorCode.NONE, -1), durable=False))
            return
        try:
            self.open()
            partition = self.partitions[shard]
            base_offset = self._append(partition, entries, producer, is_state=is_state)
        except (ClusterError, StorageFault) as error:
            log.error("group state could not be written: %s", error)
            done(ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
        except Refused as refused:
            log.warning("%s records of a group were refused: %s", len(entries), refused.message)
            done(refused.code, -1)
        else:
            self._submit(shard, partition, base_offset, done, durable=durable)

    def _submit(self, shard: int, partition: Partition, base_offset: int, done: Done, *, durable: bool) -> None:
        self._writing[shard] += 1

        def written(failures: Failures) -> None:
            self._writing[shard] -= 1
            if failures:
                done(ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
            else:
                done(ErrorCode.NONE, base_offset)

        self._committer.submit(_Write((partition,), written, durable=durable))

    def when_written(self, shards: Iterable[int], action: Callable[[], None]) -> None:
        """Do something once what is on its way to these partitions is written, or has failed; at once if nothing is."""
        waiting = [self.partitions[shard] for shard in shards if self._writing[shard]]
        if not waiting:
            action()
            return
        # A commit that waits for the disk is overtaken by one that does not, but never by another that waits.
        durable = self._cluster.settings.horolog_offsets_commit_sync
        self._committer.submit(_Write(waiting, lambda _: action(), durable=durable))

    def _append(
        self, partition: Partition, entries: Sequence[Entry], producer: Producer | None, *, is_state: bool
    ) -> int:
        """The coordinator has no sequence numbers: producers' states are brought up to date, and nothing is checked against them."""
        partition.check_takes_appends()
        now_ms = self._clock.wall_ms()
        records = [Record(place, now_ms, CREATE_TIME, key, value) for place, (key, value) in enumerate(entries)]
        if producer is None:
            batch = encode_batch(records)
        else:
            batch = encode_batch(
                records,
                attributes=TRANSACTIONAL_BIT,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                base_sequence=0,
            )
        config = partition.config
        largest = self._cluster.settings.horolog_group_state_max_bytes
        if is_state and len(batch) > config.max_message_bytes:
            config = replace(config, max_message_bytes=largest)
        checked = check(
            memoryview(batch),
            partition.log_end_offset,
            config,
            now_ms,
            produce_version=NEWEST_PRODUCE_VERSION,
            leader_epoch=partition.leader_epoch,
        )
        partition.append_checked(checked, now_ms)
        return checked.first_offset

    def is_offline(self, shard: int) -> bool:
        return shard < len(self.partitions) and self.partitions[shard].fault is not None

    def put_offline(self, shard: int, fault: StorageFault) -> None:
        """It is opened again, and then read again, when its disk works."""
        partition = self.partitions[shard]
        partition.fault = f"it can not be read: {fault}"
        log.error("%r: %s", partition, fault)

    def read(self, shard: int) -> Iterator[list[Stored | Marked]]:
        """Everything in one partition, in order and in pieces; what cannot be read is logged and left out."""
        if shard >= len(self.partitions):
            return  # nothing has ever been kept
        partition = self.partitions[shard]
        offset = partition.log_start_offset
        while offset < partition.high_watermark:
            data = partition.read(offset, READ_BYTES)
            if not data:
                return
            piece, offset = _read_piece(data, partition, offset)
            yield piece


def _read_piece(data: bytes, partition: Partition, offset: int) -> tuple[list[Stored | Marked], int]:
    """What whole batches say, and the offset behind them."""
    piece: list[Stored | Marked] = []
    position = 0
    while position < len(data) and not (position and is_cut(data, position)):
        header = read_header(data, position)
        try:
            records = list(iter_batch(data, position))
            if header.is_control:
                piece += [_marked(header.producer_id, each) for each in records]
            else:
                producer_id = header.producer_id if header.is_transactional else -1
                piece += [
                    Stored(each.offset, each.key, each.value, producer_id) for each in records if each.key is not None
                ]
        except DecodeError as error:
            log.error("%r: the batch at %s cannot be read: %s", partition, header.base_offset, error)
        offset = header.last_offset + 1
        position += header.size_bytes
    return piece, offset


def _marked(producer_id: int, record: Record) -> Marked:
    return Marked(producer_id, decode_marker(record.key, record.value).committed)
