"""A job that goes on with a Delta table reads of its log what came since, and not all of it at each step."""

import datetime as dt

import pytest

from horolog.client.values.types import TopicPartition
from horolog.pipeline.tables.delta import LOG
from horolog.pipeline.tables.table import ROWS, CommitLost, open_table

PLACE = TopicPartition("t", 0)
NOON = dt.datetime(2026, 11, 17, 12, tzinfo=dt.UTC)


@pytest.fixture
def append(spark):
    def append_to(table, offset):
        rows = spark.createDataFrame([("t", 0, offset, NOON, 0, None, b"v", None)], ROWS).coalesce(1)
        table.append(rows, {PLACE: offset + 1}, {"t": "id"})

    return append_to


def overwrite_log(folder):
    """Whoever reads one of these commits again fails."""
    for path in (folder / LOG).glob("*.json"):
        path.write_bytes(b"no commit")


def test_a_commit_that_was_read_is_not_read_again(spark, append, tmp_path):
    table = open_table("delta", str(tmp_path / "t"), spark)
    assert table.offsets() == {}
    append(table, 0)
    append(table, 1)
    overwrite_log(tmp_path / "t")
    assert (table.offsets(), table.topic_ids()) == ({PLACE: 2}, {"t": "id"})
    append(table, 2)
    assert table.offsets() == {PLACE: 3}


def test_what_others_have_committed_meanwhile_is_seen(spark, append, tmp_path):
    table, other = (open_table("delta", str(tmp_path / "t"), spark) for _ in range(2))
    assert table.offsets() == {}
    append(table, 0)
    assert other.offsets() == {PLACE: 1}
    append(other, 1)
    with pytest.raises(CommitLost):
        append(table, 1)
    assert table.offsets() == {PLACE: 2}
    other._seen.optimize.compact()  # another engine's commit, which says nothing of offsets
    assert table.offsets() == {PLACE: 2}
    append(table, 2)
    assert (other.offsets(), other.rows().count()) == ({PLACE: 3}, 3)


def test_a_table_in_the_place_of_the_one_that_was_seen_is_read_anew(spark, append, tmp_path):
    table, folder = open_table("delta", str(tmp_path / "t"), spark), tmp_path / "t"
    assert table.offsets() == {}
    for offset in range(3):
        append(table, offset)
    folder.rename(tmp_path / "old")
    other = open_table("delta", str(folder), spark)
    assert other.offsets() == {}
    append(other, 40)
    assert table.offsets() == {PLACE: 41}
