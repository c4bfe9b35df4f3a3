"""A listener on real sockets: who may come in, who is sent away, and how everybody leaves when the broker stops."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop

from horolog.base.clock import ManualClock
from horolog.broker.base.principal import Principal
from horolog.broker.config.listeners import Address
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.network import listener
from horolog.broker.network.acceptor import Acceptor
from horolog.broker.network.conversation import Conversation, HandshakeFactory
from horolog.broker.network.limits import ConnectionLimits
from horolog.broker.network.listener import Listener
from horolog.broker.security.listener_protection import of
from horolog.broker.security.tls import HandshakeBounds, ListenerTls
from horolog.broker.security.tls_wire import TlsDoor
from tests.support.certificates import Certificates
from tests.support.conversations import Service, finish, framed, limits
from tests.support.waiting import until

SOON_S = 60.0


class Place:
    """A listener that is open, and what it serves with."""

    def __init__(
        self, shared: ConnectionLimits, new_handshake: HandshakeFactory | None = None, door: TlsDoor | None = None
    ) -> None:
        self.service = Service()
        self.clock = ManualClock()
        self._writers: list[asyncio.StreamWriter] = []
        self.limits = shared
        dispatcher: Any = SimpleNamespace(dispatch=self.service.serve)
        self.listener = Listener(
            "PLAINTEXT", "127.0.0.1", 0, dispatcher, self.clock, shared, new_handshake=new_handshake, door=door
        )

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.listener.port)
        self._writers.append(writer)
        return reader, writer

    async def leave(self) -> None:
        for writer in self._writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


@contextlib.asynccontextmanager
async def opened(
    *, new_handshake: HandshakeFactory | None = None, door: TlsDoor | None = None, quotas: Any = None, **chosen: Any
) -> AsyncIterator[Place]:
    place = Place(replace(limits(**chosen), quotas=quotas), new_handshake, door)
    await place.listener.start()
    try:
        yield place
    finally:
        await place.listener.stop_accepting()
        await asyncio.gather(place.listener.part(), place.leave())


async def read_all(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(SOON_S):
        return await reader.read()


async def test_a_peer_is_answered_and_counted_until_it_leaves() -> None:
    async with opened() as place:
        reader, writer = await place.connect()
        writer.write(framed(b"hello", b"w"))
        assert await reader.readexactly(5) == b"hello"
        assert place.listener.connection_count == 1
        assert place.listener.unanswered_count == 1
        assert not place.listener.holds_back_answers
        writer.write(framed(b"behind"))
        await until(lambda: place.listener.holds_back_answers)
        finish(place.service.waiting[0], b"W")
        assert await reader.readexactly(7) == b"Wbehind"
        writer.close()
        await until(lambda: not place.listener.connection_count)
        assert place.limits.admission.count == 0


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_large_requests_between_small_ones_are_served_in_their_order(
    factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    bodies = [b"a" * 300_000, b"b", b"c" * 40_000, b"d" * 20_000, b"i" * 1_000_000, b"f" * 300_000, b"g"]

    async def talk() -> None:
        async with opened() as place:
            reader, writer = await place.connect()
            writer.write(framed(*bodies))
            async with asyncio.timeout(SOON_S):
                assert await reader.readexactly(sum(map(len, bodies))) == b"".join(bodies)
            assert place.service.seen == bodies
            writer.write(framed(b"h" * 100_000)[:50_000])
            await until(lambda: place.limits.memory.unfinished.total_bytes > 0)
            writer.close()
            await until(lambda: not place.listener.connection_count)
            assert place.limits.memory.unfinished.total_bytes == 0

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(talk())


class Password:
    """A handshake in which one word is the right one."""

    max_unfinished_bytes = 100

    def __init__(self, service: Service) -> None:
        self._service = service

    def serve(self, frame: memoryview, conversation: Conversation) -> Any:
        if bytes(frame) == b"open":
            conversation.serve_as(Principal("User", "alice"))
        return self._service.serve(frame, conversation)


async def test_every_connection_has_a_handshake_of_its_own() -> None:
    made: list[Password] = []

    def new_handshake() -> Password:
        made.append(Password(place.service))
        return made[-1]

    async with opened(new_handshake=new_handshake) as place:
        for _ in range(2):
            reader, writer = await place.connect()
            writer.write(framed(b"open") + framed(b"hello"))
            assert await reader.readexactly(9) == b"openhello"
        await place.connect()
        await until(lambda: len(made) == 3)


def door_of(certificates: Certificates, **settings: str) -> TlsDoor:
    given = from_layers(Layers(static=certificates.settings(listeners="PLAINTEXT://127.0.0.1:0", **settings)))
    tls = of(given, Address("PLAINTEXT", "SSL", "", 0)).tls
    assert tls is not None
    return TlsDoor(ListenerTls("PLAINTEXT", tls, HandshakeBounds(5000, 100_000, 100)))


async def secure(place: Place, certificates: Certificates) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = certificates.client(certificates.alice)
    return await asyncio.open_connection("127.0.0.1", place.listener.port, ssl=context, server_hostname="localhost")


async def test_over_tls_the_certificate_says_who_it_is(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    seen: list[Principal] = []

    async with opened(door=door_of(certificates, ssl_client_auth="required")) as place:
        serve = place.service.serve

        def noting(frame: memoryview, conversation: Conversation) -> Any:
            seen.append(conversation.principal)
            return serve(frame, conversation)

        place.listener._dispatcher.dispatch = noting
        reader, writer = await secure(place, certificates)
        writer.write(framed(b"hello"))
        assert await reader.readexactly(5) == b"hello"
        assert [one.name.partition(",")[0] for one in seen] == ["CN=alice"]
        writer.close()
        await until(lambda: not place.listener.connection_count)


async def test_over_tls_a_handshake_says_who_it_is(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    door = door_of(certificates, ssl_client_auth="required")
    async with opened(door=door, new_handshake=lambda: Password(place.service)) as place:
        reader, writer = await secure(place, certificates)
        writer.write(framed(b"open"))
        assert await reader.readexactly(4) == b"open"
        (connection,) = place.listener._connections
        assert connection.conversation.principal == Principal("User", "alice")
        assert connection.sends_files
        writer.close()
        await until(lambda: not place.listener.connection_count)


async def test_bounds_on_connections_hold_before_the_tls_handshake(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    door = door_of(certificates)
    async with opened(door=door, max_connections=1) as place:
        held = await place.connect()
        await until(lambda: place.listener.connection_count == 1)
        reader, writer = await place.connect()
        writer.write(b"\x16\x03\x01")
        assert await read_all(reader) == b""
        assert len(door.half_open) == 1
        assert door.tls.failures == 0
        held[1].close()
        await until(lambda: not door.half_open)
        assert place.limits.admission.count == 0


async def test_who_is_one_too_many_is_sent_away() -> None:
    async with opened(max_connections=1) as place:
        _, first = await place.connect()
        await until(lambda: place.listener.connection_count == 1)
        reader, _ = await place.connect()
        assert await read_all(reader) == b""
        first.close()
        await until(lambda: not place.listener.connection_count)
        reader, writer = await place.connect()
        writer.write(framed(b"hello"))
        assert await reader.readexactly(5) == b"hello"
        writer.close()


async def test_who_says_nothing_for_too_long_is_sent_away_and_who_waits_for_an_answer_is_not() -> None:
    async with opened(connections_max_idle_ms=500) as place:
        (idle, _), (waiting, asker) = await place.connect(), await place.connect()
        asker.write(framed(b"w"))
        await until(lambda: place.service.waiting)
        await asyncio.sleep(0.12)  # a sweep has seen both
        place.clock.advance(600)
        assert await read_all(idle) == b""
        assert place.listener.connection_count == 1
        finish(place.service.waiting[0], b"W")
        assert await waiting.readexactly(1) == b"W"


async def test_a_request_that_does_not_end_is_sent_away() -> None:
    async with opened(horolog_request_read_max_ms=500) as place:
        reader, writer = await place.connect()
        writer.write(framed(b"hello")[:-1])
        assert await read_all(reader) == b""
        assert place.service.seen == []


async def test_when_the_broker_stops_answers_leave_before_the_end() -> None:
    async with opened() as place:
        reader, writer = await place.connect()
        writer.write(framed(b"w"))
        await until(lambda: place.service.waiting)
        await place.listener.stop_accepting()
        place.listener.stop_serving()
        writer.write(framed(b"too late"))
        finish(place.service.waiting[0], b"W")
        parting = asyncio.create_task(place.listener.part())
        assert await read_all(reader) == b"W"
        writer.close()
        await parting
        assert place.service.seen == [b"w"]
        with pytest.raises(OSError, match="Connect call failed"):
            await place.connect()


async def test_buffers_are_as_the_settings_say_and_small_answers_leave_at_once() -> None:
    place = Place(limits(socket_send_buffer_bytes=50_000, socket_receive_buffer_bytes=60_000))
    with socket.socket() as tuned:
        place.listener.tune(tuned)
        assert tuned.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert tuned.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in {50_000, 100_000}
        assert tuned.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) in {60_000, 120_000}


class Hurried:
    """Quotas by which each connection but the first is too soon."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def connect(self, address: str) -> float:
        self.asked.append(address)
        return 0.1 if len(self.asked) > 1 else 0.0


