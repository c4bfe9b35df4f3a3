"""Two topics, or one of two clusters, are counted in the same buckets, and differences are told."""

import pytest

from horolog import Client
from horolog.client.charting.buckets import Timeline
from horolog.console import compare
from horolog.console.compare import Difference, differences_of
from horolog.testing import horolog_broker
from tests.support.console_browser import browser, shown, topic_with

MINUTE, HOUR = 60_000, 3_600_000


async def test_two_topics():
    async with shown() as (page, client, broker):
        now = broker.clock.wall_ms() // HOUR * HOUR - HOUR
        times = [now + at * MINUTE for at in range(30)]
        await topic_with(client, "one", [(at, b"x") for at in times])
        await topic_with(client, "other", [(at, b"x") for at in times if at != times[7]], 2)
        text = (await page.get("/compare?a=one&b=other")).text
        assert 'Difference</dt><dd class="warn">-1' in text
        assert "1m a bar" in text
        assert text.count("<tr data-row>") == 1
        near = (await page.get(f"/compare?a=one&b=other&from={times[8]}&until={times[20]}")).text
        assert "the same number of records" in near
        assert (await page.get("/compare?a=one&b=other&from=1h&until=2h")).status_code == 400
        assert (await page.get(f"/compare?a=one&b=other&from=0&until={2**62}")).status_code == 400
        assert "name another topic" in (await page.get("/compare?a=one")).text
        assert '<option value="one">' in (await page.get("/compare")).text
        assert (await page.get("/compare?a=one&b=none")).status_code == 404


async def test_one_topic_of_two_clusters():
    async with (
        horolog_broker() as one,
        horolog_broker() as other,
        Client(one.bootstrap) as here,
        Client(other.bootstrap) as there,
    ):
        now = one.clock.wall_ms()
        await topic_with(here, "t", [(now - MINUTE, b"x"), (now, b"y")])
        await topic_with(there, "t", [(now - MINUTE, b"x"), (now, b"y")])
        async with browser(one.bootstrap, other.bootstrap) as page:
            text = (await page.get(f"/compare?a=t&at={one.bootstrap}&bt={other.bootstrap}")).text
            assert "the same number of records" in text
            assert f"t at {other.bootstrap}" in text
            assert (await page.get("/compare?a=t&at=nowhere:1")).status_code == 404


async def test_what_cannot_be_compared(monkeypatch):
    async with shown() as (page, client, _):
        await topic_with(client, "one", [])
        await topic_with(client, "other", [], 2)
        assert (await page.get("/compare?a=one&b=other")).status_code == 404
        assert (await page.get("/compare?a=one&b=other&from=2h&until=1h")).status_code == 200
        monkeypatch.setattr(compare, "PARTITIONS_AT_MOST", 1)
        assert (await page.get("/compare?a=one&b=other")).status_code == 400


def test_differences():
    timeline = Timeline(1000, 10, [0.0] * 3)
    assert differences_of(timeline, [1, 2, 3], [1, 5, 3]) == [Difference(1010, 2, 5)]


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [("a=one&b=twoo", 404, "b"), ("a=ones&b=two", 404, "a"), ("a=one&b=two&from=soonish", 400, "from")],
)
async def test_what_was_typed_stays_and_the_reason_stands_beside_it(query, status, field):
    async with shown() as (page, client, broker):
        for name in ("one", "two"):
            await topic_with(client, name, [(broker.clock.wall_ms(), b"x")])
        answer = await page.get(f"/compare?{query}")
        assert answer.status_code == status
        assert f'<p class="wrong" id="{field}-wrong" role="alert">' in answer.text
        assert answer.text.count('class="wrong"') == 1
        for pair in query.split("&"):
            name, _, value = pair.partition("=")
            assert f'name="{name}" value="{value}"' in answer.text
