"""A group's lag in records and in seconds, the offsets of a reset, and what nobody knows."""

import asyncio

import pytest

from horolog import Admin, TopicPartition
from horolog.client.admin.admin_share_groups import GroupPosition
from horolog.client.consuming.consumer import Consumer
from horolog.client.moments.lagging import (
    Lag,
    _shared,
    as_json,
    lag_of,
    longest,
    next_timestamps,
    of_unknown_length,
    targets,
)
from horolog.client.values.errors import KafkaError
from tests.support.console_browser import shown, topic_with
from tests.support.share_dialogue import beat

HOUR = 3_600_000
PLACES = [TopicPartition("t", 0), TopicPartition("t", 1)]


async def test_lag_and_where_a_reset_leads():
    async with shown() as (_, client, broker), Admin(client) as admin:
        now = broker.clock.wall_ms()
        await topic_with(client, "t", [(now - at * HOUR, b"x") for at in (4, 3, 2, 1)], 2)
        await topic_with(client, "u", [(now, b"x")])
        await admin.alter_group_offsets("g", {PLACES[0]: 1, PLACES[1]: 2, TopicPartition("u", 0): 0})
        lags = {lag.partition: lag for lag in await lag_of(admin, "g", now, ["t"])}
        assert set(lags) == set(PLACES)
        behind, ended = (lags[place] for place in PLACES)
        assert (behind.committed, behind.records, behind.seconds, behind.next_timestamp_ms) == (
            1,
            1,
            7200.0,
            now - 2 * HOUR,
        )
        assert (ended.records, ended.seconds, ended.member) == (0, 0.0, None)
        assert longest(lags.values()) == 7200.0
        assert as_json(behind)["lag_records"] == 1
        assert await targets(client, PLACES, now - 3 * HOUR) == {
            PLACES[0]: (1, now - 2 * HOUR),
            PLACES[1]: (0, now - 3 * HOUR),
        }
        assert (await targets(client, PLACES, now))[PLACES[0]] == (2, None)
        assert await next_timestamps(client, {PLACES[0]: 99}, {PLACES[0]: 100}) == {PLACES[0]: None}
        assert await lag_of(admin, "nobody", now) == []


def test_nobody_knows():
    assert longest([]) == 0.0
    assert longest([Lag("g", PLACES[0], None, 5, None, None, None, "reader")]) == 0.0


def test_a_partition_without_a_commit_is_behind_by_at_most_what_waits():
    lag = Lag("g", PLACES[0], None, 5, None, None, None, "reader", 5, 7200.0)
    assert lag.lacks_commit
    assert of_unknown_length([lag], 2 * HOUR) == []
    assert of_unknown_length([lag], HOUR) == [
        "group g has no commit yet on t-0: it is up to 5 records behind, for 2h, if it begins at the earliest"
    ]
    assert "for an unknown time" in of_unknown_length([lag._replace(most_seconds=None)], 2 * HOUR)[0]
    assert (as_json(lag)["lag_seconds"], as_json(lag)["most_records"], as_json(lag)["most_seconds"]) == (
        None,
        5,
        7200.0,
    )
    unread = Lag("g", PLACES[0], 0, 5, 5, None, None, None)
    assert "for an unknown time" in of_unknown_length([unread], HOUR)[0]
    assert of_unknown_length([unread._replace(seconds=1.0)], HOUR) == []


async def test_a_member_that_has_not_committed_is_not_up_to_date():
    async with shown() as (_, client, broker), Admin(client) as admin:
        now = broker.clock.wall_ms()
        await topic_with(client, "t", [(now - 2 * HOUR, b"x"), (now, b"y")], 1)
        await topic_with(client, "empty", [], 1)
        async with Consumer(client, group="g") as consumer:
            await consumer.subscribe(["t", "empty"])
            await consumer.poll()
            lags = {lag.partition.topic: lag for lag in await lag_of(admin, "g", now)}
        waiting, empty = lags["t"], lags["empty"]
        assert (waiting.committed, waiting.records, waiting.seconds) == (None, None, None)
        assert (waiting.most_records, waiting.most_seconds, waiting.lacks_commit) == (2, 7200.0, True)
        assert (empty.committed, empty.records, empty.seconds, empty.lacks_commit) == (None, 0, 0.0, False)


async def test_a_share_group_is_behind_by_what_it_has_not_delivered():
    async with shown() as (_, client, broker), Admin(client) as admin:
        now = broker.clock.wall_ms()
        await topic_with(client, "t", [(now - at * HOUR, b"x") for at in (4, 3, 2, 1)], 2)
        await admin.alter_share_group_offsets("s", {PLACES[0]: 1, PLACES[1]: 2})
        described = (await admin.describe_groups(["s"]))["s"]
        assert (described.state, described.protocol_type, described.assignor) == ("Empty", "share", "simple")
        assert [each.kind for each in await admin.list_groups()] == ["share"]
        behind, ended = await lag_of(admin, "s", now)
        assert (behind.committed, behind.records, behind.seconds) == (1, 1, 7200.0)
        assert (ended.committed, ended.records, ended.seconds) == (2, 0, 0.0)
        delivered = GroupPosition(1, 0)
        assert _shared(behind, delivered) == behind._replace(records=0, seconds=0.0, next_timestamp_ms=None)
        assert _shared(behind, GroupPosition(1)) is behind, "Kafka before 4.2 does not tell the lag"
        await admin.move_group(described, {PLACES[0]: 0})
        positions = await admin.positions_of(described)
        assert (positions[PLACES[0]].offset, positions[PLACES[0]].lag) == (0, 2)
        assert set(await admin.share_group_offsets("s", [PLACES[0]])) == {PLACES[0]}
        await admin.delete_share_group_offsets("s", ["t"])
        assert await admin.positions_of(described) == {}
        with pytest.raises(KafkaError):
            await admin.delete_share_group_offsets("s", ["t"])
        await admin.delete_groups(["s"])
        assert (await admin.describe_groups(["s"]))["s"].state == "Dead"


async def test_members_of_a_share_group_are_named_beside_what_they_read():
    async with shown() as (_, client, broker), Admin(client) as admin:
        now = broker.clock.wall_ms()
        await topic_with(client, "t", [(now - HOUR, b"x")], 1)
        for member in ("m1", "m2"):
            await join(client, member)
        (lag,) = await lag_of(admin, "s", now)
        assert (lag.member, lag.lacks_commit, lag.most_records) == (client.client_id, True, 1)
        members = (await admin.describe_groups(["s"]))["s"].members
        assert [(one.member_id, one.topics, one.assignment) for one in members] == [
            ("m1", ("t",), (PLACES[0],)),
            ("m2", ("t",), (PLACES[0],)),
        ]


async def join(client, member):
    """Join a share group, until the member has partitions."""
    epoch, assigned = 0, False
    async with asyncio.timeout(10):
        while not assigned:
            heartbeat = beat("s", member, epoch, ["t"])
            response = await client.attempt(heartbeat, coordinator_of=("group", "s"))
            epoch, assigned = response.member_epoch, bool(response.assignment.topic_partitions)
            await asyncio.sleep(0.001)
