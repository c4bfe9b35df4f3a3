"""Dumps in an object store: tasks read the files with the store's own client, so that no jar is needed.

Parquet and ORC have their own columns, those of the first file. Lines of JSON and CSV are passed to Spark, which infers the types.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from horolog.commands.errors import NotFoundError, UsageError
from horolog.pipeline.stores.object_stores import Place
from horolog.pipeline.stores.store import Files, files_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

BY_SUFFIX = {
    "parquet": "parquet", "json": "json", "jsonl": "json", "ndjson": "json", "csv": "csv", "orc": "orc",
}  # fmt: skip
FILE_FORMATS = ("parquet", "json", "csv", "orc")


def format_among(names: Iterable[str], source: str) -> str:
    """What the first file with a known suffix is; UsageError if there is none."""
    for name in names:
        found = BY_SUFFIX.get(name.rpartition(".")[2])
        if found is not None:
            return found
    raise UsageError(f"no file in {source} looks like {', '.join(FILE_FORMATS)}", "--format names what they are")


def is_data_file(name: str) -> bool:
    """Whether a file of a dump is one of its rows by its name, which may have no suffix; hidden files have none."""
    _, *suffixes = name.rpartition("/")[2].split(".")
    return not is_hidden(name) and (not suffixes or any(each in BY_SUFFIX for each in suffixes))


def read_files(spark: "SparkSession", place: Place, file_format: str | None) -> "DataFrame":
    """The rows of all files at a place, or of the one file that it names."""
    files, names = _found(place)
    kind = file_format or format_among(names, place.url)
    listed = spark.createDataFrame([(name,) for name in names], "name string").repartition(len(names))
    if kind in {"json", "csv"}:
        lines = listed.mapInArrow(Lines(files), "value string").rdd.map(lambda row: row[0])
        reader = spark.read.option("header", "true").option("inferSchema", "true")
        return reader.csv(lines) if kind == "csv" else reader.json(lines)
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    with files.reader(names[0]) as first:
        columns = from_arrow_schema(_opened(first, kind).schema_arrow, prefer_timestamp_ntz=False)
    return listed.mapInArrow(Columns(files, kind, to_arrow_schema(columns, timezone="UTC")), columns)


def _found(place: Place) -> tuple[Files, list[str]]:
    files = files_of(place)
    names = [name for name, size in sorted(files.files("").items()) if size and not is_hidden(name)]
    if not names and place.folder and files.exists(""):
        above, _, name = place.folder.rpartition("/")
        files = files_of(replace(place, url=place.url.rpartition("/")[0], folder=above))
        names = [name]
    if not names:
        raise NotFoundError(f"there is nothing in {place.url}")
    if any("=" in name.rpartition("/")[0] for name in names):
        raise UsageError(f"{place.url} has columns in the names of folders, which are read on a file system only")
    return files, names


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
    """What a task does with the names of files that have columns."""

    def __init__(self, files: Files, kind: str, schema: "pa.Schema") -> None:
        self._files = files
        self._kind = kind
        self._schema = schema

    def __call__(self, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            for name in batch.column(0).to_pylist():
                with self._files.reader(name) as file:
                    for table in _opened(file, self._kind).parts():
                        yield from self._fitted(table).to_batches(max_chunksize=10_000)

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

    def parts(self) -> "Iterator[pa.Table]":
        return (self._file.read_row_group(number) for number in range(self._file.num_row_groups))


class _Orc:
    def __init__(self, file: Any) -> None:
        from pyarrow import orc

        self._file = orc.ORCFile(file)
        self.schema_arrow = self._file.schema

    def parts(self) -> "Iterator[pa.Table]":
        import pyarrow as pa

        return (pa.Table.from_batches([self._file.read_stripe(number)]) for number in range(self._file.nstripes))


def _opened(file: Any, kind: str) -> "_Parquet | _Orc":
    return _Parquet(file) if kind == "parquet" else _Orc(file)
