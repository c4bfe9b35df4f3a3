"""Commands that talk to a broker, as a user types them: on our broker, and on a real Kafka where its jars and Java are at hand."""

import asyncio
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from benchmarks import kafka
from horolog import Consumer
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique
from tests.support.style import PROJECT

KAFKA = "4.3.1"
SET_BY_KAFKA_ITSELF = "min.insync.replicas"
"""A controller with eligible leader replicas sets it for all brokers, a moment after its start."""
HOUR_MS = 3_600_000
NOW_MS = time.time_ns() // 1_000_000
TIMES = [NOW_MS - 5 * HOUR_MS + number * HOUR_MS for number in range(5)]  # five, four ... one hours ago


@pytest.fixture(
    scope="module",
    params=[
        "horolog",
        pytest.param("kafka", marks=[pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.timeout(300)]),
    ],
)
def address(request: pytest.FixtureRequest, session_broker: BrokerProcess, tmp_path_factory) -> Iterator[str]:
    if request.param == "horolog":
        yield session_broker.address
        return
    try:
        kafka.libs(KAFKA)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {KAFKA}: {error}")
    with kafka.running(KAFKA, data=tmp_path_factory.mktemp("kafka")) as node:
        yield node.address


def until(holds: Callable[[], bool]) -> None:
    """A Kafka's brokers hear of settings a moment after who has set them is answered."""
    give_up = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < give_up
        time.sleep(0.05)


def until_it_is(value: str, look: Callable[[], Any]) -> Any:
    """The found one, once it has this value."""
    found: dict[str, Any] = {}

    def has_come() -> bool:
        found.update(look())
        return bool(found["value"] == value)

    until(has_come)
    return found


@pytest.fixture
def run(horolog, address, monkeypatch):
    """A command at that broker; times are shown and read in UTC."""
    monkeypatch.setenv("HOROLOG_TZ", "UTC")

    def run_there(*words):
        return horolog(*words, "--bootstrap", address, "--timeout", "30s")

    return run_there


@pytest.fixture
def topic(run) -> str:
    name = unique("cli")
    assert run("topics", "create", name).code == 0
    return name


@pytest.fixture
def hourly(run, topic, tmp_path) -> str:
    """A topic with a record an hour: record n is TIMES[n]."""
    lines = [{"value": f"v{n}", "key": f"k{n}", "timestamp": time_ms} for n, time_ms in enumerate(TIMES)]
    path = tmp_path / "hourly.json"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run("produce", topic, path, "--format", "json").code == 0
    return topic


def values(ended) -> list[str]:
    return [record["value"] for record in ended.lines]


# -- produce


def test_lines_become_records_with_keys_headers_and_times(run, topic, tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"a:1\r\nb:2:3\nc:\nd:4")
    options = ["--key-separator", ":", "-H", "from=test", "--timestamp", f"@{TIMES[0]}", "--codec", "gzip"]
    ended = run("produce", topic, path, *options)
    assert (ended.code, ended.out) == (0, "")
    assert "4 written, 0 refused" in ended.err
    records = run("consume", topic, "-o", "json").lines
    assert [(each["key"], each["value"]) for each in records] == [("a", "1"), ("b", "2:3"), ("c", ""), ("d", "4")]
    assert {each["timestamp"] for each in records} == {TIMES[0]}
    assert records[0]["headers"] == [{"key": "from", "value": "test"}]


def test_what_consume_writes_as_json_can_be_produced_again(run, topic, tmp_path):
    original = tmp_path / "original"
    original.write_text(
        '{"value": {"nested": [1, null]}, "key": "ä"}\n'
        '{"value_base64": "/wA=", "headers": [{"key": "h", "value": null}, {"key": "h", "value_base64": "/w=="}]}\n'
        '{"value": null, "key": "gone", "timestamp": 1000}\n'
    )
    assert run("produce", topic, original, "--format", "json").code == 0
    first = run("consume", topic, "-o", "json")
    assert first.lines[0]["value"] == '{"nested":[1,null]}'
    assert first.lines[1]["value_base64"] == "/wA="
    copy = tmp_path / "copy"
    copy.write_text(first.out)
    again = unique("again")
    assert run("topics", "create", again).code == 0
    assert run("produce", again, copy, "--format", "json").code == 0
    second = run("consume", again, "-o", "json")
    assert [{**each, "topic": topic} for each in second.lines] == first.lines


