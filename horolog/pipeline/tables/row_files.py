"""Files of rows, written and read by Spark's tasks: each task writes Parquet files of its own, and returns their names.

Rows are sorted by folder inside a task, so that one file is open at a time. A part of the name is unique to an attempt of a
task, so no commit names the files of a task that died, or was run twice.
"""

import datetime as dt
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from horolog.pipeline.base import headers
from horolog.pipeline.stores.store import Files, Sink
from horolog.pipeline.tables.layout import DATE, NUMBER, Folders
from horolog.pipeline.tables.table import AddedRows
from horolog.stores.faults import StoreError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

TARGET_FILE_BYTES = 256 << 20
"""Files are merged up to about this size."""
ROW_GROUP_ROWS = 128 << 10
ROW_GROUP_BYTES = 64 << 20
"""Of rows before compression: a task holds this much in memory, however large its records are."""
READ_ROWS = 10_000
READ_BYTES = 8 << 20
"""At most this many rows, or bytes of them, are passed on at a time."""
CORRUPT = "_corrupt"
"""The column that says why a record could not be decoded."""
_FACTS = "name string, size_bytes long, records long, broken long, first_us long, last_us long"


@dataclass(frozen=True, slots=True)
class RowFile:
    """A file that a task has written; times in microseconds, as Parquet has them."""

    name: str
    size_bytes: int
    records: int
    broken: int
    """So many of them could not be decoded."""
    first_us: int
    last_us: int


def write_rows(
    rows: "DataFrame", files: Files, folder: str, prefix: str, folders: Folders, columns: "pa.Schema"
) -> list[RowFile]:
    """Write the rows into their folders below `folder`, as files of these columns; the names are from the store's root."""
    there = [name for name in columns.names if name in rows.columns and name not in folders.names]
    numbered = rows.select(*there, folders.number().alias(NUMBER))
    ids = ["topic_id"] if "topic_id" in there else []
    sorted_rows = headers.without_nulls(numbered).sortWithinPartitions(NUMBER, "topic", *ids, "partition", "offset")
    facts = sorted_rows.mapInArrow(Writer(files, folder, prefix, folders, columns), _FACTS).collect()
    return sorted((RowFile(*row) for row in facts), key=lambda one: one.name)


def summed(files: Iterable[RowFile]) -> AddedRows:
    """What one commit has of these."""
    found = list(files)
    last_ms = max((one.last_us // 1000 for one in found), default=None)
    broken = sum(one.broken for one in found)
    return AddedRows(
        sum(one.records for one in found), sum(one.size_bytes for one in found), len(found), last_ms, broken
    )


def schema(folders: Folders | None = None, decoded: "pa.Schema | None" = None) -> "pa.Schema":
    """The columns of a file, with those that are decoded, and with what these folders have in their names."""
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
            ("topic_id", pa.string()),
            *(decoded or ()),
            *((name, pa.date32() if name == DATE else pa.int32()) for name in (folders.names if folders else ())),
        ]
    )


