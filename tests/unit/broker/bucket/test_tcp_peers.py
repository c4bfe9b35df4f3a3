"""Brokers that ask each other over TCP, on loopback."""

import asyncio
import contextlib
import math
import socket
import ssl
from types import SimpleNamespace

from horolog.broker.bucket.members_watch import Pong
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.tcp_peers import PeerLinks, TcpPeers
from horolog.broker.handlers import HANDLERS
from horolog.broker.handlers.broker_heartbeat import handler_of
from horolog.broker.network.dispatch import Dispatcher
from horolog.broker.network.listener import Listener
from horolog.broker.security.peer_access import PeerAccess, PeerUser
from horolog.protocol.apis import ApiKey
from horolog.protocol.messages.transactions import ListTransactionsRequest
from tests.support.memory_broker import MemoryBroker

NODE = 2
ME = Wal(NODE, 7)
OPEN = PeerAccess("PLAINTEXT")


class Watch:
    """A broker that has read the journal up to entry 5."""

    me, state, lease, silent_s = ME, SimpleNamespace(number=5), SimpleNamespace(seconds=2.0), 0.0

    def pinged(self, number, done):
        assert number == 4
        done(Pong(self.me, self.silent_s))


@contextlib.asynccontextmanager
async def broker(watch):
    async with MemoryBroker(transaction_state_log_num_partitions=1) as memory:
        handlers = {**HANDLERS, ApiKey.BROKER_HEARTBEAT: handler_of(watch)}
        dispatcher = Dispatcher(memory.broker, handlers)
        listener = Listener("PLAINTEXT", "127.0.0.1", 0, dispatcher, memory.clock, memory.broker.limits)
        await listener.start()
        try:
            yield listener
        finally:
            await listener.stop_accepting()
            await listener.part()


@contextlib.asynccontextmanager
async def asking(addresses, refused=None, access=OPEN):
    peers = TcpPeers(addresses.get, asyncio.get_running_loop(), access)
    if refused is not None:
        peers.refused = refused.append
    try:
        yield peers
    finally:
        peers.close()
        await asyncio.sleep(0)


async def answer_of(begin):
    told = asyncio.get_running_loop().create_future()
    begin(told.set_result)
    async with asyncio.timeout(30):
        return await told


def ping(peers, incarnation=7):
    links = PeerLinks(peers, lambda node: Wal(node, incarnation) if incarnation else None)
    assert "PeerLinks over <TcpPeers" in repr(links)
    return answer_of(lambda done: links.ping(NODE, 4, done))


async def test_a_broker_answers_requests_and_pings_on_one_connection():
    watch = Watch()
    async with broker(watch) as listener, asking({NODE: ("127.0.0.1", listener.port)}) as peers:
        answer = await answer_of(lambda done: peers.ask(NODE, ListTransactionsRequest(), 0, done, 5_000))
        assert answer.error_code == 0
        assert await ping(peers) == Pong(ME, 0.0)
        watch.silent_s = 2.5
        assert await ping(peers) == Pong(ME, math.inf)
        assert listener.connection_count == 1


async def test_another_incarnation_and_a_broker_that_is_no_member_do_not_answer():
    async with broker(Watch()) as listener, asking({NODE: ("127.0.0.1", listener.port)}) as peers:
        assert await ping(peers, incarnation=6) is None
        assert await ping(peers, incarnation=None) is None


async def test_a_port_that_refuses_is_told():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        refused = []
        async with asking({NODE: taken.getsockname()}, refused) as peers:
            assert await ping(peers) is None
            await asyncio.sleep(0)
            assert refused == [NODE]


async def test_a_broker_without_an_address_is_not_asked():
    refused = []
    async with asking({}, refused) as peers:
        assert await ping(peers) is None
        assert refused == []


async def test_a_refused_login_is_logged_once_until_the_fault_is_another(caplog):
    """The listener is open: it does not take SASL's requests."""
    access = PeerAccess("CLOSED", None, PeerUser("PLAIN", "broker", "secret"))
    async with broker(Watch()) as listener, asking({NODE: ("127.0.0.1", listener.port)}, access=access) as peers:
        for _ in range(2):
            assert await ping(peers) is None
            await asyncio.sleep(0.2)
        (line,) = [one.getMessage() for one in caplog.records if "cannot send requests to broker" in one.getMessage()]
        assert line.startswith("cannot send requests to broker 2 at listener CLOSED: ")
        assert "secret" not in caplog.text


async def test_a_broker_whose_certificate_is_not_trusted_is_not_asked(caplog):
    async with broker(Watch()) as listener:

        class Tls:
            def context(self):
                return ssl.create_default_context()

        async with asking({NODE: ("127.0.0.1", listener.port)}, access=PeerAccess("TLS", Tls())) as peers:
            assert await ping(peers) is None
            assert await answer_of(lambda done: peers.ask(NODE, ListTransactionsRequest(), 0, done, 5_000)) is None
