"""The other brokers on this machine, each at its socket."""

import asyncio

from horolog.broker.cluster.peers import NO_PEERS
from horolog.protocol.messages.transactions import ListTransactionsRequest
from tests.unit.broker.cluster.test_peer_line import NODE, ask, asking, broker_at, sockets  # noqa: F401 - a fixture


async def test_a_broker_is_asked_at_its_socket_over_one_connection(sockets):  # noqa: F811
    async with broker_at(sockets) as (_, listener), asking(sockets) as peers:
        assert (await ask(peers)).error_code == 0
        assert (await ask(peers)).error_code == 0
        assert listener.connection_count == 1
        assert f"/{NODE}" in repr(peers)


async def test_a_closed_connection_is_opened_no_more(sockets):  # noqa: F811
    async with broker_at(sockets), asking(sockets) as peers:
        await ask(peers)
        peers.close()
        assert await asyncio.wait_for(ask(peers), 5) is None


def test_a_broker_alone_has_no_peers():
    told = []
    NO_PEERS.ask(NODE, ListTransactionsRequest(), 0, told.append, 1_000)
    NO_PEERS.close()
    assert told == [None]
