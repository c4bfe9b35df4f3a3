"""The column `topic_id` tells a topic from one of the same name that was made after it: in reads of a broker, over files, and in archives."""

import datetime as dt

import pyarrow as pa
import pytest

from horolog.client.values.types import TopicPartition
from horolog.pipeline.base.topic_ids import show_topic_id
from horolog.pipeline.tables import delta, iceberg, parquet, row_files
from horolog.pipeline.tables.evolution import lacking
from horolog.pipeline.tables.row_files import schema
from horolog.pipeline.tables.table import FORMATS, ROWS, open_table
from tests.support.names import unique

PLACE = TopicPartition("t", 0)
NOON = dt.datetime(2026, 11, 17, 12, tzinfo=dt.UTC)


def test_the_record_s_own_columns_that_a_table_was_made_without():
    assert lacking(schema(), schema().names) == pa.schema([])
    assert lacking(schema(), [name for name in schema().names if name != "topic_id"]).names == ["topic_id"]


def test_a_broker_and_its_files_tell_the_same_id(spark, session_broker):
    from tests.pipeline.clusters import create

    topic = unique("ids")
    create(session_broker, topic, 1)
    spark.createDataFrame([("v",)], "value string").write.format("horolog").options(
        **{"kafka.bootstrap.servers": session_broker.address, "topic": topic}
    ).mode("append").save()
    online = spark.read.format("horolog").option("kafka.bootstrap.servers", session_broker.address)
    offline = spark.read.format("horolog")
    found = [
        frame.select("topic_id").collect()[0][0]
        for headers in ("true", "false")
        for frame in (
            online.option("subscribe", topic).option("includeHeaders", headers).load(),
            offline.option("subscribe", topic).option("includeHeaders", headers).load(str(session_broker.data)),
        )
    ]
    assert len(set(found)) == 1
    assert len(found[0]) == len(show_topic_id(bytes(15) + b"1"))


@pytest.mark.parametrize("kind", FORMATS)
def test_a_table_that_was_made_without_the_column_gets_it(spark, tmp_path, kind, monkeypatch):
    """As earlier releases made it: the rows from before have null, those that come now have the id."""
    row = ("t", 0, 0, NOON, 0, None, b"v", None)
    with monkeypatch.context() as earlier:
        for module in (row_files, parquet, delta, iceberg):  # imported before: each has the name of its own
            earlier.setattr(module, "schema", without_topic_id)
        table = open_table(kind, str(tmp_path / "t"), spark)
        assert table.offsets() == {}
        table.append(spark.createDataFrame([row], ROWS).coalesce(1), {PLACE: 1}, {"t": "first"})
        assert "topic_id" not in table.rows().columns
    table = open_table(kind, str(tmp_path / "t"), spark)
    assert table.offsets() == {PLACE: 1}
    for offset, topic_id in ((0, "second"), (1, "second")):
        rows = spark.createDataFrame([("t", 0, offset, *row[3:], topic_id)], f"{ROWS}, topic_id string").coalesce(1)
        table.append(rows, {PLACE: offset + 1}, {"t": topic_id})
    rows = open_table(kind, str(tmp_path / "t"), spark).rows()
    found = sorted(((each["offset"], each["topic_id"]) for each in rows.collect()), key=str)
    assert found == [(0, "second"), (0, None), (1, "second")]
    assert table.columns() == pa.schema([])
    table.compact()
    assert sorted(map(str, (each["topic_id"] for each in table.rows().collect()))) == ["None", "second", "second"]


def without_topic_id(*folders_and_decoded):
    return pa.schema([one for one in schema(*folders_and_decoded) if one.name != "topic_id"])
