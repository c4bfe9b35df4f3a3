"""Source, sink, streams and jobs at brokers that ask for credentials; nothing that Spark shows or writes has the secret."""

import json
import pickle
import urllib.request

import pytest

from horolog.client.security import Security
from horolog.pipeline.options.brokers import Brokers, at, spark_options
from horolog.pipeline.options.options import parse_read, parse_write
from horolog.testing import broker_in_thread
from tests.support.command import run_typed
from tests.support.names import unique

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SECRET = "hush-hush"
LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{PLAIN} required username="alice" password="{SECRET}";',
}
WRONG = LOGIN | {"sasl.jaas.config": f'{PLAIN} required username="alice" password="{SECRET}!";'}
ASKS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} required user_alice="{SECRET}";',
}
NOW_MS = 1_763_000_000_000


@pytest.fixture(scope="module")
def closed():
    with broker_in_thread(settings=ASKS) as broker:
        yield broker


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "client.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in LOGIN.items()))
    path.chmod(0o600)
    return path


def options(broker, login=LOGIN):
    return spark_options(Brokers(broker.bootstrap, Security.of(login)))


# -- options


def test_options_are_those_of_kafkas_clients():
    given = {"kafka.bootstrap.servers": "b:1", "subscribe": "t"} | {f"kafka.{key}": LOGIN[key] for key in LOGIN}
    found = parse_read({key.upper() if key != "subscribe" else key: value for key, value in given.items()}, NOW_MS)
    assert found.security == Security.of(LOGIN)
    given.pop("subscribe")
    written = parse_write(given)
    assert written.security == Security.of(LOGIN)
    assert SECRET not in repr(found) + repr(written)
    assert pickle.loads(pickle.dumps(found)) == found


def test_an_open_listener_needs_nothing():
    given = {"kafka.bootstrap.servers": "b:1", "subscribe": "t", "kafka.security.protocol": "PLAINTEXT"}
    assert parse_read(given, NOW_MS).security is None


def test_brokers_by_address_alone_or_with_credentials():
    closed = Brokers("b:1", Security.of(LOGIN))
    assert (at("b:1"), spark_options("b:1")) == ({"bootstrap": "b:1"}, {"kafka.bootstrap.servers": "b:1"})
    assert at(closed) == {"bootstrap": "b:1", "security": Security.of(LOGIN)}
    assert spark_options(closed)["kafka.sasl.mechanism"] == "PLAIN"
    assert spark_options(Brokers("b:1")) == {"kafka.bootstrap.servers": "b:1"}
    assert str(closed) == "b:1"
    assert SECRET not in repr(closed)


# -- Spark


def rows_of(spark, broker, topic):
    return spark.read.format("horolog").options(**options(broker)).option("subscribe", topic).load()


def test_batches_and_streams(spark, closed, tmp_path):
    closed.create_topic("batch", partitions=2)
    closed.create_topic("stream")
    frame = spark.createDataFrame([(f"k{n}", f"v{n}") for n in range(20)], "key string, value string")
    frame.write.format("horolog").mode("append").options(**options(closed)).option("topic", "batch").save()
    rows = rows_of(spark, closed, "batch")
    assert rows.count() == 20
    stream = spark.readStream.format("horolog").options(**options(closed)).option("subscribe", "batch")
    query = (
        stream.option("startingOffsets", "earliest")
        .load()
        .select("key", "value")
        .writeStream.format("horolog")
        .options(**options(closed))
        .option("topic", "stream")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert rows_of(spark, closed, "stream").count() == 20
    shown = [rows._jdf.queryExecution().toString(), str(query.lastProgress), repr(rows), str(query.status)]
    shown += [path.read_text("latin-1") for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    assert SECRET not in "".join(shown)


def test_the_ui_shows_no_secret(spark, closed):
    if spark.sparkContext.uiWebUrl is None:
        pytest.skip("the session has no UI")
    closed.create_topic("shown")
    rows_of(spark, closed, "shown").count()
    address = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}"
    for part in ("sql?details=true&planDescription=true", "environment", "jobs"):
        with urllib.request.urlopen(f"{address}/{part}") as answer:
            assert SECRET not in answer.read().decode()


def test_wrong_credentials_say_so_and_no_secret(spark, closed):
    closed.create_topic("wrong")
    reading = spark.read.format("horolog").options(**options(closed, WRONG)).option("subscribe", "wrong").load()
    with pytest.raises(Exception, match="refused the login of 'alice'") as caught:
        reading.count()
    assert SECRET not in str(caught.value)


def test_jobs(spark, closed, capsys, file, tmp_path):
    """Each by its command, with a file of settings; the mirror goes on to an open broker."""

    def run(*words):
        ended = run_typed(capsys, "pipeline", *words, "-b", closed.bootstrap, "--command-config", file)
        assert SECRET not in ended.out + ended.err
        assert ended.code == 0, ended
        return ended

    topic, again, loaded, group = (unique(name) for name in ("jobs", "again", "loaded", "group"))
    closed.create_topic(topic, retention_ms=-1)
    frame = spark.createDataFrame([(f"k{n}", f"v{n}") for n in range(30)], "key string, value string")
    frame.write.format("horolog").mode("append").options(**options(closed)).option("topic", topic).save()
    archive = tmp_path / "archive"
    assert run("archive", "--topic", topic, "--to", archive, "-o", "json").json["records"] == 30
    assert run("profile", "--topic", topic, "-o", "json").json["records"] == 30
    closed.create_topic(again, retention_ms=-1)
    run("replay", "--from", archive, "--topic", again, "--exactly-once")
    assert closed.offsets(again).end >= 30
    dump = tmp_path / "dump.json"
    dump.write_text("".join(json.dumps({"timestamp": "2026-11-17T10:00:00Z", "n": n}) + "\n" for n in range(5)))
    closed.create_topic(loaded, retention_ms=-1)
    run("bootstrap", "--from", dump, "--format", "json", "--topic", loaded, "--reprocess", "1h", "--group", group)
    run("lag", "--group", group, "--over", "1ms")
    with broker_in_thread() as target:
        run("mirror", "--from", closed.bootstrap, "--to", target.bootstrap, "--topic", topic)
        assert target.offsets(topic).end >= 30  # with the end of a transaction
    with broker_in_thread() as source:
        back = unique("back")
        source.create_topic(back)
        words = ("mirror", "--from", source.bootstrap, "--to", closed.bootstrap, "--topic", back)
        assert run_typed(capsys, "pipeline", *words, "--to-config", file).code == 0
        assert run_typed(capsys, "pipeline", *words, "--timeout", "500ms").code != 0
    assert closed.offsets(back).first == 0
