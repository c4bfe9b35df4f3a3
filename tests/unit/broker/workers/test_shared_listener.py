"""A worker listens on the port that all share and on its own; both count as one listener."""

import asyncio
import socket
from types import SimpleNamespace

from horolog.base.clock import ManualClock
from horolog.broker.cluster.worker_context import WorkerContext
from horolog.broker.config.listeners import Address
from horolog.broker.config.settings import load
from horolog.broker.workers.ports import Reserved, planned
from horolog.broker.workers.shared_listener import SharedListener
from tests.support.conversations import Service, limits
from tests.support.waiting import until

LISTENER = {"listeners": "PLAINTEXT://127.0.0.1:0"}


def listener_of(reserved, place):
    nodes = tuple(range(len(reserved.listeners[0].own)))
    context = WorkerContext(
        node=place,
        nodes=nodes,
        sockets="",
        ports=reserved.advertised(nodes),
        is_first=False,
        own_ports=reserved.own_ports(place),
        shared_ports=reserved.shared_ports(),
    )
    dispatcher = SimpleNamespace(dispatch=Service().serve)
    address = Address("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0)
    return SharedListener(address, context, dispatcher, ManualClock(), limits())


async def test_workers_share_one_port_and_have_one_each():
    reserved = Reserved(planned(load(None, {}, LISTENER)[0], 2))
    (ports,) = reserved.listeners
    both = [listener_of(reserved, place) for place in (0, 1)]
    for one in both:
        await one.start()
    assert tuple(one.port for one in both) == ports.own

    own = [await asyncio.open_connection("127.0.0.1", port) for port in ports.own]
    await until(lambda: [one.connection_count for one in both] == [1, 1])
    shared = [await asyncio.open_connection("127.0.0.1", ports.shared) for _ in range(10)]
    await until(lambda: sum(one.connection_count for one in both) == 12)

    await both[0].stop_accepting()
    more = [await asyncio.open_connection("127.0.0.1", ports.shared) for _ in range(10)]
    await until(lambda: both[1].connection_count >= 11)
    for _, writer in (*own, *shared, *more):
        writer.close()
    await both[1].stop_accepting()
    await asyncio.gather(*(one.part() for one in both))
    for port in (ports.shared, *ports.own):
        with socket.socket() as tried:
            assert tried.connect_ex(("127.0.0.1", port)) != 0
    await both[0].stop_accepting()
    reserved.release()


async def test_a_single_worker_listens_on_one_port():
    reserved = Reserved(planned(load(None, {}, LISTENER)[0], 1))
    (ports,) = reserved.listeners
    assert ports.own == (ports.shared,)
    alone = listener_of(reserved, 0)
    await alone.start()
    assert alone.port == ports.shared
    _, writer = await asyncio.open_connection("127.0.0.1", ports.shared)
    await until(lambda: alone.connection_count == 1)
    writer.close()
    await alone.stop_accepting()
    await alone.part()
    reserved.release()
