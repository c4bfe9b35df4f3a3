"""ListOffsets, versions 0 to 11: offsets by time, and the earliest, the latest and the one of the largest timestamp.

- v0 answers from segment base offsets and file times, newest first, at most `max_num_offsets`; a negative number of them is
  UNKNOWN_SERVER_ERROR, as on real brokers.
- v1+ answers exactly (`lookups.first_at_or_after`). Negative targets: -1 latest, -2 earliest, -3 largest timestamp (v7+),
  -4 earliest local (v8+: the earliest, all data is local), -5 latest tiered (v9+) and -6 earliest pending upload (v11+):
  none, for nothing is tiered. Others, and these in older versions: UNSUPPORTED_VERSION for the partition.
- v2+: read_committed sees up to the last stable offset; a record beyond it is no answer.
- v4+: the leader epoch is checked and returned. In v1+ a topic named twice is answered once; so is a partition, with
  INVALID_REQUEST.
- A topic that stores magic 0 has no timestamps: UNSUPPORTED_FOR_MESSAGE_FORMAT for targets by time.
- v10's timeout bounds how long a lookup waits for a part of a log that lies in a store; before, `parking` does.

Requests and answers are flat: tuples of the fields that `protocol.messages.list_offsets` declares, in their order. The names of
the types below stand for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Final

from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.topic import Topic
from horolog.broker.handlers import parking
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.lookup import READ_COMMITTED, epoch_error, find_partition, partition_of, storage_error
from horolog.broker.log.partition import Partition, lookups
from horolog.broker.log.storage import NotHere, StorageFault
from horolog.protocol.errors import ErrorCode
from horolog.protocol.topic_partition import each_topic_once
from horolog.protocol.wire import NO_THROTTLING_MS

LATEST: Final = -1
EARLIEST: Final = -2
LARGEST_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
FIRST_VERSION_OF_TARGET: Final = {
    LATEST: 0,
    EARLIEST: 0,
    LARGEST_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
FIRST_VERSION_WITH_EPOCH: Final = 4
FIRST_VERSION_WITH_TIMEOUT: Final = 10
NONE: Final = -1
NO_ERROR: Final = 0

Asked = tuple[int, int, int, int]
"""A partition's number, its leader epoch as the client knows it, the target, and how many offsets v0 wants."""
AskedTopic = tuple[str, list[Asked]]
ListOffsetsRequest = tuple[int, int, list[AskedTopic], int]
"""Replica, isolation level, topics, timeout."""

Answer = tuple[int, int, Sequence[int], int, int, int]
"""A partition's number, error code, the offsets that v0 wants, and of the record found timestamp, offset and leader epoch."""
ListOffsetsResponse = tuple[int, list[tuple[str, list[Answer]]]]
"""Throttle time, topics."""


def handle(broker: BrokerView, request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse | None:
    version = context.version
    if version == 0:
        return _answer_v0(broker, request[2])
    missing: list[Partition] = []
    response = _respond(broker.cluster, request, version, missing)
    if missing:
        attempt = partial(_respond, broker.cluster, request, version)
        timeout_ms = request[3] if version >= FIRST_VERSION_WITH_TIMEOUT else parking.LONGEST_WAIT_MS
        if parking.wait(broker, context, missing, attempt, timeout_ms):
            return None
    return response


def _respond(
    cluster: Cluster, request: ListOffsetsRequest, version: int, missing: list[Partition]
) -> ListOffsetsResponse:
    """The response, where all that it takes is here."""
    _, isolation_level, topics, _ = request
    committed = isolation_level == READ_COMMITTED
    if len(topics) > 1:
        topics = list(each_topic_once(topics).items())
    twice = _named_twice(topics)
    answered: list[tuple[str, list[Answer]]] = []
    for name, every in topics:
        if not every:
            continue
        asked = list({each[0]: each for each in every}.values()) if twice else every
        topic = cluster.topics.get(name)
        answers = [
            _failed(each[0], ErrorCode.INVALID_REQUEST)
            if twice and (name, each[0]) in twice
            else _answer(topic, each, version, committed, missing)
            for each in asked
        ]
        answered.append((name, answers))
    return NO_THROTTLING_MS, answered


def _named_twice(topics: Sequence[AskedTopic]) -> set[tuple[str, int]]:
    """The partitions that a request with each topic once names more than once."""
    for _, asked in topics:
        if len(asked) > 1 and len({each[0] for each in asked}) < len(asked):
            break
    else:
        return set()
    counts = Counter([(name, each[0]) for name, asked in topics for each in asked])
    return {key for key, count in counts.items() if count > 1}


def _answer(topic: Topic | None, asked: Asked, version: int, committed: bool, missing: list[Partition]) -> Answer:
    index, current_epoch, target, _ = asked
    if target < 0 and version < FIRST_VERSION_OF_TARGET.get(target, version + 1):
        return _failed(index, ErrorCode.UNSUPPORTED_VERSION)
    partition = partition_of(topic, index)
    if not isinstance(partition, Partition):
        return _failed(index, partition)
    stale = epoch_error(partition, current_epoch)
    if stale is not None:
        return _failed(index, stale)
    if partition.config.stored_magic == 0 and (target >= 0 or target == LARGEST_TIMESTAMP):
        return _failed(index, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)
    try:
        timestamp, offset, leader_epoch = look_up(partition, target, committed)
    except NotHere:
        missing.append(partition)
        return _failed(index, ErrorCode.KAFKA_STORAGE_ERROR)
    except StorageFault as fault:
        return _failed(index, storage_error(partition, fault))
    return index, NO_ERROR, (), timestamp, offset, leader_epoch if version >= FIRST_VERSION_WITH_EPOCH else NONE


def look_up(partition: Partition, target: int, committed: bool) -> tuple[int, int, int]:
    """The (timestamp, offset, leader epoch) that a target stands for; -1 for what does not exist."""
    end = partition.last_stable_offset if committed else partition.high_watermark
    if target == LATEST:
        return NONE, end, partition.leader_epoch
    if target in (EARLIEST, EARLIEST_LOCAL):
        return NONE, partition.log_start_offset, lookups.epoch_at(partition, partition.log_start_offset)
    if target < EARLIEST_LOCAL:
        return NONE, NONE, NONE
    if target == LARGEST_TIMESTAMP:
        found = lookups.largest_timestamp(partition)
    else:
        found = lookups.first_at_or_after(partition, target, end)
    if found is None or found.offset >= end:
        return NONE, NONE, NONE
    return found.timestamp, found.offset, found.leader_epoch


def _failed(index: int, code: ErrorCode) -> Answer:
    return index, code, (), NONE, NONE, NONE


def _answer_v0(broker: BrokerView, topics: Sequence[AskedTopic]) -> ListOffsetsResponse:
    now_ms = broker.clock.wall_ms()
    return NO_THROTTLING_MS, [
        (name, [_offsets_before(broker.cluster, name, each, now_ms) for each in asked]) for name, asked in topics
    ]


def _offsets_before(cluster: Cluster, name: str, asked: Asked, now_ms: int) -> Answer:
    index, _, timestamp, max_count = asked
    partition = find_partition(cluster, name, index)
    if not isinstance(partition, Partition):
        return _failed(index, partition)
    if max_count < 0:
        return _failed(index, ErrorCode.UNKNOWN_SERVER_ERROR)
    try:
        offsets = lookups.offsets_before(partition, timestamp, max_count, now_ms)
    except StorageFault as fault:
        return _failed(index, storage_error(partition, fault))
    return index, NO_ERROR, offsets, NONE, NONE, NONE