async def test_who_connects_too_soon_is_not_served_and_closed_after_a_while() -> None:
    quotas: Any = Hurried()
    async with opened(quotas=quotas) as place:
        first, second = await place.connect(), await place.connect()
        for _, writer in (first, second):
            writer.write(framed(b"hello"))
        assert await first[0].readexactly(5) == b"hello"
        assert place.listener.connection_count == 2
        with contextlib.suppress(ConnectionResetError):  # of a system that says so where bytes were left unread
            assert await read_all(second[0]) == b""
        assert place.service.seen == [b"hello"]
        assert quotas.asked == ["127.0.0.1"] * 2


async def test_who_is_muted_is_not_idle() -> None:
    async with opened(connections_max_idle_ms=1000) as place:
        reader, writer = await place.connect()
        writer.write(framed(b"a"))
        assert await reader.readexactly(1) == b"a"
        (connection,) = place.listener._connections
        connection.conversation.mute(0.5)
        for _ in range(3):
            await asyncio.sleep(0.15)
            place.clock.advance(600)
        writer.write(framed(b"b"))
        assert await reader.readexactly(1) == b"b"


async def test_time_that_passes_at_once_passes_for_every_connection() -> None:
    async with opened() as place:
        for _ in range(2):
            reader, writer = await place.connect()
            writer.write(framed(b"a"))
            assert await reader.readexactly(1) == b"a"
        for connection in place.listener._connections:
            connection.conversation.mute(3600)
        place.listener.hurry(3600)
        await asyncio.sleep(0.01)
        assert [one.conversation.is_muted for one in place.listener._connections] == [False, False]


