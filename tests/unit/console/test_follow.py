"""Records are sent as they are written, the last of many, and followers are bounded."""

import asyncio
import json
from datetime import UTC

import pytest
from starlette.requests import Request

from horolog import Producer
from horolog.client.decoding import Decoder
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import ConsumerRecord
from horolog.console import follow
from horolog.console.follow import Followers, as_json, event
from horolog.console.reading import ShownRecord
from horolog.console.record_rows import row_of
from horolog.console.rendering import Times
from horolog.console.visits import Refused, Visit
from horolog.protocol.errors import ErrorCode
from tests.support.console_browser import shown, topic_with


def visit(page, query):
    scope = {"type": "http", "method": "GET", "path": "/follow/events", "query_string": query.encode(), "headers": []}
    application = page.application
    scope["state"] = {"session": application.sessions.everybody}
    return Visit(application.desk, Request(scope))


async def parts(stream, wanted):
    """(event, data) of the stream, until `wanted` rows have come."""
    found, rows = [], 0
    async for chunk in stream:
        lines = dict(line.split(": ", 1) for line in chunk.decode().strip().splitlines() if not line.startswith(":"))
        if lines:
            data = json.loads(lines["data"])
            found.append((lines["event"], data))
            rows += len(data.get("rows", ()))
        if rows >= wanted or (found and found[-1][0] in {"failed", "ended"}):
            break
    return found


async def test_records_that_are_written_are_sent(monkeypatch):
    monkeypatch.setattr(follow, "LOOK_SECONDS", 0.01)
    async with shown() as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"old")])
        followers = Followers(1)
        answer = await follow.events(visit(page, "topic=t&where=value+%3D+%27%3Cnew%3E%27"), followers)
        with pytest.raises(Refused, match="follow topics already"):
            followers.enter()

        async def write():
            await asyncio.sleep(0.3)
            async with Producer(client) as producer:
                for value in (b"other", b"<new>"):
                    await producer.send_and_wait("t", value, key=b"\xff")

        writing = asyncio.ensure_future(write())
        stream = answer.body_iterator
        found = await asyncio.wait_for(parts(stream, 1), 60)
        await writing
        await stream.aclose()
        followers.enter()
        assert found[0] == ("ready", {"partitions": 1})
        looked = [data for name, data in found if name == "records"]
        assert sum(one["looked_at"] for one in looked) == 2
        (row,) = [row for one in looked for row in one["rows"]]
        assert (row["value"], row["partition"], row["offset"]) == ("<new>", 0, 2)


async def test_of_many_the_last_are_sent(monkeypatch):
    monkeypatch.setattr(follow, "SENT_AT_ONCE", 2)
    async with shown() as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"%d" % number) for number in range(9)])

        class Consumer:
            async def poll(self, timeout_ms):
                from horolog.client.values.types import ConsumerRecord

                return [ConsumerRecord("t", 0, number, -1, 0, None, b"%d" % number) for number in range(5)]

        found = await follow.look(Consumer(), follow.Wish(visit(page, "topic=t"), page.application.desk.decoder))
        assert (found["wanted"], [row.value for row in found["rows"]]) == (5, ["3", "4"])
        assert (
            follow.as_json(found["rows"][0], follow.Times(page.application.desk.options.zone, 0))["time"] == "no time"
        )


async def test_the_stream_ends_with_a_reason(monkeypatch):
    async with shown() as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])

        async def fail(*_):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not for you")

        monkeypatch.setattr(follow, "look", fail)
        answer = await follow.events(visit(page, "topic=t"), Followers())
        assert (await parts(answer.body_iterator, 1))[-1] == ("failed", {"why": "not for you"})
        monkeypatch.setattr(follow, "LONGEST_S", -1)
        answer = await follow.events(visit(page, "topic=t"), Followers())
        assert (await parts(answer.body_iterator, 1))[-1][0] == "ended"


async def test_the_page():
    async with shown() as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])
        assert "data-events=" in (await page.get("/follow?topic=t&key=%3Cb%3E")).text
        assert '<option value="t">' in (await page.get("/follow")).text
        assert (await page.get("/follow?topic=t&where=((")).status_code == 400


def test_an_event_is_one_line_of_data():
    assert event("x", {"why": "a\nb"}) == b'event: x\ndata: {"why": "a\\nb"}\n\n'


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [("topic=t&where=value.", 400, "where"), ("topic=t&partition=9", 404, "partition"), ("topic=tt", 404, "topic")],
)
async def test_what_was_typed_stays_and_the_reason_stands_beside_it(query, status, field):
    async with shown() as (page, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])
        answer = await page.get(f"/follow?{query}")
        assert answer.status_code == status
        assert f'<p class="wrong" id="{field}-wrong" role="alert">' in answer.text
        assert f'value="{query.rpartition("=")[2]}"' in answer.text
        assert "data-events" not in answer.text


def test_unseen_signs_are_escapes():
    record = ConsumerRecord("t", 0, 7, 0, 0, b"k\x1b[0m", b"a \x00 b", ())
    decoded = asyncio.run(Decoder().decode(record))
    found = as_json(row_of(ShownRecord(record, decoded, 0)), Times(UTC, 0))
    assert (found["key"], found["value"]) == (r"k\x1b[0m", r"a \x00 b")
