"""A Delta table: tasks write its files, `deltalake` commits them; how far it goes stands in each commit's metadata as `horolog.offsets`."""

import datetime as dt
import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from horolog.pipeline.tables.lock import Lock
from horolog.pipeline.tables.row_files import RowFile, schema, summed, write_rows
from horolog.pipeline.tables.store import LocalStore
from horolog.pipeline.tables.table import (
    DATE,
    OWN,
    TOPIC_IDS,
    CommitLost,
    Offsets,
    TableError,
    TopicIds,
    Written,
    decode_offsets,
    encode_offsets,
    in_range,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OFFSETS = "horolog.offsets"


class DeltaFolder:
    def __init__(self, folder: str, spark: "SparkSession") -> None:
        self.folder = folder
        self._spark = spark
        self._seen: Any = None
        self.lock = Lock(LocalStore(Path(folder) / OWN))

    def open(self) -> None:
        from deltalake.exceptions import DeltaError

        try:
            self._table()
        except DeltaError as error:
            raise TableError(f"{self.folder} is no Delta table: {error}") from error

    def _table(self) -> Any:
        """None while there is nothing."""
        from deltalake import DeltaTable

        return DeltaTable(self.folder) if DeltaTable.is_deltatable(self.folder) else None

    def recover(self) -> None:
        """A commit is whole or not there; files that no commit names are what `vacuum` is for."""

    def offsets(self) -> Offsets:
        self._seen = self._table()
        if self._seen is None:
            return {}
        found = self._newest(OFFSETS)
        if found is None:
            raise TableError(f"{self.folder} is a Delta table, but no commit says which topics it is of")
        return decode_offsets(found)

    def topic_ids(self) -> TopicIds:
        return self._newest(TOPIC_IDS) or {}

    def _newest(self, name: str) -> Any:
        """What the newest commit with offsets says of this."""
        for commit in self._seen.history() if self._seen is not None else ():
            if commit.get(OFFSETS) is not None:
                found = commit.get(name)
                return json.loads(found) if isinstance(found, str) else found
        return None

    def append(self, rows: "DataFrame", offsets: Offsets, topic_ids: TopicIds | None = None) -> Written:
        with _told_of_conflicts():
            if self._seen is None:
                self._seen = self._create()
            files = write_rows(rows, LocalStore(Path(self.folder)), "", uuid.uuid4().hex[:12])
            self._seen.create_write_transaction(
                [_added(file) for file in files],
                mode="append",
                schema=self._seen.schema(),
                partition_by=[DATE],
                commit_properties=_properties(offsets, topic_ids or {}),
            )
            self._seen.load_as_version(self._seen.version() + 1)  # ours, and none that another has made behind it
        return summed(files)

    def _create(self) -> Any:
        from deltalake import DeltaTable

        return DeltaTable.create(
            self.folder, schema(dated=True), mode="error", partition_by=[DATE], commit_properties=_properties({}, {})
        )

    def compact(self) -> int:
        offsets = self.offsets()
        if self._seen is None:
            return 0
        with _told_of_conflicts():
            found = self._seen.optimize.compact(commit_properties=_properties(offsets, self.topic_ids()))
        return int(found["numFilesRemoved"]) - int(found["numFilesAdded"])

    def rows(self, since_ms: int | None = None, until_ms: int | None = None) -> "DataFrame":
        """Spark reads the files that the newest version names: the JVM's own Delta reader does not work with this Spark."""
        table = self._table()
        if table is None:
            raise TableError(f"{self.folder} is no Delta table yet")
        files = [str(uri) for uri in table.file_uris()]
        rows = self._spark.read.option("basePath", self.folder).parquet(*files)
        return in_range(rows, since_ms, until_ms)


def _added(file: RowFile) -> Any:
    """A file as Delta's log has it, with the times that it holds: milliseconds, so the first is rounded down and the last up."""
    from deltalake.transaction import AddAction

    first, last = (_moment(ms) for ms in (file.first_us // 1000, -(-file.last_us // 1000)))
    stats = {"numRecords": file.records, "minValues": {"timestamp": first}, "maxValues": {"timestamp": last}}
    stats["nullCount"] = {"timestamp": 0}
    date = file.name.partition(f"{DATE}=")[2].partition("/")[0]
    now_ms = time.time_ns() // 1_000_000
    return AddAction(file.name, file.size_bytes, {DATE: date}, now_ms, data_change=True, stats=json.dumps(stats))


def _moment(ms: int) -> str:
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _properties(offsets: Offsets, topic_ids: TopicIds) -> Any:
    """A commit that is the next version of what was seen, or none: to Delta, appends of two jobs would not contradict each other."""
    from deltalake import CommitProperties

    said = {OFFSETS: json.dumps(encode_offsets(offsets)), TOPIC_IDS: json.dumps(dict(topic_ids))}
    return CommitProperties(custom_metadata=said, max_commit_retries=0)


@contextmanager
def _told_of_conflicts() -> Iterator[None]:
    from deltalake.exceptions import CommitFailedError, DeltaError

    try:
        yield
    except CommitFailedError as error:
        raise CommitLost(f"another job has committed to the table meanwhile; nothing was added ({error})") from error
    except DeltaError as error:
        if "already exists" in str(error):
            raise CommitLost("another job has made the table meanwhile; nothing was added") from error
        raise
