"""What was archived goes to a topic again with the times that it had, and what would be lost is said before anything is sent."""

import asyncio
import importlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, nullcontext
from types import SimpleNamespace

import pytest

from horolog import pipeline
from horolog.client.producing.producer import Producer
from horolog.client.values.types import TopicPartition
from horolog.pipeline.jobs import Settings, merging, replay
from horolog.pipeline.jobs import replayed as sources
from horolog.pipeline.jobs.merging import Times
from horolog.pipeline.jobs.replay import Range, prepare
from horolog.pipeline.jobs.topic_rules import rules_at
from horolog.pipeline.stores.object_stores import Place
from horolog.pipeline.stores.store import files_of
from horolog.pipeline.tables import parquet
from horolog.pipeline.tables.table import FORMATS, TableError
from tests.pipeline.reading.test_offline import log_of
from tests.support.names import unique
from tests.support.style import PROJECT

DAY_MS = 86_400_000
NOW_MS = time.time_ns() // 1_000_000


def some_records(count, partitions=1):
    rng = random.Random(5)
    for number in range(count):
        yield {
            "key": f"k{number}",
            "value": rng.choice([None, "", f"v{number}"]),
            "timestamp": NOW_MS - 30 * DAY_MS + rng.randrange(5 * DAY_MS),
            "headers": [{"key": "n", "value": str(number)}] * rng.randrange(2),
            "partition": rng.randrange(partitions),
        }


def consumed(run, topic):
    ended = run(topic, "-o", "json", command=("consume",))
    found = [json.loads(line) for line in ended.out.splitlines()]
    for record in found:
        del record["topic"]
    return sorted(found, key=lambda record: (record["partition"], record["offset"]))


@pytest.mark.parametrize("kind", FORMATS)
def test_an_archive_goes_back_as_it_was(spark, run, produce, tmp_path, kind):
    topic, again, folder = unique("original"), unique("again"), tmp_path / "table"
    produce(topic, list(some_records(60, 3)), partitions=3)
    produce(again, [], partitions=3)
    assert run("archive", "--topic", topic, "--to", folder, "--format", kind, "--step", "25").code == 0
    ended = run("replay", "--from", folder, "--topic", again, "-o", "json")
    assert (ended.code, ended.json["records"], ended.json["partitions_kept"]) == (0, 60, True)
    assert consumed(run, again) == consumed(run, topic)


def test_a_data_folder_goes_back_without_its_broker(spark, run, produce, session_broker):
    topic, again = unique("files"), unique("again")
    produce(topic, list(some_records(40, 2)), partitions=2)
    produce(again, [], partitions=2)
    ended = run("replay", "--from", session_broker.data, "--from-topic", topic, "--topic", again, "-o", "json")
    assert (ended.code, ended.json["records"]) == (0, 40)
    assert consumed(run, again) == consumed(run, topic)


@pytest.mark.parametrize("way", [(), ("--rate", 1000)], ids=["in tasks", "at a rate"])
def test_records_without_a_time_stay_without_one_and_have_no_age(spark, run, produce, session_broker, way):
    """Retention does not take them for their age, and no bound on times refuses them."""
    topic, again = unique("untimed"), unique("again")
    produce(topic, [])
    send_untimed(session_broker, topic, [-1, NOW_MS - 1000, -1])
    bounds = ("retention.ms=3600000", "message.timestamp.before.max.ms=3600000")
    produce(again, [], *bounds)
    ended = run("replay", "--from", session_broker.data, "--from-topic", topic, "--topic", again, "-o", "json", *way)
    assert (ended.code, ended.json["records"]) == (0, 3), ended
    assert [record["timestamp"] for record in consumed(run, again)] == [None, NOW_MS - 1000, None]


def send_untimed(broker, topic, times):
    async def send():
        async with Producer(broker.address) as producer:
            for time_ms in times:
                await producer.send(topic, b"v", timestamp_ms=time_ms, partition=0)

    asyncio.run(send())


