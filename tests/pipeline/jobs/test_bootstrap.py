"""A dump becomes a topic with the dump's own times, and its last days can be read again from there."""

import asyncio
import datetime as dt
import importlib
import json
import time
from types import SimpleNamespace

import pytest

from horolog.commands.errors import CommandError, NotFoundError, UsageError
from horolog.pipeline.jobs import dump_pieces, dump_rows
from horolog.pipeline.jobs.bootstrap import Dump, prepare
from horolog.pipeline.jobs.dump_files import is_data_file
from horolog.pipeline.jobs.lanes import Lanes, Row
from horolog.pipeline.jobs.loading import Load, NotSent, Settings, Share
from horolog.pipeline.jobs.topic_rules import Counts, outlook_of, rules_at
from tests.support.names import unique

DAY_MS = 86_400_000
NOW_MS = time.time_ns() // 1_000_000
COUNT = 12
TIMES = [NOW_MS - (COUNT - number) * DAY_MS for number in range(COUNT)]


LARGE = "v" * 3000


def consumed(run, topic, *words):
    ended = run(topic, "-o", "json", *words, command=("consume",))
    return [json.loads(line) for line in ended.out.splitlines()]


@pytest.fixture
def rows(spark):
    return spark.createDataFrame(
        [(n, f"item {n}", TIMES[n], dt.datetime.fromtimestamp(TIMES[n] / 1000, dt.UTC)) for n in range(COUNT)],
        "id int, name string, at_ms long, created timestamp",
    )


@pytest.mark.parametrize("file_format", ["parquet", "json", "csv", "orc"])
def test_files_of_every_kind(run, produce, rows, tmp_path, file_format):
    topic, dump = unique("dumped"), tmp_path / "dump"
    produce(topic, [])
    writer = rows.orderBy("id", ascending=False).write.format(file_format)
    (writer.option("header", "true") if file_format == "csv" else writer).save(str(dump))
    words = ("bootstrap", "--from", dump, "--topic", topic, "--key-column", "id", "--time-column", "created")
    ended = run(*words, "-o", "json")
    assert (ended.code, ended.json["records"]) == (0, COUNT)
    records = consumed(run, topic)
    assert [record["timestamp"] for record in records] == TIMES
    assert [record["key"] for record in records] == [str(n) for n in range(COUNT)]
    assert json.loads(records[3]["value"]) == {"name": "item 3", "at_ms": TIMES[3]}


@pytest.mark.parametrize(("unit", "per_ms"), [("s", 1 / 1000), ("ms", 1), ("us", 1000), ("ns", 1_000_000)])
def test_times_that_are_numbers_are_recognised_by_their_size(run, produce, spark, tmp_path, unit, per_ms):
    topic, dump = unique("numbers"), tmp_path / "dump"
    produce(topic, [])
    time_ms = NOW_MS // 1000 * 1000
    spark.createDataFrame([(int(time_ms * per_ms), "v")], "at long, value string").write.parquet(str(dump))
    words = ("bootstrap", "--from", dump, "--topic", topic, "--time-column", "at", "--value-column", "value")
    assert run(*words).code == 0, unit
    assert [(each["timestamp"], each["value"]) for each in consumed(run, topic)] == [(time_ms, "v")]


def test_a_database_and_its_last_days_for_a_group(spark, run, produce, rows, tmp_path):
    topic, group, url = unique("database"), unique("group"), f"jdbc:derby:{tmp_path}/shop;create=true"
    produce(topic, [], partitions=2)
    rows.write.format("jdbc").option("url", url).option("dbtable", "items").save()
    words = ("bootstrap", "--from", url, "--table", "items", "--topic", topic, "--time-column", "created")
    ended = run(*words, "--key-column", "id", "--reprocess", "3d", "--group", group, "-o", "json")
    assert (ended.code, ended.json["records"], ended.json["reprocess_records"]) == (0, COUNT, 4)
    assert len(consumed(run, topic)) == COUNT
    read = consumed(run, topic, "--group", group)
    assert sorted(record["timestamp"] for record in read) == TIMES[-4:]


