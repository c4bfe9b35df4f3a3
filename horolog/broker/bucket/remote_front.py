"""The segments of one partition that lie in the bucket, in front of the local ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from horolog.broker.bucket.block_fetcher import Wake
from horolog.broker.bucket.remote_files import RemoteFiles
from horolog.broker.bucket.remote_segment import BucketSegment, MetaReader, RemoteSegment
from horolog.broker.log.integrity import RescanQueue
from horolog.broker.log.partition import DecidedHere, OpenedPartition
from horolog.broker.log.segments import LOG_SUFFIX, Segment, segment_path


class RemoteFront:
    """See the module's docstring. `wake` is called when something has come that a reader waits for."""

    def __init__(self, metas: MetaReader, described: Iterable[BucketSegment]) -> None:
        self.wake: Wake = _without_readers
        self._metas = metas
        self._described = list(described)
        self._remotes: dict[int, RemoteSegment] = {}
        self._segments: list[Segment] = []

    def __repr__(self) -> str:
        return f"<RemoteFront of {len(self._described)} segments>"

    @property
    def end_offset(self) -> int:
        return self._described[-1].contents.next_offset if self._described else 0

    def put_before(self, opened: OpenedPartition, log_start_offset: int) -> OpenedPartition:
        """A partition that was opened from its local files, with those of its segments that lie in the bucket."""
        if not self._segments:
            self._open(opened)
        here = [one for one in self._segments if not one.removed]
        return replace(opened, segments=[*here, *opened.segments], log_start_offset=log_start_offset)

    def _open(self, opened: OpenedPartition) -> None:
        files = RemoteFiles(opened.resources.storage.now_ns)
        folder = replace(opened.folder, storage=files, rescan_queue=RescanQueue())
        for one in self._described:
            path = segment_path(folder.directory, one.base_offset, LOG_SUFFIX)
            remote = self._remotes[one.base_offset] = RemoteSegment(one, path, self._metas, self._wake)
            files.add(folder.directory, remote)
            self._segments.append(remote.open(folder, opened.config))

    def _wake(self) -> None:
        self.wake()

    def decided(self) -> dict[int, Callable[[], DecidedHere]]:
        """The transactions that each segment decides, by its base offset."""
        return {base: remote.decided for base, remote in self._remotes.items()}


def _without_readers() -> None:
    """No reader can have asked yet."""
