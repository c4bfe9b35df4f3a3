"""What no version names leaves the folder, and not before it is old, unless somebody forces it."""

import os
import time

import pytest

from horolog.pipeline.jobs import vacuum
from tests.pipeline.jobs.test_archive import archived, consumed, days_of_records
from tests.support.names import unique


@pytest.fixture
def table(run, produce, tmp_path):
    """A folder of Parquet with a file that nobody names, an hour old; its topic."""
    topic, folder = unique("vacuumed"), tmp_path / "table"
    produce(topic, list(days_of_records(20)), partitions=2)
    assert run("archive", "--topic", topic, "--to", folder).code == 0
    orphan = folder / "date=2025-11-17" / "orphan.parquet"
    orphan.write_bytes(b"12345")
    os.utime(orphan, (time.time() - 3600,) * 2)
    return folder, topic, orphan


def test_an_orphan_goes_when_it_is_old(spark, run, table):
    folder, topic, orphan = table
    words = ("vacuum", "--to", folder, "-o", "json")
    assert run(*words).json["files"] == 0
    os.utime(orphan, (time.time() - 8 * 86_400,) * 2)
    would = run(*words, "--dry-run")
    assert (would.json["files"], would.json["bytes"], would.json["dry_run"], orphan.exists()) == (1, 5, True, True)
    assert "nothing was changed" in would.err
    ended = run(*words)
    assert (ended.json["files"], ended.json["dates"], orphan.exists()) == (1, ["2025-11-17"], False)
    assert archived(spark, "parquet", folder) == consumed(run, topic)


def test_a_shorter_time_has_to_be_forced(spark, run, table):
    folder, topic, orphan = table
    ended = run("vacuum", "--to", folder, "--older-than", "30m")
    assert (ended.code, "may belong to a job that is still writing them" in ended.err, orphan.exists()) == (
        2,
        True,
        True,
    )
    ended = run("vacuum", "--to", folder, "--older-than", "30m", "--force")
    assert (ended.code, orphan.exists()) == (0, False)
    assert "files: 1" in ended.out
    assert archived(spark, "parquet", folder) == consumed(run, topic)


def test_the_function_keeps_seven_days(spark, table):
    folder, _, orphan = table
    assert vacuum(spark, str(folder)).details["files"] == 0
    os.utime(orphan, (time.time() - 8 * 86_400,) * 2)
    assert vacuum(spark, str(folder), dry_run=True).details["files"] == 1
    assert vacuum(spark, str(folder)).details["files"] == 1
    assert not orphan.exists()