def test_a_range_at_a_rate(spark, run, produce, tmp_path):
    topic, again, folder = unique("original"), unique("again"), tmp_path / "table"
    records = [{"value": str(n), "timestamp": NOW_MS - n * DAY_MS} for n in range(10, 0, -1)]
    produce(topic, records)
    produce(again, [])
    assert run("archive", "--topic", topic, "--to", folder).code == 0
    words = ("replay", "--from", folder, "--topic", again, "--since", f"@{records[5]['timestamp']}ms", "--rate", "4")
    ended = run(*words, "-o", "json")
    assert (ended.code, ended.json["records"]) == (0, 5)
    assert ended.json["seconds"] >= 0.9
    assert [record["timestamp"] for record in consumed(run, again)] == [each["timestamp"] for each in records[5:]]


def test_what_would_be_lost_is_said_and_not_sent(spark, run, produce, tmp_path):
    topic, folder = unique("original"), tmp_path / "table"
    produce(topic, [{"value": str(n), "timestamp": NOW_MS - n * DAY_MS} for n in range(10)])
    assert run("archive", "--topic", topic, "--to", folder).code == 0

    short = unique("short")
    produce(short, [], f"retention.ms={5 * DAY_MS}", f"message.timestamp.before.max.ms={7 * DAY_MS}")
    looked = run("replay", "--from", folder, "--topic", short, "--dry-run", "-o", "json")
    assert (looked.code, looked.json["sent"], looked.json["records"]) == (3, False, 10)
    assert (looked.json["expired"], looked.json["too_early"], looked.json["too_late"]) == (5, 3, 0)
    refused = run("replay", "--from", folder, "--topic", short)
    assert (refused.code, "nothing was sent" in refused.err, consumed(run, short)) == (1, True, [])
    assert "the topic's retention would soon delete 5 records" in refused.err

    arrival = unique("arrival")
    produce(arrival, [], "message.timestamp.type=LogAppendTime")
    looked = run("replay", "--from", folder, "--topic", arrival, "--dry-run")
    assert (looked.code, "all times would be lost" in looked.err) == (3, True)
    assert run("replay", "--from", folder, "--topic", arrival, "--force").code == 0
    assert len(consumed(run, arrival)) == 10

    sound = unique("sound")
    produce(sound, [])
    looked = run("replay", "--from", folder, "--topic", sound, "--dry-run")
    assert (looked.code, consumed(run, sound)) == (0, [])


def test_what_cannot_be_replayed_is_said(spark, run, produce, tmp_path):
    topic = unique("target")
    produce(topic, [])
    for folder in (tmp_path / "missing", tmp_path):
        assert run("replay", "--from", folder, "--topic", topic).code == 1
    two = tmp_path / "two"
    for name in (unique("a"), unique("b")):
        produce(name, [{"value": "v", "timestamp": NOW_MS}])
        assert run("archive", "--topic", name, "--to", two).code == 0
    ended = run("replay", "--from", two, "--topic", topic)
    assert (ended.code, "choose one with --from-topic" in ended.err) == (2, True)
    assert run("replay", "--from", two, "--from-topic", "none", "--topic", topic).code == 4


def test_segment_files_without_a_record_to_send_are_an_error(spark, run, produce, session_broker):
    """A range that has none, a topic that is not there, and the topic itself, which has them all."""
    topic, again = unique("files"), unique("again")
    produce(topic, [{"value": "v", "timestamp": NOW_MS - DAY_MS}])
    produce(again, [])
    words = ("replay", "--from", session_broker.data, "--from-topic", topic, "--topic", again)
    for more in ((), ("--dry-run",), ("--rate", "10")):
        ended = run(*words, "--until", f"@{NOW_MS - 2 * DAY_MS}ms", *more)
        assert (ended.code, "has no records in that range" in ended.err) == (4, True), ended
    ended = run("replay", "--from", session_broker.data, "--from-topic", "misspelt", "--topic", again)
    assert (ended.code, "has no misspelt" in ended.err) == (2, True)
    ended = run(*words[:-1], topic)
    assert (ended.code, "each record would be there twice" in ended.err) == (1, True)
    assert run(*words[:-1], topic, "--force", "-o", "json").json["records"] == 1
    assert consumed(run, again) == []


