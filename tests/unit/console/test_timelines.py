"""A timeline counts every record once, stays in its bounds, and tells how many are ahead of now."""

from datetime import UTC

import pytest

from horolog.client.charting.buckets import Timeline
from horolog.client.values.types import TopicPartition
from horolog.console import timelines
from horolog.console.timelines import LAST_OF_CALENDAR_MS, Chart, chart_of, steps
from horolog.console.visits import Refused
from tests.support.console_browser import shown, topic_with

MINUTE, DAY = 60_000, 86_400_000


async def test_every_record_is_counted_in_its_bucket(monkeypatch):
    async with shown() as (_, client, broker):
        now = broker.clock.wall_ms() // DAY * DAY
        times = [now - 3 * DAY, now - 3 * DAY + MINUTE, now - DAY, now, now + 2 * DAY]
        await topic_with(client, "t", [(at, b"x" * 10) for at in times], 2, message_timestamp_after_max_ms="9999999999")
        places = [TopicPartition("t", 0), TopicPartition("t", 1)]
        chart = await chart_of(client, places, dict.fromkeys(places, 10.0), (None, None), UTC, now + 1)
        assert (chart.records, chart.future_records) == (4, 1)
        assert (chart.first_ms, chart.last_ms) == (times[0], times[-1])
        assert [
            sum(count for at, count, _ in chart.rows() if low <= at < high)
            for low, high in ((now - 4 * DAY, now - 2 * DAY), (now - 2 * DAY, now + DAY))
        ] == [2, 2]
        assert sum(chart.bytes) == pytest.approx(40)
        assert chart.gaps()[0][1] - chart.gaps()[0][0] > DAY
        drawn = chart.data(now)
        assert (sum(drawn["counts"]), sum(drawn["bytes"]), drawn["now"]) == (4, 40, now)
        near = await chart_of(client, places, {}, (times[0], times[0] + 1), UTC, now)
        assert (near.timeline.bucket_ms, near.records, near.bytes) == (1, 1, None)
        monkeypatch.setattr(timelines, "PARTITIONS_AT_MOST", 1)
        assert (await chart_of(client, places, {}, (None, None), UTC, now)).left_out == 1


async def test_nothing_to_draw():
    async with shown() as (_, client, _):
        await topic_with(client, "t", [])
        assert await chart_of(client, [TopicPartition("t", 0)], {}, (None, None), UTC, 0) is None
        assert await chart_of(client, [], {}, (None, None), UTC, 0) is None


@pytest.mark.parametrize(
    ("bounds", "said"), [((5, 5), "not later"), ((9, 1), "not later"), ((0, 2**63 - 1), "calendar")]
)
async def test_ranges_that_make_no_sense(bounds, said):
    async with shown() as (_, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])
        with pytest.raises(Refused, match=said):
            await chart_of(client, [TopicPartition("t", 0)], {}, bounds, UTC, 0)


async def test_the_widest_range_has_no_more_bars_than_the_narrowest():
    async with shown() as (_, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])
        for bounds in ((0, LAST_OF_CALENDAR_MS), (-LAST_OF_CALENDAR_MS, 1), (7, 8)):
            chart = await chart_of(client, [TopicPartition("t", 0)], {}, bounds, UTC, 0)
            assert 0 < len(chart.timeline.counts) <= timelines.BUCKETS + 1


def test_steps_go_to_both_sides_nearer_and_wider():
    chart = Chart(Timeline(1000, 10, [0.0] * 100), None, 0, 0, 0)
    assert steps(chart) == {"earlier": (500, 1500), "later": (1500, 2500), "nearer": (1250, 1750), "wider": (500, 2500)}
    tiny = Chart(Timeline(0, 1, [0.0] * 10), None, 0, 0, 0)
    assert steps(tiny)["nearer"] == (0, 10)
