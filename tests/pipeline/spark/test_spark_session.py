"""The session's own choices: how Spark talks with its workers, and that nothing of it is left behind."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from horolog.pipeline.spark import spark_session
from horolog.pipeline.spark.spark_session import activate, session, settings, socket_folder, sockets_in

_RUN = """
from pathlib import Path
from horolog.pipeline import session
spark = session("local[1]", quick=True)
folder = Path(spark.conf.get("spark.python.unix.domain.socket.dir"))
assert spark.sparkContext.parallelize([3], 1).map(lambda n: n * n).collect() == [9]
assert list(folder.iterdir())
print(folder)
spark.stop()
"""


def test_a_path_that_is_too_long_for_sockets_is_left():
    assert sockets_in("/" + "x" * 60) == {}


@pytest.mark.spark
def test_sockets_are_gone_when_the_program_has_ended():
    pytest.importorskip("pyspark")
    done = subprocess.run([sys.executable, "-c", _RUN], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    folder = done.stdout.strip()
    assert sockets_in(folder)["spark.python.unix.domain.socket.dir"] == folder
    assert not Path(folder).exists()


def test_what_is_given_wins_over_the_defaults():
    made = settings("spark://host:7077", {"spark_sql_shuffle_partitions": 4, "spark.ui.enabled": True}, quick=False)
    assert (made["spark.sql.shuffle.partitions"], made["spark.ui.enabled"]) == ("4", "true")
    assert made["spark.sql.session.timeZone"] == "UTC"
    assert not any("JavaOptions" in name or "socket" in name or "bindAddress" in name for name in made)


def test_only_a_session_on_this_machine_uses_sockets_and_its_own_address():
    made = settings("local[2]", {}, quick=True)
    assert made["spark.python.unix.domain.socket.dir"] == socket_folder()
    assert made["spark.driver.bindAddress"] == "127.0.0.1"
    assert "SerialGC" in made["spark.executor.defaultJavaOptions"]
    assert "spark.driver.bindAddress" not in settings(None, {}, quick=False)


class Builder:
    """What makes a session, and what it was told."""

    def __init__(self):
        self.told = {}

    def appName(self, name):
        return self.config("name", name)

    def master(self, url):
        return self.config("master", url)

    def config(self, name, value):
        self.told[name] = value
        return self

    def getOrCreate(self):
        return self


@pytest.fixture
def builder(monkeypatch):
    sql = pytest.importorskip("pyspark.sql")
    made = Builder()
    monkeypatch.setattr(sql.SparkSession, "builder", made)
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "JAVA_HOME", "PYTHONPATH"):
        monkeypatch.setenv(name, "before")
        monkeypatch.delenv(name)
    return made


@pytest.mark.parametrize(("home", "master"), [("/java", "local[1]"), (None, None)])
def test_a_session_runs_this_python_and_the_java_that_is_found(builder, monkeypatch, home, master):
    monkeypatch.setattr(spark_session, "java_home", lambda environ: home)
    monkeypatch.setattr(spark_session, "listen", lambda folder: None)
    assert session(master, "name", spark_x_y=1) is builder
    assert (builder.told["name"], builder.told.get("master"), builder.told["spark.x.y"]) == ("name", master, "1")
    assert (os.environ["PYSPARK_PYTHON"], os.environ.get("JAVA_HOME")) == (sys.executable, home)


def test_a_notebook_shows_the_tasks_of_the_session(builder, monkeypatch):
    shown = SimpleNamespace(tasks=None)
    monkeypatch.setattr(spark_session, "java_home", lambda environ: None)
    monkeypatch.setattr(spark_session, "listen", lambda folder: shown)
    monkeypatch.setattr(spark_session, "tasks_of", lambda spark: (3, 4) if spark is builder else None)
    session("local[1]")
    assert shown.tasks() == (3, 4)


def test_workers_find_this_package_and_whatever_else_was_to_be_found(builder, monkeypatch):
    root = str(Path(spark_session.__file__).resolve().parents[3])
    monkeypatch.setenv("PYTHONPATH", "/own")
    spark_session._show_workers_this_package()
    spark_session._show_workers_this_package()
    assert os.environ["PYTHONPATH"].split(os.pathsep) == ["/own", root]


@pytest.mark.parametrize(("remote", "asked"), [(False, [([], "nothing int")]), (True, [])])
def test_a_thread_gets_an_active_session_unless_that_is_elsewhere(monkeypatch, remote, asked):
    utils = pytest.importorskip("pyspark.sql.utils")
    monkeypatch.setattr(utils, "is_remote", lambda: remote)
    found = []
    activate(SimpleNamespace(createDataFrame=lambda *given: found.append(given)))
    assert found == asked
