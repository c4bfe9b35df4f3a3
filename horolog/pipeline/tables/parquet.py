"""A table of plain Parquet files in folders by date, with a log of commits that makes each run whole or nothing.

    <folder>/date=2026-11-17/<commit>-<task>-<n>.parquet     rows, or in date=2026-11-17/hour=08/; any reader of Parquet reads the folder
    <folder>/_horolog/commits/<commit>.json                  what belongs to the table (format: `commits`)
    <folder>/_horolog/lock/                                  who writes to it (format: `lock`)
    <folder>/_horolog/staging/<commit>-<token>/date=.../     files on their way

Tasks write rows into a staging folder of their own, and sync them. Then the commit is created, if no other has its number: from
then on its files are part of the table. Then they are moved into place, and those that it removes are deleted. A start repeats that
for every commit whose staging still exists. Staging without a commit is deleted, but first an empty commit takes the number
that it could still have got: so an owner that only seemed dead cannot commit files that are gone.

The folder may be in an object store: a conditional write and a copy replace the hard link and the rename. In HDFS both are renames.

`rows` reads the files that commits name, in staging or in place, so it sees whole commits only. A reader of the plain folder
may see a part of the newest commit while its files are moved, and rows twice while `compact` replaces files.
Spark and similar readers skip names that begin with an underscore. `checkpoint` puts `_horolog` elsewhere on the same file
system, or in the same bucket.
"""

import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from horolog.pipeline.stores.object_stores import Place
from horolog.pipeline.stores.store import Files, files_of, own_files
from horolog.pipeline.tables.commits import Commit, CommitLog
from horolog.pipeline.tables.compaction import Bin, Small, bins_of, put_together, rounds
from horolog.pipeline.tables.evolution import NONE, as_json, as_spark, decoded_in, merged, of_json, widest
from horolog.pipeline.tables.layout import BY_DATE, DATE, HOUR, Folders, in_any_zone
from horolog.pipeline.tables.lock import Lock
from horolog.pipeline.tables.row_files import RowFile, read_rows, schema, summed, write_rows
from horolog.pipeline.tables.table import (
    AddedRows,
    CommitLost,
    Offsets,
    TableError,
    TopicIds,
)
from horolog.pipeline.tables.upkeep import Gone, Part, date_of_file, gone, is_old

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_ON_THE_WAY_SECONDS = 5.0
"""How long a reader waits for the files of a commit to get into place."""
STAGING = "staging"


