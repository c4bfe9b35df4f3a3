"""Archives hold every record once, under the date of its own time, whatever killed the job that wrote them."""

import argparse
import asyncio
import datetime as dt
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.client.values.types import TopicPartition
from horolog.client.wire.client import Client
from horolog.commands.console import Console
from horolog.commands.errors import UsageError
from horolog.pipeline.jobs.archive import Have, Job, Lost, RowsToAdd, plan, steps
from horolog.pipeline.jobs.common import Summary
from horolog.pipeline.stores import store
from horolog.pipeline.tables import lock
from horolog.pipeline.tables.lock import writing
from horolog.pipeline.tables.table import (
    FORMATS,
    ROWS,
    AddedRows,
    CommitLost,
    TableError,
    decode_offsets,
    encode_offsets,
    open_table,
)
from tests.support.names import unique
from tests.support.style import PROJECT

DAY_MS = 86_400_000
NOON = dt.datetime(2025, 11, 17, 12, tzinfo=dt.UTC)
BASE_MS = 1_763_337_600_000  # 2025-11-17 00:00 UTC
PLACE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


def days_of_records(count, seed=1, partitions=2):
    """Records of three days, out of order, of all shapes."""
    rng = random.Random(seed)
    for number in range(count):
        yield {
            "key": rng.choice([None, f"k{number}"]),
            "value": rng.choice([None, "", f"value {number}" * rng.randrange(1, 5)]),
            "timestamp": BASE_MS + rng.randrange(3 * DAY_MS),
            "headers": [{"key": "n", "value": str(number)}] * rng.randrange(3),
            "partition": rng.randrange(partitions),
        }


def archived(spark, kind, folder):
    """What the table holds, as consume would write it, in order."""
    where = str(folder) if isinstance(folder, Path) else folder
    rows = open_table(kind, where, spark).rows().orderBy("topic", "partition", "offset").collect()
    found = []
    for row in rows:
        time_ms = round(row["timestamp"].timestamp() * 1000)
        assert str(row["date"]) == time.strftime("%Y-%m-%d", time.gmtime(time_ms / 1000))
        headers = [(each["key"], bytes(each["value"])) for each in row["headers"] or ()]
        key, value = (None if row[name] is None else bytes(row[name]) for name in ("key", "value"))
        found.append((row["topic"], row["partition"], row["offset"], time_ms, key, value, headers))
    return found


def consumed(run, topic):
    """The same from a plain consumer."""
    ended = run(topic, "-o", "json", command=("consume",))
    records = [json.loads(line) for line in ended.out.splitlines()]

    def data(text):
        return None if text is None else text.encode()

    return sorted(
        (
            each["topic"],
            each["partition"],
            each["offset"],
            each["timestamp"],
            data(each["key"]),
            data(each["value"]),
            [(header["key"], data(header["value"])) for header in each["headers"]],
        )
        for each in records
    )


# -- pure


@pytest.mark.parametrize(
    ("wanted", "most", "expected"),
    [
        ({PLACE: (0, 0)}, 10, []),
        ({PLACE: (5, 3)}, 10, []),
        ({PLACE: (0, 10)}, 10, [{PLACE: (0, 10)}]),
        ({PLACE: (0, 25)}, 10, [{PLACE: (0, 10)}, {PLACE: (10, 20)}, {PLACE: (20, 25)}]),
        ({PLACE: (0, 7), OTHER: (3, 9)}, 10, [{PLACE: (0, 5), OTHER: (3, 8)}, {PLACE: (5, 7), OTHER: (8, 9)}]),
    ],
)
def test_steps(wanted, most, expected):
    assert list(steps(wanted, most)) == expected


