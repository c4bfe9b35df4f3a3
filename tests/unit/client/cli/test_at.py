"""`horolog at` beside a broker in this process."""

import asyncio
import shutil
from datetime import UTC, datetime

import pytest

from horolog.client.cli import at
from horolog.client.producing.producer import Producer
from horolog.protocol.records.head import heads_in
from horolog.testing import broker_in_thread
from tests.support.command import run_typed

DAY_MS = 86_400_000
FIVE_PAST_TEN = int(datetime(2026, 11, 17, 10, 5, tzinfo=UTC).timestamp() * 1000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("at") / "data"


@pytest.fixture(scope="module")
def address(folder):
    async def write(bootstrap):
        async with Producer(bootstrap) as producer:
            for value, partition, after_ms in [
                (b"ready", 0, 0),
                (b"paid", 1, 3500),
                (b"\x1b[31mred", 1, 300),
                (None, 0, 60_000),
                (b"far", 1, 120_000),
            ]:
                key = b"k%d" % partition
                await producer.send("t", value, key, timestamp_ms=FIVE_PAST_TEN + after_ms, partition=partition)
                await producer.flush()

    with broker_in_thread(clock=FIVE_PAST_TEN + DAY_MS, storage=folder, log_retention_ms=-1) as broker:
        broker.create_topic("t", 2)
        asyncio.run(write(broker.bootstrap))
        yield broker.bootstrap


@pytest.fixture
def run(capsys, address):
    def run_there(*words):
        return run_typed(capsys, "at", *words, "--bootstrap", address, "--tz", "UTC")

    return run_there


def test_a_minute_is_shown_in_its_order_with_what_came_late(run):
    ended = run("t", "2026-11-17 10:05")
    assert ended.out.splitlines() == [
        "2026-11-17T10:05:00.000+00:00                  t-0@0  k0  ready",
        "2026-11-17T10:05:00.300+00:00      +3.2s late  t-1@1  k1  \\x1b[31mred",
        "2026-11-17T10:05:03.500+00:00                  t-1@0  k1  paid",
    ]
    assert ended.err.splitlines() == [
        "horolog at: 2026-11-17 10:05 is 2026-11-17T10:05:00.000+00:00 to 2026-11-17T10:06:00.000+00:00",
        "horolog at: 1 of 3 records came late, by up to 3s200ms",
    ]
    assert ended.code == 0


def test_as_json_each_record_has_its_lateness(run):
    ended = run("t", "2026-11-17 10:05", "--until", "10:07", "-o", "json")
    assert [(each["value"], each["late_ms"]) for each in ended.lines] == [
        ("ready", 0),
        ("\x1b[31mred", 3200),
        ("paid", 0),
        (None, 0),
    ]


@pytest.mark.parametrize(
    ("words", "offsets"),
    [
        (["--for", "2s"], [(0, 0), (1, 1)]),
        (["--around", "1m"], [(0, 0), (1, 1), (1, 0)]),
        (["--for", "1h", "--key", "k0"], [(0, 0), (0, 1)]),
        (["--for", "1h", "--grep", "^pa|RED"], [(1, 0)]),
        (["--for", "1h", "--grep", "^*paid$?"], [(1, 0)]),
        (["--for", "1h", "--grep", "k1"], [(1, 1), (1, 0), (1, 2)]),
        (["--for", "1h", "--partition", "0"], [(0, 0), (0, 1)]),
        (["--for", "1h", "--max", "2"], [(0, 0), (1, 1)]),
        (["--for", "1h", "--look-ahead", "all"], [(0, 0), (1, 1), (1, 0), (0, 1), (1, 2)]),
    ],
)
def test_what_is_asked_for(run, words, offsets):
    ended = run("t", "17 Nov 2026 10:05", *words, "-o", "json")
    assert [(each["partition"], each["offset"]) for each in ended.lines] == offsets
    assert ("may be more" in ended.err) == ("--max" in words)
    assert ("of 5 records\n" in ended.err) == bool({"--key", "--grep"} & set(words))


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["--format", "%p/%o %T %k=%s\\n"], [f"0/0 {FIVE_PAST_TEN} k0=ready", f"1/0 {FIVE_PAST_TEN + 3500} k1=paid"]),
        (["--format", "raw"], ["ready", "paid"]),
        (["--format", "raw", "--value-format", "hex"], ["ready", "paid"]),
        (["--format", "%s\\n", "--value-format", "hex"], [b"ready".hex(), b"paid".hex()]),
    ],
)
def test_records_are_written_in_a_format(run, words, lines):
    assert run("t", "2026-11-17 10:05", "--grep", "ready|paid", *words).out.splitlines() == lines


