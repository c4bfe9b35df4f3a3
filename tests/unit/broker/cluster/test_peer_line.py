"""Brokers that ask each other over real Unix sockets: opened when needed, lost, given up, opened again; nobody waits in vain."""

import asyncio
import contextlib
import logging
import socket
import tempfile

import pytest

from horolog.broker.cluster import peer_line as module
from horolog.broker.cluster.peers import SocketPeers, socket_path
from horolog.broker.network.peer_listener import PeerListener
from horolog.broker.server.app import new_event_loop
from horolog.protocol.messages.transactions import (
    DescribeTransactionsRequest,
    ListTransactionsRequest,
    WriteTxnMarkersRequest,
)
from tests.support.memory_broker import MemoryBroker

NODE = 2
SOON_S = 60.0


@pytest.fixture
def sockets():
    """A short path: the name of a Unix socket has little room."""
    with tempfile.TemporaryDirectory(prefix="h") as folder:
        yield folder


@contextlib.asynccontextmanager
async def broker_at(sockets):
    """A broker that peers may ask."""
    async with MemoryBroker(transaction_state_log_num_partitions=1) as memory:
        path = socket_path(sockets, NODE)
        listener = PeerListener(path, memory.dispatcher, memory.clock, memory.broker.limits)
        await listener.start()
        try:
            yield memory, listener
        finally:
            await listener.stop_accepting()
            await listener.part()


@contextlib.asynccontextmanager
async def asking(sockets):
    peers = SocketPeers(sockets, asyncio.get_running_loop())
    try:
        yield peers
    finally:
        peers.close()
        await asyncio.sleep(0)


def begin(peers, request=None, timeout_ms=5_000, version=0):
    told = asyncio.get_running_loop().create_future()
    peers.ask(NODE, request or ListTransactionsRequest(), version, told.set_result, timeout_ms)
    return told


async def ask(peers, *arguments, **fields):
    async with asyncio.timeout(SOON_S):
        return await begin(peers, *arguments, **fields)


async def test_a_broker_is_asked_on_one_connection_in_order(sockets):
    async with broker_at(sockets) as (_, listener), asking(sockets) as peers:
        assert listener.connection_count == 0
        asked = [begin(peers, DescribeTransactionsRequest(transactional_ids=[str(n)])) for n in range(20)]
        answers = await asyncio.gather(*asked)
        assert [one.transaction_states[0].transactional_id for one in answers] == [str(n) for n in range(20)]
        assert (await ask(peers, WriteTxnMarkersRequest(), version=2)).markers == []
        assert listener.connection_count == 1
        assert "open, <Questions: 0 wait" in repr(peers)


async def test_bounds_of_clients_do_not_hold_for_peers(sockets):
    async with MemoryBroker(max_connections=0, queued_max_request_bytes=1) as memory:
        listener = PeerListener(socket_path(sockets, NODE), memory.dispatcher, memory.clock, memory.broker.limits)
        await listener.start()
        memory.broker.limits.memory.requests.held_bytes = 10
        async with asking(sockets) as peers:
            assert (await ask(peers)).error_code == 0
        await listener.stop_accepting()
        await listener.part()


async def test_a_broker_that_is_not_there_answers_nobody_and_is_left_alone_for_a_while(sockets):
    async with asking(sockets) as peers:
        assert await ask(peers) is None
        assert "at rest" in repr(peers)
        assert begin(peers).result() is None  # at once


async def test_the_log_says_once_why_there_is_no_connection_and_once_that_it_is_lost(sockets, monkeypatch, caplog):
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.001)
    caplog.set_level(logging.INFO)
    name = f"the worker at {socket_path(sockets, NODE)}"
    async with asking(sockets) as peers:
        for _ in range(3):
            assert await ask(peers) is None
            await asyncio.sleep(0.01)
        assert [one.getMessage() for one in caplog.records] == [f"cannot connect to {name}: No such file or directory"]
        async with broker_at(sockets), asyncio.timeout(SOON_S):
            while await ask(peers) is None:  # noqa: ASYNC110 - the first attempts may fall into a pause
                await asyncio.sleep(0.002)
            caplog.clear()
        async with asyncio.timeout(SOON_S):
            while caplog.text.count(name) < 2:  # noqa: ASYNC110 - the connection is opened again by itself
                await asyncio.sleep(0.002)
        lost, refused = (one.getMessage() for one in caplog.records if name in one.getMessage())
        assert lost == f"lost the connection to {name}"
        assert refused.startswith(f"cannot connect to {name}: ")


async def test_it_is_found_when_it_comes(sockets, monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.001)
    async with asking(sockets) as peers:
        assert await ask(peers) is None
        async with broker_at(sockets), asyncio.timeout(SOON_S):
            while await ask(peers) is None:  # noqa: ASYNC110 - whom nobody can ask tells nobody
                await asyncio.sleep(0.002)


