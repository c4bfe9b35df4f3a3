"""An Iceberg table: its snapshots have the offsets, and its files lie where its catalogue says."""

from types import SimpleNamespace

import pytest

from horolog.pipeline.stores.object_stores import Place
from horolog.pipeline.tables import iceberg, row_files
from horolog.pipeline.tables.catalogues import CatalogueTable
from horolog.pipeline.tables.iceberg import IcebergFolder
from horolog.pipeline.tables.layout import BY_DATE, Folders
from horolog.pipeline.tables.lock import writing
from horolog.pipeline.tables.table import ROWS, CommitLost, TableError, open_table
from tests.pipeline.tables.every_table import LATE_ROW, PLACE, TableTests, now_ms, offsets_of


class TestIceberg(TableTests):
    kind = "iceberg"

    def test_offsets_are_those_before_the_snapshots_of_other_engines(self, table):
        table.offsets()
        table._seen.delete("date = '2025-11-18'")
        assert (table.offsets(), table.topic_ids()) == ({PLACE: 16}, {"t": "id"})
        assert table.forget_versions(now_ms() + 1000, dry_run=True) == 1
        with writing(table):
            assert table.forget_versions(now_ms() + 1000) == 1
        assert (table.offsets(), len(offsets_of(table))) == ({PLACE: 16}, 14)

    def test_large_files_are_not_put_together_again_and_again(self, table, monkeypatch):
        with monkeypatch.context() as patch, writing(table):
            patch.setattr(row_files, "TARGET_FILE_BYTES", 1)
            assert table.compact() == 0
        with writing(table):
            assert table.compact() == 5
            assert table.compact() == 0
        assert (len(offsets_of(table)), table.offsets()) == (18, {PLACE: 16})


def test_a_table_in_an_object_store_needs_a_catalogue(spark):
    with pytest.raises(TableError, match="s3a://b/t: an Iceberg table in an object store needs a catalogue"):
        IcebergFolder(Place.of("s3a://b/t", {"fs.s3a.access.key": "k"}, {}), spark)


def test_a_table_of_a_catalogue_is_made_where_that_says(spark, tmp_path):
    """The lock lies in the table's folder, before there is a table."""
    properties = {"uri": f"sqlite:///{tmp_path / 'catalogue.db'}", "warehouse": (tmp_path / "w").as_uri()}
    where = CatalogueTable("sql", "logs.t", properties)
    first, second = (open_table("iceberg", where, spark) for _ in range(2))
    row = spark.createDataFrame([LATE_ROW], ROWS)
    with writing(first):
        assert first.offsets() == second.offsets() == {}
        first.append(row, {PLACE: 17}, {"t": "id"}, Folders("hour", "Europe/Berlin"))
        with pytest.raises(CommitLost):
            second.append(row, {PLACE: 17}, {"t": "id"})
        assert second.offsets() == {PLACE: 17}
        second.append(row, {PLACE: 18}, {"t": "id"})
        first.offsets()
        assert first.compact() == 1
        assert first.folders() == Folders("hour", "Europe/Berlin")
    assert len(list(tmp_path.glob("w/**/date=2025-11-17/hour=13/*.parquet"))) == 3
    assert offsets_of(open_table("iceberg", where, spark)) == [16, 16]
    assert "logs.t" in str(first)


def test_a_commit_without_rows_keeps_its_offsets(spark, tmp_path):
    table = open_table("iceberg", str(tmp_path / "t"), spark)
    with writing(table):
        table.offsets()
        assert table.append(spark.createDataFrame([], ROWS), {PLACE: 5}).records == 0
    assert open_table("iceberg", str(tmp_path / "t"), spark).offsets() == {PLACE: 5}


def test_files_of_deleted_rows_are_not_passed_over():
    tasks = [SimpleNamespace(delete_files=[]), SimpleNamespace(delete_files=["position deletes"])]
    table = SimpleNamespace(scan=lambda row_filter: SimpleNamespace(plan_files=lambda: tasks))
    with pytest.raises(TableError, match="t has files with deleted rows"):
        iceberg._whole_files("t", table)
    tasks.pop()
    assert iceberg._whole_files("t", table) == tasks


def test_a_range_is_a_filter_of_files():
    assert iceberg._range(None, None) == "true"
    assert iceberg._range(0, None) == "timestamp >= '1970-01-01T00:00:00+00:00'"
    assert iceberg._range(0, 5).endswith(" and timestamp < '1970-01-01T00:00:00.005000+00:00'")


def test_names_are_those_below_a_location_whatever_its_scheme():
    paths = iter(["s3://b/t/data/a.parquet", "s3a://b/t/metadata/m.json", "file:/b/t/x"])
    assert iceberg._below("s3a://b/t/", paths) == {"data/a.parquet", "metadata/m.json", "/b/t/x"}


def test_a_partition_is_a_folder_by_its_values():
    assert iceberg._number(BY_DATE, (20_000,)) == 20_000
    assert iceberg._number(Folders("hour"), ("2024-10-04", 7)) == 20_000 * 24 + 7


def test_files_in_a_bucket_are_named_from_there(spark):
    place = Place.of("s3a://b/warehouse/t", {"fs.s3a.access.key": "k"}, {})
    files, names = iceberg._in_bucket(place, ["s3://b/elsewhere/a.parquet"], spark)
    assert (files.place.url, names) == ("s3a://b", ["elsewhere/a.parquet"])