def test_what_would_be_lost_is_said_first(run, produce, rows, tmp_path):
    topic, dump = unique("short"), tmp_path / "dump"
    produce(topic, [], f"retention.ms={11 * DAY_MS // 2}")
    rows.write.parquet(str(dump))
    words = ("bootstrap", "--from", dump, "--topic", topic, "--time-column", "created")
    looked = run(*words, "--dry-run", "-o", "json")
    assert (looked.code, looked.json["expired"]) == (3, 7)
    assert run(*words).code == 1
    assert consumed(run, topic) == []


@pytest.mark.usefixtures("spark")  # the job takes its session
@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"1.csv": "id,at,text\n1,{at},cut,off\n"}, "Malformed CSV record: 1,"),
        ({"1.csv": "id,at,text\n1,{at},a\n2,{at}\n"}, "Malformed CSV record: 2,"),
        ({"1.csv": 'id,at,text\n1,{at},"line\nbreak"\n'}, "Malformed CSV record: "),
        ({"1.csv": "id,at,text\n1,{iso},a\n", "2.csv": "text,at,id\na,{iso},2\n"}, "CSV header does not conform"),
        ({"1.json": '{{"id":1,"at":{at}}}\n{{"id":2,"at"'}, "Unexpected end-of-input"),
    ],
)
def test_a_row_that_does_not_fit_the_others_is_refused_before_anything_is_sent(run, produce, tmp_path, files, said):
    """Spark by itself would cut it, or fill it with nulls."""
    topic, dump = unique("strict"), tmp_path / "dump"
    produce(topic, [])
    dump.mkdir()
    for name, text in files.items():
        (dump / name).write_text(text.format(at=NOW_MS, iso=dt.datetime.now(dt.UTC).isoformat()))
    refused = run("bootstrap", "--from", dump, "--topic", topic, "--time-column", "at")
    (line,) = [line for line in refused.err.splitlines() if "Spark failed" in line]
    assert (refused.code, said in line) == (1, True), refused.err
    assert consumed(run, topic) == []


def test_what_cannot_be_loaded_is_said(spark, run, produce, rows, tmp_path):
    topic, dump = unique("refused"), tmp_path / "dump"
    produce(topic, [])
    rows.write.parquet(str(dump))
    words = ("bootstrap", "--topic", topic, "--from")
    ended = run(*words, dump, "--time-column", "when")
    assert (ended.code, "the dump has id, name, at_ms, created" in ended.err) == (2, True)
    assert run(*words, tmp_path / "missing").code == 4
    (tmp_path / "empty").mkdir()
    assert run(*words, tmp_path / "empty").code == 2
    assert run(*words, "jdbc:derby:x").code == 2
    assert run(*words, dump, "--group", "g").code == 2
    holes = spark.createDataFrame([(1, None), (2, NOW_MS)], "id int, at long")
    holes.write.parquet(str(tmp_path / "holes"))
    ended = run(*words, tmp_path / "holes", "--time-column", "at")
    assert (ended.code, "1 rows have no time in column at\n" in ended.err) == (1, True), ended.err
    (tmp_path / "odd.csv").write_text("id,at\n1,yesterday noon\n2,2026-01-02T03:04:05Z\n3,\n")
    ended = run(*words, tmp_path / "odd.csv", "--time-column", "at")
    said = "2 rows have no time in column at; one of them has 'yesterday noon'\n"
    assert (ended.code, said in ended.err) == (1, True), ended.err


def test_files_in_folders_below_are_not_left_out(run, produce, rows, tmp_path):
    topic, dump = unique("dumped"), tmp_path / "dump"
    produce(topic, [])
    rows.where("id < 5").write.parquet(str(dump))
    rows.where("id >= 5").write.parquet(str(dump / "later"))
    words = ("bootstrap", "--topic", topic, "--time-column", "created", "-o", "json", "--from")
    ended = run(*words, dump)
    assert (ended.code, ended.json["records"]) == (0, COUNT), ended
    rows.where("id < 5").write.parquet(str(dump / "later" / "day=1"))
    ended = run(*words, dump)
    assert (ended.code, "has columns in the names of some folders" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.parquet", True),
        ("d=1/a.json.gz", True),
        ("part-00000", True),
        ("README.md", False),
        ("_SUCCESS", False),
        ("_temporary/0/a.csv", False),
        ("later/.a.csv.crc", False),
    ],
)
def test_the_files_of_a_dump(name, expected):
    assert is_data_file(name) == expected


