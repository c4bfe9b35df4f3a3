"""Dates, versions and files leave a table and nothing else does, whenever whoever lets them go is killed; its offsets stay."""

import datetime as dt
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from horolog.client.values.types import TopicPartition
from horolog.pipeline.stores import store
from horolog.pipeline.stores.object_stores import Place
from horolog.pipeline.tables import lock
from horolog.pipeline.tables.layout import Folders
from horolog.pipeline.tables.lock import LockHeld, writing
from horolog.pipeline.tables.parquet import ParquetTable
from horolog.pipeline.tables.table import FORMATS, ROWS, CommitLost, TableError, open_table
from horolog.pipeline.tables.upkeep import Gone, Part, first_kept, gone, is_old
from tests.pipeline.reading.test_object_files import uploaded
from tests.support.style import PROJECT

PLACE = TopicPartition("t", 0)
DAY = 86_400
FIRST = dt.datetime(2025, 11, 17, 12, tzinfo=dt.UTC)
KEEP_FROM = dt.date(2025, 11, 19)
NO_TIME = dt.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=dt.UTC)


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


@pytest.fixture(scope="module")
def made(spark, tmp_path_factory):
    """A table of each kind, to be copied: two commits."""
    root = tmp_path_factory.mktemp("made")
    for kind in FORMATS:
        table = open_table(kind, str(root / kind), spark)
        for offsets in (range(8), range(8, 16)):
            write(table, spark, offsets)
    return root


@pytest.fixture
def copied(made, tmp_path, spark):
    """`copied(kind)`: such a table, opened. Iceberg's metadata has absolute paths, so that one is moved there and back."""

    def copy(kind):
        if kind == "iceberg":
            table = open_table(kind, str(tmp_path / kind), spark)
            for offsets in (range(8), range(8, 16)):
                write(table, spark, offsets)
        else:
            shutil.copytree(made / kind, tmp_path / kind)
        return open_table(kind, str(tmp_path / kind), spark)

    return copy


# -- pure


def test_dates_before_the_bound_go_and_rows_without_a_time_stay():
    days = ["1969-12-31", "1970-01-01", "1970-01-02", "2025-11-18", "2025-11-19"]
    assert [day for day in days if is_old(day, KEEP_FROM)] == ["1970-01-02", "2025-11-18"]


def test_a_date_stays_while_a_row_of_it_may_be_young():
    ms = round(dt.datetime(2025, 11, 18, 23, 30, tzinfo=dt.UTC).timestamp() * 1000)
    assert first_kept(None, ms) == dt.date(2025, 11, 18)
    assert first_kept(Folders("hour"), ms + 1_800_000) == dt.date(2025, 11, 19)
    assert first_kept(Folders("hour", "Asia/Tokyo"), ms) == dt.date(2025, 11, 19)
    assert first_kept(Folders("date", "America/New_York"), ms) == dt.date(2025, 11, 18)


def test_what_goes_is_counted():
    assert gone([]) == Gone()
    parts = [Part("b", "2025-11-18", 10, 2), Part("a", "2025-11-17", 5, 1), Part("c", "2025-11-18", 1, 1)]
    assert gone(parts) == Gone(3, 4, 16, ("2025-11-17", "2025-11-18"))


# -- every kind of table


@pytest.mark.parametrize("kind", FORMATS)
def test_old_dates_go_in_one_commit_and_the_table_goes_on_where_it_was(copied, spark, kind):
    table = copied(kind)
    would = table.expire(KEEP_FROM, dry_run=True)
    assert (would.records, would.dates) == (8, ("2025-11-17", "2025-11-18"))
    assert would.files >= 2
    assert len(offsets_of(table)) == 18
    with writing(table):
        assert table.expire(KEEP_FROM) == would
        assert table.expire(KEEP_FROM) == Gone()
    assert offsets_of(table) == kept_offsets(range(8), range(8, 16))
    again = open_table(kind, table.folder if isinstance(table.folder, str) else str(table.folder), spark)
    assert (again.offsets(), again.topic_ids()) == ({PLACE: 16}, {"t": "id"})
    write(again, spark, range(16, 24))
    assert offsets_of(again) == sorted([*kept_offsets(range(8), range(8, 16)), *range(16, 24), 1016])
    with writing(again):
        again.expire(dt.date(2100, 1, 1))
    assert offsets_of(again) == [1000, 1008, 1016]


