"""`horolog topics describe` shows size per day, of a broker that tells its segments and of the folder that it writes."""

import asyncio

import pytest

from horolog.client.producing.producer import Producer
from horolog.testing import broker_in_thread
from tests.support.command import run_typed

DAY_MS = 86_400_000
NOW_MS = 1_790_000_000_000


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Records of ten days, larger from day to day; address and folder."""
    folder = tmp_path_factory.mktemp("data")

    async def write(bootstrap):
        async with Producer(bootstrap) as producer:
            for day in range(10):
                await producer.send("t", b"v" * (1000 + 1000 * day), timestamp_ms=NOW_MS - (9 - day) * DAY_MS)
                await producer.flush()

    with broker_in_thread(clock=NOW_MS, storage=folder, horolog_http_listen="127.0.0.1:0") as broker:
        broker.create_topic("t", 1, index_interval_bytes=100)
        asyncio.run(write(broker.bootstrap))
        yield broker.bootstrap, str(folder)


@pytest.fixture(autouse=True)
def at_that_time(monkeypatch):
    from horolog.commands import console

    monkeypatch.setattr(console.Console.__init__, "__defaults__", (None, None, None, None, lambda: NOW_MS))


def described(capsys, *words):
    ended = run_typed(capsys, "topics", "describe", "t", *words, "--tz", "UTC", "-o", "json")
    assert ended.code == 0, ended
    return ended.json[0]


def test_a_broker_and_its_folder_say_the_same(capsys, place):
    address, folder = place
    online, files = described(capsys, "-b", address), described(capsys, "--dir", folder)
    assert online["bytes_by_day"] == files["bytes_by_day"] == "exact"
    assert online["days"] == files["days"]
    sizes = [one["size_bytes"] for one in online["days"]]
    assert len(sizes) == 8
    assert sizes[1:] == sorted(sizes[1:])
    assert [one["records"] for one in online["days"]] == [3] + [1] * 7
    assert online["days"][0]["from_ms"] is None
    kept = ("partition", "first_offset", "end_offset", "bytes", "first_timestamp", "largest_timestamp")
    assert [online["partitions"][0][key] for key in kept] == [files["partitions"][0][key] for key in kept]
    assert len(described(capsys, "--dir", folder, "--days", "30")["days"]) == 10
    assert described(capsys, "-b", address, "--days", "0")["days"] == []


def test_days_are_shown(capsys, place):
    for words in (("-b", place[0]), ("--dir", place[1])):
        shown = run_typed(capsys, "topics", "describe", "t", *words, "--tz", "UTC", "--days", "2").out
        assert "DAY" in shown
        assert "before 20" in shown


@pytest.mark.parametrize(("words", "code"), [(("--dir", "/no/such"), 4), (("-b", "x", "--http", "nonsense"), 2)])
def test_what_makes_no_sense_is_refused(capsys, place, words, code):
    given = [place[0] if one == "x" else one for one in words]
    assert run_typed(capsys, "topics", "describe", "t", *given).code == code
    assert run_typed(capsys, "topics", "describe", "nothing", "--dir", place[1]).code == 4
