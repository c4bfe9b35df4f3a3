"""`horolog groups` as a user types it: groups are listed, described, moved by time and watched for lag."""

import asyncio
import io
import time

import pytest

from horolog import Admin, Client, Consumer, Producer, TopicPartition
from horolog.client.cli import groups
from horolog.protocol.messages.streams_groups import StreamsGroupHeartbeatRequest
from horolog.testing import broker_in_thread
from tests.support.names import unique
from tests.support.online_commands import TIMES, values
from tests.support.streams_world import counting


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
    assert "use --to '10:05' for its start" in ranged.err
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
    without = run("groups", "lag", group)
    assert (without.code, f"horolog groups lag: group {group!r} has no committed offsets\n" in without.err) == (
        0,
        True,
    ), without


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


@pytest.fixture(scope="module")
def ours():
    """Topic t with three records, group g that has read one, and share group s."""

    async def write(bootstrap):
        async with Producer(bootstrap) as producer:
            for _ in range(3):
                await producer.send("t", b"v")
        async with Admin(bootstrap) as admin:
            await admin.alter_group_offsets("g", {TopicPartition("t", 0): 1})
            await admin.alter_share_group_offsets("s", {TopicPartition("t", 0): 1})

    with broker_in_thread() as broker:
        broker.create_topic("t")
        broker.create_topic("u")
        asyncio.run(write(broker.bootstrap))
        yield broker.bootstrap


@pytest.fixture
def at_ours(horolog, ours):
    return lambda *words: horolog("groups", *words, "-b", ours)


def test_groups_are_shown_as_tables(at_ours):
    rows = [line.split() for line in at_ours("list").out.splitlines()]
    assert rows[0] == ["GROUP", "STATE", "KIND"]
    assert [row[:2] for row in rows[1:3]] == [["g", "Empty"], ["s", "Empty"]]
    assert [line.split()[0] for line in at_ours("list", "g*").out.splitlines()[1:]] == ["g"]
    assert at_ours("describe", "g").out == "g  Empty  classic group\nno members\n"
    assert [line.split()[:4] for line in at_ours("lag").out.splitlines()[1:]] == [
        [group, "t", "0", "1"] for group in "gs"
    ]
    assert at_ours("lag", "g", "--topic", "t").code == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("reset", "g", "--to", ".."), 2, "give one time"),
        (("reset", "g"), 2, "the new position is missing; give one of --to, --to-offset and --by"),
        (
            ("reset", "g", "--to", "latest", "--to-offset", "1"),
            2,
            "the new position is given more than once; give one of --to, --to-offset and --by",
        ),
        (("reset", "g", "--by", "some"), 2, "--by 'some': expected a whole number"),
        (
            ("reset", "g", "--to", "latest", "--partition", "0"),
            2,
            "--partition needs a single topic; name it with --topic",
        ),
        (("reset", "none", "--to", "latest"), 4, "there is no group 'none'"),
        (("delete", "g"), 2, "cannot be undone"),
        (("delete", "none", "--yes"), 4, "there is no group 'none'"),
    ],
)
def test_what_cannot_be_is_refused(at_ours, monkeypatch, words, code, said):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    ended = at_ours(*words)
    assert (ended.code, said in ended.err) == (code, True), ended


def test_a_group_is_reset_in_one_partition(at_ours):
    reset = ("reset", "g", "--topic", "t", "--partition", "0")
    assert at_ours(*reset, "--to-offset", "2", "-o", "json").json[0]["to"] == 2
    ended = at_ours(*reset, "--to", "latest", "--dry-run")
    assert "nothing was changed (--dry-run)" in ended.err
    assert at_ours(*reset, "--by=-1").code == 0
    assert at_ours("lag", "g", "-o", "json").json[0]["committed"] == 1


def test_offsets_of_a_topic_are_deleted_alone(at_ours):
    for group in ("g2", "g3"):
        assert at_ours("reset", group, "--topic", "t", "--topic", "u", "--to", "earliest").code == 0
    ended = at_ours("delete", "g2", "--topic", "t", "--yes", "-o", "json")
    assert ended.json == [{"group": "g2", "deleted": True, "topics": ["t"]}]
    assert [each["topic"] for each in at_ours("lag", "g2", "-o", "json").json] == ["u"]
    assert at_ours("delete", "g2", "g3", "--yes").code == 0


def test_offsets_of_single_partitions_are_deleted(at_ours, monkeypatch):
    assert at_ours("reset", "g4", "--topic", "t", "--topic", "u", "--to", "earliest").code == 0
    words = ("delete-offsets", "g4", "--topic", "t")
    refused = at_ours(*words)
    assert (refused.code, "--yes" in refused.err) == (2, True)
    missing = at_ours(*words, "--partition", "7", "--yes")
    assert (missing.code, "has no committed offsets there" in missing.err) == (4, True)
    assert at_ours(*words, "--partition", "0", "--yes", "-o", "json").json == [
        {"topic": "t", "partition": 0, "deleted": 0}
    ]
    assert at_ours("delete-offsets", "g4", "--topic", "u", "--yes").out == "u-0: deleted\n"
    assert at_ours("delete-offsets", "none", "--topic", "u", "--yes").code == 4

    async def no(*_):
        return False

    assert at_ours("reset", "g4", "--topic", "t", "--to", "earliest").code == 0
    monkeypatch.setattr(groups, "confirmed", no)
    assert at_ours(*words).code == 1


