"""The facts of retention from a data folder: its segments, and the broker's own decision about them."""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from horolog.broker.cluster.left_folders import as_left, topics_left
from horolog.broker.log.files import checkpoints, log_starts
from horolog.broker.log.indexes import time_index
from horolog.broker.log.integrity import SealsDamaged, seals
from horolog.broker.log.partition import retention
from horolog.broker.log.storage import FileMissing, ReadOnlyStorage, Storage
from horolog.client.cli.dumping.indexes import split
from horolog.client.cli.retaining.segment_retention import ACTIVE_ALONE, left_under, next_of
from horolog.client.segments.retention import PartitionFacts, Rules, holds_of
from horolog.protocol.errors import DecodeError
from horolog.protocol.records.head import Head, heads_in

if TYPE_CHECKING:
    from horolog.broker.config.topic_settings import TopicConfig

_LOG = re.compile(r"([0-9]{20})\.log")
WINDOW_BYTES = 1 << 20
LARGEST_WINDOW_BYTES = 1 << 30


class DeletionQuery(NamedTuple):
    """The settings and the time to decide by."""

    config: "TopicConfig"
    other: "TopicConfig | None"
    """Other settings, to report what they would leave too."""
    now_ms: int


def facts_of(
    storage: ReadOnlyStorage,
    data_folder: str,
    topic: str,
    partitions: "list[tuple[int, str]]",
    asked: DeletionQuery,
) -> list[PartitionFacts]:
    """The facts of partitions (number, folder)."""
    start_of = log_start_in(storage, data_folder)
    return [_facts(storage, directory, index, start_of(topic, index), asked) for index, directory in partitions]


def log_start_in(storage: Storage, data_folder: str) -> Callable[[str, int], int]:
    """The log start of each partition, by our checkpoint or Kafka's: the later one, unless Kafka's is damaged."""
    left = as_left(storage, [data_folder])
    starts = log_starts.load(left, data_folder)
    if starts.kafkas_is_damaged:
        return lambda topic, index: starts.offsets.get((topic, index), 0)
    starts_of_kafka = checkpoints.load_offsets(left, f"{data_folder}/{checkpoints.LOG_START_OFFSETS}").offsets
    return lambda topic, index: max(starts.offsets.get((topic, index), 0), starts_of_kafka.get((topic, index), 0))


def _facts(
    storage: ReadOnlyStorage,
    directory: str,
    index: int,
    start: int,
    asked: DeletionQuery,
) -> PartitionFacts:
    config, other, now_ms = asked
    segments, first_ms = ages(storage, directory)
    end = segments[-1].next_offset if segments else start
    first = max(start, segments[0].base_offset if segments else start)
    largest = max(segments, key=lambda one: one.largest_timestamp, default=None)
    facts = PartitionFacts(
        index,
        first,
        end,
        sum(one.size_bytes for one in segments),
        first_ms,
        largest.largest_timestamp if largest is not None and largest.largest_timestamp >= 0 else None,
    )

    def modified_ms(base_offset: int) -> int:
        return storage.stat(f"{directory}/{base_offset:020d}.log")[1] // 1_000_000

    rules = rules_of(config)
    facts.next = next_of(segments, config, now_ms, first, modified_ms)
    facts.held_by = holds_of(rules, facts, now_ms)
    if len(segments) == 1 and facts.records and config.delete:
        facts.held_by.append(ACTIVE_ALONE)
    if other is not None:
        facts.left = left_under(segments, facts, other, now_ms, modified_ms)
    return facts


