"""A mirror holds every record of its topic once, whatever killed it; groups go on there, lose nothing, and read again what was counted."""

import argparse
import asyncio
import importlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest

from benchmarks import kafka
from horolog.client.admin.admin import Admin
from horolog.client.consuming.consumer import Consumer
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import TopicPartition
from horolog.client.wire.client import Client
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, UsageError
from horolog.pipeline.jobs import mirror_copy, mirror_target
from horolog.pipeline.jobs.mirror import mirror
from horolog.pipeline.jobs.mirror_copy import Copied, CopyPiece, MirrorFailed, Progress
from horolog.pipeline.jobs.mirror_groups import GroupTaken, PartitionMove, Span
from horolog.pipeline.jobs.mirror_target import MirrorRefused
from horolog.pipeline.jobs.topic_rules import Counts, TopicRules, outlook_of
from horolog.protocol.errors import ErrorCode
from tests.pipeline.mirrored_topics import (
    BASE_MS,
    CODECS,
    assert_equal,
    commit,
    committed,
    content,
    feed,
    feed_old_formats,
    made,
    some_records,
    without_offsets,
)
from tests.pipeline.spark_here import Here
from tests.support.names import unique
from tests.support.style import PROJECT

MINUTE_MS = 60_000
DAY_MS = 86_400_000


@pytest.fixture
def other(start_broker):
    """Cluster B."""
    return start_broker(group__initial__rebalance__delay__ms=0)


@pytest.fixture
def mirrored(run, session_broker, other):
    """`mirrored(topic, ...)`: the command from A to B."""

    def run_it(topic, *words, code=0):
        ended = run(
            "mirror", "--from", session_broker.address, "--to", other.address, "--topic", topic, *words, "-o", "json"
        )
        assert ended.code == code, ended
        return ended

    return run_it


# -- copying


def test_a_mirror_has_all_and_goes_on_where_it_ended(spark, mirrored, session_broker, other):
    topic = made(session_broker, unique("mirrored"), segment__bytes=20_000)
    expected = 0
    for number, codec in enumerate(CODECS):
        feed(session_broker, topic, some_records(150, number), codec)
        expected += 150
    feed(session_broker, topic, some_records(20, 8), transactional=True)
    feed(session_broker, topic, some_records(20, 9), abort=True)
    feed_old_formats(session_broker, topic, 1)
    expected += 20 + 2 * 4 * 20
    first = mirrored(topic, "--step", 120).json
    assert (first["records"], first["created"]) == (expected, True)
    assert_equal(session_broker, other, topic)

    assert mirrored(topic).json["records"] == 0
    feed(session_broker, topic, some_records(20, 10), abort=True)
    assert mirrored(topic).json["records"] == 0
    feed(session_broker, topic, some_records(30, 11), "zstd")
    again = mirrored(topic).json
    assert (again["records"], again["created"]) == (30, False)
    assert_equal(session_broker, other, topic)


def test_the_topic_is_made_as_it_is_but_keeps_times(spark, mirrored, session_broker, other):
    topic = made(
        session_broker, unique("stamped"), 2, message__timestamp__type="LogAppendTime", cleanup__policy="compact,delete"
    )
    feed(session_broker, topic, [(n % 2, b"k", b"%d" % n, [], BASE_MS) for n in range(20)])
    looked = mirrored(topic, "--dry-run").json
    assert (looked["sent"], looked["would_create"], looked["records"]) == (False, True, 20)
    assert looked["settings"] == {"retention.ms": "-1", "cleanup.policy": "compact,delete"}
    assert mirrored(topic).json["records"] == 20
    assert_equal(session_broker, other, topic)


