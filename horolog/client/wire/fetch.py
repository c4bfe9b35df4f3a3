"""Fetch requests: undecoded records of partitions, with the offsets and errors that come with them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from horolog.client.values.errors import KafkaError, MalformedAnswer, error_of, named_error
from horolog.client.values.types import TopicPartition
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData

if TYPE_CHECKING:
    from horolog.client.wire.client import Client

DEFAULT_MAX_BYTES = 1 << 20
ISOLATION_LEVELS = {"read_uncommitted": 0, "read_committed": 1}
NO_SESSION_EPOCH = -1
CONSUMER = -1  # the replica id of clients that are not replicas
LANE = "fetch"  # a fetch waits at the broker, and later requests on its connection wait too


@dataclass(frozen=True, slots=True)
class RawFetch:
    high_watermark: int
    last_stable_offset: int  # -1: the version has none
    log_start_offset: int  # -1: the version has none
    aborted: list[tuple[int, int]]  # (producer id, first offset) of aborted transactions
    records: memoryview  # batches and messages in log format; the last one may be cut off


def isolation_level(name: str) -> int:
    if name not in ISOLATION_LEVELS:
        raise ValueError(f"isolation {name!r}: expected one of {', '.join(ISOLATION_LEVELS)}")
    return ISOLATION_LEVELS[name]


def build_fetch(
    positions: Mapping[TopicPartition, int],
    *,
    partition_max_bytes: int,
    max_bytes: int,
    max_wait_ms: int,
    min_bytes: int,
    isolation: int,
) -> FetchRequest:
    """A request for several partitions of one broker."""
    topics: dict[str, list[FetchPartition]] = {}
    for (topic, index), offset in positions.items():
        topics.setdefault(topic, []).append(
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=partition_max_bytes)
        )
    return FetchRequest(
        replica_id=CONSUMER,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation,
        session_epoch=NO_SESSION_EPOCH,
        topics=[FetchTopic(topic=topic, partitions=partitions) for topic, partitions in topics.items()],
    )


def split_answer(
    response: FetchResponse, asked: Sequence[TopicPartition]
) -> dict[TopicPartition, RawFetch | KafkaError]:
    """Per partition the records, or the error; a response with partitions not asked for is malformed."""
    if response.error_code:
        raise error_of(response.error_code)
    wanted = set(asked)
    found: dict[TopicPartition, RawFetch | KafkaError] = {}
    for topic in response.responses:
        for each in topic.partitions:
            partition = TopicPartition(topic.topic, each.partition_index)
            if partition not in wanted:
                raise MalformedAnswer(f"the broker sent records of {partition}, which was not requested")
            found[partition] = named_error(partition, each.error_code) if each.error_code else _raw(each)
    return found


def _raw(data: PartitionData) -> RawFetch:
    records = b"".join(data.records) if isinstance(data.records, list) else data.records or b""
    aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
    return RawFetch(data.high_watermark, data.last_stable_offset, data.log_start_offset, aborted, memoryview(records))


async def fetch_once(
    client: "Client",
    partition: TopicPartition,
    offset: int,
    max_bytes: int,
    isolation: str,
    *,
    max_wait_ms: int,
    min_bytes: int,
) -> RawFetch:
    """One try to fetch from one partition."""
    request = build_fetch(
        {partition: offset},
        partition_max_bytes=max_bytes,
        max_bytes=max_bytes,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        isolation=isolation_level(isolation),
    )
    response = await client.attempt(
        request, leader_of=partition, lane=LANE, timeout_ms=client.request_timeout_ms + max_wait_ms
    )
    found = split_answer(response, [partition]).get(partition)
    if found is None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the broker's answer leaves {partition} out")
    if isinstance(found, KafkaError):
        raise found
    return found
