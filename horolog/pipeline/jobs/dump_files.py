"""Where the rows of a dump are, and from which of its files they are.

In an object store tasks read the files with the store's own client, so that no jar is needed. Parquet and ORC have their own
columns, those of the first file. Lines of JSON and CSV are passed to Spark, which infers the types.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from horolog.commands.errors import NotFoundError, UsageError
from horolog.pipeline.stores.object_stores import Place
from horolog.pipeline.stores.store import Files, Listed, files_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

FILE, STATE, TIME, CONTENT = "horolog_file", "horolog_state", "timestamp", "horolog_content"
"""The file of a row, and what changes when the file does; the time of a row, and what changes when the row does, if nothing else would."""
BY_SUFFIX = {
    "parquet": "parquet", "json": "json", "jsonl": "json", "ndjson": "json", "csv": "csv", "orc": "orc",
}  # fmt: skip
FILE_FORMATS = ("parquet", "json", "csv", "orc")
STRICT = {
    "csv": {
        "header": "true",
        "inferSchema": "true",
        "mode": "FAILFAST",
        "enforceSchema": "false",
        "columnPruning": "false",
    },
    "json": {"mode": "FAILFAST"},
}
"""How Spark reads text: it would cut a row of CSV that has more values than the header, and fill one that has fewer with nulls. Without
the pruning of columns it finds such a row at the first look, before anything is sent."""


def format_among(names: Iterable[str], source: str) -> str:
    """What the first file with a known suffix is; UsageError if there is none."""
    for name in names:
        found = BY_SUFFIX.get(name.rpartition(".")[2])
        if found is not None:
            return found
    raise UsageError(f"no file in {source} looks like {', '.join(FILE_FORMATS)}", "give the format with --format")


def is_data_file(name: str) -> bool:
    """Whether a file of a dump is one of its rows by its name, which may have no suffix; hidden files have none."""
    _, *suffixes = name.rpartition("/")[2].split(".")
    return not is_hidden(name) and (not suffixes or any(each in BY_SUFFIX for each in suffixes))


class Rows(Protocol):
    """The rows of a dump."""

    @property
    def all(self) -> "DataFrame": ...

    def times(self, name: str, time: "Column") -> "DataFrame":
        """`FILE`, `STATE`, `TIME` and `CONTENT` of all rows, from the column of that name; null or 0 for what rows do not say."""

    def of(self, files: Sequence[str]) -> "DataFrame":
        """The rows of these files."""


@dataclass(frozen=True)
class SparkRows:
    """Files that Spark reads."""

    all: "DataFrame" = field(repr=False)

    def times(self, name: str, time: "Column") -> "DataFrame":  # noqa: ARG002
        from pyspark.sql import functions as f

        state = f.struct(self._about("file_size"), f.unix_micros(self._about("file_modification_time")))
        return _timed(self.all, self._about("file_path"), state, time, f.lit(0))

    def of(self, files: Sequence[str]) -> "DataFrame":
        return self.all.where(self._about("file_path").isin(list(files)))

    def _about(self, name: str) -> "Column":
        return self.all.metadataColumn("_metadata").getField(name)


@dataclass(frozen=True)
class WholeRows:
    """Rows that do not say where they are from: of a database, or lines that were passed to Spark."""

    all: "DataFrame" = field(repr=False)
    state: str | None = None

    def times(self, name: str, time: "Column") -> "DataFrame":  # noqa: ARG002
        from pyspark.sql import functions as f

        content = f.lit(0) if self.state is not None else f.xxhash64(*self.all.columns).cast("decimal(38,0)")
        return _timed(self.all, f.lit(None), f.lit(self.state).cast("string"), time, content)

    def of(self, files: Sequence[str]) -> "DataFrame":  # noqa: ARG002
        return self.all


@dataclass(frozen=True)
class StoreRows:
    """Files with columns that tasks read from a store."""

    spark: "SparkSession" = field(repr=False)
    files: Files
    kind: str
    states: dict[str, str]
    """What changes when a file does, by its name."""

    @property
    def all(self) -> "DataFrame":
        return self.of(list(self.states))

    def times(self, name: str, time: "Column") -> "DataFrame":
        import pyarrow as pa
        from pyspark.sql import functions as f

        read = self._read(list(self.states), pa.schema([self._schema.field(name)]), marked=True)
        states = f.create_map(*(f.lit(each) for pair in self.states.items() for each in pair))
        return _timed(read, f.col(FILE), f.try_element_at(states, f.col(FILE)), time, f.lit(0))

    def of(self, files: Sequence[str]) -> "DataFrame":
        return self._read(files, self._schema)

    def _read(self, names: Sequence[str], schema: "pa.Schema", *, marked: bool = False) -> "DataFrame":
        from pyspark.sql.pandas.types import from_arrow_schema

        columns = from_arrow_schema(schema, prefer_timestamp_ntz=False)
        if marked:
            columns = columns.add(FILE, "string")
        return _listed(self.spark, names).mapInArrow(Columns(self.files, self.kind, schema, marked=marked), columns)

    @cached_property
    def _schema(self) -> "pa.Schema":
        from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

        with self.files.reader(next(iter(self.states))) as first:
            columns = from_arrow_schema(_opened(first, self.kind).schema_arrow, prefer_timestamp_ntz=False)
        return to_arrow_schema(columns, timezone="UTC")


def _timed(rows: "DataFrame", file: "Column", state: "Column", time: "Column", content: "Column") -> "DataFrame":
    return rows.select(file.cast("string").alias(FILE), state.alias(STATE), time.alias(TIME), content.alias(CONTENT))


def _listed(spark: "SparkSession", names: Sequence[str]) -> "DataFrame":
    return spark.createDataFrame([(name,) for name in names], "name string").repartition(max(1, len(names)))


def rows_at(spark: "SparkSession", place: Place, file_format: str | None) -> Rows:
    """The rows of all files at a place, or of the one file that it names."""
    files, states = _found(place)
    kind = file_format or format_among(states, place.url)
    if kind not in {"json", "csv"}:
        return StoreRows(spark, files, kind, states)
    lines = _listed(spark, list(states)).mapInArrow(Lines(files), "value string").rdd.map(lambda row: row[0])
    reader = spark.read.options(**STRICT[kind])
    return WholeRows(reader.csv(lines) if kind == "csv" else reader.json(lines), json.dumps(states, sort_keys=True))


def _found(place: Place) -> tuple[Files, dict[str, str]]:
    """The names of the files in order, and what changes when they do."""
    files = files_of(place)
    listed = sorted(files.listed("").items())
    names = {name: _state(each) for name, each in listed if each.size_bytes and not is_hidden(name)}
    if not names and place.folder and files.exists(""):
        above, _, name = place.folder.rpartition("/")
        files = files_of(replace(place, url=place.url.rpartition("/")[0], folder=above))
        names = {name: files.version(name)}
    if not names:
        raise NotFoundError(f"{place.url} is empty")
    if any("=" in name.rpartition("/")[0] for name in names):
        raise UsageError(f"{place.url} has columns in the names of folders, which are read on a file system only")
    return files, names


def _state(listed: Listed) -> str:
    return listed.version or f"{listed.size_bytes} {listed.changed_ms}"


def is_hidden(name: str) -> bool:
    return any(part.startswith(("_", ".")) for part in name.split("/"))


class Lines:
    """What a task does with the names of files of text."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def __call__(self, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import io

        import pyarrow as pa

        for batch in batches:
            for name in batch.column(0).to_pylist():
                with io.BufferedReader(self._files.reader(name), 1 << 20) as file:
                    while lines := file.readlines(1 << 20):
                        texts = [line.decode("utf-8-sig").rstrip("\r\n") for line in lines]
                        yield pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], names=["value"])