@pytest.mark.parametrize("on_error", ["stop", "continue"])
def test_a_refused_line_is_named_with_its_reason(run, tmp_path, on_error):
    name = unique("bounded")
    config = "message.timestamp.before.max.ms=3600000"
    assert run("topics", "create", name, "--config", config).code == 0
    path = tmp_path / "lines"
    now = NOW_MS - 1000
    path.write_text(
        "".join(f'{{"value": "{n}", "timestamp": {now - (n == 2) * 9 * HOUR_MS}}}\n' for n in range(5)) + "?\n"
    )
    ended = run("produce", name, path, "--format", "json", "--on-error", on_error, "-o", "json")
    assert ended.code == 1
    refused = {each["line"]: each["reason"] for each in ended.json["refused"]}
    assert "no JSON" in refused[6]
    assert ended.json["written"] == 4
    assert "timestamp" in refused[3].lower()
    assert values(run("consume", name, "-o", "json")) == ["0", "1", "3", "4"]


def test_stopping_at_a_bad_line_sends_nothing_behind_it(run, topic, tmp_path):
    path = tmp_path / "lines"
    path.write_text('{"value": "first"}\nbad\n{"value": "behind"}\n')
    ended = run("produce", topic, path, "--format", "json")
    assert ended.code == 1
    assert f"{path}, line 2: it is no JSON" in ended.err
    assert "later lines were not sent" in ended.err
    assert values(run("consume", topic, "-o", "json")) == ["first"]


def test_standard_input_and_output_of_a_real_process(address, topic):
    command = [sys.executable, "-m", "horolog"]
    settings = {"cwd": PROJECT, "capture_output": True, "timeout": 60}
    data = b"".join(b"line %d \xff\n" % number for number in range(20_000))
    subprocess.run([*command, "produce", topic, "-b", address], input=data, check=True, **settings)
    read = subprocess.run([*command, "consume", topic, "--format", "raw", "-b", address], check=True, **settings)
    assert read.stdout == data


# -- consume


def test_a_range_of_time_is_what_it_says(run, hourly):
    for since, until, expected in [(0, 5, 5), (1, 3, 2), (1, 2, 1), (4, 5, 1)]:
        end = TIMES[until] if until < 5 else NOW_MS
        ended = run("consume", hourly, "--since", f"@{TIMES[since]}ms", "--until", f"@{end}ms", "-o", "json")
        assert values(ended) == [f"v{n}" for n in range(since, since + expected)]
        ended = run("consume", hourly, "--since", f"@{TIMES[since] - 1}ms", "--until", f"@{end - 1}ms", "-o", "json")
        assert values(ended) == [f"v{n}" for n in range(since, min(until, 5))]
    assert values(run("consume", hourly, "--since", "150m-ago", "-o", "json")) == ["v3", "v4"]
    ended = run("consume", hourly, "--since", "30m")
    assert (ended.out, ended.code) == ("", 0)
    assert "no records" in ended.err


def test_records_that_came_late_are_told_of_and_read_on_demand(run, hourly, tmp_path):
    path = tmp_path / "late"
    path.write_text(json.dumps({"value": "late", "timestamp": TIMES[1] + 1}) + "\n")
    assert run("produce", hourly, path, "--format", "json").code == 0
    times = ["--since", f"@{TIMES[1]}ms", "--until", f"@{TIMES[2]}ms"]
    ended = run("consume", hourly, *times, "-o", "json", "--merge", "none")
    assert values(ended) == ["v1"]
    assert "at least 1 records of that time lie behind" in ended.err
    assert values(run("consume", hourly, *times, "--late", "--merge", "none", "-o", "json")) == ["v1", "late"]
    for more in ([], ["--late"], ["--look-ahead", "4h"], ["--look-ahead", "1MiB"], ["--look-ahead", "all"]):
        assert values(run("consume", hourly, *times, "-o", "json", *more)) == ["v1", "late"]


