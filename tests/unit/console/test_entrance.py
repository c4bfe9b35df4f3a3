"""Who holds connections and asks for nothing keeps nobody out: over sockets, with TLS and without."""

import asyncio
import contextlib
import ssl

import pytest

from horolog.base.clock import SystemClock
from horolog.console import entrance, serving
from horolog.console.app import Application
from horolog.console.entrance import Entrance, Greeting, address_of
from horolog.console.options import Options, clusters_of
from horolog.console.serving import serve
from tests.support.authority import Authority

PAGE = b"GET /static/console.css HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@contextlib.asynccontextmanager
async def running(issued=None):
    """A console and its port."""
    application = Application(Options(clusters_of(["127.0.0.1:1"], None), timeout_ms=100), SystemClock())
    bound = asyncio.get_running_loop().create_future()
    files = {} if issued is None else {"certificate": str(issued.chain_file), "key": str(issued.key_file)}
    task = asyncio.ensure_future(serve(application, "127.0.0.1", 0, bound.set_result, **files))
    try:
        yield await bound
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def got(port, context=None):
    name = {} if context is None else {"ssl": context, "server_hostname": "127.0.0.1"}
    reader, writer = await asyncio.open_connection("127.0.0.1", port, **name)
    writer.write(PAGE)
    try:
        return (await asyncio.wait_for(reader.read(), 20)).split()[1]
    finally:
        writer.close()


@pytest.mark.parametrize("over_tls", [False, True])
async def test_silent_connections_keep_nobody_out(tmp_path, over_tls):
    authority = Authority(tmp_path)
    context = ssl.create_default_context(cafile=str(authority.trusted)) if over_tls else None
    async with running(authority.issue("127.0.0.1") if over_tls else None) as port:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(250)]
        assert await got(port, context) == b"200"
        for _, writer in silent[200:]:
            writer.write(b"GET / HT")
        assert await got(port, context) == b"200"
        for _, writer in silent:
            writer.close()


@pytest.mark.parametrize("over_tls", [False, True])
@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: "])
async def test_a_first_request_that_does_not_come_ends_the_connection(tmp_path, monkeypatch, said, over_tls):
    for module in (entrance, serving):
        monkeypatch.setattr(module, "FIRST_REQUEST_S", 0.2)
    async with running(Authority(tmp_path).issue("127.0.0.1") if over_tls else None) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(said)
        with contextlib.suppress(ConnectionError):
            await asyncio.wait_for(reader.read(), 20)
        writer.close()


async def test_a_request_after_an_answer_has_a_deadline_too(monkeypatch):
    monkeypatch.setattr(serving, "FIRST_REQUEST_S", 0.3)
    async with running() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(PAGE.replace(b"Connection: close\r\n", b""))
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"GET / HT")
        with contextlib.suppress(ConnectionError):
            await asyncio.wait_for(reader.read(), 20)
        writer.close()


class Visitor:
    def __init__(self, address, *, is_idle=True):
        self.address, self.is_idle, self.ended = address, is_idle, False

    def end(self):
        self.ended = True


def entered(door, *visitors):
    for one in visitors:
        door.enter(one)
    return [one.ended for one in visitors]


def test_the_oldest_idle_one_of_the_address_goes():
    door = Entrance(at_once=10, per_address=2)
    busy, idle, newest = Visitor("a", is_idle=False), Visitor("a"), Visitor("a")
    assert entered(door, busy, idle, newest) == [False, True, False]
    assert (len(door), "2 visitors" in repr(door)) == (2, True)


def test_of_all_addresses_that_with_the_most_gives_way():
    door = Entrance(at_once=3, per_address=3)
    other, many, newest = Visitor("b"), [Visitor("a"), Visitor("a")], Visitor("c")
    assert entered(door, other, *many, newest) == [False, True, False, False]


def test_where_all_are_answered_the_newest_goes():
    door = Entrance(at_once=2, per_address=2)
    busy, newest = [Visitor("a", is_idle=False), Visitor("b", is_idle=False)], Visitor("c")
    assert entered(door, *busy, newest) == [False, False, True]
    door.leave(busy[0])
    assert len(door) == 1