def test_a_group_with_members_is_not_reset(at_ours, ours):
    async def looked_at_while_it_reads():
        async with Consumer(ours, group="busy", heartbeat_ms=50) as consumer:
            await consumer.subscribe(["t"])
            while not consumer.assignment:
                await consumer.poll(100)
            words = ("reset", "busy", "--topic", "t", "--to", "latest")
            return [await asyncio.to_thread(at_ours, *words, *more) for more in ((), ("--dry-run",))]

    refused, looked = asyncio.run(looked_at_while_it_reads())
    assert (refused.code, "it has members; stop them first" in refused.err) == (1, True)
    assert (looked.code, "its offsets can only be set while it has no members" in looked.err) == (0, True)


async def join_streams(bootstrap):
    """Member m of streams group g, with all tasks of the topology."""
    fields = {"group_id": "g", "member_id": "m", "rebalance_timeout_ms": 1000, "process_id": "p"}
    tasks = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    beat = StreamsGroupHeartbeatRequest(**fields, **tasks, member_epoch=0, topology=counting())
    async with Client(bootstrap) as client, asyncio.timeout(30):
        answer = await client.request(beat, coordinator_of=("group", "g"))
        while not answer.active_tasks:
            again = StreamsGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=answer.member_epoch)
            answer = await client.request(again, coordinator_of=("group", "g"))


async def leave_streams(bootstrap):
    leaving = StreamsGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=-1)
    async with Client(bootstrap) as client, asyncio.timeout(30):
        await client.request(leaving, coordinator_of=("group", "g"))


async def read_at(bootstrap, offsets):
    async with Admin(bootstrap) as admin:
        await admin.alter_group_offsets("g", {TopicPartition(*place): at for place, at in offsets.items()})


def test_a_streams_group_without_members_is_reset_in_its_source_topics(horolog):
    with broker_in_thread(settings={"group.streams.initial.rebalance.delay.ms": 0}) as broker:
        at = "-b", broker.bootstrap
        broker.create_topic("t", 2)
        asyncio.run(join_streams(broker.bootstrap))
        words = "groups", "reset", "g", "--to", "latest", *at
        refused = horolog(*words)
        assert (refused.code, "group g is Stable: it has members; stop them first" in refused.err) == (1, True)
        asyncio.run(leave_streams(broker.bootstrap))
        described = horolog("groups", "describe", "g", *at).out
        assert described.startswith("g  Empty  streams group, assignor sticky\nno members\nSUBTOPOLOGY")
        assert "PROCESS" not in described
        asyncio.run(read_at(broker.bootstrap, {("t", 0): 5, ("g-by-key", 0): 5}))
        ended = horolog(*words, "-o", "json")
        assert [(row["topic"], row["from"], row["to"]) for row in ended.json] == [("t", 5, 0), ("t", None, 0)]
        assert "horolog topics delete g-by-key g-log" in ended.err
        assert horolog("groups", "delete-offsets", "g", "--topic", "t", "--yes", *at).code == 0
        deleted = horolog("groups", "delete", "g", "--yes", *at)
        assert (deleted.code, "horolog topics delete g-by-key g-log" in deleted.err) == (0, True)
        assert horolog("groups", "describe", "g", *at).code == 4


def test_a_streams_group_is_shown_with_its_topology_and_tasks(horolog):
    with broker_in_thread(settings={"group.streams.initial.rebalance.delay.ms": 0}) as broker:
        at = "-b", broker.bootstrap
        early = horolog("groups", "describe", "g", *at)
        assert early.code == 4
        broker.create_topic("t", 2)
        asyncio.run(join_streams(broker.bootstrap))
        rows = [line.split() for line in horolog("groups", "describe", "g", *at).out.splitlines()]
        assert ["0", "t", "g-by-key", "-", "2"] in rows
        assert ["1", "g-by-key", "-", "g-log", "2"] in rows
        assert ["p", "0:", "0,", "1;", "1:", "0,", "1", "-", "-"] in rows
        (described,) = horolog("groups", "describe", "g", *at, "-o", "json").json
        assert described["streams"]["has_all_topics"]
        assert [one["tasks"] for one in described["streams"]["subtopologies"]] == [2, 2]
        assert described["streams"]["members"][0]["active"] == "0: 0, 1; 1: 0, 1"
        assert horolog("groups", "delete", "g", "--yes", *at).code == 1