@given(
    st.dictionaries(
        st.builds(TopicPartition, st.just("t"), st.integers(0, 9)), st.tuples(st.integers(0, 50), st.integers(0, 90))
    ),
    st.integers(1, 40),
)
def test_steps_take_from_all_partitions_alike_and_leave_nothing_out(wanted, most):
    ends, done = {place: start for place, (start, _) in wanted.items()}, list(steps(wanted, most))
    for number, step in enumerate(done):
        taken = sum(end - start for start, end in step.values())
        assert taken == most or (taken < most and number == len(done) - 1), "each but the last is full"
        unfinished = {place: wanted[place][1] - ends[place] for place in wanted if wanted[place][1] > ends[place]}
        for place, (start, end) in step.items():
            assert start == ends[place] < end
            ends[place] = end
        shares = [
            step.get(place, (0, 0))[1] - step.get(place, (0, 0))[0]
            for place in unfinished
            if ends[place] < wanted[place][1]
        ]
        assert not shares or max(shares) - min(shares) <= 1
    assert ends == {place: max(start, end) for place, (start, end) in wanted.items()}


def test_offsets_are_written_and_read():
    offsets = {PLACE: 7, OTHER: 0, TopicPartition("u", 12): 2**40}
    assert decode_offsets(json.loads(json.dumps(encode_offsets(offsets)))) == offsets
    for nonsense in ([], {"t": 1}, {"t": {"x": 1}}, {"t": {"0": None}}):
        with pytest.raises(TableError):
            decode_offsets(nonsense)


# -- every kind of table


@pytest.mark.parametrize("kind", FORMATS)
def test_a_topic_is_archived_once_in_steps_and_goes_on_where_it_ended(spark, run, produce, tmp_path, kind):
    topic, folder = unique("archived"), tmp_path / "table"
    words = ("archive", "--topic", topic, "--to", folder, "--format", kind, "--step", "70", "-o", "json")
    produce(topic, list(days_of_records(150)), partitions=2)
    first = run(*words)
    assert (first.code, first.json["records"], first.json["commits"]) == (0, 150, 3)
    again = run(*words)
    assert (again.code, again.json["records"], again.json["commits"]) == (0, 0, 0)
    produce(topic, list(days_of_records(30, seed=2)), partitions=2)
    third = run(*words, "--compact")
    assert (third.code, third.json["records"]) == (0, 30)
    assert third.json["files_compacted_away"] > 0
    assert archived(spark, kind, folder) == consumed(run, topic)
    after_compaction = run(*words)
    assert after_compaction.json["records"] == 0
    since = BASE_MS + DAY_MS + 5
    rows = open_table(kind, str(folder), spark).rows(since, since + DAY_MS)
    expected = [each for each in consumed(run, topic) if since <= each[3] < since + DAY_MS]
    assert rows.count() == len(expected)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_tasks_write_files_that_the_tables_own_library_reads_and_prunes(spark, tmp_path, kind, monkeypatch):
    rows = spark.range(4000, numPartitions=4).selectExpr(
        "'t' as topic", "cast(id % 4 as int) as partition", "id as offset",
        f"timestamp_millis({BASE_MS} + id * 60000) as timestamp", "0 as timestampType",
        "cast(null as binary) as key", "cast(concat('v', id) as binary) as value",
        "array(named_struct('key', 'n', 'value', cast('h' as binary))) as headers",
    )  # fmt: skip
    table = open_table(kind, str(tmp_path / "table"), spark)
    with writing(table), monkeypatch.context() as patch:
        patch.setattr(type(rows), "toArrow", lambda _: pytest.fail("rows come through the driver"))
        assert table.offsets() == {}
        written = table.append(rows, {PLACE: 4000}, {"t": "id"})
        again = table.append(rows.limit(0), {PLACE: 4001}, {"t": "id"})
    assert (written.records, written.last_timestamp_ms, again.records) == (4000, BASE_MS + 3999 * 60000, 0)
    assert written.files >= 4, "each task has written its own"
    assert open_table(kind, str(tmp_path / "table"), spark).offsets() == {PLACE: 4001}
    since = NOON + dt.timedelta(days=1)
    if kind == "delta":
        own = table._table()
        found = own.to_pyarrow_table(filters=[("timestamp", ">=", since)])
        assert own.to_pyarrow_table().num_rows == 4000
    else:
        own = table._table().scan(row_filter=f"timestamp >= '{since.isoformat()}'")
        found = own.to_arrow()
        assert len(list(own.plan_files())) < written.files, "files of other times are left out by their statistics"
    assert found.num_rows == 4000 - 36 * 60
    row = found.sort_by("offset").to_pylist()[0]
    assert (row["offset"], row["value"], row["headers"]) == (2160, b"v2160", [{"key": "n", "value": b"h"}])
    assert (row["timestamp"], row["date"]) == (since, since.date())


