"""One worker is made of what a worker has: its part of everything, ports of its own, and the others to ask."""

import asyncio

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.cluster import settling
from horolog.broker.cluster.membership import Members
from horolog.broker.cluster.worker_context import WorkerContext
from horolog.broker.cluster.worker_membership import WorkerMembership
from horolog.broker.config.listeners import Address
from horolog.broker.config.settings import load
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.server.app import AdvertisedEndpoints, Broker
from horolog.broker.workers.of_worker import of_worker
from horolog.broker.workers.shared_listener import SharedListener
from horolog.protocol.messages.metadata import MetadataRequest
from tests.support.log_model import NOW_MS

NODES = (1, 2)
SETTINGS = {
    "node.id": "2",
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "advertised.listeners": "PLAINTEXT://broker:9000",
    "max.connections": "101",
    "horolog.http.listen": "127.0.0.1:0",
}


class Tie:
    """The link of a worker whose fellow is not there yet."""

    live = frozenset()

    def journal_is_at(self, number, done):
        done()

    def goes_on(self):
        pass

    def applied(self, number):
        pass


def context_of(folder):
    none = {"PLAINTEXT": 0}
    return WorkerContext(2, NODES, str(folder), {"PLAINTEXT": {1: 9001, 2: 9002}}, False, none, none)


def names_in(folder):
    return sorted(one.name for one in folder.iterdir())


@pytest.fixture
async def process(tmp_path):
    return of_worker(context_of(tmp_path), Tie(), asyncio.get_running_loop())


async def started(process):
    settings, _ = load(None, {}, SETTINGS)
    storage, clock = MemoryStorage(), ManualClock(NOW_MS)
    settling.settle(storage, ["/data"], clock, load(None, {}, {**SETTINGS, "node.id": "1"})[0], NODES)
    broker = Broker(settings, clock, storage, ["/data"], asyncio.get_running_loop(), process)
    await broker.start()
    return broker


async def test_a_broker_is_made_of_it(process, tmp_path):
    broker = await started(process)
    try:
        assert isinstance(broker.cluster._membership, WorkerMembership)
        assert broker.placement.members == Members(2, NODES, frozenset({2}))
        assert broker.hand_overs.moves == {}
        assert broker.settings.max_connections == 51
        assert broker.sent_back is not None
        assert [type(one) for one in broker.listeners] == [SharedListener]
        assert [(one.node, one.host, one.port) for one in broker.placement.brokers("PLAINTEXT")] == [
            (2, "broker", 9002)
        ]
        assert names_in(tmp_path) == ["2", "2.http"]
    finally:
        await broker.stop()


async def test_it_has_its_part_of_what_all_share(process):
    assert process.brokers == len(NODES)
    share = process.share
    assert (share.node, share.owner, share.is_first) == (2, 1, False)


async def test_clients_are_never_sent_to_the_port_that_all_share(process):
    endpoints = AdvertisedEndpoints({"PLAINTEXT": Address("PLAINTEXT", "PLAINTEXT", "broker", 9000)}, process.ports)
    assert [endpoints.advertised("PLAINTEXT", node) for node in NODES] == [("broker", 9001), ("broker", 9002)]


async def test_who_waits_for_another_is_told_that_nobody_is_asked_any_more(process):
    told = []
    process.peers.ask(1, MetadataRequest(topics=[]), 12, told.append, 10_000)
    process.peers.close()
    assert told == [None]
