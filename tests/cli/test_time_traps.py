"""Times that people get wrong, at the command and in the library: what they are told, before the data is gone or stays for ever."""

import asyncio
import json
import logging
import os
import pty
import subprocess
import sys
import time

import pytest

from horolog import Admin, Client, Producer
from horolog.base.readable import format_time
from horolog.client.values.errors import InvalidTimestamp, TimestampExceededThreshold
from horolog.protocol.errors import ErrorCode
from tests.support.names import unique
from tests.support.style import PROJECT

NOW_MS = time.time_ns() // 1_000_000
DAY_MS = 86_400_000
UNITS = {"seconds": NOW_MS // 1000, "microseconds": NOW_MS * 1000, "nanoseconds": NOW_MS * 1_000_000}
SHORT = {"seconds": "s", "microseconds": "us", "nanoseconds": "ns"}


@pytest.fixture
def run(horolog, session_broker, monkeypatch):
    monkeypatch.setenv("HOROLOG_TZ", "UTC")
    return lambda *words: horolog(*words, "--bootstrap", session_broker.address)


@pytest.fixture
def topic(run):
    name = unique("times")
    assert run("topics", "create", name, "--config", "retention.ms=-1").code == 0
    return name


@pytest.fixture
def records(tmp_path):
    def write(*timestamps):
        path = tmp_path / "records.json"
        path.write_text("".join(json.dumps({"value": "v", "timestamp": each}) + "\n" for each in timestamps))
        return path

    return write


def written(run, topic):
    return [each["timestamp"] for each in run("consume", topic, "-o", "json").lines]


# -- units


@pytest.mark.parametrize("unit", UNITS)
def test_another_unit_in_json_is_refused_with_both_readings_unless_it_is_named(run, topic, records, unit):
    number = UNITS[unit]
    path = records(NOW_MS, number)
    ended = run("produce", topic, path, "--format", "json")
    assert ended.code == 1
    assert f"line 2: the timestamp {number} looks like {unit} (" in ended.err
    assert format_time(number // 1000 if unit == "microseconds" else NOW_MS)[:16] in ended.err
    assert f"as milliseconds it is {format_time(number)}" in ended.err
    assert f"--timestamp-unit {SHORT[unit]} or --timestamp-unit ms" in ended.err
    assert written(run, topic) == [NOW_MS]
    path = records(number)
    assert run("produce", topic, path, "--format", "json", "--timestamp-unit", SHORT[unit]).code == 0
    assert run("produce", topic, path, "--format", "json", "--timestamp-unit", "ms").code == 0
    _, read_as_unit, as_it_is = written(run, topic)
    assert (read_as_unit // 1000, as_it_is) == (NOW_MS // 1000, number)


@pytest.mark.parametrize("unit", UNITS)
def test_another_unit_for_all_records_is_refused_before_anything_is_sent(run, topic, tmp_path, unit):
    path = tmp_path / "lines"
    path.write_text("v\n")
    number = UNITS[unit]
    ended = run("produce", topic, path, "--timestamp", f"@{number}")
    assert (ended.code, f"looks like {unit} (" in ended.err) == (2, True)
    bare = run("produce", topic, path, "--timestamp", number)
    assert (bare.code, f"@{number}{SHORT[unit]} is {format_time(NOW_MS)[:16]}" in bare.err) == (2, True)
    assert written(run, topic) == []
    assert run("produce", topic, path, "--timestamp", f"@{number}{SHORT[unit]}").code == 0
    assert run("produce", topic, path, "--timestamp", f"@{number}", "--timestamp-unit", SHORT[unit]).code == 0
    assert run("produce", topic, path, "--timestamp", f"@{number}ms").code == 0
    first, second, third = written(run, topic)
    assert (first // 1000, second // 1000, third) == (NOW_MS // 1000, NOW_MS // 1000, number)


def test_what_is_plausible_in_milliseconds_is_asked_nothing(run, topic, records):
    times = [0, 1000, 10**11, NOW_MS - 3650 * DAY_MS, NOW_MS, NOW_MS + 3650 * DAY_MS, None, "1h-ago", f"@{NOW_MS}"]
    ended = run("produce", topic, records(*times), "--format", "json")
    assert (ended.code, "looks like" in ended.err) == (0, False)
    assert written(run, topic)[:6] == times[:6]


def test_seconds_with_a_fraction_are_read_where_it_is_said(run, topic, records):
    ended = run("produce", topic, records(NOW_MS / 1000), "--format", "json")
    assert (ended.code, "--timestamp-unit s reads it as seconds" in ended.err) == (1, True)
    assert run("produce", topic, records(NOW_MS / 1000), "--format", "json", "--timestamp-unit", "s").code == 0
    assert written(run, topic) == [NOW_MS]


@pytest.mark.parametrize(("answer", "code", "expected"), [("s", 0, "unit"), ("ms", 0, "number"), ("", 1, None)])
def test_at_a_terminal_it_is_asked_once(run, topic, records, session_broker, answer, code, expected):
    number = NOW_MS // 1000
    path = records(number, number)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "horolog", "produce", topic, path, "--format", "json"]
    with subprocess.Popen(
        [*command, "--bootstrap", session_broker.address],
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=PROJECT,
        env=os.environ | {"HOROLOG_TZ": "UTC"},
    ) as process:
        os.write(ours, f"{answer}\n".encode())
        _, said = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == code, said
    assert said.count(b"Which unit is it? [s/ms/N]") == 1
    read = {"unit": number * 1000, "number": number, None: None}[expected]
    assert written(run, topic) == ([] if read is None else [read, read])


# -- behind retention


def test_the_command_warns_of_what_retention_keeps_no_longer(run, records):
    topic = unique("week")
    assert run("topics", "create", topic, "--config", "retention.ms=604800000").code == 0
    ended = run("produce", topic, records(NOW_MS - 6 * DAY_MS), "--format", "json")
    assert (ended.code, "warning" in ended.err) == (0, False)
    late = NOW_MS - 8 * DAY_MS
    ended = run("produce", topic, records(late, late - 1, NOW_MS), "--format", "json")
    assert (ended.code, ended.err.count("warning")) == (0, 1)
    assert f"warning: topic {topic} keeps records for 1w (retention.ms)" in ended.err
    assert f"a record of {format_time(late - 1)} may be deleted" in ended.err, "the oldest of those that came meanwhile"


@pytest.mark.parametrize(
    "config", ["retention.ms=-1", "cleanup.policy=compact", "message.timestamp.type=LogAppendTime"]
)
def test_the_command_does_not_warn_where_that_time_deletes_nothing(run, tmp_path, config):
    topic = unique("kept")
    assert run("topics", "create", topic, "--config", config).code == 0
    path = tmp_path / "lines"
    path.write_text("k:v\n")
    ended = run("produce", topic, path, "--timestamp", "2020-01-01", "-K", ":")
    assert (ended.code, "warning" in ended.err) == (0, False)


async def test_the_library_warns_once_a_topic_and_asks_for_settings_once(session_broker, caplog):
    topic = unique("library")
    caplog.set_level(logging.WARNING, "horolog.client")
    async with Client(session_broker.address) as client:
        await Admin(client).create_topic(topic, configs={"retention.ms": str(DAY_MS)})
        asked = []
        original = client.attempt

        async def attempt(message, *args, **kwargs):
            asked.append(getattr(getattr(message, "key", None), "name", type(message).__name__))
            return await original(message, *args, **kwargs)

        client.attempt = attempt
        async with Producer(client) as producer:
            for number in range(100):
                await producer.send(topic, b"v", timestamp_ms=NOW_MS - 2 * DAY_MS + number)
                await asyncio.sleep(0)
        assert sum("DESCRIBE" in name.upper() for name in asked) <= 1
        (told,) = caplog.messages
        assert told.startswith(f"topic {topic} keeps records for 1d (retention.ms)")
        caplog.clear()
        async with Producer(client, on_expired=None) as producer:
            await producer.send_and_wait(topic, b"v", timestamp_ms=NOW_MS - 2 * DAY_MS)
        async with Producer(client) as producer:
            await producer.send_and_wait(topic, b"v")
        assert caplog.messages == []


def test_the_broker_tells_at_once_what_is_behind_or_far_ahead(start_broker, horolog, records, monkeypatch):
    monkeypatch.setenv("HOROLOG_TZ", "UTC")
    broker = start_broker(log__retention__ms=7 * DAY_MS)
    late, ahead = NOW_MS - 30 * DAY_MS, NOW_MS + 400 * DAY_MS
    for each in (late, late, ahead, ahead):
        ended = horolog("produce", "told", records(each), "--format", "json", "--create", "-b", broker.address)
        assert ended.code == 0
    lines = [line for line in broker.log().splitlines() if " WARNING " in line and "topic told: " in line]
    assert len(lines) == 2, broker.log()
    assert format_time(late) in lines[0]
    assert "(1w) keeps no longer" in lines[0]
    assert format_time(ahead) in lines[1]
    assert "57w1d ahead" in lines[1] or "57w ahead" in lines[1]


# -- error 32


async def test_error_32_is_found_under_both_names(session_broker):
    topic = unique("strict")
    async with Client(session_broker.address) as client:
        await Admin(client).create_topic(topic, configs={"message.timestamp.before.max.ms": "3600000"})
        async with Producer(client, on_expired=None) as producer:
            with pytest.raises(TimestampExceededThreshold) as caught:
                await producer.send_and_wait(topic, b"v", timestamp_ms=NOW_MS - DAY_MS)
    assert isinstance(caught.value, InvalidTimestamp)
    assert caught.value.code is ErrorCode.TIMESTAMP_EXCEEDED_THRESHOLD
    said = str(caught.value)
    assert said.startswith("INVALID_TIMESTAMP: TimestampExceededThreshold: ")
    assert f"{NOW_MS - DAY_MS} ({format_time(NOW_MS - DAY_MS)}) is 23h" in said


def test_the_command_says_both_names(run, tmp_path):
    topic = unique("strict")
    assert run("topics", "create", topic, "--config", "message.timestamp.after.max.ms=3600000").code == 0
    path = tmp_path / "lines"
    path.write_text("v\n")
    ended = run("produce", topic, path, "--timestamp", "now+2h")
    assert ended.code == 1
    assert "INVALID_TIMESTAMP: TimestampExceededThreshold: timestamp " in ended.err
