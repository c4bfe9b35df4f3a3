"""A table of plain Parquet files in folders by date, with a log of commits that makes each run whole or nothing.

    <folder>/date=2026-11-17/<commit>-<n>.parquet       rows; any reader of Parquet reads the folder
    <folder>/_horolog/commits/<commit>.json             format below; commits count up from 00000001
    <folder>/_horolog/staging/<commit>/date=.../        files on their way

A commit is {"version": 1, "offsets": {"topic": {"0": 17}}, "add": [path...], "remove": [path...], "records": n}: `offsets` is how far the
table goes with it, `add` and `remove` are paths below the folder. Rows are written into staging first. Then the commit is written aside,
synced and renamed: from there on it is part of the table. Then its files are renamed into place, and those that it removes are
deleted; a start does that again for every commit whose staging is still there, and throws away staging without a commit.
So a row is never there twice; one who reads while files are being renamed may see a part of the newest commit.
Names that begin with an underscore are passed over by Spark and its kin. `checkpoint` puts `_horolog` elsewhere on the same file system.
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.tables.table import (
    DATE,
    Offsets,
    TableError,
    Written,
    decode_offsets,
    encode_offsets,
    in_range,
    with_date,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VERSION = 1
OWN = "_horolog"
TARGET_FILE_BYTES = 256 << 20
"""Files are put together up to about this size."""


class ParquetTable:
    """One folder. One writer at a time: that is up to who starts jobs."""

    def __init__(self, folder: str, spark: "SparkSession", checkpoint: str | None = None) -> None:
        self.folder = Path(folder)
        self._spark = spark
        own = Path(checkpoint) if checkpoint is not None else self.folder / OWN
        self._commits = own / "commits"
        self._staging = own / "staging"

    def open(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise TableError(f"{self.folder} is no folder")
        if not self._commits.is_dir() and any(self.folder.glob(f"{DATE}=*/*.parquet")):
            raise TableError(f"{self.folder} has Parquet files, but no log of commits says which topics they are of")
        self._commits.mkdir(parents=True, exist_ok=True)
        for path in sorted(self._staging.glob("*")):
            commit = self._commits / f"{path.name}.json"
            if commit.exists():
                self._put_in_place(path.name, _read(commit))
            else:
                shutil.rmtree(path)

    def offsets(self) -> Offsets:
        newest = max(self._commits.glob("*.json"), default=None)
        return {} if newest is None else decode_offsets(_read(newest)["offsets"])

    def append(self, rows: "DataFrame", offsets: Offsets) -> Written:
        from pyspark.sql import functions as f

        commit = self._next()
        staging = self._staging / commit
        dated = with_date(rows)
        dated.write.mode("overwrite").partitionBy(DATE).parquet(str(staging))
        files = self._name_files(commit)
        found = self._spark.read.parquet(str(staging)) if files else None
        counted = None if found is None else found.agg(f.count("*"), f.unix_millis(f.max("timestamp"))).collect()[0]
        size = sum((staging / path).stat().st_size for path in files)
        records, last_ms = (0, None) if counted is None else (counted[0], counted[1])
        self._commit(commit, {"offsets": encode_offsets(offsets), "add": files, "remove": [], "records": records})
        return Written(records, size, len(files), last_ms)

    def compact(self) -> int:
        """One commit for each date that has several small files."""
        gone = 0
        for folder in sorted(self.folder.glob(f"{DATE}=*")):
            small = [path for path in sorted(folder.glob("*.parquet")) if path.stat().st_size < TARGET_FILE_BYTES // 2]
            if len(small) > 1:
                gone += self._compact_date(folder.name, small)
        return gone

    def _compact_date(self, date: str, small: list[Path]) -> int:
        commit = self._next()
        size = sum(path.stat().st_size for path in small)
        rows = self._spark.read.parquet(*map(str, small))
        parts = max(1, -(-size // TARGET_FILE_BYTES))
        rows.coalesce(parts).sortWithinPartitions("topic", "partition", "offset").write.mode("overwrite").parquet(
            str(self._staging / commit / date)
        )
        files = self._name_files(commit)
        removed = [str(path.relative_to(self.folder)) for path in small]
        self._commit(commit, {"offsets": encode_offsets(self.offsets()), "add": files, "remove": removed, "records": 0})
        return len(removed) - len(files)

    def rows(self, since_ms: int | None = None, until_ms: int | None = None) -> "DataFrame":
        return in_range(self._spark.read.parquet(str(self.folder)), since_ms, until_ms)

    # -- commits

    def _next(self) -> str:
        newest = max(self._commits.glob("*.json"), default=None)
        return f"{1 if newest is None else int(newest.stem) + 1:08}"

    def _name_files(self, commit: str) -> list[str]:
        """Give the staged files the names that they will have; what else Spark has left there goes."""
        staging = self._staging / commit
        files = []
        for number, path in enumerate(sorted(_parquet_files(staging))):
            named = path.with_name(f"{commit}-{number}.parquet")
            path.rename(named)
            _sync(named)
            files.append(str(named.relative_to(staging)))
        return files

    def _commit(self, commit: str, content: dict[str, Any]) -> None:
        aside = self._commits / f"{commit}.tmp"
        aside.write_text(json.dumps({"version": VERSION, **content}, separators=(",", ":")))
        _sync(aside)
        aside.rename(self._commits / f"{commit}.json")
        _sync(self._commits)
        self._put_in_place(commit, content)

    def _put_in_place(self, commit: str, content: dict[str, Any]) -> None:
        """Again and again the same, until it is done."""
        staging = self._staging / commit
        for name in content["add"]:
            target = self.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (staging / name).exists():
                (staging / name).rename(target)
                _sync(target.parent)
            elif not target.exists():
                raise TableError(f"commit {commit} has the file {name}, which is neither in its place nor on its way")
        for name in content["remove"]:
            (self.folder / name).unlink(missing_ok=True)
        if self.folder.exists():
            _sync(self.folder)
        shutil.rmtree(staging, ignore_errors=True)


def _parquet_files(staging: Path) -> Iterator[Path]:
    return (path for path in staging.rglob("*.parquet") if not path.name.startswith(("_", ".")))


def _read(commit: Path) -> dict[str, Any]:
    try:
        content = json.loads(commit.read_text())
    except ValueError as error:
        raise TableError(f"{commit} is no commit: {error}") from error
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise TableError(f"{commit} is no commit of version {VERSION}")
    return content


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
