"""A table of plain Parquet files in folders by date, with a log of commits that makes each run whole or nothing.

    <folder>/date=2026-11-17/<commit>-<n>.parquet            rows; any reader of Parquet reads the folder
    <folder>/_horolog/commits/<commit>.json                  what belongs to the table (format: `commits`)
    <folder>/_horolog/lock/                                  who writes to it (format: `lock`)
    <folder>/_horolog/staging/<commit>-<token>/date=.../     files on their way

Rows are written into a staging folder that nobody else uses, and synced. Then the commit is made, if no other has its number: from there on
its files are part of the table. Then they are renamed into place, and those that it removes are deleted. A start does that again
for every commit whose staging is still there. Staging without a commit is thrown away, but first an empty commit takes the number
that it could still have got: so an owner that was taken for dead and is not can commit nothing whose files are gone.

`rows` reads the files that commits name, wherever they are on their way, so it sees whole commits only. One who reads the plain folder
may see a part of the newest commit while its files are renamed, and rows twice while `compact` puts files in the place of others.
Names that begin with an underscore are passed over by Spark and its kin. `checkpoint` puts `_horolog` elsewhere on the same file system.
"""

import shutil
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from horolog.pipeline.tables.commits import Commit, CommitLog
from horolog.pipeline.tables.lock import Lock
from horolog.pipeline.tables.store import LocalStore, sync
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

TARGET_FILE_BYTES = 256 << 20
"""Files are put together up to about this size."""
_ON_THE_WAY_SECONDS = 5.0
"""So long a reader waits for the files of a commit to get into place."""