class Columns:
    """What a task does with the names of files that have columns; `marked`: each row has its file's name, too."""

    def __init__(self, files: Files, kind: str, schema: "pa.Schema", *, marked: bool = False) -> None:
        self._files = files
        self._kind = kind
        self._schema = schema
        self._marked = marked

    def __call__(self, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        for batch in batches:
            for name in batch.column(0).to_pylist():
                for table in self._tables(name):
                    rows = table.append_column(FILE, pa.repeat(name, table.num_rows)) if self._marked else table
                    yield from rows.to_batches(max_chunksize=10_000)

    def _tables(self, name: str) -> "Iterator[pa.Table]":
        with self._files.reader(name) as file:
            opened = _opened(file, self._kind)
            there = [each for each in self._schema.names if each in opened.schema_arrow.names]
            for table in opened.parts(there):
                yield self._fitted(table)

    def _fitted(self, table: "pa.Table") -> "pa.Table":
        """The columns of the first file; null where this one lacks some."""
        import pyarrow as pa

        has = set(table.column_names)
        columns = [
            table[field.name].cast(field.type, safe=False)
            if field.name in has
            else pa.nulls(table.num_rows, field.type)
            for field in self._schema
        ]
        return pa.Table.from_arrays(columns, schema=self._schema)


class _Parquet:
    def __init__(self, file: Any) -> None:
        import pyarrow.parquet as pq

        self._file = pq.ParquetFile(file, pre_buffer=True)
        self.schema_arrow = self._file.schema_arrow

    def parts(self, columns: Sequence[str]) -> "Iterator[pa.Table]":
        return (self._file.read_row_group(number, columns=columns) for number in range(self._file.num_row_groups))


class _Orc:
    def __init__(self, file: Any) -> None:
        from pyarrow import orc

        self._file = orc.ORCFile(file)
        self.schema_arrow = self._file.schema

    def parts(self, columns: Sequence[str]) -> "Iterator[pa.Table]":
        import pyarrow as pa

        return (
            pa.Table.from_batches([self._file.read_stripe(number, columns=columns)])
            for number in range(self._file.nstripes)
        )


def _opened(file: Any, kind: str) -> "_Parquet | _Orc":
    return _Parquet(file) if kind == "parquet" else _Orc(file)