def test_the_folders_of_a_table_are_its_own(spark, run, produce, tmp_path):
    topic = unique("by-hour")
    produce(topic, list(days_of_records(40)), partitions=2)
    words = ("archive", "--topic", topic, "--to", tmp_path / "table", "-o", "json")
    assert run(*words, "--partition-by", "hour", "--zone", "America/New_York").code == 0
    found = {path.parent.relative_to(tmp_path / "table") for path in tmp_path.rglob("*.parquet")}
    assert {str(path.parent) for path in found} >= {"date=2025-11-16", "date=2025-11-19"}, "of New York's clocks"
    produce(topic, list(days_of_records(5, seed=2)), partitions=2)
    for other in (("--partition-by", "date"), ("--zone", "UTC")):
        ended = run(*words, *other)
        assert (ended.code, "by date and hour in America/New_York, not by" in ended.err) == (1, True)
    assert run(*words).json["records"] == 5
    again = unique("again")
    produce(again, [], partitions=2)
    sent = run("replay", "--from", tmp_path / "table", "--topic", again, "-o", "json")
    assert sent.json["records"] == 45


def test_a_range_of_time(spark, run, produce, tmp_path):
    topic = unique("range")
    produce(topic, [{"value": str(n), "timestamp": BASE_MS + n * DAY_MS} for n in range(5)])
    words = ("archive", "--topic", topic, "--to", tmp_path / "table")
    ended = run(*words, "--since", f"@{BASE_MS + DAY_MS}ms", "--until", f"@{BASE_MS + 3 * DAY_MS}ms", "-o", "json")
    assert ended.json["records"] == 2
    assert sorted(path.name for path in (tmp_path / "table").glob("date=*")) == ["date=2025-11-18", "date=2025-11-19"]


def test_what_retention_took_first_is_an_error_until_it_is_accepted(spark, run, produce, tmp_path):
    topic = unique("trimmed")
    records = [{"value": str(n), "timestamp": BASE_MS} for n in range(10)]
    produce(topic, records)
    words = ("archive", "--topic", topic, "--to", tmp_path / "table")
    assert run(*words).code == 0
    produce(topic, records)
    assert run("trim", topic, "--offset", "15", "--yes", command=("topics",)).code == 0
    ended = run(*words)
    assert (ended.code, "5 offsets are gone" in ended.err) == (1, True)
    assert run(*words, "--skip-lost", "-o", "json").json["records"] == 5
    assert run("delete", topic, "--yes", command=("topics",)).code == 0
    produce(topic, records[:1])
    ended = run(*words)
    assert (ended.code, "deleted and recreated" in ended.err) == (1, True)


def test_what_cannot_be_archived_is_said(spark, run, produce, tmp_path):
    topic = unique("refused")
    produce(topic, [{"value": "v", "timestamp": BASE_MS}])
    assert run("archive", "--to", tmp_path).code == 2
    assert run("archive", "--topic", unique("none"), "--to", tmp_path).code == 4
    foreign = tmp_path / "foreign" / "date=2025-01-01"
    foreign.mkdir(parents=True)
    (foreign / "x.parquet").touch()
    ended = run("archive", "--topic", topic, "--to", foreign.parent)
    assert (ended.code, "no log of commits" in ended.err) == (1, True)
    (tmp_path / "file").touch()
    assert run("archive", "--topic", topic, "--to", tmp_path / "file").code == 1
    assert run("archive", "--topic", topic, "--to", tmp_path / "d", "--format", "delta", "--checkpoint", "x").code == 2


