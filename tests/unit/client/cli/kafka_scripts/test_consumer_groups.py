"""`kafka-consumer-groups`: groups are listed, described, reset and deleted as by Kafka's script."""

import asyncio
from contextlib import contextmanager

import pytest

from horolog.client.consuming.consumer import Consumer
from horolog.client.producing.producer import Producer
from horolog.client.values.types import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture(scope="module", autouse=True)
def records(scripts):
    """Three records in each partition of t; group `idle` has read one of partition 0."""

    async def write():
        async with Producer(scripts.address) as producer:
            for number in range(6):
                await producer.send("t", b"v", partition=number % 2)

    asyncio.run(write())
    scripts.ask(lambda admin: admin.alter_group_offsets("idle", {A: 1}))
    scripts.ask(lambda admin: admin.alter_share_group_offsets("share", {A: 1}))


@pytest.fixture
def groups(scripts):
    def run(*words):
        return scripts.run("kafka-consumer-groups", *words)

    return run


@contextmanager
def member(scripts, group):
    """A member of the group, in another loop while the script runs in this one."""
    loop = asyncio.new_event_loop()

    async def join():
        consumer = Consumer(scripts.address, group=group, client_id="reader", heartbeat_ms=50)
        await consumer.subscribe(["t"])
        while not consumer.assignment:
            await consumer.poll(100)
        return consumer

    consumer = loop.run_until_complete(join())
    yield
    loop.run_until_complete(consumer.close())
    loop.close()


def test_groups_are_listed_without_share_groups(groups):
    assert "idle" in groups("--list").lines
    assert "share" not in groups("--list").lines
    assert ["idle", "Empty"] in groups("--list", "--state").rows


def test_offsets_of_a_group_are_shown_with_its_lag(groups):
    ended = groups("--describe", "--group", "idle")
    assert ended.rows == [
        ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"],
        ["idle", "t", "0", "1", "3", "2", "-", "-", "-"],
    ]
    assert "Consumer group 'idle' has no active members." in ended.err


def test_members_are_shown_with_their_partitions(groups, scripts):
    with member(scripts, "busy"):
        offsets = groups("--describe", "--group", "busy").rows
        assert [row[:6] for row in offsets[1:]] == [["busy", "t", str(index), "-", "3", "-"] for index in (0, 1)]
        assert {row[-1] for row in offsets[1:]} == {"reader"}
        row = groups("--describe", "--group", "busy", "--members", "--verbose").rows[1]
        assert (row[0], row[3:]) == ("busy", ["reader", "2", "t-0,t-1"])
        state = groups("--describe", "--group", "busy", "--state").rows[1]
        assert state == ["busy", "range", "Stable", "1"]
        refused = groups("--reset-offsets", "--group", "busy", "--topic", "t", "--to-latest", "--execute")
        assert (refused.code, "can only be reset if the group 'busy' is inactive, but it is Stable" in refused.err) == (
            1,
            True,
        )
    assert groups("--describe", "--group", "idle", "--members").rows[1:] == []
    assert groups("--describe", "--group", "idle", "--state").rows[1] == ["idle", "-", "Empty", "0"]


def test_a_group_is_moved_only_when_it_shall_be(groups, scripts):
    words = ("--reset-offsets", "--group", "moved", "--topic", "t:1", "--to-offset", "2")
    shown = groups(*words)
    assert shown.rows[1:] == [["moved", "t", "1", "2"]]
    assert "Nothing was changed: --execute sets the new offsets." in shown.err
    assert scripts.ask(lambda admin: admin.group_offsets("moved")) == {}
    assert groups(*words, "--execute").rows == shown.rows
    assert groups("--reset-offsets", "--group", "moved", "--all-topics", "--shift-by", "-1", "--execute").rows[1:] == [
        ["moved", "t", "1", "1"]
    ]
    deleted = groups("--delete-offsets", "--group", "moved", "--topic", "t")
    assert deleted.out == "Request succeed for deleting offsets from group moved.\n"
    assert scripts.ask(lambda admin: admin.group_offsets("moved")) == {}


def test_groups_are_deleted_by_name(groups):
    groups("--reset-offsets", "--group", "a", "--topic", "t", "--to-earliest", "--execute")
    ended = groups("--delete", "--group", "a")
    assert ended.out == "Deletion of requested consumer groups ('a') was successful.\n"
    assert groups("--describe", "--all-groups").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--describe",), "--describe needs --group or --all-groups"),
        (("--describe", "--group", "idle", "--all-groups"), "--describe needs --group or --all-groups"),
        (("--describe", "--group", "none"), "Consumer group 'none' does not exist."),
        (("--describe", "--group", "share"), "Consumer group 'share' does not exist."),
        (
            ("--reset-offsets", "--group", "share", "--topic", "t", "--to-latest"),
            "Consumer group 'share' does not exist.",
        ),
        (("--reset-offsets", "--group", "idle", "--to-latest"), "--reset-offsets needs --topic or --all-topics"),
        (("--reset-offsets", "--group", "idle", "--topic", "t:7", "--to-latest"), "topic t has no partition 7"),
        (("--reset-offsets", "--group", "idle", "--topic", "t"), "--reset-offsets needs a new position"),
    ],
)
def test_what_makes_no_sense_is_refused(groups, words, said):
    ended = groups(*words)
    assert ended.code == 1
    assert said in ended.err
