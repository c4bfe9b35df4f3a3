"""Iceberg tables by their names, in catalogues: Apache's own REST catalogue over a real S3 server, SQL, and faults of one."""

import datetime as dt
import shutil
import time

import pytest

from horolog.client.values.types import TopicPartition
from horolog.pipeline.stores.object_stores import Place
from horolog.pipeline.tables import catalogues
from horolog.pipeline.tables.catalogues import CatalogueTable, place_at
from horolog.pipeline.tables.lock import writing
from horolog.pipeline.tables.table import ROWS, CommitLost, TableError, open_table
from horolog.stores.faults import StoreError
from tests.support import iceberg_rest
from tests.support.names import unique

NOON = dt.datetime(2025, 11, 17, 12, tzinfo=dt.UTC)
NOON_MS = 1_763_380_800_000
PLACE = TopicPartition("t", 0)


@pytest.fixture(scope="module")
def rest(s3, tmp_path_factory):
    """The URL of a REST catalogue whose warehouse is in the bucket."""
    if shutil.which("mvn") is None or shutil.which("javac") is None:
        pytest.skip("Iceberg's REST catalogue is fetched by Maven and run by Java, which are not installed")
    with iceberg_rest.rest_catalogue(tmp_path_factory.mktemp("catalogue"), s3) as url:
        yield url


@pytest.fixture
def around(s3, monkeypatch):
    s3.enter(monkeypatch)


@pytest.fixture
def one_row(spark):
    return spark.createDataFrame([("t", 0, 1, NOON, 0, None, b"v", None)], ROWS)


def write_by_two(spark, where, one_row):
    """Two that have seen the same, again and again: of their commits one is made, also if nobody has looked in between."""
    first, second = (open_table("iceberg", where, spark) for _ in range(2))
    with writing(first):
        assert first.offsets() == second.offsets() == {}
        first.append(one_row, {PLACE: 1}, {"t": "id"})
        with pytest.raises(CommitLost):
            second.append(one_row, {PLACE: 1})
        assert second.offsets() == {PLACE: 1}
        second.append(one_row, {PLACE: 2}, {"t": "id"})
        with pytest.raises(CommitLost):
            first.append(one_row, {PLACE: 2})
        assert (first.offsets(), first.topic_ids()) == ({PLACE: 2}, {"t": "id"})
        assert first.compact() == 1
    found = open_table("iceberg", where, spark)
    assert found.offsets() == {PLACE: 2}
    assert found.rows().count() == 2, "a row is neither lost nor there twice"
    assert found.rows(NOON_MS, NOON_MS + 1).count() == 2
    with writing(found):
        assert found.vacuum(time.time_ns() // 1_000_000 + 60_000).files > 0, (
            "what the commits that were lost had written"
        )
    assert found.rows().count() == 2
    assert found.rows(NOON_MS + 1).count() == found.rows(None, NOON_MS).count() == 0


@pytest.mark.long
@pytest.mark.java
def test_a_table_of_a_rest_catalogue(spark, s3, rest, around, one_row):
    name = unique("t")
    write_by_two(spark, CatalogueTable("rest", f"logs.{name}", {"uri": rest}), one_row)
    assert list((s3.bucket / "warehouse" / "logs" / name / "data" / "date=2025-11-17").glob("*.parquet"))
    folder = unique("own-folder")
    write_by_two(spark, CatalogueTable("lake", f"logs.{unique('u')}", {"uri": rest}, s3.url(folder)), one_row)
    assert list((s3.bucket / folder / "data").glob("date=*/*.parquet"))


@pytest.mark.parametrize("warehouse", ["s3", "file"])
def test_a_table_of_a_sql_catalogue(spark, s3, around, one_row, tmp_path, warehouse):
    where = s3.url(unique("warehouse")).replace("s3a:", "s3:") if warehouse == "s3" else (tmp_path / "w").as_uri()
    properties = {"uri": f"sqlite:///{tmp_path / 'catalogue.db'}", "warehouse": where}
    write_by_two(spark, CatalogueTable("sql", "logs.t", properties), one_row)


def test_a_catalogue_of_pyicebergs_own_configuration(spark, s3, one_row, tmp_path, monkeypatch):
    """With the store's keys in it: the environment has none, and tasks get them from there."""
    for variable, value in {
        "URI": f"sqlite:///{tmp_path / 'catalogue.db'}",
        "WAREHOUSE": f"s3://lake/{unique('configured')}",
        "S3__ENDPOINT": s3.endpoint,
        "S3__ACCESS_KEY_ID": s3.access_key,
        "S3__SECRET_ACCESS_KEY": s3.secret_key,
        "S3__REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__TEST_LAKE__{variable}", value)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "other")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    write_by_two(spark, CatalogueTable("test-lake", "logs.t"), one_row)


@pytest.mark.parametrize(
    ("name", "properties", "said"),
    [
        ("nowhere", {}, "there are no settings for a catalogue nowhere: neither its uri"),
        ("rest", {}, "the catalogue rest: ValueError: URI missing"),
        ("rest", {"uri": "http://127.0.0.1:9"}, "logs.t in the catalogue rest: it cannot be reached"),
        ("sql", {"uri": "sqlite:////nonexistent/c.db"}, "logs.t in the catalogue sql: OperationalError"),
        ("sql", {"uri": "postgresql://me:hush@127.0.0.1:9/x"}, "logs.t in the catalogue sql: NotInstalledError"),
        ("odd", {"uri": "odd://me:hush@host"}, "the catalogue odd: ValueError: Could not infer .* odd://host"),
    ],
)
def test_what_is_wrong_with_a_catalogue_is_one_sentence_without_secrets(spark, name, properties, said):
    where = CatalogueTable(name, "logs.t", properties)
    with pytest.raises(TableError, match=f"^{said}") as caught:
        open_table("iceberg", where, spark)
    assert ("hush" in str(caught.value), "\n" in str(caught.value)) == (False, False)
    assert "hush" not in f"{where!r} {where}"