@pytest.mark.parametrize("kind", FORMATS)
def test_old_versions_go_and_the_offsets_stay(copied, spark, kind):
    table = copied(kind)
    with writing(table):
        table.expire(KEEP_FROM)
    assert table.forget_versions(now_ms() - 3_600_000) == 0
    log = Path(table.folder) / {"parquet": "_horolog/commits", "delta": "_delta_log"}.get(kind, "")
    if kind != "iceberg":
        for path in log.glob("*.json"):
            os.utime(path, (time.time() - 2 * DAY,) * 2)
    time.sleep(0.01)
    before_ms = now_ms() - (0 if kind == "iceberg" else DAY * 1000)
    would = table.forget_versions(before_ms, dry_run=True)
    assert would == {"parquet": 2, "delta": 3, "iceberg": 2}[kind]
    with writing(table):
        assert table.forget_versions(before_ms) == would
        assert table.forget_versions(before_ms) <= 1  # of Parquet the one before that was needed until then
        assert table.forget_versions(before_ms) == 0
    again = open_table(kind, str(table.folder), spark)
    assert (again.offsets(), again.topic_ids()) == ({PLACE: 16}, {"t": "id"})
    assert offsets_of(again) == kept_offsets(range(8), range(8, 16))
    write(again, spark, range(16, 24))
    assert len(offsets_of(again)) == len(kept_offsets(range(8), range(8, 16))) + 9


@pytest.mark.parametrize("kind", FORMATS)
def test_files_that_nobody_names_go_once_they_are_old(copied, spark, kind):
    table = copied(kind)
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
    if kind == "delta":  # the files of older versions go as well
        assert table.vacuum(now_ms() + 1000, dry_run=True).files >= 3
    with writing(table):
        table.vacuum(now_ms() + 1000)
    assert offsets_of(open_table(kind, str(root), spark)) == kept_offsets(range(8), range(8, 16))
    assert not list(data.glob("*g.parquet"))


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_that_is_not_there_has_nothing_to_vacuum(spark, tmp_path, kind):
    with pytest.raises(TableError, match="yet"):
        open_table(kind, str(tmp_path / "t"), spark).vacuum(0)
    assert open_table(kind, str(tmp_path / "t"), spark).expire(KEEP_FROM) == Gone()
    assert open_table(kind, str(tmp_path / "t"), spark).forget_versions(now_ms()) == 0


@pytest.mark.parametrize("kind", FORMATS)
def test_whoever_was_taken_for_dead_commits_nothing_on_top(copied, spark, kind):
    """A step that was planned before rows left, and is committed after that."""
    table = copied(kind)
    late = open_table(kind, str(table.folder), spark)
    late.offsets()
    with writing(table):
        table.expire(KEEP_FROM)
    with pytest.raises(CommitLost):
        late.append(spark.createDataFrame([("t", 0, 16, FIRST, 0, None, b"v", None)], ROWS), {PLACE: 17}, {"t": "id"})
    assert offsets_of(table) == kept_offsets(range(8), range(8, 16))


def test_a_commit_into_the_past_is_lost(copied, spark):
    """Its number is free again, because the commits of that time were taken away."""
    table = copied("parquet")
    late = open_table("parquet", str(table.folder), spark)
    late.offsets()
    for _ in range(3):
        with writing(table):
            table._commit(table._newest().__class__(table._seen + 1, {PLACE: 16}, {"t": "id"}))
    for path in (table.folder / "_horolog" / "commits").iterdir():
        os.utime(path, (0, 0))
    with writing(table):
        assert table.forget_versions(now_ms()) == 4
    assert sorted(path.name for path in (table.folder / "_horolog" / "commits").iterdir()) == [
        "00000005.json",
        "00000006.json",
    ]
    with pytest.raises(CommitLost):
        late.append(spark.createDataFrame([("t", 0, 16, FIRST, 0, None, b"v", None)], ROWS), {PLACE: 17}, {"t": "id"})
    assert len(list((table.folder / "_horolog" / "commits").iterdir())) == 2
    (table.folder / "_horolog" / "staging" / "00000003-dead").mkdir(parents=True)
    with writing(table):
        assert table.offsets() == {PLACE: 16}
    assert not list((table.folder / "_horolog" / "staging").iterdir())
    assert len(offsets_of(table)) == 18


def test_half_written_files_of_our_own_go_too(copied):
    table = copied("parquet")
    aside = table.folder / "_horolog" / "commits" / "00000003.json.abc.tmp"
    aside.write_bytes(b"{")
    assert table.vacuum(now_ms() - 1000, dry_run=True).files == 0
    os.utime(aside, (0, 0))
    with writing(table):
        assert table.vacuum(now_ms() - 1000) == Gone(1, 0, 1, ())
    assert not aside.exists()


def test_large_files_of_iceberg_are_not_put_together_again_and_again(copied, monkeypatch):
    from horolog.pipeline.tables import row_files

    table = copied("iceberg")
    with monkeypatch.context() as patch, writing(table):
        patch.setattr(row_files, "TARGET_FILE_BYTES", 1)
        assert table.compact() == 0
    with writing(table):
        assert table.compact() == 5
        assert table.compact() == 0
    assert (len(offsets_of(table)), table.offsets()) == (18, {PLACE: 16})


# -- crashes


class Crash(BaseException):
    """The process ends here."""


def work_on(table):
    with writing(table):
        table.expire(KEEP_FROM)
        table.forget_versions(now_ms() + 1000)
        table.vacuum(now_ms() - 7 * DAY * 1000)


