"""No option that holds a secret is shown by Spark: in plans, logs, the event log, the pages and the API of its UI, or errors.

Logs are those of the level INFO: at DEBUG Spark's parser shows the text of SQL as it was typed.
"""

import time
import traceback
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("pyspark")

from horolog.client.decoding import registry_access
from horolog.client.security.options import NAMES
from horolog.pipeline.spark.spark_session import HIDDEN
from horolog.pipeline.stores.object_stores import OPTIONS as STORES
from horolog.pipeline.typed import options as typed_options
from horolog.testing import broker_in_thread
from tests.pipeline.test_secured import ASKS, LOGIN, PLAIN
from tests.pipeline.test_secured import SECRET as LOGIN_SECRET
from tests.support.names import unique

NOWHERE = "http://127.0.0.1:9"
REGISTRIES = {
    "user.info": {"registry": NOWHERE, "schema.registry.basic.auth.user.info": "u:hush-user-info"},
    "token": {"registry": NOWHERE, "schema.registry.bearer.auth.token": "hush-bearer"},
    "password": {"registry": NOWHERE, "registry.user": "u", "registry.password": "hush-registry"},
    "address": {"registry": "http://u:hush-address@127.0.0.1:9"},
}
TLS = {
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.jaas.config": f'{PLAIN} required username="alice" password="hush-jaas";',
    "kafka.ssl.keystore.location": "/nowhere/k.p12",
    "kafka.ssl.keystore.password": "hush-keystore",
    "kafka.ssl.key.password": "hush-key",
    "kafka.ssl.truststore.location": "/nowhere/t.p12",
    "kafka.ssl.truststore.password": "hush-truststore",
}
PEM = {
    "kafka.security.protocol": "SSL",
    "kafka.ssl.keystore.type": "PEM",
    "kafka.ssl.keystore.key": "-----BEGIN PRIVATE KEY----- hush-pem",
    "kafka.ssl.keystore.certificate.chain": "no certificate",
}
S3 = {
    "fs.s3a.access.key": "hush-s3-id",
    "fs.s3a.secret.key": "hush-s3",
    "fs.s3a.session.token": "hush-s3-token",
    "fs.s3a.endpoint": NOWHERE,
}
AZURE = {"fs.azure.account.key.a.dfs.core.windows.net": "hush-azure"}
SECRETS = (LOGIN_SECRET, "hush-")
TYPED = {"value.format": "json", "value.schema": "id INT"}


def test_the_names_of_secrets_are_hidden():
    """Every option that may hold one is matched by what Spark hides, by its name."""
    import re

    held = [name for name in NAMES if re.search("password|jaas|keystore.key|key.pem|secret|token$", name)]
    held += [*registry_access.USER_INFO, *registry_access.TOKEN, typed_options.PASSWORD]
    held += ["fs.s3a.access.key", "fs.s3a.secret.key", "fs.s3a.session.token", "fs.s3a.bucket.b.secret.key"]
    held += [*AZURE, "fs.azure.account.oauth2.client.secret"]
    assert all(name.startswith(STORES) for name in held if name.startswith("fs."))
    assert [name for name in held if not re.search(HIDDEN, name)] == []
    assert re.search(HIDDEN, "http://u:p@h:1")
    assert not re.search(HIDDEN, "http://h:1/a:b")


@pytest.fixture
def logged(spark):
    """What the JVM logs, of the driver and its executor."""
    log4j = spark._jvm.org.apache.logging.log4j
    root = log4j.LogManager.getRootLogger()
    before = root.getLevel()
    text = spark._jvm.java.io.StringWriter()
    appender = log4j.core.appender.WriterAppender.createAppender(None, None, text, unique("all"), False, True)
    appender.start()
    root.addAppender(appender)
    log4j.core.config.Configurator.setRootLevel(log4j.Level.INFO)
    yield text
    log4j.core.config.Configurator.setRootLevel(before)
    root.removeAppender(appender)


class Shown:
    """All that was to be seen, by where."""

    def __init__(self):
        self.texts = []
        self.errors = 0

    def add(self, where, text):
        self.texts.append((where, str(text)))

    def run(self, work):
        """Its result, or its error with the trace."""
        try:
            self.add("result", work())
        except Exception as error:  # noqa: BLE001 - whichever it is, it is looked at
            self.errors += 1
            self.add("error", f"{error}{traceback.format_exc()}")

    def leaks(self):
        return [
            f"{where}: {text[max(0, text.find(secret) - 120) : text.find(secret) + 20]}"
            for where, text in self.texts
            for secret in SECRETS
            if secret in text
        ]


def look(shown, frame):
    shown.add("plan", frame._jdf.queryExecution().toString())
    shown.add("columns", repr(frame))
    frame.createOrReplaceTempView("secrets")
    frame.sparkSession.sql("select count(*) from secrets").collect()
    frame.cache().count()
    frame.unpersist()


