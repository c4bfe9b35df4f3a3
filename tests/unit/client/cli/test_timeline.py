"""`horolog timeline` counts records by time from indexes or lookups alone, and shows gaps, disorder and times of the future."""

import asyncio
import json

import pytest

from horolog.broker.log.indexes import time_index
from horolog.broker.log.storage import ReadOnlyStorage
from horolog.client.producing.producer import Producer
from horolog.testing import broker_in_thread
from tests.support import golden

T0 = 1_600_000_000_000
DAY_MS = 86_400_000


def folder(golden_root, tmp_path, name, stage="clean"):
    golden.Case(name, golden_root).copy(stage, tmp_path / "data")
    return tmp_path / "data"


def timeline(horolog, data, *words):
    ended = horolog("timeline", "topic", "--dir", data, "--tz", "UTC", "-o", "json", *words)
    assert ended.code == 0, ended
    return json.loads(ended.out)


def test_counts_are_those_of_the_records(golden_root, tmp_path, horolog):
    data = folder(golden_root, tmp_path, "v2-multiseg")
    times = [record.timestamp for record in golden.Case("v2-multiseg", golden_root).records()]
    document = timeline(horolog, data, "--bucket", "100ms")
    expected = {}
    for time in times:
        expected[time // 100 * 100] = expected.get(time // 100 * 100, 0) + 1
    found = {one["timestamp"]: one["records"] for one in document["buckets"] if one["records"]}
    assert document["records"] == len(times)
    assert set(found) == set(expected)
    assert all(abs(found[time] - expected[time]) <= 4 for time in found)  # one index interval of records


def test_no_log_is_read(golden_root, tmp_path, horolog, monkeypatch):
    storages = []

    class Counting(ReadOnlyStorage):
        def __init__(self):
            super().__init__()
            storages.append(self)

    monkeypatch.setattr("horolog.broker.log.storage.ReadOnlyStorage", Counting)
    data = folder(golden_root, tmp_path, "v2-multiseg")
    document = timeline(horolog, data)
    (storage,) = storages
    names = {path.rpartition("/")[2] for path in storage.bytes_read}
    assert len([name for name in names if name.endswith(".timeindex")]) == 5
    assert not [name for name in names if name.endswith(".log")]
    assert document["files_read"] == len(storage.bytes_read)
    assert document["bytes_read"] == sum(storage.bytes_read.values()) < 1000


def test_a_record_of_the_future_is_told_and_does_not_stretch_the_picture(golden_root, tmp_path, horolog):
    data = folder(golden_root, tmp_path, "v2-retention-blocked")
    document = timeline(horolog, data)
    assert document["future"]["records_at_most"] >= 1
    assert document["largest_timestamp"] == 4_102_444_800_000
    assert document["buckets"][-1]["timestamp"] < T0 + 1000
    assert document["disorder"][0]["behind_ms"] > 10**12
    assert "future: up to" in horolog("timeline", "topic", "--dir", data).out


def test_a_gap_is_told(tmp_path, horolog):
    data = tmp_path / "data"
    (data / "topic-0").mkdir(parents=True)
    (data / "topic-0" / f"{0:020}.log").touch()
    hours = [*range(10), *range(30, 40)]
    entries = b"".join(time_index.ENTRY.pack(T0 + hour * 3_600_000, 100 * number) for number, hour in enumerate(hours))
    (data / "topic-0" / f"{0:020}.timeindex").write_bytes(entries)
    document = timeline(horolog, data, "--bucket", "1h")
    assert len(document["gaps"]) == 1
    assert document["gaps"][0]["to_timestamp"] - document["gaps"][0]["from_timestamp"] >= 19 * 3_600_000
    shown = horolog("timeline", "topic", "--dir", data, "--bucket", "1h", "--tz", "UTC").out
    assert "┆ no records for 20h" in shown
    assert "gap: 2020-09-13T22:00:00.000+00:00 to 2020-09-14T18:00:00.000+00:00, 20h" in shown


def test_records_without_a_time_are_untold(golden_root, tmp_path, horolog):
    data = folder(golden_root, tmp_path, "v0-none-ct")
    document = timeline(horolog, data)
    assert (document["records"], document["buckets"]) == (0, [])
    assert document["partitions"][0]["records_untold"] == 55
    assert "topic has no records with a timestamp" in horolog("timeline", "topic", "--dir", data).out


def test_bounds_and_bucket_are_as_asked_for(golden_root, tmp_path, horolog):
    data = folder(golden_root, tmp_path, "v2-multiseg")
    document = timeline(horolog, data, "--since", f"@{T0 + 100}", "--until", f"@{T0 + 200}", "--bucket", "10ms")
    assert [one["timestamp"] for one in document["buckets"]] == list(range(T0 + 100, T0 + 200, 10))
    assert document["bucket_ms"] == 10
    assert 8 <= document["records"] <= 12


def test_text_has_a_line_per_bucket_in_the_width(golden_root, tmp_path, horolog, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    data = folder(golden_root, tmp_path, "v2-multiseg")
    lines = horolog("timeline", "topic", "--dir", data, "--tz", "Asia/Tokyo", "--bucket", "100ms").out.splitlines()
    assert lines[0].startswith("2020-09-13 21:26:40.0")
    assert all(len(line) <= 60 for line in lines[:6])
    assert "60 records, 100ms a bar, from time indexes" in lines


def test_a_picture_is_written(golden_root, tmp_path, horolog):
    data = folder(golden_root, tmp_path, "v2-multiseg")
    target = tmp_path / "topic.png"
    assert horolog("timeline", "topic", "--dir", data, "--png", target).code == 0
    assert target.read_bytes().startswith(b"\x89PNG")
    assert horolog("timeline", "topic", "--dir", data, "--png", tmp_path / "no" / "folder.png").code == 4


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["none"], 4),
        (["topic", "--partition", "7"], 4),
        (["topic", "--since", "soon"], 2),
        (["topic", "--since", "2020-09-14", "--until", "2020-09-13"], 2),
        (["topic", "--bucket", "0s"], 2),
        (["topic", "--bucket", "1ms", "--since", "2020-09-13", "--until", "2020-09-14"], 2),
        ([], 2),
    ],
)
def test_what_cannot_be_drawn(golden_root, tmp_path, horolog, words, code):
    data = folder(golden_root, tmp_path, "v2-multiseg")
    assert horolog("timeline", "--dir", data, *words).code == code