class Transport(asyncio.Transport):
    """One whose TLS is agreed on when the test says so."""

    def __init__(self, address="a"):
        super().__init__({"peername": (address, 1)})
        self.aborted, self.protocol = False, None

    def pause_reading(self):
        pass

    def abort(self):
        self.aborted = True

    def is_closing(self):
        return self.aborted

    def set_protocol(self, protocol):
        self.protocol = protocol


class Page(asyncio.Protocol):
    """What comes behind a greeting."""

    def __init__(self):
        self.transport, self.received, self.ends_at_once = None, b"", False

    def connection_made(self, transport):
        self.transport = transport
        if self.ends_at_once:
            transport.abort()

    def data_received(self, data):
        self.received += data


class TestGreeting:
    """A connection whose TLS is not agreed on yet is a visitor as others are."""

    @pytest.fixture
    async def handshake(self, monkeypatch):
        """What the loop is asked for: a future of the secure transport, and the protocol that hears what comes early."""
        asked = []

        def start_tls(transport, protocol, _context, **_others):
            future = asyncio.get_running_loop().create_future()
            asked.append((future, protocol))
            return future

        monkeypatch.setattr(asyncio.get_running_loop(), "start_tls", start_tls)
        return asked

    def greet(self, door, page, transport):
        greeting = Greeting(door, None, lambda: page)
        greeting.connection_made(transport)
        return greeting

    async def begun(self, door, page, handshake, transport=None):
        greeting = self.greet(door, page, transport or Transport())
        await asyncio.sleep(0)
        (asked,) = handshake
        return greeting, *asked

    @pytest.mark.parametrize("early_data", [b"", b"GET"])
    async def test_its_place_is_taken_by_what_comes_behind_it(self, handshake, early_data):
        door, page = Entrance(), Page()
        _, future, early = await self.begun(door, page, handshake)
        assert len(door) == 1
        if early_data:
            early.data_received(early_data)
        secure = Transport()
        future.set_result(secure)
        await asyncio.sleep(0)
        assert (len(door), page.transport, secure.protocol, page.received) == (0, secure, page, early_data)

    async def test_early_data_is_not_for_whom_the_door_was_shut(self, handshake):
        page = Page()
        page.ends_at_once = True
        _, future, early = await self.begun(Entrance(), page, handshake)
        early.data_received(b"GET")
        future.set_result(Transport())
        await asyncio.sleep(0)
        assert page.received == b""

    async def test_one_that_was_lost_meanwhile_is_served_no_more(self, handshake):
        door, page = Entrance(), Page()
        _, future, early = await self.begun(door, page, handshake)
        early.connection_lost(None)
        future.set_result(Transport())
        await asyncio.sleep(0)
        assert (len(door), page.transport) == (0, None)

    async def test_one_that_fails_leaves(self, handshake):
        door, transport = Entrance(), Transport()
        _, future, _ = await self.begun(door, Page(), handshake, transport)
        future.set_exception(ssl.SSLError("no TLS at all"))
        await asyncio.sleep(0)
        assert (len(door), transport.aborted) == (0, True)

    async def test_one_that_is_lost_before_it_begins_leaves(self, handshake):
        door = Entrance()
        self.greet(door, Page(), Transport()).connection_lost(None)
        assert len(door) == 0

    async def test_one_for_which_there_is_no_room_does_not_begin(self, handshake):
        door, transport = Entrance(at_once=1, per_address=1), Transport("b")
        entered(door, Visitor("a", is_idle=False))
        self.greet(door, Page(), transport)
        await asyncio.sleep(0)
        assert (len(door), transport.aborted, handshake) == (1, True, [])

    async def test_one_that_has_to_go_stops_at_once(self, handshake):
        door, transport = Entrance(at_once=10, per_address=1), Transport()
        _, future, _ = await self.begun(door, Page(), handshake, transport)
        entered(door, Visitor("a"))
        await asyncio.sleep(0)
        assert (len(door), transport.aborted, future.cancelled()) == (1, True, True)


@pytest.mark.parametrize(("peer", "address"), [(("192.0.2.1", 5), "192.0.2.1"), ("", ""), (None, "")])
def test_an_address_is_that_of_the_peer(peer, address):
    transport = Transport()
    transport._extra["peername"] = peer
    assert address_of(transport) == address