class ParquetTable:
    """One folder. Rows written go on from the commit that was the newest when `offsets` was asked for."""

    def __init__(self, folder: str, spark: "SparkSession", checkpoint: str | None = None) -> None:
        self.folder = Path(folder)
        self._spark = spark
        own = Path(checkpoint) if checkpoint is not None else self.folder / OWN
        store = LocalStore(own)
        self._log = CommitLog(store)
        self._staging = own / "staging"
        self._seen = 0
        self.lock = Lock(store)

    def open(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise TableError(f"{self.folder} is no folder")
        self._seen = self._log.newest
        if not self._seen and any(self.folder.glob(f"{DATE}=*/*.parquet")):
            raise TableError(f"{self.folder} has Parquet files, but no log of commits says which topics they are of")

    def recover(self) -> None:
        self._seen = self._log.newest
        left = self._put_all_in_place()
        if left:
            self._commit(Commit(self._seen + 1, self.offsets(), self.topic_ids()))
            for path in self._put_all_in_place():
                shutil.rmtree(path)

    def _put_all_in_place(self) -> list[Path]:
        """Finish the commits whose files are on their way still; the staging folders that are no commit's."""
        staged = sorted(self._staging.glob("*"))
        by_commit: dict[int, list[Path]] = {}
        for path in staged:
            by_commit.setdefault(int(path.name.partition("-")[0]), []).append(path)
        left = []
        for number, paths in by_commit.items():
            commit = self._log.read(number) if number <= self._log.newest else None
            if commit is not None and commit.staging in {path.name for path in paths}:
                self._put_in_place(commit)
            left += [path for path in paths if commit is None or path.name != commit.staging]
        return left

    def offsets(self) -> Offsets:
        self._seen = self._log.newest
        return self._newest().offsets

    def topic_ids(self) -> TopicIds:
        return self._newest().ids

    def _newest(self) -> Commit:
        return self._log.read(self._seen) if self._seen else Commit(0, {}, {})

    def append(self, rows: "DataFrame", offsets: Offsets, topic_ids: TopicIds | None = None) -> Written:
        from pyspark.sql import functions as f

        staging = self._new_staging()
        dated = with_date(rows)
        dated.write.mode("overwrite").partitionBy(DATE).parquet(str(staging))
        files = self._name_files(staging)
        found = self._spark.read.parquet(str(staging)) if files else None
        counted = None if found is None else found.agg(f.count("*"), f.unix_millis(f.max("timestamp"))).collect()[0]
        size = sum((staging / path).stat().st_size for path in files)
        records, last_ms = (0, None) if counted is None else (counted[0], counted[1])
        self._commit(Commit(self._seen + 1, offsets, topic_ids or {}, files, [], staging.name, records))
        return Written(records, size, len(files), last_ms)

    def compact(self) -> int:
        """One commit for each date that has several small files."""
        gone = 0
        self._seen = self._log.newest
        per_date: dict[str, list[Path]] = {}
        for name in sorted(self._log.files(self._seen)):
            path = self.folder / name
            if path.stat().st_size < TARGET_FILE_BYTES // 2:
                per_date.setdefault(path.parent.name, []).append(path)
        for date, small in per_date.items():
            if len(small) > 1:
                gone += self._compact_date(date, small)
        return gone

    def _compact_date(self, date: str, small: list[Path]) -> int:
        staging = self._new_staging()
        size = sum(path.stat().st_size for path in small)
        rows = self._spark.read.parquet(*map(str, small))
        parts = max(1, -(-size // TARGET_FILE_BYTES))
        rows.coalesce(parts).sortWithinPartitions("topic", "partition", "offset").write.mode("overwrite").parquet(
            str(staging / date)
        )
        files = self._name_files(staging)
        removed = [str(path.relative_to(self.folder)) for path in small]
        newest = self._newest()
        self._commit(Commit(self._seen + 1, newest.offsets, newest.ids, files, removed, staging.name))
        return len(removed) - len(files)

    def rows(self, since_ms: int | None = None, until_ms: int | None = None) -> "DataFrame":
        newest = self._log.newest
        if not newest:
            raise TableError(f"{self.folder} is no table of ours yet")
        first, last = (None if ms is None else f"{DATE}={date_of(ms)}" for ms in (since_ms, until_ms))
        wanted = [
            name
            for name in sorted(self._log.files(newest))
            if (first is None or Path(name).parts[0] >= first) and (last is None or Path(name).parts[0] <= last)
        ]
        places = self._places_of(wanted, self._staging / self._log.read(newest).staging)
        rows = self._spark.read.parquet(*places) if places else self._spark.createDataFrame([], ROWS)
        return in_range(with_date(rows), since_ms, until_ms)

    def _places_of(self, names: Iterable[str], staging: Path) -> list[str]:
        """Where the files are: in place, or on their way there if whoever committed them has died."""
        deadline = time.monotonic() + _ON_THE_WAY_SECONDS
        found = []
        for name in names:
            while not (self.folder / name).exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            place = next((each for each in (self.folder / name, staging / name) if each.exists()), None)
            if place is None:
                raise TableError(f"{self.folder} lacks {name}, which a commit names")
            found.append(str(place))
        return found

    # -- commits

    def _new_staging(self) -> Path:
        return self._staging / f"{self._seen + 1:08}-{uuid.uuid4().hex[:12]}"

    def _name_files(self, staging: Path) -> list[str]:
        """Give the staged files the names that they will have; what else Spark has left there goes."""
        commit = staging.name.partition("-")[0]
        files = []
        for number, path in enumerate(sorted(_parquet_files(staging))):
            named = path.with_name(f"{commit}-{number}.parquet")
            path.rename(named)
            sync(named)
            files.append(str(named.relative_to(staging)))
        return files

    def _commit(self, commit: Commit) -> None:
        try:
            self._log.add(commit)
        except CommitLost:
            shutil.rmtree(self._staging / commit.staging, ignore_errors=True)
            raise
        self._seen = commit.number
        self._put_in_place(commit)

    def _put_in_place(self, commit: Commit) -> None:
        """Again and again the same, until it is done; by two at once, if one was taken for dead."""
        staging = self._staging / commit.staging
        for name in commit.add:
            target = self.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                (staging / name).rename(target)
            except FileNotFoundError:
                if not target.exists():
                    raise TableError(
                        f"commit {commit.number} has the file {name}, which is neither in its place nor on its way"
                    ) from None
            sync(target.parent)
        for name in commit.remove:
            (self.folder / name).unlink(missing_ok=True)
        if self.folder.exists():
            sync(self.folder)
        if commit.staging:
            shutil.rmtree(staging, ignore_errors=True)


def _parquet_files(staging: Path) -> Iterator[Path]:
    return (path for path in staging.rglob("*.parquet") if not path.name.startswith(("_", ".")))