def test_what_is_gone_before_it_was_sent_is_an_error_until_it_is_accepted(spark, run, produce, session_broker):
    topic, again = unique("files"), unique("again")
    records = [{"value": str(n), "timestamp": NOW_MS - DAY_MS} for n in range(10)]
    produce(topic, records)
    produce(again, [])
    words = ("replay", "--from", session_broker.data, "--from-topic", topic, "--topic", again, "-o", "json")
    assert run(*words).json["records"] == 10
    produce(topic, records)
    assert run("trim", topic, "--offset", "15", "--yes", command=("topics",)).code == 0
    ended = run(*words)
    assert (ended.code, "5 offsets are gone; use --force to continue with the rest" in ended.err) == (1, True), ended
    assert run(*words, "--force").json["records"] == 5


LARGE = "v" * 3000


@pytest.fixture
def replayed(run, produce, session_broker, monkeypatch):
    """A topic whose records are a minute apart; it is sent by this process, without Spark, up to a value that is `LARGE`."""
    monkeypatch.setattr(sys.modules[prepare.__module__], "spark_of", lambda _: nullcontext())
    topic, again = unique("files"), unique("again")
    begin = NOW_MS - DAY_MS

    class Replayed:
        def add(self, values, minute=0):
            produce(topic, [{"value": v, "timestamp": begin + (minute + n) * 60_000} for n, v in enumerate(values)])

        def trim(self, offset):
            assert run("trim", topic, "--offset", offset, "--yes", command=("topics",)).code == 0

        def send(self, *words, until=None, since=None):
            asked = [
                word
                for name, minute in (("--since", since), ("--until", until))
                if minute is not None
                for word in (name, f"@{begin + minute * 60_000}ms")
            ]
            from_files = ("--from", session_broker.data, "--from-topic", topic, "--topic", again, "--step", "2")
            words = (*words, "--rate", "10000")
            return run("replay", *from_files, *asked, "-o", "json", *words)

        def accept_large_ones(self):
            assert run("set", "topic", again, "max.message.bytes=1000000", command=("configs",)).code == 0

    produce(again, [], "max.message.bytes=2000")
    return Replayed()


@pytest.mark.parametrize("way", [(), ("--exactly-once",)], ids=["at least once", "exactly once"])
def test_what_is_gone_of_a_range_with_an_end_is_an_error_until_it_is_accepted(replayed, way):
    """A run ended in the middle, and retention was quicker than the next one; once all is sent, nothing more can be lost."""
    replayed.add(["v"] * 4 + [LARGE] + ["v"] * 5 + ["behind the end"] * 3)
    assert replayed.send(*way, until=10).code == 1
    replayed.accept_large_ones()
    replayed.trim(6)
    for more in ((), ("--dry-run",)):
        ended = replayed.send(*way, *more, until=10)
        assert (
            ended.code,
            "up to 4, but begins at 6 now: 2 offsets are gone; use --force to continue" in ended.err,
        ) == (
            1,
            True,
        )
    ended = replayed.send(*way, "--force", until=10)
    assert (ended.code, ended.json["records"], ended.json["gone"]) == (0, 4, 2), ended
    assert "2 offsets are gone" in ended.err
    for trimmed in (12, 13):
        replayed.trim(trimmed)
        ended = replayed.send(*way, until=10)
        assert (ended.code, ended.json["records"], ended.json["sent_before"]) == (0, 0, 8), ended
        assert "gone" not in ended.json
        assert "begins at" not in ended.err


def test_what_a_run_left_before_it_sent_anything_may_be_gone_too(replayed):
    replayed.add([LARGE, "v", "v"])
    assert replayed.send().code == 1
    replayed.trim(1)
    ended = replayed.send()
    assert (ended.code, "1 offsets are gone" in ended.err) == (1, True), ended


def test_a_range_that_is_not_over_can_lose_what_has_come_since(replayed):
    replayed.add(["v"] * 3)
    assert replayed.send(until=10).json["records"] == 3
    replayed.add(["v"] * 4, minute=3)
    replayed.trim(5)
    ended = replayed.send(until=10)
    assert (ended.code, "2 offsets are gone" in ended.err) == (1, True), ended
    ended = replayed.send("--force", until=10)
    assert (ended.json["records"], ended.json["gone"]) == (2, 2)


