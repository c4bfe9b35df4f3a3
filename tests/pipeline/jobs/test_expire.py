"""Old dates leave a table that is archived into, and the archive goes on where it was."""

import importlib

import pytest

from horolog.pipeline.tables.lock import writing
from horolog.pipeline.tables.table import FORMATS, open_table
from horolog.pipeline.tables.upkeep import Gone
from tests.pipeline.jobs.test_archive import BASE_MS, DAY_MS, archived, consumed, days_of_records
from tests.support.names import unique

expire = importlib.import_module("horolog.pipeline.jobs.expire")  # the front has the function

KEEP_FROM = "2025-11-18"


def kept(records):
    return [each for each in records if each[3] >= BASE_MS + DAY_MS]


@pytest.mark.parametrize("kind", FORMATS)
def test_rows_equal_those_of_a_consumer_without_the_dates_that_went(spark, run, produce, tmp_path, kind):
    topic, folder = unique("expired"), tmp_path / "table"
    archive = ("archive", "--topic", topic, "--to", folder, "--format", kind, "--step", "60", "-o", "json")
    words = ("expire", "--to", folder, "--format", kind, "--older-than", f"{KEEP_FROM}T23:00Z", "-o", "json")
    produce(topic, list(days_of_records(150)), partitions=2)
    assert run(*archive).code == 0
    records = consumed(run, topic)
    would = run(*words, "--dry-run")
    assert (would.code, would.json["records"]) == (0, len(records) - len(kept(records)))
    assert (would.json["dates"], would.json["dry_run"]) == (["2025-11-17"], True)
    assert would.json["files"] >= 1
    assert would.json["bytes"] > 0
    assert archived(spark, kind, folder) == records
    ended = run(*words, "--keep-versions", "0ms")
    assert (ended.code, ended.json["records"], ended.json["dry_run"]) == (0, would.json["records"], False), ended.err
    assert ended.json["versions"] >= 2
    assert archived(spark, kind, folder) == kept(records)
    assert run(*archive).json["records"] == 0
    produce(topic, list(days_of_records(40, seed=2)), partitions=2)
    assert run(*archive).json["records"] == 40
    everything = consumed(run, topic)
    news = [each for each in everything if each not in records]
    assert archived(spark, kind, folder) == sorted([*kept(records), *news])
    ended = run(*words, "--keep-versions", "0ms")
    assert ended.json["records"] == len(news) - len(kept(news))
    vacuumed = run("vacuum", "--to", folder, "--format", kind, "--older-than", "0ms", "--force", "-o", "json")
    assert vacuumed.code == 0, vacuumed.err
    assert archived(spark, kind, folder) == kept(everything)
    assert run(*archive).json["records"] == 0


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_in_a_bucket(spark, run, produce, s3, monkeypatch, kind):
    s3.enter(monkeypatch)
    topic, url = unique("expired"), s3.url(unique("table"))
    produce(topic, list(days_of_records(60)), partitions=2)
    archive = ("archive", "--topic", topic, "--to", url, "--format", kind, "--step", "30", "-o", "json")
    assert run(*archive).code == 0
    ended = run(
        "expire", "--to", url, "--format", kind, "--older-than", KEEP_FROM, "--keep-versions", "0ms", "-o", "json"
    )
    assert (ended.code, ended.json["dates"]) == (0, ["2025-11-17"]), ended.err
    assert archived(spark, kind, url) == kept(consumed(run, topic))
    vacuumed = run("vacuum", "--to", url, "--format", kind, "--older-than", "0ms", "--force", "-o", "json")
    assert (vacuumed.code, vacuumed.json["files"] > 0) == (0, kind == "delta"), vacuumed.err
    assert (vacuumed.json["bytes"] > 0) == (kind == "delta")
    assert run(*archive).json["records"] == 0
    assert archived(spark, kind, url) == kept(consumed(run, topic))


def test_what_makes_no_sense_is_said(spark, run, tmp_path):
    words = ("expire", "--to", tmp_path)
    for more, code, said in (
        ((), 2, "give --older-than or --keep-versions"),
        (("--older-than", "tomorrow"), 2, "is in the future"),
        (("--older-than", "1d", "--format", "delta", "--checkpoint", "x"), 2, "--checkpoint is for parquet"),
        (("--older-than", "1d"), 1, "is not a table of horolog yet"),
        (("--older-than", "1d", "--to", tmp_path / "none"), 4, "there is no folder"),
    ):
        ended = run(*words, *more)
        assert (ended.code, said in ended.err) == (code, True), ended


def test_another_job_at_the_table_is_told(spark, run, produce, tmp_path):
    topic, folder = unique("held"), tmp_path / "table"
    produce(topic, list(days_of_records(5)), partitions=2)
    assert run("archive", "--topic", topic, "--to", folder).code == 0
    with writing(open_table("parquet", str(folder), spark)):
        for job in ("expire", "vacuum"):
            ended = run(job, "--to", folder, "--older-than", "30d")
            assert (ended.code, "has been writing to the table" in ended.err) == (6, True)
            assert run(job, "--to", folder, "--older-than", "30d", "--dry-run").code == 0


class Table:
    """A table that notes the questions to it."""

    def __init__(self):
        self.asked = []

    def folders(self):
        return None

    def expire(self, keep_from, *, dry_run):
        self.asked.append(("expire", keep_from.isoformat(), dry_run))
        return Gone(2, 30, 400, ("2026-11-17",))

    def forget_versions(self, before_ms, *, dry_run):
        self.asked.append(("forget", before_ms, dry_run))
        return 7


@pytest.mark.parametrize(
    ("older_ms", "versions_ms", "asked"),
    [
        (None, 5, [("forget", 5, True)]),
        (20_000 * DAY_MS, None, [("expire", "2024-10-04", True)]),
        (None, None, []),
    ],
)
def test_only_what_is_asked_for_goes(older_ms, versions_ms, asked):
    table = Table()
    summary = expire._expired(table, older_ms, versions_ms, dry_run=True)
    assert table.asked == asked
    assert summary.details["versions"] == (7 if versions_ms else 0)
    assert (summary.records, summary.details["files"]) == ((30, 2) if older_ms else (0, 0))
