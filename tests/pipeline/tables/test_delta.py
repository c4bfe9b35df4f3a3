"""A job that goes on with a Delta table reads of its log what came since, and not all of it at each step."""

import datetime as dt

import pyarrow as pa
import pytest

from horolog.client.values.types import TopicPartition
from horolog.pipeline.tables import delta, delta_commit
from horolog.pipeline.tables.delta import LOG
from horolog.pipeline.tables.lock import writing
from horolog.pipeline.tables.table import ROWS, CommitLost, TableError, open_table
from horolog.stores.faults import StoreError
from tests.pipeline.reading.test_object_files import uploaded
from tests.pipeline.tables.every_table import LATE_ROW, TableTests, offsets_of, written

PLACE = TopicPartition("t", 0)
NOON = dt.datetime(2026, 11, 17, 12, tzinfo=dt.UTC)


class TestDelta(TableTests):
    kind = "delta"

    def test_other_features_leave_compaction_to_deltas_own_library(self, table, monkeypatch):
        monkeypatch.setattr(delta_commit, "is_plain", lambda protocol: False)
        rows = offsets_of(table)
        with writing(table):
            assert table.compact() == 5
            assert table.offsets() == {PLACE: 16}
        assert offsets_of(table) == rows


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


def test_a_delta_table_without_offsets_is_not_ours(spark, tmp_path):
    from deltalake import DeltaTable

    DeltaTable.create(tmp_path / "t", pa.schema([("offset", pa.int64())]))
    with pytest.raises(TableError, match="no commit names its topics"):
        open_table("delta", str(tmp_path / "t"), spark).offsets()


def test_a_broken_log_is_no_delta_table(spark, tmp_path):
    (tmp_path / "t" / LOG).mkdir(parents=True)
    (tmp_path / "t" / LOG / "00000000000000000000.json").write_bytes(b"no commit")
    with pytest.raises(TableError, match=r"/t is not a Delta table: "):
        open_table("delta", str(tmp_path / "t"), spark)


def test_a_map_whose_values_get_new_fields_is_refused(spark, append, tmp_path):
    table = open_table("delta", str(tmp_path / "t"), spark)
    table.offsets()
    one, two = (
        pa.schema([("m", pa.map_(pa.string(), pa.struct(fields)))]) for fields in ([A], [A, ("b", pa.string())])
    )
    rows = spark.createDataFrame([LATE_ROW], ROWS).selectExpr("*", "map('k', named_struct('a', 1)) as m")
    table.append(rows, {PLACE: 17})
    assert table.grown(one) == table.columns()
    with pytest.raises(TableError, match="the column m is a map whose values get new fields"):
        table.grown(two)


A = ("a", pa.int32())


def test_of_two_that_compact_at_once_one_does(spark, append, tmp_path, monkeypatch):
    table, other = (open_table("delta", str(tmp_path / "t"), spark) for _ in range(2))
    table.offsets()
    for offset in range(2):
        append(table, offset)
    together = delta.put_together

    def overtaken(*words):
        monkeypatch.setattr(delta, "put_together", together)
        assert other.compact() == 1
        return together(*words)

    monkeypatch.setattr(delta, "put_together", overtaken)
    with pytest.raises(CommitLost, match="another job has committed version"):
        table.compact()
    assert offsets_of(table) == [0, 1]


def test_a_table_in_a_bucket_is_read_and_its_faults_are_the_stores(spark, append, tmp_path, s3, monkeypatch):
    s3.enter(monkeypatch)
    written("delta", tmp_path / "t", spark)
    url = uploaded(s3, tmp_path / "t")
    table = open_table("delta", url, spark)
    assert (str(table), table.offsets(), len(offsets_of(table))) == (url, {PLACE: 16}, 18)
    assert len(table.files()[0][1]) == 10
    with pytest.raises(CommitLost, match="another job has created the table in the meantime"), table._told():
        raise OSError("it already exists")
    with pytest.raises(StoreError), table._told():
        raise OSError("it does not answer")
