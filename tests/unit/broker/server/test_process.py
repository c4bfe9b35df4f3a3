"""The process of a sole broker leads everything, opens all of its folders, and has nobody to ask."""

from horolog.base.clock import ManualClock
from horolog.broker.base.own_thread import AtOnce
from horolog.broker.cluster.membership import Members
from horolog.broker.config.listeners import Address
from horolog.broker.config.settings import Settings
from horolog.broker.network.listener import Listener
from horolog.broker.server.process import sole
from tests.support.conversations import Service, limits
from tests.support.memory_broker import MemoryBroker

ADDRESS = Address("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0)


class HttpServer:
    def __init__(self):
        self.began_at = None

    async def start(self, host, port):
        self.began_at = host, port


async def test_what_a_sole_broker_is_made_of():
    async with MemoryBroker() as memory:
        broker = memory.broker
        me = broker.settings.node_id
        assert broker.placement.members == Members(me, (me,), frozenset({me}))
        assert broker.cluster.nodes == (me,)
        assert (broker.hand_overs.moves, broker.logs.share.owner, broker.logs.share.suffix) == ({}, me, "")


def test_nothing_is_divided_and_clients_are_sent_where_the_settings_say():
    process = sole(Settings(), AtOnce())
    assert (process.brokers, process.ports, process.labels) == (1, {}, {})


async def test_listeners_are_those_of_clients():
    process = sole(Settings(), AtOnce())
    listener = process.new_listener(ADDRESS, Service(), ManualClock(), limits(), None, None)
    assert type(listener) is Listener
    assert listener.name == "PLAINTEXT"
    assert not process.new_peer_listeners(Service(), ManualClock(), limits())
    server = HttpServer()
    await process.begin_http(server, ("127.0.0.1", 9404))
    assert server.began_at == ("127.0.0.1", 9404)
