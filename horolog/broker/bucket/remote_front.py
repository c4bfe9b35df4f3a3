"""The segments of one partition that lie in the bucket, in front of the local ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from horolog.broker.bucket.block_fetcher import Wake
from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.remote_files import RemoteFiles
from horolog.broker.bucket.remote_segment import MetaReader, RemoteSegment
from horolog.broker.bucket.unread_pages import is_unread
from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.integrity import RescanQueue
from horolog.broker.log.partition import DecidedHere, OpenedPartition, Partition
from horolog.broker.log.segments import LOG_SUFFIX, Segment, SegmentFolder, segment_for, segment_path, swap_files


class RemoteFront:
    """See the module's docstring. `wake` is called when something has come that a reader waits for."""

    def __init__(self, metas: MetaReader, described: Iterable[BucketSegment] = ()) -> None:
        self.wake: Wake = _without_readers
        self.end_offset = 0
        self._metas = metas
        self._to_open = list(described)
        self._files: RemoteFiles | None = None
        self._remotes: dict[int, RemoteSegment] = {}
        self._pages: list[RemoteSegment] = []
        """Those that stand in for pages of the manifest that cannot be read."""
        self._segments: list[Segment] = []

    def __repr__(self) -> str:
        return f"<RemoteFront of {len(self._remotes)} segments, up to {self.end_offset}>"

    def put_before(self, opened: OpenedPartition, log_start_offset: int) -> OpenedPartition:
        """A partition that was opened from its local files, with those of its segments that lie in the bucket."""
        waiting, self._to_open = self._to_open, []
        for one in waiting:
            self._add(one, opened.folder, opened.config)
        segments = [*(one for one in self._segments if not one.removed), *opened.segments]
        start_offset = max(segments[0].base_offset, min(log_start_offset, segments[-1].next_offset))
        return replace(opened, segments=segments, log_start_offset=start_offset)

    def _add(self, described: BucketSegment, local: SegmentFolder, config: TopicConfig) -> Segment:
        files = self._files = self._files or RemoteFiles(local.storage.now_ns)
        folder = replace(local, storage=files, rescan_queue=RescanQueue())
        path = segment_path(folder.directory, described.base_offset, LOG_SUFFIX)
        remote = self._remotes[described.base_offset] = RemoteSegment(described, path, self._metas, self._wake)
        if is_unread(described):
            self._pages.append(remote)
        files.add(folder.directory, remote)
        segment = remote.open(folder, config)
        self._segments.append(segment)
        self.end_offset = described.contents.next_offset
        return segment

    def take(self, partition: Partition, described: BucketSegment, now_ms: int) -> bool:
        """Have the first local segment read from the bucket from now on, and its files removed; False if it is another one.

        Raises StorageFault.
        """
        segments = partition.segments
        number = segment_for(segments, described.base_offset)
        local, ends = segments[number], (described.base_offset, described.contents.next_offset)
        if number == len(segments) - 1 or (local.base_offset, local.next_offset) != ends or ends[0] < self.end_offset:
            return False
        local.retire(swap_files.DELETED)
        partition.doomed.add(local, now_ms)
        segments[number] = self._add(described, partition.folder, partition.config)
        partition.aborted.remove(described.base_offset)
        partition.aborted.elsewhere[described.base_offset] = self._remotes[described.base_offset].decided
        partition.segments_changed()
        return True

    def end(self) -> None:
        """Its partition is given up: what would wake its readers refers to it, and would keep its memory until a full collection."""
        self.wake = _without_readers

    def unreadable(self) -> dict[str, str]:
        """What cannot be read, and why, by the objects that are lost."""
        remotes = self._remotes.values() if self._metas.fetcher.lost else self._pages
        return dict(line for remote in remotes for line in remote.unreadable())

    def _wake(self) -> None:
        self.wake()

    def decided(self) -> dict[int, Callable[[], DecidedHere]]:
        """The transactions that each segment decides, by its base offset."""
        return {base: remote.decided for base, remote in self._remotes.items()}


def _without_readers() -> None:
    """No reader waits."""
