"""The closed loop of the load generator: every connection keeps so many requests under way, and every answer is checked.

One thread, one epoll, plain sockets. An answer is known by its length and by the bytes it must hold at one place (the error code, for a
look-up also the offset), so nothing is decoded; a single connection with one request under way does without epoll.
"""

import select
import socket
import struct
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

RECEIVE_BYTES = 256 << 10
DRAIN_SECONDS = 20.0
MAX_LATENCIES = 2_000_000


class RefusedError(Exception):
    """An answer was not the one expected: a refused load is no result."""


@dataclass(frozen=True, slots=True)
class Load:
    """Frames to send in turn, and for each the bytes that its answer of `reply_size` bytes must hold at `expect_at`."""

    frames: Sequence[bytes]
    expected: Sequence[bytes]
    expect_at: int
    reply_size: int


@dataclass(frozen=True, slots=True)
class Outcome:
    requests: int
    seconds: float
    latencies: list[float]


class Link:
    """One connection with its load: the unsent rest of a frame, and when each unanswered request was sent."""

    __slots__ = ("at", "credit", "load", "partial", "socket", "turn", "unsent", "waiting", "watched")

    def __init__(self, address: str, load: Load, in_flight: int, turn: int = 0) -> None:
        self.socket = connect(address)
        self.load = load
        self.credit = in_flight
        self.turn = turn
        self.unsent: bytes | None = None
        self.watched = False
        self.at = 0
        self.partial = b""
        self.waiting: deque[tuple[float, bytes]] = deque()


def connect(address: str) -> socket.socket:
    """A blocking socket whose waits the kernel bounds: a timeout of Python's own would poll before every call."""
    host, _, port = address.rpartition(":")
    made = socket.create_connection((host, int(port)), 10.0)
    made.settimeout(None)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for direction in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        made.setsockopt(socket.SOL_SOCKET, direction, struct.pack("ll", int(DRAIN_SECONDS), 0))
    return made


def run(address: str, load: Load, connections: int, in_flight: int, seconds: float) -> Outcome:
    """Send for so many seconds, then wait for the answers still under way."""
    turns = [index * len(load.frames) // connections for index in range(connections)]
    return _run([Link(address, load, in_flight, turn) for turn in turns], in_flight, seconds)


def run_over(targets: Sequence[tuple[str, Load]], in_flight: int, seconds: float) -> Outcome:
    """The same with a connection to each of several addresses, each with a load of its own."""
    return _run([Link(address, load, in_flight) for address, load in targets], in_flight, seconds)


def _run(links: list[Link], in_flight: int, seconds: float) -> Outcome:
    try:
        if len(links) == in_flight == 1:
            return _ping_pong(links[0].socket, links[0].load, seconds)
        return _Pump(links).run(seconds)
    finally:
        for link in links:
            link.socket.close()


def refuse(reply: bytes, load: Load, expected: bytes) -> RefusedError:
    """Say what came instead of the answer expected."""
    if len(reply) >= load.expect_at + 2:
        code = struct.unpack_from(">h", reply, load.expect_at)[0]
        return RefusedError(
            f"error code {code}, {len(reply)} bytes: {reply[load.expect_at :][:24].hex()}, not {expected.hex()}"
        )
    return RefusedError(f"an answer of {len(reply)} bytes, not {load.reply_size}: {reply[:64].hex()}")


def _ping_pong(link: socket.socket, load: Load, seconds: float) -> Outcome:
    frames, expected, count = load.frames, load.expected, len(load.frames)
    low, size, clock = load.expect_at, load.reply_size, time.perf_counter
    send, receive = link.sendall, link.recv
    latencies: list[float] = []
    began = now = clock()
    end, turn = began + seconds, 0
    while now < end:
        send(frames[turn])
        reply = receive(RECEIVE_BYTES)
        want = expected[turn]
        while reply and len(reply) < size and len(reply) < 4 + int.from_bytes(reply[:4], "big"):
            reply += receive(RECEIVE_BYTES)
        if len(reply) != size or reply[low : low + len(want)] != want:
            raise refuse(reply, load, want)
        sent, now = now, clock()
        latencies.append(now - sent)
        turn = turn + 1 if turn + 1 < count else 0
    return Outcome(len(latencies), now - began, latencies)


class _Pump:
    """Many connections on one epoll."""

    def __init__(self, links: list[Link]) -> None:
        self.links = {link.socket.fileno(): link for link in links}
        self.latencies: list[float] = []
        self.requests = 0
        self.sending = True
        self.epoll = select.epoll(len(links))

    def run(self, seconds: float) -> Outcome:
        began = time.perf_counter()
        for fd, link in self.links.items():
            link.socket.setblocking(False)
            self.epoll.register(fd, select.EPOLLIN)
            self._send(link, time.perf_counter())
        self._serve(began + seconds)
        self.sending = False
        self._serve(time.perf_counter() + DRAIN_SECONDS)
        took = time.perf_counter() - began
        self.epoll.close()
        if any(link.waiting for link in self.links.values()):
            raise RefusedError(f"answers missing after {DRAIN_SECONDS} s")
        return Outcome(self.requests, took, self.latencies)

    def _serve(self, end: float) -> None:
        poll, links, clock = self.epoll.poll, self.links, time.perf_counter
        now = clock()
        while now < end:
            if not self.sending and not any(link.waiting for link in links.values()):
                return
            events = poll(0.1)
            now = clock()
            for fd, event in events:
                link = links[fd]
                if event & ~select.EPOLLOUT:
                    self._receive(link, now)
                self._send(link, now)

    def _receive(self, link: Link, now: float) -> None:
        data = link.socket.recv(RECEIVE_BYTES)
        if not data:
            raise RefusedError("the broker closed the connection")
        if link.partial:
            data = link.partial + data
        load = link.load
        low, size, at = load.expect_at, load.reply_size, 0
        while at + size <= len(data):
            sent, want = link.waiting.popleft()
            if data[at + low : at + low + len(want)] != want or int.from_bytes(data[at : at + 4], "big") != size - 4:
                raise refuse(data[at : at + 4 + int.from_bytes(data[at : at + 4], "big")], load, want)
            if len(self.latencies) < MAX_LATENCIES:
                self.latencies.append(now - sent)
            self.requests += 1
            link.credit += 1
            at += size
        link.partial = data[at:]
        if link.partial and len(link.partial) >= 4 and int.from_bytes(link.partial[:4], "big") != size - 4:
            raise refuse(link.partial, load, b"")

    def _send(self, link: Link, now: float) -> None:
        """Send until the credit is used up or the socket is full; a full one is watched until it takes more."""
        load = link.load
        while link.unsent is not None or (link.credit and self.sending):
            if link.unsent is None:
                link.unsent, link.at = load.frames[link.turn], 0
                link.waiting.append((now, load.expected[link.turn]))
                link.turn = link.turn + 1 if link.turn + 1 < len(load.frames) else 0
                link.credit -= 1
            try:
                link.at += link.socket.send(memoryview(link.unsent)[link.at :] if link.at else link.unsent)
            except BlockingIOError:
                self._watch_space(link, wanted=True)
                return
            if link.at == len(link.unsent):
                link.unsent = None
        if link.watched:
            self._watch_space(link, wanted=False)

    def _watch_space(self, link: Link, *, wanted: bool) -> None:
        link.watched = wanted
        self.epoll.modify(link.socket, select.EPOLLIN | select.EPOLLOUT if wanted else select.EPOLLIN)
