"""Files of rows, written and read by Spark's tasks: each task writes Parquet files of its own, and says which.

Rows are sorted by date inside a task, so that one file is open at a time. Names have a part that no other attempt of a
task has: what a task that died, or was run twice, has left is named by nobody.
"""

import datetime as dt
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from horolog.pipeline.tables.store import Files, Sink
from horolog.pipeline.tables.table import COLUMNS, DATE, ROWS, Written, with_date

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

TARGET_FILE_BYTES = 256 << 20
"""Files are put together up to about this size."""
ROW_GROUP_ROWS = 128 << 10
READ_ROWS = 10_000
_FACTS = "name string, size_bytes long, records long, first_us long, last_us long"


@dataclass(frozen=True, slots=True)
class RowFile:
    """A file that a task has written; times in microseconds, as Parquet has them."""

    name: str
    size_bytes: int
    records: int
    first_us: int
    last_us: int


def write_rows(rows: "DataFrame", files: Files, folder: str, prefix: str, *, dated: bool = False) -> list[RowFile]:
    """Write the rows into folders by date below `folder`; the names are from the store's root. `dated` files have the date as well."""
    order = (DATE, "topic", "partition", "offset")
    sorted_rows = with_date(rows).sortWithinPartitions(*order)
    facts = sorted_rows.mapInArrow(Writer(files, folder, prefix, dated=dated), _FACTS).collect()
    return sorted((RowFile(*row) for row in facts), key=lambda one: one.name)


def summed(files: Iterable[RowFile]) -> Written:
    """What one commit has of these."""
    found = list(files)
    last_ms = max((one.last_us // 1000 for one in found), default=None)
    return Written(sum(one.records for one in found), sum(one.size_bytes for one in found), len(found), last_ms)


def schema(*, dated: bool = False) -> "pa.Schema":
    """The columns of a file; the date is in the folder's name, too."""
    import pyarrow as pa

    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    return pa.schema(
        [
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("us", tz="UTC")),
            ("timestampType", pa.int32()),
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("headers", pa.list_(header)),
            *([(DATE, pa.date32())] if dated else []),
        ]
    )


class Writer:
    """What a task does with its rows, which come in the order of their dates; it gives back what it has written."""

    def __init__(self, files: Files, folder: str, prefix: str, *, dated: bool = False) -> None:
        self._files = files
        self._folder = f"{folder}/" if folder else ""
        self._prefix = prefix
        self._dated = dated

    def __call__(self, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        token, written = uuid.uuid4().hex[:12], []
        current: _Open | None = None
        for batch in batches:
            for date, rows in _by_date(batch, dated=self._dated):
                if current is not None and (current.date != date or current.sink.size >= TARGET_FILE_BYTES):
                    written.append(current.close())
                    current = None
                if current is None:
                    name = f"{self._folder}{DATE}={date}/{self._prefix}-{token}-{len(written)}.parquet"
                    current = _Open(date, name, self._files.writer(name), dated=self._dated)
                current.write(rows)
        if current is not None:
            written.append(current.close())
        columns = list(zip(*((f.name, f.size_bytes, f.records, f.first_us, f.last_us) for f in written), strict=True))
        if columns:
            types = (pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.int64())
            arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, names=["name", "size_bytes", "records", "first_us", "last_us"])


class _Open:
    """The file that is being written."""

    def __init__(self, date: dt.date, name: str, sink: Sink, *, dated: bool) -> None:
        import pyarrow.parquet as pq

        self.date = date
        self.sink = sink
        self._name = name
        self._times: list[tuple[int, int]] = []
        self._records = 0
        self._waiting: list[Any] = []
        self._rows_waiting = 0
        self._writer = pq.ParquetWriter(sink, schema(dated=dated), compression="zstd")

    def write(self, rows: "pa.Table") -> None:
        """Put together into groups of rows that are worth their statistics."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found = pc.min_max(rows["timestamp"].cast(pa.int64()))
        self._times.append((found["min"].as_py(), found["max"].as_py()))
        self._records += rows.num_rows
        self._waiting.append(rows)
        self._rows_waiting += rows.num_rows
        if self._rows_waiting >= ROW_GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting), row_group_size=ROW_GROUP_ROWS)
            self._waiting, self._rows_waiting = [], 0

    def close(self) -> RowFile:
        self._flush()
        self._writer.close()
        self.sink.close()
        first, last = min(low for low, _ in self._times), max(high for _, high in self._times)
        return RowFile(self._name, self.sink.size, self._records, first, last)


def _by_date(batch: "pa.RecordBatch", *, dated: bool) -> "Iterator[tuple[dt.date, pa.Table]]":
    """The rows of a batch, date by date."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = pa.Table.from_batches([batch])
    start = 0
    runs = pc.run_end_encode(table[DATE].combine_chunks())
    for date, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        rows = table.slice(start, end - start)
        yield date, rows.select([*COLUMNS, DATE] if dated else list(COLUMNS)).cast(schema(dated=dated))
        start = end


def read_rows(
    spark: "SparkSession",
    files: Files,
    sizes: Mapping[str, int],
    since_ms: int | None = None,
    until_ms: int | None = None,
) -> "DataFrame":
    """The rows of these files, read by tasks: of each file its footer, and the groups of rows that may be in the range of times."""
    names = [(name,) for name in sorted(sizes)]
    if not names:
        return spark.createDataFrame([], f"{ROWS}, {DATE} date")
    listed = spark.createDataFrame(names, "name string")
    tasks = min(len(names), max(1, 4 * spark.sparkContext.defaultParallelism))
    wanted = listed.repartition(tasks)
    return wanted.mapInArrow(Reader(files, since_ms, until_ms), f"{ROWS}, {DATE} date")


class Reader:
    """What a task does with the names of files."""

    def __init__(self, files: Files, since_ms: int | None, until_ms: int | None) -> None:
        self._files = files
        self._since_us = None if since_ms is None else since_ms * 1000
        self._until_us = None if until_ms is None else until_ms * 1000

    def __call__(self, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            for name in batch.column(0).to_pylist():
                yield from self._read(name)

    def _read(self, name: str) -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa
        import pyarrow.parquet as pq

        date = dt.date.fromisoformat(name.rpartition(f"{DATE}=")[2].partition("/")[0])
        with pq.ParquetFile(self._files.reader(name), pre_buffer=True) as file:
            groups = [number for number in range(file.num_row_groups) if self._takes(file.metadata.row_group(number))]
            for batch in file.iter_batches(READ_ROWS, row_groups=groups, columns=list(COLUMNS)):
                (whole,) = pa.Table.from_batches([batch]).cast(schema()).to_batches() or (None,)
                if whole is not None:
                    dates = pa.array([date] * whole.num_rows, pa.date32())
                    yield pa.RecordBatch.from_arrays([*whole.columns, dates], names=[*COLUMNS, DATE])

    def _takes(self, group: Any) -> bool:
        """By the statistics of its times, where it has some."""
        number = next((n for n in range(group.num_columns) if group.column(n).path_in_schema == "timestamp"), None)
        found = None if number is None else group.column(number).statistics
        if found is None or not found.has_min_max:
            return True
        return not (
            (self._since_us is not None and _micros(found.max) < self._since_us)
            or (self._until_us is not None and _micros(found.min) >= self._until_us)
        )


def _micros(moment: dt.datetime) -> int:
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
