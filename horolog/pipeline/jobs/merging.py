"""Merges rows that lie in many Parquet files into the order of their offsets, by pieces: what a task reads of a table to send it again.

A file that an archive has written holds the rows of each partition in the order of their offsets, but a partition's rows lie in
several files: one for each task, and one for each date. `groups_in` looks at the small columns of a file and says which
offsets of which partitions each of its groups of rows has. `merged` opens a group when its first offset may be the next, and
keeps of an open one no more than the rows that are read at a time. A group whose rows are in no order (other engines compact so) is
sorted in memory.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from horolog.pipeline.stores.store import Files
from horolog.pipeline.tables.evolution import fitted
from horolog.pipeline.tables.row_files import schema
from horolog.pipeline.tables.table import TableError

if TYPE_CHECKING:
    from horolog.pipeline.base.varints import Array

READ_ROWS = 4096
SMALL_BYTES = 1 << 20
"""A group so small is read at once, and its file closed: a partition may have rows in the folders of hundreds of dates."""
MOST_OPEN = 128
MOST_BYTES = 512 << 20
"""What the groups that are open at a time may hold; if more overlap, Spark sorts."""

_OWN = schema()
_KEYS = ("topic", "topic_id", "partition")
_LOOKED_AT = pa.schema([_OWN.field(name) for name in (*_KEYS, "offset", "timestamp")])
_SENT = pa.schema([_OWN.field(name) for name in (*_LOOKED_AT.names, "key", "value", "headers")])
FACTS = pa.schema(
    [
        ("store", pa.int32()),
        ("name", pa.string()),
        ("number", pa.int32()),
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("records", pa.int64()),
        ("first_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("first_us", pa.int64()),
        ("last_us", pa.int64()),
        ("size_bytes", pa.int64()),
        ("is_sorted", pa.bool_()),
    ]
)
"""The fields of a `Group`."""


class Times(NamedTuple):
    """A range of times: from `since` up to but not including `until`; None is open."""

    since_ms: int | None = None
    until_ms: int | None = None

    def of(self, rows: pa.Table) -> pa.Table:
        """The rows in it."""
        if self == Times():
            return rows
        micros = micros_of(rows)
        mask: Array = np.ones(len(micros), np.bool_)
        if self.since_ms is not None:
            mask &= micros >= self.since_ms * 1000
        if self.until_ms is not None:
            mask &= micros < self.until_ms * 1000
        return rows if mask.all() else rows.filter(pa.array(mask))


class Group(NamedTuple):
    """What one group of rows of a file has of one partition; the file is in one of several stores."""

    store: int
    name: str
    number: int
    topic: str
    topic_id: str | None
    partition: int
    records: int
    first_offset: int
    last_offset: int
    first_us: int
    last_us: int
    size_bytes: int
    is_sorted: bool

    def is_unsent(self, position: int) -> bool:
        return self.last_offset >= position

    def left(self, position: int) -> "Group":
        """With about what of it lies at that offset or behind it."""
        if position <= self.first_offset:
            return self
        share = (self.last_offset + 1 - position) / (self.last_offset + 1 - self.first_offset)
        return self._replace(
            records=max(1, round(self.records * share)),
            size_bytes=round(self.size_bytes * share),
            first_offset=position,
        )


def micros_of(rows: pa.Table) -> "Array":
    return numbers_of(rows["timestamp"].cast(pa.int64()))


def numbers_of(column: Any) -> "Array":
    found: Array = column.to_numpy()
    return found


# -- looking at files


def groups_in(stores: Sequence[Files], store: int, name: str, times: Times, topic: str | None) -> Iterator[Group]:
    """What a file has of the topic, or of all, in a range of times."""
    with _opened(stores[store], name) as file:
        _check_columns(name, file)
        for number in range(file.num_row_groups):
            rows = times.of(_read(file, number, _LOOKED_AT))
            whole = file.metadata.row_group(number)
            for key, offsets, micros in _by_key(rows):
                if topic is None or key[0] == topic:
                    size = whole.total_byte_size * len(offsets) // max(1, whole.num_rows)
                    yield _group((store, name, number), key, offsets, micros, size)


@contextmanager
def _opened(files: Files, name: str) -> Iterator[Any]:
    with files.reader(name) as file, pq.ParquetFile(file) as opened:
        yield opened


def _check_columns(name: str, file: Any) -> None:
    missing = [one for one in ("topic", "partition", "offset", "timestamp") if one not in file.schema_arrow.names]
    if missing:
        raise TableError(f"{name} has no column {missing[0]}: it is not a file of an archive")


def _read(file: Any, number: int, columns: pa.Schema) -> pa.Table:
    there = [name for name in columns.names if name in file.schema_arrow.names]
    return fitted(file.read_row_group(number, columns=there), columns)


def _by_key(rows: pa.Table) -> "Iterator[tuple[tuple[Any, ...], Array, Array]]":
    """Offsets and times, by topic, its id and partition."""
    keys = rows.select(_KEYS).group_by(list(_KEYS)).aggregate([]).to_pylist()
    offsets, micros = numbers_of(rows["offset"]), micros_of(rows)
    for each in keys:
        key = tuple(each[name] for name in _KEYS)
        mask = _is_of(rows, key) if len(keys) > 1 else slice(None)
        yield key, offsets[mask], micros[mask]


def _is_of(rows: pa.Table, key: Sequence[Any]) -> "Array":
    found = np.ones(rows.num_rows, np.bool_)
    for name, value in zip(_KEYS, key, strict=True):
        column = rows[name]
        same = column.is_null() if value is None else pc.equal(column, value).fill_null(False)
        found &= numbers_of(same)
    return found


def _group(at: tuple[int, str, int], key: Sequence[Any], offsets: "Array", micros: "Array", size_bytes: int) -> Group:
    bounds = (int(offsets.min()), int(offsets.max()), int(micros.min()), int(micros.max()))
    is_sorted = bool((np.diff(offsets) >= 0).all())
    topic, topic_id, partition = key
    return Group(*at, topic, topic_id, partition, len(offsets), *bounds, size_bytes, is_sorted)


# -- reading in order


def rows_of(stores: Sequence[Files], group: Group, times: Times, position: int) -> Iterator[pa.Table]:
    """The rows of a group from that offset on, in order, in pieces."""
    for rows in _pieces(stores[group.store], group):
        kept = _kept(rows, group, times, position)
        if not group.is_sorted:
            kept = kept.sort_by("offset")
        for start in range(0, kept.num_rows, READ_ROWS):
            yield kept.slice(start, READ_ROWS)


def looked_at(stores: Sequence[Files], group: Group, times: Times, position: int) -> Iterator[pa.Table]:
    """Without keys and values, as they lie."""
    with _opened(stores[group.store], group.name) as file:
        yield _kept(_read(file, group.number, _LOOKED_AT), group, times, position)


def _kept(rows: pa.Table, group: Group, times: Times, position: int) -> pa.Table:
    kept = times.of(rows.filter(pa.array(_is_of(rows, (group.topic, group.topic_id, group.partition)))))
    return kept.filter(pa.array(numbers_of(kept["offset"]) >= position)) if position else kept


def _pieces(files: Files, group: Group) -> Iterator[pa.Table]:
    with _opened(files, group.name) as file:
        if not group.is_sorted or group.size_bytes <= SMALL_BYTES:
            rows = _read(file, group.number, _SENT)
        else:
            there = [name for name in _SENT.names if name in file.schema_arrow.names]
            for batch in file.iter_batches(READ_ROWS, row_groups=[group.number], columns=there):
                yield fitted(pa.Table.from_batches([batch]), _SENT)
            return
    yield rows


class _Open:
    """A group that is being read: the rows that come next."""

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self._tables = tables
        self.rows: pa.Table | None = None
        self._next()

    def _next(self) -> None:
        self.rows = next(self._tables, None)
        self._offsets = None if self.rows is None else numbers_of(self.rows["offset"])

    @property
    def last_offset(self) -> int:
        assert self._offsets is not None
        return int(self._offsets[-1])

    def take(self, upto: int) -> pa.Table:
        """The next rows up to that offset."""
        assert self.rows is not None
        assert self._offsets is not None
        count = int(np.searchsorted(self._offsets, upto, "right"))
        taken = self.rows.slice(0, count)
        if count == self.rows.num_rows:
            self._next()
        else:
            self.rows, self._offsets = self.rows.slice(count), self._offsets[count:]
        return taken


def merged(groups: Iterable[Group], opened: Callable[[Group], Iterator[pa.Table]]) -> Iterator[pa.Table]:
    """The rows of all groups in the order of their offsets."""
    waiting = deque(sorted(groups, key=lambda one: one.first_offset))
    reading: list[_Open] = []
    while waiting or reading:
        while waiting and (not reading or waiting[0].first_offset <= min(one.last_offset for one in reading)):
            one = _Open(opened(waiting.popleft()))
            reading += [one] if one.rows is not None else []
        if not reading:
            continue
        upto = min(one.last_offset for one in reading)
        parts = [part for one in reading if (part := one.take(upto)).num_rows]
        reading = [one for one in reading if one.rows is not None]
        yield parts[0] if len(parts) == 1 else pa.concat_tables(parts).sort_by("offset")


def is_too_much(groups: Iterable[Group]) -> bool:
    """Whether so many groups of a partition overlap that merging them takes more memory than a task should."""
    borders = [border for one in groups for border in _borders(one)]
    sums = list(accumulate(sorted(borders), lambda have, one: (one[0], have[1] + one[1], have[2] + one[2])))
    return any(files > MOST_OPEN or size > MOST_BYTES for _, files, size in sums)


def _borders(group: Group) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Where it is opened and where it is closed, with the files and bytes that are held from there on."""
    is_whole = not group.is_sorted or group.size_bytes <= SMALL_BYTES
    files = 0 if is_whole else 1
    size = group.size_bytes if is_whole else min(group.size_bytes, SMALL_BYTES + group.size_bytes // 8)
    return (group.first_offset, files, size), (group.last_offset + 1, -files, -size)
