"""Another moment beside the first: the same span and filters, its counts, and rows with names of their own."""

import re
from html import unescape

from tests.support.console_browser import shown, topic_with

MINUTE = 60_000


async def two_hours(client, broker, *late):
    """Three records an hour ago, and one now; then those that are late by these minutes after that hour."""
    now = broker.clock.wall_ms() // MINUTE * MINUTE
    ago = now - 60 * MINUTE
    times = [ago - MINUTE, ago, ago + MINUTE, now, *(ago + one * MINUTE for one in late)]
    await topic_with(client, "t", [(time_ms, b"v%d" % number) for number, time_ms in enumerate(times)])
    return now, ago


def below(text):
    return text.partition('id="beside"')[2].partition("As a command")[0]


async def test_the_same_span_around_another_time():
    async with shown() as (page, client, broker):
        now, ago = await two_hours(client, broker)
        text = (await page.get(f"/moment?topic=t&at={now}&within=5m&other={ago}")).text
        part = below(text)
        assert re.search(r"3 records in its span, 1 in that above: \+2", part)
        assert re.findall(r'<tr data-row id="(b0-\d)"', part) == ["b0-0", "b0-1", "b0-2"]
        assert "#r0-1" in part, "links lead to the page of its own time"
        swapped = unescape(re.search(r'href="([^"]+)">Swap', part)[1])
        assert "1 record in its span, 3 in that above: -2" in below((await page.get(swapped)).text)
        closed = unescape(re.search(r'href="([^"]+)">Close', part)[1])
        assert "Compared with" not in (await page.get(closed)).text


async def test_a_late_record_is_marked_there_too():
    async with shown() as (page, client, broker):
        now, ago = await two_hours(client, broker, 2)
        part = below((await page.get(f"/moment?topic=t&at={ago}&within=2h&other={now}")).text)
        assert "was written here" in part
        assert 'href="#b0-4"' in part


async def test_filters_hold_for_both():
    async with shown() as (page, client, broker):
        now, ago = await two_hours(client, broker)
        part = below((await page.get(f"/moment?topic=t&at={now}&within=5m&other={ago}&key=1")).text)
        assert re.findall(r'<tr data-row id="(b0-\d)"', part) == ["b0-1"]
        none = below((await page.get(f"/moment?topic=t&at={now}&within=5m&other={ago}&key=nobody")).text)
        assert "No matching record was found from" in none


async def test_a_range_is_moved_with_its_length():
    async with shown() as (page, client, broker):
        now, ago = await two_hours(client, broker)
        part = below((await page.get(f"/moment?topic=t&at={now}&until=%2B2m&other={ago}")).text)
        assert "2 records in its span, 1 in that above" in part
        same = below((await page.get(f"/moment?topic=t&at={now}&until=%2B2m&other={now}")).text)
        assert "the same number" in same


async def test_a_wrong_time_is_corrected_in_its_field():
    async with shown() as (page, client, broker):
        await two_hours(client, broker)
        answer = await page.get("/moment?topic=t&at=1h&other=soonish")
        assert (answer.status_code, 'id="other-wrong"' in answer.text) == (400, True)
