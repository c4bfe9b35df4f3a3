"""Looks at the data folders of a broker, which may be running: the record of the cluster, and the size of every log at one moment.

A broker that takes part says where its open logs end, all at one instant (`Ends`). The record of the cluster and the ends of all other logs
are read before and after that instant, until they are the same twice: then they were so at the instant. If no broker takes part, this holds
for all logs. Under load they are never the same, and the look is not exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from horolog.broker.cluster.cluster import random_topic_id
from horolog.broker.cluster.cluster_start import load_record, next_producer_id_of
from horolog.broker.cluster.left_folders import as_left
from horolog.broker.log.files import checkpoints, log_starts, meta_properties
from horolog.broker.log.segments import LOG_SUFFIX, segment_path
from horolog.broker.log.storage import DataFolderError, FileMissing, Storage
from horolog.broker.on_record import cluster_file
from horolog.broker.on_record.cluster_file import ClusterFile, StoredCluster, StoredTopic
from horolog.protocol.topic_partition import TopicPartition

LOOKS = 5
OFFSET_DIGITS = 20

Ends = Mapping[TopicPartition, tuple[int, int]]
"""Of each partition the base offset of its open segment, and the size of that."""


class FoldersChanged(Exception):
    """The folders have changed since the look: look again."""


class SeenSegment(NamedTuple):
    """The log of a segment as it was seen."""

    base_offset: int
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class SeenPartition:
    """A partition as it was seen; the last segment is open."""

    topic: str
    index: int
    topic_id: bytes
    directory: str
    start_offset: int
    segments: tuple[SeenSegment, ...]

    @property
    def place(self) -> TopicPartition:
        return self.topic, self.index


@dataclass(frozen=True, slots=True)
class Look:
    """All folders at a moment."""

    time_ms: int
    cluster_id: str
    node_id: int
    record: bytes
    partitions: Sequence[SeenPartition]
    is_exact: bool


@dataclass(frozen=True, slots=True)
class _At:
    """Where a partition lies."""

    topic: StoredTopic
    index: int
    directory: str


class _OnRecord(NamedTuple):
    """What the folders say at a time beside the logs."""

    cluster_id: str
    node_id: int
    stored: StoredCluster
    starts: Mapping[TopicPartition, int]
    places: Mapping[TopicPartition, _At]

    def is_as(self, other: _OnRecord) -> bool:
        """Whether a moment would have the same record of both. Entries that change nothing in it may have been written in between."""
        return all(
            getattr(self.stored, name) == getattr(other.stored, name)
            for name in ("topics", "rules", "lost_rules", "broker_configs", "next_producer_id")
        )


class SourceFolders(NamedTuple):
    """The data folders of one broker."""

    paths: Sequence[str]
    new_storage: Callable[[], Storage]
    """Makes one that knows nothing of earlier looks."""
    now_ms: Callable[[], int]

    def look(self, take_ends: Callable[[], Ends] = dict) -> Look:
        """`take_ends` has the broker say where its open logs end. Raises DataFolderError, StorageFault and FoldersChanged."""
        before, rest_before = self._on_record(), dict[TopicPartition, tuple[int, int]]()
        for _ in range(LOOKS):
            time_ms, open_ends = self.now_ms(), take_ends()
            now, storage = self._on_record(), self.new_storage()
            others = {place: at.directory for place, at in now.places.items() if place not in open_ends}
            rest = {place: end for place, directory in others.items() if (end := _end_of(storage, directory))}
            is_exact = now.is_as(before) and rest.items() <= rest_before.items()
            starts, before, rest_before = before.starts, now, rest  # starts of before: none is behind an end
            if is_exact:
                break
        storage, ends = self.new_storage(), {**rest, **open_ends}
        found = [(place, at) for place, at in now.places.items() if place in ends]
        seen = [_seen(storage, at, ends[place], starts.get(place, 0)) for place, at in found]
        return Look(time_ms, now.cluster_id, now.node_id, _record(now.stored), seen, is_exact)

    def _on_record(self) -> _OnRecord:
        storage = self.new_storage()
        left = as_left(storage, self.paths)
        stored = load_record(ClusterFile(left, self.paths[0], lambda: self.paths), left, self.paths)
        starts: dict[TopicPartition, int] = {}
        for path in self.paths:
            starts |= log_starts.load(left, path).offsets
        places = dict(_places(storage, self.paths, stored))
        return _OnRecord(*_ids(left, self.paths[0]), stored, starts, places)


def _ids(storage: Storage, path: str) -> tuple[str, int]:
    meta = meta_properties.load(storage, path)
    if meta is None or not meta.cluster_id or meta.node_id is None:
        raise DataFolderError(f"{path} is not the data folder of a broker of this release: start one on it first")
    return meta.cluster_id, meta.node_id


def _record(stored: StoredCluster) -> bytes:
    """The content of `horolog-cluster` for one broker in one folder."""
    topics = [replace(one, folders={}, line="") for _, one in sorted(stored.topics.items())]
    lines = cluster_file.encode_lines(topics, [one for _, one in sorted(stored.rules.items())])
    return cluster_file.encode(
        lines,
        number=stored.number,
        broker_configs=stored.broker_configs,
        next_producer_id=next_producer_id_of(stored, random_topic_id, has_topics=bool(topics)),
        deleting={},
        lost_rules=stored.lost_rules,
    )


def _places(storage: Storage, paths: Sequence[str], stored: StoredCluster) -> Iterator[tuple[TopicPartition, _At]]:
    """The partitions on record that have a folder."""
    folders = {name: f"{path}/{name}" for path in paths for name in storage.list_dir(path)}
    for _, topic in sorted(stored.topics.items()):
        for index in range(topic.partition_count):
            directory = folders.get(f"{topic.name}-{index}")
            if directory is not None:
                yield (topic.name, index), _At(topic, index, directory)


def _bases(storage: Storage, directory: str) -> list[int]:
    """The base offsets of segments; none if the folder is gone."""
    try:
        names = storage.list_dir(directory)
    except FileMissing:
        return []
    return sorted(base for name in names if (base := _base_of(name)) is not None)


def _base_of(name: str) -> int | None:
    stem = name.removesuffix(LOG_SUFFIX)
    return int(stem) if stem != name and len(stem) == OFFSET_DIGITS and stem.isascii() and stem.isdigit() else None


def _end_of(storage: Storage, directory: str) -> tuple[int, int] | None:
    bases = _bases(storage, directory)
    try:
        return (bases[-1], _stat(storage, directory, bases[-1])[0]) if bases else None
    except FileMissing:
        return None


def _stat(storage: Storage, directory: str, base: int) -> tuple[int, int]:
    size_bytes, modified_ns = storage.stat(segment_path(directory, base, LOG_SUFFIX))
    return size_bytes, modified_ns // 1_000_000


def _seen(storage: Storage, at: _At, end: tuple[int, int], start: int) -> SeenPartition:
    """The partition up to that end. Raises FoldersChanged if files have gone or belong to another topic of that name."""
    last, size_bytes = end
    try:
        metadata = storage.read_all(f"{at.directory}/{checkpoints.PARTITION_METADATA}")
        if checkpoints.decode_partition_metadata(metadata) != at.topic.id:
            raise FoldersChanged(f"{at.directory} belongs to another topic of that name")
        bases = [base for base in _bases(storage, at.directory) if base <= last]
        found = [SeenSegment(base, *_stat(storage, at.directory, base)) for base in bases]
    except (FileMissing, checkpoints.CheckpointError) as error:
        raise FoldersChanged(str(error)) from error
    if not found or found[-1].base_offset != last:
        raise FoldersChanged(f"{at.directory} no longer has segment {last}")
    found[-1] = found[-1]._replace(size_bytes=min(size_bytes, found[-1].size_bytes))
    return SeenPartition(at.topic.name, at.index, at.topic.id, at.directory, max(start, bases[0]), tuple(found))
