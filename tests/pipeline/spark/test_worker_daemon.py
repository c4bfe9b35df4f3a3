"""A query that stops reading early ends without a word; an error of a task is told all the same."""

import subprocess
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from tests.pipeline.clusters import SETTINGS, create, fill
from tests.support.broker_process import BrokerProcess
from tests.support.style import PROJECT

pytest.importorskip("pyspark")

from horolog.pipeline.spark import worker_daemon

COUNT = 60_000
"""More than the sockets' buffers hold."""
_LOOK = """
import sys
from horolog import pipeline
spark = pipeline.session("local[2]", quick=True)
bootstrap, folder = sys.argv[1:]
for rows in (
    spark.read.format("horolog").option("kafka.bootstrap.servers", bootstrap).option("subscribe", "t").load(),
    spark.read.format("horolog").load(folder),
):
    rows.show(2)
    assert len(rows.limit(5).collect()) == 5
    assert rows.first().topic == "t"
    assert len(rows.mapInPandas(lambda frames: frames, rows.schema).take(3)) == 3
assert spark.sparkContext.parallelize(range(1000), 2).map(lambda n: "x" * 100_000).take(1)
"""
_FAULT = """
import os, signal
from horolog import pipeline
spark = pipeline.session("local[1]", quick=True)
def fails(frames):
    for frame in frames:
        yield frame
        raise ValueError("a fault of the task")
def dies(frames):
    for frame in frames:
        yield frame
        os.kill(os.getpid(), signal.SIGKILL)
for work in (fails, dies):
    try:
        spark.range(100).mapInPandas(work, "id long").collect()
    except Exception as error:
        print(work.__name__, str(error).replace("\\n", " "))
"""


@pytest.mark.parametrize(
    "error", [BrokenPipeError(32, "Broken pipe"), ConnectionResetError(104, "reset"), OSError(28, "No space")]
)
def test_a_daemon_prints_every_fault_but_a_pipe_that_spark_has_closed(capsys, error):
    daemon = ModuleType("daemon")
    worker_daemon.hush(daemon)
    try:
        raise error
    except OSError:
        daemon.traceback.print_exc()
        assert "Traceback" in daemon.traceback.format_exc()
    assert ("No space" in capsys.readouterr().err) == (error.errno == 28)


def test_only_a_process_of_sparks_daemon_is_hushed(monkeypatch):
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    for spec, hushed in (
        (None, False),
        (ModuleSpec("pytest", None), False),
        (ModuleSpec("pyspark.daemon", None), True),
    ):
        main.__spec__ = spec
        worker_daemon.hush_this_process()
        assert hasattr(main, "traceback") == hushed


def test_the_daemon_is_sparks_own(monkeypatch):
    daemon = ModuleType("pyspark.daemon")
    daemon.manager = lambda: hasattr(daemon, "traceback") or pytest.fail("it runs as it is")
    monkeypatch.setattr("pyspark.daemon", daemon, raising=False)
    worker_daemon.run()


def run_program(program, *words):
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, words)],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        cwd=PROJECT,
    )


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_a_first_look_says_nothing_but_rows(tmp_path):
    broker = BrokerProcess(tmp_path / "data", SETTINGS).start()
    try:
        create(broker, "t")
        fill(broker, "t", count=COUNT)
        done = run_program(_LOOK, broker.address, broker.data)
    finally:
        broker.stop()
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("only showing top 2 rows") == 2
    for word in ("Traceback", "BrokenPipe", "never retrieved", "ERROR", "Exception"):
        assert word not in done.stderr, done.stderr


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_faults_of_tasks_are_told():
    done = run_program(_FAULT)
    assert done.returncode == 0, done.stderr
    fails, dies = done.stdout.strip().splitlines()
    assert "a fault of the task" in fails
    assert dies.startswith("dies ")
    assert "Python worker" in dies
