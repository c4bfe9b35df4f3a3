"""Continues the search of a moment's page while it is open: in both directions from what the page has read, by events.

    found   rows for the page, and the progress of the search: {"before": html, "after": html, "looked_at": n, "low": ms, ...}
    done    everything was read, or enough was found: {"why": "..."}
    paused  it ended early, and continues if the page asks again: {"why": "..."}

A closed page ends its stream, and with it the fetches. The direction that has read fewer records goes next.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

from starlette.responses import Response, StreamingResponse

from horolog.console.follow import Followers, event
from horolog.console.moment import (
    ROWS,
    ROWS_AT_MOST,
    MomentQuery,
    Wish,
    asked_of,
    places_of,
    tools_of,
    words_of,
)
from horolog.console.reading import FoundPiece, Reader, ShownRecord
from horolog.console.record_rows import rows_of, tree_parts
from horolog.console.rendering import Times, render
from horolog.console.visits import Visit

if TYPE_CHECKING:
    from horolog.client.values.types import TopicPartition

SEARCHES_AT_ONCE = 4
PROGRESS_SECONDS = 0.3
LONGEST_S = 600.0
MOST = 2**62


@dataclass(frozen=True, slots=True)
class Search:
    """What a page continues to search for, its position on both sides of its time, and how many rows each still wants."""

    places: "list[TopicPartition]"
    wish: Wish
    asked: MomentQuery
    low_ms: int
    high_ms: int
    wants_earlier: int
    wants_later: int
    looked_at: int
    """By the page and by streams before this one."""


@dataclass(slots=True)
class Way:
    """One of the two directions: its position, and how many rows it still wants."""

    is_after: bool
    pieces: AsyncGenerator[FoundPiece, None]
    edge_ms: int
    wanted: int
    looked_at: int = 0
    rows: list[ShownRecord] = field(default_factory=list)
    """Rows found but not sent yet."""

    async def step(self, reader: Reader) -> bool:
        """Read the next piece; whether there is more in this direction."""
        before = reader.looked_at
        piece = await anext(self.pieces, None)
        self.looked_at += reader.looked_at - before
        if piece is None:
            return False
        found = piece.rows[: self.wanted] if self.is_after else piece.rows[max(0, len(piece.rows) - self.wanted) :]
        self.wanted -= len(found)
        self.rows = self.rows + found if self.is_after else found + self.rows
        self.edge_ms = piece.edge_ms
        return self.wanted > 0


async def events(visit: Visit, searchers: Followers) -> Response:
    """The event stream of a page. An invalid address is refused here."""
    places = await places_of(visit, visit.text("topic"))
    wish, asked = Wish(visit, visit.desk.decoder), asked_of(visit)
    low = visit.number("low", asked.at_ms, 0, MOST)
    high = visit.number("high", asked.at_ms, 0, MOST)
    most = visit.number("rows", ROWS, 2, ROWS_AT_MOST)
    earlier, later = visit.number("earlier", 0), visit.number("later", 0)
    wanted = (0 if asked.is_range else most // 2 - earlier, (most if asked.is_range else most - most // 2) - later)
    search = Search(places, wish, asked, low, high, *wanted, visit.number("looked_at", 0, 0, MOST))
    visit.frame()
    searchers.enter()
    return StreamingResponse(
        _stream(visit, search, searchers), media_type="text/event-stream", headers={"x-accel-buffering": "no"}
    )


async def _searched(visit: Visit, search: Search, reader: Reader, before: Way, after: Way) -> AsyncIterator[bytes]:
    """The events of a search; the last one says why it ended."""
    clock, since_ms, until_ms = visit.desk.clock, search.asked.since_ms, search.asked.until_ms
    left = [before] if before.wanted > 0 and before.edge_ms > since_ms else []
    left += [after] if after.wanted > 0 and after.edge_ms < until_ms else []
    sent = clock.monotonic()
    while left and not reader.is_spent:
        way = min(left, key=lambda one: one.looked_at)
        if not await way.step(reader):
            left.remove(way)
        if clock.monotonic() - sent >= PROGRESS_SECONDS or not left:
            yield event("found", _progress(visit, before, after, search.looked_at + reader.looked_at))
            before.rows, after.rows = [], []
            sent = clock.monotonic()
            if await visit.desk.sessions.find(visit.session.id) is not visit.session:
                yield event("paused", {"why": "you are logged out; log in again"})
                return
        await asyncio.sleep(0)  # give other pages a turn
    if left:
        yield event("found", _progress(visit, before, after, search.looked_at + reader.looked_at))
        yield event("paused", {"why": f"the limit of {LONGEST_S / 60:.0f} minutes was reached"})
    else:
        is_all = before.edge_ms <= since_ms and after.edge_ms >= until_ms
        said = (
            "there are no more records in the time range" if is_all else "the page is full; Earlier and Later show more"
        )
        yield event("done", {"why": "; ".join([said, *reader.notes])})


async def _stream(visit: Visit, search: Search, searchers: Followers) -> AsyncIterator[bytes]:
    from horolog.client.values.errors import KafkaError

    clock = visit.desk.clock
    until = clock.monotonic() + LONGEST_S
    reader = Reader(visit.client, search.places, search.wish, clock, records_at_most=inf, until=until)
    try:
        yield b": here\n\n"
        async with AsyncExitStack() as stack:
            since_ms, until_ms = search.asked.since_ms, search.asked.until_ms
            before = Way(False, reader.backward(since_ms, search.low_ms), search.low_ms, search.wants_earlier)
            after = Way(True, reader.forward(search.high_ms, until_ms), search.high_ms, search.wants_later)
            for way in (before, after):
                await stack.enter_async_context(aclosing(way.pieces))
            async for said in _searched(visit, search, reader, before, after):
                yield said
    except KafkaError as error:
        yield event("paused", {"why": error.message})
    finally:
        searchers.leave()


def _progress(visit: Visit, before: Way, after: Way, looked_at: int) -> dict[str, Any]:
    times = Times(visit.zone, visit.now_ms)
    words = words_of(visit, visit.text("topic"))
    parts, tools = tree_parts(ROWS), tools_of(visit, words)

    def html(way: Way) -> str:
        if not way.rows:
            return ""
        rows = rows_of(way.rows, parts, is_after=way.is_after)
        return render("rows_part.html", {"rows_found": rows, "tools": tools})

    return {
        "before": html(before),
        "after": html(after),
        "earlier": len(before.rows),
        "later": len(after.rows),
        "looked_at": looked_at,
        "low": before.edge_ms,
        "high": after.edge_ms,
        "from": times.plain(before.edge_ms),
        "until": times.plain(after.edge_ms),
    }
