"""Archives with decoded columns: they come beside the bytes, grow with schemas, and what cannot grow is refused before anything is written."""

import json
import os
import signal
import subprocess
import sys
import time
from io import BytesIO
from types import SimpleNamespace

import fastavro
import pytest

pytest.importorskip("pyspark")


from horolog import pipeline
from horolog.commands.errors import UsageError
from horolog.pipeline.jobs import archive_form
from horolog.pipeline.jobs.archive import Job
from horolog.pipeline.jobs.archive_follow import Following, Pace
from horolog.pipeline.jobs.archive_form import Form
from horolog.pipeline.jobs.ending import Ending
from horolog.pipeline.tables.table import FORMATS, open_table
from tests.pipeline.jobs.test_archive import BASE_MS, DAY_MS, consumed
from tests.support.names import unique
from tests.support.registry_server import RegistryThread
from tests.support.style import PROJECT

FIRST = "id INT, ratio FLOAT, price DECIMAL(6,2), place STRUCT<x: INT>, tags ARRAY<STRING>"
LATER = "id BIGINT, ratio DOUBLE, price DECIMAL(9,2), place STRUCT<x: BIGINT, name: STRING>, more MAP<STRING,INT>"
BROKEN = '{"id": "seven"}'


def documents(count, first=0, **more):
    """Every tenth is broken; keys are text, partitions two, days three."""
    for n in range(first, first + count):
        found = {"id": n, "ratio": n / 4, "price": "1.25", "place": {"x": n}, "tags": ["a"], **more}
        yield {
            "key": f"k{n}",
            "value": BROKEN if n % 10 == 3 else json.dumps(found),
            "timestamp": BASE_MS + n * DAY_MS // 40,
            "partition": n % 2,
            "headers": [{"key": "n", "value": str(n)}],
        }


def json_words(topic, to, schema, *more):
    decoded = ("--value-format", "json", "--value-schema", schema, "--key-format", "string")
    return ("archive", "--topic", topic, "--to", to, *decoded, "-o", "json", *more)


def content(run, topic):
    """What a consumer sees of a topic, without its name and the offsets."""
    return sorted(repr((each[1], each[3:])) for each in consumed(run, topic))


def by_id(rows, *columns):
    found = rows.where("value_decoded is not null").orderBy("value_decoded.id")
    return [tuple(row) for row in found.selectExpr(*columns).collect()]


@pytest.mark.long
@pytest.mark.timeout(240)  # the first to start Spark, in a run of its own
@pytest.mark.parametrize("kind", FORMATS)
def test_columns_come_beside_the_bytes_and_grow_in_the_same_table(spark, run, produce, tmp_path, kind):
    topic, folder, again = unique("decoded"), tmp_path / "table", unique("again")
    produce(topic, list(documents(40)), partitions=2)
    first = run(*json_words(topic, folder, FIRST, "--format", kind, "--step", "25"))
    assert (first.code, first.json["records"], first.json["commits"], first.json["broken"]) == (0, 40, 2, 4), first.err
    before = pipeline.table(spark, str(folder), table_format=kind)
    assert by_id(
        before.where("value_decoded.id < 3"), "value_decoded.id", "key_decoded", "string(value_decoded.price)"
    ) == [
        (0, "k0", "1.25"),
        (1, "k1", "1.25"),
        (2, "k2", "1.25"),
    ]
    broken = before.where("_corrupt is not null").selectExpr("string(value)", "value_decoded", "_corrupt").collect()
    assert {tuple(row) for row in broken} == {(BROKEN, None, "value: field id: 'seven' is not a whole number")}
    produce(topic, list(documents(40, 40, place={"x": 1 << 40, "name": "there"}, more={"m": 1})), partitions=2)
    second = run(*json_words(topic, folder, LATER, "--format", kind, "--compact"))
    assert (second.code, second.json["records"]) == (0, 40), second.err
    assert second.json["files_compacted_away"] > 0
    rows = pipeline.table(spark, str(folder), table_format=kind)
    kinds = {one.name: one.dataType.simpleString() for one in rows.schema["value_decoded"].dataType}
    assert (kinds["id"], kinds["ratio"], kinds["place"]) == ("bigint", "double", "struct<x:bigint,name:string>")
    assert list(kinds) == ["id", "ratio", "price", "place", "tags", "more"], "dropped fields stay"
    seen = by_id(rows, "value_decoded.id", "value_decoded.place.*", "value_decoded.more['m']", "value_decoded.tags[0]")
    assert seen == [
        (n, n if n < 40 else 1 << 40, None if n < 40 else "there", None if n < 40 else 1, "a" if n < 40 else None)
        for n in range(80)
        if n % 10 != 3
    ]
    since = BASE_MS + DAY_MS
    part = pipeline.table(spark, str(folder), since, table_format=kind)
    assert part.count() == sum(each[3] >= since for each in consumed(run, topic))
    produce(again, [], partitions=2)
    sent = run("replay", "--from", folder, "--topic", again, "-o", "json")
    assert (sent.code, sent.json["records"]) == (0, 80), sent.err
    assert content(run, again) == content(run, topic)