class Writer:
    """What a task does with its rows, which come in the order of their folders; it returns the files that it has written."""

    def __init__(self, files: Files, folder: str, prefix: str, folders: Folders, columns: "pa.Schema") -> None:
        self._files = files
        self._folder = f"{folder}/" if folder else ""
        self._prefix = prefix
        self._folders = folders
        self._columns = columns

    def __call__(self, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        written = self._written(batches)
        if written:
            yield pa.RecordBatch.from_pylist([asdict(one) for one in written])

    def _written(self, batches: "Iterable[pa.RecordBatch]") -> list[RowFile]:
        token = uuid.uuid4().hex[:12]
        written: list[RowFile] = []
        begun: list[tuple[str, Sink]] = []
        current: _Open | None = None
        try:
            for batch in batches:
                for number, rows in _by_folder(batch):
                    if current is not None and (current.number != number or current.sink.size >= TARGET_FILE_BYTES):
                        written.append(current.close())
                        current = None
                    if current is None:
                        path = self._folders.path(number)
                        name = f"{self._folder}{path}/{self._prefix}-{token}-{len(written)}.parquet"
                        begun.append((name, self._files.writer(name)))
                        current = _Open(number, *begun[-1], self._columns)
                    current.write(self._completed(number, rows))
            if current is not None:
                written.append(current.close())
        except BaseException:  # no commit will name these, and where the disk is full they would keep it so
            if current is not None:
                current.give_up()
            for name, sink in begun:
                with suppress(OSError, StoreError):
                    sink.close()
                with suppress(OSError, StoreError):
                    self._files.remove(name)
            raise
        return written

    def _completed(self, number: int, rows: "pa.Table") -> "pa.Table":
        """In Iceberg's files folders are columns as well."""
        from horolog.pipeline.tables.evolution import fitted

        has_folders = DATE in self._columns.names
        whole = headers.with_nulls(rows)
        return fitted(with_values(whole, self._folders, number) if has_folders else whole, self._columns)


def with_values(rows: "pa.Table", folders: Folders, number: int) -> "pa.Table":
    """The rows of a folder with what its name says."""
    import pyarrow as pa

    for field, value in zip(list(schema(folders))[-len(folders.names) :], folders.values(number), strict=True):
        rows = rows.append_column(field, pa.repeat(pa.scalar(value, field.type), rows.num_rows))
    return rows


class _Open:
    """The file that is being written."""

    def __init__(self, number: int, name: str, sink: Sink, columns: "pa.Schema") -> None:
        import pyarrow.parquet as pq

        self.number = number
        self.sink = sink
        self._name = name
        self._times: list[tuple[int, int]] = []
        self._records = self._broken = 0
        self._waiting: list[Any] = []
        self._rows_waiting = self._bytes_waiting = 0
        self._writer = pq.ParquetWriter(sink, columns, compression="zstd")

    def write(self, rows: "pa.Table") -> None:
        """Collect rows into groups that are large enough to be worth their statistics."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found = pc.min_max(rows["timestamp"].cast(pa.int64()))
        self._times.append((found["min"].as_py(), found["max"].as_py()))
        self._records += rows.num_rows
        if CORRUPT in rows.column_names:
            self._broken += rows.num_rows - rows[CORRUPT].null_count
        self._waiting.append(rows)
        self._rows_waiting += rows.num_rows
        self._bytes_waiting += rows.nbytes
        if self._rows_waiting >= ROW_GROUP_ROWS or self._bytes_waiting >= ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting), row_group_size=ROW_GROUP_ROWS)
            self._waiting, self._rows_waiting, self._bytes_waiting = [], 0, 0

    def give_up(self) -> None:
        """End what Arrow has begun, without the rows that wait."""
        with suppress(Exception):
            self._writer.close()

    def close(self) -> RowFile:
        self._flush()
        self._writer.close()
        self.sink.close()
        first, last = min(low for low, _ in self._times), max(high for _, high in self._times)
        return RowFile(self._name, self.sink.size, self._records, self._broken, first, last)


def _by_folder(batch: "pa.RecordBatch") -> "Iterator[tuple[int, pa.Table]]":
    """The rows of a batch, folder by folder."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = pa.Table.from_batches([batch])
    start = 0
    runs = pc.run_end_encode(table[NUMBER].combine_chunks())
    for number, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield number, table.slice(start, end - start).drop_columns([NUMBER])
        start = end


def read_rows(
    spark: "SparkSession",
    files: Files,
    names: Iterable[str],
    folders: Folders,
    times: tuple[int | None, int | None] = (None, None),
    decoded: "pa.Schema | None" = None,
) -> "DataFrame":
    """The rows of these files, read by tasks: of each file its footer, and the groups of rows that may be in the range of times."""
    from horolog.pipeline.tables.evolution import as_spark

    listed = [(name,) for name in sorted(names)]
    columns = as_spark(schema(folders, decoded))
    if not listed:
        return spark.createDataFrame([], columns)
    tasks = min(len(listed), max(1, 4 * spark.sparkContext.defaultParallelism))
    wanted = spark.createDataFrame(listed, "name string").repartition(tasks)
    return wanted.mapInArrow(Reader(files, folders, *times, decoded), columns)


class Reader:
    """What a task does with the names of files."""

    def __init__(
        self,
        files: Files,
        folders: Folders,
        since_ms: int | None,
        until_ms: int | None,
        decoded: "pa.Schema | None" = None,
    ) -> None:
        self._files = files
        self._folders = folders
        self._columns = schema(None, decoded)
        self._since_us = None if since_ms is None else since_ms * 1000
        self._until_us = None if until_ms is None else until_ms * 1000

    def __call__(self, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            for name in batch.column(0).to_pylist():
                yield from self.read(name, self._folders.number_of(name))

    def read(self, name: str, number: int) -> "Iterator[pa.RecordBatch]":
        """The rows of a file of that folder."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        from horolog.pipeline.tables.evolution import fitted

        with self._files.reader(name) as source, pq.ParquetFile(source, pre_buffer=True) as file:
            groups = [group for group in range(file.num_row_groups) if self._takes(file.metadata.row_group(group))]
            there = [name for name in file.schema_arrow.names if name in self._columns.names]
            for group in groups:
                at_a_time = _rows_at_a_time(file.metadata.row_group(group))
                for batch in file.iter_batches(at_a_time, row_groups=[group], columns=there):
                    rows = fitted(pa.Table.from_batches([batch]), self._columns)
                    yield from with_values(rows, self._folders, number).to_batches()

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


def _rows_at_a_time(group: Any) -> int:
    """By the size of its rows, as they are before compression."""
    row_bytes = group.total_byte_size // max(1, group.num_rows)
    return max(1, min(READ_ROWS, READ_BYTES // max(1, row_bytes)))


def _micros(moment: dt.datetime) -> int:
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
