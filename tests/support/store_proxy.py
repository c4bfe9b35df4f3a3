"""A proxy before an S3 server that is slow, refuses, hides answers, and delivers requests late or twice, as its `Weather` says.

with store_proxy.running(server_port, seed) as proxy:
...  # clients use proxy.endpoint
proxy.weather = STORM
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import NamedTuple

HEAD_END = b"\r\n\r\n"
POLL_S = 0.02
REFUSAL = (
    b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>",
    b"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nContent-Length: %d\r\n\r\n%s",
)
WITHOUT_BODY = (b"204", b"304")


class Fate(Enum):
    """What becomes of one request."""

    SERVED = "served"
    REFUSED = "refused"
    """503, and the server does not see it."""
    UNANSWERED = "unanswered"
    """Done, and the connection ends without an answer."""
    LATE = "late"
    """The connection ends at once; the server sees the request later."""
    TWICE = "twice"
    """Served, and the server sees it again later."""
    LOST = "lost"
    """The connection ends, and the server does not see it."""


class Weather(NamedTuple):
    """How requests fare: shares of each fate, and delays before they reach the server."""

    refused: float = 0.0
    unanswered: float = 0.0
    late: float = 0.0
    twice: float = 0.0
    lost: float = 0.0
    slow: float = 0.0
    """The share that waits for up to `slow_s`."""
    slow_s: float = 0.0
    put_s: float = 0.0
    """Every create takes so much longer."""
    get_s: float = 0.0
    later_s: float = 3.0
    is_held: bool = False
    """Requests wait until the weather changes."""
    holds_writes: bool = False
    """Creates do so, and nothing else."""

    def fate(self, draw: float) -> Fate:
        """That of a request which drew a number from 0 to 1."""
        shares = {
            Fate.REFUSED: self.refused,
            Fate.UNANSWERED: self.unanswered,
            Fate.LATE: self.late,
            Fate.TWICE: self.twice,
            Fate.LOST: self.lost,
        }
        for fate, share in shares.items():
            if draw < share:
                return fate
            draw -= share
        return Fate.SERVED


FINE = Weather()
AWAY = Weather(lost=1.0)
HELD = Weather(is_held=True)
READABLE = Weather(holds_writes=True)
STORM = Weather(refused=0.25, unanswered=0.1, late=0.1, twice=0.15, lost=0.05, slow=0.3, slow_s=1.5)


class StoreProxy:
    """One listener on loopback before one server; `weather` may be set at any time, by any thread."""

    def __init__(self, server_port: int, seed: int = 0) -> None:
        self.weather = FINE
        self.met: Counter[Fate] = Counter()
        self.requests: Counter[str] = Counter()
        """By method."""
        self._server_port = server_port
        self._chance = random.Random(seed)
        self._later: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._listening = threading.Event()
        self._ends = asyncio.Event()
        self.port = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._thread.start()
        assert self._listening.wait(20), "the proxy does not listen"

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._ends.set)
        self._thread.join(20)

    def _run(self) -> None:
        self._loop.run_until_complete(self._listen())
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        """Every connection is closed, whatever it waits for."""
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.sleep(0)

    async def _listen(self) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=256)
        self.port = server.sockets[0].getsockname()[1]
        self._listening.set()
        await self._ends.wait()
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The requests of one connection, one after the other."""
        try:
            while await self._serve_one(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client or the server has gone
        finally:
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on."""
        request = await read_message(reader)
        method = request[: request.index(b" ")]
        self.requests[method.decode()] += 1
        weather = self.weather
        fate = weather.fate(self._chance.random())
        self.met[fate] += 1
        if fate is Fate.LATE:
            self._send_later(request, self._chance.uniform(0, weather.later_s))
        if fate in {Fate.LATE, Fate.LOST}:
            return False
        if fate is Fate.REFUSED:
            body, answer = REFUSAL
            writer.write(answer % (len(body), body))
        else:
            await self._wait(weather, method)
            answer = await self._forward(request)
            if fate is Fate.TWICE:  # never before the first: that one would get the answer of a repetition
                self._send_later(request, self._chance.uniform(0, weather.later_s))
            if fate is Fate.UNANSWERED:
                return False
            writer.write(answer)
        await writer.drain()
        return True

    async def _wait(self, weather: Weather, method: bytes) -> None:
        if self._chance.random() < weather.slow:
            await asyncio.sleep(self._chance.uniform(0, weather.slow_s))
        delay = weather.put_s if method == b"PUT" else weather.get_s
        if delay:
            await asyncio.sleep(delay)
        while self.weather.is_held or (self.weather.holds_writes and method == b"PUT"):  # noqa: ASYNC110 - threads set the weather
            await asyncio.sleep(POLL_S)

    def _send_later(self, request: bytes, seconds: float) -> None:
        async def send() -> None:
            await asyncio.sleep(seconds)
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._forward(request)

        task = self._loop.create_task(send())
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def _forward(self, request: bytes) -> bytes:
        """The server's answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._server_port)
        try:
            writer.write(request)
            await writer.drain()
            return await read_message(reader, is_head=request.startswith(b"HEAD "))
        finally:
            writer.close()


async def read_message(reader: asyncio.StreamReader, *, is_head: bool = False) -> bytes:
    """One request or response with its body, as it came; raises IncompleteReadError at the end of the connection."""
    head = await reader.readuntil(HEAD_END)
    fields = fields_of(head)
    if is_head or head.split(b" ", 2)[1] in WITHOUT_BODY:
        return head
    if fields.get(b"transfer-encoding") == b"chunked":
        return head + await _chunks(reader)
    return head + await reader.readexactly(int(fields.get(b"content-length", b"0")))


def fields_of(head: bytes) -> dict[bytes, bytes]:
    """The header's fields, with names in lower case."""
    lines = head[: -len(HEAD_END)].split(b"\r\n")[1:]
    pairs = (line.partition(b":") for line in lines)
    return {name.strip().lower(): value.strip().lower() for name, _, value in pairs}


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    found = b""
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.partition(b";")[0], 16)
        found += line + await reader.readexactly(size + 2)
        if size == 0:
            return found


@contextmanager
def running(server_port: int, seed: int = 0) -> Iterator[StoreProxy]:
    """The proxy, until the block ends."""
    proxy = StoreProxy(server_port, seed)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
