"""A Delta table: tasks write its files, `deltalake` commits them, and each commit's metadata has the offsets as `horolog.offsets`.

A job that keeps running remembers the version that it has seen, and reads only the log after it.
"""

import datetime as dt
import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from horolog.pipeline.stores.object_stores import Place
from horolog.pipeline.stores.store import Files, files_of, own_files
from horolog.pipeline.tables import delta_commit
from horolog.pipeline.tables.compaction import Bin, Small, bins_of, put_together, rounds
from horolog.pipeline.tables.evolution import NONE, as_spark, beyond, decoded_in, grown_map, lacking, merged, widest
from horolog.pipeline.tables.layout import BY_DATE, DATE, HOUR, Folders
from horolog.pipeline.tables.lock import Lock
from horolog.pipeline.tables.row_files import RowFile, read_rows, schema, summed, write_rows
from horolog.pipeline.tables.table import (
    OFFSETS,
    TOPIC_IDS,
    ZONE,
    AddedRows,
    CommitLost,
    Offsets,
    TableError,
    TopicIds,
    commit_properties,
    decode_offsets,
)
from horolog.pipeline.tables.upkeep import Gone, Part, date_of_file, gone, is_old, old_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

LOG = "_delta_log"
_BOUNDS = ("min.timestamp", "max.timestamp")
LOG_RETENTION = "delta.logRetentionDuration"
_HISTORY = (16, 256, None)
"""The number of commits in which the newest offsets are looked for: usually the last one has them."""
_A_MOMENT_MS = 60_000
"""So long may a job take until it is here: no time at all is not an hour."""


