"""A broker alone leads everything, opens all of its folders, and has nobody to ask."""

import asyncio

from horolog.base.clock import ManualClock
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.placement import Members
from horolog.broker.config.listeners import Address
from horolog.broker.config.settings import Settings
from horolog.broker.network.listener import Listener
from horolog.broker.server.role import Role
from tests.support.conversations import Service, limits
from tests.support.memory_broker import MemoryBroker

ADDRESS = Address("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0)


class HttpServer:
    def __init__(self):
        self.began_at = None

    async def start(self, host, port):
        self.began_at = host, port


async def test_what_a_broker_without_a_role_of_its_own_is_made_of():
    async with MemoryBroker() as memory:
        broker = memory.broker
        assert type(broker.cluster) is Cluster
        me = broker.settings.node_id
        assert broker.placement.members == Members(me, (me,), frozenset({me}))
        assert not broker.cluster.nodes[1:]
        assert (broker.hand_overs.moves, broker.logs.share.owner, broker.logs.share.suffix) == ({}, me, "")


def test_nothing_is_divided_and_clients_are_sent_where_the_settings_say():
    settings = Settings()
    assert Role().part_of(settings) is settings
    assert Role().parts == 1
    assert Role().ports == {}
    assert repr(Role()) == "<Role>"


async def test_listeners_are_those_of_clients():
    listener = Role().listener(ADDRESS, Service(), ManualClock(), limits(), None, None)
    assert type(listener) is Listener
    assert listener.name == "PLAINTEXT"
    assert not Role().peer_listeners(Service(), ManualClock(), limits())
    server = HttpServer()
    await Role().begin_http(server, ("127.0.0.1", 9404))
    assert server.began_at == ("127.0.0.1", 9404)


async def test_nobody_waits_for_others():
    Role().peers.close()
    await asyncio.sleep(0)
