"""`horolog topics` as a user types it; `describe` shows size per day, of a broker and of the folder that it writes."""

import asyncio
import io

import pytest

from horolog.client.producing.producer import Producer
from horolog.testing import broker_in_thread
from tests.support.command import run_typed
from tests.support.names import unique
from tests.support.online_commands import TIMES, values

DAY_MS = 86_400_000
NOW_MS = 1_790_000_000_000


@pytest.fixture(scope="module")
def written(tmp_path_factory):
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


@pytest.fixture
def place(written, monkeypatch):
    """The same, at that time."""
    from horolog.commands import console

    monkeypatch.setattr(console.Console.__init__, "__defaults__", (None, None, None, None, lambda: NOW_MS))
    return written


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


# -- on our broker and on a real Kafka


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
    assert any(one in described["bytes_by_day"] for one in ("no HTTP port", "Kafka does not expose"))
    shown = run("topics", "describe", hourly, "--tz", "UTC")
    assert "\nDAY " in shown.out
    assert "bytes by day are estimates" in shown.err
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


@pytest.fixture(scope="module")
def ours():
    with broker_in_thread() as broker:
        broker.create_topic("t", 2)
        yield broker.bootstrap


@pytest.fixture
def at_ours(horolog, ours):
    return lambda *words: horolog("topics", *words, "-b", ours)


def test_topics_are_listed_as_a_table(at_ours):
    rows = [line.split() for line in at_ours("list").out.splitlines()]
    assert rows[0] == ["TOPIC", "PARTITIONS", "REPLICAS"]
    assert ["t", "2", "1"] in rows
    assert len(at_ours("list", "none*").out.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("create", "bad name", "worse name"), 1, "bad name"),
        (("alter", "t", "--partitions", "1"), 1, "INVALID_PARTITIONS"),
        (("trim", "t", "--offset", "99", "--yes"), 1, "t-0 ends at 0, before offset 99"),
        (("trim", "t", "--offset", "0"), 2, "cannot be undone"),
        (("trim", "t", "--offset", "0", "--before", "now"), 2, "give one of them"),
        (("delete", "none", "--yes"), 4, "there is no topic 'none'"),
        (("describe", "t", "--dir", "/"), 4, "no partition of topic t is in /"),
    ],
)
def test_what_cannot_be_is_said(at_ours, monkeypatch, words, code, said):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    ended = at_ours(*words)
    assert (ended.code, said in ended.err + ended.out) == (code, True), ended


def test_settings_are_altered_alone_and_taken_back(at_ours):
    assert at_ours("alter", "t", "-c", "retention.ms=7").code == 0
    assert at_ours("describe", "t", "-o", "json").json[0]["configs"] == {"retention.ms": "7"}
    assert at_ours("alter", "t", "--delete-config", "retention.ms").code == 0
    assert at_ours("describe", "t", "-o", "json").json[0]["configs"] == {}


@pytest.mark.parametrize(("answer", "is_there"), [("n\n", True), ("y\n", False)])
def test_a_yes_at_the_terminal_is_asked_for(at_ours, monkeypatch, answer, is_there):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    name = unique("asked")
    assert at_ours("create", name).code == 0
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert at_ours("trim", name, "--offset", "0").code == 1
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert at_ours("delete", name).code == (1 if is_there else 0)
    assert (name in at_ours("list").out) is is_there
