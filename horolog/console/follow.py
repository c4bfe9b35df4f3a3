"""The page that follows a topic: records as they are written, filtered, as long as the browser reads them.

Nothing is read for a browser that does not read: the next records are fetched once the last ones were sent, so neither this process
nor the broker holds more than one fetch for it. If a topic is faster than people read, only the last records of each look
are sent, with the number of skipped ones.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from json import dumps
from typing import TYPE_CHECKING, Any

from starlette.responses import Response, StreamingResponse

from horolog.console.moment import Wish, places_of, which
from horolog.console.options import FOLLOWERS_AT_ONCE
from horolog.console.reading import ShownRecord
from horolog.console.record_rows import RecordRow, row_of
from horolog.console.rendering import Times, written_out
from horolog.console.visits import Refused, Visit

if TYPE_CHECKING:
    from horolog.client.consuming.consumer import Consumer
    from horolog.client.values.types import TopicPartition
    from horolog.client.wire.client import Client

POLL_MS = 1000
SENT_AT_ONCE = 50
POLLED_AT_ONCE = 500
FETCHED_BYTES = 1 << 20
LOOK_SECONDS = 0.25
LONGEST_S = 3600.0


async def page(visit: Visit) -> Response:
    name = visit.text("topic")
    if not name:
        return await which(visit, "/follow", "Follow")
    with visit.reading("topic", "partition"):
        await places_of(visit, name)
    if "topic" in visit.wrong:
        return await which(visit, "/follow", "Follow")
    with visit.reading("where", "key"):
        Wish(visit, visit.desk.decoder)
    words = {word: visit.typed(word) for word in ("where", "key", "partition")}
    return visit.page("follow.html", topic=name, **words)


class Followers:
    """Counts the concurrent followers."""

    def __init__(self, most: int = FOLLOWERS_AT_ONCE, said: str = "pages follow topics already; close one") -> None:
        self._most = self._left = most
        self._said = said

    def enter(self) -> None:
        if not self._left:
            raise Refused(f"{self._most} {self._said}", 429)
        self._left -= 1

    def leave(self) -> None:
        self._left += 1


async def events(visit: Visit, followers: Followers) -> Response:
    """The event stream of a following page."""
    places = await places_of(visit, visit.text("topic"))
    wish = Wish(visit, visit.desk.decoder)
    followers.enter()
    stream = _stream(visit, places, wish, followers)
    return StreamingResponse(stream, media_type="text/event-stream", headers={"x-accel-buffering": "no"})


async def _stream(
    visit: Visit, places: "list[TopicPartition]", wish: Wish, followers: Followers
) -> AsyncIterator[bytes]:
    from horolog.client.values.errors import KafkaError

    times = Times(visit.zone, visit.now_ms)
    clock = visit.desk.clock
    until = clock.monotonic() + LONGEST_S
    try:
        yield b": here\n\n"
        async with consumer_of(visit.client) as consumer:
            consumer.assign(places)
            for place in places:
                await consumer.position(place)
            yield event("ready", {"partitions": len(places)})
            while clock.monotonic() < until:
                found = await look(consumer, wish)
                yield event("records", found | {"rows": [as_json(row, times) for row in found["rows"]]})
                await asyncio.sleep(LOOK_SECONDS)
            yield event("ended", {"why": "this page has been live for an hour; reload it to continue"})
    except KafkaError as error:
        yield event("failed", {"why": error.message})
    finally:
        followers.leave()


def consumer_of(client: "Client") -> "Consumer":
    from horolog.client.consuming.consumer import Consumer

    return Consumer(client, start="latest", max_poll_records=POLLED_AT_ONCE, fetch_max_bytes=FETCHED_BYTES)


async def look(consumer: "Consumer", wish: Wish) -> dict[str, Any]:
    """The last wanted records of those that arrived, and how many there were."""
    rows: deque[RecordRow] = deque(maxlen=SENT_AT_ONCE)
    records = await consumer.poll(POLL_MS)
    wanted = 0
    for record in records:
        decoded = await wish(record)
        if decoded is not None:
            wanted += 1
            rows.append(row_of(ShownRecord(record, decoded, 0)))
    return {"looked_at": len(records), "wanted": wanted, "rows": list(rows)}


def as_json(row: RecordRow, times: Times) -> dict[str, Any]:
    record = row.record
    return {
        "time": times.plain(record.timestamp_ms) if record.timestamp_ms >= 0 else "no time",
        "at": record.timestamp_ms,
        "partition": record.partition,
        "offset": record.offset,
        "key": None if row.key is None else written_out(row.key),
        "value": None if row.value is None else written_out(row.value),
    }


def event(name: str, data: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {dumps(data)}\n\n".encode()
