"""Where the rows of a load come from: lane by lane, each in the order of its positions, as they are read.

Segment files are in that order, and files of tables are merged into it (`merging`), so nothing is sorted, shuffled or kept. Spark
sorts (`SortedRows`) a table of which too much overlaps. `dump_rows` has the rows of dumps, which are in no order.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_schema

from horolog.pipeline.base import headers
from horolog.pipeline.jobs.lanes import SENT, Lanes, Row, by_lane, send_batches, sent_batch
from horolog.pipeline.jobs.merging import (
    FACTS,
    Group,
    Times,
    groups_in,
    looked_at,
    merged,
    micros_of,
    numbers_of,
    rows_of,
)
from horolog.pipeline.jobs.topic_rules import OVERHEAD_BYTES, Counts, TopicRules
from horolog.pipeline.reading.offline import Piece, read_pieces, tasks_of
from horolog.pipeline.stores.object_stores import Place
from horolog.protocol.records.timestamps import NO_TIMESTAMP

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from horolog.pipeline.stores.store import Files

Lane = int
TASK_BYTES = 32 << 20
COUNTS = pa.schema([(name, pa.int64()) for name in Counts._fields])


class SentRows(Protocol):
    """A `DataFrame` with the columns `SENT`, or several that are collected one after the other."""

    def collect(self) -> Sequence[Any]:
        """The results of tasks, with the fields of `Sent`."""


class LaneRows(Protocol):
    """The rows of all lanes that were not sent yet."""

    def in_tasks(self, lanes: Lanes, numbers: Sequence[Lane]) -> "SentRows":
        """Sends them once it is collected, by one task for each lane at a time."""

    def here(self, numbers: Sequence[Lane]) -> Iterator[tuple[Lane, Iterator[Row]]]:
        """The rows of one lane after the other, in this process."""

    def counts(self, rules: TopicRules, now_ms: int, *, exactly: bool) -> Counts:
        """How many there are and what the topic would do to them; they are read only if their bounds leave that open."""


@dataclass(frozen=True)
class SortedRows:
    """Rows (columns `lanes.COLUMNS`) that Spark has to put in order."""

    frame: "DataFrame"
    count: "Callable[[TopicRules, int, bool], Counts]" = lambda *_: Counts()

    def in_tasks(self, lanes: Lanes, numbers: Sequence[Lane]) -> "DataFrame":  # noqa: ARG002
        return headers.without_nulls(self.frame).mapInArrow(lambda batches: send_batches(lanes, batches), SENT)

    def here(self, numbers: Sequence[Lane]) -> Iterator[tuple[Lane, Iterator[Row]]]:  # noqa: ARG002
        return by_lane(Row(*row) for row in self.frame.toLocalIterator(prefetchPartitions=True))

    def counts(self, rules: TopicRules, now_ms: int, *, exactly: bool) -> Counts:
        return self.count(rules, now_ms, exactly)


class Tables(Protocol):
    """What a task reads of a lane, in order; it travels to the task."""

    def of_lane(self, lane: Lane) -> Iterator[pa.Table]: ...
    def units(self) -> Sequence[Callable[[], Iterator[pa.Table]]]:
        """All of it in parts that tasks may look at, in any order."""

    @property
    def known(self) -> Counts:
        """The counts that are known without reading them."""


@dataclass(frozen=True)
class ReadRows:
    """Rows that are read in order."""

    spark: "SparkSession" = field(repr=False)
    tables: Tables
    keeps_partitions: bool

    def in_tasks(self, lanes: Lanes, numbers: Sequence[Lane]) -> "DataFrame":
        tables, keeps, chosen = self.tables, self.keeps_partitions, list(numbers)

        def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for place in _places(batches):
                lane = chosen[place]
                yield sent_batch(lanes, lane, _rows(tables.of_lane(lane), lane, keeps))

        return self.spark.range(0, len(chosen), 1, max(1, len(chosen))).mapInArrow(send, SENT)

    def here(self, numbers: Sequence[Lane]) -> Iterator[tuple[Lane, Iterator[Row]]]:
        for lane in numbers:
            yield lane, _rows(self.tables.of_lane(lane), lane, self.keeps_partitions)

    def counts(self, rules: TopicRules, now_ms: int, *, exactly: bool) -> Counts:
        known = self.tables.known
        if not exactly and not rules.may_lose(known, now_ms):
            return known
        units = self.tables.units()
        if not units:
            return Counts()

        def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for place in _places(batches):
                found = reduce(Counts.plus, (counted(rows, rules, now_ms) for rows in units[place]()), Counts())
                yield pa.RecordBatch.from_pylist([found._asdict()], schema=COUNTS)

        tasks = min(len(units), 4 * self.spark.sparkContext.defaultParallelism)
        rows = self.spark.range(0, len(units), 1, tasks).mapInArrow(look, from_arrow_schema(COUNTS)).collect()
        found = reduce(Counts.plus, (Counts(*row) for row in rows), Counts())
        return found._replace(size_bytes=max(found.size_bytes, known.size_bytes) if found.records else 0)


def _places(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    return (place for batch in batches for place in batch.column(0).to_pylist())


def _rows(tables: Iterable[pa.Table], lane: Lane, keeps_partitions: bool) -> Iterator[Row]:
    return chain.from_iterable(_rows_of_table(rows, lane, keeps_partitions) for rows in tables)


def _rows_of_table(rows: pa.Table, lane: Lane, keeps_partitions: bool) -> Iterator[Row]:
    columns = [rows[name].to_pylist() for name in ("offset", "key", "value", "headers")]
    partition = lane if keeps_partitions else None
    times = (micros_of(rows) // 1000).tolist()
    for position, key, value, own, time_ms in zip(*columns, times, strict=True):
        yield Row(lane, position, key, value, own, partition, time_ms)


def counted(rows: pa.Table, rules: TopicRules, now_ms: int) -> Counts:
    """Facts about rows of the columns `timestamp` and, where sizes are wanted, `key` and `value`."""
    if not rows.num_rows:
        return Counts()
    ms = micros_of(rows) // 1000
    size = sum(
        pc.sum(pc.binary_length(rows[name])).as_py() or 0 for name in ("key", "value") if name in rows.column_names
    )
    ms = ms[ms != NO_TIMESTAMP]  # none has no age, and no bound refuses it

    def how_many(condition: Any) -> int:
        return 0 if rules.log_append_time else int(np.count_nonzero(condition))

    return Counts(
        rows.num_rows,
        size + OVERHEAD_BYTES * rows.num_rows,
        int(ms.min()) if len(ms) else None,
        int(ms.max()) if len(ms) else None,
        how_many(ms < now_ms - rules.retention_ms) if rules.retains else 0,
        how_many(ms < now_ms - rules.before_max_ms),
        how_many(ms - now_ms > rules.after_max_ms),
    )


# -- segment files


@dataclass(frozen=True)
class SegmentTables:
    """Planned pieces of segment files, lane by lane."""

    pieces: Mapping[Lane, Sequence[Piece]]
    times: Times
    latest_ms: int
    place: Place | None = None
    versions: Mapping[str, str] | None = None

    def unsent(self, positions: Mapping[Lane, int]) -> "SegmentTables":
        return replace(self, pieces={lane: unsent(ours, positions.get(lane, 0)) for lane, ours in self.pieces.items()})

    def of_lane(self, lane: Lane) -> Iterator[pa.Table]:
        return self._read(self.pieces.get(lane, ()))

    def _read(self, pieces: Iterable[Piece]) -> Iterator[pa.Table]:
        read = read_pieces(
            pieces, include_headers=True, fail_on_data_loss=True, place=self.place, versions=self.versions
        )
        for batch in read:
            rows = self.times.of(pa.Table.from_batches([batch]))
            if rows.num_rows:
                yield rows

    def units(self) -> Sequence[Callable[[], Iterator[pa.Table]]]:
        every = (piece for ours in self.pieces.values() for piece in ours)
        return [partial(self._read, part) for part in tasks_of(every, TASK_BYTES)]

    @property
    def known(self) -> Counts:
        """Offsets count as records; no file says how early the earliest is."""
        ranges = {(one.partition, one.first_offset, one.end_offset) for ours in self.pieces.values() for one in ours}
        size = sum(one.size_bytes for ours in self.pieces.values() for one in ours)
        records = sum(max(0, end - start) for _, start, end in ranges)
        return Counts(records, size, None, self.latest_ms)


def unsent(pieces: Sequence[Piece], position: int) -> list[Piece]:
    """What has records at that offset or behind it; files that end before are not opened."""
    last = max((one.path for one in pieces if _begins_at(one.path) <= position), default="")
    return [
        one._replace(first_offset=max(one.first_offset, position))
        for one in pieces
        if one.path >= last and one.end_offset > position
    ]


def _begins_at(path: str) -> int:
    """The offset that a segment is named for."""
    return int(path.rpartition("/")[2].partition(".")[0])


# -- tables


class Stretch(NamedTuple):
    """The positions of a lane from `start` up to but not including `end`."""

    lane: Lane
    start: int
    end: int

    def has(self, group: Group) -> bool:
        return group.first_offset < self.end and group.last_offset >= self.start

    def has_whole(self, group: Group) -> bool:
        return group.first_offset >= self.start and group.last_offset < self.end

    def rows_of(self, rows: pa.Table) -> int:
        offsets = numbers_of(rows["offset"])
        return int(np.count_nonzero((offsets >= self.start) & (offsets < self.end)))


@dataclass(frozen=True)
class FileTables:
    """Groups of rows in a table's files, lane by lane."""

    stores: Sequence["Files"]
    groups: Mapping[Lane, Sequence[Group]]
    times: Times
    positions: Mapping[Lane, int] = field(default_factory=dict)

    def unsent(self, positions: Mapping[Lane, int]) -> "FileTables":
        left = {
            lane: [one.left(positions.get(lane, 0)) for one in ours if one.is_unsent(positions.get(lane, 0))]
            for lane, ours in self.groups.items()
        }
        return replace(self, groups=left, positions=dict(positions))

    def of_lane(self, lane: Lane) -> Iterator[pa.Table]:
        return merged(self.groups.get(lane, ()), self._opened)

    def _opened(self, group: Group) -> Iterator[pa.Table]:
        return rows_of(self.stores, group, self.times, self.positions.get(group.partition, 0))

    def _looked_at(self, group: Group) -> Iterator[pa.Table]:
        return looked_at(self.stores, group, self.times, self.positions.get(group.partition, 0))

    def units(self) -> Sequence[Callable[[], Iterator[pa.Table]]]:
        return [partial(self._looked_at, one) for ours in self.groups.values() for one in ours]

    def end(self, lane: Lane) -> int:
        """The position behind its rows."""
        return 1 + max((one.last_offset for one in self.groups.get(lane, ())), default=-1)

    def rows_in(self, spark: "SparkSession", stretches: Sequence[Stretch]) -> list[int]:
        """How many rows each of these has: only groups that lie in it partly are read, by tasks."""
        found, partly = [], []
        for place, stretch in enumerate(stretches):
            ours = [one for one in self.groups.get(stretch.lane, ()) if stretch.has(one)]
            partly += [(place, one) for one in ours if not stretch.has_whole(one)]
            found.append(sum(one.records for one in ours if stretch.has_whole(one)))
        stores, times = self.stores, self.times

        def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number in _places(batches):
                place, group = partly[number]
                rows = sum(stretches[place].rows_of(each) for each in looked_at(stores, group, times, 0))
                yield pa.RecordBatch.from_pydict({"place": [place], "rows": [rows]})

        if partly:
            counted = spark.range(0, len(partly), 1, len(partly)).mapInArrow(count, "place long, rows long").collect()
            for place, rows in counted:
                found[place] += rows
        return found

    @property
    def known(self) -> Counts:
        every = [one for ours in self.groups.values() for one in ours]
        if not every:
            return Counts()
        first, last = min(one.first_us for one in every) // 1000, max(one.last_us for one in every) // 1000
        return Counts(sum(one.records for one in every), sum(one.size_bytes for one in every), first, last)


def look_at_files(
    spark: "SparkSession", found: "Sequence[tuple[Files, Sequence[str]]]", times: Times, topic: str | None
) -> list[Group]:
    """What the files have, by tasks."""
    stores = [files for files, _ in found]
    names = [(store, name) for store, (_, listed) in enumerate(found) for name in sorted(listed)]
    if not names:
        return []

    def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for place in _places(batches):
            groups = groups_in(stores, *names[place], times, topic)
            yield pa.RecordBatch.from_pylist([one._asdict() for one in groups], schema=FACTS)

    tasks = min(len(names), 4 * spark.sparkContext.defaultParallelism)
    rows: list[Any] = spark.range(0, len(names), 1, tasks).mapInArrow(look, from_arrow_schema(FACTS)).collect()
    return [Group(*row) for row in rows]