def named_offsets(table):
    """What the newest commit names, without Spark."""
    return offsets_in(table, table._log.files(table._log.newest))


def plain_offsets(table):
    return offsets_in(table, [name for name in table._files.files("") if name.startswith("date=")])


def offsets_in(table, names):
    found = []
    for name in names:
        with table._files.reader(name) as file:
            found += pq.read_table(file, columns=["offset"]).column("offset").to_pylist()
    return sorted(found)


def falling(left, original):
    def call(*arguments, **named):
        left[0] -= 1
        if left[0] < 0:
            raise Crash
        return original(*arguments, **named)

    return call


def crash_everywhere(monkeypatch, new_table, patches, every=1):
    """Interrupt the work before its n-th change, for every n; then another process looks, and does the work again."""
    everything = sorted([*range(16), 1000, 1008])
    crashed = 0
    for life in range(300):
        left = [life * every]
        monkeypatch.setattr(lock, "_process", lambda pid, life=life: f"{pid} in life {2 * life}")
        table = new_table(life)
        with monkeypatch.context() as patch:
            for owner, name in patches:
                patch.setattr(owner, name, falling(left, getattr(owner, name)))
            try:
                work_on(table)
                done = True
            except Crash:
                done = False
        crashed += not done
        monkeypatch.setattr(lock, "_process", lambda pid, life=life: f"{pid} in life {2 * life + 1}")
        table = new_table(life, again=True)
        assert table.offsets() == {PLACE: 16}
        with writing(table):
            assert named_offsets(table) == plain_offsets(table)
            assert named_offsets(table) in (everything, kept_offsets(range(8), range(8, 16)))
            assert (table.offsets(), table.topic_ids()) == ({PLACE: 16}, {"t": "id"})
        work_on(table)
        assert named_offsets(table) == plain_offsets(table) == kept_offsets(range(8), range(8, 16))
        assert table.offsets() == {PLACE: 16}
        assert table._own.folders("staging") == []
        if done:
            return crashed
    raise AssertionError("it never came to its end")


def test_a_crash_at_every_step_loses_no_row_that_stays(made, tmp_path, monkeypatch):
    patches = [(Path, name) for name in ("rename", "unlink", "hardlink_to", "replace", "rmdir")] + [(store, "sync")]

    def new_table(life, again=False):
        if not again:
            shutil.copytree(made / "parquet", tmp_path / f"{life}")
        return ParquetTable(str(tmp_path / f"{life}"), None)

    assert crash_everywhere(monkeypatch, new_table, patches) > 15


def test_a_crash_at_every_second_step_in_a_bucket(made, s3, monkeypatch):
    import obstore

    from horolog.pipeline.stores.object_store import ObjectStore

    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(ObjectStore, "at_once", 1)
    urls = {}

    def new_table(life, again=False):
        if not again:
            urls[life] = uploaded(s3, made / "parquet")
        return ParquetTable(Place.of(urls[life], s3.options, {}), None)

    patches = [(obstore, name) for name in ("put", "copy", "delete")]
    assert crash_everywhere(monkeypatch, new_table, patches, every=2) > 4


WORK = """
import datetime as dt, sys, time
from horolog.pipeline.tables.lock import writing
from horolog.pipeline.tables.table import open_table
table = open_table(sys.argv[1], sys.argv[2], None)
table.offsets()
print("ready", flush=True)
with writing(table, 30_000):
    table.expire(dt.date(2025, 11, 19))
    table.forget_versions(time.time_ns() // 1_000_000 + 1000)
    table.vacuum(time.time_ns() // 1_000_000 + 1000)
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_process_that_is_killed_at_any_moment_loses_no_row_that_stays(copied, spark, kind):
    folder = str(copied(kind).folder)
    rng = random.Random(int(os.environ.get("HOROLOG_SEED", "1")))
    everything = offsets_of(open_table(kind, folder, spark))
    kept = kept_offsets(range(8), range(8, 16))
    ended = []
    for number in range(6):
        job = subprocess.Popen([sys.executable, "-c", WORK, kind, folder], cwd=PROJECT, stdout=subprocess.PIPE)
        assert job.stdout.readline() == b"ready\n"
        if number < 5:
            time.sleep(rng.random() * 0.2)
            job.kill()
        ended.append(job.wait(60))
        job.stdout.close()
        again = open_table(kind, folder, spark)
        assert offsets_of(again) in (everything, kept)
        assert (again.offsets(), again.topic_ids()) == ({PLACE: 16}, {"t": "id"})
    assert (ended[-1], -signal.SIGKILL in ended) == (0, True)
    assert offsets_of(open_table(kind, folder, spark)) == kept
    write(open_table(kind, folder, spark), spark, range(16, 24))
    assert len(offsets_of(open_table(kind, folder, spark))) == len(kept) + 9


def test_nobody_works_beside_a_job_that_has_the_lock(copied, spark):
    table = copied("parquet")
    with writing(table), pytest.raises(LockHeld):
        work_on(open_table("parquet", str(table.folder), spark))