def test_json_is_json_by_either_name(run):
    named, asked = (run("t", "2026-11-17 10:05", *words).lines for words in (["--format", "json"], ["-o", "json"]))
    assert named == asked
    assert named[1]["late_ms"] == 3200
    refused = run("t", "10:05", "--format", "text", "-o", "json")
    assert (refused.code, refused.out) == (2, "")


@pytest.mark.parametrize(
    "words",
    [
        ["2026-11-17 10:05"],
        ["2026-11-17 10:05", "--for", "1h", "-o", "json"],
        ["earliest..latest", "--partition", "1", "--isolation", "read_uncommitted"],
        ["2026-11-17 10:05", "--for", "1h", "--grep", "k1", "--format", "%o\\n"],
        ["2026-11-16"],
    ],
)
def test_a_folder_is_read_as_its_broker_shows_it(run, capsys, folder, words):
    online = run("t", *words)
    offline = run_typed(capsys, "at", "t", *words, "--dir", folder, "--tz", "UTC", "-b", "127.0.0.1:1")
    assert (offline.code, offline.out, offline.err) == (online.code, online.out, online.err)


def test_a_folder_that_cannot_be_read_is_refused_with_a_sentence(capsys, run, folder, tmp_path):
    run("t", "10:05")
    for topic, place, said in (("t", tmp_path / "gone", "is not a folder"), ("u", folder, "no partition of topic u")):
        ended = run_typed(capsys, "at", topic, "10:05", "--dir", place)
        assert (ended.code, ended.out) == (4, "")
        assert said in ended.err


def test_damage_in_a_folder_is_warned_of(capsys, run, folder, tmp_path):
    run("t", "10:05")
    copy = shutil.copytree(folder, tmp_path / "copy")
    (log,) = (copy / "t-1").glob("*.log")
    data = bytearray(log.read_bytes())
    data[list(heads_in(bytes(data)))[1].position - 2] ^= 0xFF
    log.write_bytes(data)
    ended = run_typed(capsys, "at", "t", "2026-11-17 10:05", "--dir", copy, "--tz", "UTC")
    assert "damaged bytes of t" in ended.err
    assert "ready" in ended.out


def test_nothing_found_is_said(run):
    ended = run("t", "2026-11-16 10:05")
    assert (ended.code, ended.out) == (0, "")
    assert "no records" in ended.err
    assert "in the future" in run("t", "2126-11-16 10:05").err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["t", "nonsense"], "TIME: 'nonsense': expected a time"),
        (["t", "10:05", "--for", "5m", "--around", "5m"], "--for and --around both set the end"),
        (["t", "10:05", "--for", "0s"], "--for: the range is empty"),
        (["t", "10:05..10:10", "--around", "5m"], "cannot have another end"),
        (["t", "10:05", "--grep", "("], "is not a regular expression"),
        (["t", "10:05", "--look-ahead", "far"], "expected a duration (1h), a size (64MiB) or all"),
    ],
)
def test_what_makes_no_sense_is_refused(run, words, said):
    ended = run(*words)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_a_topic_that_is_not_there(run):
    assert run("u", "10:05").code == 4


@pytest.mark.parametrize(
    ("late_ms", "text"),
    [(0, ""), (250, "+250ms late"), (3240, "+3.2s late"), (3_660_000, "+1h1m late")],
)
def test_lateness_is_short(late_ms, text):
    assert at.lateness(late_ms) == text