# -- a beginning that is an hour ago, run after run


class FakeTable:
    """A table that counts its rows by offsets."""

    def __init__(self):
        self.offsets, self.ranges = {}, []

    def folders(self):
        return None

    def columns(self):
        return pa.schema([])

    def append(self, step, offsets, ids, folders):
        self.offsets = dict(offsets)
        self.ranges += [(place.partition, start, end) for place, (start, end) in step.items() if start < end]
        return AddedRows(sum(end - start for start, end in step.values()), 0, 1, None)


@pytest.fixture
def since_then(session_broker, monkeypatch):
    """`since_then(table, topic, since_ms)`: a run of the job, which tells what it added and what it said; without Spark."""
    monkeypatch.setattr(sys.modules[Job.__module__], "read_step", lambda _, __, step, ___: step)

    def run_job(table, topic, since_ms):
        async def planned():
            async with Client(session_broker.address) as client:
                return await plan(client, [topic], Have(table.offsets, {}), since_ms, None)

        wanted, told = asyncio.run(planned()), []
        job = Job(None, session_broker.address, [topic], table, since_ms)
        job.tell_first(wanted, told.append)
        before = len(table.ranges)
        job.add(wanted, Summary("archive", details={"commits": 0, "files": 0}))
        return sorted(table.ranges[before:]), told

    return run_job


def test_a_partition_that_was_quiet_begins_where_the_first_run_began(since_then, produce):
    """Its records of the time between two runs would be left out, if each run began an hour before itself."""
    topic, table = unique("quiet"), FakeTable()
    produce(topic, [{"value": "old", "timestamp": BASE_MS, "partition": p} for p in (0, 1)], partitions=2)
    produce(topic, [{"value": "new", "timestamp": BASE_MS + 2 * DAY_MS, "partition": 0}])
    assert since_then(table, topic, BASE_MS + DAY_MS) == ([(0, 1, 2)], [])
    produce(topic, [{"value": "between", "timestamp": BASE_MS + 2 * DAY_MS, "partition": 1}])
    added, told = since_then(table, topic, BASE_MS + 3 * DAY_MS)
    assert added == [(1, 1, 2)]
    assert told == [
        f"{topic}: continues where the table ends; --since applies only to topics that the table does not have yet"
    ]


def test_a_topic_that_was_quiet_begins_where_the_first_run_began(since_then, produce):
    topic, table = unique("quiet"), FakeTable()
    produce(topic, [{"value": "old", "timestamp": BASE_MS}])
    assert since_then(table, topic, BASE_MS + DAY_MS) == ([], [])
    produce(topic, [{"value": "between", "timestamp": BASE_MS + 2 * DAY_MS}])
    assert since_then(table, topic, BASE_MS + 3 * DAY_MS)[0] == [(0, 1, 2)]


def test_a_partition_that_was_added_between_two_runs_begins_at_its_start(since_then, run, produce):
    topic, table = unique("grown"), FakeTable()
    produce(topic, [{"value": "v", "timestamp": BASE_MS}])
    assert since_then(table, topic, BASE_MS)[0] == [(0, 0, 1)]
    assert run("alter", topic, "-p", "2", command=("topics",)).code == 0
    produce(topic, [{"value": "v", "timestamp": BASE_MS + DAY_MS, "partition": 1}])
    assert since_then(table, topic, BASE_MS + 2 * DAY_MS)[0] == [(1, 0, 1)]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_commit_without_rows_notes_where_a_table_begins(spark, run, produce, tmp_path, kind):
    topic = unique("quiet")
    produce(topic, [{"value": "old", "timestamp": BASE_MS}])
    words = ("archive", "--topic", topic, "--to", tmp_path / "table", "--format", kind, "-o", "json", "--since")
    first = run(*words, f"@{BASE_MS + DAY_MS}ms")
    assert (first.code, first.json["records"], first.json["offsets"]) == (0, 0, {topic: {"0": 1}})
    produce(topic, [{"value": "between", "timestamp": BASE_MS + 2 * DAY_MS}])
    assert run(*words, f"@{BASE_MS + 3 * DAY_MS}ms").json["records"] == 1


