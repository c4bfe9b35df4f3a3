"""The same queries through Spark's own Kafka connector, against the same broker, give the same rows."""

import json

import pytest

from tests.pipeline import samples
from tests.pipeline.clusters import SETTINGS, fill, shown
from tests.support import golden
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique

ALIKE_FOR_READERS = ("retention", "roll", "ooo", "preallocate", "multiseg", "interval", "v0conv", "v1conv", "broker09")
CASES = [
    name
    for name, stage in golden.names()
    if stage == "clean" and not any(word in name for word in ALIKE_FOR_READERS)  # tests of offline reads have all
]
LEVELS = {"read_uncommitted": "v[012].*", "read_committed": "v2.*"}
SECOND = samples.BASE_MS + 1000 * 200
COUNT = 900


@pytest.fixture(scope="module")
def adopted(golden_root, tmp_path_factory):
    """A broker that has taken over every golden folder, each as a topic of its own, and one topic of today."""
    data = tmp_path_factory.mktemp("adopted") / "data"
    for name in CASES:
        golden.Case(name, golden_root).copy("clean", data, name)
    for checkpoint in golden.CHECKPOINTS:
        (data / checkpoint).unlink(missing_ok=True)  # each case has left its own; none is needed
    broker = BrokerProcess(data, SETTINGS).start()
    fill(broker, "today", count=COUNT)
    yield broker
    broker.stop()


@pytest.fixture
def connector(connector_jars):
    if not connector_jars:
        pytest.skip("Spark's own connector could not be fetched")


def ours(spark, broker, **options):
    return shown(frame(spark, "horolog", broker, options))


def theirs(spark, broker, **options):
    return shown(frame(spark, "kafka", broker, options))


def frame(spark, kind, broker, options):
    settings = {"kafka.bootstrap.servers": broker.address, "includeHeaders": "true", **options}
    return spark.read.format(kind).options(**settings).load()


@pytest.fixture(scope="module")
def online(spark, adopted):
    """What ours reads of the adopted topics, at each level."""
    found = {level: ours(spark, adopted, **options_of(level)) for level in LEVELS}
    assert {row[2] for row in found["read_uncommitted"]} >= set(CASES) - {"v2-empty"}
    return found


def options_of(level):
    return {"subscribePattern": LEVELS[level], "kafka.isolation.level": level}


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("level", LEVELS)
def test_every_format_is_read_as_the_connector_reads_it(spark, adopted, connector, online, level):
    assert online[level] == theirs(spark, adopted, **options_of(level))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("level", LEVELS)
def test_every_format_is_read_offline_as_online(spark, adopted, online, level):
    files = spark.read.format("horolog").options(includeHeaders="true", **options_of(level)).load(str(adopted.data))
    assert shown(files) == online[level]


QUERIES = [
    {"subscribe": "today"},
    {"assign": '{"today":[0,2]}'},
    {"subscribe": "today", "startingTimestamp": str(SECOND)},
    {"subscribe": "today", "startingTimestamp": str(SECOND), "endingTimestamp": str(SECOND + 20_000)},
    {"subscribe": "today", "endingTimestamp": str(SECOND)},
    {"subscribe": "today", "startingOffsetsByTimestamp": f'{{"today":{{"0":{SECOND},"1":0,"2":{SECOND + 5000}}}}}'},
    {"subscribe": "today", "startingOffsets": '{"today":{"0":-2,"1":7,"2":290}}'},
    {"subscribe": "today", "endingOffsets": '{"today":{"0":-1,"1":7,"2":290}}'},
    {"subscribe": "today", "minPartitions": "10"},
    {"subscribe": "today", "startingTimestamp": "1d", "horolog": "1d", "theirs": str(SECOND * 2)},
]


@pytest.mark.parametrize("query", QUERIES)
def test_options_mean_the_same(spark, adopted, connector, query):
    own = {name: value for name, value in query.items() if name not in {"horolog", "theirs"}}
    other = {**own, **({"startingTimestamp": query["theirs"]} if "theirs" in query else {})}
    expected = theirs(spark, adopted, startingOffsetsByTimestampStrategy="latest", **other)
    assert ours(spark, adopted, **own) == expected


@pytest.mark.parametrize("query", QUERIES[:4])
def test_schemas_are_the_same_but_for_the_topic_s_id_at_the_end(spark, adopted, connector, query):
    for headers in ("true", "false"):
        options = {**query, "includeHeaders": headers}
        own, other = (frame(spark, kind, adopted, options).schema for kind in ("horolog", "kafka"))
        assert [(one.name, one.dataType.simpleString()) for one in own] == [
            *((one.name, one.dataType.simpleString()) for one in other),
            ("topic_id", "string"),
        ]


@pytest.mark.long
def test_a_stream_can_change_its_source_and_keep_its_checkpoint(spark, adopted, connector, tmp_path):
    """From the connector to ours as it is; back again once the ids of topics are taken out, for which the connector has no place."""
    topic = unique("changing")
    options = {"kafka.bootstrap.servers": adopted.address, "subscribe": topic, "startingOffsets": "earliest"}
    fill(adopted, topic, count=30)

    def read(kind):
        query = (
            spark.readStream.format(kind)
            .options(**options)
            .load()
            .writeStream.format("noop")
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)
        return sum(progress["numInputRows"] for progress in query.recentProgress)

    def newest():
        return max((tmp_path / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))

    assert read("kafka") == 30
    assert json.loads(newest().read_text().splitlines()[-1]) == {topic: {"0": 10, "1": 10, "2": 10}}
    assert (read("horolog"), read("horolog")) == (0, 0)
    fill(adopted, topic, count=3)
    assert read("horolog") == 3
    kept = newest()
    *head, ends = kept.read_text().splitlines()
    offsets = json.loads(ends)
    assert list(offsets.pop("topic ids")) == [topic]
    kept.write_text("\n".join([*head, json.dumps(offsets)]))
    (kept.parent / f".{kept.name}.crc").unlink()
    assert read("kafka") == 0
