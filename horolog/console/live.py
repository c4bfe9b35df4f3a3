"""Keeps open pages up to date: an event stream for each, and one request every few seconds for all that show the same.

Streams of the same part of the same client share a `Round`, which polls while it has streams. A stream holds only the newest
answer, so a browser that does not read costs nothing; a closed page ends its stream, and the last stream ends the round.

    part    the current part, rendered: {"html": "..."}
    away    why there is no answer, each time: {"why": "..."}
    again   the stream has lasted long enough; the page opens another
    ended   the page no longer changes: {"why": "..."}
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from typing import Any, NamedTuple

from starlette.responses import Response, StreamingResponse

from horolog.client.values.errors import KafkaError
from horolog.console.follow import event
from horolog.console.options import ANSWER_SECONDS
from horolog.console.rendering import render
from horolog.console.visits import FAULT, Refused, Visit, sentence_of

INTERVAL_S = 5.0
LONGEST_S = 3600.0
STREAMS_AT_ONCE = 64
ASKED_AT_ONCE = 4

Data = dict[str, Any]
_log = logging.getLogger(__name__)


class Part(NamedTuple):
    """The live part of a page: its template, and the function for its values."""

    template: str
    data_of: Callable[[Visit], Awaitable[Data]]


class Answer(NamedTuple):
    """The latest values, or the reason why there are none; `number` counts answers."""

    number: int
    data: Data | None
    why: str = ""


class Round:
    """The polling that streams of the same part share."""

    def __init__(self, ask: Callable[[], Awaitable[Data | str]]) -> None:
        self.streams = 0
        self.answer = Answer(0, None)
        self._ask = ask
        self._news = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Round of {self.streams} streams>"

    def join(self) -> int:
        """Add a stream; returns the number of the answer that it already has. A failure is news to every page."""
        self.streams += 1
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return 0 if self.answer.why else self.answer.number

    def leave(self) -> bool:
        """Remove a stream; whether it was the last, which ends the polling."""
        self.streams -= 1
        if self.streams or self._task is None:
            return False
        self._task.cancel()
        self._task = None
        return True

    async def newer(self, number: int) -> Answer:
        """Wait for an answer newer than this number; returns the newest."""
        async with self._news:
            await self._news.wait_for(lambda: self.answer.number > number)
            return self.answer

    async def _run(self) -> None:
        while True:
            said = await self._ask()
            number = self.answer.number + 1
            async with self._news:
                self.answer = Answer(number, None, said) if isinstance(said, str) else Answer(number, said)
                self._news.notify_all()
            await asyncio.sleep(INTERVAL_S)


class Live:
    """All rounds and streams of a console."""

    def __init__(self, most: int = STREAMS_AT_ONCE) -> None:
        self._most = most
        self._streams = 0
        self._rounds: dict[Hashable, Round] = {}
        self._asking = asyncio.Semaphore(ASKED_AT_ONCE)

    def __repr__(self) -> str:
        return f"<Live: {self._streams} streams of {len(self._rounds)} rounds>"

    async def events(self, visit: Visit, part: Part) -> Response:
        """The event stream of a page; an invalid address is refused here."""
        visit.frame()
        stream = self._stream(visit, part) if self._streams < self._most else _one_too_many(self._most)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"x-accel-buffering": "no"})

    async def _stream(self, visit: Visit, part: Part) -> AsyncIterator[bytes]:
        sessions, clock = visit.desk.sessions, visit.desk.clock
        until = clock.monotonic() + LONGEST_S
        key = (
            visit.client,
            part.template,
            *sorted((k, v) for k, v in visit.request.query_params.multi_items() if k != "tz"),
        )
        shared = self._rounds.setdefault(key, Round(lambda: self._asked(visit, part)))
        self._streams += 1
        seen = shared.join()
        try:
            yield b": here\n\n"
            while clock.monotonic() < until:
                answer = await shared.newer(seen)
                seen = answer.number
                if await sessions.find(visit.session.id) is not visit.session:
                    yield event("ended", {"why": "you are logged out; log in again"})
                    return
                yield event("away", {"why": answer.why}) if answer.data is None else _rendered(visit, part, answer.data)
            yield event("again", {})
        finally:
            self._streams -= 1
            if shared.leave():
                del self._rounds[key]

    async def _asked(self, visit: Visit, part: Part) -> Data | str:
        """The values, or a sentence in place of them."""
        now = Visit(visit.desk, visit.request)
        try:
            async with self._asking, asyncio.timeout(ANSWER_SECONDS):
                return {"now_ms": now.now_ms, **await part.data_of(now)}
        except (Refused, KafkaError, TimeoutError) as error:
            return sentence_of(now, error)[0]
        except Exception:  # noqa: BLE001 - a part that fails shows one sentence; the next answer may be better
            _log.exception("an update of a live page failed: %s", visit.request.url.path)
            return FAULT


def _rendered(visit: Visit, part: Part, data: Data) -> bytes:
    """The part as HTML, in the page's zone, with the time of the answer."""
    now = Visit(visit.desk, visit.request)
    now.now_ms = data["now_ms"]
    return event("part", {"html": render(part.template, {**now.frame(), **data})})


async def _one_too_many(most: int) -> AsyncIterator[bytes]:
    yield event("ended", {"why": f"{most} pages are live already; this one stays as it is"})
