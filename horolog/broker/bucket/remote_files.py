"""The files of those segments of a partition that lie in the bucket, as the log asks for them: a storage that is only read.

Names change here alone, and a file that is removed is only forgotten: what lies in the bucket is the manifest's matter.
"""

# Paths are plain strings here, as in `storage`.
from __future__ import annotations

from collections.abc import Callable, Mapping

from horolog.broker.bucket.remote_segment import Parts, RemoteSegment
from horolog.broker.log.indexes import transaction_index
from horolog.broker.log.segments import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, segment_path
from horolog.broker.log.storage import File, FileMissing, RefusingFile, RefusingStorage, StorageFault, refused

PART_OF: Mapping[str, Callable[[Parts], bytes]] = {
    OFFSET_INDEX_SUFFIX: lambda parts: parts.offset_index,
    TIME_INDEX_SUFFIX: lambda parts: parts.time_index,
    transaction_index.SUFFIX: lambda parts: parts.transaction_index,
}


class RemotePart(RefusingFile):
    """A file beside the log, out of the `.meta` object; see `storage.File`."""

    __slots__ = ("_read",)

    def __init__(self, path: str, read: Callable[[], bytes]) -> None:
        super().__init__(path)
        self._read = read

    def __repr__(self) -> str:
        return f"<RemotePart {self.path}>"

    def pread(self, size: int, position: int) -> bytes:
        data = self._read()
        if position + size > len(data):
            raise StorageFault(f"read {self.path}: it ends at {len(data)}", path=self.path)
        return data[position : position + size]

    def size(self) -> int:
        return len(self._read())


class RemoteFiles(RefusingStorage):
    """See the module's docstring. What needs a `.meta` object raises NotHere until that is here."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.now_ns = now_ns
        self._files: dict[str, tuple[RemoteSegment, str]] = {}

    def __repr__(self) -> str:
        return f"<RemoteFiles: {len(self._files)} files>"

    def add(self, directory: str, segment: RemoteSegment) -> None:
        for kind in (LOG_SUFFIX, *PART_OF):
            self._files[segment_path(directory, segment.described.base_offset, kind)] = segment, kind

    def _found(self, path: str) -> tuple[RemoteSegment, str]:
        found = self._files.get(path)
        if found is None:
            raise FileMissing(f"open {path}: there is no such segment in the bucket", path=path)
        return found

    def open(self, path: str) -> File:
        segment, kind = self._found(path)
        if kind == LOG_SUFFIX:
            return segment.log
        part_of = PART_OF[kind]
        return RemotePart(path, lambda: part_of(segment.parts()))

    def list_dir(self, path: str) -> list[str]:
        return sorted(one.rpartition("/")[2] for one in self._files if one.rpartition("/")[0] == path)

    def exists(self, path: str) -> bool:
        return path in self._files

    def is_dir(self, path: str) -> bool:
        return any(one.rpartition("/")[0] == path for one in self._files)

    def stat(self, path: str) -> tuple[int, int]:
        """Of a log, its newest record is the time of its last write."""
        segment, kind = self._found(path)
        newest_ms = max(segment.described.contents.max_timestamp, segment.described.created_ms)
        size_bytes = segment.log.size_bytes if kind == LOG_SUFFIX else len(PART_OF[kind](segment.parts()))
        return size_bytes, newest_ms * 1_000_000

    def read_all(self, path: str) -> bytes:
        file = self.open(path)
        return file.pread(file.size(), 0)

    def rename(self, old: str, new: str) -> None:
        self._files[new] = self._found(old)
        del self._files[old]

    def remove(self, path: str) -> None:
        self._found(path)
        del self._files[path]

    def disk_space(self, path: str) -> tuple[int, int]:
        raise refused("measure", path)
