"""Tests of what holds for tables of every kind: a class in the test file of each kind inherits them and names it."""

import datetime as dt
import os
import time
from pathlib import Path

import pytest

from horolog.client.values.types import TopicPartition
from horolog.pipeline.tables.lock import writing
from horolog.pipeline.tables.table import ROWS, CommitLost, TableError, open_table
from horolog.pipeline.tables.upkeep import Gone

PLACE = TopicPartition("t", 0)
DAY = 86_400
FIRST = dt.datetime(2025, 11, 17, 12, tzinfo=dt.UTC)
FIRST_MS = 1_763_380_800_000
KEEP_FROM = dt.date(2025, 11, 19)
NO_TIME = dt.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=dt.UTC)
LATE_ROW = ("t", 0, 16, FIRST, 0, None, b"v", None)


def now_ms():
    return time.time_ns() // 1_000_000


def write(table, spark, offsets):
    """Rows of four dates, offset by offset, and one without a time in each commit."""
    rows = [("t", 0, n, FIRST + dt.timedelta(days=n % 4), 0, None, b"v", None) for n in offsets]
    rows.append(("t", 0, 1000 + offsets[0], NO_TIME, 0, None, b"v", None))
    with writing(table):
        table.offsets()
        table.append(spark.createDataFrame(rows, ROWS).coalesce(1), {PLACE: offsets[-1] + 1}, {"t": "id"})


def kept_offsets(*ranges):
    """Those whose dates stay."""
    return sorted({n for each in ranges for n in each if n % 4 >= 2} | {1000 + each[0] for each in ranges})


def offsets_of(table):
    return sorted(row["offset"] for row in table.rows().select("offset").collect())


def written(kind, folder, spark):
    """A table of that kind: two commits of four dates each."""
    table = open_table(kind, str(folder), spark)
    for offsets in (range(8), range(8, 16)):
        write(table, spark, offsets)
    return open_table(kind, str(folder), spark)


