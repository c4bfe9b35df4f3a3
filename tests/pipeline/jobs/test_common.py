"""Progress of jobs: a line that is drawn again at a terminal, lines elsewhere if they are asked for, and silence if not."""

import argparse
import asyncio
import importlib.util
import io
import json

import pytest

from horolog.commands.console import Console
from horolog.commands.errors import CommandError, NotFoundError, UsageError
from horolog.pipeline.jobs import common
from horolog.pipeline.spark import spark_session, spark_versions
from tests.support.names import unique


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


CAST = """[CAST_INVALID_INPUT] The value 'noon' of the type "STRING" cannot be cast to "TIMESTAMP". SQLSTATE: 22018
== DataFrame ==
"cast" was called from
/usr/lib/python3/horolog/pipeline/jobs/bootstrap.py:138
"""
ANALYSIS = """[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `at` cannot be resolved. SQLSTATE: 42703; line 1 pos 0;
'Project ['at]
+- Range (0, 1, step=1, splits=Some(1))
"""
UNCAUSED = """An error occurred while calling o165.collect.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///a.csv.  SQLSTATE: KD001
\tat org.apache.spark.X.read(X.scala:1)
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
        (CAST, """[CAST_INVALID_INPUT] The value 'noon' of the type "STRING" cannot be cast to "TIMESTAMP"."""),
        (ANALYSIS, "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `at` cannot be resolved."),
        (UNCAUSED, "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///a.csv."),
    ],
)
def test_the_cause_of_a_failure_is_one_line(text, cause):
    assert common._cause(text) == cause


def parsed(*words):
    parser = argparse.ArgumentParser()
    common.add_common(parser)
    common.add_range(parser)
    common.add_catalogue(parser)
    return parser.parse_args([str(word) for word in words])


def test_the_arguments_that_jobs_share():
    arguments = parsed("--bootstrap", "h:1", "-t", "orders", "--since", "1970-01-02", "--conf", "a=b")
    assert common.one_topic(arguments) == "orders"
    assert common.times_of(arguments, Console(err=io.StringIO()))[1] is None
    assert (arguments.conf, arguments.progress, arguments.quick, arguments.master) == (["a=b"], False, False, None)
    arguments.security = None
    assert str(common.brokers_of(arguments)) == "h:1"
    for topics in ((), ("-t", "a", "-t", "b")):
        with pytest.raises(UsageError, match="give one --topic, not"):
            common.one_topic(parsed(*topics))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--table", "n.t"), "--table and --catalog-set are for tables in a catalogue"),
        (("--catalog-set", "uri=x"), "--table and --catalog-set are for tables in a catalogue"),
        (("--catalog", "c"), "the catalogue c has many tables"),
        (("--catalog", "c", "--table", "unqualified"), "unqualified"),
    ],
)
def test_a_table_of_a_catalogue_that_cannot_be_is_refused(words, said):
    with pytest.raises(UsageError, match=said):
        common.catalogue_table(parsed(*words))


def test_a_table_of_a_catalogue_has_its_name():
    assert common.catalogue_table(parsed()) is None
    assert common.catalogue_table(parsed("--catalog", "c", "--table", "n.t")).table == "n.t"


@pytest.fixture
def no_session(monkeypatch):
    sql = pytest.importorskip("pyspark.sql")
    monkeypatch.setattr(sql.SparkSession, "getActiveSession", staticmethod(lambda: None))
    made = Session()
    monkeypatch.setattr(spark_session, "session", made)
    return made


def test_what_is_not_installed_is_told_before_anything_else(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CommandError, match="pyspark, pyarrow, pandas is not installed"), common.spark_of(parsed()):
        pass


def test_a_spark_that_is_too_old_is_told(monkeypatch, no_session):
    def refuse():
        raise spark_versions.UnsupportedSparkError("horolog needs Spark 4.0 or newer")

    monkeypatch.setattr(spark_versions, "require_data_sources", refuse)
    with pytest.raises(CommandError, match=r"needs Spark 4\.0 or newer"), common.spark_of(parsed()):
        pass
    assert no_session.asked == []


@pytest.mark.parametrize(("port", "master"), [(None, "local[*]"), ("1234", None)])
def test_within_spark_submit_spark_says_where_it_runs(monkeypatch, no_session, port, master):
    if port is None:
        monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    else:
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", port)
    with common.spark_of(parsed()):
        pass
    assert no_session.asked[0][0] == master


def test_a_running_session_is_used_and_left_running(monkeypatch, no_session):
    sql = pytest.importorskip("pyspark.sql")
    monkeypatch.setattr(sql.SparkSession, "getActiveSession", staticmethod(lambda: "running"))
    with common.spark_of(parsed()) as spark:
        assert spark == "running"
    assert no_session.asked == []


def test_an_error_of_spark_is_one_line_and_the_session_ends_even_if_java_has_gone(monkeypatch, no_session):
    errors = pytest.importorskip("pyspark.errors")

    def stop():
        no_session.asked.append("stopped")
        raise OSError("Java has gone")

    no_session.stop = stop
    with pytest.raises(CommandError, match=r"^Spark failed: ValueError: odd$"), common.spark_of(parsed()):
        raise errors.PySparkException("Traceback\n  File x\nValueError: odd\n")
    assert no_session.asked[-1] == "stopped"


def test_a_missing_topic_is_told_before_spark_starts(session_broker, run):
    arguments, topic = parsed("--bootstrap", session_broker.address), unique("there")
    arguments.security = None
    assert run("create", topic, command=("topics",)).code == 0
    asyncio.run(common.require_topics(arguments, [topic]))
    with pytest.raises(NotFoundError, match="no-such-topic"):
        asyncio.run(common.require_topics(arguments, [topic, "no-such-topic"]))


def test_a_job_ends_with_what_it_did(capsys):
    summary = common.Summary("archive", 1500, 2_000_000, 2.0, {"sent_twice": 3})
    common.show_summary(summary, Console())
    assert capsys.readouterr().out == "archive: 1,500 records, 2.0 MB in 2.0 s (750/s)\n  sent twice: 3\n"
    common.show_summary(common.Summary("archive"), Console())
    assert capsys.readouterr().out == "archive: 0 records, 0.0 MB in 0.0 s (0/s)\n"
    console = Console()
    console.as_json = True
    common.show_summary(summary, console)
    assert json.loads(capsys.readouterr().out) == {
        "job": "archive",
        "records": 1500,
        "bytes": 2_000_000,
        "seconds": 2.0,
        "sent_twice": 3,
    }


def test_progress_has_the_time_that_a_job_has_come_to():
    progress = common.JobProgress(Console(err=io.StringIO()), None)
    progress.advance(5, 10, 1_700_000_000_000)
    progress.advance(1)
    assert (progress.records, progress.size_bytes, progress.time_ms) == (6, 10, 1_700_000_000_000)
    assert progress.seconds >= 0
    assert "at 2023-11-14" in progress._line()
    progress.clear()