class ParquetTable:
    """One folder. Rows are committed after the commit that was the newest when `offsets` was called."""

    def __init__(self, folder: str | Place, spark: "SparkSession", checkpoint: str | Place | None = None) -> None:
        self.folder = folder if isinstance(folder, Place) else Path(folder.removeprefix("file://"))
        self._spark = spark
        self._files = files_of(folder)
        self._own = own_files(folder) if checkpoint is None else files_of(_beside(folder, checkpoint))
        self._log = CommitLog(self._own)
        self._seen = 0
        self.lock = Lock(self._own)

    def __str__(self) -> str:
        return self.folder.url if isinstance(self.folder, Place) else str(self.folder)

    def open(self) -> None:
        if isinstance(self.folder, Path) and self.folder.exists() and not self.folder.is_dir():
            raise TableError(f"{self} is not a folder")
        self._seen = self._log.newest
        if not self._seen and any(name.startswith(f"{DATE}=") for name in self._files.folders("")):
            raise TableError(f"{self} has Parquet files, but no log of commits names their topics")

    def recover(self) -> None:
        self._seen = self._log.newest
        left = self._put_all_in_place()
        if left:
            newest = self._newest()
            self._commit(_on(newest, self._seen + 1))
            for name in self._put_all_in_place():
                self._own.remove_folder(f"{STAGING}/{name}")

    def _put_all_in_place(self) -> list[str]:
        """Finish the commits whose files are still being moved; delete the staging folders without a commit."""
        by_commit: dict[int, list[str]] = {}
        for name in self._own.folders(STAGING):
            by_commit.setdefault(int(name.partition("-")[0]), []).append(name)
        left = []
        for number, names in by_commit.items():
            commit = self._log.find(number) if number <= self._log.newest else None
            if commit is not None and commit.staging in names:
                self._put_in_place(commit)
            left += [name for name in names if commit is None or name != commit.staging]
        return left

    def offsets(self) -> Offsets:
        self._seen = self._log.newest
        return self._newest().offsets

    def topic_ids(self) -> TopicIds:
        return self._newest().ids

    def _newest(self) -> Commit:
        if not self._seen:
            return Commit(0, {}, {})
        found = self._log.find(self._seen)
        if found is None:
            raise CommitLost("other jobs have kept committing to the table; nothing of this step was added")
        return found

    def folders(self) -> Folders | None:
        return self._newest().folders if self._seen else None

    def columns(self) -> "pa.Schema":
        return _decoded(self._newest())

    def grown(self, brings: "pa.Schema") -> "pa.Schema":
        return widest(merged(self.columns(), brings))

    def append(
        self,
        rows: "DataFrame",
        offsets: Offsets,
        topic_ids: TopicIds | None = None,
        folders: Folders | None = None,
    ) -> AddedRows:
        staging, folders = _new_staging(self._seen + 1), self.folders() or folders or BY_DATE
        columns = self.grown(decoded_in(rows, folders.names))
        written = self._write(rows, staging, folders, columns)
        done = summed(written)
        names = [one.name.removeprefix(f"{STAGING}/{staging}/") for one in written]
        added = Commit(self._seen + 1, offsets, topic_ids or {}, names, [], staging, done.records)
        self._commit(replace(added, folders=folders, columns=as_json(columns)))
        return done

    def _write(self, rows: "DataFrame", staging: str, folders: Folders, columns: "pa.Schema") -> list[RowFile]:
        prefix = staging.partition("-")[0]
        return write_rows(rows, self._own, f"{STAGING}/{staging}", prefix, folders, schema(None, columns))

    def compact(self) -> int:
        self._seen = self._log.newest
        if not self._seen:
            return 0
        sizes, folders = self._files.files(""), self._newest().folders
        small = []
        for name in self._log.files(self._seen):
            if name not in sizes:
                raise TableError(f"{self} lacks {name}, which a commit names")
            small.append(Small(folders.number_of(name), name, sizes[name]))
        return sum(self._compact(some) for some in rounds(bins_of(small), self._spark))

    def _compact(self, bins: Sequence[Bin]) -> int:
        staging, newest = _new_staging(self._seen + 1), self._newest()
        rows = put_together(self._spark, self._files, bins, newest.folders, _decoded(newest))
        written = self._write(rows, staging, newest.folders, _decoded(newest))
        added = [one.name.removeprefix(f"{STAGING}/{staging}/") for one in written]
        removed = sorted(name for each in bins for name in each.names)
        self._commit(replace(_on(newest, self._seen + 1), add=added, remove=removed, staging=staging))
        return len(removed) - len(added)

    def rows(self, since_ms: int | None = None, until_ms: int | None = None) -> "DataFrame":
        newest, there, on_the_way = self._named(since_ms, until_ms)
        rows = self._rows_of(self._files, there, newest, since_ms, until_ms)
        if on_the_way:
            rows = rows.unionByName(self._rows_of(self._own, on_the_way, newest, since_ms, until_ms))
        return newest.folders.in_range(rows, since_ms, until_ms)

    def files(self, since_ms: int | None = None, until_ms: int | None = None) -> list[tuple[Files, list[str]]]:
        _, there, on_the_way = self._named(since_ms, until_ms)
        return [(self._files, there), (self._own, on_the_way)]

    def _named(self, since_ms: int | None, until_ms: int | None) -> tuple[Commit, list[str], list[str]]:
        """The newest commit, and its files of a range of times, in place or in staging."""
        number = self._log.newest
        if not number:
            raise TableError(f"{self} is not a table of horolog yet")
        newest = self._log.read(number)
        folders = newest.folders
        first, last = (
            None if ms is None else find(ms) for find, ms in ((folders.first, since_ms), (folders.last, until_ms))
        )
        wanted = [
            name
            for name in sorted(self._log.files(number))
            if (first is None or folders.number_of(name) >= first) and (last is None or folders.number_of(name) <= last)
        ]
        return newest, *self._places_of(wanted, f"{STAGING}/{newest.staging}")

    def _rows_of(
        self,
        files: Files,
        names: Iterable[str],
        commit: Commit,
        since_ms: int | None = None,
        until_ms: int | None = None,
    ) -> "DataFrame":
        """Spark's own reader needs more than pip's packages for an object store; tasks of ours read there."""
        if isinstance(self.folder, Place):
            return read_rows(self._spark, files, names, commit.folders, (since_ms, until_ms), _decoded(commit))
        root: Any = files
        paths = [str(root.root / name) for name in names]
        columns, folders = as_spark(schema(None, _decoded(commit))), commit.folders
        rows = self._spark.read.schema(columns).parquet(*paths) if paths else self._spark.createDataFrame([], columns)
        return rows.select("*", *folders.columns(folders.number()))

    def _places_of(self, names: Sequence[str], staging: str) -> tuple[list[str], list[str]]:
        """The files in place, and those in staging if the job that committed them has died."""
        deadline = time.monotonic() + _ON_THE_WAY_SECONDS
        there = set(self._files.files(""))
        while not there.issuperset(names) and time.monotonic() < deadline:
            time.sleep(0.05)
            there = set(self._files.files(""))
        on_the_way = [f"{staging}/{name}" for name in names if name not in there]
        missing = [name for name in on_the_way if not self._own.exists(name)]
        if missing:
            raise TableError(f"{self} lacks {missing[0].removeprefix(staging + '/')}, which a commit names")
        return [name for name in names if name in there], on_the_way

    # -- upkeep

    def expire(self, keep_from: date, *, dry_run: bool = False) -> Gone:
        """A commit that names none of the files of older dates. Its empty staging stays until they are deleted."""
        self._seen = self._log.newest
        names = [name for name in sorted(self._log.files(self._seen)) if is_old(date_of_file(name), keep_from)]
        found = gone(_parts(self._files, names))
        if names and not dry_run:
            staging = _new_staging(self._seen + 1)
            self._own.create(f"{STAGING}/{staging}/expired", b"")
            newest = self._newest()
            self._commit(replace(_on(newest, self._seen + 1), remove=names, staging=staging))
            for folder in sorted({str(PurePosixPath(name).parent) for name in names}, reverse=True):
                self._files.remove_empty(folder)
                self._files.remove_empty(folder.partition("/")[0])
        return found

    def forget_versions(self, before_ms: int, *, dry_run: bool = False) -> int:
        """Delete commits that were made before that time, once a later one names all files; how many."""
        self._seen = self._log.newest
        numbers = self._log.forgettable(before_ms)
        if numbers and not dry_run:
            newest = self._newest()
            if newest.files is None:
                self._commit(_on(newest, self._seen + 1), whole=True)
            self._log.forget(numbers)
        return len(numbers)

    def vacuum(self, before_ms: int, *, dry_run: bool = False) -> Gone:
        """Delete files of rows that no commit names, and unfinished files of ours, if they are that old."""
        listed = self._files.listed("")  # before commits are read: files of later commits are not among these
        self._seen = self._log.newest
        if not self._seen:
            raise TableError(f"{self} is not a table of horolog yet")
        named = self._log.files(self._seen)
        orphans = {
            name: each
            for name, each in listed.items()
            if name.startswith(f"{DATE}=")
            and name.endswith(".parquet")
            and name not in named
            and each.changed_ms < before_ms
        }
        own = self._own.listed("")
        aside = {name: each for name, each in own.items() if name.endswith(".tmp") and each.changed_ms < before_ms}
        if not dry_run:
            _each(self._files.remove, list(orphans), self._files.at_once)
            _each(self._own.remove, list(aside), self._own.at_once)
        size = sum(each.size_bytes for each in (*orphans.values(), *aside.values()))
        return Gone(len(orphans) + len(aside), 0, size, tuple(sorted({date_of_file(name) for name in orphans})))

    # -- commits

    def _commit(self, commit: Commit, *, whole: bool = False) -> None:
        try:
            self._log.add(commit, whole=whole)
        except CommitLost:
            self._own.remove_folder(f"{STAGING}/{commit.staging}")
            raise
        self._seen = commit.number
        self._put_in_place(commit)

    def _put_in_place(self, commit: Commit) -> None:
        """Idempotent; two jobs may run it at once, if one of them seemed dead."""
        staging = f"{STAGING}/{commit.staging}"

        def put(name: str) -> None:
            if not self._own.move(f"{staging}/{name}", self._files, name) and not self._files.exists(name):
                raise TableError(
                    f"commit {commit.number} has the file {name}, which is neither in its place nor waiting to be moved there"
                )

        _each(put, commit.add, self._files.at_once)
        _each(self._files.remove, commit.remove, self._files.at_once)
        if commit.staging:
            self._own.remove_folder(staging)