class Rows:
    """What a dump has when it is sent."""

    def __init__(self, count):
        self.count = count

    def here(self, numbers):
        (lane,) = numbers
        yield lane, (Row(lane, n, None, b"%d" % n, None, None, NOW_MS) for n in range(self.count))


@pytest.mark.parametrize("there", [3, 7])
def test_a_dump_that_changes_while_it_is_sent_is_not_done(produce, session_broker, there):
    """Its rows were counted before; what was sent is a part, or rows of two states."""
    topic = unique("changing")
    produce(topic, [])
    lanes = Lanes.of("bootstrap", (topic,), session_broker.address, topic, 1)
    share = Share(Rows(there), lanes, range(1), {"rows": 5}, rows_due=5)
    outlook = outlook_of(Counts(), asyncio.run(rules_at(session_broker.address, topic)))
    load = Load("bootstrap", topic, "the dump", [share], outlook)
    said = f"the dump has changed while it was sent: it had 5 rows, and {there} were sent; use --again to send all of it again"
    with pytest.raises(CommandError, match=said):
        load.send(Settings(rate=10_000))
    share.rows.count = 5
    assert load.send(Settings(rate=10_000, again=True)).records == 5


def test_a_dump_that_was_sent_is_not_sent_again_and_one_that_has_changed_is_refused(run, produce, rows, tmp_path):
    topic, dump = unique("dumped"), tmp_path / "dump"
    produce(topic, [])
    rows.write.parquet(str(dump))
    words = ("bootstrap", "--from", dump, "--topic", topic, "--time-column", "created", "--exactly-once", "--step", "5")
    assert run(*words, "-o", "json").json["records"] == COUNT
    again = run(*words, "-o", "json")
    assert (again.json["records"], again.json["sent_before"]) == (0, COUNT)
    assert [record["timestamp"] for record in consumed(run, topic)] == TIMES
    rows.limit(1).write.mode("append").parquet(str(dump))
    ended = run(*words)
    assert (ended.code, f"has changed since {COUNT} rows of it were sent" in ended.err) == (1, True)
    assert run(*words, "--again", "-o", "json").json["records"] == COUNT + 1


