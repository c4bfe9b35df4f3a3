"""The data source `horolog`: one name for reading from a broker or from segment files, in batches or as a stream, and for writing."""

import inspect
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

try:
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
except ModuleNotFoundError:
    from horolog.pipeline.spark.spark_versions import require_data_sources

    require_data_sources()
    raise
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from horolog.pipeline.arrow import columns
from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.options.options import ReadOptions, Selection, parse_columns, parse_read, parse_write
from horolog.pipeline.reading.offline import Piece, read_pieces, tasks
from horolog.pipeline.reading.pins import plan_and_pin, release
from horolog.pipeline.reading.pushdown import EVERYTHING, wanted_of
from horolog.pipeline.spark.notes import say
from horolog.pipeline.spark.short_errors import short_errors
from horolog.pipeline.spark.spark_versions import has_arrow_writer_of_streams, has_limits_of_streams
from horolog.pipeline.spark.worker_daemon import hush_this_process
from horolog.pipeline.spark.workers import begin_task
from horolog.pipeline.typed.options import TypedOptions

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter, DataSourceStreamReader, DataSourceWriter, Filter

    from horolog.pipeline.reading.online import BrokerReader
    from horolog.pipeline.typed.decoding import Decoding

_COLUMNS = [
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
]
_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_TOPIC_ID = StructField("topic_id", StringType())
SCHEMA = StructType([*_COLUMNS, _TOPIC_ID])
SCHEMA_WITH_HEADERS = StructType([*_COLUMNS, StructField("headers", ArrayType(_HEADER)), _TOPIC_ID])

hush_this_process()

_PUSHDOWN_WORKER = "data_source_pushdown_filters.py"
_COMMITTING_WORKER = "python_streaming_sink_runner.py"


class HorologSource(DataSource):
    """What Spark asks for readers and writers; it is created again for each, from the options alone."""

    @classmethod
    def name(cls) -> str:
        return "horolog"

    @short_errors()
    def schema(self) -> StructType:
        typed, selection, include_headers = parse_columns(self._options())
        return _columns(decoding_of(typed, selection, include_headers=include_headers), include_headers=include_headers)

    @short_errors()
    def reader(self, schema: StructType) -> DataSourceReader:
        options = _prepared(parse_read(self._options(), _now_ms()), schema)
        if options.path is None:
            from horolog.pipeline.reading.online import BrokerReader

            reader: FilesReader | BrokerReader = BrokerReader(options)
        else:
            reader = FilesReader(options)
        has_dead_letters = options.decoding is not None and options.decoding.dead_letters is not None
        return FilteredReader(reader) if _filters_are_pushed() and not has_dead_letters else reader

    @short_errors()
    def streamReader(self, schema: StructType) -> "DataSourceStreamReader":
        from horolog.pipeline.reading.stream import BrokerStream, RefusedStream

        try:
            options = parse_read(self._options(), _now_ms(), streaming=True, limited=has_limits_of_streams())
            return BrokerStream(_prepared(options, schema))
        except OptionError as error:  # Spark reports an error raised here as its own
            return RefusedStream(error)

    @short_errors()
    def writer(self, schema: StructType, overwrite: bool) -> "DataSourceWriter":
        from horolog.pipeline.writing.write import BatchWriter

        if overwrite:
            raise OptionError("a topic cannot be overwritten; use mode('append')")
        return BatchWriter(parse_write(self._options()), schema)

    @short_errors()
    def streamWriter(self, schema: StructType, overwrite: bool) -> "DataSourceStreamArrowWriter":
        from horolog.pipeline.writing.write import StreamWriter

        if overwrite:
            raise OptionError("a topic cannot be overwritten; use outputMode('append')")
        if not has_arrow_writer_of_streams():
            raise OptionError("writing streams needs Spark 4.1; use foreachBatch to write each batch as a data frame")
        committing = _is_called_by(_COMMITTING_WORKER)  # for that Spark makes another writer, after the batch
        return StreamWriter(parse_write(self._options(), streaming=True), schema, claims=not committing)

    def _options(self) -> Mapping[str, str]:
        return dict(self.options)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def decoding_of(typed: TypedOptions | None, selection: Selection, *, include_headers: bool) -> "Decoding | None":
    """Asks the registry, if the options say so."""
    if typed is None:
        return None
    from horolog.pipeline.reading.preparing import prepare

    return prepare(typed, selection.names, include_headers=include_headers)


