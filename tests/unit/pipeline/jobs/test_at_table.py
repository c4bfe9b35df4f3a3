"""Which table a job works on, and faults of tables in the words of the command line."""

import argparse
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest

from horolog.client.values.errors import ConnectionFailed
from horolog.client.values.types import TopicPartition
from horolog.commands.console import Console
from horolog.commands.errors import BusyError, CommandError, NotFoundError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.pipeline.base.positions import DataLoss, OptionError
from horolog.pipeline.jobs import at_table
from horolog.pipeline.jobs.at_table import (
    add_table,
    change_table,
    changing,
    existing_table,
    in_store,
    known_as,
    past_ms,
    table_of,
    told,
)
from horolog.pipeline.jobs.common import Summary
from horolog.pipeline.tables.lock import LockHeld
from horolog.pipeline.tables.table import CommitLost, TableError
from horolog.stores.faults import StoreError


def parsed(*words):
    parser = argparse.ArgumentParser()
    add_table(parser)
    return parser.parse_args([str(word) for word in words])


def test_a_table_is_a_folder_or_has_a_name_in_a_catalogue():
    assert table_of(parsed("--to", "/t")) == ("parquet", "/t")
    assert table_of(parsed("--to", "/t", "--format", "delta")) == ("delta", "/t")
    kind, table = table_of(parsed("--catalog", "c", "--table", "n.t", "--catalog-set", "uri=http://c"))
    assert (kind, table.table) == ("iceberg", "n.t")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give --to, or --catalog and --table"),
        (("--to", "/t", "--format", "delta", "--checkpoint", "/c"), "--checkpoint is for parquet; delta keeps offsets"),
        (("--catalog", "c", "--table", "n.t", "--format", "delta"), "--catalog is for Iceberg tables, not for delta"),
        (("--catalog", "c"), "the catalogue c has many tables"),
        (("--to", "/t", "--table", "n.t"), "--table and --catalog-set are for tables"),
    ],
)
def test_what_names_no_table_is_refused(words, said):
    with pytest.raises(UsageError, match=said):
        table_of(parsed(*words))


def test_a_table_that_is_to_be_changed_has_a_folder(tmp_path):
    assert existing_table(parsed("--to", tmp_path)) == ("parquet", str(tmp_path))
    assert existing_table(parsed("--to", f"file://{tmp_path}"))[1] == f"file://{tmp_path}"
    assert existing_table(parsed("--to", "s3a://b/t")) == ("parquet", "s3a://b/t")
    with pytest.raises(NotFoundError, match="there is no folder"):
        existing_table(parsed("--to", tmp_path / "none"))


@pytest.mark.parametrize(
    ("fault", "raised", "said"),
    [
        (LockHeld("u on h, pid 7 is writing"), BusyError, "/t: u on h, pid 7 is writing; nothing was done"),
        (CommitLost("another job was first"), BusyError, "/t: another job was first"),
        (OptionError("since: 'soon'"), UsageError, "since: 'soon'"),
        (DataLoss("offsets are gone"), CommandError, "offsets are gone"),
        (StoreError("no such bucket"), CommandError, "no such bucket"),
        (TableError("no table"), CommandError, "no table"),
        (ConnectionFailed("refused"), CommandError, "refused"),
    ],
)
def test_faults_are_told_in_one_sentence(fault, raised, said):
    with pytest.raises(raised) as found, told(argparse.Namespace(bootstrap="h:1"), "/t"):
        raise fault
    assert said in str(found.value)


def test_other_faults_keep_their_own_words():
    with pytest.raises(ZeroDivisionError), told(argparse.Namespace(bootstrap="h:1"), "/t"):
        raise ZeroDivisionError


def test_a_source_is_known_however_it_is_spelt(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert known_as("dump") == known_as(f"file://{tmp_path}/dump") == str(tmp_path / "dump")
    assert known_as("s3a://b/t/") == known_as("s3://b/t")
    assert known_as("jdbc:postgresql://db/shop") == "jdbc:postgresql://db/shop"
    assert known_as("hdfs://name/t") == "hdfs://name/t"
    assert known_as(SimpleNamespace(known_as="c n.t")) == "c n.t"


@pytest.mark.parametrize(
    ("source", "expected"),
    [("s3a://b/t", True), ("gs://b", True), ("hdfs://n/t", False), ("/t", False), ("jdbc:x", False)],
)
def test_object_stores_are_read_without_a_jar(source, expected):
    assert in_store(source) is expected


def test_a_time_of_age_lies_in_the_past():
    console = Console()
    now_ms = console.now_ms()
    assert now_ms - 3 * 86_400_000 <= past_ms("3d", "--older-than", console) <= now_ms - 2 * 86_400_000
    with pytest.raises(UsageError, match=r"--older-than: .* is in the future"):
        past_ms("2999-01-01", "--older-than", console)


class Table:
    def __init__(self, offsets):
        self.held = []
        self.lock = self
        self.taken_from = None
        self.offsets = lambda: offsets

    @contextmanager
    def hold(self, table, wait_ms, tell):
        self.held.append(wait_ms)
        yield table


@pytest.mark.parametrize(("dry_run", "held"), [(True, []), (False, [70])])
def test_the_lock_is_held_unless_nothing_is_changed(monkeypatch, dry_run, held):
    table = Table({TopicPartition("t", 0): 5})
    monkeypatch.setattr(at_table, "open_table", lambda *_: table)
    monkeypatch.setattr(at_table, "writing", table.hold)
    with changing(None, "/t", "parquet", None, 70, print, dry_run=dry_run) as found:
        assert found is table
        assert table.held == held


def test_a_folder_without_commits_is_no_table(monkeypatch):
    monkeypatch.setattr(at_table, "open_table", lambda *_: Table({}))
    with (
        pytest.raises(TableError, match="/t is not a table of horolog yet"),
        changing(None, "/t", "parquet", None, 0, print, dry_run=True),
    ):
        pass


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_job_changes_the_table_that_is_named(monkeypatch, tmp_path, capsys, dry_run):
    asked = []

    def job(spark, to, **more):
        asked.append((spark, to, more))
        return Summary("expire", 3)

    monkeypatch.setattr(at_table, "spark_of", lambda arguments: nullcontext("spark"))
    words = ("--to", tmp_path, "--wait", "2s", *(["--dry-run"] if dry_run else []))
    arguments = parsed(*words)
    arguments.bootstrap = "h:1"
    assert change_table(arguments, Console(), job, keep_days=5) == ExitCode.OK
    spark, to, more = asked[0]
    assert (spark, to, more["table_format"], more["dry_run"], more["keep_days"]) == (
        "spark",
        str(tmp_path),
        "parquet",
        dry_run,
        5,
    )
    said = capsys.readouterr()
    assert said.out.startswith("expire: 3 records")
    assert ("nothing was changed" in said.err) is dry_run