@pytest.mark.parametrize("way", [(), ("--exactly-once",)], ids=["at least once", "exactly once"])
def test_a_run_that_ended_in_the_middle_is_gone_on_with_and_keeps_the_order(
    spark, run, produce, tmp_path, monkeypatch, way
):
    """Files overlap in time, pieces are small, and a record of one in the middle is refused at first."""
    topic, dump, count = unique("dumped"), tmp_path / "dump", 60
    monkeypatch.setattr(dump_pieces, "PIECE_BYTES", 200)
    monkeypatch.setattr(dump_rows, "SAMPLE_SHARE", 1.0)
    produce(topic, [], "max.message.bytes=2000")
    times = [NOW_MS - 1000 * (number * 7 % count) for number in range(count)]
    large = sorted(times)[count // 2]
    values = [f"{time_ms}{LARGE if time_ms == large else ''}" for time_ms in times]
    spark.createDataFrame(list(zip(times, values, strict=True)), "at long, value string").repartition(3).write.parquet(
        str(dump)
    )
    words = ("bootstrap", "--from", dump, "--topic", topic, "--time-column", "at", "--value-column", "value")
    words += ("--step", "2", "-o", "json", *way)
    refused = run(*words)
    assert (refused.code, "Spark failed: " in refused.err) == (1, True), refused.err
    sent = [record["timestamp"] for record in consumed(run, topic)]
    complete = len(sent) if way else len(sent) - 1  # the record behind the one that is refused may be written with it
    assert sent[:complete] == sorted(times)[:complete]
    assert len(sent) >= count // 3
    assert run("set", "topic", topic, "max.message.bytes=1000000", command=("configs",)).code == 0
    ended = run(*words)
    assert (ended.code, ended.json["records"] + ended.json["sent_before"]) == (0, count), ended
    found = [record["timestamp"] for record in consumed(run, topic)]
    assert sorted(set(found)) == sorted(times)
    assert len(found) == count + ended.json["sent_twice"]
    assert run(*words).json["records"] == 0
    if way:
        assert found == sorted(times)


def test_only_the_files_of_a_piece_are_read_for_it(spark, session_broker, produce, tmp_path, monkeypatch):
    """The first record waits for the first file, not for the whole dump."""
    topic, dump = unique("dumped"), tmp_path / "dump"
    monkeypatch.setattr(dump_pieces, "PIECE_BYTES", 1 << 10)
    monkeypatch.setattr(dump_rows, "SAMPLE_SHARE", 1.0)
    produce(topic, [])
    rows = spark.range(0, 400, 1, 4).selectExpr("id", f"timestamp_millis({NOW_MS} + id) as timestamp")
    rows.write.parquet(str(dump))
    rules = asyncio.run(rules_at(session_broker.address, topic))
    load = prepare(spark, session_broker.address, Dump(str(dump)), topic, rules, Settings())
    (share,) = load.shares
    assert len(share.rows.pieces) > 4
    assert [len(piece.files) for piece in share.rows.pieces[:2]] == [1, 1]
    first = share.rows.in_order(share.rows.pieces[0])
    scanned = first._jdf.queryExecution().executedPlan().toString()
    assert "PushedFilters: [IsNotNull(timestamp), LessThan(timestamp" in scanned
    assert load.send(Settings()).records == 400


def test_a_target_that_was_made_anew_gets_the_whole_dump(run, produce, rows, session_broker, tmp_path):
    """Brokers forget offsets with their topic, sooner or later; the progress names the topic by its id, so nothing depends on it."""
    topic, dump = unique("remade"), tmp_path / "dump"
    rows.write.parquet(str(dump))
    words = ("bootstrap", "--from", dump, "--topic", topic, "--time-column", "created", "-o", "json")
    for _ in range(2):
        before = jobs(run)
        produce(topic, [])
        ended = run(*words)
        assert (ended.code, ended.json["records"], ended.json["sent_before"]) == (0, COUNT, 0), ended
        assert len(consumed(run, topic)) == COUNT
        assert len(jobs(run) - before) == 1
        assert run("delete", topic, "--yes", command=("topics",)).code == 0


def jobs(run):
    """The groups that hold the progress of dumps."""
    listed = json.loads(run("list", "-o", "json", command=("groups",)).out)
    return {each["group"] for each in listed if each["group"].startswith("horolog-bootstrap-")}


bootstrap_module = importlib.import_module("horolog.pipeline.jobs.bootstrap")  # the front has the function


def test_a_database_needs_a_table_and_an_unknown_file_system_a_format():
    with pytest.raises(UsageError, match="a database has many tables"):
        bootstrap_module.read_dump(None, "jdbc:x", None, None)
    with pytest.raises(UsageError, match="the format of hdfs://n/t is unknown"):
        bootstrap_module.read_dump(None, "hdfs://n/t", None, None)
    with pytest.raises(NotFoundError, match="there is no /no/such/dump"):
        bootstrap_module.read_dump(None, "/no/such/dump", None, None)


@pytest.mark.parametrize("force", [False, True])
def test_the_function_sends_nothing_that_would_be_lost_unless_it_is_told_to(monkeypatch, force):
    outlook = SimpleNamespace(losses=["all of it"])
    made = SimpleNamespace(outlook=outlook, send=lambda settings: settings)

    async def rules(address, topic):
        return topic

    monkeypatch.setattr(bootstrap_module, "rules_at", rules)
    monkeypatch.setattr(bootstrap_module, "prepare", lambda *given: made)
    settings = Settings(force=force)
    if force:
        assert bootstrap_module.bootstrap(None, "h:1", "/dump", "t", settings=settings) is settings
        return
    with pytest.raises(NotSent, match="all of it; nothing was sent"):
        bootstrap_module.bootstrap(None, "h:1", "/dump", "t")