def _new_staging(number: int) -> str:
    """A folder for the files of that commit alone."""
    return f"{number:08}-{uuid.uuid4().hex[:12]}"


def _parts(files: Files, names: Sequence[str]) -> list[Part]:
    import pyarrow.parquet as pq

    sizes = files.files("") if names else {}
    there = [name for name in names if name in sizes]  # a running job may be moving some
    records: dict[str, int] = {}

    def look(name: str) -> None:
        with files.reader(name) as file:
            records[name] = pq.read_metadata(file).num_rows

    _each(look, there, files.at_once)
    return [Part(name, date_of_file(name), sizes[name], records[name]) for name in there]


def _on(newest: Commit, number: int) -> Commit:
    """A commit that adds nothing to the newest one."""
    return replace(newest, number=number, add=[], remove=[], staging="", records=0, files=None)


def _decoded(commit: Commit) -> "pa.Schema":
    return of_json(commit.columns) if commit.columns else NONE


def plain_rows(
    spark: "SparkSession", place: str | Place, since_ms: int | None = None, until_ms: int | None = None
) -> "DataFrame":
    """The rows of all files below a folder, whatever commits say; in no time zone do dates differ by more than one."""
    if isinstance(place, Place):
        files = files_of(place)
        names = [name for name in files.files("") if name.startswith(f"{DATE}=")]
        folders = Folders(HOUR if any(f"/{HOUR}=" in name for name in names) else DATE)
        rows = read_rows(spark, files, names, folders)
    else:
        rows = spark.read.parquet(place)
    return in_any_zone(rows, since_ms, until_ms)


def _each(work: Callable[[str], None], names: Sequence[str], at_once: int) -> None:
    if at_once == 1:
        for name in names:
            work(name)
        return
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(work, names))


def _beside(folder: str | Place, checkpoint: str | Place) -> str | Place:
    """Files are moved from the one to the other, so both are of the same kind."""
    pair = (folder, checkpoint)
    roots = {each.root if isinstance(each, Place) else None for each in pair}
    if len(roots) > 1:
        urls = [each.url if isinstance(each, Place) else each for each in pair]
        raise TableError(
            f"the checkpoint {urls[1]} has to be in the same bucket or file system as {urls[0]}, or on the same disk"
        )
    return checkpoint