# -- crashes


class Crash(BaseException):
    """The process ends here."""


@pytest.mark.long
def test_a_parquet_table_survives_a_crash_at_every_step_of_a_commit(spark, tmp_path, monkeypatch):
    """The commit is interrupted before its n-th rename, unlink or sync, for every n; then the job runs again."""
    rows = (
        spark.createDataFrame(
            [("t", 0, number, None, 0, None, b"v", None) for number in range(6)],
            ROWS,
        )
        .selectExpr("*", "timestamp_millis(1763337600000 + offset * 40000000) as time")
        .drop("timestamp")
    )
    rows = rows.withColumnRenamed("time", "timestamp")
    counts = {"left": 0}

    def falling(original):
        def call(*arguments, **named):
            counts["left"] -= 1
            if counts["left"] < 0:
                raise Crash
            return original(*arguments, **named)

        return call

    crashed = 0
    for survived in range(200):
        folder = tmp_path / f"table-{survived}"
        monkeypatch.setattr(lock, "_process", lambda pid, life=survived: f"{pid} in life {2 * life}")
        with monkeypatch.context() as patch:
            counts["left"] = survived
            for name in ("rename", "unlink", "hardlink_to", "replace"):
                patch.setattr(Path, name, falling(getattr(Path, name)))
            for module in (store,):
                patch.setattr(module, "sync", falling(store.sync))
            table = open_table("parquet", str(folder), spark)
            try:
                with writing(table):
                    table.append(rows, {PLACE: 6})
                done = True
            except Crash:
                done = False
        crashed += not done
        monkeypatch.setattr(lock, "_process", lambda pid, life=survived: f"{pid} in life {2 * life + 1}")
        table = open_table("parquet", str(folder), spark)
        if table.offsets():
            assert table.rows().count() == 6, "a reader sees a commit whole, before anybody has put its files in place"
        with writing(table):
            if not table.offsets():
                table.append(rows, {PLACE: 6})
        assert table.offsets() == {PLACE: 6}
        offsets = [row["offset"] for row in table.rows().orderBy("offset").collect()]
        assert offsets == list(range(6)), survived
        assert spark.read.parquet(str(folder)).count() == 6
        assert not list((folder / "_horolog" / "staging").glob("*"))
        if done:
            break
    assert crashed > 10


@pytest.mark.parametrize("kind", FORMATS)
def test_of_two_that_saw_the_same_progress_one_adds_its_rows(spark, tmp_path, kind):
    """However the lock was passed by: what the second has to add may be what the first has added."""
    rows = spark.createDataFrame([("t", 0, 1, NOON, 0, None, b"v", None)], ROWS)
    first, second = (open_table(kind, str(tmp_path / "table"), spark) for _ in range(2))
    for expected in (1, 2):
        assert first.offsets() == second.offsets() == ({PLACE: expected - 1} if expected > 1 else {})
        first.append(rows, {PLACE: expected}, {"t": "id"})
        with pytest.raises(CommitLost):
            second.append(rows, {PLACE: expected}, {"t": "id"})
        assert open_table(kind, str(tmp_path / "table"), spark).rows().count() == expected
    assert (second.offsets(), second.topic_ids()) == ({PLACE: 2}, {"t": "id"})


