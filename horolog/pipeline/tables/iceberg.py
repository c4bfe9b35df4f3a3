"""An Iceberg table: tasks write its files, `pyiceberg` adds them to a table of a catalogue: one in SQLite in the folder, or any other.

Each snapshot's summary has `horolog.offsets`.
"""

import datetime as dt
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from horolog.pipeline.stores.object_stores import Place
from horolog.pipeline.stores.store import Files, files_of, own_files
from horolog.pipeline.tables.catalogues import CatalogueTable, place_at, told_of_conflicts
from horolog.pipeline.tables.compaction import Bin, Small, bins_of, put_together, rounds
from horolog.pipeline.tables.evolution import NONE, as_spark, beyond, decoded_in, lacking, merged
from horolog.pipeline.tables.layout import BY_DATE, DATE, HOUR, Folders
from horolog.pipeline.tables.lock import Lock
from horolog.pipeline.tables.row_files import read_rows, schema, summed, write_rows
from horolog.pipeline.tables.table import (
    OFFSETS,
    TOPIC_IDS,
    ZONE,
    AddedRows,
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

NAME = "horolog.records"


class IcebergFolder:
    """A folder with its catalogue, or a table that another catalogue knows."""

    def __init__(self, where: str | Place | CatalogueTable, spark: "SparkSession") -> None:
        if isinstance(where, Place):
            raise TableError(
                f"{where.url}: an Iceberg table in an object store needs a catalogue; use --catalog and --table"
            )
        self._known = where if isinstance(where, CatalogueTable) else None
        self.folder = None if isinstance(where, CatalogueTable) else Path(where.removeprefix("file://")).resolve()
        self._name = NAME if self._known is None else self._known.table
        self._spark = spark
        self._catalog: Any = None
        self._seen: Any = None
        self._lock: Lock | None = None
        self._location = None if self._known is None else self._known.location

    def __str__(self) -> str:
        return str(self.folder or self._known)

    def open(self) -> None:
        if self._known is not None:
            self._catalog = self._known.load(self._spark)
            with self._told():
                self._table()
            return
        from pyiceberg.catalog.sql import SqlCatalog

        assert self.folder is not None
        if self.folder.exists() and not self.folder.is_dir():
            raise TableError(f"{self.folder} is not a folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        uri = f"sqlite:///{self.folder / 'catalog.db'}"
        warehouse = f"file://{self.folder}"  # unchanged: pyiceberg decodes no path
        self._catalog = SqlCatalog("horolog", uri=uri, warehouse=warehouse)
        self._catalog.create_namespace_if_not_exists("horolog")

    @property
    def lock(self) -> Lock:
        """In the table's own folder. For a table that does not exist yet the catalogue says where it will be, and it is created there."""
        if self._lock is None:
            with self._told():
                self._lock = Lock(own_files(self._place() if self.folder is None else str(self.folder)))
        return self._lock

    def _place(self) -> str | Place:
        """Where the table's files are, or will be."""
        table = self._seen or self._table()
        if table is None:
            assert self._known is not None
            if not self._catalog.namespace_exists(self._known.namespace):
                self._catalog.create_namespace_if_not_exists(self._known.namespace)
            staged = self._catalog.create_table_transaction(self._name, schema=schema(BY_DATE), location=self._location)
            table = staged.table_metadata and staged._table  # noqa: SLF001 - nothing else says where it will be
            self._location = table.location()
        return place_at(table.location(), self._spark, table.io.properties)

    @contextmanager
    def _told(self) -> Iterator[None]:
        with told_of_conflicts() if self._known is None else self._known.told():
            yield

    def recover(self) -> None:
        """A snapshot is whole or not there."""

    def _table(self) -> Any:
        """None while there is nothing."""
        if not self._catalog.table_exists(self._name):
            return None
        return self._catalog.load_table(self._name)

    def offsets(self) -> Offsets:
        with self._told():
            self._seen = self._table()
        return decode_offsets(self._newest(OFFSETS))

    def topic_ids(self) -> TopicIds:
        found: TopicIds = self._newest(TOPIC_IDS)
        return found

    def _newest(self, name: str) -> Any:
        """What the newest snapshot with offsets says of this."""
        said = next((said for snapshot in self._ancestors() if OFFSETS in (said := _said(snapshot))), {})
        return json.loads(said.get(name, "{}"))

    def _ancestors(self) -> Iterator[Any]:
        """The snapshots from the newest back."""
        snapshot = None if self._seen is None else self._seen.current_snapshot()
        while snapshot is not None:
            yield snapshot
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else self._seen.snapshot_by_id(parent)

    def folders(self) -> Folders | None:
        return None if self._seen is None else _folders(self._seen)

    def columns(self) -> "pa.Schema":
        return NONE if self._seen is None else _decoded(self._seen)

    def grown(self, brings: "pa.Schema") -> "pa.Schema":
        return merged(self.columns(), brings)

    def append(
        self,
        rows: "DataFrame",
        offsets: Offsets,
        topic_ids: TopicIds | None = None,
        folders: Folders | None = None,
    ) -> AddedRows:
        properties = commit_properties(offsets, topic_ids or {})
        import pyarrow as pa

        folders = self.folders() or folders or BY_DATE
        has = self.columns()
        columns = self.grown(decoded_in(rows, folders.names))
        wanted = schema(folders, columns)
        with self._told():
            if self._seen is None:
                self._seen, has = self._create(folders, columns), columns
            store, data = _data_of(self._seen, self._spark)
            files = write_rows(rows, store, "", uuid.uuid4().hex[:12], folders, wanted)
            _try_once(self._seen)
            with self._seen.transaction() as commit:
                more = lacking(wanted, self._seen.schema().column_names)
                if columns != has or more:
                    with commit.update_schema() as update:
                        update.union_by_name(pa.schema([*more, *columns]))
                if files:
                    paths = [f"{data}/{file.name}" for file in files]
                    commit.add_files(paths, snapshot_properties=properties, check_duplicate_files=False)
                else:
                    commit.append(wanted.empty_table(), snapshot_properties=properties)
        return summed(files)

    def _create(self, folders: Folders, columns: "pa.Schema") -> Any:
        from pyiceberg.transforms import IdentityTransform

        creating = self._catalog.create_table_transaction(
            self._name, schema=schema(folders, columns), location=self._location, properties={ZONE: folders.zone}
        )
        with creating as creation, creation.update_spec() as update:
            for name in folders.names:
                update.add_field(name, IdentityTransform(), name)
        return self._table()

    def compact(self) -> int:
        offsets = self.offsets()
        if self._seen is None:
            return 0
        properties = commit_properties(offsets, self.topic_ids())
        with self._told():
            tasks = _whole_files(self, self._seen)
        there = {task.file.file_path: task.file for task in tasks}
        folders = _folders(self._seen)
        small = [Small(_number(folders, file.partition), path, file.file_size_in_bytes) for path, file in there.items()]
        return sum(self._compact(some, there, properties) for some in rounds(bins_of(small), self._spark))

    def _compact(self, bins: Sequence[Bin], there: Mapping[str, Any], properties: dict[str, str]) -> int:
        """One snapshot, in which files replace these."""
        from pyiceberg.io.pyarrow import parquet_file_to_data_file

        table = self._seen
        folders, decoded = _folders(table), _decoded(table)
        place = place_at(table.location(), self._spark, table.io.properties)
        store, data = _data_of(self._seen, self._spark)
        files, _ = _in_bucket(place, [], self._spark)
        named = [Bin(each.folder, tuple(_in_bucket(place, list(each.names), self._spark)[1])) for each in bins]
        rows = put_together(self._spark, files, named, folders, decoded)
        written = write_rows(rows, store, "", uuid.uuid4().hex[:12], folders, schema(folders, decoded))
        old = [there[path] for each in bins for path in each.names]
        with self._told():
            _try_once(table)
            with table.transaction() as commit:
                if commit.table_metadata.name_mapping() is None:  # maps the columns of added files by name
                    mapping = commit.table_metadata.schema().name_mapping.model_dump_json()
                    commit.set_properties(**{"schema.name-mapping.default": mapping})
                metadata = commit.table_metadata
                with commit.update_snapshot(snapshot_properties=properties).overwrite() as change:
                    for each in old:
                        change.delete_data_file(each)
                    for file in written:
                        change.append_data_file(parquet_file_to_data_file(table.io, metadata, f"{data}/{file.name}"))
        return len(old) - len(written)

    def rows(self, since_ms: int | None = None, until_ms: int | None = None) -> "DataFrame":
        """The files of the newest snapshot are read: the JVM's own Iceberg reader does not work with this Spark."""
        table, files = self._named(since_ms, until_ms)
        place = place_at(table.location(), self._spark, table.io.properties)
        folders, decoded = _folders(table), _decoded(table)
        if isinstance(place, Place) or not files:
            bucket, names = _in_bucket(place, files, self._spark)
            rows = read_rows(self._spark, bucket, names, folders, (since_ms, until_ms), decoded)
        else:
            rows = self._spark.read.schema(as_spark(schema(folders, decoded))).parquet(*files)
        return folders.in_range(rows, since_ms, until_ms)

    def files(self, since_ms: int | None = None, until_ms: int | None = None) -> list[tuple[Files, list[str]]]:
        table, files = self._named(since_ms, until_ms)
        place = place_at(table.location(), self._spark, table.io.properties)
        if isinstance(place, Place):
            return [_in_bucket(place, files, self._spark)]
        return [(files_of("/"), [str(place_at(file, self._spark, {})).lstrip("/") for file in files])]

    def _named(self, since_ms: int | None, until_ms: int | None) -> tuple[Any, list[str]]:
        """The newest snapshot, and its files of a range of times."""
        with self._told():
            table = self._table()
            if table is None:
                raise TableError(f"{self} is not an Iceberg table yet")
            tasks = _whole_files(self, table, _range(since_ms, until_ms))
        return table, [task.file.file_path for task in tasks]

    # -- upkeep

    def expire(self, keep_from: dt.date, *, dry_run: bool = False) -> Gone:
        """Whole files by their partition."""
        offsets = self.offsets()
        found = gone(part for part in _parts_of(self._seen) if is_old(part.date, keep_from))
        if found.files and not dry_run:
            with self._told():
                _try_once(self._seen)
                self._seen.delete(old_rows(keep_from), snapshot_properties=commit_properties(offsets, self.topic_ids()))
        return found

    def forget_versions(self, before_ms: int, *, dry_run: bool = False) -> int:
        """Snapshots, except those that are needed to find the offsets."""
        table = self._seen = self._table()
        if table is None:
            return 0
        kept = set()
        for snapshot in self._ancestors():
            kept.add(snapshot.snapshot_id)
            if OFFSETS in _said(snapshot):
                break
        heads = {ref.snapshot_id for ref in table.metadata.refs.values()}
        old = [
            each.snapshot_id
            for each in table.snapshots()
            if each.timestamp_ms < before_ms and each.snapshot_id not in kept | heads
        ]
        if old and not dry_run:
            with self._told():
                _try_once(table)
                table.maintenance.expire_snapshots().by_ids(old).commit()
        return len(old)

    def vacuum(self, before_ms: int, *, dry_run: bool = False) -> Gone:
        """Delete files that no snapshot names: of dead tasks, and of expired snapshots."""
        with self._told():
            table = self._table()
            if table is None:
                raise TableError(f"{self} is not an Iceberg table yet")
            files = files_of(place_at(table.location(), self._spark, table.io.properties))
            # before snapshots are read: later ones need none of these
            listed = files.listed("data") | files.listed("metadata")
            named = _below(table.location(), _named(self._table()))
        orphans = [name for name, each in listed.items() if name not in named and each.changed_ms < before_ms]
        if not dry_run:
            for name in orphans:
                files.remove(name)
        size = sum(listed[name].size_bytes for name in orphans)
        dates = {date_of_file(name) for name in orphans if f"{DATE}=" in name}
        return Gone(len(orphans), 0, size, tuple(sorted(dates)))


def _parts_of(table: Any) -> list[Part]:
    files = [] if table is None else [task.file for task in table.scan().plan_files()]
    return [
        Part(file.file_path, _date(file.partition[0]), file.file_size_in_bytes, file.record_count) for file in files
    ]


def _named(table: Any) -> Iterator[str]:
    """All files that the table's metadata names, for every snapshot that it has."""
    metadata = table.metadata
    yield table.metadata_location
    yield from (entry.metadata_file for entry in metadata.metadata_log)
    yield from (each.statistics_path for each in (*metadata.statistics, *metadata.partition_statistics))
    manifests: dict[str, Any] = {}
    for snapshot in metadata.snapshots:
        yield snapshot.manifest_list
        manifests |= {manifest.manifest_path: manifest for manifest in snapshot.manifests(table.io)}
    for path, manifest in manifests.items():
        yield path
        yield from (entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io))


def _below(location: str, paths: Iterator[str]) -> set[str]:
    """The names from there on, whichever of a store's schemes a path uses: s3 or s3a."""
    root = _without_scheme(location).rstrip("/")
    return {_without_scheme(path).removeprefix(f"{root}/") for path in paths}


def _without_scheme(path: str) -> str:
    return path.partition("://")[2] or path.removeprefix("file:")


def _data_of(table: Any, spark: "SparkSession") -> tuple[Files, str]:
    """The folder of its rows, and what that is called."""
    data = f"{table.location().rstrip('/')}/data"
    return files_of(place_at(data, spark, table.io.properties)), data


def _whole_files(name: object, table: Any, row_filter: str = "true") -> list[Any]:
    """The files of the table, as its scan plans them; TableError where others beside them say that rows are deleted."""
    tasks = list(table.scan(row_filter=row_filter).plan_files())
    if any(task.delete_files for task in tasks):
        raise TableError(f"{name} has files with deleted rows; compact it with an engine that applies them")
    return tasks


def _said(snapshot: Any) -> dict[str, str]:
    return snapshot.summary.additional_properties if snapshot.summary else {}


def _folders(table: Any) -> Folders:
    names = {field.name for field in table.spec().fields}
    return Folders(HOUR if HOUR in names else DATE, table.properties.get(ZONE, "UTC"))


def _decoded(table: Any) -> "pa.Schema":
    return beyond(table.schema().as_arrow(), _folders(table).names)


def _number(folders: Folders, partition: Any) -> int:
    """Of the folder of a file, by what its partition says."""
    values = [_date(partition[0]), *(partition[place] for place in range(1, len(folders.names)))]
    return folders.number_of("/".join(f"{name}={value}" for name, value in zip(folders.names, values, strict=True)))


def _try_once(table: Any) -> None:
    """An overtaken commit is not retried on top of the other, which may have the same rows. A commit resets this."""
    table.metadata.properties["commit.retry.num-retries"] = "0"


def _range(since_ms: int | None, until_ms: int | None) -> str:
    """As a filter, by which files are chosen."""
    bounds = ((">=", since_ms), ("<", until_ms))
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    said = [
        f"timestamp {sign} '{(epoch + dt.timedelta(milliseconds=ms)).isoformat()}'"
        for sign, ms in bounds
        if ms is not None
    ]
    return " and ".join(said) or "true"


def _in_bucket(place: str | Place, files: list[str], spark: "SparkSession") -> tuple[Files, list[str]]:
    """The bucket, or this machine, and the files by their names there: they need not be below the table's location."""
    if not isinstance(place, Place):
        return files_of(place), [str(place_at(file, spark, {})) for file in files]
    bucket = replace(place, url=f"{place.scheme}://{place.bucket}", folder="")
    return files_of(bucket), [urlsplit(file).path.strip("/") for file in files]


def _date(value: Any) -> str:
    """Iceberg keeps dates as days since 1970."""
    return (dt.date(1970, 1, 1) + dt.timedelta(days=value)).isoformat() if isinstance(value, int) else str(value)
