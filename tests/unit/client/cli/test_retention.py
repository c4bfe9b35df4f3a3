"""`horolog retention` beside a broker in this process, and on the folder that it wrote."""

import asyncio

import pytest

from horolog.client.cli import retention
from horolog.client.producing.producer import Producer
from horolog.commands.errors import UsageError
from horolog.testing import broker_in_thread
from tests.support.command import run_typed
from tests.support.online_commands import HOUR_MS, TIMES

DAY_MS = 86_400_000
NOW_MS = 1_790_000_000_000


class Setup:
    def __init__(self, capsys, address, folder):
        self._capsys = capsys
        self._address = address
        self.folder = folder

    def broker(self, *words):
        return run_typed(self._capsys, "retention", *words, "--bootstrap", self._address, "--tz", "UTC")

    def files(self, *words):
        return run_typed(self._capsys, "retention", *words, "--dir", self.folder, "--tz", "UTC")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A topic of eight days, a segment for each; and others."""
    folder = tmp_path_factory.mktemp("data")

    async def write(bootstrap):
        async with Producer(bootstrap) as producer:
            for day in range(8):
                for _ in range(10):
                    time_ms = NOW_MS - (8 - day) * DAY_MS
                    await producer.send("days", b"v" * 1000, timestamp_ms=time_ms, partition=0)
                await producer.flush()
            await producer.send("compacted", b"v", b"k", timestamp_ms=NOW_MS)
            await producer.send("future", b"v", timestamp_ms=NOW_MS + 400 * DAY_MS)
            await producer.flush()

    with broker_in_thread(clock=NOW_MS, storage=folder, log_retention_check_interval_ms=10**9) as broker:
        broker.create_topic("days", 2, retention_ms=10 * DAY_MS, segment_ms=DAY_MS // 2)
        broker.create_topic("compacted", 1, cleanup_policy="compact")
        broker.create_topic("future", 1, message_timestamp_after_max_ms=2**62)
        asyncio.run(write(broker.bootstrap))
        yield broker.bootstrap, str(folder)


@pytest.fixture
def setup(capsys, place, monkeypatch):
    """The same, at that time."""
    from horolog.commands import console

    monkeypatch.setattr(console.Console.__init__, "__defaults__", (None, None, None, None, lambda: NOW_MS))
    return Setup(capsys, *place)


def test_a_broker_tells_bounds(setup):
    ended = setup.broker("days", "-o", "json")
    first, empty = ended.json["partitions"]
    assert first["next"] == {
        "cause": "time",
        "from_timestamp": NOW_MS + 2 * DAY_MS,
        "until_timestamp": NOW_MS + 2 * DAY_MS + DAY_MS // 2,
        "up_to_offset": None,
        "bytes": None,
    }
    assert "use --dir to read the files" in first["unknown"][0]
    assert (empty["next"], empty["unknown"], first["end_offset"]) == (None, [], 80)
    shown = setup.broker("days").out
    assert shown.startswith("days: kept 1w3d (retention.ms)\n")
    assert "from offset 0, by time" in shown
    assert "unknown: partition 0: Kafka's protocol does not show where the first segment ends" in shown


def test_files_tell_exactly(setup):
    ended = setup.files("days", "--with", "retention.ms=5d", "-o", "json")
    first, empty = ended.json["partitions"]
    assert first["next"]["from_timestamp"] == first["next"]["until_timestamp"] == NOW_MS + 2 * DAY_MS + 1
    assert first["next"]["up_to_offset"] == 10
    assert first["next"]["bytes"] > 10_000
    assert (first["first_timestamp"], first["largest_timestamp"]) == (NOW_MS - 8 * DAY_MS, NOW_MS - DAY_MS)
    assert first["left"] == {
        "first_offset": 30,
        "records": 50,
        "bytes": first["bytes"] * 5 // 8,
        "first_timestamp": None,
        "exact": True,
    }
    assert empty["left"]["records"] == 0
    shown = setup.files("days", "--with", "retention.ms=5d").out
    assert "offsets 0 to 9, by time" in shown
    assert "with retention.ms=5 days:" in shown


def test_what_is_too_much_goes_at_the_next_check(setup):
    ended = setup.files("days", "--with", "retention.bytes=30KiB", "-o", "json")
    left = ended.json["partitions"][0]["left"]
    assert left["first_offset"] in {40, 50}
    over_the_wire = setup.broker("days", "--with", "retention.bytes=30KiB", "-o", "json").json["partitions"][0]["left"]
    assert abs(over_the_wire["first_offset"] - left["first_offset"]) <= 10
    assert "whole segments are deleted" in setup.broker("days", "--with", "retention.bytes=30KiB").out


def test_what_keeps_records(setup):
    compacted = setup.broker("compacted")
    assert compacted.out.startswith("compacted: compacted: no record is deleted by age or size\n")
    assert "kept: partition 0: compaction keeps the last record of each key" in compacted.out
    for ended in (setup.broker("future"), setup.files("future")):
        assert "57w1d in the future" in ended.out
    assert "all records are in the active segment" in setup.files("future").out
    everlasting = setup.broker("future", "--with", "retention.ms=-1")
    assert everlasting.code == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nothing"], 4, "nothing"),
        (["days", "--with", "retention.ms"], 2, "expected KEY=VALUE"),
        (["days", "--with", "compression.type=zstd"], 2, "not a setting of retention"),
        (["days", "--with", "retention.ms=soon"], 2, "retention.ms='soon'"),
        (["days", "--with", "retention.bytes=much"], 2, "is not a size"),
    ],
)
def test_what_makes_no_sense_is_refused(setup, words, code, said):
    for ended in (setup.broker(*words), setup.files(*words)):
        assert (ended.code, ended.out) == (code, "")
        assert said in ended.err


def test_a_folder_that_is_none(setup, capsys):
    assert run_typed(capsys, "retention", "days", "--dir", setup.folder + "/none").code == 4


def test_sizes_and_times_of_settings():
    assert retention.changes_of(["retention.ms=7d", "retention.bytes=2GiB", "cleanup.policy=compact"]) == {
        "retention.ms": str(7 * DAY_MS),
        "retention.bytes": str(2 << 30),
        "cleanup.policy": "compact",
    }
    assert retention.changes_of(["retention.ms=-1"]) == {"retention.ms": "-1"}
    assert retention.changes_of(None) == {}
    with pytest.raises(UsageError):
        retention.changes_of(["retention.bytes=5 days"])


# -- on our broker and on a real Kafka


def test_retention_tells_what_goes_next_and_what_other_settings_would_leave(run, hourly):
    (found,) = run("retention", hourly, "--with", "retention.ms=150m", "-o", "json").json["partitions"]
    assert (found["first_timestamp"], found["largest_timestamp"]) == (TIMES[0], TIMES[4])
    assert (found["next"]["cause"], found["next"]["from_timestamp"]) == ("time", TIMES[0] + 7 * 24 * HOUR_MS)
    assert found["next"]["until_timestamp"] == TIMES[4] + 7 * 24 * HOUR_MS
    assert (found["left"]["records"], found["left"]["first_timestamp"]) == (2, TIMES[3])
    shown = run("retention", hourly, "--with", "retention.ms=150m")
    assert (shown.code, "kept 1w (retention.ms)" in shown.out) == (0, True)