def ages(storage: ReadOnlyStorage, directory: str) -> tuple[list[retention.SegmentAge], int | None]:
    """The segments, and the time of the first record with one, as far as a seal or an index has it."""
    try:
        sealed = seals.load(storage, directory)
    except (SealsDamaged, ValueError):
        sealed = {}
    bases = sorted(int(found[1]) for found in map(_LOG.fullmatch, storage.list_dir(directory)) if found is not None)
    found: list[retention.SegmentAge] = []
    first_ms: int | None = None
    for base_offset, following in zip(bases, [*bases[1:], None], strict=True):
        path = f"{directory}/{base_offset:020d}.log"
        size_bytes = storage.end_of_data(path)
        seal = sealed.get(base_offset)
        entries = _entries(storage, f"{directory}/{base_offset:020d}.timeindex")
        largest = max([timestamp for timestamp, _ in entries], default=-1)
        if seal is not None and following is not None:
            largest = max(largest, seal.contents.max_timestamp)
        end = following
        if end is None or largest < 0:
            end, seen = _walk(storage, path, size_bytes, base_offset)
            end, largest = following or end, max(largest, seen)
        if first_ms is None and largest >= 0:
            first_ms = seal.contents.first_timestamp if seal is not None else _first_time(storage, path, size_bytes)
            first_ms = None if first_ms is None or first_ms < 0 else first_ms
        found.append(retention.SegmentAge(base_offset, end, size_bytes, largest))
    return found, first_ms


def _entries(storage: ReadOnlyStorage, path: str) -> list[tuple[int, int]]:
    try:
        return split(storage.read_all(path), time_index.ENTRY)[0]
    except FileMissing:
        return []


def _walk(storage: ReadOnlyStorage, path: str, size_bytes: int, base_offset: int) -> tuple[int, int]:
    """The end of a log and its largest time, from its batch headers; stops at damage."""
    end, largest, position, window = base_offset, -1, 0, WINDOW_BYTES
    file = storage.open(path)
    try:
        while position < size_bytes and window <= LARGEST_WINDOW_BYTES:
            data = file.pread(min(window, size_bytes - position), position)
            heads, is_damaged = _heads(data)
            if heads:
                end = heads[-1].last_offset + 1
                largest = max(largest, *(head.max_timestamp for head in heads))
                position += heads[-1].end
            if is_damaged or (not heads and position + len(data) >= size_bytes):
                break
            window *= 1 if heads else 2
    finally:
        file.close()
    return end, largest


def _heads(data: bytes) -> tuple[list[Head], bool]:
    """The complete headers in the bytes, and whether damage ended them."""
    found: list[Head] = []
    try:
        for head in heads_in(memoryview(data)):
            found.append(head)  # noqa: PERF402 - those before the damage are kept
    except DecodeError:
        return found, True
    return found, False


def _first_time(storage: ReadOnlyStorage, path: str, size_bytes: int) -> int | None:
    """The largest time of the first batch, an upper bound for its records."""
    file = storage.open(path)
    try:
        heads, _ = _heads(file.pread(min(WINDOW_BYTES, size_bytes), 0))
    finally:
        file.close()
    return next((head.max_timestamp for head in heads if head.max_timestamp >= 0), None)


def rules_of(config: "TopicConfig") -> Rules:
    return Rules(
        deletes=config.delete,
        compacts=config.compact,
        retention_ms=config.retention_ms,
        retention_bytes=config.retention_bytes,
        segment_ms=config.segment_ms,
        segment_bytes=config.segment_bytes,
        future_max_ms=config.future_timestamp_max_ms,
    )


def settings_of(
    storage: ReadOnlyStorage, data_folder: str, topic: str, changes: Mapping[str, str]
) -> "tuple[TopicConfig, TopicConfig | None, bool]":
    """A topic's settings in the folder, those with the changes (None without any), and whether the folder knows the topic.

    Raises SettingsError, NewerClusterFile.
    """
    from horolog.broker.config.settings import Settings
    from horolog.broker.config.topic_settings import resolve

    settings = Settings()
    topics = topics_left(storage, data_folder)
    overrides = dict(topics[topic].overrides) if topic in topics else {}
    other = resolve({**overrides, **changes}, settings) if changes else None
    return resolve(overrides, settings), other, topic in topics
