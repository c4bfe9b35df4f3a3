"""A prefix of a bucket as a data folder that is only read: each partition is a folder with Kafka's files and ours.

Logs are read in ranges, and everything beside a log comes out of its `.meta` object. With `presumes`, a `.meta` is read only when a reader
needs it: until then the seal of a segment says what the manifest says. A reader that comes to such a segment gets `NotHere`, and has to
open the partition again. The small files of a whole partition, which come out of its last `.meta`, are there `with_state` only.
"""

# Paths are plain strings here, as in `storage`.
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.remote_files import PART_OF
from horolog.broker.bucket.remote_segment import NOT_KNOWN
from horolog.broker.log.files import checkpoints
from horolog.broker.log.indexes import transaction_index
from horolog.broker.log.integrity import SEALS, Seal, blocks_in, seals
from horolog.broker.log.producers import producers_file, snapshot_file
from horolog.broker.log.segments import HAS_PRODUCERS, LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, segment_path
from horolog.broker.log.storage import (
    File,
    FileMissing,
    NotHere,
    ReadOnlyStorage,
    RefusingFile,
    StorageFault,
    parent_of,
)
from horolog.broker.on_record.cluster_file import Place
from horolog.broker.prefix.meta_objects import MetaObjects
from horolog.broker.prefix.prefix_reader import PrefixReader
from horolog.broker.prefix.stored_partitions import StoredPartition

_KEPT_RANGES = 4


@dataclass(frozen=True, slots=True)
class PrefixOptions:
    """How a prefix is read; see the module's docstring."""

    least_bytes: int
    """A request for a part of a log brings at least so much."""
    presumes: bool = False
    with_state: bool = True


class PrefixLog(RefusingFile):
    """The log of a segment; the ranges that were read last are kept."""

    __slots__ = ("_files", "_kept", "segment")

    def __init__(self, files: PrefixFiles, path: str, segment: BucketSegment) -> None:
        super().__init__(path)
        self._files = files
        self._kept: list[tuple[int, bytes]] = []
        self.segment = segment

    def __repr__(self) -> str:
        return f"<PrefixLog {self.segment.log_key}>"

    def pread(self, size: int, position: int) -> bytes:
        for start, data in self._kept:
            if start <= position and position + size <= start + len(data):
                return data[position - start : position - start + size]
        if not size:
            return b""
        data = self._files.fetch(self.path, self.segment, position, size)
        self._kept = [(position, data), *self._kept[: _KEPT_RANGES - 1]]
        return data[:size]

    def size(self) -> int:
        return self.segment.contents.size_bytes

    def close(self) -> None:
        self._kept = []


class _Folder:
    """The folder of one partition."""

    def __init__(self, stored: StoredPartition, *, with_state: bool) -> None:
        self.place: Place = stored.topic_id, stored.partition
        self.start_offset = stored.start_offset
        self.segments: Mapping[int, BucketSegment] = {one.base_offset: one for one in stored.segments}
        self.last = stored.segments[-1] if stored.segments else None
        self.names = frozenset(_names_of(stored, self.last if with_state else None))


def _names_of(stored: StoredPartition, state_of: BucketSegment | None) -> Iterable[str]:
    yield checkpoints.PARTITION_METADATA
    if not stored.segments:
        yield from (
            _name(stored.start_offset, suffix) for suffix in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)
        )
        return
    yield SEALS
    for one in stored.segments:
        yield _name(one.base_offset, LOG_SUFFIX)
        for suffix in PART_OF:
            if suffix != transaction_index.SUFFIX or one.contents.magics & HAS_PRODUCERS:
                yield _name(one.base_offset, suffix)
    if state_of is not None:
        yield from (checkpoints.LEADER_EPOCHS, snapshot_file.file_name(state_of.next_offset), producers_file.FILE_NAME)


def _name(base_offset: int, suffix: str) -> str:
    return segment_path("", base_offset, suffix).removeprefix("/")


