"""A read of a live folder outlasts retention and compaction: planned files stay until its tasks have read them."""

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from horolog.base import pins
from horolog.base.pins import NAME, Owner, folder_of, scans_in
from horolog.broker.log.manager import partition_of
from horolog.client.values.types import TopicPartition
from horolog.pipeline.base.positions import DataLoss
from horolog.pipeline.options.options import parse_read
from horolog.pipeline.reading.offline import Piece
from horolog.pipeline.reading.pins import held, links_of, plan_and_pin, release
from horolog.pipeline.reading.pushdown import EVERYTHING
from horolog.pipeline.sources.source import FilesReader
from tests.pipeline import samples
from tests.pipeline.reading.test_offline import NOW_MS, log_of


@pytest.fixture
def data(tmp_path):
    """Ten segments of 200 records, in a folder of ours."""
    folder, _ = log_of(tmp_path)
    (folder / "horolog-cluster").touch()
    return folder


def reader_of(data, **options):
    return FilesReader(parse_read({"path": str(data), "maxBytesPerTask": "200000", **options}, NOW_MS))


def offsets(reader, task):
    return [offset for batch in reader.read(task) for offset in batch["offset"].to_pylist()]


def take_away(data, names=("*.log", "*.index", "*.timeindex")):
    """As retention does it: the oldest eight segments are gone."""
    for name in names:
        for path in sorted((data / "topic-0").glob(name))[:8]:
            path.unlink()


def test_what_retention_takes_after_the_plan_is_read_all_the_same(data):
    reader = reader_of(data)
    tasks = reader.partitions()
    assert len(tasks) > 2
    take_away(data)
    found = [offset for task in tasks for offset in offsets(reader, task)]
    assert found == list(range(2000))
    assert not folder_of(data).exists(), "released by the last task"


def test_what_compaction_puts_in_its_place_is_not_read(data):
    reader = reader_of(data)
    tasks = reader.partitions()
    for path in sorted((data / "topic-0").glob("*.log"))[:8]:
        aside = path.with_suffix(".cleaned")
        aside.write_bytes(path.read_bytes()[:1000])
        aside.replace(path)
    assert [offset for task in tasks for offset in offsets(reader, task)] == list(range(2000))


def test_a_task_that_nobody_reads_to_its_end_lets_its_files_go(data):
    reader = reader_of(data)
    first, *others = reader.partitions()
    rows = reader.read(first)
    next(rows)
    rows.close()
    for task in others:
        assert offsets(reader, task)
    assert not folder_of(data).exists()


def test_a_task_that_is_run_again_reads_what_is_there(data):
    reader = reader_of(data)
    tasks = reader.partitions()
    assert [offset for _ in range(2) for task in tasks for offset in offsets(reader, task)] == [*range(2000)] * 2
    take_away(data)
    with pytest.raises(DataLoss, match="removed after the read was planned"):
        offsets(reader, tasks[0])


def test_what_a_dead_driver_has_left_is_swept_by_the_next_read(data):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        owner = Owner.of(child.pid)
        child.stdin.close()
        child.wait()
    pins.pin(folder_of(data), owner, [[str(path) for path in (data / "topic-0").glob("*.log")]])
    reader = reader_of(data)
    tasks = reader.partitions()
    (scan,) = scans_in(folder_of(data))
    assert scan.owner.pid == os.getppid()
    for task in tasks:
        offsets(reader, task)
    assert not folder_of(data).exists()


@pytest.mark.parametrize("code", [errno.EPERM, errno.EROFS, errno.EXDEV])
def test_who_may_not_link_reads_without_pins_and_is_told(data, monkeypatch, capsys, code):
    def refused(*_):
        raise OSError(code, os.strerror(code), "x")

    monkeypatch.setattr(Path, "hardlink_to", refused)
    reader = reader_of(data)
    tasks = reader.partitions()
    said = capsys.readouterr().err
    assert "its files are not pinned" in said
    assert os.strerror(code) in said
    assert [offset for task in tasks for offset in offsets(reader, task)] == list(range(2000))
    assert not folder_of(data).exists()


def test_files_that_go_between_plan_and_pin_are_planned_again(data, monkeypatch):
    real, left = pins.pin, [True]

    def pin(*given):
        if left:
            left.clear()
            take_away(data)
        return real(*given)

    monkeypatch.setattr(pins, "pin", pin)
    reader = reader_of(data)
    assert [offset for task in reader.partitions() for offset in offsets(reader, task)] == list(range(1600, 2000))


def test_no_partition_has_the_name_of_the_folder_of_pins():
    assert partition_of(NAME) is None


def test_spark_reads_a_folder_and_leaves_nothing_behind(spark, data):
    rows = spark.read.format("horolog").option("maxBytesPerTask", "200000").load(str(data))
    assert rows.count() == 2000
    deadline = time.monotonic() + 60
    while folder_of(data).exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert rows.where(f"timestamp >= timestamp_millis({samples.BASE_MS + 1000 * 1990})").count() == 10


def test_files_that_are_always_gone_are_a_loss(data, monkeypatch):
    def gone(*_):
        raise FileNotFoundError(errno.ENOENT, "gone", "x.log")

    monkeypatch.setattr(pins, "pin", gone)
    with pytest.raises(DataLoss, match=r"x\.log is gone: a broker removes files faster than they can be planned"):
        reader_of(data).partitions()


def test_a_file_that_was_compacted_between_plan_and_pin_is_planned_again(data, monkeypatch):
    real, cut = pins.pin, []

    def pin(folder, owner, tasks):
        links = real(folder, owner, tasks)
        if not cut:
            cut.append(next(iter(links[0].values())))
            os.truncate(shortened(cut[0]), 10)
        return links

    def shortened(link):
        """The link stays, with the content of a file that compaction has put in its place."""
        Path(link).unlink()
        Path(link).write_bytes(b"x" * 20)
        return link

    monkeypatch.setattr(pins, "pin", pin)
    reader = reader_of(data)
    assert [offset for task in reader.partitions() for offset in offsets(reader, task)] == list(range(2000))
    assert not Path(cut[0]).exists()


def test_pins_are_let_go_at_the_end_of_what_holds_them(data):
    reader = reader_of(data)
    tasks = [task.pieces for task in reader.partitions()]
    with held(tasks):
        assert folder_of(data).exists()
    assert not folder_of(data).exists()


def test_what_is_not_pinned_is_not_let_go():
    assert links_of([Piece(TopicPartition("t", 0), "/x", 0, 1, 0, 1)]) == []
    release([])


def test_a_range_without_records_pins_nothing(data):
    options = parse_read({"path": str(data), "startingTimestamp": "2099-01-01"}, 0)
    _, tasks = plan_and_pin(options, EVERYTHING, lambda plan: [], os.getpid(), print)
    assert tasks == []
    assert not folder_of(data).exists()