@pytest.mark.parametrize("kind", FORMATS)
def test_what_cannot_grow_is_refused_before_anything_is_written(spark, run, produce, tmp_path, kind):
    topic, folder = unique("refused"), tmp_path / "table"
    produce(topic, [{"value": '{"id": "a", "at": {"x": 1}}', "timestamp": BASE_MS}])
    words = ("--format", kind)
    assert run(*json_words(topic, folder, "id STRING, at STRUCT<x: INT>", *words)).code == 0
    there = sorted(path for path in folder.rglob("*") if "lock" not in str(path))
    for schema, said in (
        ("id INT", "the column value_decoded.id is string in the table, and int in the schema"),
        ("at STRUCT<x: DOUBLE>", "value_decoded.at.x is "),
        ("AT INT", "value_decoded.at and value_decoded.AT differ only in case"),
    ):
        produce(topic, [{"value": "{}", "timestamp": BASE_MS}])
        ended = run(*json_words(topic, folder, schema, *words))
        assert (ended.code, said in ended.err) == (1, True), ended.err
    assert sorted(path for path in folder.rglob("*") if "lock" not in str(path)) == there
    plain = run("archive", "--topic", topic, "--to", folder, *words, "-o", "json")
    assert (plain.code, plain.json["records"]) == (0, 3), plain.err
    assert "the table has key_decoded, value_decoded, _corrupt, but this run has no options for them" in plain.err
    rows = open_table(kind, str(folder), spark).rows()
    assert [tuple(row) for row in rows.orderBy("offset").selectExpr("offset", "value_decoded.id").collect()] == [
        (0, "a"),
        (1, None),
        (2, None),
        (3, None),
    ]


def test_options_are_checked_before_spark_is_asked(run, produce, tmp_path):
    topic = unique("options")
    produce(topic, [])
    for words, said in (
        (("--value-format", "json"), "value.schema must define the columns of json"),
        (("--value-schema", "id INT"), "value.schema needs value.format"),
        (("--value-format", "avro"), "avro needs value.schema (a file, or the text), or a registry"),
        (("--dead-letter-topic", "d"), "dead.letter.topic needs value.format"),
        (("--value-format", "json", "--value-schema", "id WORD"), "no type 'word'"),
    ):
        ended = run("archive", "--topic", topic, "--to", tmp_path / "table", *words)
        assert (ended.code, said in ended.err) == (2, True), (words, ended.err)
    with pytest.raises(ValueError, match=r"value\.fromat is not an option for typed columns"):
        Form(typed={"value.fromat": "json"}).columns([topic])


def test_broken_records_go_to_a_topic_or_end_the_job(run, produce, tmp_path, spark):
    topic, dead = unique("letters"), unique("dead")
    produce(topic, list(documents(40)), partitions=2)
    produce(dead, [])
    strict = run(*json_words(topic, tmp_path / "strict", FIRST, "--mode", "failFast"))
    assert (strict.code, "'seven' is not a whole number (mode failfast" in strict.err) == (1, True), strict.err
    assert not list((tmp_path / "strict").glob("date=*"))
    sent = run(*json_words(topic, tmp_path / "table", FIRST, "--dead-letter-topic", dead))
    assert (sent.code, sent.json["records"], sent.json["broken"]) == (0, 36, 0), sent.err
    assert [each[5] for each in consumed(run, dead)] == [BROKEN.encode()] * 4
    assert "_corrupt" not in pipeline.table(spark, str(tmp_path / "table")).columns


