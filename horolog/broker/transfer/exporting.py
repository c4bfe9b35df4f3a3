"""Writes a prefix as a data folder, which one broker serves, ours or Kafka's: segments, checkpoints, and the record of the cluster.

Brokers may be running: each partition is written as it was when it was read. An export that was interrupted goes on behind the partitions
that are complete (`whole_folder`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from crc32c import crc32c

from horolog.broker.bucket import segment_meta
from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.lineage_reader import feed
from horolog.broker.bucket.prefix_contents import FoundCluster
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.segment_meta import SegmentMeta
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.wal_index import Gone
from horolog.broker.config.settings import Settings
from horolog.broker.config.topic_settings import TopicConfig, resolve, usable
from horolog.broker.log.integrity import BLOCK_BYTES
from horolog.broker.log.recovery import PartitionFolder
from horolog.broker.on_record.cluster_file import StoredTopic
from horolog.broker.prefix.findings import Finding, damaged, missing
from horolog.broker.transfer.folder_copy import Copied, FolderCopy
from horolog.broker.transfer.logged_losses import losses_in
from horolog.broker.transfer.prefix_reading import Ends, PartitionContents, contents_of, ends_of_open, is_newest
from horolog.broker.transfer.whole_folder import ExportTarget, Record, begin, complete, note

READ_BYTES = 8 * BLOCK_BYTES
"""So much of a segment is read with one request."""

Seen = Callable[[int], None]


@dataclass(slots=True)
class Exported:
    """What an export has written, or would write."""

    topics: int = 0
    partitions: int = 0
    size_bytes: int = 0
    ends: dict[tuple[str, int], Copied] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


async def weigh(store: StoreAccess, found: FoundCluster, settings: Settings, seen: Seen) -> Exported:
    """What `export` would write. Raises FormatError."""
    exported = Exported(len(found.state.topics))
    ends = await ends_of_open(store, found.state)
    for topic, index in _places(found):
        contents = await contents_of(store, found.state, topic, index, _config(topic, settings), ends)
        exported.partitions += 1
        exported.size_bytes += contents.size_bytes
        seen(contents.size_bytes)
    return exported


async def export(store: StoreAccess, found: FoundCluster, target: ExportTarget, seen: Seen) -> Exported:
    """Write everything. Raises FolderTaken, FormatError and StorageFault."""
    exported = Exported(len(found.state.topics))
    done = begin(target, {"cluster": found.cluster_id})
    ends = await ends_of_open(store, found.state)
    with losses_in(exported.findings):
        await _Partitions(store, found, target, ends, exported, seen).copy_all(done)
    state = found.state
    record = Record(
        found.cluster_id, state.topics.values(), state.broker_configs, state.next_producer_id, state.rules.values()
    )
    complete(target, exported.ends, record)
    return exported


def _places(found: FoundCluster) -> Iterator[tuple[StoredTopic, int]]:
    for _, topic in sorted(found.state.topics.items()):
        for index in range(topic.partition_count):
            yield topic, index


def _config(topic: StoredTopic, settings: Settings) -> TopicConfig:
    return resolve(usable(topic.overrides, settings)[0], settings)


class _Partitions:
    """One partition after the other."""

    def __init__(
        self,
        store: StoreAccess,
        found: FoundCluster,
        target: ExportTarget,
        ends: Ends,
        exported: Exported,
        seen: Seen,
    ) -> None:
        self._store = store
        self._found = found
        self._target = target
        self._ends = ends
        self._exported = exported
        self._seen = seen

    async def copy_all(self, done: Mapping[tuple[str, int], Copied]) -> None:
        """`done` has those that an earlier attempt has completed."""
        exported = self._exported
        for topic, index in _places(self._found):
            copied = done.get((topic.name, index))
            if copied is None:
                copied = await self._copy(topic, index)
                note(self._target, (topic.name, index), copied)
            exported.ends[topic.name, index] = copied
            exported.partitions += 1
            exported.size_bytes += copied.size_bytes

    async def _copy(self, topic: StoredTopic, index: int) -> Copied:
        """Read it again if objects have gone meanwhile: only what the newest manifest and mark name is lost."""
        lost: set[str] = set()
        config = _config(topic, self._target.settings)
        place = PartitionFolder(topic.name, index, f"{self._target.folder}/{topic.name}-{index}")
        while True:
            contents = await contents_of(self._store, self._found.state, topic, index, config, self._ends)
            copy = FolderCopy(self._target.storage, place, topic.id, config, contents.covered)
            findings: list[Finding] = []
            try:
                await self._fill(copy, contents, lost, findings)
            except Gone as gone:
                lost.add(gone.missing)
                continue
            finally:
                copy.close()
            if await is_newest(self._store, contents):
                return self._finished(copy, contents, findings, f"{topic.name}-{index}")

    async def _fill(
        self, copy: FolderCopy, contents: PartitionContents, lost: set[str], findings: list[Finding]
    ) -> None:
        for segment in contents.covered.segments:
            fault = await self._segment(copy, segment, lost)
            if fault is not None:
                findings.append(fault)
        copy.end_segments()
        await feed(self._store, contents.runs, copy.add, lost)

    async def _segment(self, copy: FolderCopy, segment: BucketSegment, lost: set[str]) -> Finding | None:
        """Write a segment of which every block is verified. Raises Gone."""
        meta = await self._meta(segment, lost)
        if isinstance(meta, Finding):
            return meta
        copy.begin_segment(segment.base_offset)
        size, sums = segment.contents.size_bytes, meta.seal.sums()
        for start in range(0, size, READ_BYTES):
            data = await self._store.read_range(segment.log_key, start, min(start + READ_BYTES, size))
            if data is None:
                if segment.log_key not in lost:
                    raise Gone(segment.log_key)
                return missing(segment.log_key, "the newest manifest names it")
            for at in range(0, len(data), BLOCK_BYTES):
                if crc32c(memoryview(data)[at : at + BLOCK_BYTES]) != sums.sum_of((start + at) // BLOCK_BYTES):
                    return damaged(segment.log_key, f"the block at {start + at} is not the one that was written")
            copy.write(data)
            self._seen(len(data))
        return None

    async def _meta(self, segment: BucketSegment, lost: set[str]) -> SegmentMeta | Finding:
        data = await self._store.read(segment.meta_key)
        if data is None:
            if segment.meta_key not in lost:
                raise Gone(segment.meta_key)
            return missing(segment.meta_key, "the newest manifest names it")
        try:
            return segment_meta.decode(data)
        except FormatError as error:
            return damaged(segment.meta_key, error)

    def _finished(self, copy: FolderCopy, contents: PartitionContents, findings: list[Finding], name: str) -> Copied:
        end_offset = max((one.run.next_offset for one in contents.runs), default=0)
        copied = copy.finish(end_offset, self._target.now_ms)
        findings += [missing(name, f"offsets {one.start} to {one.stop - 1} are in no object") for one in copy.gaps]
        if copied.damaged_bytes:
            findings.append(damaged(name, f"{copied.damaged_bytes} bytes are no batches"))
        self._exported.findings += findings
        self._seen(sum(one.run.length for one in contents.runs))
        return copied