def test_since(spark, mirrored, session_broker, other):
    topic = made(session_broker, unique("since"), 2)
    feed(session_broker, topic, [(0, None, b"%d" % n, [], BASE_MS + n * MINUTE_MS) for n in range(10)])
    mirrored(topic, "--since", f"@{BASE_MS + 6 * MINUTE_MS}ms")
    feed(session_broker, topic, [(1, None, b"later", [], BASE_MS)])
    mirrored(topic)
    values = {
        number: [each[2] for each in records] for number, records in without_offsets(content(other, topic)).items()
    }
    assert values == {0: [b"6", b"7", b"8", b"9"], 1: [b"later"]}


def test_what_would_lose_or_repeat_records_is_refused(spark, mirrored, session_broker, other):
    topic = unique("refused")
    mirrored(topic, code=4)
    made(session_broker, topic)
    feed(session_broker, topic, some_records(30))
    mirrored(topic, "--group", unique("nobody"), code=4)
    ended = mirrored(topic, "--to", session_broker.address, code=1)
    assert "cannot be mirrored to itself" in ended.err

    few = made(session_broker, unique("few"), 3)
    made(other, few, 2)
    assert "has 3 partitions, and 2" in mirrored(few, code=1).err

    arrival = made(session_broker, unique("arrival"), 1)
    feed(session_broker, arrival, some_records(5, partitions=1))
    made(other, arrival, 1, message__timestamp__type="LogAppendTime")
    assert mirrored(arrival, "--dry-run", code=3).json["overwritten_times"]
    assert "all times would be lost" in mirrored(arrival, code=1).err
    assert content(other, arrival) == {0: []}
    assert mirrored(arrival, "--force").json["records"] == 5

    short = made(session_broker, unique("short"), 1)
    feed(session_broker, short, [(0, None, b"old", [], BASE_MS), (0, None, b"new", [], time.time_ns() // 1_000_000)])
    made(other, short, 1, retention__ms=3_600_000)
    assert "the topic's retention would soon delete 1 record" in mirrored(short, code=1).err
    bounded = made(session_broker, unique("bounded"), 1)
    feed(session_broker, bounded, [(0, None, b"old", [], BASE_MS)])
    made(other, bounded, 1, message__timestamp__before__max__ms=3_600_000)
    assert "would refuse 1 record" in mirrored(bounded, "--force", code=1).err
    assert content(other, bounded) == {0: []}

    filled = made(session_broker, unique("filled"), 1)
    feed(session_broker, filled, some_records(5, partitions=1))
    made(other, filled, 1)
    feed(other, filled, some_records(2, partitions=1))
    assert "no mirror has noted" in mirrored(filled, code=1).err
    assert mirrored(filled, "--force").json["records"] == 5
    assert mirrored(filled).json["records"] == 0


def test_a_topic_that_was_made_anew_is_refused_and_what_came_between_two_runs_is_copied(
    spark, mirrored, run, session_broker, other
):
    """A partition that was added is copied from its start, whenever the next run says that `since` was."""
    topic = made(session_broker, unique("remade"), 1)
    feed(session_broker, topic, [(0, None, b"v", [], BASE_MS)])
    assert mirrored(topic, "--since", f"@{BASE_MS}ms").json["records"] == 1
    for broker in (session_broker, other):
        administer(broker, lambda admin: admin.create_partitions({topic: 2}))
    feed(session_broker, topic, [(1, None, b"between", [], BASE_MS)])
    assert mirrored(topic, "--since", f"@{BASE_MS + MINUTE_MS}ms").json["records"] == 1

    assert run("delete", topic, "--yes", command=("topics",)).code == 0
    made(session_broker, topic, 2)
    feed(session_broker, topic, some_records(30, partitions=2))
    assert "deleted and recreated" in mirrored(topic, code=1).err
    assert mirrored(topic, "--force").json["records"] == 30


def test_a_target_that_was_made_anew_gets_everything(spark, mirrored, session_broker, other):
    topic = made(session_broker, unique("remade"), 2)
    feed(session_broker, topic, some_records(30, partitions=2))
    for _ in range(2):
        assert mirrored(topic).json["records"] == 30
        assert mirrored(topic).json["records"] == 0
        administer(other, lambda admin: admin.delete_topics([topic]))


def administer(broker, ask):
    async def asked():
        async with Admin(broker.address) as admin:
            await ask(admin)

    asyncio.run(asked())


def test_what_retention_took_first_is_refused(spark, mirrored, run, session_broker, other):
    topic = made(session_broker, unique("trimmed"), 1)
    feed(session_broker, topic, some_records(10, partitions=1))
    mirrored(topic)
    feed(session_broker, topic, some_records(10, partitions=1))
    assert run("trim", topic, "--offset", "15", "--yes", command=("topics",)).code == 0
    assert "5 offsets are gone" in mirrored(topic, code=1).err
    assert mirrored(topic, "--force").json["records"] == 5


@pytest.mark.kills
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_mirror_that_is_killed_again_and_again_has_everything_once(spark, mirrored, session_broker, other):
    topic = made(session_broker, unique("killed"))
    feed(session_broker, topic, some_records(4000, 5))
    command = [sys.executable, "-m", "horolog", "pipeline", "mirror", "--from", session_broker.address]
    command += [
        "--to",
        other.address,
        "--topic",
        topic,
        "--step",
        "100",
        "--quick",
        "--master",
        "local[2]",
        "--timeout",
        "30s",
    ]
    rng = random.Random(int(os.environ.get("HOROLOG_SEED", "1")))
    made(other, topic)
    group = f"horolog-mirror-{cluster_id(session_broker)}"
    kills = 0
    for _ in range(8):
        job = subprocess.Popen(
            command, cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        began = committed(other, group)
        deadline = time.monotonic() + 240
        while job.poll() is None and committed(other, group) == began:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(rng.random())
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            kills += 1
        if job.wait() == 0 or kills == 3:
            break
    assert kills >= 2
    mirrored(topic)
    assert_equal(session_broker, other, topic)


def cluster_id(broker):
    async def read():
        async with Client(broker.address) as client:
            return (await client.metadata([])).cluster_id

    return asyncio.run(read())


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_mirror_that_follows_takes_records_and_groups_along_until_it_is_interrupted(session_broker, other, tmp_path):
    topic, group = made(session_broker, unique("followed"), 2), unique("group")
    place = TopicPartition(topic, 0)
    now_ms = time.time_ns() // 1_000_000
    feed(session_broker, topic, [(n % 2, None, b"%d" % n, [], now_ms) for n in range(20)])
    commit(session_broker, group, {place: 4})
    command = [sys.executable, "-m", "horolog", "pipeline", "mirror", "--from", session_broker.address]
    command += ["--to", other.address, "--topic", topic, "--group", group]
    command += ["--follow", "--quick", "--master", "local[1]", "-o", "json"]
    said = tmp_path / "said"
    with said.open("wb") as err:
        job = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=err, start_new_session=True)
    try:
        wait_until(job, lambda: committed(other, group) == {place: 0})
        feed(session_broker, topic, [(n % 2, None, b"%d" % n, [], now_ms) for n in range(20, 60)])
        wait_until(job, lambda: ": 60 records" in said.read_text())
        other.kill()
        feed(session_broker, topic, [(n % 2, None, b"%d" % n, [], now_ms) for n in range(60, 70)])
        wait_until(job, lambda: "retrying" in said.read_text())
        other.start()
        wait_until(job, lambda: ": 70 records" in said.read_text())
        assert_equal(session_broker, other, topic)
        commit(other, group, {place: 3})  # the group reads on B now
        os.kill(job.pid, signal.SIGINT)
        out, _ = job.communicate(timeout=60)
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
    assert job.returncode == 0, said.read_text()
    summary = json.loads(out)
    assert summary["records"] == 70
    assert summary["groups"][group][0]["duplicates"] == 4
    assert "s behind" in said.read_text()
    assert ("its offsets there are kept" in said.read_text(), committed(other, group)) == (True, {place: 3})


def wait_until(job, holds):
    deadline = time.monotonic() + 120
    while not holds():
        assert job.poll() is None, job.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.2)


# -- real Kafkas


@pytest.mark.kafka_jars
@pytest.mark.java
@pytest.mark.timeout(400)
@pytest.mark.parametrize("release", ["0.10.2.2", "3.9.2"])
def test_a_topic_and_a_group_come_from_a_real_kafka(spark, mirrored, other, release):
    try:
        kafka.libs(release)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {release}: {error}")
    topic, group = unique("real"), unique("group")
    old = release.startswith("0.10")
    with kafka.running(release) as node:
        made(node, topic, 2)
        if old:  # it cannot tell its topics' settings
            made(other, topic, 2)
        for number, codec in enumerate(CODECS[: 4 if old else 5]):
            records = some_records(60, number, 2)
            feed(node, topic, [(*each[:3], [] if old else each[3], max(0, each[4])) for each in records], codec)
        if not old:
            feed(node, topic, some_records(30, 8, 2), abort=True)
            feed(node, topic, some_records(30, 9, 2), transactional=True)
        everything = content(node, topic)
        unread_at = everything[0][100][0]
        commit(node, group, {TopicPartition(topic, 0): unread_at})
        ended = mirrored(topic, "--from", node.address, "--group", group, "--resume-by-time", "1m")
        assert ended.json["created"] is not old
        assert_equal(node, other, topic)
        assert mirrored(topic, "--from", node.address).json["records"] == 0
        (row,) = ended.json["groups"][group]
        goes_on = committed(other, group)[TopicPartition(topic, 0)]
        coming = [each[0] for each in content(other, topic)[0] if each[0] >= goes_on]
        assert len(coming) == len(everything[0]) - 100 + row["duplicates"]
        if not old:
            back = unique("back")
            made(other, back, 2)
            feed(other, back, some_records(100, 7, 2), "lz4")
            assert mirrored(back, "--from", other.address, "--to", node.address).json["records"] == 100
            assert_equal(other, node, back)


# -- groups


def test_a_group_goes_on_loses_nothing_and_reads_again_what_was_counted(spark, run, mirrored, session_broker, other):
    topic, group = made(session_broker, unique("moved"), 4), unique("group")
    rng = random.Random(4)
    places = [TopicPartition(topic, number) for number in range(4)]
    for part in range(6):  # a record each ten seconds, a minute out of order; some are of aborted transactions
        some = [
            (number, None, b"%d-%d" % (part, n), [], BASE_MS + (part * 50 + n) * 10_000 - rng.randrange(60_000))
            for n in range(50)
            for number in range(3)
        ]
        feed(session_broker, topic, some, abort=part == 2)
    feed(session_broker, topic, [(3, None, b"%d" % n, [], -1) for n in range(9)])
    everything = content(session_broker, topic)
    at = {places[0]: 233, places[1]: everything[1][-1][0] + 1, places[2]: 0, places[3]: 4}
    commit(session_broker, group, at)
    ended = mirrored(topic, "--group", group, "--resume-by-time", "5m")
    table = {each["partition"]: each for each in ended.json["groups"][group]}
    there = content(other, topic)
    goes_on = committed(other, group)
    for place in places:
        number = place.partition
        unread = [record[3] for record in everything[number] if record[0] >= at[place]]
        coming = [record[3] for record in there[number] if record[0] >= goes_on[place]]
        assert coming[len(coming) - len(unread) :] == unread
        assert table[number]["duplicates"] == len(coming) - len(unread)
        assert (table[number]["offset_from"], table[number]["offset_to"]) == (at[place], goes_on[place])
    assert 25 <= table[0]["duplicates"] <= 37
    assert table[0]["timestamp"] - table[0]["duplicates_since"] <= 6 * MINUTE_MS
    assert 25 <= table[1]["duplicates"] <= 37
    assert (table[2]["duplicates"], table[3]["duplicates"]) == (0, 4)
    assert "none of the records that it has read has a timestamp" in ended.err
    words = ("--from", session_broker.address, "--to", other.address, "--topic", topic, "--group", group)
    text = run("mirror", *words, "--resume-by-time", "5m")
    assert text.code == 0
    assert all(str(each["offset_to"]) in text.out for each in table.values())


def test_a_group_with_members_is_not_moved_over_their_heads(spark, mirrored, session_broker, other):
    topic, group = made(session_broker, unique("busy"), 1), unique("group")
    feed(session_broker, topic, some_records(10, partitions=1))
    commit(session_broker, group, {TopicPartition(topic, 0): 5})

    with member_of(session_broker, topic, group):
        assert "still has members on A" in mirrored(topic, "--group", group).err
    with member_of(other, topic, group):
        assert "has members on cluster B" in mirrored(topic, "--group", group, code=1).err


@contextmanager
def member_of(broker, topic, group):
    """A member in a thread of its own; Spark's session belongs to the test's."""
    joined, over = threading.Event(), threading.Event()

    async def stay():
        async with Consumer(broker.address, group=group, start="earliest") as consumer:
            await consumer.subscribe([topic])
            while not over.is_set():
                await consumer.poll(100)
                if consumer.assignment:
                    joined.set()

    thread = threading.Thread(target=asyncio.run, args=(stay(),))
    thread.start()
    try:
        assert joined.wait(30)
        yield
    finally:
        over.set()
        thread.join(30)


def test_the_function_refuses_and_copies(spark, session_broker, other):
    topic = made(session_broker, unique("function"), 2)
    feed(session_broker, topic, some_records(40, partitions=2))
    with pytest.raises(MirrorRefused):
        mirror(spark, session_broker.address, session_broker.address, topic)
    assert mirror(spark, session_broker.address, other.address, topic).records == 40
    assert_equal(session_broker, other, topic)


# -- pure

PLACE = TopicPartition("t", 0)
mirror_job = importlib.import_module("horolog.pipeline.jobs.mirror")  # the front has the function


def test_a_round_is_a_task_for_each_piece(monkeypatch):
    monkeypatch.setattr(mirror_copy, "copy", lambda link, piece: Copied(piece.end - piece.start, 10, len(link)))
    pieces = [CopyPiece(PLACE, 0, 5), CopyPiece(PLACE, 5, 7)]
    assert mirror_job.run_round(Here(), "link", pieces) == [Copied(5, 10, 4), Copied(2, 10, 4)]


@pytest.mark.parametrize(
    ("losses", "force", "said"),
    [
        (None, False, None),
        ({}, False, None),
        ({"expired": 1}, True, None),
        ({"expired": 1}, False, "change the topic's settings, or use --force"),
        ({"too_late": 1}, True, "change the topic's bounds"),
    ],
)
def test_what_b_refuses_cannot_be_forced(losses, force, said):
    outlook = None if losses is None else outlook_of(Counts(1, **losses), some_rules())
    if said is None:
        mirror_job.refuse_losses(outlook, force=force)
        return
    with pytest.raises(MirrorRefused, match=said):
        mirror_job.refuse_losses(outlook, force=force)


def some_rules(**more):
    return TopicRules(**{"retention_ms": -1, "retention_bytes": -1, "before_max_ms": DAY_MS, "after_max_ms": DAY_MS,
                         "log_append_time": False, "deletes": True, "partitions": 1, **more})  # fmt: skip


class Mirrored(mirror_job._Run):
    """The command, which says what it does with the clusters in `did`."""

    def __init__(self, monkeypatch, *words):
        parser = argparse.ArgumentParser()
        mirror_job.add_arguments(parser)
        arguments = parser.parse_args(["--from", "a:1", "--to", "b:1", "-t", "t", "--resume-by-time", "1m", *words])
        self.out, self.err, self.did = io.StringIO(), io.StringIO(), []
        console = Console(out=self.out, err=self.err, environ={"HOROLOG_TZ": "UTC"}, now_ms=lambda: BASE_MS + 500)
        clusters = mirror_job.Clusters("a:1", "b:1", "t")
        super().__init__(clusters, None, arguments, console)
        self.prepared = mirror_job.Prepared({PLACE: (0, 5)}, True, {"retention.ms": "-1"}, some_rules(), ["g"])
        self.moves, self.coming = [], []
        monkeypatch.setattr(mirror_job, "prepare", lambda *_, **named: self.did.append(named) or self.prepared)
        monkeypatch.setattr(mirror_job, "spark_of", lambda _: nullcontext())
        monkeypatch.setattr(mirror_job, "look", lambda *_, whatever: None)
        monkeypatch.setattr(mirror_job, "settle", lambda *_, **__: self.did.append("settled") or {PLACE: (0, 5)})
        monkeypatch.setattr(mirror_job, "run_round", lambda *_: self.did.append("copied") or [Copied(5, 100, BASE_MS)])
        monkeypatch.setattr(mirror_job, "news", lambda *_, **__: happen(self.coming))
        monkeypatch.setattr(mirror_job, "move", lambda *_: happen(self.moves))
        monkeypatch.setattr(mirror_job, "time", SimpleNamespace(monotonic=time.monotonic, sleep=self.did.append))
        clusters.known = {PLACE: Progress(0, 0)}


def happen(script):
    """The next of these: the error is raised, the value is returned."""
    coming = script.pop(0)
    if isinstance(coming, BaseException):
        raise coming
    return coming


NOTHING_NEW = {PLACE: (5, 5)}
PASSING = KafkaError(ErrorCode.NETWORK_EXCEPTION, "gone")


def test_a_mirror_that_follows_waits_for_news_and_longer_each_time_that_a_cluster_is_gone(monkeypatch):
    """After a fault it begins with what was noted; Ctrl-C takes back what was under way, and the groups are moved at the end."""
    pytest.importorskip("pyspark")
    run = Mirrored(monkeypatch, "--follow")
    run.coming = [NOTHING_NEW, PASSING, PASSING, NOTHING_NEW, KeyboardInterrupt()]
    assert run.run() == 0
    copied = ["settled", "copied"]
    assert run.did == [{"create": True, "force": False}, *copied, 1.0, 1.0, *copied, 2.0, *copied, 1.0, "settled"]
    said = run.err.getvalue()
    assert "topic t was created on b:1: 1 partition, retention.ms=-1" in said
    assert "group g still has members on A" in said
    assert said.count("retrying in") == 2
    assert "5 records, 0.0 MB, " in said
    assert "0.5 s behind" in said
    assert "stopped; unfinished transactions are aborted" in said
    assert "mirror: 15 records" in run.out.getvalue()


def test_a_fault_that_does_not_pass_ends_a_mirror_that_follows(monkeypatch):
    pytest.importorskip("pyspark")
    run = Mirrored(monkeypatch, "--follow")
    run.coming = [KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)]
    with pytest.raises(KafkaError):
        run.run()


def moved(**more):
    return PartitionMove(**{"partition": PLACE, "offset_from": 5, "offset_to": 3, "time_ms": BASE_MS,
                    "again": Span(2, BASE_MS, None), "gone": 0, "not_mirrored": 0, **more})  # fmt: skip


def test_a_group_is_moved_until_it_has_begun_to_commit_on_b(monkeypatch):
    pytest.importorskip("pyspark")
    run = Mirrored(monkeypatch, "--follow", "-g", "g")
    monkeypatch.setattr(mirror_job, "GROUPS_EVERY_SECONDS", 0.0)
    run.moves = [[moved(gone=1)], GroupTaken("group g commits on B: its offsets there are kept")]
    run.coming = [NOTHING_NEW, NOTHING_NEW, KeyboardInterrupt()]
    assert run.run() == 0
    said, table = run.err.getvalue(), run.out.getvalue().splitlines()
    assert "its offsets there are kept" in said
    assert "group g, t-0: cluster A no longer had 1 unread offset" in said
    assert table[-1].split()[:5] == ["g", "0", "5", "3", "2"]
    taken = Mirrored(monkeypatch, "-g", "g")
    taken.moves = [GroupTaken("group g has committed on cluster B")]
    with pytest.raises(GroupTaken):
        taken.run()


def test_what_a_group_loses_is_a_warning():
    console = Console(err=io.StringIO())
    mirror_job._warn("g", moved(not_mirrored=4, time_ms=None), console)
    said = console.err.getvalue()
    assert "cluster B lacks 4 unread records from before --since" in said
    assert "none of the records that it has read has a timestamp" in said


@pytest.mark.parametrize(("expired", "code"), [(0, 0), (2, 3)])
@pytest.mark.parametrize("as_json", [False, True])
def test_a_dry_run_says_what_would_be_made_and_lost(monkeypatch, expired, code, as_json):
    run = Mirrored(monkeypatch, "--dry-run")
    run._console.as_json = as_json
    outlook = outlook_of(Counts(5, expired=expired), some_rules())
    monkeypatch.setattr(mirror_job, "look", lambda *_, whatever: outlook if whatever else None)
    assert run.run() == code
    assert run.did == [{"create": False, "force": False}]
    said = run.err.getvalue()
    assert "topic t would be created on b:1" in said
    assert "nothing was sent (--dry-run)" in said
    if as_json:
        found = json.loads(run.out.getvalue())
        assert (found["would_create"], found["offsets"], found["expired"]) == (True, {"0": [0, 5]}, expired)


def test_what_would_be_lost_is_a_warning_if_it_is_forced(monkeypatch):
    run = Mirrored(monkeypatch, "--force")
    monkeypatch.setattr(mirror_job, "look", lambda *_, whatever: outlook_of(Counts(5, expired=2), some_rules()))
    assert run.run() == 0
    assert "the topic's retention would soon delete 2 records" in run.err.getvalue()


def settled_with(monkeypatch, starts, since=None):
    """`news` of a topic with these partitions, each of which goes on from the offset that it is known for."""
    clusters = mirror_job.Clusters("a:1", "b:1", "t")
    clusters.known = {PLACE: Progress(5, 0)}
    bounds = {TopicPartition("t", number): SimpleNamespace(last=9) for number in starts}
    monkeypatch.setattr(mirror_job.Clusters, "ask", lambda *_: bounds)
    monkeypatch.setattr(mirror_job, "settle", lambda *_, **__: "settled")
    monkeypatch.setattr(mirror_target, "go_on", lambda place, *_, **__: Progress(starts[place.partition], 0))
    return mirror_job.news(clusters, force=False)


def test_what_is_new_is_copied_and_what_was_not_noted_is_settled_first(monkeypatch):
    assert settled_with(monkeypatch, {0: 5}) == {PLACE: (5, 9)}
    assert settled_with(monkeypatch, {0: 6}) == "settled"
    assert settled_with(monkeypatch, {0: 5, 1: 0}) == "settled"


@pytest.mark.parametrize(
    ("error", "raised", "said"),
    [
        (ValueError("'b' is not an address"), UsageError, "is not an address"),
        (PASSING, CommandError, "gone"),
        (MirrorFailed("t-0: B refuses it"), CommandError, "t-0: B refuses it"),
    ],
)
def test_what_ends_the_command_is_one_sentence(monkeypatch, error, raised, said):
    run = Mirrored(monkeypatch, "--to-config", "/dev/null")
    run._arguments.security = None

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(mirror_job, "prepare", fail)
    with pytest.raises(raised, match=said):
        mirror_job.run(run._arguments, run._console)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--follow", "--dry-run"), "use either --dry-run or --follow"),
        (("--since", "2026-01-01..2026-01-02"), "a range has no meaning"),
    ],
)
def test_words_that_exclude_each_other_are_refused(monkeypatch, words, said):
    run = Mirrored(monkeypatch, *words)
    with pytest.raises(UsageError, match=said):
        mirror_job.run(run._arguments, run._console)