async def test_pauses_double_up_to_a_bound(sockets, monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(module, "LONGEST_PAUSE_S", 0.004)
    async with asking(sockets) as peers:
        for _ in range(5):
            await ask(peers)
            await asyncio.sleep(0.006)
        (line,) = peers._lines.values()
        assert line._pause_s == 0.004


class Taker(asyncio.Protocol):
    """Takes requests, and does with the connection what the test says."""

    def __init__(self, answer):
        self._answer = answer

    def connection_made(self, transport):
        self._transport = transport

    def data_received(self, data):
        self._answer(self._transport)


@contextlib.asynccontextmanager
async def taker_at(sockets, answer):
    server = await asyncio.get_running_loop().create_unix_server(lambda: Taker(answer), socket_path(sockets, NODE))
    try:
        yield
    finally:
        server.close()
        await asyncio.sleep(0.01)  # connections end


async def test_who_waits_when_a_broker_ends_is_told(sockets):
    async with taker_at(sockets, lambda transport: transport.abort()), asking(sockets) as peers:
        first, second = begin(peers), begin(peers)
        async with asyncio.timeout(SOON_S):
            assert [await first, await second] == [None, None]


async def test_a_broker_that_takes_too_long_is_given_up_and_asked_on(sockets):
    async with taker_at(sockets, lambda _: None), asking(sockets) as peers:
        other = begin(peers, timeout_ms=60_000)
        assert await ask(peers, timeout_ms=10) is None
        assert not other.done()
        peers.close()
        assert other.result() is None
        assert begin(peers).result() is None


async def test_a_peer_that_answers_nonsense_is_left(sockets):
    nonsense = lambda transport: transport.write(b"HTTP/1.1 400 Bad Request")  # noqa: E731
    async with taker_at(sockets, nonsense), asking(sockets) as peers:
        assert await ask(peers) is None
        assert "at rest" in repr(peers)


async def test_more_than_so_many_do_not_wait(sockets, monkeypatch):
    monkeypatch.setattr(module, "MOST_WAITING", 2)
    async with broker_at(sockets), asking(sockets) as peers:
        asked = [begin(peers) for _ in range(3)]
        assert asked[2].result() is None
        assert None not in await asyncio.gather(*asked[:2])


async def test_closing_while_a_connection_is_being_opened_leaves_none(sockets):
    async with broker_at(sockets) as (_, listener):
        async with asking(sockets) as peers:
            told = begin(peers)
        assert told.result() is None
        await asyncio.sleep(0.02)
        assert listener.connection_count == 0


async def test_what_a_killed_broker_left_of_its_socket_is_no_hindrance(sockets):
    path = socket_path(sockets, NODE)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(path)
    async with broker_at(sockets), asking(sockets) as peers:
        assert (await ask(peers)).error_code == 0


def test_the_loop_of_a_broker_carries_it_too(sockets):
    async def ask_and_lose():
        async with asking(sockets) as peers:
            async with broker_at(sockets):
                assert (await ask(peers)).error_code == 0
            assert await ask(peers) is None

    with socket.socket(socket.AF_UNIX) as left, asyncio.Runner(loop_factory=new_event_loop) as runner:
        left.bind(socket_path(sockets, NODE))
        runner.run(ask_and_lose())


async def test_a_port_that_refuses_is_told_apart_from_a_broker_that_does_not_answer():
    refused, errors = [], [ConnectionRefusedError("no"), OSError("no way")]

    async def connect(_make):
        raise errors.pop(0)

    async with asyncio.timeout(SOON_S):
        for count in (1, 1):
            line = module.PeerLine("node 2", connect, asyncio.get_running_loop(), lambda: refused.append(2))
            told = asyncio.get_running_loop().create_future()
            line.ask(ListTransactionsRequest(), 0, told.set_result, 5_000)
            assert await told is None
            await asyncio.sleep(0)
            assert len(refused) == count
            line.close()


@pytest.mark.parametrize("is_closed", [False, True])
async def test_a_broker_that_ends_is_found_to_refuse_without_being_asked(sockets, monkeypatch, is_closed):
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.001)
    loop, refused, connects = asyncio.get_running_loop(), asyncio.Event(), []

    async def connect(make):
        connects.append(make)
        if len(connects) > 1:
            raise ConnectionRefusedError("no")
        await loop.create_unix_connection(make, socket_path(sockets, NODE))

    line = module.PeerLine("node 2", connect, loop, refused.set)
    async with taker_at(sockets, lambda wire: wire.abort()), asyncio.timeout(SOON_S):
        told = loop.create_future()
        line.ask(ListTransactionsRequest(), 0, told.set_result, 60_000)
        assert await told is None
        if is_closed:
            line.close()
            await asyncio.sleep(0.01)
        else:
            await refused.wait()
    line.close()
    assert len(connects) == 2 - is_closed
