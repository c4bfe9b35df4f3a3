"""`horolog topics copy` takes records of a time range into another topic, with keys, headers and times, or says why it cannot."""

import json

import pytest

from horolog.client.cli.copying import topic_copy
from horolog.client.cli.copying.topic_copy import Copying
from horolog.client.producing.producer import Producer
from horolog.client.values.errors import error_of
from horolog.protocol.errors import ErrorCode
from tests.support.names import unique
from tests.support.online_commands import TIMES

FIELDS = ("key", "value", "timestamp", "partition", "headers")


def records(run, topic):
    """Those of each partition in their order; partitions are read side by side."""
    found = [{name: one[name] for name in FIELDS} for one in run("consume", topic, "-o", "json").lines]
    return sorted(found, key=lambda one: one["partition"])


@pytest.fixture
def source(run, tmp_path):
    """Three partitions, with a record of each hour in turn, the second of them with a header."""
    name = unique("source")
    assert run("topics", "create", name, "-p", "3", "-c", "retention.ms=30d").code == 0
    lines = [{"key": f"k{n}", "value": f"v{n}", "timestamp": time, "partition": n % 3} for n, time in enumerate(TIMES)]
    lines[1]["headers"] = [{"key": "trace", "value": "7f"}]
    path = tmp_path / "source.json"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run("produce", name, path, "--format", "json").code == 0
    return name


def test_a_copy_has_the_times_and_places_of_its_source(run, source):
    target = unique("target")
    ended = run("topics", "copy", source, target)
    assert (ended.code, ended.out) == (0, f"5 records of {source} copied to {target}\n")
    assert records(run, target) == records(run, source)
    assert run("configs", "list", "topic", target, "retention.ms", "-o", "json").json[0]["value"] == "2592000000"
    again = run("topics", "copy", source, target, "-o", "json").json
    assert (again["created"], again["copied"], again["left_out"], again["error"]) == (False, 5, 0, None)
    assert again["bytes"] == 20


def test_a_range_of_times_and_a_condition_choose_records(run, source):
    target, since, until = unique("target"), f"@{TIMES[1]}ms", f"@{TIMES[4]}ms"
    range_of = ("--since", since, "--until", until)
    counted = run("topics", "copy", source, target, *range_of, "--dry-run", "-o", "json").json
    assert (counted["copied"], counted["created"]) == (3, False)
    assert f"3 records of {source} would be copied" in run("topics", "copy", source, target, *range_of, "--dry-run").out
    assert run("consume", target).code == 4
    some = run("topics", "copy", source, target, *range_of, "--where", "key != 'k2'")
    assert some.out == f"2 records of {source} copied to {target}, 1 left out\n"
    assert sorted(one["value"] for one in records(run, target)) == ["v1", "v3"]
    rest = run("topics", "copy", source, target, "--since", until, "--late", "-o", "json")
    assert rest.json["copied"] == 1


def test_times_may_be_now_and_partitions_by_key(run, source):
    target = unique("target")
    assert run("topics", "copy", source, target, "--times", "now", "--by-key", "-z", "gzip").code == 0
    found = records(run, target)
    assert sorted(one["value"] for one in found) == [f"v{n}" for n in range(5)]
    assert min(one["timestamp"] for one in found) > max(TIMES)


def test_a_target_with_fewer_partitions_has_its_own(run, source):
    target = unique("target")
    assert run("topics", "create", target, "-p", "1").code == 0
    ended = run("topics", "copy", source, target, "--max", "4")
    assert (ended.code, "has only 1 partition, so keys choose the partitions" in ended.err) == (0, True)
    assert {one["partition"] for one in records(run, target)} == {0}
    assert len(records(run, target)) == 4
    first = run("topics", "copy", source, target, "--partition", "0")
    assert (first.code, "keys choose" in first.err) == (0, False)


def test_from_the_end_there_is_nothing(run, source):
    target = unique("target")
    assert run("topics", "copy", source, target, "--since", "latest", "-o", "json").json["copied"] == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("{source}", "{source}"), 2, "the source and the target are the same topic"),
        (("none", "{source}"), 4, "there is no topic 'none'"),
        (("{source}", "none", "--no-create"), 4, "there is no topic 'none'"),
        (("{source}", "none", "--partition", "9"), 4, "has no partition 9"),
        (("{source}", "none", "--since", "soon"), 2, "soon"),
    ],
)
def test_what_cannot_be_copied(run, source, words, code, said):
    ended = run("topics", "copy", *(word.format(source=source) for word in words))
    assert (ended.code, said in ended.err) == (code, True), ended


def test_the_first_refused_record_ends_the_copy(run, source):
    target = unique("target")
    assert run("topics", "create", target, "-p", "3", "-c", "message.timestamp.before.max.ms=1000").code == 0
    ended = run("topics", "copy", source, target)
    assert (ended.code, f"{target} refused a record: " in ended.err) == (1, True)
    assert run("topics", "copy", source, target, "-o", "json").json["error"]


def test_an_error_of_the_source_ends_the_copy_too(run, source, monkeypatch):
    async def broken(*_, **__):
        raise error_of(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is gone")

    monkeypatch.setattr(Producer, "send", broken)
    ended = run("topics", "copy", source, unique("target"))
    assert (ended.code, "the disk is gone" in ended.err) == (1, True)


async def test_a_record_that_was_given_up_counts_as_an_error():
    import asyncio

    copying = Copying("t", None, by_key=False, times=topic_copy.KEEP, lens=None, most=None)
    given_up = asyncio.get_running_loop().create_future()
    given_up.cancel()
    copying._under_way = 1
    copying._settle(given_up, 5)
    assert isinstance(copying.error, asyncio.CancelledError)
    assert copying.is_over
