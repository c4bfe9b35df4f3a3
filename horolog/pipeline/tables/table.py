"""What every table can do, and the columns that rows have."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Protocol

from horolog.client.values.types import TopicPartition
from horolog.pipeline.base.positions import parse_moment

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from horolog.pipeline.stores.store import Files
    from horolog.pipeline.tables.catalogues import CatalogueTable
    from horolog.pipeline.tables.layout import Folders
    from horolog.pipeline.tables.lock import Lock
    from horolog.pipeline.tables.upkeep import Gone

COLUMNS = ("topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers", "topic_id")
FORMATS = ("parquet", "delta", "iceberg")
TOPIC_IDS = "topic ids"
OFFSETS = "horolog.offsets"
"""In the metadata of a commit of Delta or Iceberg."""
ZONE = "horolog.zone"
"""A property of such a table: whose dates and hours its folders are of (UTC where there is none)."""
ROWS = (
    "topic string, partition int, offset long, timestamp timestamp, timestampType int, key binary, value binary,"
    " headers array<struct<key:string,value:binary>>"
)
"""What rows have at least; `topic_id` is null where it is not known, as in rows of earlier releases."""

Offsets = dict[TopicPartition, int]
"""Per partition the offset behind the last one that the table has."""


TopicIds = Mapping[str, str]
"""The topics to which the offsets belong: a recreated topic has another id."""


class TableError(Exception):
    """The folder is not a table of that kind, or is inconsistent."""


class CommitLost(TableError):
    """Another job has committed to the table first, so nothing was committed."""


@dataclass(frozen=True, slots=True)
class AddedRows:
    """What one commit added."""

    records: int
    size_bytes: int
    files: int
    last_timestamp_ms: int | None
    broken: int = 0
    """Records that could not be decoded."""


class Table(Protocol):
    """To be written to while `lock` is held, after `recover` (`lock.writing` does both)."""

    @property
    def lock(self) -> "Lock": ...

    def open(self) -> None:
        """TableError if this is no such table; StoreError if its store cannot be asked."""

    def recover(self) -> None:
        """Finish or forget what a crash has left."""

    def offsets(self) -> Offsets:
        """How far the committed rows go; the next append follows that commit, or raises `CommitLost`."""

    def topic_ids(self) -> TopicIds:
        """The ids of the topics of these offsets, as far as they are known."""

    def folders(self) -> "Folders | None":
        """How its rows are partitioned; None while the table is empty."""

    def columns(self) -> "pa.Schema":
        """The decoded columns that it has, beside those that every table has."""

    def grown(self, brings: "pa.Schema") -> "pa.Schema":
        """Those that it will have with such columns; TableError if a type cannot be converted."""

    def append(
        self,
        rows: "DataFrame",
        offsets: Offsets,
        topic_ids: TopicIds | None = None,
        folders: "Folders | None" = None,
    ) -> AddedRows:
        """Add the rows and record that the table goes as far as `offsets`, both or neither.

        A new table gets these folders (by date, in UTC); an existing one keeps its own. Columns of the rows that are not the
        record's own are decoded ones: they are added to the table's, or TableError names the types that cannot be converted.
        """

    def compact(self) -> int:
        """Merge small files, folder by folder; how many files were replaced."""

    def rows(self, since_ms: int | None = None, until_ms: int | None = None) -> "DataFrame":
        """The rows of the table in that range of times."""

    def files(self, since_ms: int | None = None, until_ms: int | None = None) -> "list[tuple[Files, list[str]]]":
        """The files that may have rows of that range of times, by the stores that they are in."""

    def expire(self, keep_from: date, *, dry_run: bool = False) -> "Gone":
        """Remove rows of older dates, in one commit with unchanged offsets; no commit if there are no such rows."""

    def forget_versions(self, before_ms: int, *, dry_run: bool = False) -> int:
        """Remove versions that were made before that time, but not the newest; how many."""

    def vacuum(self, before_ms: int, *, dry_run: bool = False) -> "Gone":
        """Delete files that no version names and that have not changed since that time."""


def open_table(kind: str, folder: "str | CatalogueTable", spark: Any, checkpoint: str | None = None) -> Table:
    """The table of that kind in a folder, or of that name in a catalogue; created when first written to."""
    from horolog.pipeline.stores.store import place_of

    table: Table
    if not isinstance(folder, str):
        if kind != "iceberg":
            raise TableError(f"a table in a catalogue is an Iceberg table, not one of {kind}")
        from horolog.pipeline.tables.iceberg import IcebergFolder

        table = IcebergFolder(folder, spark)
        table.open()
        return table
    place = place_of(folder, spark)
    if kind == "parquet":
        from horolog.pipeline.tables.parquet import ParquetTable

        table = ParquetTable(place, spark, None if checkpoint is None else place_of(checkpoint, spark))
    elif kind == "delta":
        from horolog.pipeline.tables.delta import DeltaFolder

        table = DeltaFolder(place, spark)
    elif kind == "iceberg":
        from horolog.pipeline.tables.iceberg import IcebergFolder

        table = IcebergFolder(place, spark)
    else:
        raise TableError(f"{kind!r} is not a format of tables; use {', '.join(FORMATS)}")
    table.open()
    return table


def table(
    spark: "SparkSession",
    to: "str | CatalogueTable",
    since: str | int | None = None,
    until: str | int | None = None,
    *,
    table_format: str | None = None,
    checkpoint: str | None = None,
) -> "DataFrame":
    """The rows of an archive, optionally of a range of times: with all its present columns, null in earlier rows.

    Times are milliseconds or the command line's, in UTC. Raises TableError.
    """
    kind = table_format or ("parquet" if isinstance(to, str) else "iceberg")
    now_ms = time.time_ns() // 1_000_000
    since_ms, until_ms = (
        None if each is None else parse_moment(name, str(each), now_ms).value
        for name, each in (("since", since), ("until", until))
    )
    return open_table(kind, to, spark, checkpoint).rows(since_ms, until_ms)


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """As Spark's Kafka connector writes them: {"topic": {"0": 17}}."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def commit_properties(offsets: Offsets, topic_ids: TopicIds) -> dict[str, str]:
    """The metadata of a commit of Delta or Iceberg."""
    return {OFFSETS: json.dumps(encode_offsets(offsets)), TOPIC_IDS: json.dumps(dict(topic_ids))}


def decode_offsets(found: Any) -> Offsets:
    try:
        return {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partitions in found.items()
            for partition, offset in partitions.items()
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise TableError(f"{found!r} are not offsets") from error
