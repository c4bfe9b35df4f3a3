"""A worker's link to the supervisor, JSON lines over a socket pair: the messages of both, and the worker's side.

A line is a list, a word with its values:

    the supervisor says                                   a worker says
    begin ORDERS            first of all                  settled                 the folder is settled (the first worker)
    go                      the folder is settled         ready                   it serves clients
    live [NODE ...]         nodes that are ready          failed MESSAGE CODE     it cannot start
    journal NUMBER          a worker has written so far   journal NUMBER          it has written so far; 0: it cannot be read
    applied NODE NUMBER     a worker has applied so far   applied NUMBER          it has applied so far
    stand NUMBER            stand still for a backup      ends NUMBER ENDS        where its logs ended then; null: not all stood still
    ping                    an answer is waited for       pong
                                                          stopping                it takes no more requests

Each end notices at once when the other has gone. No other process writes here, so a line that cannot be read is a bug and raises.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Callable, Iterable
from typing import Any, Protocol, cast

log = logging.getLogger(__name__)

LOOK_AT_THE_RECORD = 0
"""A number that every worker has reached: a worker that sends it cannot read the record, and asks those that know it to look."""

APPLIED_WITHIN_S = 0.5
"""How long a change waits for the other workers to apply it."""

GOES_ON_EVERY_S = 2.0
"""Well before the supervisor, which pings every second, gives up after ten."""

_CHUNK_BYTES = 65536


class Link(Protocol):
    """The other workers, as a broker sees them through its supervisor."""

    live: frozenset[int]
    """The nodes that are ready, and this one."""
    on_live_changed: Callable[[frozenset[int]], None]
    on_journal: Callable[[int], None]
    """Another worker has announced how far the journal is written: read on and apply it, then announce `applied`."""

    def journal_is_at(self, number: int, done: Callable[[], None]) -> None:
        """Announce it to the others; `done` is called when all live workers have applied it, or after `APPLIED_WITHIN_S`."""
        ...

    def applied(self, number: int) -> None:
        """The journal is applied here up to this entry."""
        ...

    def applied_by(self, node: int) -> int:
        """The entry up to which another worker has announced that it has applied the journal."""
        ...

    def goes_on(self) -> None:
        """Called amid work of many parts: pings are not read before all are done, and a worker that does not answer is taken to hang."""
        ...


def encode(word: str, *values: object) -> bytes:
    return json.dumps([word, *values], separators=(",", ":")).encode() + b"\n"


class Lines:
    """Splits bytes into messages as they arrive."""

    def __init__(self) -> None:
        self._begun = bytearray()

    def feed(self, data: bytes) -> list[list[Any]]:
        """The messages that these bytes complete."""
        self._begun += data
        *whole, self._begun = self._begun.split(b"\n")
        return [json.loads(line) for line in whole]


def receive_orders(connected: socket.socket) -> dict[str, Any]:
    """Wait for the supervisor's first message. Raises ConnectionError if it has gone before."""
    text = bytearray()
    while not text.endswith(b"\n"):
        # One byte more would belong to the next line, which the link reads.
        ahead = connected.recv(_CHUNK_BYTES, socket.MSG_PEEK)
        if not ahead:
            raise ConnectionError("the supervisor has ended")
        text += connected.recv(ahead.find(b"\n") + 1 or len(ahead))
    word, orders = json.loads(text)
    if word != "begin":
        raise ConnectionError(f"the supervisor says {word} before it says begin")
    return cast("dict[str, Any]", orders)


class _Awaited:
    """One number that the other workers have to reach."""

    __slots__ = ("done", "missing", "number", "timer")

    def __init__(self, number: int, missing: Iterable[int], done: Callable[[], None]) -> None:
        self.number = number
        self.missing = set(missing)
        self.done = done
        self.timer: asyncio.TimerHandle | None = None


