"""The page of a moment: what lies around it, filtered and decoded; a key before and after; the same as a command and as a file."""

import json
import re
import shlex
from datetime import UTC, datetime, timedelta
from html import unescape
from urllib.parse import urlencode

import pytest

from horolog import Producer
from horolog.console import moment
from horolog.console.moment import MomentQuery, chart_bounds, spans
from tests.support.console_browser import shown, topic_with

MINUTE, HOUR = 60_000, 3_600_000
HOSTILE = b'<script>alert("x")</script>'


async def with_records(client, broker, count=6, **configs):
    """Records of each minute before now, and two after; their values are JSON."""
    now = broker.clock.wall_ms() // MINUTE * MINUTE - HOUR
    records = [
        (now + at * MINUTE, json.dumps({"at": at, "state": "paid" if at % 2 else "new"}).encode())
        for at in range(-count, 2)
    ]
    await topic_with(client, "t", records, 1, **configs)
    return now


async def test_records_around_a_time():
    async with shown() as (page, client, broker):
        now = await with_records(client, broker)
        text = (await page.get(f"/moment?topic=t&at={now}&within=10m")).text
        assert text.count("<tr data-row ") == 8
        assert text.index(">the moment<") > text.index("&#34;at&#34;:-1") > text.index("&#34;at&#34;:-6")
        assert text.index("&#34;at&#34;:1") > text.index(">the moment<")
        few = (await page.get(f"/moment?topic=t&at={now}&within=10m&rows=4")).text
        assert few.count("<tr data-row ") == 4
        narrow = (await page.get(f"/moment?topic=t&at={now}&within=61s")).text
        assert narrow.count("<tr data-row ") == 3
        after = (await page.get(f"/moment?topic=t&at={now + 5 * MINUTE}&within=1h")).text
        assert "nothing follows within" in after
        assert "No matching record" in (await page.get("/moment?topic=t&at=30d&within=1m")).text


async def test_records_of_a_range():
    """As the command line writes it, and the same records as a file."""
    async with shown() as (page, client, broker):
        now = await with_records(client, broker)
        begin = datetime.fromtimestamp((now - 4 * MINUTE) / 1000, UTC)
        end = begin + timedelta(minutes=3)  # a time of day is of the day of the beginning: past midnight it has a date
        for text in (
            f"{begin:%Y-%m-%d %H:%M}..+3m",
            f"{begin:%Y-%m-%d %H:%M}..{end:%H:%M}"
            if end.day == begin.day
            else f"{begin:%Y-%m-%d %H:%M}..{end:%Y-%m-%d %H:%M}",
            f"@{now - 4 * MINUTE}ms..@{now - MINUTE}ms",
        ):
            query = urlencode({"topic": "t", "at": text, "tz": "UTC"})
            shown_there = (await page.get(f"/moment?{query}")).text
            assert shown_there.count("<tr data-row ") == 3
            assert ">the moment<" not in shown_there
            assert " from <time" in shown_there
            lines = (await page.get(f"/moment/download?{query}")).text.splitlines()
            assert [json.loads(json.loads(line)["value"])["at"] for line in lines] == [-4, -3, -2]
        earlier, later = re.findall(r'class="button" href="([^"]+)" data-key="[\[\]]"', shown_there)
        assert f"%40{now - 7 * MINUTE}ms..%40{now - 4 * MINUTE}ms" in earlier
        assert f"%40{now - MINUTE}ms..%40{now + 2 * MINUTE}ms" in later
        assert (await page.get(unescape(later))).text.count("<tr data-row ") == 3
        few = (await page.get(f"/moment?{query}&rows=2")).text
        assert few.count("<tr data-row ") == 2
        rest = re.findall(r'href="([^"]+)" data-key="\]"', few)[0]
        assert f"%40{now - 3 * MINUTE}ms..%40{now - MINUTE}ms" in rest
        assert shlex.split(unescape(few.partition('<code id="command">')[2].partition("</code>")[0]))[3:7] == [
            *("--since", f"{begin:%Y-%m-%dT%H:%M:%S}Z"),
            *("--until", f"{end:%Y-%m-%dT%H:%M:%S}Z"),
        ]
        everything = (await page.get("/moment?topic=t&at=earliest..now")).text
        assert everything.count("<tr data-row ") == 8


