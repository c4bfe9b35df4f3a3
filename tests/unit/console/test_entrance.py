"""Who holds connections and asks for nothing keeps nobody out: over sockets, with TLS and without."""

import asyncio
import contextlib
import ssl

import pytest

from horolog.broker.clock import SystemClock
from horolog.console import entrance, serving
from horolog.console.app import Application
from horolog.console.entrance import Entrance
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