AVRO = {"type": "record", "name": "order", "fields": [{"name": "id", "type": "int"}]}
AVRO_LATER = {
    "type": "record",
    "name": "order",
    "fields": [{"name": "id", "type": "long"}, {"name": "who", "type": ["null", "string"], "default": None}],
}


def framed(schema, number, record):
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), record)
    return b"\x00" + number.to_bytes(4, "big") + out.getvalue()


class Rounds(Ending):
    """Each pause calls the next of these; behind the last the end is wished for."""

    def __init__(self, *between):
        super().__init__(lambda _: None)
        self.between = list(between)

    def pause(self, seconds):
        if self.between:
            self.between.pop(0)()
        else:
            self.wished = True


@pytest.mark.parametrize("kind", FORMATS)
def test_rounds_take_newer_schemas_of_the_registry(spark, session_broker, run, tmp_path, kind):
    topic, folder = unique("rounds"), tmp_path / "table"
    made = run("create", topic, "-p", 1, "--config", "retention.ms=-1", command=("topics",))
    assert made.code == 0, made
    latest = f"/subjects/{topic}-value/versions/latest"
    answers = {latest: {"schema": json.dumps(AVRO), "id": 1}, "/schemas/ids/1": {"schema": json.dumps(AVRO)}}

    def send(*values):
        rows = spark.createDataFrame([(bytearray(each),) for each in values], "value binary")
        sink = rows.coalesce(1).write.format("horolog").mode("append")
        sink.options(**{"kafka.bootstrap.servers": session_broker.address}, topic=topic).save()

    def later():
        answers[latest] = {"schema": json.dumps(AVRO_LATER), "id": 2}
        answers["/schemas/ids/2"] = {"schema": json.dumps(AVRO_LATER)}
        send(framed(AVRO_LATER, 2, {"id": 1 << 40, "who": "me"}), framed(AVRO, 1, {"id": 2}), b"nonsense")

    def silent():
        answers[latest] = b""
        send(framed(AVRO_LATER, 2, {"id": 3, "who": None}))

    def incompatible():
        answers[latest] = {"schema": json.dumps(AVRO | {"fields": [{"name": "id", "type": "string"}]}), "id": 3}
        send(framed(AVRO, 1, {"id": 4}))

    send(framed(AVRO, 1, {"id": 1}))
    with RegistryThread(answers) as registry:
        form = Form(typed={"value.format": "avro", "registry": registry.url})
        table = open_table(kind, str(folder), spark)
        job = Job(spark, session_broker.address, [topic], table, form=form)
        told = []
        following = Following(job, Pace(every_ms=0), Rounds(later, silent, later, incompatible), told.append)
        rounds = []
        with pytest.raises(Exception, match=r"value_decoded\.id is bigint in the table, and string in the schema"):
            rounds.extend(following.rounds())
    assert [line.partition(":")[0] for line in told] == ["registry", "the fault has passed; the job continues"]
    rows = pipeline.table(spark, str(folder), table_format=kind).orderBy("offset")
    found = [tuple(row) for row in rows.selectExpr("value_decoded.*", "_corrupt is null").collect()]
    again = [(1 << 40, "me", True), (2, None, True), (None, None, False)]
    assert found == [(1, None, True), *again, (3, None, True), *again]
    assert following.summary.details["broken"] == 2


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_job_that_is_killed_at_any_moment_leaves_each_record_once_decoded(
    run, produce, spark, session_broker, tmp_path
):
    topic, folder = unique("killed"), tmp_path / "table"
    produce(topic, list(documents(60)), partitions=2)
    words = [
        sys.executable,
        "-m",
        "horolog",
        "pipeline",
        *map(str, json_words(topic, folder, FIRST, "--step", "7", "--quick")),
    ]
    environment = {**os.environ, "HOROLOG_BOOTSTRAP": session_broker.address}
    began = time.monotonic()
    job = subprocess.Popen(words, cwd=PROJECT, env=environment, start_new_session=True, stderr=subprocess.DEVNULL)
    commits = folder / "_horolog/commits"
    try:
        while job.poll() is None and len(list(commits.glob("*.json"))) < 3 and time.monotonic() - began < 200:
            time.sleep(0.05)
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait(10)
    assert 3 <= len(list(commits.glob("*.json"))) < 9
    grown = run(*json_words(topic, folder, LATER, "--wait", "2m"))
    assert grown.code == 0, grown.err
    rows = pipeline.table(spark, str(folder))
    assert rows.count() == rows.select("partition", "offset").distinct().count() == 60
    assert [row[0] for row in by_id(rows, "value_decoded.id")] == [n for n in range(60) if n % 10 != 3]
    again = unique("again")
    produce(again, [], partitions=2)
    assert run("replay", "--from", folder, "--topic", again, "-o", "json").json["records"] == 60
    assert content(run, again) == content(run, topic)