class DeltaFolder:
    """A folder, here or in an object store, which refuses a version that already exists."""

    def __init__(self, folder: str | Place, spark: "SparkSession") -> None:
        self._place = folder if isinstance(folder, Place) else None
        self.folder = folder.as_delta_url() if isinstance(folder, Place) else folder.removeprefix("file://")
        self._options = None if self._place is None else self._place.as_delta_options()
        self._spark = spark
        self._files = files_of(folder)
        self._seen: Any = None
        self._said: tuple[int, dict[str, Any]] | None = None
        """The version up to which commits were looked at, and the newest of them with offsets."""
        self.lock = Lock(own_files(folder))

    def __str__(self) -> str:
        return self.folder if self._place is None else self._place.url

    def open(self) -> None:
        from deltalake.exceptions import DeltaError

        if self._place is None and Path(self.folder).is_file():
            raise TableError(f"{self} is not a folder")
        try:
            self._table()
        except DeltaError as error:
            raise TableError(f"{self} is not a Delta table: {error}") from error

    def _table(self) -> Any:
        """None while there is nothing."""
        from deltalake import DeltaTable

        if not any(name.endswith(".json") for name in self._files.names(LOG)):
            return None
        with self._told():
            return DeltaTable(self.folder, storage_options=self._options)

    def _refreshed(self) -> Any:
        """The newest version: reads what follows the version that was seen, or everything if that version is gone."""
        if self._seen is not None and self._files.exists(f"{LOG}/{self._seen.version():020}.json"):
            with self._told():
                self._seen.update_incremental()
            return self._seen
        self._said = None
        return self._table()

    def recover(self) -> None:
        """A commit is whole or not there; `vacuum` removes files that no commit names."""

    def offsets(self) -> Offsets:
        self._seen = self._refreshed()
        if self._seen is None:
            return {}
        found = self._newest(OFFSETS)
        if found is None:
            raise TableError(f"{self} is a Delta table, but no commit names its topics")
        return decode_offsets(found)

    def topic_ids(self) -> TopicIds:
        return self._newest(TOPIC_IDS) or {}

    def _newest(self, name: str) -> Any:
        """What the newest commit with offsets says of this."""
        if self._seen is None:
            return None
        version = self._seen.version()
        if self._said is None or self._said[0] != version:
            self._said = version, _newest_commit(self._seen, self._said)
        found = self._said[1].get(name)
        return json.loads(found) if isinstance(found, str) else found

    def folders(self) -> Folders | None:
        return None if self._seen is None else _folders(self._seen)

    def columns(self) -> "pa.Schema":
        return NONE if self._seen is None else _decoded(self._seen)

    def grown(self, brings: "pa.Schema") -> "pa.Schema":
        found = widest(merged(self.columns(), brings))
        path = grown_map("", self.columns(), found)
        if path is not None:
            raise TableError(
                f"the column {path} is a map whose values get new fields, which Delta's readers do not support; nothing was"
                " written; use another table, or the format iceberg or parquet"
            )
        return found

    def append(
        self,
        rows: "DataFrame",
        offsets: Offsets,
        topic_ids: TopicIds | None = None,
        folders: Folders | None = None,
    ) -> AddedRows:
        folders = self.folders() or folders or BY_DATE
        columns = self.grown(decoded_in(rows, folders.names))
        with self._told():
            if self._seen is None:
                self._seen = self._create(folders, columns)
            elif columns != self.columns() or lacking(schema(folders), _names_of_columns(self._seen)):
                self._grow(schema(folders, columns))
            files = write_rows(rows, self._files, "", uuid.uuid4().hex[:12], folders, schema(None, columns))
            self._seen.create_write_transaction(
                [_added(file, folders) for file in files],
                mode="append",
                schema=self._seen.schema(),
                partition_by=list(folders.names),
                commit_properties=_properties(offsets, topic_ids or {}),
            )
            self._seen.load_as_version(self._seen.version() + 1)  # ours, and not one that another job has made after it
            self._said = self._seen.version(), commit_properties(offsets, topic_ids or {})
        return summed(files)

    def _grow(self, columns: "pa.Schema") -> None:
        """A version of its own, with unchanged offsets."""
        from deltalake import write_deltalake

        version = self._seen.version() + 1
        said = _properties(decode_offsets(self._newest(OFFSETS)), self.topic_ids())
        write_deltalake(self._seen, columns.empty_table(), mode="append", schema_mode="merge", commit_properties=said)
        self._seen.load_as_version(version)
        if _decoded(self._seen) != beyond(columns, _folders(self._seen).names):
            raise TableError(f"{self} has columns of types that Delta cannot widen; use another table")

    def _create(self, folders: Folders, columns: "pa.Schema") -> Any:
        from deltalake import DeltaTable

        return DeltaTable.create(
            self.folder,
            schema(folders, columns),
            mode="error",
            partition_by=list(folders.names),
            configuration={ZONE: folders.zone},
            storage_options=self._options,
            raise_if_key_not_exists=False,
            commit_properties=_properties({}, {}),
        )

    def compact(self) -> int:
        offsets = self.offsets()
        if self._seen is None:
            return 0
        if not delta_commit.is_plain(self._seen.protocol()):
            with self._told():  # another engine has enabled features that only Delta's own library knows
                found = self._seen.optimize.compact(commit_properties=_properties(offsets, self.topic_ids()))
            return int(found["numFilesRemoved"]) - int(found["numFilesAdded"])
        folders, said = _folders(self._seen), commit_properties(offsets, self.topic_ids())
        small = [Small(folders.number_of(part.name), part.name, part.size_bytes) for part in _parts_of(self._seen)]
        return sum(
            self._compact(some, {each.name: each for each in small}, said)
            for some in rounds(bins_of(small), self._spark)
        )

    def _compact(self, bins: Sequence[Bin], there: Mapping[str, Small], said: Mapping[str, str]) -> int:
        """One version, in which files replace these."""
        folders, decoded = _folders(self._seen), _decoded(self._seen)
        rows = put_together(self._spark, self._files, bins, folders, decoded)
        written = write_rows(rows, self._files, "", uuid.uuid4().hex[:12], folders, schema(None, decoded))
        removed = [
            delta_commit.File(name, there[name].size_bytes, _partition(folders, each.folder))
            for each in bins
            for name in each.names
        ]
        added = [
            delta_commit.File(
                each.name, each.size_bytes, _partition(folders, folders.number_of(each.name)), _stats(each)
            )
            for each in written
        ]
        version = self._seen.version() + 1
        commit = delta_commit.encode(_now_ms(), version, said, removed, added)
        if not self._files.create(f"{LOG}/{delta_commit.name_of(version)}", commit):
            raise CommitLost(
                f"another job has committed version {version} in the meantime; these files were not merged"
            )
        with self._told():
            self._seen.load_as_version(version)
        return len(removed) - len(added)

    def rows(self, since_ms: int | None = None, until_ms: int | None = None) -> "DataFrame":
        """The files that the newest version names are read: the JVM's own Delta reader does not work with this Spark."""
        table, names = self._named(since_ms, until_ms)
        folders, decoded = _folders(table), _decoded(table)
        if self._place is not None or not names:
            rows = read_rows(self._spark, self._files, names, folders, (since_ms, until_ms), decoded)
        else:
            paths = [f"{self.folder}/{name}" for name in names]
            reader = self._spark.read.schema(as_spark(schema(folders, decoded)))
            rows = reader.option("basePath", self.folder).parquet(*paths)
        return folders.in_range(rows, since_ms, until_ms)

    def files(self, since_ms: int | None = None, until_ms: int | None = None) -> list[tuple[Files, list[str]]]:
        _, names = self._named(since_ms, until_ms)
        return [(self._files, names)]

    def _named(self, since_ms: int | None, until_ms: int | None) -> tuple[Any, list[str]]:
        """The newest version, and its files of a range of times."""
        table = self._table()
        if table is None:
            raise TableError(f"{self} is not a Delta table yet")
        with self._told():
            return table, _names(table, since_ms, until_ms)

    # -- upkeep

    def expire(self, keep_from: dt.date, *, dry_run: bool = False) -> Gone:
        """Whole files by their partition, which Delta removes without opening them."""
        offsets = self.offsets()
        found = gone(part for part in _parts_of(self._seen) if is_old(part.date, keep_from))
        if found.files and not dry_run:
            with self._told():
                self._seen.delete(old_rows(keep_from), commit_properties=_properties(offsets, self.topic_ids()))
        return found

    def forget_versions(self, before_ms: int, *, dry_run: bool = False) -> int:
        """The log before a checkpoint of the newest version is deleted; how long it is kept becomes a property of the table."""
        offsets = self.offsets()
        old = self._versions(before_ms)
        if old and not dry_run:
            kept = {LOG_RETENTION: f"interval {max(0, _now_ms() - before_ms) // 1000} seconds"}
            with self._told():  # the newest commit then has the offsets, whichever engine made the one before
                self._seen.alter.set_table_properties(kept, commit_properties=_properties(offsets, self.topic_ids()))
                self._seen.create_checkpoint()
                self._seen.cleanup_metadata()
            return len(old - self._versions(before_ms))
        return len(old)

    def _versions(self, before_ms: int) -> set[int]:
        """Those that were committed before that time, without the newest that was seen."""
        newest = -1 if self._seen is None else self._seen.version()
        found = ((name.rpartition("/")[2], each) for name, each in self._files.listed(LOG).items())
        versions = {int(name[:-5]) for name, each in found if _is_version(name) and each.changed_ms < before_ms}
        return {version for version in versions if version < newest}

    def vacuum(self, before_ms: int, *, dry_run: bool = False) -> Gone:
        """Delta's own, in its full mode: files of tasks that died are in no commit. It counts in hours."""
        offsets = self.offsets()
        if self._seen is None:
            raise TableError(f"{self} is not a Delta table yet")
        hours = -(-max(0, _now_ms() - before_ms - _A_MOMENT_MS) // 3_600_000)
        mode: dict[str, Any] = {"retention_hours": hours, "enforce_retention_duration": False, "full": True}
        listed = self._files.listed("")
        with self._told():  # its commits also fence an owner of the lock that was taken for dead
            names = [unquote(str(name)) for name in self._seen.vacuum(dry_run=True, **mode)]
            if names and not dry_run:
                self._seen.vacuum(dry_run=False, commit_properties=_properties(offsets, self.topic_ids()), **mode)
        size = sum(listed[name].size_bytes for name in names if name in listed)
        return Gone(len(names), 0, size, tuple(sorted({date_of_file(name) for name in names})))

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Raises conflicts as CommitLost, and errors of an object store as StoreError."""
        from deltalake.exceptions import CommitFailedError, DeltaError

        try:
            yield
        except CommitFailedError as error:
            said = str(error).partition("\n")[0]
            raise CommitLost(
                f"another job has committed to the table in the meantime; nothing was added ({said})"
            ) from None
        except (DeltaError, OSError) as error:
            if "already exists" in str(error):
                raise CommitLost("another job has created the table in the meantime; nothing was added") from error
            if self._place is None:
                raise
            raise self._place.fault(error) from None


def _parts_of(table: Any) -> list[Part]:
    import pyarrow as pa

    if table is None:
        return []
    added = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return [
        Part(each["path"], str(each[f"partition.{DATE}"]), each["size_bytes"], each["num_records"] or 0)
        for each in added
    ]


def _newest_commit(table: Any, said: tuple[int, dict[str, Any]] | None) -> dict[str, Any]:
    """The newest commit with offsets, empty if there is none; of the commits up to a version that is `said` already."""
    known, before = (-1, {}) if said is None or said[0] > table.version() else said
    for limit in (table.version() - known,) if known >= 0 else _HISTORY:
        for commit in table.history(limit):
            if commit.get(OFFSETS) is not None:
                return dict(commit)
    return before


def _names(table: Any, since_ms: int | None, until_ms: int | None) -> list[str]:
    """The files that may have rows of that range, by the times that the log has of them: in milliseconds, maybe rounded down."""
    import pyarrow as pa

    found = pa.table(table.get_add_actions(flatten=True))
    times = [found[name] if name in found.column_names else pa.nulls(len(found)) for name in _BOUNDS]
    epoch, a_ms = dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.timedelta(milliseconds=1)
    since, until = (None if ms is None else epoch + ms * a_ms for ms in (since_ms, until_ms))
    return [
        str(path)
        for path, first, last in zip(*(column.to_pylist() for column in (found["path"], *times)), strict=True)
        if not (since and last and last + a_ms < since) and not (until and first and first >= until)
    ]


def _folders(table: Any) -> Folders:
    found = table.metadata()
    return Folders(HOUR if HOUR in found.partition_columns else DATE, found.configuration.get(ZONE, "UTC"))


def _decoded(table: Any) -> "pa.Schema":
    import pyarrow as pa

    return beyond(pa.schema(table.schema().to_arrow()), _folders(table).names)


def _names_of_columns(table: Any) -> list[str]:
    return [field.name for field in table.schema().fields]


def _is_version(name: str) -> bool:
    return name.endswith(".json") and name[:-5].isdigit()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _added(file: RowFile, folders: Folders) -> Any:
    """A file as Delta's log has it, with the times that it holds: milliseconds, so the first is rounded down and the last up."""
    from deltalake.transaction import AddAction

    parted = _partition(folders, folders.number_of(file.name))
    return AddAction(file.name, file.size_bytes, parted, _now_ms(), data_change=True, stats=_stats(file))


def _stats(file: RowFile) -> str:
    first, last = (_moment(ms) for ms in (file.first_us // 1000, -(-file.last_us // 1000)))
    stats = {"numRecords": file.records, "minValues": {"timestamp": first}, "maxValues": {"timestamp": last}}
    return json.dumps(stats | {"nullCount": {"timestamp": 0}})


def _partition(folders: Folders, number: int) -> dict[str, str]:
    return dict(zip(folders.names, map(str, folders.values(number)), strict=True))


def _moment(ms: int) -> str:
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _properties(offsets: Offsets, topic_ids: TopicIds) -> Any:
    """Commits the version after the one that was seen, or fails: to Delta, appends of two jobs do not conflict."""
    from deltalake import CommitProperties

    return CommitProperties(custom_metadata=commit_properties(offsets, topic_ids), max_commit_retries=0)