async def test_all_interfaces_have_one_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may choose another for each of them, which this one does."""
    hosts, asked = ("127.0.0.1", "127.0.0.2"), []

    async def apart(connect: Callable[[], asyncio.Protocol], _: str, port: int, backlog: int, **__: Any) -> Acceptor:
        asked.append(port)
        sockets = [socket.create_server((host, port), backlog=backlog) for host in hosts]
        while not port and len({one.getsockname()[1] for one in sockets}) == 1:
            sockets.append(sockets.pop(1) and socket.create_server(("127.0.0.2", 0)))
        return Acceptor(sockets, connect, asyncio.get_running_loop())

    monkeypatch.setattr(listener, "accept_at", apart)
    place = Place(limits())
    place.listener.host = ""
    await place.listener.start()
    (server,) = place.listener._servers
    assert isinstance(server, Acceptor)
    assert {one.getsockname()[1] for one in server.sockets} == {place.listener.port}
    assert asked == [0, place.listener.port]
    await place.listener.stop_accepting()


async def test_a_port_that_another_program_has_is_named() -> None:
    async with opened() as place:
        other = Place(limits())
        other.listener.port = place.listener.port
        text = rf"cannot listen on 127\.0\.0\.1:{place.listener.port}: address already in use; --listen HOST:PORT"
        with pytest.raises(OSError, match=text):
            await other.listener.start()