async def test_filters_and_a_key():
    async with shown() as (page, client, broker):
        now = await with_records(client, broker)
        paid = (await page.get(f"/moment?topic=t&at={now}&within=1h&where=value.state%20%3D%20%27paid%27")).text
        assert paid.count("<tr data-row ") == 4
        one = (await page.get(f"/moment?topic=t&at={now}&within=366d&key=3")).text
        assert one.count("<tr data-row ") == 1
        quick = (await page.get(f"/moment?topic=t&at={now}&within=1h&where=offset%20%3C%202&partition=0")).text
        assert quick.count("<tr data-row ") == 2
        command = (
            one.partition('<code id="command">')[2].partition("</code>")[0].replace("&#39;", "'").replace("&#34;", '"')
        )
        words = shlex.split(command)
        assert words[:3] == ["horolog", "consume", "t"]
        assert words[words.index("--where") + 1] == "key = '3'"
        both = (await page.get(f"/moment?topic=t&at={now}&within=1h&key=3&where=offset%20%3C%209&partition=0")).text
        assert "(offset &lt; 9) and key" in both
        assert "--partition 0" in both


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("topic=t&where=value.", 400, "where-wrong"),
        ("topic=t&within=soon", 400, "within-wrong"),
        ("topic=t&within=99999d", 400, "ten years"),
        ("topic=t&partition=7", 404, "no partition 7"),
        ("topic=t&partition=x", 400, "whole number"),
        ("topic=tt", 404, "do you mean"),
        ("topic=t&rows=99999", 400, "whole number"),
    ],
)
async def test_what_makes_no_sense(query, status, said):
    async with shown() as (page, client, broker):
        await with_records(client, broker)
        answer = await page.get(f"/moment?{query}")
        assert (answer.status_code, said in answer.text) == (status, True)


async def test_without_a_topic_it_asks_which():
    async with shown() as (page, client, broker):
        await with_records(client, broker)
        assert '<option value="t">' in (await page.get("/moment")).text


async def test_what_was_typed_stays_and_the_reason_stands_beside_it():
    async with shown() as (page, client, broker):
        await with_records(client, broker)
        answer = await page.get("/moment?topic=t&at=soonish&within=2h&where=value.&key=k-7&tz=UTC")
        assert answer.status_code == 400
        text = answer.text
        for name, value in (("at", "soonish"), ("where", "value.")):
            assert f'name="{name}" value="{value}" aria-invalid="true" aria-describedby="{name}-wrong"' in text
            assert f'<p class="wrong" id="{name}-wrong" role="alert">' in text
        assert 'name="within" value="2h"' in text
        assert 'name="key" value="k-7"' in text
        assert text.count('class="wrong"') == 2
        assert "<nav" in text
        unknown = await page.get("/moment?topic=tt&at=3h")
        assert (unknown.status_code, unknown.text.count('class="wrong"')) == (404, 1)
        assert 'name="topic" value="tt" aria-invalid' in unknown.text
        assert 'name="at" value="3h"' in unknown.text


async def test_fields_and_commands_have_times_and_no_numbers():
    async with shown() as (page, client, broker):
        now = await with_records(client, broker)
        at = datetime.fromtimestamp(now / 1000, UTC)
        for query in (f"at={now}", f"at=%40{now}ms"):
            text = (await page.get(f"/moment?topic=t&{query}&tz=UTC")).text
            assert f'name="at" value="{at:%Y-%m-%dT%H:%M:%S}Z"' in text
        berlin = (await page.get(f"/moment?topic=t&at=%40{now}ms..%40{now + 5}ms&tz=Europe/Berlin")).text
        first, second = (re.search(f'name="{name}" value="([^"]*)"', berlin)[1] for name in ("at", "until"))
        shown_range = f"{first}..{second}"
        assert re.fullmatch(r"\S+:00\+0[12]:00\.\.\S+:00\.005\+0[12]:00", unescape(shown_range))
        command = unescape(berlin.partition('<code id="command">')[2].partition("</code>")[0])
        assert str(now) not in command
        assert (await page.get("/moment", params={"topic": "t", "at": unescape(shown_range)})).status_code == 200