def try_registries(shown, spark, given):
    """Each of these starts a Python for Spark, so all three for one of them alone: the one that Spark by itself would show."""
    for name, registry in REGISTRIES.items():
        reader = spark.read.format("horolog").options(**given, **registry)
        if name == "user.info":
            look(shown, reader.options(**TYPED).load())
        elif name != "address":
            shown.add("plan", reader.options(**TYPED).load()._jdf.queryExecution().toString())
        else:
            shown.run(lambda reader=reader: reader.options(**TYPED).load())
    shown.run(
        lambda: spark.read.format("horolog").options(**given, **REGISTRIES["token"], **{"value.format": "avro"}).load()
    )
    typed = ", ".join(f"`{key}` '{value}'" for key, value in {**given, **TYPED, **REGISTRIES["address"]}.items())
    shown.run(lambda: spark.sql(f"create temp view hidden_view using horolog options ({typed})"))


def try_stream(shown, spark, given, folder):
    rows = spark.readStream.format("horolog").options(**given, **TYPED, **REGISTRIES["user.info"])
    rows = rows.option("startingOffsets", "earliest").load().selectExpr("string(value.id) as value")
    shown.add("plan", rows._jdf.queryExecution().toString())
    writer = rows.writeStream.format("horolog").options(**{key: given[key] for key in given if key != "subscribe"})
    query = (
        writer.option("topic", given["subscribe"])
        .option("checkpointLocation", str(folder))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    shown.add("progress", f"{query.lastProgress}{query.status}{query._jsq.explainInternal(True)}")
    for file in folder.rglob("*"):
        shown.add("checkpoint", file.read_text("latin-1") if file.is_file() else "")


def try_failures(shown, spark, given):
    bootstrap = {"kafka.bootstrap.servers": given["kafka.bootstrap.servers"], "subscribe": given["subscribe"]}
    wrong = given | {"kafka.sasl.jaas.config": given["kafka.sasl.jaas.config"].replace(LOGIN_SECRET, "hush-wrong")}
    quick = {"kafka.default.api.timeout.ms": "300"}
    for one in (wrong, bootstrap | TLS | quick, bootstrap | PEM | quick, given | {"pasword": "hush-misspelt"}):
        shown.run(lambda one=one: spark.read.format("horolog").options(**one).load().count())


def look_at_stores(shown, spark):
    """Nothing is read: a store that does not answer takes half a minute."""
    for options, path in ((S3, "s3a://hidden/x"), (AZURE, "abfss://c@a.dfs.core.windows.net/x")):
        frame = spark.read.format("horolog").options(**options).load(path)
        shown.add("plan", frame._jdf.queryExecution().toString())
        frame.createOrReplaceTempView("stored")


def add_pages(shown, spark):
    context = spark.sparkContext
    api = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}"
    pages = [
        f"{context.uiWebUrl}/{name}/" for name in ("jobs", "stages", "environment", "SQL", "StreamingQuery", "storage")
    ]
    pages += [
        f"{api}/{name}" for name in ("environment", "jobs", "sql?details=true&planDescription=true&length=100000")
    ]
    for page in pages:
        with urllib.request.urlopen(page) as answer:
            shown.add(page, answer.read().decode())
    events = Path(urlsplit(spark.conf.get("spark.eventLog.dir")).path)
    for file in events.rglob("*"):
        shown.add("event log", file.read_text("latin-1") if file.is_file() else "")


@pytest.mark.timeout(300)
def test_nothing_that_spark_shows_has_a_secret(spark, logged, tmp_path):
    shown = Shown()
    with broker_in_thread(settings=ASKS) as broker:
        topic = unique("hidden")
        broker.create_topic(topic)
        given = {
            "kafka.bootstrap.servers": broker.bootstrap,
            **{f"kafka.{name}": value for name, value in LOGIN.items()},
        }
        frame = spark.createDataFrame([("k", '{"id":1}')], "key string, value string")
        frame.write.format("horolog").options(**given, topic=topic).mode("append").save()
        given["subscribe"] = topic
        try_registries(shown, spark, given)
        try_stream(shown, spark, given, tmp_path / "checkpoint")
        try_failures(shown, spark, given)
    look_at_stores(shown, spark)
    time.sleep(0.5)  # events reach the UI and the event log through a queue
    add_pages(shown, spark)
    shown.add("log", logged.toString())
    assert shown.leaks() == []
    assert shown.errors >= 6, "these were to fail"
    for where, text in (("sql?", topic), ("event log", topic), ("event log", "redacted"), ("log", "Starting task")):
        assert text in "".join(found for place, found in shown.texts if where in place)