def test_no_folder(horolog, tmp_path):
    assert horolog("timeline", "topic", "--dir", tmp_path / "nothing").code == 4


@pytest.fixture(scope="module")
def ours():
    """Ten records, a minute apart, and one of the future."""

    async def write(bootstrap):
        async with Producer(bootstrap, on_expired=None) as producer:
            for minute in range(10):
                await producer.send("t", b"v", timestamp_ms=T0 + 60_000 * minute)
                await producer.flush()
            await producer.send("t", b"v", timestamp_ms=4_102_444_800_000)

    with broker_in_thread(log_retention_ms=-1, log_message_timestamp_after_max_ms=2**62) as broker:
        broker.create_topic("t")
        broker.create_topic("empty")
        asyncio.run(write(broker.bootstrap))
        yield broker.bootstrap


def test_a_broker_is_asked_for_the_borders_of_the_buckets(horolog, ours):
    words = ("--since", f"@{T0}ms", "--for", "10m", "--bucket", "1m", "-b", ours, "--tz", "UTC")
    found = horolog("timeline", "t", *words, "-o", "json").json
    assert (found["source"], found["bucket_ms"], found["records"]) == ("lookups", 60_000, 10)
    assert {one["records"] for one in found["buckets"]} <= {0, 1}
    assert found["future"]["records_at_most"] == 1
    assert found["largest_timestamp"] == 4_102_444_800_000
    shown = horolog("timeline", "t", *words).out
    assert "10 records, 1m a bar, from lookups" in shown
    assert "future: up to 1 record later than now" in shown
    assert horolog("timeline", "t", "-b", ours, "-o", "json").json["records"] == 10


def test_a_topic_without_records_has_no_bars(horolog, ours):
    assert horolog("timeline", "empty", "-b", ours).out == "empty has no records with a timestamp\n"
    found = horolog("timeline", "empty", "-b", ours, "-o", "json").json
    assert (found["bucket_ms"], found["buckets"], found["gaps"], found["largest_timestamp"]) == (None, [], [], None)


def test_much_disorder_is_cut_short(horolog, tmp_path):
    folder = tmp_path / "data" / "topic-0"
    folder.mkdir(parents=True)
    for number in range(8):
        entries = [(T0 + DAY_MS * (20 - 2 * number), 0), (T0 + DAY_MS * 30, 9)]
        (folder / f"{10 * number:020}.log").touch()
        data = b"".join(time_index.ENTRY.pack(*entry) for entry in entries)
        (folder / f"{10 * number:020}.timeindex").write_bytes(data)
    shown = horolog("timeline", "topic", "--dir", tmp_path / "data", "--bucket", "1d", "--tz", "UTC").out
    assert "disorder: 2 more segments begin earlier than those before them" in shown
