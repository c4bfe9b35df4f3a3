"""Plans and reads what lies in segment files, with no broker in the path.

Each partition is opened as its broker would open it (`folders`), over a storage that writes nothing: seals say which segments and
indexes to trust, the rest is read and indexed in memory, a torn tail is left out. Times become offsets by the same
lookup that answers ListOffsets. What remains is cut into pieces of files at batch boundaries, found in the offset
index. Tasks read pieces: a path, two positions, and the wanted offsets.
"""

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from horolog.base.pins import touch
from horolog.broker.log.files import checkpoints
from horolog.broker.log.integrity import SEALS, seals
from horolog.broker.log.manager import partition_of
from horolog.broker.log.partition import Partition, Resources, lookups
from horolog.broker.log.recovery import Rescanner
from horolog.broker.log.segments import LOG_SUFFIX, Segment, indexes_of, reader
from horolog.broker.log.storage import (
    FileMissing,
    NotHere,
    OverlayStorage,
    ReadOnlyStorage,
    StorageFault,
    parent_of,
)
from horolog.broker.prefix.prefix_files import PrefixFiles
from horolog.client.values.types import TopicPartition
from horolog.pipeline.arrow.columns import Source
from horolog.pipeline.arrow.decode import OffsetBounds, decode
from horolog.pipeline.base.positions import (
    EARLIEST,
    LATEST,
    DataLoss,
    OffsetRange,
    OptionError,
    Position,
    resolve,
    split,
)
from horolog.pipeline.base.topic_ids import show_topic_id
from horolog.pipeline.options.options import ReadOptions, Selection, parse_read
from horolog.pipeline.reading.folders import Look, open_partitions
from horolog.pipeline.reading.object_files import LEAST_BYTES, ObjectFiles
from horolog.pipeline.reading.prefixes import bring_planned, expect, is_object, prefix_at
from horolog.pipeline.reading.pushdown import EVERYTHING, RecordBounds
from horolog.pipeline.stores.object_stores import Place
from horolog.protocol.errors import DecodeError
from horolog.protocol.records.aborted import AbortedProducers
from horolog.protocol.records.head import LENGTH_ENDS_AT, heads_in, size_of_entry, whole_bytes

log = logging.getLogger(__name__)

READ_BYTES = 8 << 20
"""How much is read from a file and decoded at a time; a larger batch is read whole."""

_LARGEST_BATCH_BYTES = 1 << 30


class Piece(NamedTuple):
    """A range of a log file that begins and ends at batch boundaries, and the offsets wanted of it."""

    partition: TopicPartition
    path: str
    start: int
    end: int
    first_offset: int
    end_offset: int
    aborted: tuple[tuple[int, int], ...] | None = None  # None: aborted transactions are shown
    patches: tuple[tuple[int, bytes], ...] = ()  # what opening the partition has corrected
    topic_id: str | None = None
    pinned: str | None = None  # a link to the file, which keeps what was planned

    @property
    def size_bytes(self) -> int:
        return self.end - self.start


class There(NamedTuple):
    """What a partition has, whether any of it is read."""

    first: int
    latest_ms: int
    """The largest time in its segments; -1: none has one."""
    topic_id: str | None


@dataclass(slots=True)
class Plan:
    """What an offline read reads and skips; a part is what `minPartitions` and such make one task of.

    `looked_at_bytes` is what planning itself has read: indexes, seals, unsealed logs.
    """

    ranges: list[OffsetRange] = field(default_factory=list)
    parts: list[list[Piece]] = field(default_factory=list)
    segments_read: int = 0
    segments_skipped: int = 0
    bytes_read: int = 0
    bytes_skipped: int = 0
    looked_at_bytes: int = 0
    damaged_bytes: int = 0
    there: dict[TopicPartition, There] = field(default_factory=dict)
    latest_ms: int = -1
    """The largest time in the segments that are read."""
    versions: dict[str, str] = field(default_factory=dict)
    """Of files in a store, by path: the planned versions, so that a replaced file is noticed."""
    is_of_prefix: bool = False
    """Whether the files are objects of a prefix that brokers share: they never change, and go late."""

    @property
    def pieces(self) -> list[Piece]:
        return [piece for part in self.parts for piece in part]

    def __str__(self) -> str:
        return (
            f"reads {self.segments_read} segments, {self.bytes_read} bytes; skips {self.segments_skipped} segments,"
            f" {self.bytes_skipped} bytes; examined {self.looked_at_bytes} bytes to decide; {self.damaged_bytes} bytes are damaged"
            f"{'; records that are not in segments yet are not read' if self.is_of_prefix else ''}"
        )