class PrefixFiles(ReadOnlyStorage):
    """See the module's docstring. Paths begin with `root`."""

    def __init__(
        self, reader: PrefixReader, root: str, partitions: Sequence[StoredPartition], options: PrefixOptions
    ) -> None:
        super().__init__()
        self.root = root
        self._reader = reader
        self._options = options
        self._metas = MetaObjects(reader, self.count)
        self._folders = {
            f"{root}/{one.topic}-{one.partition}": _Folder(one, with_state=options.with_state) for one in partitions
        }
        starts = {(one.topic, one.partition): one.start_offset for one in partitions if one.start_offset}
        self._starts = checkpoints.encode_offsets(starts)

    def __repr__(self) -> str:
        return f"<PrefixFiles of {len(self._folders)} partitions at {self.root}>"

    # -- the objects behind the files

    def log_at(self, path: str) -> BucketSegment:
        """The segment whose log has this path."""
        folder, name = self._found(path)
        assert name.endswith(LOG_SUFFIX), path
        return folder.segments[int(name.removesuffix(LOG_SUFFIX))]

    def segments_in(self, directory: str) -> Sequence[BucketSegment]:
        """The segments of a partition, in order."""
        return tuple(self._folders[directory].segments.values())

    def is_known(self, segment: BucketSegment) -> bool:
        """Whether its `.meta` has been read."""
        return self._metas.seal_of(segment) is not None

    def bring(self, segments: Iterable[tuple[str, BucketSegment]]) -> None:
        """Read the `.meta` objects of segments, each with its folder. Raises StoreError and StorageFault."""
        self._metas.bring((self._folders[directory].place, one) for directory, one in segments)

    def object_path(self, path: str) -> str:
        """The place of the object that is the log with this path."""
        return f"{self.root}/{self.log_at(path).log_key}"

    def fetch(self, path: str, segment: BucketSegment, position: int, size: int) -> bytes:
        """At least this much of a log; StorageFault if it ends before."""
        self._need(path, segment)
        whole = segment.contents.size_bytes
        end = min(max(position + size, position + self._options.least_bytes), whole)
        data = self._reader.get_range(segment.log_key, position, end) if end > position else b""
        if data is None:
            raise FileMissing(f"read {segment.log_key}: the object is gone", path=path)
        self.count(path, len(data))
        if len(data) < size:
            raise StorageFault(f"read {path}: ends {size - len(data)} bytes before {position + size}", path=path)
        return data

    def _need(self, path: str, segment: BucketSegment) -> None:
        """Raises NotHere if something about this segment has been presumed until now."""
        if self._options.presumes and not self.is_known(segment):
            self.bring([(parent_of(path), segment)])
            raise NotHere(f"read {path}: it is known by its manifest only, and is opened again", path=path)

    # -- the files

    def _found(self, path: str) -> tuple[_Folder, str]:
        directory, _, name = path.rpartition("/")
        folder = self._folders.get(directory)
        if folder is None or name not in folder.names:
            raise FileMissing(f"open {path}: there is no such file", path=path)
        return folder, name

    def list_dir(self, path: str) -> list[str]:
        if path == self.root:
            return sorted([checkpoints.LOG_START_OFFSETS, *(one.rpartition("/")[2] for one in self._folders)])
        folder = self._folders.get(path)
        if folder is None:
            raise FileMissing(f"list {path}: there is no such folder", path=path)
        return sorted(folder.names)

    def is_dir(self, path: str) -> bool:
        return path == self.root or path in self._folders

    def exists(self, path: str) -> bool:
        folder = self._folders.get(parent_of(path))
        return (
            self.is_dir(path)
            or self._is_starts(path)
            or (folder is not None and path.rpartition("/")[2] in folder.names)
        )

    def _is_starts(self, path: str) -> bool:
        return path == f"{self.root}/{checkpoints.LOG_START_OFFSETS}"

    def stat(self, path: str) -> tuple[int, int]:
        if path.endswith(LOG_SUFFIX):
            folder, name = self._found(path)
            segment = folder.segments.get(int(name.removesuffix(LOG_SUFFIX)))
            return (0, 0) if segment is None else (segment.contents.size_bytes, _modified_ns(segment))
        return len(self.read_all(path)), 0

    def end_of_data(self, path: str) -> int:
        """An object has no room that was taken in advance."""
        return self.stat(path)[0]

    def open(self, path: str) -> File:
        folder, name = self._found(path)
        if name.endswith(LOG_SUFFIX) and folder.segments:
            return PrefixLog(self, path, self.log_at(path))
        return PartOfPrefix(self, path)

    def read_all(self, path: str) -> bytes:
        if self._is_starts(path):
            return self._starts
        folder, name = self._found(path)
        if name == checkpoints.PARTITION_METADATA:
            return checkpoints.encode_partition_metadata(folder.place[0])
        if name == SEALS:
            return self._seals_of(folder)
        if not name[:1].isdigit() or name.endswith(snapshot_file.SUFFIX):
            return self._of_state(folder, name)
        if not folder.segments:
            return b""  # a partition without segments has an empty one
        return self._of_segment(folder, path, name)

    def _of_state(self, folder: _Folder, name: str) -> bytes:
        assert folder.last is not None, name
        meta = self._metas.get(folder.place, folder.last)
        by_name = {checkpoints.LEADER_EPOCHS: meta.epochs, producers_file.FILE_NAME: meta.batches}
        return by_name.get(name, meta.producers)

    def _of_segment(self, folder: _Folder, path: str, name: str) -> bytes:
        base, suffix = name.split(".")
        segment = folder.segments[int(base)]
        if f".{suffix}" == LOG_SUFFIX:
            return self.fetch(path, segment, 0, segment.contents.size_bytes)
        self._need(path, segment)
        return PART_OF[f".{suffix}"](self._metas.get(folder.place, segment))

    def _seals_of(self, folder: _Folder) -> bytes:
        if not self._options.presumes:
            self._metas.bring((folder.place, one) for one in folder.segments.values())
        return seals.encode([self._seal_of(one) for one in folder.segments.values()])

    def _seal_of(self, segment: BucketSegment) -> Seal:
        known = self._metas.seal_of(segment)
        if known is None:
            contents, created_ms = segment.contents, segment.created_ms
            sums = bytes(4 * blocks_in(contents.size_bytes))
            known = Seal(segment.base_offset, contents, 0, 0, created_ms, NOT_KNOWN, NOT_KNOWN, block_sums=sums)
        return replace(known, modified_ns=_modified_ns(segment))

    def disk_space(self, path: str) -> tuple[int, int]:  # noqa: ARG002
        return 0, 0


class PartOfPrefix(RefusingFile):
    """A file beside a log."""

    __slots__ = ("_files",)

    def __init__(self, files: PrefixFiles, path: str) -> None:
        super().__init__(path)
        self._files = files

    def __repr__(self) -> str:
        return f"<PartOfPrefix {self.path}>"

    def pread(self, size: int, position: int) -> bytes:
        data = self._files.read_all(self.path)
        if position + size > len(data):
            raise StorageFault(f"read {self.path}: it ends at {len(data)}", path=self.path)
        return data[position : position + size]

    def size(self) -> int:
        return self._files.stat(self.path)[0]


def _modified_ns(segment: BucketSegment) -> int:
    """A segment never changes: its seal and its log have the same time."""
    return max(0, segment.created_ms) * 1_000_000
