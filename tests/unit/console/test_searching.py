"""A search goes on both ways from what its page has looked at, finds each record once, and ends with the page."""

import json
import re
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import pytest
from starlette.requests import Request

from horolog.client.values.errors import KafkaError
from horolog.console import reading, searching
from horolog.console.follow import Followers
from horolog.console.reading import Reader
from horolog.console.visits import Refused, Visit
from horolog.protocol.errors import ErrorCode
from tests.support.console_browser import shown, topic_with

SECOND, HOUR = 1000, 3_600_000
WANTED = "value.wanted = true"


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    monkeypatch.setattr(reading, "LOOKED_AT_MOST", 40)
    monkeypatch.setattr(reading, "STRETCH_RECORDS", 10)
    monkeypatch.setattr(reading, "LONGEST_STRETCH_RECORDS", 20)
    monkeypatch.setattr(reading, "PIECE_RECORDS", 10)
    monkeypatch.setattr(searching, "PROGRESS_SECONDS", 0.0)


async def filled(client, broker, count=300, every=50):
    """Records of each second around an hour ago, every fiftieth of them wanted."""
    middle = broker.clock.wall_ms() // SECOND * SECOND - HOUR
    records = [
        (middle + at * SECOND, json.dumps({"at": at, "wanted": at % every == 0}).encode())
        for at in range(-count, count)
    ]
    await topic_with(client, "t", records, 2)
    return middle


def visit_of(page, query, session=None):
    scope = {"type": "http", "method": "GET", "path": "/moment/search", "query_string": query.encode(), "headers": []}
    scope["state"] = {"session": session or page.application.sessions.everybody}
    return Visit(page.application.desk, Request(scope))


def searched(text):
    """The address that a page goes on with, as its script writes it."""
    box = dict(re.findall(r'data-(\w+)="([^"]*)"', text[text.index('id="search"') :].partition(">")[0]))
    parts = dict(parse_qsl(urlsplit(unescape(box["search"])).query))
    words = {"low": box["low"], "high": box["high"], "earlier": box["earlier"], "later": box["later"]}
    from urllib.parse import urlencode

    return urlencode(parts | words | {"looked_at": box["looked"]})


def found_in(text):
    return [int(at) for at in re.findall(r"&#34;at&#34;:\s?(-?\d+)", text)]


async def all_events(page, query, searchers=None):
    response = await searching.events(visit_of(page, query), searchers or Followers(1))
    found = []
    async for chunk in response.body_iterator:
        lines = dict(line.split(": ", 1) for line in chunk.decode().strip().splitlines() if not line.startswith(":"))
        if lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


async def test_both_ways_are_searched_to_the_end_and_each_record_is_found_once():
    async with shown() as (page, client, broker):
        middle = await filled(client, broker)
        text = (await page.get("/moment", params={"topic": "t", "at": middle, "within": "1h", "where": WANTED})).text
        assert "The search continues" in text
        events = await all_events(page, searched(text))
        assert [name for name, _ in events[-1:]] == ["done"]
        assert "there are no more records in the time range" in events[-1][1]["why"]
        steps = [data for name, data in events if name == "found"]
        before, after = found_in(text.partition('id="moment"')[0]), found_in(text.partition('id="moment"')[2])
        for step in steps:
            before = found_in(step["before"]) + before
            after = after + found_in(step["after"])
        assert before == list(range(-300, 0, 50))
        assert after == list(range(0, 300, 50))
        assert steps[-1]["looked_at"] >= 600
        assert steps[-1]["low"] == middle - HOUR
        assert steps[-1]["high"] == middle + HOUR
        assert [one["low"] for one in steps] == sorted((one["low"] for one in steps), reverse=True)


async def test_it_ends_when_both_sides_have_enough():
    async with shown() as (page, client, broker):
        middle = await filled(client, broker)
        query = f"topic=t&at={middle}&within=1h&where={WANTED.replace(' ', '%20')}&rows=4&low={middle}&high={middle}"
        events = await all_events(page, query)
        assert events[-1][0] == "done"
        assert "the page is full" in events[-1][1]["why"]
        rows = "".join(data["before"] + data["after"] for name, data in events if name == "found")
        assert sorted(found_in(rows)) == [-100, -50, 0, 50]


async def test_a_page_that_found_all_has_no_search(monkeypatch):
    monkeypatch.setattr(reading, "LOOKED_AT_MOST", 50_000)
    async with shown() as (page, client, broker):
        middle = await filled(client, broker, 20, 5)
        for query in (
            f"at={middle}&within=1h",
            f"at={middle}&within=1h&where={WANTED}",
            f"at=@{middle}ms..@{middle + 9}ms",
        ):
            text = (await page.get(f"/moment?topic=t&{query}")).text
            assert 'id="search"' not in text


async def test_a_late_record_is_found_before_the_moment():
    """It lies behind records that are later than the moment, a lookup does not lead to it."""
    async with shown() as (page, client, broker):
        middle = broker.clock.wall_ms() // SECOND * SECOND - HOUR
        times = [middle + at * SECOND for at in range(-50, 50)]
        times[70] = middle - 45 * SECOND
        await topic_with(client, "t", [(at, b'{"at":%d}' % number) for number, at in enumerate(times)])
        text = (await page.get(f"/moment?topic=t&at={middle}&within=1h&rows=400&where=offset=70")).text
        events = [] if 'id="search"' not in text else await all_events(page, searched(text))
        rows = text.partition('id="moment"')[0] + "".join(data.get("before", "") for _, data in events)
        assert found_in(rows) == [70]


async def test_searches_are_bounded_and_a_closed_page_leaves_its_place():
    async with shown() as (page, client, broker):
        middle = await filled(client, broker)
        searchers = Followers(1, "searches are under way; stop one")
        query = f"topic=t&at={middle}&within=1h&where=offset%20<%200"
        stream = (await searching.events(visit_of(page, query), searchers)).body_iterator
        await anext(stream)
        await anext(stream)
        with pytest.raises(Refused, match="1 searches are under way") as refused:
            await searching.events(visit_of(page, query), searchers)
        assert refused.value.status == 429
        await stream.aclose()
        again = (await searching.events(visit_of(page, query), searchers)).body_iterator
        await again.aclose()
        assert (await page.get("/moment/search?topic=t&where=value.")).status_code == 400


async def test_it_pauses_where_the_broker_fails_or_the_session_ends(monkeypatch):
    async with shown() as (page, client, broker):
        middle = await filled(client, broker)
        query = f"topic=t&at={middle}&within=1h&where=offset%20<%200"

        async def nobody(_):
            return None

        with monkeypatch.context() as patch:
            patch.setattr(page.application.sessions, "find", nobody)
            assert (await all_events(page, query))[-1] == ("paused", {"why": "you are logged out; log in again"})

        async def fail(*_):
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "it has gone")

        with monkeypatch.context() as patch:
            patch.setattr(Reader, "_offsets", fail)
            assert (await all_events(page, query))[-1] == ("paused", {"why": "it has gone"})
        monkeypatch.setattr(searching, "LONGEST_S", -1.0)
        assert (await all_events(page, query))[-1][0] == "paused"