class TableTests:
    """The tests; `kind` is the table's."""

    kind: str

    @pytest.fixture
    def table(self, spark, tmp_path):
        return written(self.kind, tmp_path / self.kind, spark)

    def reopened(self, table, spark):
        return open_table(self.kind, str(table.folder), spark)

    def test_a_table_that_is_not_there_yet_has_nothing(self, spark, tmp_path):
        table = open_table(self.kind, str(tmp_path / "none"), spark)
        assert (table.offsets(), table.topic_ids(), table.folders(), list(table.columns())) == ({}, {}, None, [])
        assert (table.compact(), table.expire(KEEP_FROM), table.forget_versions(now_ms())) == (0, Gone(), 0)
        assert str(table) == str(tmp_path / "none")
        for ask in (table.rows, table.files, lambda: table.vacuum(0)):
            with pytest.raises(TableError, match="yet"):
                ask()

    def test_a_file_is_no_table(self, spark, tmp_path):
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(TableError, match="/file is not a folder"):
            open_table(self.kind, str(tmp_path / "file"), spark)

    def test_rows_of_a_range_of_times_are_in_few_files(self, table, spark):
        since, until = FIRST_MS + DAY * 1000, FIRST_MS + 2 * DAY * 1000
        found = table.rows(since, until).select("offset", "topic_id").collect()
        assert sorted(row["offset"] for row in found) == [1, 5, 9, 13]
        ((files, names), *_) = table.files(since, until)
        assert 2 <= len(names) <= 6
        assert all(files.exists(name) for name in names)
        assert table.rows(FIRST_MS + 9 * DAY * 1000).count() == 0
        assert table.rows(None, FIRST_MS - DAY * 1000).count() == 2, "rows without a time"

    def test_columns_that_rows_bring_are_the_tables_from_then_on(self, table, spark):
        def brings(expression, offset):
            rows = spark.createDataFrame([("t", 0, offset, FIRST, 0, None, b"v", None)], ROWS)
            return rows.selectExpr("*", expression)

        with writing(table):
            table.offsets()
            table.append(brings("cast(5 as bigint) as id", 16), {PLACE: 17}, {"t": "id"})
            table.append(brings("'a' as name", 17), {PLACE: 18}, {"t": "id"})
            with pytest.raises(TableError, match="id"):
                table.append(brings("'text' as id", 18), {PLACE: 19}, {"t": "id"})
        again = self.reopened(table, spark)
        assert again.offsets() == {PLACE: 18}
        assert again.columns().names == ["id", "name"]
        found = again.rows().where("offset in (15, 16, 17)").orderBy("offset").select("id", "name").collect()
        assert [tuple(row) for row in found] == [(None, None), (5, None), (None, "a")]

    def test_small_files_are_put_together_and_no_row_changes(self, table, spark):
        rows = offsets_of(table)
        with writing(table):
            table.offsets()
            assert table.compact() == 5, "two files of each of five dates"
            assert table.compact() == 0
            assert (table.offsets(), table.topic_ids()) == ({PLACE: 16}, {"t": "id"})
        assert offsets_of(self.reopened(table, spark)) == rows

    def test_old_dates_go_in_one_commit_and_the_table_goes_on_where_it_was(self, table, spark):
        would = table.expire(KEEP_FROM, dry_run=True)
        assert (would.records, would.dates) == (8, ("2025-11-17", "2025-11-18"))
        assert would.files >= 2
        assert len(offsets_of(table)) == 18
        with writing(table):
            assert table.expire(KEEP_FROM) == would
            assert table.expire(KEEP_FROM) == Gone()
        assert offsets_of(table) == kept_offsets(range(8), range(8, 16))
        again = self.reopened(table, spark)
        assert (again.offsets(), again.topic_ids()) == ({PLACE: 16}, {"t": "id"})
        write(again, spark, range(16, 24))
        assert offsets_of(again) == sorted([*kept_offsets(range(8), range(8, 16)), *range(16, 24), 1016])
        with writing(again):
            again.expire(dt.date(2100, 1, 1))
        assert offsets_of(again) == [1000, 1008, 1016]

    def test_old_versions_go_and_the_offsets_stay(self, table, spark):
        with writing(table):
            table.expire(KEEP_FROM)
        assert table.forget_versions(now_ms() - 3_600_000) == 0
        log = Path(table.folder) / {"parquet": "_horolog/commits", "delta": "_delta_log"}.get(self.kind, "")
        if self.kind != "iceberg":
            for path in log.glob("*.json"):
                os.utime(path, (time.time() - 2 * DAY,) * 2)
        time.sleep(0.01)
        before_ms = now_ms() - (0 if self.kind == "iceberg" else DAY * 1000)
        would = table.forget_versions(before_ms, dry_run=True)
        assert would == {"parquet": 2, "delta": 3, "iceberg": 2}[self.kind]
        with writing(table):
            assert table.forget_versions(before_ms) == would
            assert table.forget_versions(before_ms) <= 1  # of Parquet the one before that was needed until then
            assert table.forget_versions(before_ms) == 0
        again = self.reopened(table, spark)
        assert (again.offsets(), again.topic_ids()) == ({PLACE: 16}, {"t": "id"})
        assert offsets_of(again) == kept_offsets(range(8), range(8, 16))
        write(again, spark, range(16, 24))
        assert len(offsets_of(again)) == len(kept_offsets(range(8), range(8, 16))) + 9

    def test_files_that_no_version_names_go_once_they_are_old(self, table, spark):
        root = Path(table.folder)
        data = next(path for path in root.rglob("date=2025-11-20") if path.is_dir())
        for name, age_days in (("old", 8), ("young", 6)):
            path = data / f"{name}.parquet"
            path.write_bytes(b"1234")
            os.utime(path, (time.time() - age_days * DAY,) * 2)
        before_ms = now_ms() - 7 * DAY * 1000
        rows = offsets_of(table)
        assert table.vacuum(before_ms, dry_run=True) == Gone(1, 0, 4, ("2025-11-20",))
        with writing(table):
            assert table.vacuum(before_ms) == Gone(1, 0, 4, ("2025-11-20",))
            assert table.vacuum(before_ms) == Gone()
        assert [path.name for path in data.glob("*d.parquet")] == []
        assert [path.name for path in data.glob("*g.parquet")] == ["young.parquet"]
        assert list((root / "_horolog" / "lock").iterdir())
        assert (offsets_of(table), table.offsets()) == (rows, {PLACE: 16})
        with writing(table):
            table.expire(KEEP_FROM)
        if self.kind == "delta":  # the files of older versions go as well
            assert table.vacuum(now_ms() + 1000, dry_run=True).files >= 3
        with writing(table):
            table.vacuum(now_ms() + 1000)
        assert offsets_of(self.reopened(table, spark)) == kept_offsets(range(8), range(8, 16))
        assert not list(data.glob("*g.parquet"))

    def test_a_job_that_was_taken_for_dead_commits_nothing_on_top(self, table, spark):
        """A step that was planned before rows left, and is committed after that."""
        late = self.reopened(table, spark)
        late.offsets()
        with writing(table):
            table.expire(KEEP_FROM)
        with pytest.raises(CommitLost):
            late.append(spark.createDataFrame([LATE_ROW], ROWS), {PLACE: 17}, {"t": "id"})
        assert offsets_of(table) == kept_offsets(range(8), range(8, 16))