def test_what_came_late_to_a_range_that_was_over_and_is_gone_is_told(replayed):
    replayed.add(["v"] * 3 + ["behind the end"], minute=8)
    assert replayed.send(until=11).json["records"] == 3
    replayed.add(["late"] * 3)
    replayed.trim(6)
    ended = replayed.send(until=11)
    assert (ended.code, ended.json["records"], ended.json["sent_before"]) == (0, 1, 3), ended
    assert "arrived late" in ended.err


def test_what_was_not_wanted_may_go(replayed):
    """The last records of the topic are before `since`, and retention takes them all: nothing of the range is lost."""
    replayed.add(["v"] * 2, minute=10)
    replayed.add(["early"] * 3)
    assert replayed.send(since=5).json["records"] == 2
    replayed.trim(5)
    replayed.add(["v"], minute=20)
    ended = replayed.send(since=5)
    assert (ended.code, ended.json["records"], ended.json["sent_before"]) == (0, 1, 2), ended


def two_a_day(days, large=None):
    """Records of the last days before today, two of each."""
    midnight = NOW_MS // DAY_MS * DAY_MS
    for n in range(2 * days):
        yield {"value": LARGE if n == large else f"v{n}", "timestamp": midnight - (days - n // 2) * DAY_MS + n * 60_000}


@pytest.mark.parametrize("kind", FORMATS)
def test_what_expire_took_before_it_was_sent_is_an_error_until_it_is_accepted(spark, run, produce, tmp_path, kind):
    topic, again, folder = unique("original"), unique("again"), tmp_path / "table"
    produce(topic, list(two_a_day(5, large=4)))
    produce(again, [], "max.message.bytes=2000")
    assert run("archive", "--topic", topic, "--to", folder, "--format", kind).code == 0
    words = ("replay", "--from", folder, "--topic", again, "--step", "3", "--rate", "10000", "-o", "json")
    assert run(*words).code == 1  # three are noted as sent, of the second date one
    assert "no longer" not in run(*words, "--dry-run").err
    expire = ("expire", "--to", folder, "--format", kind, "--older-than")
    assert run(*expire, "2d").code == 0
    for more in ((), ("--dry-run",)):
        ended = run(*words, *more)
        said = (
            "sent up to 3, and 3 records after that are no longer in the table; use --force to continue with the rest"
        )
        assert (ended.code, said in ended.err) == (1, True), ended
    ended = run(*words, "--force")
    assert (ended.code, ended.json["records"], ended.json["gone"]) == (0, 4, 3), ended
    for older in ("1d", "0d"):  # what was sent may go
        assert run(*expire, older).code == 0
        ended = run(*words)
        assert (ended.code, ended.json["records"], "gone" in ended.json) == (0, 0, False), ended
    produce(topic, [{"value": "new", "timestamp": NOW_MS}])
    assert run("archive", "--topic", topic, "--to", folder, "--format", kind).code == 0
    assert run(*words).json["records"] == 1


def test_a_table_of_which_expire_took_all_before_it_was_sent_is_not_done(spark, run, produce, tmp_path):
    topic, again, folder = unique("original"), unique("again"), tmp_path / "table"
    produce(topic, [{**record, "partition": 1} for record in two_a_day(2, large=0)], partitions=2)
    produce(again, [], "max.message.bytes=2000", partitions=2)
    assert run("archive", "--topic", topic, "--to", folder).code == 0
    words = ("replay", "--from", folder, "--topic", again, "--rate", "10000", "-o", "json")
    assert run(*words).code == 1
    assert run("expire", "--to", folder, "--older-than", "0d").code == 0
    ended = run(*words)
    assert (ended.code, "and 4 records after that are no longer in the table" in ended.err) == (1, True), ended
    assert run(*words, "--since", "1d").code == 4  # another job, which has never had a record


def test_progress_that_cannot_be_read_is_an_error_that_says_what_to_do(spark, run, produce, session_broker):
    topic, again = unique("files"), unique("again")
    produce(topic, [{"value": "v", "timestamp": NOW_MS - DAY_MS}])
    produce(again, [])
    words = ("replay", "--from", session_broker.data, "--from-topic", topic, "--topic", again, "-o", "json")
    assert run(*words).json["records"] == 1
    groups = json.loads(run("list", "-o", "json", command=("groups",)).out)
    for group in [each["group"] for each in groups if each["group"].startswith("horolog-replay-")]:
        run("reset", group, "--topic", again, "--to", "latest", command=("groups",))
    ended = run(*words)
    assert (ended.code, len(ended.err.splitlines())) == (1, 1), ended
    assert "the note of its progress cannot be read: ''; use --again to send all of it again" in ended.err
    assert run(*words, "--again").json["records"] == 1


def test_what_was_sent_is_not_sent_again_unless_it_is_asked_for(spark, run, produce, tmp_path):
    """The second run sends what has come since."""
    topic, again, folder = unique("original"), unique("again"), tmp_path / "table"
    records = list(some_records(60, 3))
    produce(topic, records, partitions=3)
    produce(again, [], partitions=3)
    words = ("replay", "--from", folder, "--topic", again, "-o", "json", "--step", "7")
    assert run("archive", "--topic", topic, "--to", folder).code == 0
    first = run(*words, "--exactly-once")
    assert (first.code, first.json["records"], first.json["sent_twice"]) == (0, 60, 0)
    second = run(*words, "--exactly-once")
    assert (second.code, second.json["records"], second.json["sent_before"]) == (0, 0, 60)
    assert "already sent: 60 records" in second.err
    produce(topic, records[:9], partitions=3)
    assert run("archive", "--topic", topic, "--to", folder).code == 0
    assert run(*words, "--exactly-once").json["records"] == 9
    found = consumed(run, again)
    assert [strip(each) for each in found] == [strip(each) for each in consumed(run, topic)]
    assert run(*words, "--again").json["records"] == 69
    assert len(consumed(run, again)) == 138


def test_a_replay_by_cron_sends_each_night_the_day_before(spark, run, produce, session_broker, tmp_path):
    """The same words are another range each night, and so another job; the same night again is gone on with, whatever its words."""
    topic, again, folder = unique("original"), unique("again"), tmp_path / "table"
    midnight = NOW_MS // DAY_MS * DAY_MS - 3 * DAY_MS
    produce(again, [], partitions=2)
    counts = (5, 0, 8)

    def replayed(now_ms, since="yesterday 00:00", until="today 00:00"):
        to = (spark, session_broker.address, str(folder), again)
        done = replay(*to, since=since, until=until, now_ms=now_ms)
        return done.records, done.details["sent_before"], done.details["sent_twice"]

    for night, count in enumerate(counts):
        now_ms = midnight + night * DAY_MS + 3_600_000
        begin = midnight + (night - 1) * DAY_MS
        produce(topic, [{"value": f"{night}-{n}", "timestamp": begin + n} for n in range(count)], partitions=2)
        produce(topic, [{"value": "of tonight", "timestamp": now_ms - 60_000}], partitions=2)
        assert run("archive", "--topic", topic, "--to", folder).code == 0
        sent = count + (1 if night else 0)  # one of the night before, after midnight
        assert replayed(now_ms) == (sent, 0, 0)
        assert replayed(now_ms + 600_000) == (0, sent, 0)
        assert replayed(now_ms + 600_000, str(begin), f"@{begin + DAY_MS}ms") == (0, sent, 0)
    values = [record["value"] for record in consumed(run, again)]
    assert sorted(values) == sorted(
        [f"{night}-{n}" for night, count in enumerate(counts) for n in range(count)] + ["of tonight"] * 2
    )


def test_relative_words_are_a_range_of_the_moment(spark, run, produce, tmp_path):
    topic, again, folder = unique("original"), unique("again"), tmp_path / "table"
    produce(again, [])
    words = ("replay", "--from", folder, "--topic", again, "-o", "json", "--since")
    for number in range(2):
        produce(topic, [{"value": f"v{number}", "timestamp": time.time_ns() // 1_000_000}])
        assert run("archive", "--topic", topic, "--to", folder).code == 0
        ended = run(*words, "1h")
        assert (ended.code, ended.json["records"], ended.json["sent_before"]) == (0, number + 1, 0)
        assert f"--since @{ended.json['since_ms']}ms" in ended.err
    gone_on = run(*words, f"@{ended.json['since_ms']}ms")
    assert (gone_on.json["records"], gone_on.json["sent_before"]) == (0, 2)
    assert "to resume after a kill" not in gone_on.err


@pytest.mark.parametrize("kind", FORMATS)
def test_two_topics_of_one_name_are_replayed_one_after_the_other(spark, run, produce, tmp_path, kind):
    """Two records stand at each offset of the archive, and the ids of the topics tell them apart: progress is kept for each."""
    topic, again, folder = unique("remade"), unique("again"), tmp_path / "table"
    produce(again, [], partitions=2)
    archive = ("archive", "--topic", topic, "--to", folder, "--format", kind)
    times = [NOW_MS - 2 * DAY_MS, NOW_MS - DAY_MS]
    for number, count in enumerate((5, 9)):
        records = [{"value": f"{number}-{n}", "timestamp": times[number] + n, "partition": n % 2} for n in range(count)]
        produce(topic, records, partitions=2)
        assert run(*archive, "--skip-lost").code == 0
        if not number:
            assert run("delete", topic, "--yes", command=("topics",)).code == 0
    rows = pipeline.table(spark, str(folder), table_format=kind)
    assert rows.groupBy("partition", "offset").count().where("count = 2").count() == 5
    assert rows.groupBy("topic_id", "partition", "offset").count().where("count > 1").count() == 0
    words = ("replay", "--from", folder, "--topic", again, "-o", "json", "--step", "2")
    first = run(*words)
    assert (first.code, first.json["records"], first.json["sent_twice"]) == (0, 14, 0)
    second = run(*words)
    assert (second.json["records"], second.json["sent_before"], second.json["sent_twice"]) == (0, 14, 0)
    found = {}
    for record in consumed(run, again):
        found.setdefault(record["partition"], []).append(record["value"])
    assert found == {
        place: [f"{number}-{n}" for number, count in enumerate((5, 9)) for n in range(count) if n % 2 == place]
        for place in range(2)
    }


def test_a_source_topic_that_was_made_anew_is_another_job(spark, run, produce, session_broker):
    topic, again = unique("remade"), unique("again")
    produce(again, [])
    words = ("replay", "--from", session_broker.data, "--from-topic", topic, "--topic", again, "-o", "json")
    for number in range(2):
        produce(topic, [{"value": f"{number}-{n}", "timestamp": NOW_MS} for n in range(3)])
        ended = run(*words)
        assert (ended.code, ended.json["records"], ended.json["sent_before"]) == (0, 3, 0)
        assert run("delete", topic, "--yes", command=("topics",)).code == 0
    assert [record["value"] for record in consumed(run, again)] == [f"{a}-{n}" for a in range(2) for n in range(3)]


def test_a_target_that_was_made_anew_gets_everything(spark, run, produce, session_broker):
    topic, again = unique("files"), unique("remade")
    produce(topic, [{"value": str(n), "timestamp": NOW_MS} for n in range(3)])
    words = ("replay", "--from", session_broker.data, "--from-topic", topic, "--topic", again, "-o", "json")
    for _ in range(2):
        produce(again, [])
        ended = run(*words)
        assert (ended.code, ended.json["records"], ended.json["sent_before"]) == (0, 3, 0), ended
        assert len(consumed(run, again)) == 3
        assert run("delete", again, "--yes", command=("topics",)).code == 0


def test_others_who_wrote_between_two_runs_are_not_taken_for_doubles(spark, run, produce, tmp_path):
    topic, again, folder = unique("original"), unique("again"), tmp_path / "table"
    produce(again, [])
    for number in range(3):
        produce(topic, [{"value": f"v{number}", "timestamp": NOW_MS}])
        assert run("archive", "--topic", topic, "--to", folder).code == 0
        ended = run("replay", "--from", folder, "--topic", again, "-o", "json")
        assert (ended.json["records"], ended.json["sent_twice"]) == (1, 0)
        produce(again, [{"value": "another's", "timestamp": NOW_MS}] * 5)


@pytest.mark.parametrize("kind", [*FORMATS, "segments"])
def test_nothing_is_sorted_or_shuffled_before_it_is_sent(spark, run, produce, session_broker, tmp_path, kind):
    topic, again, folder = unique("original"), unique("again"), tmp_path / "table"
    produce(topic, list(some_records(40, 2)), partitions=2)
    produce(again, [], partitions=2)
    if kind == "segments":
        folder = session_broker.data
    else:
        assert run("archive", "--topic", topic, "--to", folder, "--format", kind).code == 0
    rules = asyncio.run(rules_at(session_broker.address, again))
    to = (spark, session_broker.address, str(folder), again, rules)
    with prepare(*to, from_topic=topic, asked=Range(), settings=Settings()) as made:
        (share,) = made.shares
        plan = share.rows.in_tasks(share.lanes, share.numbers)._jdf.queryExecution().toString()
        assert "MapInArrow" in plan
        assert not any(step in plan for step in ("Exchange", "Sort", "InMemory"))


def test_what_lies_too_much_over_each_other_is_sorted_by_spark(spark, run, produce, tmp_path, monkeypatch):
    monkeypatch.setattr(merging, "MOST_BYTES", 0)
    topic, again, folder = unique("original"), unique("again"), tmp_path / "table"
    produce(topic, list(some_records(60, 3)), partitions=3)
    produce(again, [], partitions=3)
    assert run("archive", "--topic", topic, "--to", folder, "--step", "25").code == 0
    words = ("replay", "--from", folder, "--topic", again, "-o", "json")
    assert run(*words, "--rate", "1000").json["records"] == 60
    assert consumed(run, again) == consumed(run, topic)
    assert run(*words).json["records"] == 0


def strip(record):
    """Without the offset: transactions' markers have some, too."""
    return {name: value for name, value in record.items() if name not in {"offset", "leader_epoch"}}


@pytest.mark.kills
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("exactly_once", [False, True])
def test_a_replay_that_is_killed_again_and_again_is_gone_on_with(
    spark, run, produce, session_broker, tmp_path, exactly_once
):
    topic, again, folder = unique("original"), unique("again"), tmp_path / "table"
    produce(topic, list(some_records(6000, 2)), partitions=2)
    produce(again, [], partitions=2)
    assert run("archive", "--topic", topic, "--to", folder).code == 0
    options = ["--from", str(folder), "--topic", again, "--step", "400", *(["--exactly-once"] if exactly_once else [])]
    command = [sys.executable, "-m", "horolog", "pipeline", "replay", *options, "--quick", "--master", "local[2]"]
    command += ["--bootstrap", session_broker.address]
    rng = random.Random(int(os.environ.get("HOROLOG_SEED", "1")))
    kills = 0
    for _ in range(8):
        before = len(consumed(run, again))
        job = subprocess.Popen(
            command, cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        deadline = time.monotonic() + 240
        while job.poll() is None and len(consumed(run, again)) == before:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        time.sleep(rng.random() * 0.5)
        if job.poll() is None and kills < 2:
            os.killpg(job.pid, signal.SIGKILL)
            kills += 1
        if job.wait() == 0:
            break
    assert kills >= 1
    ended = run("replay", *options, "-o", "json")
    assert (ended.code, ended.json["records"]) == (0, 0)
    expected = [json.dumps(strip(each), sort_keys=True) for each in consumed(run, topic)]
    found = [json.dumps(strip(each), sort_keys=True) for each in consumed(run, again)]
    if exactly_once:
        assert found == expected
    assert sorted(set(found)) == sorted(set(expected))
    assert ended.json["sent_twice"] == len(found) - len(expected)


replay_module = importlib.import_module("horolog.pipeline.jobs.replay")  # the front has the function


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("_delta_log/0.json", "delta"),
        ("_horolog/commits/1.json", "parquet"),
        ("date=2026-11-17/x.parquet", "parquet"),
        ("t-0/0.log", "segments"),
        ("0.log", "segments"),
        ("other/x", None),
    ],
)
@pytest.mark.parametrize("on", ["disk", "store"])
def test_what_a_folder_holds_is_known_by_its_names(tmp_path, file, kind, on):
    pytest.importorskip("fsspec")
    place = str(tmp_path) if on == "disk" else Place.of(f"memory://{unique('held')}")
    files_of(place).create(file, b"")
    if kind is not None:
        assert replay_module.kind_of(place) == kind
        return
    with pytest.raises(TableError, match="holds neither an archive nor segment files"):
        replay_module.kind_of(place)


def test_a_catalogue_on_disk_is_one_of_iceberg_and_nothing_is_nothing(tmp_path):
    (tmp_path / "catalog.db").write_bytes(b"")
    assert replay_module.kind_of(f"file://{tmp_path}") == "iceberg"
    with pytest.raises(TableError, match="is not a folder"):
        replay_module.kind_of(str(tmp_path / "none"))


def test_the_partitions_that_a_table_knows_are_those_of_its_offsets():
    places = {("t", 0): 5, ("t", 2): 9, ("u", 0): 1}
    offsets = {TopicPartition(*place): offset for place, offset in places.items()}
    table = SimpleNamespace(offsets=lambda: offsets, topic_ids=lambda: {"t": "id"})
    assert sources._known(None, None) == {}
    assert sources._known(table, None) == {("t", "id"): 3, ("u", None): 1}
    assert sources._known(table, "u") == {("u", None): 1}


def test_segment_files_of_a_store_are_those_of_all_their_topics(tmp_path, monkeypatch):
    """The options of the session's Hadoop are passed on; without a topic and a time everything there is read."""
    pytest.importorskip("fsspec")
    data, count = log_of(tmp_path, segments=2, batches=2)
    place = Place.of(f"memory://{unique('segments')}")
    store, asked_of = files_of(place), []
    for path in data.rglob("*"):
        if path.is_file():
            assert store.create(str(path.relative_to(data)), path.read_bytes())

    def hadoop(spark, url):
        asked_of.append((spark, url))
        return {}

    monkeypatch.setattr(sources, "hadoop_options", hadoop)
    with ExitStack() as held:
        (found,) = sources.topics_in(sources.WantedRows("spark", place, "segments", None, Times()), held)
    assert asked_of == [("spark", place.url)]
    assert (found.topic, found.partitions, found.firsts) == ("topic", 1, {0: 0})
    assert [(each.start, each.end) for each in found.reach.values()] == [(0, count)]


def test_hidden_files_of_a_folder_are_no_rows(tmp_path):
    store = files_of(str(tmp_path))
    for name in ("date=1/a.parquet", "date=1/_tmp/b.parquet", ".c.parquet", "d.txt"):
        store.create(name, b"")
    asked = SimpleNamespace(source=str(tmp_path))
    ((_, names),) = sources._plain_files(asked)
    assert names == ["date=1/a.parquet"]


def test_a_table_is_read_as_what_it_is(monkeypatch, tmp_path):
    opened = []
    table = SimpleNamespace(rows=lambda since, until: (since, until))
    monkeypatch.setattr(sources, "open_table", lambda *given: opened.append(given) or table)
    place = Place.of("s3a://b/t", {}, {})
    for source, folder in ((str(tmp_path), str(tmp_path)), (f"file://{tmp_path}", str(tmp_path)), (place, "s3a://b/t")):
        asked = SimpleNamespace(kind="delta", source=source, spark="spark", times=(5, 9))
        assert sources._rows(asked) == (5, 9)
        assert opened.pop() == ("delta", folder, "spark")
    named = SimpleNamespace()
    assert sources._folder(named) is named


def test_files_without_their_log_of_commits_are_read_as_they_are(monkeypatch):
    monkeypatch.setattr(parquet, "plain_rows", lambda *given: given)
    asked = SimpleNamespace(kind=sources.PLAIN, source="/t", spark="spark", times=(5, 9))
    assert sources._rows(asked) == ("spark", "/t", 5, 9)
