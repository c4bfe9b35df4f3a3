"""Small files become few, by tasks alone: large ones and lone ones stay, and the driver's memory does not depend on the data."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from horolog.client.values.types import TopicPartition
from horolog.pipeline.stores.store import LocalStore
from horolog.pipeline.tables import delta_commit, row_files
from horolog.pipeline.tables.compaction import Bin, BinReader, Small, bins_of, rounds
from horolog.pipeline.tables.layout import BY_DATE
from horolog.pipeline.tables.lock import writing
from horolog.pipeline.tables.table import FORMATS, CommitLost, open_table
from tests.pipeline.samples import BASE_MS
from tests.pipeline.tables.test_row_files import FIRST_DAY, rows, written
from tests.support.style import PROJECT

PLACE = TopicPartition("t", 0)
DAY_MS = 86_400_000
MEMORY = Path(__file__).with_name("compaction_memory.py")


# -- pure


def test_small_files_of_a_folder_go_together_up_to_the_target(monkeypatch):
    monkeypatch.setattr(row_files, "TARGET_FILE_BYTES", 100)
    sizes = {1: [30, 30, 30, 30, 49, 50, 1000], 2: [10], 3: [1, 2]}
    small = [Small(folder, f"{folder}/{n}", size) for folder, each in sizes.items() for n, size in enumerate(each)]
    assert bins_of(reversed(small)) == [
        Bin(1, ("1/0", "1/1", "1/2")),
        Bin(1, ("1/3", "1/4")),
        Bin(3, ("3/0", "3/1")),
    ]
    assert bins_of([]) == []


def test_each_core_gets_a_few_bins_at_a_time():
    spark = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))
    bins = [Bin(n, ("a", "b")) for n in range(17)]
    assert [len(each) for each in rounds(bins, spark)] == [8, 8, 1]
    assert list(rounds([], spark)) == []


def test_a_commit_of_delta_that_only_replaces_changes_no_row():
    old = delta_commit.File("date=2025-11-17/a b.parquet", 10, {"date": "2025-11-17"})
    new = delta_commit.File("date=2025-11-17/c.parquet", 20, {"date": "2025-11-17"}, '{"numRecords": 1}')
    info, remove, add = map(json.loads, delta_commit.encode(5, 7, {"horolog.offsets": "{}"}, [old], [new]).splitlines())
    assert info["commitInfo"]["readVersion"] == 6
    assert info["commitInfo"]["horolog.offsets"] == "{}"
    assert remove["remove"]["path"] == "date=2025-11-17/a%20b.parquet"
    assert (remove["remove"]["dataChange"], add["add"]["dataChange"], add["add"]["size"]) == (False, False, 20)
    assert delta_commit.name_of(7) == "00000000000000000007.json"


@pytest.mark.parametrize(
    ("version", "features", "plain"),
    [(2, None, True), (3, None, False), (7, ["timestampNtz"], True), (7, ["rowTracking"], False), (7, None, True)],
)
def test_features_that_a_writer_has_to_know_leave_delta_to_its_own_library(version, features, plain):
    assert delta_commit.is_plain(SimpleNamespace(min_writer_version=version, writer_features=features)) == plain


# -- every kind of table


def write(table, spark, offsets, bytes_each=20, days=2):
    """A commit with a file for each day; values that do not compress."""
    rows = [
        ("t", 0, n, 0, str(n).encode(), (f"{n:08}" + _noise(n, bytes_each)).encode())
        for n in offsets
    ]  # fmt: skip
    frame = spark.createDataFrame(
        rows, "topic string, partition int, offset long, timestampType int, key binary, value binary"
    )
    frame = frame.selectExpr(
        "topic", "partition", "offset", f"timestamp_millis({BASE_MS} + offset % {days} * {DAY_MS} + offset) as timestamp",
        "timestampType", "key", "value", "cast(null as array<struct<key:string,value:binary>>) as headers",
    )  # fmt: skip
    with writing(table):
        table.offsets()
        table.append(frame.coalesce(1), {PLACE: offsets[-1] + 1}, {"t": "id"})


def _noise(seed, count):
    import random

    return "".join(random.Random(seed).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=count))


def files_in(folder):
    return {path: path.stat().st_mtime_ns for path in Path(folder).rglob("*.parquet") if "date=" in str(path)}


def rows_of(spark, kind, folder):
    found = open_table(kind, str(folder), spark).rows().select("offset", "key", "value", "timestamp").collect()
    return sorted((row["offset"], bytes(row["key"]), bytes(row["value"]), row["timestamp"]) for row in found)


@pytest.mark.parametrize("kind", FORMATS)
def test_small_files_become_one_and_large_ones_are_not_touched(spark, tmp_path, kind, monkeypatch):
    monkeypatch.setattr(row_files, "TARGET_FILE_BYTES", 40_000)
    folder = tmp_path / "a table"
    table = open_table(kind, str(folder), spark)
    write(table, spark, range(400), bytes_each=300)  # two files of more than half the target
    large = files_in(folder)
    assert all(path.stat().st_size >= 20_000 for path in large)
    for start in (400, 404, 408):
        write(table, spark, range(start, start + 4))
    write(table, spark, range(412, 413), days=1000)  # alone on its day
    lone = set(files_in(folder)) - set(large)
    before = rows_of(spark, kind, folder)
    with writing(table):
        assert table.compact() == 4, "three files of each of two days are one of each"
        assert table.compact() == 0
        assert (table.offsets(), table.topic_ids()) == ({PLACE: 413}, {"t": "id"})
    assert rows_of(spark, kind, folder) == before
    after = files_in(folder)
    assert {path: after[path] for path in large} == large, "large files are left alone"
    named = {Path(path.removeprefix("file:")) for path in map(_plain, table.rows().inputFiles())}
    assert len(named) == 5
    assert len(named & lone) == 1
    for path in named - set(large):
        assert pq.read_table(path, columns=["offset"]).column(0).to_pylist() == sorted(
            pq.read_table(path, columns=["offset"]).column(0).to_pylist()
        )
    write(table, spark, range(413, 417))
    with writing(table):
        assert table.compact() == 2
    assert len(rows_of(spark, kind, folder)) == 417


def _plain(url):
    from urllib.parse import unquote

    return unquote(url.replace("file:///", "file:/"))


def test_delta_tables_that_only_replaced_files_are_read_by_others(spark, tmp_path):
    from deltalake import DeltaTable

    table = open_table("delta", str(tmp_path / "table"), spark)
    for start in (0, 4, 8):
        write(table, spark, range(start, start + 4))
    version = DeltaTable(table.folder).version()
    with writing(table):
        assert table.compact() == 4
    found = DeltaTable(table.folder)
    assert found.version() == version + 1
    assert found.history(1)[0]["operation"] == "OPTIMIZE"
    assert sorted(found.to_pyarrow_table()["offset"].to_pylist()) == list(range(12))
    found.create_checkpoint()
    assert sorted(DeltaTable(table.folder).to_pyarrow_table()["offset"].to_pylist()) == list(range(12))
    assert len(DeltaTable(table.folder, version=version).file_uris()) == 6
    with writing(table):
        assert table.vacuum(BASE_MS * 2).files == 6
    assert len(rows_of(spark, "delta", table.folder)) == 12


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_of_two_that_compact_at_once_one_does(spark, tmp_path, kind, monkeypatch):
    """A commit overtaken by another adds and takes away nothing."""
    folder = tmp_path / "table"
    table, other = (open_table(kind, str(folder), spark) for _ in range(2))
    for start in (0, 4):
        write(table, spark, range(start, start + 4))
    module = sys.modules[type(table).__module__]
    together = module.put_together

    def overtaken(*words):
        monkeypatch.setattr(module, "put_together", together)
        other.offsets()
        assert other.compact() == 2
        return together(*words)

    monkeypatch.setattr(module, "put_together", overtaken)
    with writing(table):
        table.offsets()
        with pytest.raises(CommitLost):
            table.compact()
    assert [row[0] for row in rows_of(spark, kind, folder)] == list(range(8))


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", FORMATS)
def test_the_drivers_memory_does_not_grow_with_the_date(tmp_path, kind):
    """A driver of 512 MiB, a date of a third of that and one of three times that: its Python stays as it is, its Java in its bound.

    Where `CODE_SEED` is set, as in .ci/run, one kind has its turn, with a date of half the size.
    """
    seed = os.environ.get("CODE_SEED")
    if seed is not None and FORMATS[int(seed) % len(FORMATS)] != kind:
        pytest.skip(f"another kind than {kind} has its turn with this code")
    small, large = (_peaks(tmp_path, kind, mebibytes) for mebibytes in (192, 1536 if seed is None else 768))
    assert large["files"] >= 4 * small["files"]
    assert large["python"] < small["python"] + 40, (small, large)
    assert large["java"] < 512 + 700, (small, large)


def _peaks(tmp_path, kind, mebibytes):
    command = [sys.executable, str(MEMORY), kind, str(tmp_path / str(mebibytes)), str(mebibytes)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=PROJECT, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_a_task_reads_the_files_of_its_bin_one_after_the_other(tmp_path):
    store = LocalStore(tmp_path)
    files = [written(store, rows(FIRST_DAY, FIRST_DAY))[0] for _ in range(3)]
    bins = [Bin(FIRST_DAY, tuple(one.name for one in files[:2])), Bin(FIRST_DAY, (files[2].name,))]
    reader = BinReader(store, bins, BY_DATE, pa.schema([]))
    for number, expected in ((0, 4), (1, 2)):
        batches = list(reader([pa.RecordBatch.from_pydict({"id": [number]})]))
        assert sum(batch.num_rows for batch in batches) == expected