def _prepared(options: ReadOptions, schema: StructType) -> ReadOptions:
    """With the schemas of keys and values from which Spark has its columns."""
    headers = options.include_headers
    decoding = decoding_of(options.typed, options.selection, include_headers=headers)
    _check_schema(schema, _columns(decoding, include_headers=headers))
    return replace(options, decoding=decoding)


def _columns(decoding: "Decoding | None", *, include_headers: bool) -> StructType:
    if decoding is None:
        return SCHEMA_WITH_HEADERS if include_headers else SCHEMA
    return from_arrow_schema(decoding.schema(columns.schema_of(include_headers=include_headers, include_topic_id=True)))


def _check_schema(schema: StructType, own: StructType) -> None:
    if [(one.name, one.dataType) for one in schema.fields] != [(one.name, one.dataType) for one in own.fields]:
        raise OptionError(f"the columns are fixed: {own.simpleString()}; use select() and cast() to change them")


def _filters_are_pushed() -> bool:
    """Whether Spark is asking for a reader that takes filters. A reader that could take some where none come is refused by it."""
    return _is_called_by(_PUSHDOWN_WORKER)


def _is_called_by(file: str) -> bool:
    """Whether a file of Spark's is at work here: it asks for the same things in different ways, and does not say which."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_filename.endswith(file):
            return True
        frame = frame.f_back
    return False


class FilesTask(InputPartition):
    """What one task reads of segment files."""

    def __init__(self, pieces: list[Piece], versions: Mapping[str, str]) -> None:
        super().__init__(pieces)
        self.pieces = pieces
        self.versions = {one.path: versions[one.path] for one in pieces if one.path in versions}


class FilesReader(DataSourceReader):
    """Reads segment files."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self.wanted = EVERYTHING

    @short_errors()
    def partitions(self) -> list[FilesTask]:
        plan, planned = plan_and_pin(
            self.options, self.wanted, lambda plan: tasks(plan, self.options), os.getppid(), say
        )
        say(f"horolog: {self.options.path}: {plan}")
        return [FilesTask(task, plan.versions) for task in planned or [[]]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        begin_task()
        assert isinstance(partition, FilesTask)
        return self._read(partition)

    def _read(self, task: FilesTask) -> Iterator[pa.RecordBatch]:
        """A task's files stay pinned until they are read, or the query needs no more rows; a failed task is retried."""
        try:
            yield from self._decoded(task)
        except GeneratorExit:
            release(task.pieces)
            raise
        release(task.pieces)

    def _decoded(self, task: FilesTask) -> Iterator[pa.RecordBatch]:
        decoding = self.options.decoding
        if decoding is None or decoding.dead_letters is None:
            plain = self._plain(task.pieces, task.versions)
            return plain if decoding is None else decoding.batches(plain)
        return self._with_letters(decoding, task)

    def _plain(self, pieces: list[Piece], versions: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
        with short_errors():
            yield from read_pieces(
                pieces,
                include_headers=self.options.reads_headers,
                fail_on_data_loss=self.options.fail_on_data_loss,
                place=self.options.place,
                include_topic_id=True,
                versions=versions,
            )

    def _with_letters(self, decoding: "Decoding", task: FilesTask) -> Iterator[pa.RecordBatch]:
        """Each piece has its own letters: a later read of the files may group it with other pieces."""
        from horolog.pipeline.reading.dead_letters import post_of_piece

        for piece in task.pieces:
            plain = self._plain([piece], task.versions)
            yield from decoding.batches(plain, post_of_piece(self.options, piece))


class FilteredReader(DataSourceReader):
    """A reader that gets the query's filters and skips what cannot pass. Spark applies every filter again."""

    def __init__(self, reader: "FilesReader | BrokerReader") -> None:
        self._reader = reader

    def pushFilters(self, filters: "list[Filter]") -> "Iterable[Filter]":
        self._reader.wanted = wanted_of(filters)
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        return self._reader.partitions()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reader.read(partition)