@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
def test_tables_in_a_bucket_grow_too(spark, run, produce, s3, tmp_path, monkeypatch, kind):
    s3.enter(monkeypatch)
    topic, again, url = unique("bucket"), unique("again"), s3.url(unique("table"))
    to, source = (url, "--format", kind), ("--from", url)
    if kind == "iceberg":
        uri = f"uri=sqlite:///{tmp_path / 'c.db'}"
        source = ("--catalog", "sql", "--catalog-set", uri, "--table", "logs.t")
        to = (url, *source)
    produce(topic, list(documents(20)), partitions=2)
    first = run(*json_words(topic, to[0], FIRST, *to[1:]))
    assert (first.code, first.json["records"]) == (0, 20), first.err
    produce(topic, list(documents(20, 20, place={"x": 1 << 40, "name": "there"})), partitions=2)
    refused = run(*json_words(topic, to[0], "id DATE", *to[1:]))
    assert (refused.code, "and date in the schema" in refused.err) == (1, True), refused.err
    second = run(*json_words(topic, to[0], LATER, *to[1:], "--compact"))
    assert (second.code, second.json["records"]) == (0, 20), second.err
    produce(again, [], partitions=2)
    sent = run("replay", *source, "--topic", again, "-o", "json")
    assert (sent.code, sent.json["records"]) == (0, 40), sent.err
    assert content(run, again) == content(run, topic)
    if kind != "iceberg":
        rows = pipeline.table(spark, url, table_format=kind)
        assert by_id(rows.where("value_decoded.id in (1, 21)"), "value_decoded.id", "value_decoded.place.*") == [
            (1, 1, None),
            (21, 1 << 40, "there"),
        ]


@pytest.mark.parametrize(
    ("text", "zone"), [(None, None), ("utc", "UTC"), ("Europe/Berlin", "Europe/Berlin"), ("europe/berlin", None)]
)
def test_a_zone_is_one_that_other_readers_know(text, zone):
    if text is not None and zone is None:
        with pytest.raises(UsageError, match=r"^--zone: "):
            archive_form._zone(text)
        return
    assert archive_form._zone(text) == zone


@pytest.mark.parametrize("text", ["+02:00", "nowhere"])
def test_an_offset_or_an_unknown_name_is_no_zone(text):
    with pytest.raises(UsageError, match=r"^--zone: "):
        archive_form._zone(text)


def test_a_registry_is_that_of_the_command_line_with_its_credentials(monkeypatch):
    access = SimpleNamespace(url="http://r", user_info="u:p", token=None, ca_file=None)
    monkeypatch.setattr(archive_form, "registry_access", lambda arguments: access)
    given = archive_form._registry(None)
    assert (given["registry"], len(given)) == ("http://r", 2)
    monkeypatch.setattr(archive_form, "registry_access", lambda arguments: None)
    assert archive_form._registry(None) == {}


def test_only_zones_other_than_utc_are_asked_of_java(monkeypatch):
    asked = []
    monkeypatch.setattr(archive_form.Folders, "check", lambda self, spark: asked.append((self.zone, spark)))
    Form().check("spark", None)
    Form(zone="Europe/Berlin").check("spark", None)
    assert asked == [("Europe/Berlin", "spark")]