def test_the_second_of_two_jobs_is_told_of_the_first(spark, run, produce, tmp_path):
    topic, folder = unique("busy"), tmp_path / "table"
    produce(topic, [{"value": "v", "timestamp": BASE_MS}])
    words = ("archive", "--topic", topic, "--to", folder)
    with writing(open_table("parquet", str(folder), spark)):
        ended = run(*words)
        assert (ended.code, f"pid {os.getpid()} has been writing to the table" in ended.err) == (6, True), ended.err
        assert len(ended.err.strip().splitlines()) == 1
        assert run(*words, "--wait", "300ms").code == 6
    assert run(*words, "-o", "json").json["records"] == 1


def test_a_topic_that_was_made_anew_is_another_one(spark, run, produce, tmp_path):
    """Also if it has more records by now than the table has of the old one."""
    topic, folder = unique("remade"), tmp_path / "table"
    produce(topic, [{"value": str(n), "timestamp": BASE_MS} for n in range(5)])
    words = ("archive", "--topic", topic, "--to", folder)
    assert run(*words).code == 0
    assert run("delete", topic, "--yes", command=("topics",)).code == 0
    produce(topic, [{"value": str(n), "timestamp": BASE_MS} for n in range(9)])
    ended = run(*words)
    assert (ended.code, f"topic {topic} was deleted and recreated: this read began with topic id" in ended.err) == (
        1,
        True,
    )
    assert run(*words, "--skip-lost", "-o", "json").json["records"] == 9
    assert run(*words, "-o", "json").json["records"] == 0


@pytest.mark.kills
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", FORMATS)
def test_two_jobs_at_once_whose_owner_is_killed_archive_everything_once(
    spark, run, produce, session_broker, tmp_path, kind
):
    topic, folder = unique("at-once"), tmp_path / "table"
    produce(topic, list(days_of_records(1500, seed=4)), partitions=2)
    command = [sys.executable, "-m", "horolog", "pipeline", "archive", "--topic", topic, "--to", str(folder)]
    command += [
        "--step",
        "150",
        "--bootstrap",
        session_broker.address,
        "--quick",
        "--master",
        "local[1]",
        "--format",
        kind,
    ]
    rng = random.Random(int(os.environ.get("HOROLOG_SEED", "1")))

    def start(*more):
        return subprocess.Popen(
            [*command, *more], cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )

    killed, codes = False, []
    for _ in range(4):
        jobs = [start(), start("--wait", "5m")]
        if not killed:
            deadline = time.monotonic() + 120
            while not list(folder.glob("_horolog/lock/*.json")) and time.monotonic() < deadline:
                time.sleep(0.05)
            time.sleep(1 + 4 * rng.random())
            owner = json.loads(max(folder.glob("_horolog/lock/*.json")).read_text())["owner"]["pid"]
            victims = [job for job in jobs if job.pid == owner and job.poll() is None]
            for job in victims:
                os.killpg(job.pid, signal.SIGKILL)
            killed = bool(victims)
        said = [job.communicate()[1].decode() for job in jobs]
        codes += [job.returncode for job in jobs]
        assert {job.returncode for job in jobs} <= {0, 6, -signal.SIGKILL}, said
        if killed and all(job.returncode == 0 for job in jobs[1:]):
            break
    assert killed
    assert run("archive", "--topic", topic, "--to", folder, "--format", kind).code == 0
    assert archived(spark, kind, folder) == consumed(run, topic)