async def test_every_link_to_a_moment_leads_to_where_it_is():
    async with shown() as (page, client, broker):
        now = await with_records(client, broker)
        text = (await page.get(f"/moment?topic=t&at={now}&within=10m")).text
        assert text.count('id="moment"') == 1
        assert text.index('id="before"') < text.index('id="moment"') < text.index('id="after"')
        links = [one for one in re.findall(r'href="([^"]+)"', text) if "/moment?" in one]
        assert len(links) > 10
        assert all(re.search("#(moment|r0-[0-9]+)$", one) for one in links)
        assert 'action="/moment#moment"' in text
        assert 'id="moment"' in (await page.get("/moment?topic=t&at=2h..now")).text


async def test_json_is_folded_open_and_unseen_signs_are_escapes():
    async with shown() as (page, client, broker):
        now = broker.clock.wall_ms()
        coloured = "\x1b[31mERROR\x1b[0m \u202etxt.exe nul\x00here".encode()
        half = rb'{"half": "\ud800", "deep": {"a": [1, 2]}}'
        await topic_with(client, "t", [(now, coloured), (now, half), (now, b'{"n":[' + b"1," * 5000 + b"1]}")])
        answer = await page.get(f"/moment?topic=t&at={now}")
        text = answer.text
        sign = '<span class="sign">{}</span>'.format
        assert f"{sign(chr(92) + 'x1b')}[31mERROR" in text
        assert f"{sign(chr(92) + 'u202e')}txt.exe nul{sign(chr(92) + 'x00')}here" in text
        assert coloured.hex() not in text
        assert text.count('<ul class="tree">') == 5
        assert '<span class="field">deep</span> <span class="quiet">{1}</span>' in text
        assert "more are not shown" in text
        found = (await page.get(f"/moment?topic=t&at={now}&where=value%20~%20'ERROR'")).text
        assert found.count("<tr data-row ") == 1


async def test_hostile_values_are_text():
    async with shown() as (page, client, broker):
        now = broker.clock.wall_ms()
        await topic_with(client, "t", [(now, HOSTILE), (now, b"\xff\x00"), (now, None), (now, b"y" * 20_000)])
        text = (await page.get(f"/moment?topic=t&at={now}")).text
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert" in text
        assert "whole value" in text
        assert "none (deleted)" in text
        assert text.count("y" * 17_000) == 0


async def test_downloads():
    async with shown() as (page, client, broker):
        now = await with_records(client, broker)
        answer = await page.get(f"/moment/download?topic=t&at={now}&within=2m&where=value.state%20%3D%20%27new%27")
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert [json.loads(line["value"])["at"] for line in lines] == [-2, 0]
        assert answer.headers["content-disposition"] == 'attachment; filename="t.jsonl"'
        assert (await page.get("/moment/download?topic=t&format=xml")).status_code == 400


async def test_a_download_of_too_much_is_refused_before_it_begins(monkeypatch):
    monkeypatch.setattr(moment, "DOWNLOADED_AT_MOST", 3)
    async with shown() as (page, client, broker):
        await with_records(client, broker)
        answer = await page.get("/moment/download?topic=t&within=1d")
        assert (answer.status_code, "that range has 8 records" in answer.text) == (413, True)


async def test_parquet_where_there_is_pyarrow_and_a_sentence_elsewhere(monkeypatch):
    from horolog.console import parquet

    async def converted(lines):
        return b"".join([line async for line in lines])[:4]

    async with shown() as (page, client, broker):
        await with_records(client, broker)
        monkeypatch.setattr(parquet, "is_installed", lambda: False)
        refused = await page.get("/moment/download?topic=t&format=parquet&within=1d")
        assert (refused.status_code, "pip install pyarrow" in refused.text) == (501, True)
        monkeypatch.setattr(parquet, "is_installed", lambda: True)
        monkeypatch.setattr(parquet, "converted", converted)
        assert (await page.get("/moment/download?topic=t&format=parquet&within=1d")).content == b'{"to'