class Files:
    """Opened partitions, asked as a broker would be."""

    def __init__(self, partitions: Mapping[TopicPartition, Partition], isolation: str) -> None:
        self.partitions = partitions
        self._isolation = isolation

    def ends(self, partitions: Iterable[TopicPartition], which: int) -> dict[TopicPartition, int]:
        return {one: self._end(self.partitions[one], which) for one in partitions}

    def _end(self, partition: Partition, which: int) -> int:
        if which == EARLIEST:
            return partition.log_start_offset
        return partition.last_stable_offset if self._isolation == "read_committed" else partition.high_watermark

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        found: dict[TopicPartition, int | None] = {}
        for name, timestamp in times.items():
            partition = self.partitions[name]
            place = lookups.first_at_or_after(partition, timestamp, self._end(partition, -1))
            found[name] = None if place is None else place.offset
        return found


def plan(path: str, since: str | int | None = None, until: str | int | None = None, **options: str) -> Plan:
    """What `spark.read.format("horolog").load(path)` would read of a time range: digits are milliseconds, else the CLI's grammar."""
    given = {"path": path, **options}
    given |= {"startingTimestamp": str(since)} if since is not None else {}
    given |= {"endingTimestamp": str(until)} if until is not None else {}
    return make_plan(parse_read(given, time.time_ns() // 1_000_000))


def make_plan(options: ReadOptions, wanted: RecordBounds = EVERYTHING) -> Plan:
    """The pieces to read for these options; `wanted` skips pieces of which no record passes the query's filters."""
    assert options.path is not None
    look = _look(options, wanted)
    try:
        with prefix_at(options, with_transactions=look.with_transactions) as prefix:
            if prefix is not None:
                made = _plan_of_prefix(prefix, options, wanted, look)
            else:
                place = options.place
                files = ReadOnlyStorage() if place is None else _planning_files(place, options.selection)
                made = _plan_of(files, options, wanted, look)
    except FileMissing as error:
        raise DataLoss(f"{options.path}: {error}; a broker has removed it in the meantime; try again") from error
    _check_damage(options, made)
    return made


def _plan_of_prefix(prefix: PrefixFiles, options: ReadOptions, wanted: RecordBounds, look: Look) -> Plan:
    """Plan by what the manifests say, until no segment that is read or looked into is known by its manifest only."""
    expect(prefix, options, wanted, with_transactions=look.with_transactions)
    while True:
        try:
            made = _plan_of(prefix, options, wanted, look)
        except NotHere:
            continue
        if not bring_planned(prefix, {one.path for one in made.pieces}):
            break
    for part in made.parts:
        part[:] = [one._replace(path=prefix.object_path(one.path)) for one in part]
    made.is_of_prefix = True
    return made


def _plan_of(files: ReadOnlyStorage, options: ReadOptions, wanted: RecordBounds, look: Look) -> Plan:
    assert options.path is not None
    storage = OverlayStorage(files)
    resources = Resources(storage)
    partitions = open_partitions(options.path, options.selection, resources, look)
    made = _plan_and_rescan(partitions, resources, files, options, wanted)
    for part in made.parts:
        part[:] = [one._replace(patches=_patches(storage, one.path)) for one in part]
    if isinstance(files, ObjectFiles):
        made.versions = {piece.path: files.versions[piece.path] for piece in made.pieces}
    made.looked_at_bytes = sum(files.bytes_read.values())
    return made


def _look(options: ReadOptions, wanted: RecordBounds) -> Look:
    """A part of the logs is planned by their indexes. To skip damage, or to find transactions, logs are read."""
    limited = wanted != EVERYTHING or options.start != Position(EARLIEST) or options.end != Position(LATEST)
    return Look(
        is_partial=limited and options.fail_on_data_loss, with_transactions=options.isolation == "read_committed"
    )


def _planning_files(place: Place, selection: Selection) -> ReadOnlyStorage:
    """Files of an object store, with those that opening the wanted partitions needs already fetched."""
    files = ObjectFiles(place, LEAST_BYTES)
    wanted = [path for path in files.listed if _is_wanted(path, selection)]
    files.prefetch([path for path in wanted if path.endswith((SEALS, checkpoints.LEADER_EPOCHS))])
    sealed = {parent_of(path) for path in wanted if path.endswith(SEALS)}
    logs = (path for path in wanted if path.endswith(LOG_SUFFIX) and parent_of(path) in sealed)
    files.prefetch_edges(logs, seals.FINGERPRINT_BYTES)
    return files


def _is_wanted(path: str, selection: Selection) -> bool:
    name = partition_of(parent_of(path).rpartition("/")[2])
    return name is not None and selection.takes(TopicPartition(*name))


def _patches(storage: OverlayStorage, path: str) -> tuple[tuple[int, bytes], ...]:
    """The changes over the file on the disk, by position."""
    changed = storage.changed.get(path)
    return () if changed is None else tuple((at, bytes(data)) for at, data in changed.patches)


def _plan_and_rescan(
    partitions: Mapping[TopicPartition, Partition],
    resources: Resources,
    files: ReadOnlyStorage,
    options: ReadOptions,
    wanted: RecordBounds,
) -> Plan:
    """Plan; each segment that turns out to be damaged is read again first, as a broker's worker does it, and nothing of that is written."""
    by_directory = {each.directory: each for each in partitions.values()}
    rescanner = Rescanner(resources.rescan_queue, files, by_directory.get)
    return rescanner.answered(
        lambda: _plan_partitions(partitions, options, wanted), lambda: time.time_ns() // 1_000_000
    )


def _plan_partitions(
    partitions: Mapping[TopicPartition, Partition], options: ReadOptions, wanted: RecordBounds
) -> Plan:
    files = Files(partitions, options.isolation)
    made = Plan(ranges=_ranges(files, options, wanted), there={name: _there(one) for name, one in partitions.items()})
    ranges = {one.partition: one for one in made.ranges}
    for name, partition in partitions.items():
        for segment in partition.segments:
            asked = ranges.get(name, OffsetRange(name, 0, 0))
            _count(made, segment, asked)
            made.bytes_read += sum(piece.size_bytes for piece in _segment_pieces(segment, asked, options))
    made.bytes_skipped = sum(one.size_bytes for each in partitions.values() for one in each.segments) - made.bytes_read
    for one in split(made.ranges, options.min_partitions, options.max_records_per_partition):
        made.parts.append(list(_pieces(partitions[one.partition], one, options)))
    return made


def _there(partition: Partition) -> There:
    latest_ms = max((one.max_timestamp for one in partition.segments if one.size_bytes), default=-1)
    return There(partition.log_start_offset, latest_ms, show_topic_id(partition.topic_id or b""))


def _ranges(files: Files, options: ReadOptions, wanted: RecordBounds) -> list[OffsetRange]:
    names = list(files.partitions)
    no_match = options.no_match_is_error
    starts = resolve(files, names, options.start, options.start_option, no_match_is_error=no_match)
    ends = resolve(files, names, options.end, options.end_option, no_match_is_error=False)
    first, last = files.ends(names, EARLIEST), files.ends(names, -1)
    checked = (within(OffsetRange(name, starts[name], ends[name]), first[name], last[name], options) for name in names)
    return wanted.ranges(files, checked, options.max_lateness_ms)


def within(wanted: OffsetRange, first: int, last: int, options: ReadOptions) -> OffsetRange:
    """The part of a range that exists; DataLoss if that is not all, unless loss is allowed."""
    there = OffsetRange(wanted.partition, max(wanted.start, first), max(min(wanted.end, last), first))
    if (wanted.size > 0 and there != wanted) or wanted.start > last:
        said = f"{wanted.partition}: offsets {wanted.start} to {wanted.end} are requested, but only {first} to {last} exist"
        if options.fail_on_data_loss:
            raise DataLoss(f"{said}; failOnDataLoss=false reads the rest")
        log.warning("%s; the rest is read", said)
    return there if there.size > 0 else OffsetRange(wanted.partition, there.start, there.start)


def _count(made: Plan, segment: Segment, wanted: OffsetRange) -> None:
    if not segment.size_bytes:
        return
    if wanted.size > 0 and segment.base_offset < wanted.end and segment.next_offset > wanted.start:
        made.segments_read += 1
        made.latest_ms = max(made.latest_ms, segment.max_timestamp)
        made.damaged_bytes += sum(end - start for start, end in segment.holes)
    else:
        made.segments_skipped += 1


def _check_damage(options: ReadOptions, made: Plan) -> None:
    if made.damaged_bytes:
        said = f"{options.path}: {made.damaged_bytes} bytes of the logs are damaged"
        if options.fail_on_data_loss:
            raise DataLoss(f"{said}; failOnDataLoss=false skips them")
        log.warning("%s; they are skipped", said)


def _pieces(partition: Partition, wanted: OffsetRange, options: ReadOptions) -> Iterator[Piece]:
    """The pieces of one range, none much larger than a task is to be."""
    topic_id = show_topic_id(partition.topic_id or b"")
    for segment in partition.segments:
        for piece in _segment_pieces(segment, wanted, options):
            known = piece._replace(topic_id=topic_id)
            yield known if options.isolation != "read_committed" else _with_aborted(known, segment, partition)


def _segment_pieces(segment: Segment, wanted: OffsetRange, options: ReadOptions) -> Iterator[Piece]:
    if wanted.size <= 0 or segment.base_offset >= wanted.end or segment.next_offset <= wanted.start:
        return
    start = 0 if wanted.start <= segment.base_offset else reader.find(segment, wanted.start)
    if start is None or not segment.size_bytes:
        return
    end = segment.size_bytes if wanted.end >= segment.next_offset else _end_position(segment, wanted.end - 1)
    path = segment.files.path(LOG_SUFFIX)
    for good_start, good_end in reader.good_ranges(segment, start):
        for piece_start, piece_end in _cut(segment, good_start, min(good_end, end), options.task_bytes):
            yield Piece(wanted.partition, path, piece_start, piece_end, wanted.start, wanted.end)


def _end_position(segment: Segment, last_offset: int) -> int:
    """Where to stop when nothing behind `last_offset` is wanted: behind the batch that holds it or would hold it."""
    position = reader.find(segment, last_offset)
    return segment.size_bytes if position is None else position + reader.batch_size(segment, position)


def _cut(segment: Segment, start: int, end: int, task_bytes: int) -> Iterator[tuple[int, int]]:
    """Cut a range at the batches that the offset index knows, near every multiple of `task_bytes`."""
    if end - start > task_bytes:
        offsets, _ = indexes_of(segment)
        known = np.frombuffer(bytes(offsets.entries), ">i4")[1::2]
        known = known[(known > start) & (known < end)]
        while end - start > task_bytes and len(known):
            border = int(known[max(0, np.searchsorted(known, start + task_bytes, "right") - 1)])
            yield start, border
            start = border
            known = known[known > start]
    if end > start:
        yield start, end


def _with_aborted(piece: Piece, segment: Segment, partition: Partition) -> Piece:
    (entry, *_) = heads_in(segment.log.pread(reader.batch_size(segment, piece.start), piece.start))
    first = max(0, entry.base_offset)
    hidden = partition.aborted.overlapping(first, piece.end_offset)
    return piece._replace(aborted=tuple((one.producer_id, one.first_offset) for one in hidden))


def tasks(made: Plan, options: ReadOptions) -> list[list[Piece]]:
    """What each task reads: parts as they were asked for, or else pieces put together to a good size."""
    if options.min_partitions or options.max_records_per_partition:
        return [task for part in made.parts for task in tasks_of(part, options.task_bytes)]
    return tasks_of(made.pieces, options.task_bytes)


def tasks_of(pieces: Iterable[Piece], task_bytes: int) -> list[list[Piece]]:
    """Pieces put together until a task has enough to do."""
    put_together: list[list[Piece]] = []
    size = task_bytes
    for piece in pieces:
        if size + piece.size_bytes > task_bytes:
            put_together.append([])
            size = 0
        put_together[-1].append(piece)
        size += piece.size_bytes
    return put_together


def read_pieces(
    pieces: Iterable[Piece],
    *,
    include_headers: bool,
    fail_on_data_loss: bool,
    place: Place | None = None,
    include_topic_id: bool = False,
    versions: Mapping[str, str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The records of a task's pieces, in their order; of files in a store those `versions` are read, or it is a loss of data."""
    storage = OverlayStorage(ReadOnlyStorage() if place is None else ObjectFiles(place, planned=versions))
    for piece in pieces:
        if piece.pinned is not None:
            touch(piece.pinned)
        names = (*piece.partition, include_headers)
        source = Source(*names, from_files=True, topic_id=piece.topic_id, include_topic_id=include_topic_id)
        try:
            yield from _read_piece(storage, piece, source)
        except (StorageFault, DecodeError) as error:
            said = f"{piece.partition}: {error}: {_why(piece, error)}"
            if fail_on_data_loss:
                raise DataLoss(f"{said}; failOnDataLoss=false skips it") from error
            log.warning("%s; it is skipped", said)


def _why(piece: Piece, error: Exception) -> str:
    if is_object(piece.path) and isinstance(error, FileMissing):
        return (
            "it was removed after the read was planned; objects stay for horolog.store.delete.delay.ms and"
            " horolog.store.history.ms, so raise these, or read less at a time"
        )
    return "damaged, or changed or removed after the read was planned"


def _read_piece(storage: OverlayStorage, piece: Piece, source: Source) -> Iterator[pa.RecordBatch]:
    file = storage.open(_path(storage, piece))
    for at, patch in piece.patches:
        file.pwritev([patch], at)
    aborted = None if piece.aborted is None else AbortedProducers(piece.aborted)
    bounds = OffsetBounds(piece.first_offset, piece.end_offset)
    position = piece.start
    wanted = READ_BYTES
    while position < piece.end:
        data = file.pread(min(wanted, piece.end - position), position)
        whole = whole_bytes(data)
        if not whole:
            wanted = _needed(piece, data, position)
            continue
        yield from decode(data[:whole], source, bounds, aborted=aborted, where=f" ({piece.path} from {position})")
        position += whole
        wanted = READ_BYTES
    file.close()


def _path(storage: OverlayStorage, piece: Piece) -> str:
    """The link, unless a task that read the piece before has released it."""
    return piece.path if piece.pinned is None or not storage.exists(piece.pinned) else piece.pinned


def _needed(piece: Piece, data: bytes, position: int) -> int:
    """The size of the whole batch at the start of `data`."""
    needed = size_of_entry(data) if len(data) >= LENGTH_ENDS_AT else _LARGEST_BATCH_BYTES
    if not LENGTH_ENDS_AT < needed <= piece.end - position or needed > _LARGEST_BATCH_BYTES:
        raise DecodeError(f"{piece.path}: no whole batch at {position}")
    return needed


__all__ = ["DataLoss", "OptionError", "Piece", "Plan", "make_plan", "plan", "read_pieces", "tasks"]