class WorkerLink(asyncio.Protocol):
    """A worker's side; `on_lost` is called when the supervisor has ended."""

    def __init__(self, node: int, loop: asyncio.AbstractEventLoop, monotonic: Callable[[], float]) -> None:
        self.live = frozenset({node})
        self.on_live_changed: Callable[[frozenset[int]], None] = lambda _: None
        self.on_journal: Callable[[int], None] = lambda _: None
        self.on_lost: Callable[[], None] = lambda: None
        self.on_stand: Callable[[int], object] = lambda _: None
        """Stand still; returns where the logs end, or None if not all workers stood still (`workers.standstill`)."""
        self._node = node
        self._loop = loop
        self._monotonic = monotonic
        self._lines = Lines()
        self._go = asyncio.Event()
        self._lost = asyncio.Event()
        self._transport: asyncio.WriteTransport | None = None
        self._answered_s = monotonic()
        self._awaited: list[_Awaited] = []
        self._others_at: dict[int, int] = {}
        """How far the others have announced that they have applied the journal; a worker may read on before it is notified."""

    def __repr__(self) -> str:
        return f"<WorkerLink of {self._node}, live are {sorted(self.live)}>"

    async def connect(self, connected: socket.socket) -> None:
        await self._loop.create_connection(lambda: self, sock=connected)

    async def close(self) -> None:
        """Close the link once everything is sent."""
        if self._transport is not None:
            self._transport.close()
            await self._lost.wait()

    # -- messages of the worker

    def settled(self) -> None:
        self._say("settled")

    async def go(self) -> None:
        """Wait until the folder is settled. Raises ConnectionError if the supervisor goes before."""
        await self._go.wait()
        if self._lost.is_set():
            raise ConnectionError("the supervisor has ended")

    def ready(self) -> None:
        self._say("ready")

    def failed(self, message: str, code: int) -> None:
        self._say("failed", message, code)

    def stopping(self) -> None:
        self._say("stopping")

    def journal_is_at(self, number: int, done: Callable[[], None]) -> None:
        self._say("journal", number)
        behind = [node for node in self.live if node != self._node and self.applied_by(node) < number]
        awaited = _Awaited(number, behind, done)
        if not awaited.missing:
            done()
            return
        awaited.timer = self._loop.call_later(APPLIED_WITHIN_S, self._give_up, awaited)
        self._awaited.append(awaited)

    def look_at_the_record(self) -> None:
        self._say("journal", LOOK_AT_THE_RECORD)

    def applied(self, number: int) -> None:
        self._say("applied", number)

    def applied_by(self, node: int) -> int:
        return self._others_at.get(node, 0)

    def goes_on(self) -> None:
        """Limited in rate, so that it costs nothing."""
        if self._monotonic() - self._answered_s >= GOES_ON_EVERY_S:
            self._pong()

    def _pong(self) -> None:
        self._answered_s = self._monotonic()
        self._say("pong")

    def _say(self, word: str, *values: object) -> None:
        if self._transport is not None:
            self._transport.write(encode(word, *values))

    # -- messages to it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        for word, *values in self._lines.feed(data):
            self._hear(word, values)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - however it has gone, it has gone
        self._transport = None
        self._lost.set()
        self._go.set()
        self.on_lost()

    def _hear(self, word: str, values: list[Any]) -> None:
        match word:
            case "ping":
                self._pong()
            case "go":
                self._go.set()
            case "live":
                self._live_is(frozenset(values[0]))
            case "journal":
                self.on_journal(values[0])
            case "applied":
                self._others_applied(*values)
            case "stand":
                self._say("ends", values[0], self.on_stand(values[0]))
            case _:
                raise ValueError(f"the supervisor says {word}, which no worker knows")

    def _live_is(self, ready: frozenset[int]) -> None:
        live = ready | {self._node}
        if live == self.live:
            return
        self.live = live
        for awaited in self._awaited:
            awaited.missing &= live
        self.on_live_changed(live)
        self._let_go()

    def _others_applied(self, node: int, number: int) -> None:
        self._others_at[node] = number
        for awaited in self._awaited:
            if number >= awaited.number:
                awaited.missing.discard(node)
        self._let_go()

    def _let_go(self) -> None:
        """Release those whose number all have reached, in the order in which they came."""
        reached = [one for one in self._awaited if not one.missing]
        self._awaited = [one for one in self._awaited if one.missing]
        for awaited in reached:
            if awaited.timer is not None:
                awaited.timer.cancel()
            awaited.done()

    def _give_up(self, awaited: _Awaited) -> None:
        log.warning("workers %s did not apply entry %s of the journal in time", sorted(awaited.missing), awaited.number)
        self._awaited.remove(awaited)
        awaited.done()
