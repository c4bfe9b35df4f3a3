"""An error with a sentence for a message is that sentence in Spark, in the first line; others keep their tracebacks."""

import os

import pytest

pytest.importorskip("pyspark")

from horolog.client.values.errors import error_of
from horolog.pipeline.base.positions import DataLoss, OptionError
from horolog.pipeline.spark.short_errors import short_errors
from horolog.protocol.errors import ErrorCode
from tests.pipeline.clusters import SETTINGS, create, fill
from tests.support.broker_process import BrokerProcess

HIDE = "SPARK_HIDE_TRACEBACK"


@pytest.fixture(autouse=True)
def own_environment(monkeypatch):
    monkeypatch.setenv(HIDE, "")
    monkeypatch.delenv(HIDE)


@short_errors()
def work(error=None):
    if error is not None:
        raise error
    return os.environ.get(HIDE)


@pytest.mark.parametrize("error", [OptionError("a"), DataLoss("b"), error_of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)])
def test_a_told_error_has_no_traceback_until_the_worker_goes_on(error):
    with pytest.raises(type(error)):
        work(error)
    assert os.environ[HIDE]
    assert work() is None


def test_unforeseen_faults_keep_theirs():
    with pytest.raises(ZeroDivisionError):
        work(ZeroDivisionError())
    assert HIDE not in os.environ


def test_what_the_session_says_stays(monkeypatch):
    monkeypatch.setenv(HIDE, "true")
    assert work() == "true"
    with pytest.raises(OptionError):
        work(OptionError("a"))
    assert os.environ[HIDE] == "true"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    broker = BrokerProcess(tmp_path_factory.mktemp("told") / "data", SETTINGS).start()
    create(broker, "orders")
    fill(broker, "orders", count=30)
    yield broker
    broker.stop()


@pytest.mark.timeout(300)
def test_the_first_line_says_what_is_wrong(spark, cluster, tmp_path):
    broker = {"kafka.bootstrap.servers": cluster.address}
    rows = spark.sql("select 'v' as value")

    def load(**options):
        return spark.read.format("horolog").options(**broker, **options).load()

    def save(mode="append", **options):
        rows.write.format("horolog").options(**broker, **options).mode(mode).save()

    def stream(writer):
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination()

    def reading(**options):
        stream(spark.readStream.format("horolog").options(**broker, **options).load().writeStream.format("noop"))

    def writing(**options):
        source = spark.readStream.format("horolog").options(**broker, subscribe="orders", startingOffsets="earliest")
        stream(source.load().select("value").writeStream.format("horolog").options(**broker, **options))

    misspelt = "there is no topic 'ordrs'; do you mean 'orders'? createTopics=true creates it"
    named = rows.selectExpr("value", "'ordrs' as topic")
    for act, said in (
        (lambda: load(subscribe="orders", startingTimestmp="3d"), "do you mean startingTimestamp"),
        (lambda: load(subscribe="orders", **{"value.format": "jsn"}), "'jsn' is not one of json"),
        (lambda: load(subscribe="ordrs").count(), "the cluster has no topic ordrs"),
        (lambda: load(subscribe="orders", startingOffsets="latest").count(), "latest"),
        (lambda: save(topc="orders"), "do you mean topic"),
        (lambda: save(topic="ordrs"), misspelt),
        (lambda: named.write.format("horolog").options(**broker).mode("append").save(), misspelt),
        (lambda: save(topic="orders", mode="overwrite"), "cannot be overwritten"),
        (lambda: reading(subscribe="orders", endingOffsets="latest"), "a stream has no end"),
        (lambda: writing(topic="ordrs"), misspelt),
    ):
        with pytest.raises(Exception) as told:  # noqa: PT011 - whichever Spark has for it
            act()
        lines = [line for line in str(told.value).splitlines() if "horolog.pipeline" in line]
        assert said in lines[0], told.value
        assert "Traceback (most recent call last)" not in str(told.value), told.value
    assert load(subscribe="orders").count() == 30


@pytest.mark.timeout(300)
def test_a_topic_is_made_where_that_is_asked_for(spark, cluster):
    broker = {"kafka.bootstrap.servers": cluster.address}
    rows = spark.sql("select 'v' as value")
    rows.write.format("horolog").options(**broker, topic="new", createTopics="true").mode("append").save()
    rows.write.format("horolog").options(**broker, topic="new").mode("append").save()
    assert spark.read.format("horolog").options(**broker, subscribe="new").load().count() == 2