def test_a_moment_of_all_partitions_is_shown_in_the_order_of_time(run, tmp_path):
    """Against the same records sorted here; their times are far out of order."""
    name = unique("moment")
    assert run("topics", "create", name, "--partitions", "3", "--config", "segment.bytes=1048576").code == 0
    rolled = random.Random(7)
    lines = [
        {
            "value": f"v{n}",
            "partition": rolled.randrange(3),
            "timestamp": NOW_MS - HOUR_MS + rolled.randrange(3_000_000),
        }
        for n in range(2000)
    ]
    path = tmp_path / "lines"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run("produce", name, path, "--format", "json", "--codec", "gzip").code == 0
    read = run("consume", name, "-o", "json").lines
    largest: dict[int, int] = {}
    for each in read:
        largest[each["partition"]] = max(each["timestamp"], largest.get(each["partition"], 0))
        each["late_ms"] = largest[each["partition"]] - each["timestamp"]
    read.sort(key=lambda each: (each["timestamp"], each["partition"], each["offset"]))
    borders = [each["timestamp"] for each in read]
    for first, last in [(0, 1999), (700, 705), (700, 701), (1200, 1900)]:
        since, until = borders[first], borders[last]
        expected = [each for each in read if since <= each["timestamp"] < until]
        ended = run("at", name, f"@{since}ms..@{until}ms", "-o", "json")
        assert ended.lines == expected
        merged = run("consume", name, "--since", f"@{since}ms", "--until", f"@{until}ms", "-o", "json")
        assert values(merged) == [each["value"] for each in expected]


def test_a_moment_by_key_and_by_words(run, hourly):
    begin = f"@{TIMES[0]}ms"
    assert values(run("at", hourly, begin, "--for", "5h", "--key", "k3", "-o", "json")) == ["v3"]
    assert values(run("at", hourly, begin, "--for", "5h", "--grep", "v[13]", "-o", "json")) == ["v1", "v3"]
    assert values(run("at", hourly, f"@{TIMES[2]}ms", "--around", "90m", "-o", "json")) == ["v1", "v2", "v3"]
    shown = run("at", hourly, begin)
    assert shown.out.endswith(f"{hourly}-0@0  k0  v0\n")
    assert shown.out.count("\n") == 1
    assert "+00:00 to 20" in shown.err


def test_following_can_merge(run, hourly):
    ended = run(
        *("consume", hourly, "--since", "earliest", "--follow", "--merge", "time", "--merge-window", "100ms"),
        *("--until", f"@{TIMES[3]}ms", "-o", "json"),
    )
    assert values(ended) == ["v0", "v1", "v2"]


def test_formats(run, hourly):
    def first(*options):
        return run("consume", hourly, "-n", "1", *options).out

    shown = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(TIMES[0] / 1000)) + f".{TIMES[0] % 1000:03}+00:00"
    assert first() == f"{shown}  {hourly}-0@0  k0  v0\n"
    assert first("--format", "raw") == "v0\n"
    assert first("--format", "%t/%p/%o %k=%s %T %K %S %%\\t\\x41\\n") == f"{hourly}/0/0 k0=v0 {TIMES[0]} 2 2 %\tA\n"
    assert first("--format", "%D") == shown
    assert json.loads(first("--format", "json"))["timestamp_type"] == "CreateTime"


def test_where_to_begin_and_when_to_end(run, hourly):
    assert values(run("consume", hourly, "--offset", "3", "-o", "json")) == ["v3", "v4"]
    assert values(run("consume", hourly, "--tail", "2", "-o", "json")) == ["v3", "v4"]
    assert values(run("consume", hourly, "--max", "2", "-o", "json")) == ["v0", "v1"]
    for text in ("latest", "end", "latest..latest"):
        assert values(run("consume", hourly, "--since", text, "-o", "json")) == []
    assert values(run("consume", hourly, "--partition", "0", "-o", "json")) == [f"v{n}" for n in range(5)]


