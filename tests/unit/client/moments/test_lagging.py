"""A group's lag in records and in seconds, the offsets of a reset, and what nobody knows."""

from horolog import Admin, TopicPartition
from horolog.client.moments.lagging import Lag, as_json, lag_of, longest, next_timestamps, targets
from tests.support.console_browser import shown, topic_with

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
