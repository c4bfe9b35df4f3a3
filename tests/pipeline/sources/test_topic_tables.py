"""Topics are tables of SQL: they are listed, described, read by time, and follow the cluster."""

import json
import threading
from urllib.request import urlopen

import pytest

pytest.importorskip("pyspark")
from pyspark.sql.datasource import EqualTo, LessThan

from horolog.pipeline import activate, catalogue
from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.options.options import parse_read
from horolog.pipeline.reading.online import BrokerReader
from horolog.pipeline.sources.source import FilteredReader
from horolog.pipeline.sources.topic_tables import view_names
from horolog.testing import broker_in_thread
from tests.pipeline import samples
from tests.pipeline.clusters import create, fill
from tests.support.registry_server import RegistryThread

COUNT = 3000


@pytest.fixture(scope="module")
def cluster():
    with broker_in_thread(settings={"log.retention.ms": "-1"}) as broker:
        broker.address = broker.bootstrap
        create(broker, "shop.orders")
        fill(broker, "shop.orders", count=COUNT)
        yield broker


def names_in(spark, database):
    shown = spark.sql(f"SHOW TABLES IN {database}").collect()
    return [row.tableName for row in shown if not row.isTemporary]


def scanned(spark):
    """The records that the last query's scan gave, as Spark's user interface has it."""
    root = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}"
    queries = json.load(urlopen(f"{root}/sql?details=true&length=10000"))
    scans = [node for query in queries for node in query["nodes"] if node["nodeName"].startswith("BatchScan horolog")]
    metrics = {one["name"]: one["value"] for one in scans[-1]["metrics"]}
    return int(metrics["number of output rows"].replace(",", "")), metrics


def test_topics_are_listed_described_and_read_by_time(spark, cluster):
    log = catalogue(spark, "log", cluster.address, options={"maxLateness": "0"})
    assert names_in(spark, "log") == ["shop_orders"]
    assert log.tables == {"shop_orders": "shop.orders"}
    described = {row.col_name: row.data_type for row in spark.sql("DESCRIBE log.shop_orders").collect()}
    assert described["timestamp"] == "timestamp"
    minute = "timestamp BETWEEN timestamp_millis({0}) AND timestamp_millis({0} + 59999)".format(
        samples.BASE_MS + 300_000
    )
    (row,) = spark.sql(f"SELECT count(*) AS n, min(offset) AS first FROM log.shop_orders WHERE {minute}").collect()
    assert row.asDict() == {"n": 180, "first": 300}
    assert scanned(spark)[0] == 180
    one = spark.sql(f"SELECT count(*) AS n FROM log.shop_orders WHERE {minute} AND partition = 2 AND offset < 310")
    assert one.collect()[0].n == 10
    rows, metrics = scanned(spark)
    assert rows == 10
    assert any("data" in name and "Python" in name for name in metrics)


def test_the_driver_says_what_filters_leave_out(cluster, capsys):
    given = {"kafka.bootstrap.servers": cluster.address, "subscribe": "shop.orders"}
    reader = FilteredReader(BrokerReader(parse_read(given, 0)))
    assert list(reader.pushFilters([EqualTo(("partition",), 1), LessThan(("offset",), 10)]))
    assert sum(one.wanted.size for one in reader.partitions()) == 10
    assert f"reads 10 offsets, skips {COUNT - 10} by filters" in capsys.readouterr().err


def test_topics_that_come_and_go_are_followed(spark, cluster):
    log = catalogue(spark, "log", cluster.address)
    create(cluster, "later", 1)
    assert "later" in log.refresh().tables
    assert names_in(spark, "log") == ["later", "shop_orders"]
    assert spark.sql("SELECT * FROM log.later").count() == 0
    spark.sql("CREATE OR REPLACE VIEW log.of_mine AS SELECT 1 AS n")
    log.options = {**log.options, "includeHeaders": "true"}
    log.refresh()
    assert "headers" in spark.table("log.later").columns
    assert names_in(spark, "log") == ["later", "of_mine", "shop_orders"]


