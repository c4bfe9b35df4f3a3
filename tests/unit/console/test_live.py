"""Live parts: one question for all pages that show the same, an end with the last of them, and a broker that goes and returns."""

import asyncio
import json

import pytest
from starlette.requests import Request

from horolog.client.values.errors import KafkaError
from horolog.console import groups, live, now
from horolog.console.live import Live, Part, Round
from horolog.console.options import Login
from horolog.console.visits import FAULT, Refused, Visit
from horolog.protocol.errors import ErrorCode
from tests.support.console_browser import browser, shown, topic_with


@pytest.fixture(autouse=True)
def short_interval(monkeypatch):
    monkeypatch.setattr(live, "INTERVAL_S", 0.02)


def visit(page, query="", path="/events", session=None):
    scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode(), "headers": []}
    scope["state"] = {"session": session or page.application.sessions.everybody}
    return Visit(page.application.desk, Request(scope))


class Asked:
    """A part that counts its questions, and answers what it is told to."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.count = 0
        self.part = Part("error_part.html", self.data_of)

    async def data_of(self, of):
        self.count += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return {"status": 200, "sentence": f"{answer} {self.count}"}


async def next_event(stream):
    async for chunk in stream:
        lines = dict(line.split(": ", 1) for line in chunk.decode().strip().splitlines() if not line.startswith(":"))
        if lines:
            return lines["event"], json.loads(lines["data"])
    return None


async def streams_of(lively, part, *visits):
    return [(await lively.events(one, part)).body_iterator for one in visits]


async def close(*streams):
    for stream in streams:
        await stream.aclose()


async def test_many_pages_share_one_question_and_the_last_ends_it():
    lively, asked = Live(), Asked("answer")
    async with browser("127.0.0.1:1") as page:
        streams = await streams_of(lively, asked.part, *(visit(page, tz) for tz in ("", "tz=UTC", "") * 10))
        rounds = 4
        for _ in range(rounds):
            found = await asyncio.gather(*map(next_event, streams))
            assert {name for name, _ in found} == {"part"}
        assert asked.count <= rounds + 2
        assert repr(lively) == "<Live: 30 streams of 1 rounds>"
        await close(*streams[1:])
        assert (await next_event(streams[0]))[0] == "part"
        await close(streams[0])
        assert repr(lively) == "<Live: 0 streams of 0 rounds>"
        count = asked.count
        await asyncio.sleep(0.1)
        assert asked.count == count


async def test_other_filters_and_other_users_are_other_rounds():
    lively, asked = Live(), Asked("answer")
    async with browser("127.0.0.1:1", "127.0.0.1:2") as page:
        queries = ("", "filter=a", "filter=b", "cluster=127.0.0.1:2")
        streams = await streams_of(lively, asked.part, *(visit(page, query) for query in queries))
        await asyncio.gather(*map(next_event, streams))
        assert repr(lively) == "<Live: 4 streams of 4 rounds>"
        await close(*streams)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (KafkaError(ErrorCode.NETWORK_EXCEPTION, "refused"), "no answer from 127.0.0.1:1: refused"),
        (TimeoutError(), "the broker took longer than 8 s"),
        (Refused("there is no group 'g'"), "there is no group 'g'"),
        (RuntimeError("a fault"), FAULT),
    ],
)
async def test_a_broker_that_goes_away_is_told_and_its_return(error, why):
    lively, asked = Live(), Asked("before", error, error, "after")
    async with browser("127.0.0.1:1") as page:
        (stream,) = await streams_of(lively, asked.part, visit(page))
        assert (await next_event(stream))[0] == "part"
        name, data = await next_event(stream)
        assert (name, data["why"].startswith(why)) == ("away", True)
        (late,) = await streams_of(lively, asked.part, visit(page))
        assert (await next_event(late))[0] in {"away", "part"}
        while name == "away":
            name, data = await next_event(stream)
        assert (name, "after" in data["html"]) == ("part", True)
        await close(stream, late)


async def test_a_page_that_does_not_read_gets_the_newest_answer():
    lively, asked = Live(), Asked("answer")
    async with browser("127.0.0.1:1") as page:
        (stream,) = await streams_of(lively, asked.part, visit(page))
        assert "answer 1" in (await next_event(stream))[1]["html"]
        await asyncio.sleep(0.2)
        behind = asked.count
        number = int((await next_event(stream))[1]["html"].split("answer ")[1].split("<")[0].strip(".\n "))
        assert behind - 1 <= number
        assert number > 2
        await close(stream)


async def test_streams_are_bounded_and_say_so():
    lively, asked = Live(most=1), Asked("answer")
    async with browser("127.0.0.1:1") as page:
        (one,) = await streams_of(lively, asked.part, visit(page))
        await next_event(one)
        (other,) = await streams_of(lively, asked.part, visit(page))
        assert await next_event(other) == ("ended", {"why": "1 pages are live already; this one stays as it is"})
        assert await next_event(other) is None
        await close(one)
        with pytest.raises(Refused, match="tz: "):
            await lively.events(visit(page, "tz=Nowhere"), asked.part)


async def test_a_stream_ends_after_its_time_and_with_its_session(monkeypatch):
    asked = Asked("answer")
    async with browser("127.0.0.1:1", login=Login.TOKEN, token="t") as page:
        sessions = page.application.sessions
        session = await sessions.begin("")
        (stream,) = await streams_of(Live(), asked.part, visit(page, session=session))
        assert (await next_event(stream))[0] == "part"
        await sessions.end(session)
        assert await next_event(stream) == ("ended", {"why": "you are logged out; log in again"})
        monkeypatch.setattr(live, "LONGEST_S", -1)
        (stream,) = await streams_of(Live(), asked.part, visit(page, session=await sessions.begin("")))
        assert await next_event(stream) == ("again", {})


async def test_a_round_that_nobody_joined_is_left_alone():
    one = Round(lambda: asyncio.sleep(0, "why"))
    assert repr(one) == "<Round of 0 streams>"
    one.streams = 1
    assert one.leave() is False


@pytest.mark.parametrize(
    ("path", "query", "template", "data_of", "words"),
    [
        ("/events", "", "now_part.html", now.data_of, ["orders", "No known problems"]),
        ("/groups/events", "", "groups_part.html", groups.data_of_all, ["billing"]),
        ("/group/events", "name=billing", "group_part.html", groups.data_of, ["Records behind", "orders"]),
    ],
)
async def test_the_parts_of_pages(path, query, template, data_of, words):
    async with shown() as (page, client, broker):
        await topic_with(client, "orders", [(broker.clock.wall_ms(), b"x")])
        from horolog import Admin, TopicPartition

        await Admin(client).alter_group_offsets("billing", {TopicPartition("orders", 0): 0})
        (stream,) = await streams_of(Live(), Part(template, data_of), visit(page, query, path))
        name, data = await asyncio.wait_for(next_event(stream), 20)
        assert name == "part"
        assert all(word in data["html"] for word in words)
        whole = (await page.get(path.removesuffix("/events") + "/" * (path == "/events") + f"?{query}")).text
        assert f'data-live="{path}' in whole
        await close(stream)


async def test_a_browser_that_has_gone_ends_its_stream():
    async with shown() as (page, client, broker):
        await topic_with(client, "orders", [(broker.clock.wall_ms(), b"x")])
        sent, gone = [], asyncio.Event()

        async def receive():
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)
            if b"event: part" in message.get("body", b""):
                gone.set()

        head = {"type": "http", "method": "GET", "path": "/events", "raw_path": b"/events", "query_string": b""}
        scope = head | {"headers": [(b"host", b"127.0.0.1:8080")], "scheme": "http", "root_path": "", "asgi": {}}
        await asyncio.wait_for(page.application(scope, receive, send), 20)
        assert sent[0]["status"] == 200
        assert repr(page.application._live) == "<Live: 0 streams of 0 rounds>"


async def test_the_application_sends_them():
    async with shown() as (page, client, broker):
        await topic_with(client, "orders", [(broker.clock.wall_ms(), b"x")])
        answer = await page.application._part("now_part.html", "now")(visit(page))
        assert answer.media_type == "text/event-stream"
        assert (await asyncio.wait_for(next_event(answer.body_iterator), 20))[0] == "part"
        await close(answer.body_iterator)