@pytest.mark.kills
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_a_job_that_is_killed_again_and_again_archives_everything_once(spark, run, produce, session_broker, tmp_path):
    topic, folder = unique("killed"), tmp_path / "table"
    produce(topic, list(days_of_records(3000, seed=3)), partitions=2)
    command = [sys.executable, "-m", "horolog", "pipeline", "archive", "--topic", topic, "--to", str(folder)]
    command += ["--step", "150", "--bootstrap", session_broker.address, "--quick", "--master", "local[2]"]
    rng = random.Random(int(os.environ.get("HOROLOG_SEED", "1")))
    kills = 0
    for _ in range(12):
        job = subprocess.Popen(
            command, cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        began = len(list(folder.glob("_horolog/commits/*.json")))
        deadline = time.monotonic() + 240
        while job.poll() is None and len(list(folder.glob("_horolog/commits/*.json"))) == began:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(rng.random() * 1.5)
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            kills += 1
        if job.wait() == 0 or kills == 3:
            break
    assert kills >= 2
    assert run("archive", "--topic", topic, "--to", folder).code == 0
    assert archived(spark, "parquet", folder) == consumed(run, topic)


archive_module = sys.modules[Job.__module__]  # the front has the function


class FakeForm:
    """A form whose rows are decoded."""

    typed = True
    options = ()

    def folders(self, has):
        return has

    def lacking(self, topics, columns):
        return ["price", "name"]


def test_columns_that_stay_empty_are_told():
    told = []
    place = TopicPartition("t", 0)
    job = Job(None, "h:1", ["t"], FakeTable(), form=FakeForm())
    job.tell_first(RowsToAdd(Have({}, {}), {place: (0, 5)}), told.append)
    assert told == ["the table has price, name, but this run has no options for them; they are null in new rows"]


def test_steps_end_when_they_are_told_to_and_broken_rows_are_counted(monkeypatch):
    monkeypatch.setattr(archive_module, "read_step", lambda _, __, step, ___: step)
    place, table, asked = TopicPartition("t", 0), FakeTable(), []
    job = Job(None, "h:1", ["t"], table, step_records=4, form=FakeForm())
    summary = Summary("archive", details={"commits": 0, "files": 0})
    progress = SimpleNamespace(advance=lambda *given: asked.append(given))
    ends = job.add(RowsToAdd(Have({}, {}), {place: (0, 10)}), summary, progress, lambda: len(asked) == 2)
    assert (ends, table.ranges) == ({place: 8}, [(0, 0, 4), (0, 4, 8)])
    assert (summary.details["broken"], summary.details["commits"]) == (0, 2)


@pytest.mark.parametrize(
    ("have", "skip", "expected"), [(None, False, 7), (5, False, 5), (2, True, 3), (2, False, Lost), (11, True, Lost)]
)
def test_where_a_partition_of_offsets_3_to_10_begins(have, skip, expected):
    place = TopicPartition("t", 0)
    if expected is Lost:
        with pytest.raises(Lost, match="the table has t-0 up to"):
            archive_module._start(place, have, 7, 3, 10, skip)
        return
    assert archive_module._start(place, have, 7, 3, 10, skip) == expected


def test_a_command_without_topics_is_refused():
    with pytest.raises(UsageError, match="give at least one --topic"):
        archive_module.run(argparse.Namespace(topic=[]), None)


def test_a_job_that_follows_is_handed_its_table(monkeypatch, tmp_path):
    made, pace = [], object()
    monkeypatch.setattr(archive_module.archive_follow, "pace_of", lambda arguments, until_ms: pace)
    monkeypatch.setattr(archive_module.archive_follow, "run", lambda *given: made.append(given) or 0)
    monkeypatch.setattr(archive_module, "spark_of", lambda arguments: nullcontext("spark"))
    monkeypatch.setattr(archive_module, "open_table", lambda *given: given)

    async def there(arguments, topics):
        assert topics == ["t"]

    monkeypatch.setattr(archive_module, "require_topics", there)
    parser = argparse.ArgumentParser()
    archive_module.add_arguments(parser)
    arguments = parser.parse_args(["--topic", "t", "--to", str(tmp_path), "--step", "7", "--skip-lost"])
    arguments.security = None
    assert archive_module.run(arguments, Console(err=io.StringIO())) == 0
    ((job, given, _, _),) = made
    assert (given, job.table, job.step_records, job.skip_lost) == (
        pace,
        ("parquet", str(tmp_path), "spark", None),
        7,
        True,
    )
