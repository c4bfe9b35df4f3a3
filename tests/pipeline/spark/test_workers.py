"""What a worker has imported is not gone through after each task."""

import asyncio
import subprocess
import sys
from itertools import count

import pytest

pytest.importorskip("pyspark")

from horolog.client.values.types import TopicPartition
from horolog.pipeline.base.positions import OffsetRange
from horolog.pipeline.options.options import parse_read
from horolog.pipeline.reading import online, stream
from horolog.pipeline.sources import source
from horolog.pipeline.spark import workers
from horolog.pipeline.writing import write

TASK = online.RangeTask(OffsetRange(TopicPartition("t", 0), 0, 1))
FROM_BROKER = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}

_CHECK = """
import gc
from horolog.pipeline.spark.workers import begin_task
begin_task()
assert gc.get_freeze_count() == 0
begin_task()
frozen = gc.get_freeze_count()
assert frozen > 1000, frozen
later = [[]]
begin_task()
assert gc.get_freeze_count() <= frozen
assert any(one is later for one in gc.get_objects())
"""


class Begun(Exception):
    pass


def begun():
    raise Begun


def test_what_the_first_task_has_imported_is_frozen_once():
    """In a process of its own: this one is to collect as before."""
    subprocess.run([sys.executable, "-c", _CHECK], check=True, timeout=60)


def test_every_task_begins_with_it(monkeypatch, tmp_path):
    for module in (online, source, write):
        monkeypatch.setattr(module, "begin_task", begun)
    begin = [
        lambda: source.FilesReader(parse_read({"path": str(tmp_path)}, 0)).read(source.FilesTask([], {})),
        lambda: online.BrokerReader(parse_read(FROM_BROKER, 0)).read(TASK),
        lambda: stream.BrokerStream(parse_read(FROM_BROKER, 0, streaming=True)).read(TASK),
        lambda: asyncio.run(write._write(None, iter(()), None)),
    ]
    for one in begin:
        with pytest.raises(Begun):
            one()


def test_only_the_second_task_freezes_what_there_is(monkeypatch):
    frozen = []
    monkeypatch.setattr(workers, "_tasks", count(1))
    monkeypatch.setattr(workers.gc, "freeze", lambda: frozen.append(1))
    for expected in (0, 1, 1, 1):
        workers.begin_task()
        assert len(frozen) == expected