def test_a_folder_has_a_catalogue_as_well(spark, tmp_path):
    from tests.pipeline.reading.test_offline import log_of

    data, count = log_of(tmp_path, segments=2)
    catalogue(spark, "files", path=str(data))
    assert spark.sql("SELECT * FROM files.topic").count() == count
    assert names_in(spark, "files") == ["topic"]


def test_a_topic_that_the_registry_has_no_schema_for_has_a_view_of_its_bytes(spark, cluster):
    record = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    answers = {
        "/subjects/plain-key/versions/latest": {"schema": json.dumps(record), "id": 1},
        "/subjects/shop.orders-key/versions/latest": {"schema": json.dumps(record), "id": 1},
        "/subjects/shop.orders-value/versions/latest": {"schema": "message A {}", "schemaType": "PROTOBUF", "id": 2},
        "/subjects/typed-value/versions/latest": {"schema": json.dumps(record), "id": 1},
    }
    for topic in ("plain", "typed", "bare"):
        create(cluster, topic)
    with RegistryThread(answers) as registry:
        options = {"Value.Format": "avro", "key.format": "avro", "registry": registry.url, "mode": "dropMalformed"}
        log = catalogue(spark, "registered", cluster.address, options=options | {"Timestamp.Field": "id"})
        kinds = {
            name: tuple(spark.table(f"registered.{name}").schema[part].dataType.typeName() for part in ("key", "value"))
            for name in ("plain", "shop_orders", "typed", "bare")
        }
    assert kinds == {
        "plain": ("struct", "binary"),
        "shop_orders": ("struct", "binary"),
        "typed": ("binary", "struct"),
        "bare": ("binary", "binary"),
    }
    assert log.undecoded.keys() >= {"plain", "shop.orders", "typed", "bare"}
    assert "has no version latest of plain-value" in log.undecoded["plain"]
    assert "shop.orders-value has the type PROTOBUF" in log.undecoded["shop.orders"]
    assert all(f"bare-{part}" in log.undecoded["bare"] for part in ("key", "value"))
    assert spark.table("registered.bare").count() == 0
    log.spark.sql("DROP DATABASE registered CASCADE")


def test_writing_in_another_thread_needs_a_session_there(spark, cluster):
    """Spark itself falls short: should the first write succeed one day, `activate` is not needed any more."""
    frame = spark.range(3).selectExpr("cast(id AS string) AS value").coalesce(1)
    said = []
    create(cluster, "from-threads", 1)

    def write():
        target = {"kafka.bootstrap.servers": cluster.address, "topic": "from-threads"}
        frame.write.format("horolog").options(**target).mode("append").save()

    def work():
        with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
            write()
        activate(spark)
        write()
        said.append("written")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert said == ["written"]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("my log", {}, "cannot name a database of topics"),
        ("horolog", {}, "cannot name a database of topics"),
        ("log", {"subscribe": "x"}, "a view of its own"),
        ("log", {"kafka.sasl.jaas.config": "x"}, "name that with kafka.config.file"),
        ("log", {"kafka.ssl.truststore.password": "x"}, "visible to everyone"),
        ("log", {"registry": "http://me:secret@x"}, "visible to everyone"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(name, options, message):
    with pytest.raises(OptionError, match=message):
        catalogue(None, name, "127.0.0.1:1", options=options)


def test_names_are_those_that_spark_takes_and_no_topic_is_lost():
    assert view_names(["shop", "a.b", "a-b", "A_B"]) == {"a_b": "A_B", "a_b_2": "a-b", "a_b_3": "a.b", "shop": "shop"}


def test_credentials_come_from_a_file(tmp_path):
    path = tmp_path / "client.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=a\nsasl.password=b\nretries=3\n"
    )
    given = {"kafka.bootstrap.servers": "x:1", "subscribe": "t", "kafka.config.file": str(path)}
    assert parse_read(given, 0).security.sasl is not None
    with pytest.raises(OptionError, match=r"kafka\.config\.file: /no/file"):
        parse_read({**given, "kafka.config.file": "/no/file"}, 0)
