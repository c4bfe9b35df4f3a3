"""A table of plain Parquet files: each run is whole or nothing, whatever ends it, and its files are found where commits name them."""

import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from horolog.pipeline.stores import store
from horolog.pipeline.stores.object_stores import Place
from horolog.pipeline.tables import lock, parquet
from horolog.pipeline.tables.lock import LockHeld, writing
from horolog.pipeline.tables.parquet import ParquetTable, plain_rows
from horolog.pipeline.tables.table import ROWS, CommitLost, TableError, open_table
from horolog.pipeline.tables.upkeep import Gone
from tests.pipeline.reading.test_object_files import uploaded
from tests.pipeline.tables.every_table import (
    DAY,
    FIRST,
    FIRST_MS,
    KEEP_FROM,
    LATE_ROW,
    PLACE,
    TableTests,
    kept_offsets,
    now_ms,
    offsets_of,
    written,
)


class TestParquet(TableTests):
    kind = "parquet"


@pytest.fixture(scope="module")
def made(spark, tmp_path_factory):
    """A folder to be copied."""
    folder = tmp_path_factory.mktemp("made") / "parquet"
    written("parquet", folder, spark)
    return folder


@pytest.fixture
def copied(made, tmp_path, spark):
    shutil.copytree(made, tmp_path / "parquet")
    return open_table("parquet", str(tmp_path / "parquet"), spark)


def test_files_without_a_log_of_commits_are_no_table(copied, spark):
    shutil.rmtree(copied.folder / "_horolog")
    with pytest.raises(TableError, match="has Parquet files, but no log of commits"):
        open_table("parquet", str(copied.folder), spark)


def test_the_checkpoint_is_where_the_folder_is(tmp_path, spark):
    table = open_table("parquet", str(tmp_path / "rows"), spark, str(tmp_path / "log"))
    with writing(table):
        table.offsets()
        table.append(spark.createDataFrame([LATE_ROW], ROWS), {PLACE: 17})
    assert not (tmp_path / "rows" / "_horolog").exists()
    assert (tmp_path / "log" / "commits" / "00000001.json").exists()
    with pytest.raises(
        TableError, match=r"the checkpoint s3a://b/log has to be in the same bucket or file system as .*/rows"
    ):
        ParquetTable(str(tmp_path / "rows"), spark, Place.of("s3a://b/log", {"fs.s3a.access.key": "k"}, {}))


def test_a_file_that_is_missing_is_named(copied, monkeypatch):
    monkeypatch.setattr(parquet, "_ON_THE_WAY_SECONDS", 0.0)
    gone = next(copied.folder.glob("date=2025-11-17/*.parquet"))
    gone.unlink()
    for ask in (copied.rows, copied.compact):
        with pytest.raises(TableError, match=rf"lacks date=2025-11-17/{gone.name}, which a commit names"):
            ask()


def test_files_on_their_way_are_read_there_and_put_in_place_by_the_next_job(copied, monkeypatch):
    """The job that committed them has died."""
    monkeypatch.setattr(parquet, "_ON_THE_WAY_SECONDS", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(ParquetTable, "_put_in_place", lambda *_: None)
        copied.offsets()
        copied.append(copied._spark.createDataFrame([LATE_ROW], ROWS).coalesce(1), {PLACE: 17}, {"t": "id"})
    assert len(offsets_of(copied)) == 19
    (_, there), (own, on_the_way) = copied.files()
    assert len(on_the_way) == 1
    assert own.exists(on_the_way[0])
    with writing(copied):
        assert len(copied.files()[0][1]) == len(there) + 1


def test_a_committed_file_that_is_nowhere_ends_the_recovery(copied, monkeypatch):
    newest = copied._newest()
    lost = newest.__class__(3, newest.offsets, newest.ids, ["date=2025-11-17/x.parquet"], [], "00000003-x")
    with pytest.raises(
        TableError, match=r"commit 3 has the file date=2025-11-17/x\.parquet, which is neither in its place"
    ):
        copied._put_in_place(lost)


def test_plain_files_are_read_whatever_commits_say(copied, spark, s3, made):
    assert plain_rows(spark, str(copied.folder), FIRST_MS + DAY * 1000, FIRST_MS + 2 * DAY * 1000).count() == 4
    place = Place.of(uploaded(s3, made), s3.options, {})
    assert plain_rows(spark, place).count() == 18
    table = ParquetTable(place, spark)
    table.open()
    assert (str(table), table.rows().count()) == (place.url, 18)


def test_a_commit_into_the_past_is_lost(copied, spark):
    """Its number is free again, because the commits of that time were taken away."""
    table = copied
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
    table = copied
    aside = table.folder / "_horolog" / "commits" / "00000003.json.abc.tmp"
    aside.write_bytes(b"{")
    assert table.vacuum(now_ms() - 1000, dry_run=True).files == 0
    os.utime(aside, (0, 0))
    with writing(table):
        assert table.vacuum(now_ms() - 1000) == Gone(1, 0, 1, ())
    assert not aside.exists()


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
            shutil.copytree(made, tmp_path / f"{life}")
        return ParquetTable(str(tmp_path / f"{life}"), None)

    assert crash_everywhere(monkeypatch, new_table, patches) > 15


def test_a_crash_at_every_second_step_in_a_bucket(made, s3, monkeypatch):
    import obstore

    from horolog.pipeline.stores.object_store import ObjectStore

    s3.enter(monkeypatch)
    monkeypatch.setattr(ObjectStore, "at_once", 1)
    urls = {}

    def new_table(life, again=False):
        if not again:
            urls[life] = uploaded(s3, made)
        return ParquetTable(Place.of(urls[life], s3.options, {}), None)

    patches = [(obstore, name) for name in ("put", "copy", "delete")]
    assert crash_everywhere(monkeypatch, new_table, patches, every=2) > 4


def test_no_other_job_works_beside_one_that_has_the_lock(copied, spark):
    table = copied
    with writing(table), pytest.raises(LockHeld):
        work_on(open_table("parquet", str(table.folder), spark))
