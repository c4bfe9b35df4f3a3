"""A model of Kafka's rule for how much of each partition a Fetch gets, and requests over any number of partitions to test it.

ReplicaManager.readFromLog, LogSegment.read: the partitions share the limit of the response. From version 3 on the first with any data
gives at least one whole batch, and a later one whose first batch does not fit gives nothing; before, bytes are cut at the limit.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.convert import encode
from horolog.protocol.records.head import Head, heads_in
from horolog.protocol.records.record import Record
from horolog.protocol.records.timestamps import TimestampType

EVERYTHING_BYTES = 1 << 30
FIRST_WHOLE_VERSION = 3
FIRST_V2_VERSION = 4
FIRST_ID_VERSION = 13
BASE_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Part:
    """One partition of a request."""

    index: int
    offset: int
    max_bytes: int


def expected(logs: Sequence[bytes], parts: Sequence[Part], version: int, max_bytes: int) -> list[bytes]:
    """What each partition gives if nothing has to be converted; a log is the whole content of its partition."""
    whole_first, limit, given = version >= FIRST_WHOLE_VERSION, max_bytes, []
    for part in parts:
        log = logs[part.index]
        first = next((head for head in heads_in(log) if head.last_offset >= part.offset), None)
        data = b""
        if first is not None:
            most = min(part.max_bytes, limit)
            if whole_first:
                most = max(most, first.size_bytes)
            if version < FIRST_WHOLE_VERSION or most >= first.size_bytes:
                data = log[first.position :][:most]
        whole_first = whole_first and not data
        limit = max(0, limit - len(data))
        given.append(data)
    return given


def begins_well(data: bytes, version: int) -> bool:
    """Whether a reader of this version can continue with it, or sees that there is nothing."""
    return version < FIRST_WHOLE_VERSION or not data or any(heads_in(data))


def places(rng: random.Random, logs: Sequence[bytes]) -> list[Part]:
    """Any partitions in any order, read from anywhere."""
    indexes = rng.sample(range(len(logs)), rng.randint(1, len(logs)))
    return [Part(index, rng.choice(_offsets(list(heads_in(logs[index])))), _some_bytes(rng, logs)) for index in indexes]


def limit_of(rng: random.Random, logs: Sequence[bytes]) -> int:
    return _some_bytes(rng, logs)


def _offsets(heads: list[Head]) -> list[int]:
    return [0, 0, *[head.last_offset for head in heads], *[head.last_offset + 1 for head in heads]]


def _some_bytes(rng: random.Random, logs: Sequence[bytes]) -> int:
    """Limits around batch boundaries, in between, zero, or more than there is."""
    log = rng.choice(logs)
    edges = [head.position + head.size_bytes for head in heads_in(log)] or [100]
    edge = rng.choice(edges) * rng.choice((1, 1, 2, 5))
    return rng.choice((0, 1, 11, 12, 60, edge - 1, edge, edge + 1, rng.randint(0, 2 * edge), EVERYTHING_BYTES))


def some_batches(rng: random.Random, magic: int, largest_bytes: int, codecs: Sequence[Codec]) -> list[bytes]:
    """The content of one partition; often nothing, or one batch."""
    return [_a_batch(rng, magic, largest_bytes, codecs) for _ in range(rng.choice((0, 1, 1, 2, 5)))]


def _a_batch(rng: random.Random, magic: int, largest_bytes: int, codecs: Sequence[Codec]) -> bytes:
    size = rng.choice((1, 50, largest_bytes // 3, rng.randint(1, largest_bytes)))
    count = rng.choice((1, 1, 3))
    records = [
        Record(n, BASE_MS + n if magic else -1, TimestampType.CREATE_TIME, None, rng.randbytes(size // count))
        for n in range(count)
    ]
    return bytes(encode(records, magic, rng.choice(codecs)))


def produce(topic: str, index: int, records: bytes) -> ProduceRequest:
    data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=records)])]
    return ProduceRequest(acks=1, timeout_ms=30_000, topic_data=data)


def fetch(
    topic: str, topic_id: bytes, parts: Sequence[Part], version: int, max_bytes: int, **fields: Any
) -> FetchRequest:
    place: dict[str, Any] = {"topic_id": topic_id} if version >= FIRST_ID_VERSION else {"topic": topic}
    asked = [
        FetchPartition(partition=one.index, fetch_offset=one.offset, partition_max_bytes=one.max_bytes) for one in parts
    ]
    if version >= FIRST_WHOLE_VERSION:
        fields["max_bytes"] = max_bytes
    fields = {"max_wait_ms": 0, "min_bytes": 0, **fields}
    return FetchRequest(topics=[FetchTopic(**place, partitions=asked)], **fields)


def records_of(response: Any) -> dict[int, bytes]:
    """The records by partition, in the order of the response."""
    found = {}
    for topic in response.responses:
        for one in topic.partitions:
            assert one.error_code == ErrorCode.NONE, one
            found[one.partition_index] = bytes(one.records or b"")
    return found