def test_what_is_wrong_with_its_store_is_told(spark, s3, around, one_row, tmp_path):
    properties = {"uri": f"sqlite:///{tmp_path / 'c.db'}", "warehouse": "s3://lake/wrong"}
    keys = {"s3.access-key-id": s3.access_key, "s3.secret-access-key": "wrong", "s3.endpoint": s3.endpoint}
    table = open_table("iceberg", CatalogueTable("sql", "logs.t", properties | keys), spark)
    with pytest.raises(StoreError, match=r"access denied \(SignatureDoesNotMatch\)"), writing(table):
        pytest.fail("nobody may write there")
    with pytest.raises(TableError, match="is not an Iceberg table yet"):
        table.rows()
    table = open_table("iceberg", CatalogueTable("sql", "logs.t", properties), spark)
    table.offsets()
    table.append(one_row, {PLACE: 1})
    with pytest.raises(TableError, match=r"logs.t in the catalogue sql: OSError: .*ACCESS_DENIED"):
        open_table("iceberg", CatalogueTable("sql", "logs.t", properties | keys), spark).rows()
    with pytest.raises(TableError, match="needs a catalogue; use --catalog and --table"):
        open_table("iceberg", s3.url("x"), spark)
    with pytest.raises(TableError, match="is an Iceberg table, not one of delta"):
        open_table("delta", CatalogueTable("sql", "logs.t"), spark)


def test_a_fault_of_the_program_is_not_the_catalogues():
    where = CatalogueTable("sql", "logs.t")
    with pytest.raises(ZeroDivisionError), where.told():
        raise ZeroDivisionError


@pytest.mark.parametrize("table", ["t", ".t", "logs.", ""])
def test_a_name_has_a_namespace(table):
    with pytest.raises(TableError, match=r"NAMESPACE\.NAME"):
        CatalogueTable("rest", table)


def test_a_table_is_known_by_what_was_said_of_it():
    one = CatalogueTable("rest", "a.b.t", {"uri": "http://h", "token": "hush"})
    assert (one.namespace, one.known_as) == ("a.b", "rest uri=http://h a.b.t")


@pytest.mark.parametrize(
    ("location", "given", "hadoop", "expected"),
    [
        ("file:///a%20b/t", {}, {}, "/a%20b/t"),
        ("file:/a b/t", {}, {}, "/a b/t"),
        ("/a/t", {}, {}, "/a/t"),
        ("s3://b/t", {}, {"fs.s3a.access.key": "H"}, "H"),
        ("s3://b/t", {"s3.access-key-id": "C"}, {"fs.s3a.access.key": "H", "fs.s3a.session.token": "HT"}, "C"),
        ("s3://b/t", {"s3.access-key-id": "C"}, {"fs.s3a.bucket.b.access.key": "H"}, "C"),
    ],
)
def test_files_are_opened_with_the_keys_of_the_catalogue_or_else_with_those_of_other_tables(
    location, given, hadoop, expected, monkeypatch
):
    monkeypatch.setattr(catalogues, "hadoop_options", lambda spark, url: hadoop)
    monkeypatch.setattr(catalogues, "place_of", lambda url, spark: Place.of(url, hadoop, {}))
    found = place_at(location, None, given)
    if not isinstance(found, Place):
        assert found == expected
        files = pytest.importorskip("pyiceberg.io.pyarrow").PyArrowFileIO
        assert found == files.parse_location(location)[2], "it is not the file that pyiceberg opens"
        return
    known = dict(found.settings)
    assert (known["access_key_id"], known.get("session_token")) == (expected, None), "keys of two are never mixed"


class Session:
    """Of Spark, with these options of Hadoop."""

    def __init__(self, **options):
        self.options = options
        self._jsc = self

    def hadoopConfiguration(self):
        return self

    def getPropsWithPrefix(self, prefix):
        return {name.removeprefix(prefix): value for name, value in self.options.items() if name.startswith(prefix)}


def test_files_are_opened_with_the_properties_of_their_location():
    spark = Session(**{"fs.s3a.access.key": "k", "fs.s3a.path.style.access": "true", "dfs.x": "1"})
    assert catalogues.file_properties(spark, None)["s3.access-key-id"] == "k"
    assert catalogues.file_properties(spark, "s3a://b/t")["s3.access-key-id"] == "k"
    assert catalogues.file_properties(spark, "s3a:///t") == {}
    assert catalogues.file_properties(spark, "/a/folder")["s3.access-key-id"] == "k"


def test_a_location_is_a_path_or_a_place():
    spark = Session(**{"fs.s3a.access.key": "k", "fs.s3a.path.style.access": "true"})
    assert place_at("/a%20b", spark, {}) == "/a%20b"
    assert place_at("file:///a b", spark, {}) == "/a b"
    assert place_at("hdfs://name/t", spark, {"dfs.x": 1}).url == "hdfs://name/t"
    own = place_at("s3://b/t", spark, {"s3.access-key-id": "own", "s3.secret-access-key": "s"})
    assert dict(own.settings)["access_key_id"] == "own"
    assert dict(place_at("s3://b/t", spark, {}).settings)["access_key_id"] == "k"
