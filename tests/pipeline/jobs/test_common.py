"""Progress of jobs: a line that is drawn again at a terminal, lines elsewhere if they are asked for, and silence if not."""

import argparse
import io

import pytest

from horolog.commands.console import Console
from horolog.pipeline.jobs import common
from horolog.pipeline.spark import spark_session


class Screen(io.StringIO):
    def isatty(self):
        return True


def said(monkeypatch, err, *, asked):
    moments = iter([100.0, *(each for second in range(1, 13) for each in (100.0 + second, 100.0 + second))] * 2)
    monkeypatch.setattr(common.time, "monotonic", lambda: next(moments, 200.0))
    monkeypatch.setattr(common, "progress_line", lambda records, *_: f"{records} records")
    console = Console(err=err)
    progress = common.progress_of(argparse.Namespace(progress=asked), console, 12)
    for _ in range(12):
        progress.advance(1, 10)
    progress.clear()
    return err.getvalue()


def test_without_a_terminal_nothing_is_said_unless_it_is_asked_for(monkeypatch):
    assert said(monkeypatch, io.StringIO(), asked=False) == ""
    lines = said(monkeypatch, io.StringIO(), asked=True).splitlines()
    assert 1 <= len(lines) <= 3
    assert all(line.endswith(" records") for line in lines)


@pytest.mark.parametrize("asked", [False, True])
def test_at_a_terminal_one_line_is_drawn_again_and_cleared(monkeypatch, asked):
    text = said(monkeypatch, Screen(), asked=asked)
    assert "\n" not in text
    assert text.count("records") > 3
    assert text.endswith("\r\x1b[K")


def test_the_line_has_the_share_and_the_rest():
    line = common.progress_line(250, 5_000_000, 1000, "", 10.0)
    assert line == "250 of 1,000 records  25 %  5.0 MB  25/s  30 s left"
    assert common.progress_line(250, 0, None, "10:05", 10.0) == "250 records  0.0 MB  at 10:05  25/s"
    assert common.progress_line(0, 0, 0, "", 0.0) == "0 of 0 records  0.0 MB  0/s"


class Session:
    """What a job asked a session for, in place of one."""

    def __init__(self):
        self.asked = []

    def __call__(self, master, name, *, quick, **conf):
        self.asked.append((master, quick, conf))
        return self

    def stop(self):
        self.asked.append("stopped")


@pytest.mark.parametrize("words", [(), ("--quick",)])
def test_a_job_has_the_java_of_a_cluster_unless_it_is_to_be_quick(monkeypatch, words):
    sql = pytest.importorskip("pyspark.sql")
    session = Session()
    monkeypatch.setattr(sql.SparkSession, "getActiveSession", staticmethod(lambda: None))
    monkeypatch.setattr(spark_session, "session", session)
    parser = argparse.ArgumentParser()
    common.add_spark(parser)
    with common.spark_of(parser.parse_args(["--master", "spark://host:7077", *words])):
        pass
    (master, quick, conf), end = session.asked
    assert (master, quick, end) == ("spark://host:7077", bool(words), "stopped")
    made = spark_session.settings(master, conf, quick=quick)
    options = [value for name, value in made.items() if "JavaOptions" in name]
    assert any("TieredStopAtLevel" in each or "SerialGC" in each for each in options) == bool(words)


JAVA = """An error occurred while calling o63.collect.
: org.apache.spark.SparkException: Job aborted
\tat org.apache.spark.Scheduler.abort(Scheduler.scala:1)
Caused by: java.io.IOException: first
\tat java.base/java.io.X.read(X.java:7)
\t... 5 more
Caused by: java.io.IOException: No space left on device
\t... 25 more
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "the reason is unknown"),
        ("something odd", "something odd"),
        ("[X] SQLSTATE\n  SQLSTATE: KD000\n", "[X] SQLSTATE"),
        ("Traceback\n  File x\nValueError: no number: 'x'\n", "ValueError: no number: 'x'"),
        (
            "Job aborted: Traceback\nValueError: 5: not shown\nhorolog.pipeline.tables.table.TableError: no table\n",
            "horolog.pipeline.tables.table.TableError: no table",
        ),
        (
            JAVA,
            "java.io.IOException: No space left on device",
        ),
    ],
)
def test_the_cause_of_a_failure_is_one_line(text, cause):
    assert common._cause(text) == cause
