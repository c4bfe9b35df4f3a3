"""Connections that come at once are accepted in a few turns of the event loop, whatever the system says meanwhile."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest
import uvloop

from horolog.broker.network import acceptor
from horolog.broker.network.acceptor import AT_ONCE, Acceptor, accept_at
from tests.support.waiting import until


class Noted(asyncio.Protocol):
    """A connection that is counted."""

    def __init__(self, opened: list[Noted]) -> None:
        self.opened = opened

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.opened.append(self)
        self.transport = transport


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    made = request.param()
    yield made
    made.close()


def close(accepting: Acceptor, opened: list[Noted]) -> None:
    accepting.close()
    for one in opened:
        one.transport.close()


def test_those_that_wait_are_accepted_in_a_few_turns(loop: asyncio.AbstractEventLoop) -> None:
    opened: list[Noted] = []
    count = 4 * AT_ONCE

    async def turns() -> int:
        accepting = await accept_at(lambda: Noted(opened), "127.0.0.1", 0, count)
        clients = [socket.create_connection(accepting.sockets[0].getsockname()) for _ in range(count)]
        assert opened == []
        taken = 0
        while len(opened) < count:
            await asyncio.sleep(0)
            taken += 1
        close(accepting, opened)
        for one in clients:
            one.close()
        await asyncio.sleep(0)
        return taken

    assert loop.run_until_complete(turns()) < count / 8


class Full(socket.socket):
    """A socket that refuses so many times to accept."""

    refusals = 2

    def accept(self) -> Any:
        if self.refusals:
            self.refusals -= 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().accept()


async def test_a_connection_waits_while_the_system_has_no_room_for_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(acceptor, "PAUSE_S", 0.001)
    opened: list[Noted] = []
    listening = Full()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    accepting = Acceptor([listening], lambda: Noted(opened), asyncio.get_running_loop())
    with socket.create_connection(listening.getsockname()):
        await until(lambda: opened)
    assert (listening.refusals, [one.getMessage().partition("accepted on")[0] for one in caplog.records]) == (
        0,
        ["no connection can be "],
    )
    assert repr(accepting) == "<Acceptor of 1 socket, 0 connections under way>"
    close(accepting, opened)


async def test_a_closed_one_tries_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor, "PAUSE_S", 0.001)
    listening = Full()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    accepting = Acceptor([listening], asyncio.Protocol, asyncio.get_running_loop())
    with socket.create_connection(listening.getsockname()):
        await until(lambda: listening.refusals < 2)
        accepting.close()
    assert listening.fileno() == -1


async def test_a_connection_that_cannot_be_opened_is_said_and_the_next_one_is_opened(
    caplog: pytest.LogCaptureFixture,
) -> None:
    opened: list[Noted] = []
    faults = [ValueError("no room")]

    def connect() -> asyncio.Protocol:
        if faults:
            raise faults.pop()
        return Noted(opened)

    accepting = await accept_at(connect, "127.0.0.1", 0, 10)
    address = accepting.sockets[0].getsockname()
    with socket.create_connection(address), socket.create_connection(address):
        await until(lambda: opened)
    assert [one.getMessage() for one in caplog.records] == ["a connection could not be opened: no room"]
    close(accepting, opened)


async def test_a_family_of_addresses_that_the_system_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where IPv6 is turned off."""
    create = socket.create_server
    lacks = [socket.AF_INET6]

    def create_server(address: Any, *, family: int, **how: Any) -> socket.socket:
        if family in lacks:
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
        return create(address, family=family, **how)

    monkeypatch.setattr(socket, "create_server", create_server)
    accepting = await accept_at(asyncio.Protocol, "", 0, 10)
    assert [one.family for one in accepting.sockets] == [socket.AF_INET]
    accepting.close()
    lacks.append(socket.AF_INET)
    with pytest.raises(OSError, match=os.strerror(errno.EADDRNOTAVAIL)):
        await accept_at(asyncio.Protocol, "", 0, 10)


async def test_no_socket_stays_open_where_one_address_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []
    create = socket.create_server

    def create_server(address: Any, **how: Any) -> socket.socket:
        made.append(create(address, **how))
        return made[-1]

    with create(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        loop = asyncio.get_running_loop()
        addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port)) for host in ("127.0.0.2", "127.0.0.1")]

        async def found(*_: Any, **__: Any) -> Any:
            return addresses

        monkeypatch.setattr(loop, "getaddrinfo", found)
        monkeypatch.setattr(socket, "create_server", create_server)
        with pytest.raises(OSError, match=os.strerror(errno.EADDRINUSE)):
            await accept_at(asyncio.Protocol, "both", port, 10)
    assert [one.fileno() for one in made] == [-1]