def test_bounds_of_the_chart():
    assert chart_bounds([], [], MomentQuery(1000, 900, 1100)) == (800, 1200)
    assert chart_bounds([], [], MomentQuery(10, 9, 11)) == (0, 110)
    assert chart_bounds([], [], MomentQuery(1000, 1000, 1400, is_range=True)) == (900, 1500)
    assert spans(1000, 900, 1300) == (100, 900)
    assert spans(1000, 999, 1001) == (25, 150)


async def test_a_second_time_makes_a_range():
    async with shown() as (page, client, broker):
        now = await with_records(client, broker)
        text = (await page.get(f"/moment?topic=t&at={now - 4 * MINUTE}&until=%2B3m")).text
        assert text.count("<tr data-row ") == 3
        assert 'name="until" value="+3m"' in text
        until = (await page.get(f"/moment?topic=t&until={now}")).text
        assert until.count("<tr data-row ") == 6
        lines = (await page.get(f"/moment/download?topic=t&at={now - 2 * MINUTE}&until={now}")).text.splitlines()
        assert len(lines) == 2
        elsewhere = [
            unescape(one) for one in re.findall(r'href="([^"]+)"', text) if "/moment?" in one and "until" in one
        ]
        assert elsewhere == []
        for query, field in (
            ("at=soonish&until=3h", "at"),
            ("at=3h&until=soonish", "until"),
            ("at=3h&until=4h", "until"),
            ("at=4h..3h&until=2h", "until"),
        ):
            answer = await page.get(f"/moment?topic=t&{query}")
            assert answer.status_code == 400
            assert f'id="{field}-wrong"' in answer.text
            assert answer.text.count('class="wrong"') == 1


async def test_the_timeline_is_zoomed():
    async with shown() as (page, client, broker):
        now = await with_records(client, broker)

        async def drawn(query):
            text = (await page.get(f"/moment?topic=t&at={now}&within=10m{query}")).text
            return json.loads(unescape(re.search(r'data-chart="([^"]+)"', text)[1])), text

        usual, text = await drawn("")
        assert usual["shown"] == [now - 10 * MINUTE, now + 10 * MINUTE]
        narrow, _ = await drawn("&span=60000")
        assert narrow["bucket"] < usual["bucket"]
        everything, _ = await drawn("&span=all")
        assert sum(everything["counts"]) == 8
        assert re.findall(r"span=(\w+)", text)[-1] == "all"
        assert (await page.get("/moment?topic=t&span=wide")).status_code == 400


async def test_late_records_are_marked_where_they_were_written():
    async with shown() as (page, client, broker):
        now = broker.clock.wall_ms() - HOUR
        await topic_with(
            client, "t", [(now, b"a"), (now + 2 * MINUTE, b"b"), (now + MINUTE, b"c"), (now + 5 * MINUTE, b"d")]
        )
        text = (await page.get(f"/moment?topic=t&at={now + 90_000}&within=10m")).text
        order = re.findall(r'(?:id|href)="#?(r0-\d|moment)"', text)
        assert order == ["r0-0", "r0-2", "moment", "r0-1", "r0-2", "r0-3"]
        assert "was written here, 1m late" in text


async def test_a_key_has_a_timeline():
    async with shown() as (page, client, broker):
        now = broker.clock.wall_ms() - HOUR
        async with Producer(client) as producer:
            await topic_with(client, "t", [])
            for at, value in ((0, b"a"), (MINUTE, b"b"), (2 * MINUTE, None)):
                await producer.send_and_wait("t", value, key=b"k", timestamp_ms=now + at)
        text = (await page.get(f"/moment?topic=t&at={now + MINUTE}&within=10m&key=k")).text
        assert re.findall(r'<rect(?: class="(\w+)")? x="([\d.]+)"', text) == [
            ("", "17.0"),
            ("", "497.0"),
            ("gone", "977.0"),
        ]
        assert 'class="dots"' not in (await page.get(f"/moment?topic=t&at={now}&within=10m")).text
