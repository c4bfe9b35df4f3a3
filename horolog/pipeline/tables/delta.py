"""A Delta table, written by `deltalake`; how far it goes stands in each commit's metadata as `horolog.offsets`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from horolog.pipeline.tables.arrow import arrow_of, facts
from horolog.pipeline.tables.lock import Lock
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
        from deltalake import write_deltalake

        data = arrow_of(rows)
        with _told_of_conflicts():
            if self._seen is None:
                self._seen = self._create(data)
            properties = _properties(offsets, topic_ids or {})
            write_deltalake(self._seen, data, mode="append", commit_properties=properties)
        return facts(data)

    def _create(self, data: Any) -> Any:
        from deltalake import DeltaTable

        return DeltaTable.create(
            self.folder, data.schema, mode="error", partition_by=[DATE], commit_properties=_properties({}, {})
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
