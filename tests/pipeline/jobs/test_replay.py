"""What was archived goes to a topic again with the times that it had, and what would be lost is said before anything is sent."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from horolog.client.producer import Producer
from horolog.pipeline.tables.table import FORMATS
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
    assert "older than the topic's retention" in refused.err

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
    assert (ended.code, "--from-topic names one" in ended.err) == (2, True)
    assert run("replay", "--from", two, "--from-topic", "none", "--topic", topic).code == 4


def test_what_was_sent_is_not_sent_again_unless_it_is_asked_for(spark, run, produce, tmp_path):
    """The second run sends what has come since, to the range of times that the first one had."""
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
    assert "60 records were sent before" in second.err
    produce(topic, records[:9], partitions=3)
    assert run("archive", "--topic", topic, "--to", folder).code == 0
    assert run(*words, "--exactly-once").json["records"] == 9
    found = consumed(run, again)
    assert [strip(each) for each in found] == [strip(each) for each in consumed(run, topic)]
    assert run(*words, "--again").json["records"] == 69
    assert len(consumed(run, again)) == 138


def strip(record):
    """Without the offset: transactions' markers have some, too."""
    return {name: value for name, value in record.items() if name not in {"offset", "leader_epoch"}}


@pytest.mark.kills
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(900)
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
