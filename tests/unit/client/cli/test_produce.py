"""`horolog produce` as a user types it: lines become records, and a refused line is named."""

import io
import subprocess
import sys

import pytest

from horolog.testing import broker_in_thread, registry_in_thread
from tests.support.names import unique
from tests.support.online_commands import HOUR_MS, NOW_MS, TIMES, values
from tests.support.style import PROJECT


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
    assert "not JSON" in refused[6]
    assert ended.json["written"] == 4
    assert "timestamp" in refused[3].lower()
    assert values(run("consume", name, "-o", "json")) == ["0", "1", "3", "4"]


def test_stopping_at_a_bad_line_sends_nothing_behind_it(run, topic, tmp_path):
    path = tmp_path / "lines"
    path.write_text('{"value": "first"}\nbad\n{"value": "behind"}\n')
    ended = run("produce", topic, path, "--format", "json")
    assert ended.code == 1
    assert f"{path}, line 2: it is not JSON" in ended.err
    assert "later lines were not sent" in ended.err
    assert values(run("consume", topic, "-o", "json")) == ["first"]


def test_standard_input_and_output_of_a_real_process(address, topic):
    command = [sys.executable, "-m", "horolog"]
    settings = {"cwd": PROJECT, "capture_output": True, "timeout": 60}
    data = b"".join(b"line %d \xff\n" % number for number in range(20_000))
    subprocess.run([*command, "produce", topic, "-b", address], input=data, check=True, **settings)
    read = subprocess.run([*command, "consume", topic, "--format", "raw", "-b", address], check=True, **settings)
    assert read.stdout == data


@pytest.fixture(scope="module")
def ours():
    with broker_in_thread(log_retention_ms=3_600_000) as broker:
        broker.create_topic("t")
        broker.create_topic("seconds")
        yield broker


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--format", "json", "--key-separator", ":"), "--key-separator is for lines; in JSON the key is the member"),
        (("--key-separator", ""), "--key-separator must not be empty"),
        (("-H", "nothing"), "--header 'nothing': expected NAME=VALUE"),
        (("--timestamp", "@1700000000"), "--timestamp @1700000000: the timestamp 1700000000 looks like seconds"),
        (("--timestamp", "soon"), "--timestamp: 'soon'"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_sent(horolog, ours, monkeypatch, words, said):
    monkeypatch.setattr("sys.stdin", io.StringIO("x\n"))
    ended = horolog("produce", "t", *words, "-b", ours.bootstrap)
    assert (ended.code, ended.out, said in ended.err) == (2, "", True), ended
    assert ours.records("t") == []


def test_a_unit_in_doubt_is_asked_for_at_the_terminal(horolog, ours, tmp_path, monkeypatch):
    path = tmp_path / "lines"
    path.write_text("one\n")
    monkeypatch.setattr("sys.stdin", Terminal("s\n"))
    ended = horolog("produce", "seconds", path, "--timestamp", "@1700000000", "-b", ours.bootstrap, "--tz", "UTC")
    assert ended.code == 0, ended
    assert "Which unit is it? [s/ms/N]" in ended.err
    assert "--timestamp is 2023-11-14T22:13:20.000+00:00" in ended.err
    assert ours.records("seconds")[0].timestamp_ms == 1_700_000_000_000
    assert "warning: topic seconds keeps records for 1h" in ended.err


def test_a_topic_is_made_and_files_follow_each_other_until_one_is_bad(horolog, ours, tmp_path):
    for name, text in (("a", '{"value": "1"}\n'), ("b", "bad\n"), ("c", '{"value": "3"}\n')):
        (tmp_path / name).write_text(text)
    files = [tmp_path / name for name in "abc"]
    ended = horolog("produce", "made", *files, "--create", "--format", "json", "-b", ours.bootstrap)
    assert ended.code == 1
    assert [one.value for one in ours.records("made")][:1] == [b"1"]
    many = tmp_path / "many"
    many.write_text("bad\n" * 30)
    ended = horolog("produce", "made", many, "--format", "json", "--on-error", "continue", "-b", ours.bootstrap)
    assert "more" in ended.err.splitlines()[-2]


def test_values_are_encoded_by_the_schema_of_a_registry(run, topic, tmp_path):
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
    path = tmp_path / "values.json"
    path.write_text('{"id": 7}\n{"id": "x"}\n')
    with registry_in_thread() as registry:
        registry.register(f"{topic}-value", schema)
        registry.register(f"{topic}-key", '"string"')
        words = ("--registry", registry.url, "--key-subject", f"{topic}-key", "-k", "ours", "--on-error", "continue")
        ended = run("produce", topic, path, *words)
        assert (ended.code, "line 2: field id: 'x' is not a whole number" in ended.err) == (1, True), ended
        found = run("consume", topic, "--registry", registry.url, "-o", "json")
        assert [(one["key"], one["value"], one["value_schema"]) for one in found.lines] == [
            ("ours", {"id": 7}, "R (1)")
        ]
        path.write_text(found.out)
        again = ("--format", "json", "--registry", registry.url)
        assert run("produce", topic, path, *again).code == 0
        values = [one["value"] for one in run("consume", topic, "--registry", registry.url, "-o", "json").lines]
        assert values == [{"id": 7}] * 2
