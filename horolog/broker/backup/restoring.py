"""Writes a moment of a backup as a data folder, and has recovery read all of it: what the broker had, up to that moment.

Bytes that are lost or damaged become a gap of the same length, so that all behind it keeps its place; recovery sets it aside. Internal
topics are always restored: they have the positions of groups and the states of transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace

from horolog.broker.backup.moment import KeptPartition, KeptSegment, Moment
from horolog.broker.backup.objects import LostPiece, PieceReader
from horolog.broker.base.topic_names import INTERNAL_TOPICS
from horolog.broker.config.settings import Settings
from horolog.broker.config.topic_settings import TopicConfig, resolve, usable
from horolog.broker.log.recovery import Circumstances, PartitionFolder
from horolog.broker.log.segments import LOG_SUFFIX, segment_path
from horolog.broker.log.storage import Storage
from horolog.broker.on_record import cluster_file
from horolog.broker.on_record.cluster_file import StoredCluster, StoredTopic
from horolog.broker.prefix.findings import Finding, damaged, missing
from horolog.broker.transfer.folder_copy import Copied, recovered
from horolog.broker.transfer.whole_folder import ExportTarget, Record, begin, complete, note
from horolog.protocol.topic_partition import TopicPartition

Seen = Callable[[int], None]


@dataclass(slots=True)
class Restored:
    """What a restore has written."""

    topics: int = 0
    partitions: int = 0
    size_bytes: int = 0
    ends: dict[TopicPartition, Copied] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def restore(
    moment: Moment, reader: PieceReader, target: ExportTarget, topics: Collection[str] = (), seen: Seen = lambda _: None
) -> Restored:
    """Write these topics, or all. Raises FolderTaken, StoreError and StorageFault; an attempt that was interrupted is continued."""
    stored = _chosen(cluster_file.parse(moment.record), topics)
    done = begin(target, {"cluster": moment.cluster_id, "moment": moment.number, "topics": sorted(topics)})
    restored = Restored(len(stored.topics))
    for one in moment.partitions:
        topic = stored.topics.get(one.topic)
        if topic is None or topic.id != one.topic_id:
            continue
        copied = done.get(one.place)
        if copied is None:
            copied = _Copy(one, _config(topic, target.settings), reader, target, restored.findings, seen).run()
            note(target, one.place, copied)
        restored.ends[one.place] = copied
        restored.partitions += 1
        restored.size_bytes += copied.size_bytes
    record = Record(
        moment.cluster_id,
        stored.topics.values(),
        stored.broker_configs,
        stored.next_producer_id or 0,
        stored.rules.values(),
    )
    complete(target, restored.ends, record)
    return restored


def _chosen(stored: StoredCluster, topics: Collection[str]) -> StoredCluster:
    if not topics:
        return stored
    kept = {name: one for name, one in stored.topics.items() if name in topics or name in INTERNAL_TOPICS}
    return replace(stored, topics=kept)


def _config(topic: StoredTopic, settings: Settings) -> TopicConfig:
    return resolve(usable(topic.overrides, settings)[0], settings)


@dataclass(frozen=True, slots=True)
class _Copy:
    """One partition on its way into its folder."""

    kept: KeptPartition
    config: TopicConfig
    reader: PieceReader
    target: ExportTarget
    findings: list[Finding]
    seen: Seen

    @property
    def directory(self) -> str:
        return f"{self.target.folder}/{self.kept.topic}-{self.kept.index}"

    def run(self) -> Copied:
        """A log that has lost bytes ends where it did all the same; that of another has to end there by what it holds."""
        storage, kept = self.target.storage, self.kept
        _empty(storage, self.directory)
        faults = len(self.findings)
        for segment in kept.segments:
            self._write(segment)
        for name, data in kept.files.items():
            storage.write_atomically(f"{self.directory}/{name}", data)
        is_hurt = len(self.findings) > faults
        known = Circumstances(
            was_clean=is_hurt,
            log_start_offset=kept.start_offset,
            now_ms=self.target.now_ms,
            recovery_point=kept.end_offset,
        )
        place = PartitionFolder(kept.topic, kept.index, self.directory)
        copied = recovered(storage, place, self.config, known)
        if (copied.start_offset, copied.end_offset) != (kept.start_offset, kept.end_offset):
            found = f"offsets {copied.start_offset} to {copied.end_offset} were restored"
            self._report(damaged(self._name, f"{found} instead of {kept.start_offset} to {kept.end_offset}"))
        return copied

    @property
    def _name(self) -> str:
        return f"{self.kept.topic}-{self.kept.index}"

    def _report(self, finding: Finding) -> None:
        self.findings.append(finding)

    def _write(self, segment: KeptSegment) -> None:
        storage, path = self.target.storage, segment_path(self.directory, segment.base_offset, LOG_SUFFIX)
        file = storage.create(path)
        position = 0
        for data in self._contents(segment):
            file.pwritev([data], position)
            position += len(data)
        file.datasync()
        file.close()
        storage.set_mtime_ms(path, segment.modified_ms)

    def _contents(self, segment: KeptSegment) -> Iterator[bytes]:
        for piece in segment.pieces:
            try:
                yield self.reader.read(piece)
            except LostPiece as lost:
                reason = f"{lost}: {piece.size_bytes} bytes of {self._name}, segment {segment.base_offset}"
                self._report((missing if lost.is_missing else damaged)(piece.key, reason))
                yield bytes(piece.size_bytes)
            self.seen(piece.size_bytes)


def _empty(storage: Storage, directory: str) -> None:
    """Begin anew: an earlier attempt may have left a part."""
    if storage.is_dir(directory):
        for name in storage.list_dir(directory):
            storage.remove(f"{directory}/{name}")
    else:
        storage.make_dir(directory)
