"""Reads a topic's records in log order without a client, for expectations and snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.aborted import AbortedProducers
from horolog.protocol.records.batch import read_header
from horolog.protocol.records.entries import records_of_entry
from horolog.protocol.records.head import BATCH_MAGIC, TRANSACTIONAL_BIT, Head, heads_in
from horolog.protocol.records.record import Header

if TYPE_CHECKING:
    from horolog.broker.cluster.cluster import Cluster
    from horolog.broker.cluster.topic import Topic
    from horolog.broker.log.partition import Partition

COMMITTED, ABORTED, OPEN = "committed", "aborted", "open"
NO_PRODUCER = -1


class Producer(NamedTuple):
    """The producer of a batch, if it names one."""

    id: int
    epoch: int
    sequence: int


class Seen(NamedTuple):
    """One record."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    producer: Producer | None = None
    transaction: str | None = None
    """`committed`, `aborted` or `open`; None outside of transactions."""


def topic_named(cluster: Cluster, name: str) -> Topic:
    """Raises `broker.on_record.cluster_errors.ClusterError`, which names the existing topics."""
    topic = cluster.topics.get(name)
    if topic is None:
        known = ", ".join(sorted(one for one in cluster.topics if not cluster.topics[one].internal)) or "none"
        raise ClusterError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}; the topics here are: {known}"
        )
    return topic


def records_of(topic: Topic) -> list[Seen]:
    """All records of all partitions, partition by partition."""
    return [record for partition in topic.led_here for record in _records_in(partition)]


def state_of(topic: Topic) -> tuple[tuple[int, int, int], ...]:
    """A value that changes whenever the result of `records_of` would."""
    return tuple((one.log_start_offset, one.high_watermark, one.last_stable_offset) for one in topic.led_here)


def _records_in(partition: Partition) -> Iterator[Seen]:
    start, stable = partition.log_start_offset, partition.last_stable_offset
    told = partition.aborted.overlapping(start, partition.high_watermark)
    aborted = AbortedProducers((one.producer_id, one.first_offset) for one in told)
    for data, head in _batches(partition):
        is_aborted = aborted.hides(data, head)
        if head.is_control:
            continue
        transaction = None
        if head.magic == BATCH_MAGIC and head.attributes & TRANSACTIONAL_BIT:
            transaction = ABORTED if is_aborted else COMMITTED if head.last_offset < stable else OPEN
        for offset, timestamp, _, key, value, headers in records_of_entry(data, head):
            if offset >= start:
                by = _producer(data, head)
                yield Seen(partition.topic, partition.index, offset, timestamp, key, value, headers, by, transaction)


def _batches(partition: Partition) -> Iterator[tuple[bytes, Head]]:
    """All batches, each within the piece of the log that was read; a read ends with a segment."""
    position, end = partition.log_start_offset, partition.high_watermark
    while position < end:
        data = partition.read(position, partition.size_bytes + 1, upto=end)
        for head in heads_in(data):
            yield data, head
            position = head.last_offset + 1
        if not data:
            return


def _producer(data: bytes, head: Head) -> Producer | None:
    if head.magic != BATCH_MAGIC or head.producer_id == NO_PRODUCER:
        return None
    header = read_header(data, head.position)
    return Producer(header.producer_id, header.producer_epoch, header.base_sequence)
