"""A table of plain Parquet files in folders by date, with a log of commits that makes each run whole or nothing.

    <folder>/date=2026-11-17/<commit>-<task>-<n>.parquet     rows; any reader of Parquet reads the folder
    <folder>/_horolog/commits/<commit>.json                  what belongs to the table (format: `commits`)
    <folder>/_horolog/lock/                                  who writes to it (format: `lock`)
    <folder>/_horolog/staging/<commit>-<token>/date=.../     files on their way

Tasks write rows into a staging folder that nobody else uses, and sync them. Then the commit is made, if no other has its number: from
there on its files are part of the table. Then they are moved into place, and those that it removes are deleted. A start does that again
for every commit whose staging is still there. Staging without a commit is thrown away, but first an empty commit takes the number
that it could still have got: so an owner that was taken for dead and is not can commit nothing whose files are gone.

The folder may be one of an object store: a conditional write and a copy stand there for a hard link and a rename.

`rows` reads the files that commits name, wherever they are on their way, so it sees whole commits only. One who reads the plain folder
may see a part of the newest commit while its files are moved, and rows twice while `compact` puts files in the place of others.
Names that begin with an underscore are passed over by Spark and its kin. `checkpoint` puts `_horolog` elsewhere on the same file
system, or in the same bucket.
"""

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from horolog.pipeline.object_stores import Place
from horolog.pipeline.tables import row_files
from horolog.pipeline.tables.commits import Commit, CommitLog
from horolog.pipeline.tables.lock import Lock
from horolog.pipeline.tables.row_files import RowFile, read_rows, summed, write_rows
from horolog.pipeline.tables.store import Files, files_of
from horolog.pipeline.tables.table import (
    DATE,
    OWN,
    ROWS,
    CommitLost,
    Offsets,
    TableError,
    TopicIds,
    Written,
    date_of,
    in_range,
    with_date,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ON_THE_WAY_SECONDS = 5.0
"""So long a reader waits for the files of a commit to get into place."""
STAGING = "staging"


class ParquetTable:
    """One folder. Rows written go on from the commit that was the newest when `offsets` was asked for."""

    def __init__(self, folder: str | Place, spark: "SparkSession", checkpoint: str | Place | None = None) -> None:
        self.folder = folder if isinstance(folder, Place) else Path(folder.removeprefix("file://"))
        self._spark = spark
        self._files = files_of(folder)
        self._own = files_of(_own(folder) if checkpoint is None else _beside(folder, checkpoint))
        self._log = CommitLog(self._own)
        self._seen = 0
        self.lock = Lock(self._own)

    def __str__(self) -> str:
        return self.folder.url if isinstance(self.folder, Place) else str(self.folder)

    def open(self) -> None:
        if isinstance(self.folder, Path) and self.folder.exists() and not self.folder.is_dir():
            raise TableError(f"{self} is no folder")
        self._seen = self._log.newest
        if not self._seen and any(name.startswith(f"{DATE}=") for name in self._files.folders("")):
            raise TableError(f"{self} has Parquet files, but no log of commits says which topics they are of")

    def recover(self) -> None:
        self._seen = self._log.newest
        left = self._put_all_in_place()
        if left:
            self._commit(Commit(self._seen + 1, self.offsets(), self.topic_ids()))
            for name in self._put_all_in_place():
                self._own.remove_folder(f"{STAGING}/{name}")

    def _put_all_in_place(self) -> list[str]:
        """Finish the commits whose files are on their way still; the staging folders that are no commit's."""
        by_commit: dict[int, list[str]] = {}
        for name in self._own.folders(STAGING):
            by_commit.setdefault(int(name.partition("-")[0]), []).append(name)
        left = []
        for number, names in by_commit.items():
            commit = self._log.read(number) if number <= self._log.newest else None
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
        return self._log.read(self._seen) if self._seen else Commit(0, {}, {})

    def append(self, rows: "DataFrame", offsets: Offsets, topic_ids: TopicIds | None = None) -> Written:
        staging = self._new_staging()
        written = self._write(rows, staging)
        done = summed(written)
        names = [one.name.removeprefix(f"{STAGING}/{staging}/") for one in written]
        self._commit(Commit(self._seen + 1, offsets, topic_ids or {}, names, [], staging, done.records))
        return done

    def _write(self, rows: "DataFrame", staging: str) -> list[RowFile]:
        return write_rows(rows, self._own, f"{STAGING}/{staging}", staging.partition("-")[0])

    def compact(self) -> int:
        """One commit for each date that has several small files."""
        gone = 0
        self._seen = self._log.newest
        sizes = self._files.files("")
        per_date: dict[str, dict[str, int]] = {}
        for name in sorted(self._log.files(self._seen)):
            if name not in sizes:
                raise TableError(f"{self} lacks {name}, which a commit names")
            if sizes[name] < row_files.TARGET_FILE_BYTES // 2:
                per_date.setdefault(name.partition("/")[0], {})[name] = sizes[name]
        for small in per_date.values():
            if len(small) > 1:
                gone += self._compact_date(small)
        return gone

    def _compact_date(self, small: Mapping[str, int]) -> int:
        staging = self._new_staging()
        rows = self._rows_of(self._files, small)
        parts = max(1, -(-sum(small.values()) // row_files.TARGET_FILE_BYTES))
        written = self._write(rows.coalesce(parts), staging)
        names = [one.name.removeprefix(f"{STAGING}/{staging}/") for one in written]
        newest = self._newest()
        self._commit(Commit(self._seen + 1, newest.offsets, newest.ids, names, sorted(small), staging))
        return len(small) - len(names)

    def rows(self, since_ms: int | None = None, until_ms: int | None = None) -> "DataFrame":
        newest = self._log.newest
        if not newest:
            raise TableError(f"{self} is no table of ours yet")
        first, last = (None if ms is None else f"{DATE}={date_of(ms)}" for ms in (since_ms, until_ms))
        wanted = [
            name
            for name in sorted(self._log.files(newest))
            if (first is None or name.partition("/")[0] >= first) and (last is None or name.partition("/")[0] <= last)
        ]
        staging = f"{STAGING}/{self._log.read(newest).staging}"
        there, on_the_way = self._places_of(wanted, staging)
        rows = self._rows_of(self._files, there, since_ms, until_ms)
        if on_the_way:
            rows = rows.unionByName(self._rows_of(self._own, on_the_way, since_ms, until_ms))
        return in_range(rows, since_ms, until_ms)

    def _rows_of(
        self, files: Files, names: Iterable[str], since_ms: int | None = None, until_ms: int | None = None
    ) -> "DataFrame":
        """Spark's own reader needs more than pip's packages for an object store; tasks of ours read there."""
        if isinstance(self.folder, Place):
            return read_rows(self._spark, files, dict.fromkeys(names, 0), since_ms, until_ms)
        root: Any = files
        paths = [str(root.root / name) for name in names]
        return with_date(self._spark.read.parquet(*paths) if paths else self._spark.createDataFrame([], ROWS))

    def _places_of(self, names: Sequence[str], staging: str) -> tuple[list[str], list[str]]:
        """The files in place, and those on their way there if whoever committed them has died."""
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

    # -- commits

    def _new_staging(self) -> str:
        return f"{self._seen + 1:08}-{uuid.uuid4().hex[:12]}"

    def _commit(self, commit: Commit) -> None:
        try:
            self._log.add(commit)
        except CommitLost:
            self._own.remove_folder(f"{STAGING}/{commit.staging}")
            raise
        self._seen = commit.number
        self._put_in_place(commit)

    def _put_in_place(self, commit: Commit) -> None:
        """Again and again the same, until it is done; by two at once, if one was taken for dead."""
        staging = f"{STAGING}/{commit.staging}"

        def put(name: str) -> None:
            if not self._own.move(f"{staging}/{name}", self._files, name) and not self._files.exists(name):
                raise TableError(
                    f"commit {commit.number} has the file {name}, which is neither in its place nor on its way"
                )

        _each(put, commit.add, self._files.at_once)
        _each(self._files.remove, commit.remove, self._files.at_once)
        if commit.staging:
            self._own.remove_folder(staging)


def plain_rows(spark: "SparkSession", place: str | Place) -> "DataFrame":
    """The rows of all files below a folder, whatever commits say."""
    if not isinstance(place, Place):
        return spark.read.parquet(place)
    files = files_of(place)
    names = {name: size for name, size in files.files("").items() if name.startswith(f"{DATE}=")}
    return read_rows(spark, files, names)


def _each(work: Callable[[str], None], names: Sequence[str], at_once: int) -> None:
    if at_once == 1:
        for name in names:
            work(name)
        return
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(work, names))


def _own(folder: str | Place) -> str | Place:
    return folder / OWN if isinstance(folder, Place) else str(Path(folder.removeprefix("file://")) / OWN)


def _beside(folder: str | Place, checkpoint: str | Place) -> str | Place:
    """Files are moved from the one to the other, so both are of the same kind."""
    pair = (folder, checkpoint)
    buckets = {each.bucket if isinstance(each, Place) else None for each in pair}
    if len(buckets) > 1:
        urls = [each.url if isinstance(each, Place) else each for each in pair]
        raise TableError(
            f"the checkpoint {urls[1]} has to be where {urls[0]} is: in the same bucket, or on the same disk"
        )
    return checkpoint