def test_an_offset_beyond_the_ends_is_told(run, hourly):
    ended = run("consume", hourly, "--offset", "100")
    assert (ended.code, ended.out) == (0, "")
    assert f"warning: {hourly}-0 ends at 5: offset 100 is beyond its end" in ended.err
    assert "ends at" not in run("consume", hourly, "--offset", "5").err
    soon = run("consume", hourly, "--offset", "100", "--follow", "--until", "now+1s")
    assert (soon.code, soon.out, f"{hourly}-0 ends at 5" in soon.err) == (0, "", True)
    assert run("topics", "trim", hourly, "--offset", "2", "--yes").code == 0
    ended = run("consume", hourly, "--offset", "1", "-o", "json")
    assert values(ended) == ["v2", "v3", "v4"]
    assert f"{hourly}-0 begins at 2: offset 1 lies before it" in ended.err


def test_following_ends_with_the_range(run, hourly):
    ended = run("consume", hourly, "--since", "earliest", "--follow", "--until", f"@{TIMES[3]}ms", "-o", "json")
    assert values(ended) == ["v0", "v1", "v2"]


def test_a_group_goes_on_where_it_was(run, hourly):
    group = unique("group")
    assert values(run("consume", hourly, "--group", group, "--max", "2", "-o", "json")) == ["v0", "v1"]
    assert values(run("consume", hourly, "--group", group, "-o", "json")) == ["v2", "v3", "v4"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--since", "foo"], "--since: 'foo'"),
        (["--since", "1h", "--offset", "3"], "both say where to begin"),
        (["--since", "1h", "--until", "2h"], "is not after the beginning"),
        (["--group", "g", "--partition", "0"], "--partition cannot be given with --group"),
        (["--format", "%q"], "%q means nothing"),
        (["--format", "xml"], "text, json, raw or a template"),
        (["--format", "raw", "-o", "json"], "cannot both be"),
        (["--late"], "--late is about records behind --until"),
        (["--look-ahead", "1h"], "--look-ahead is about records behind --until"),
        (["--until", "1h", "--late", "--look-ahead", "1h"], "--late is --look-ahead all"),
        (["--merge", "time", "--offset", "1"], "--merge time goes by times"),
        (["--since", "23:55", "--until", "00:05"], "is not after the beginning"),
        (["--until", "+5m"], "counts from the beginning"),
    ],
)
def test_what_makes_no_sense_is_refused(run, words, said):
    ended = run("consume", "no-matter", *words)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_a_topic_that_is_not_there_is_answered_with_one_that_is_spelled_alike(run, topic):
    for command in ("consume", "offsets", "produce"):
        ended = run(command, topic[:-1] + "~")
        assert ended.code == 4
        assert f"do you mean {topic!r}?" in ended.err
    assert run("consume", topic, "--partition", "7").code == 4


# -- offsets


def test_a_time_is_resolved_with_the_timestamp_found(run, hourly):
    ended = run("offsets", hourly, f"@{TIMES[2] - 5}ms", "now", "earliest", "-o", "json")
    found, nothing, earliest = ended.json
    assert (found["offset"], found["timestamp"], found["records_to_end"]) == (2, TIMES[2], 3)
    assert (nothing["offset"], nothing["timestamp"]) == (None, None)
    assert (earliest["offset"], earliest["asked_ms"]) == (0, -2)
    assert "nothing at or after it" in run("offsets", hourly, "now").out


def test_a_range_has_two_borders_and_what_lies_between(run, hourly):
    text = f"@{TIMES[1] - 5}ms..@{TIMES[3]}ms"
    found, everything, rest = run("offsets", hourly, text, "earliest..latest", f"@{TIMES[2]}ms..now", "-o", "json").json
    assert (found["asked_ms"], found["until_ms"]) == (TIMES[1] - 5, TIMES[3])
    assert (found["offset"], found["timestamp"], found["until_offset"], found["records"]) == (1, TIMES[1], 3, 2)
    assert (everything["offset"], everything["until_offset"], everything["records"]) == (0, 5, 5)
    assert (rest["offset"], rest["until_offset"], rest["records"], rest["records_to_end"]) == (2, 5, 3, 3)
    ended = run("offsets", hourly, text, "now", "latest..latest")
    assert f"{text} is " in ended.err
    assert "nothing at or after it" in ended.out
    assert [line.split()[-1] for line in ended.out.splitlines() if line.startswith(hourly)] == ["0", "2", "0"]


