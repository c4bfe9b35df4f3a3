"""An Iceberg table: tasks write its files, `pyiceberg` adds them, with a catalogue in SQLite beside them.

Each snapshot's summary has `horolog.offsets`.
"""

import datetime as dt
import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from horolog.pipeline.tables.lock import Lock
from horolog.pipeline.tables.row_files import schema, summed, write_rows
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
NAME = "horolog.records"


class IcebergFolder:
    def __init__(self, folder: str, spark: "SparkSession") -> None:
        self.folder = Path(folder).resolve()
        self._spark = spark
        self._catalog: Any = None
        self._seen: Any = None
        self.lock = Lock(LocalStore(self.folder / OWN))

    def open(self) -> None:
        from pyiceberg.catalog.sql import SqlCatalog

        if self.folder.exists() and not self.folder.is_dir():
            raise TableError(f"{self.folder} is no folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        uri = f"sqlite:///{self.folder / 'catalog.db'}"
        self._catalog = SqlCatalog("horolog", uri=uri, warehouse=self.folder.as_uri())
        self._catalog.create_namespace_if_not_exists("horolog")

    def recover(self) -> None:
        """A snapshot is whole or not there."""

    def _table(self) -> Any:
        """None while there is nothing. A commit that another has overtaken is not tried again on top of that: it may have the same rows."""
        if not self._catalog.table_exists(NAME):
            return None
        table = self._catalog.load_table(NAME)
        table.metadata.properties["commit.retry.num-retries"] = "0"
        return table

    def offsets(self) -> Offsets:
        self._seen = self._table()
        return decode_offsets(self._newest(OFFSETS))

    def topic_ids(self) -> TopicIds:
        found: TopicIds = self._newest(TOPIC_IDS)
        return found

    def _newest(self, name: str) -> Any:
        """What the newest snapshot with offsets says of this."""
        snapshot = None if self._seen is None else self._seen.current_snapshot()
        while snapshot is not None:
            said = snapshot.summary.additional_properties if snapshot.summary else {}
            if OFFSETS in said:
                return json.loads(said.get(name, "{}"))
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else self._seen.snapshot_by_id(parent)
        return {}

    def append(self, rows: "DataFrame", offsets: Offsets, topic_ids: TopicIds | None = None) -> Written:
        properties = _properties(offsets, topic_ids or {})
        with _told_of_conflicts():
            if self._seen is None:
                self._seen = self._create()
            data = f"{self._seen.location()}/data"
            store = LocalStore(Path(url2pathname(urlsplit(data).path)))
            files = write_rows(rows, store, "", uuid.uuid4().hex[:12], dated=True)
            if files:
                paths = [f"{data}/{file.name}" for file in files]
                self._seen.add_files(paths, snapshot_properties=properties, check_duplicate_files=False)
            else:
                self._seen.append(schema(dated=True).empty_table(), snapshot_properties=properties)
        return summed(files)

    def _create(self) -> Any:
        from pyiceberg.transforms import IdentityTransform

        table = self._catalog.create_table(NAME, schema=schema(dated=True))
        with table.update_spec() as update:
            update.add_field(DATE, IdentityTransform(), DATE)
        return self._table()

    def compact(self) -> int:
        """Each date that has several files is written anew, in one snapshot."""
        offsets = self.offsets()
        table = self._seen
        if table is None:
            return 0
        per_date: dict[str, int] = {}
        for task in table.scan().plan_files():
            date = _date(task.file.partition[0])
            per_date[date] = per_date.get(date, 0) + 1
        gone = 0
        properties = _properties(offsets, self.topic_ids())
        for date, files in sorted(per_date.items()):
            if files > 1:
                only = f"{DATE} = '{date}'"
                data = (
                    table.scan(row_filter=only)
                    .to_arrow()
                    .sort_by([("topic", "ascending"), ("partition", "ascending"), ("offset", "ascending")])
                )
                with _told_of_conflicts():
                    table.overwrite(data, overwrite_filter=only, snapshot_properties=properties)
                gone += files - sum(1 for _ in table.scan(row_filter=only).plan_files())
        return gone

    def rows(self, since_ms: int | None = None, until_ms: int | None = None) -> "DataFrame":
        """Spark reads the files of the newest snapshot: the JVM's own Iceberg reader does not work with this Spark."""
        table = self._table()
        if table is None:
            raise TableError(f"{self.folder} is no Iceberg table yet")
        files = [task.file.file_path for task in table.scan().plan_files()]
        return in_range(self._spark.read.parquet(*files), since_ms, until_ms)


def _properties(offsets: Offsets, topic_ids: TopicIds) -> dict[str, str]:
    return {OFFSETS: json.dumps(encode_offsets(offsets)), TOPIC_IDS: json.dumps(dict(topic_ids))}


@contextmanager
def _told_of_conflicts() -> Iterator[None]:
    from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError, ValidationException

    try:
        yield
    except (CommitFailedException, TableAlreadyExistsError, ValidationException) as error:
        raise CommitLost(f"another job has committed to the table meanwhile; nothing was added ({error})") from error


def _date(value: Any) -> str:
    """Iceberg keeps dates as days since 1970."""
    return (dt.date(1970, 1, 1) + dt.timedelta(days=value)).isoformat() if isinstance(value, int) else str(value)
