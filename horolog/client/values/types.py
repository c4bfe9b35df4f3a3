"""The client library's parameter and result types."""

from typing import NamedTuple

from horolog.protocol.records.record import Header

EARLIEST = -2
"""Stands for the start of a partition in place of a time."""
LATEST = -1
"""Stands for the end of a partition in place of a time."""


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class ConsumerRecord(NamedTuple):
    """A tuple, because one is made for every record read."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int  # -1: the record's format has none
    timestamp_type: int  # 0 the producer's time, 1 the broker's
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    leader_epoch: int = -1


class Sent(NamedTuple):
    """Where a record was written. The offset is -1 if the broker was not asked, or no longer knows it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class Found(NamedTuple):
    """The first record at or after a time; `timestamp_ms` is the record's own."""

    offset: int
    timestamp_ms: int
    leader_epoch: int = -1


class Committed(NamedTuple):
    """How far a group has read: the next offset to read, and the metadata committed with it."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1