def test_a_range_is_warned_of_at_both_borders(run, topic, tmp_path):
    path = tmp_path / "lines"
    times = [NOW_MS - 5 * HOUR_MS, NOW_MS - HOUR_MS, NOW_MS - 3 * HOUR_MS]
    path.write_text("".join(json.dumps({"value": "v", "timestamp": time_ms}) + "\n" for time_ms in times))
    assert run("produce", topic, path, "--format", "json").code == 0
    ended = run("offsets", topic, "6h-ago..2h-ago", "-o", "json")
    assert ended.json[0]["records"] == 1
    assert "of the 2 records from there 1 are earlier" in ended.json[0]["warnings"][0]
    assert "times are out of order" in run("offsets", topic, "6h-ago..2h-ago").err


def test_disorder_and_the_future_are_warned_of(run, topic, tmp_path):
    path = tmp_path / "lines"
    times = [NOW_MS - HOUR_MS, NOW_MS + HOUR_MS // 2, NOW_MS - 3 * HOUR_MS]
    path.write_text("".join(json.dumps({"value": "v", "timestamp": time_ms}) + "\n" for time_ms in times))
    assert run("produce", topic, path, "--format", "json").code == 0
    ended = run("offsets", topic, "2h-ago")
    assert "times are out of order: of the 3 records from there 1 are earlier" in ended.err
    assert "offset 1 is" in ended.err
    assert "in the future" in ended.err
    assert len(run("offsets", topic, "2h-ago", "-o", "json").json[0]["warnings"]) == 2


# -- topics and configs


def test_topics_are_created_described_altered_trimmed_and_deleted(run, hourly):
    assert hourly in {each["topic"] for each in run("topics", "list", "-o", "json").json}
    assert run("topics", "alter", hourly, "--config", "retention.ms=1d", "--partitions", "3").code == 0
    (described,) = run("topics", "describe", hourly, "-o", "json").json
    assert described["configs"]["retention.ms"] == "86400000"
    assert "retention.ms=1 day" in run("topics", "describe", hourly).out
    first = described["partitions"][0]
    assert (len(described["partitions"]), first["end_offset"], first["records"]) == (3, 5, 5)
    assert (first["first_timestamp"], first["largest_timestamp"]) == (TIMES[0], TIMES[4])
    assert first["bytes_a_day"] == first["bytes"]  # all of them came within a day
    assert sum(each["records"] for each in described["days"]) == 5
    assert any(one in described["bytes_by_day"] for one in ("no HTTP port", "a Kafka tells nothing"))
    shown = run("topics", "describe", hourly, "--tz", "UTC")
    assert "\nDAY " in shown.out
    assert "bytes by day are estimated by the mean record" in shown.err
    assert "\nDAY " not in run("topics", "describe", hourly, "--days", "0").out
    assert first["largest_timestamp"] == TIMES[4]
    trim = ["topics", "trim", hourly, "--before", f"@{TIMES[2]}ms", "--partition", "0"]
    assert run(*trim, "--dry-run", "-o", "json").json == [{"topic": hourly, "partition": 0, "from": 0, "to": 2}]
    assert values(run("consume", hourly, "-o", "json")) == [f"v{n}" for n in range(5)]
    assert run(*trim, "--yes").code == 0
    assert values(run("consume", hourly, "-o", "json")) == ["v2", "v3", "v4"]
    assert run("topics", "delete", hourly, "--yes").code == 0
    assert run("topics", "describe", hourly).code == 4


def test_topics_refuse_what_cannot_be(run, topic):
    again = run("topics", "create", topic, unique("new"), "-o", "json")
    assert (again.code, [each["done"] for each in again.json]) == (1, [False, True])
    assert run("topics", "create", topic, "--if-not-exists").code == 0
    assert run("topics", "create", unique("bad"), "--config", "retention.ms=soon").code == 2
    assert run("topics", "create", unique("bad"), "--config", "cleanup.policy=soon").code == 1
    assert run("topics", "create", unique("bad"), "--config", "retention.ms").code == 2
    assert run("topics", "alter", topic).code == 2
    assert run("topics", "trim", topic).code == 2
    dry = unique("dry")
    assert run("topics", "create", dry, "--dry-run").code == 0
    assert run("topics", "describe", dry).code == 4


def test_create_says_which_topics_were_there(run, topic):
    new = unique("new")
    ended = run("topics", "create", topic, new, "--if-not-exists")
    assert (ended.code, ended.out.splitlines()) == (0, [f"{topic}: exists already", f"{new}: created"])
    ended = run("topics", "create", topic, unique("new"), "--if-not-exists", "-o", "json")
    assert [(each["done"], each["existed"]) for each in ended.json] == [(True, True), (True, False)]
    ended = run("topics", "create", topic, unique("new"), "--if-not-exists", "--dry-run")
    assert [line.partition(": ")[2] for line in ended.out.splitlines()] == ["exists already", "could be created"]


def test_nothing_is_deleted_without_a_yes_where_nobody_can_be_asked(run, topic):
    ended = run("topics", "delete", topic)
    assert ended.code == 2
    assert "--yes" in ended.err
    assert run("topics", "describe", topic).code == 0


def set_on_the_topic(run, topic):
    """Not what the broker's own settings make of it."""
    listed = run("configs", "list", "topic", topic, "-o", "json").json
    return [(each["key"], each["value"]) for each in listed if each["source"] == "topic"]


def test_settings_are_shown_with_where_they_come_from_and_changed(run, topic):
    changed = run("configs", "set", "topic", topic, "retention.ms=5000000", "-o", "json").json
    assert changed[0]["to"] == "5000000"
    until(lambda: set_on_the_topic(run, topic) == [("retention.ms", "5000000")])
    assert "1 hour 23 minutes 20 seconds" in run("configs", "list", "topic", topic).out
    assert run("configs", "unset", "topic", topic, "retention.ms").code == 0
    until(lambda: set_on_the_topic(run, topic) == [])
    explained = run("configs", "list", "topic", topic, "retention.ms", "--explain").out
    assert "WHAT IT IS" in explained
    assert run("configs", "list", "topic", topic, "no.such.key").code == 4
    assert run("configs", "set", "topic", topic, "retention.ms=7d", "-o", "json").json[0]["to"] == "604800000"
    assert run("configs", "set", "topic", topic, "retention.ms=soon").code == 2
    assert run("configs", "set", "topic", topic, "cleanup.policy=soon").code == 1
    assert run("configs", "list", "broker", "somewhere").code == 2


def test_settings_of_all_brokers_are_found_set_for_all_or_not(run):
    found = {each["key"]: each for each in run("configs", "list", "broker", "all", "log.*.ms", "-o", "json").json}
    found = found["log.segment.delete.delay.ms"]
    assert found["value"] == "60000"
    assert run("configs", "set", "broker", "all", "log.segment.delete.delay.ms=50000").code == 0
    try:
        found = until_it_is(
            "50000", lambda: run("configs", "list", "broker", "all", found["key"], "-o", "json").json[0]
        )
        assert found["source"] == "all brokers, dynamic"
        set_for_all = {each["key"] for each in run("configs", "list", "broker", "all", "-o", "json").json}
        assert set_for_all - {SET_BY_KAFKA_ITSELF} == {found["key"]}
    finally:
        assert run("configs", "unset", "broker", "all", "log.segment.delete.delay.ms").code == 0
    assert len(run("configs", "list", "broker", "all", "--all", "-o", "json").json) > 50
    assert run("configs", "list", "broker", "all", "no.such.*").code == 4


# -- groups


def test_a_broker_that_is_not_there_is_not_waited_for(run):
    ended = run("configs", "list", "broker", "4711")
    assert ended.code == 4
    assert "there is no broker 4711; there is: " in ended.err


def test_a_group_is_moved_by_time_after_a_look(run, hourly):
    group = unique("group")
    assert run("consume", hourly, "--group", group, "-o", "json").code == 0
    reset = ["groups", "reset", group, "--to", f"@{TIMES[3]}ms"]
    (looked,) = run(*reset, "--dry-run", "-o", "json").json
    assert (looked["from"], looked["to"], looked["timestamp"]) == (5, 3, TIMES[3])
    assert values(run("consume", hourly, "--group", group, "-o", "json")) == []
    assert run(*reset).code == 0
    assert values(run("consume", hourly, "--group", group, "-o", "json")) == ["v3", "v4"]
    assert run("groups", "reset", group, "--by=-1", "-o", "json").json[0]["to"] == 4
    ranged = run("groups", "reset", group, "--to", "10:05..")
    assert (ranged.code, ranged.out) == (2, "")
    assert "--to '10:05..' is a range: a group stores where to continue, not where to stop" in ranged.err
    assert "--to '10:05' goes to its beginning" in ranged.err
    beyond = run("groups", "reset", group, "--to-offset", "1000", "-o", "json")
    assert (beyond.json[0]["to"], f"{hourly}-0 ends at 5: offset 1000 is beyond its end" in beyond.err) == (5, True)


def test_a_new_group_can_be_put_where_it_shall_begin(run, hourly):
    group = unique("new")
    ended = run("groups", "reset", group, "--topic", hourly, "--to", f"@{TIMES[4]}ms", "-o", "json")
    assert (ended.code, ended.json[0]["from"], ended.json[0]["to"]) == (0, None, 4)
    assert values(run("consume", hourly, "--group", group, "-o", "json")) == ["v4"]


def test_lag_is_shown_in_records_and_seconds_and_can_alert(run, hourly):
    group = unique("group")
    assert run("consume", hourly, "--group", group, "--max", "3").code == 0
    (lag,) = run("groups", "lag", group, "-o", "json").json
    assert (lag["lag_records"], lag["next_timestamp"]) == (2, TIMES[3])
    assert lag["lag_seconds"] == pytest.approx((time.time() * 1000 - TIMES[3]) / 1000, abs=60)
    alert = run("groups", "lag", group, "--alert", "1h")
    assert (alert.code, "more than 1h behind" in alert.err) == (3, True)
    assert run("groups", "lag", group, "--alert", "3h").code == 0
    assert run("groups", "lag", group, "--watch", "--alert", "1h", "-o", "json").code == 3
    assert run("consume", hourly, "--group", group).code == 0
    assert run("groups", "lag", group, "-o", "json").json[0]["lag_seconds"] == 0


def test_a_member_that_has_not_committed_is_not_up_to_date(run, hourly, address):
    group = unique("group")

    async def looked_at_while_it_reads():
        async with Consumer(address, group=group) as consumer:
            await consumer.subscribe([hourly])
            await consumer.poll()
            words = ("groups", "lag", group)
            return [await asyncio.to_thread(run, *words, "--alert", alert) for alert in ("1h", "9h")]

    late, early = asyncio.run(looked_at_while_it_reads())
    assert (late.code, f"group {group} has no commit yet on {hourly}-0" in late.err) == (3, True), late
    assert ("no commit yet" in late.out, "up to 5" in late.out) == (True, True)
    assert early.code == 0


def test_an_alert_does_not_pass_because_nothing_was_looked_at(run, hourly):
    group = unique("group")
    assert run("consume", hourly, "--group", group).code == 0
    assert run("groups", "lag", group, "--topic", hourly, "--alert", "3h").code == 0
    for words in ((group,), ()):
        ended = run("groups", "lag", *words, "--topic", f"{hourly}x", "--alert", "3h")
        meant = f"there is no topic '{hourly}x'; do you mean {hourly!r}?"
        assert (ended.code, meant in ended.err) == (4, True), ended
    both = run("groups", "lag", group, "--topic", hourly, "--topic", f"{hourly}x", "--alert", "3h")
    assert (both.code, both.out) == (4, "")
    ended = run("groups", "lag", f"{group}x", "--alert", "3h")
    assert (ended.code, f"there is no group '{group}x'; do you mean {group!r}?" in ended.err) == (4, True), ended


def test_retention_tells_what_goes_next_and_what_other_settings_would_leave(run, hourly):
    (found,) = run("retention", hourly, "--with", "retention.ms=150m", "-o", "json").json["partitions"]
    assert (found["first_timestamp"], found["largest_timestamp"]) == (TIMES[0], TIMES[4])
    assert (found["next"]["cause"], found["next"]["from_timestamp"]) == ("time", TIMES[0] + 7 * 24 * HOUR_MS)
    assert found["next"]["until_timestamp"] == TIMES[4] + 7 * 24 * HOUR_MS
    assert (found["left"]["records"], found["left"]["first_timestamp"]) == (2, TIMES[3])
    shown = run("retention", hourly, "--with", "retention.ms=150m")
    assert (shown.code, "kept 1w (retention.ms)" in shown.out) == (0, True)


def test_groups_are_listed_described_and_deleted(run, hourly):
    group = unique("group")
    assert run("consume", hourly, "--group", group).code == 0
    assert group in {each["group"] for each in run("groups", "list", "-o", "json").json}
    assert run("groups", "describe", group, "-o", "json").json[0]["state"] == "Empty"
    assert run("groups", "delete", group, "--yes").code == 0
    for action in ("describe", "lag", "delete"):
        ended = run("groups", action, group)
        assert (ended.code, f"no group {group!r}" in ended.err) == (4, True)
    assert run("groups", "reset", group).code == 2


def test_a_share_group_is_reset_before_it_has_members(run, hourly):
    group = unique("share")
    reset = run("groups", "reset", group, "--share", "--topic", hourly, "--to", f"@{TIMES[3]}ms", "-o", "json").json
    assert [(each["from"], each["to"]) for each in reset] == [(None, 3)]
    assert {each["group"]: each["kind"] for each in run("groups", "list", "-o", "json").json}[group] == "share"
    described = run("groups", "describe", group, "-o", "json").json[0]
    assert (described["state"], described["protocol_type"]) == ("Empty", "share")
    (lag,) = run("groups", "lag", group, "-o", "json").json
    assert (lag["committed"], lag["lag_records"], lag["lag_seconds"] > 0) == (3, len(TIMES) - 3, True)
    assert run("groups", "reset", group, "--by=-1", "-o", "json").json[0]["to"] == 2
    assert run("groups", "delete", group, "--topic", hourly, "--yes").code == 0
    assert run("groups", "describe", group).code == 0
    assert run("groups", "delete", group, "--yes").code == 0
    assert run("groups", "describe", group).code == 4


# -- health and bench


def test_health(run, horolog, topic):
    ended = run("health", "-o", "json")
    assert (ended.code, ended.json["healthy"], ended.json["offline"]) == (0, True, [])
    assert ended.json["topics"] >= 1
    nobody = horolog("health", "--bootstrap", "127.0.0.1:1", "--timeout", "200ms")
    assert (nobody.code, nobody.out) == (5, "")
    assert "is the broker running there?" in nobody.err
    assert horolog("health", "--bootstrap", "127.0.0.1:http").code == 2


def test_bench_measures_and_leaves_nothing_behind(run):
    before = run("topics", "list", "-o", "json").json
    ended = run("bench", "produce", "consume", "lookup", "--records", "2000", "--lookups", "20", "-o", "json")
    assert ended.code == 0
    assert [each["part"] for each in ended.json["results"]] == ["produce", "consume", "lookup"]
    assert all(each["per_second"] > 0 for each in ended.json["results"])
    after = {each["topic"] for each in run("topics", "list", "-o", "json").json}
    assert not any(name.startswith("horolog-bench") for name in after)
    assert {each["topic"] for each in before} <= after
    assert run("bench", "nothing").code == 2
