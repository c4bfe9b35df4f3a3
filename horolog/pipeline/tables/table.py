"""What every table can do, and the columns that rows have."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from horolog.client.types import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from horolog.pipeline.tables.lock import Lock

COLUMNS = ("topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers")
DATE = "date"
FORMATS = ("parquet", "delta", "iceberg")
OWN = "_horolog"
"""Our own files in a table's folder."""
TOPIC_IDS = "topic ids"
ROWS = (
    "topic string, partition int, offset long, timestamp timestamp, timestampType int, key binary, value binary,"
    " headers array<struct<key:string,value:binary>>"
)

_DAY_MS = 86_400_000

Offsets = dict[TopicPartition, int]
"""Per partition the offset behind the last one that the table has."""


TopicIds = Mapping[str, str]
"""Of which topics the offsets are: one that was deleted and made anew has another id."""


class TableError(Exception):
    """The folder is no table of that kind, or does not hold together."""


class CommitLost(TableError):
    """Another has committed to the table meanwhile, so nothing was committed."""


@dataclass(frozen=True, slots=True)
class Written:
    """What one commit added."""

    records: int
    size_bytes: int
    files: int
    last_timestamp_ms: int | None


class Table(Protocol):
    """To be written to while `lock` is held, after `recover` (`lock.writing` does both)."""

    @property
    def lock(self) -> "Lock": ...

    def open(self) -> None:
        """TableError if this is no such table; StoreError if its store cannot be asked."""

    def recover(self) -> None:
        """Finish or forget what a crash has left."""

    def offsets(self) -> Offsets:
        """How far the committed rows go; the next append goes on from that commit, or is `CommitLost`."""

    def topic_ids(self) -> TopicIds:
        """The ids of the topics of these offsets, as far as they are known."""

    def append(self, rows: "DataFrame", offsets: Offsets, topic_ids: TopicIds | None = None) -> Written:
        """Add the rows and know that the table goes as far as `offsets`, both or neither."""

    def compact(self) -> int:
        """Make few files of many, date by date; how many files went."""

    def rows(self, since_ms: int | None = None, until_ms: int | None = None) -> "DataFrame":
        """The rows of the table in that range of times."""


def open_table(kind: str, folder: str, spark: Any, checkpoint: str | None = None) -> Table:
    """The table of that kind in a folder; made when first written to."""
    from horolog.pipeline.object_stores import Place
    from horolog.pipeline.tables.store import place_of

    table: Table
    place = place_of(folder, spark)
    if kind == "parquet":
        from horolog.pipeline.tables.parquet import ParquetTable

        table = ParquetTable(place, spark, None if checkpoint is None else place_of(checkpoint, spark))
    elif isinstance(place, Place):
        raise TableError(f"{folder}: a table of {kind} is kept on a file system; parquet goes to object stores too")
    elif kind == "delta":
        from horolog.pipeline.tables.delta import DeltaFolder

        table = DeltaFolder(folder, spark)
    elif kind == "iceberg":
        from horolog.pipeline.tables.iceberg import IcebergFolder

        table = IcebergFolder(folder, spark)
    else:
        raise TableError(f"{kind!r} is no kind of table; {', '.join(FORMATS)} are")
    table.open()
    return table


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """As Spark's Kafka connector writes them: {"topic": {"0": 17}}."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def decode_offsets(found: Any) -> Offsets:
    try:
        return {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partitions in found.items()
            for partition, offset in partitions.items()
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise TableError(f"{found!r} are no offsets") from error


def with_date(rows: "DataFrame") -> "DataFrame":
    """The rows with the date, in UTC, of their time; a record without a time is of the day before 1970, as its -1 ms is."""
    from pyspark.sql import functions as f

    days = f.floor(f.unix_millis("timestamp") / _DAY_MS).cast("int")  # not to_date: that is in the session's time zone
    return rows.select(*COLUMNS, f.date_add(f.lit("1970-01-01").cast("date"), days).alias(DATE))


def in_range(rows: "DataFrame", since_ms: int | None, until_ms: int | None) -> "DataFrame":
    """Rows of a range of times, by date first: files of other days are not even opened."""
    from pyspark.sql import functions as f

    ms = f.unix_millis("timestamp")
    if since_ms is not None:
        rows = rows.where((f.col(DATE) >= f.lit(date_of(since_ms))) & (ms >= since_ms))
    if until_ms is not None:
        rows = rows.where((f.col(DATE) <= f.lit(date_of(until_ms))) & (ms < until_ms))
    return rows


def date_of(ms: int) -> date:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)).date()
