"""Brokers over a store in one event loop, over TCP on loopback: they join, serve, hand over, leave, and begin anew when they are fenced."""

import asyncio
import contextlib
import socket

import pytest

from horolog.base.clock import SystemClock
from horolog.broker.base.answers import run
from horolog.broker.bucket.bucket_entries import WalEnded
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.registration import TwoOfOneNumber
from horolog.broker.bucket.shipped_safety import ShippingLimits
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.log.storage import RealStorage
from horolog.broker.server import app, over_store
from horolog.broker.server.over_store import OverStore, StoreUse
from horolog.stores.memory_store import MemoryStore
from horolog.stores.requests import ThreadedRequests
from tests.support.waiting import until

SOON_S = 30
OF_STORE = StoreUse(ShippingLimits(5, 1 << 20, 1 << 20), lease_ms=600, peers_timeout_ms=600)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Brokers:
    """Brokers in this event loop, by their numbers."""

    def __init__(self, folder):
        self.folder, self.store, self.running = folder, MemoryStore(SystemClock()), {}
        self.requests = []

    def settings(self, node):
        static = {
            "node.id": str(node),
            "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
            "log.dirs": f"{self.folder}/{node}",
        }
        return from_layers(Layers(static=static))

    def new_requests(self):
        self.requests.append(ThreadedRequests(self.store, asyncio.get_running_loop().call_soon_threadsafe, 4))
        return self.requests[-1]

    async def start(self, node, known_dead=None):
        settings, loop = self.settings(node), asyncio.get_running_loop()
        over = OverStore(settings, self.new_requests(), OF_STORE, loop)
        process = await over.register(known_dead)
        broker = app.Broker(settings, SystemClock(), RealStorage(), [f"{self.folder}/{node}"], loop, process)
        over.attach(broker)
        await broker.start()
        self.running[node] = over, broker
        return over, broker

    async def stop(self, node):
        over, broker = self.running.pop(node)
        await over.leave()
        await broker.stop()

    def __getitem__(self, node):
        return self.running[node][1].cluster

    def served(self, name="t"):
        return {
            one.index: node
            for node in self.running
            if name in self[node].topics
            for one in self[node].topics[name].led_here
        }

    async def create(self, partitions=4):
        self[1].create_topics([NewTopic("t", partitions)], lambda results: None)
        await until(lambda: len(self.served()) == partitions)


@contextlib.asynccontextmanager
async def brokers(folder, *nodes):
    made = Brokers(folder)
    try:
        for node in nodes:
            await made.start(node)
        yield made
    finally:
        for node in list(made.running):
            await made.stop(node)
        for one in made.requests:
            one.close()


async def test_brokers_are_one_cluster_and_one_that_leaves_gives_all_to_the_others(tmp_path):
    async with brokers(tmp_path, 1, 2) as made:
        await made.create()
        assert set(made.served().values()) == {1, 2}
        over, broker = made.running[1]
        assert "OverStore of 1" in repr(over)
        assert [one.node for one in broker.placement.brokers("PLAINTEXT")] == [1, 2]
        assert broker.placement.brokers("PLAINTEXT")[1].port == made.running[2][1].listeners[0].port
        assert made[1].cluster_id == made[2].cluster_id
        await made.stop(2)
        await until(lambda: set(made.served().values()) == {1} and len(made.served()) == 4)
        assert made[1].nodes == (1,)


async def test_a_broker_that_joins_gets_its_share(tmp_path, monkeypatch):
    monkeypatch.setattr(over_store, "BALANCES_EVERY_S", 0.05)
    async with brokers(tmp_path, 1) as made:
        await made.create()
        await made.start(2)
        await until(lambda: sorted(made.served().values()) == [1, 1, 2, 2])


async def test_partitions_stay_if_the_wal_has_ended(tmp_path, caplog):
    async with brokers(tmp_path, 1) as made:
        await made.create(1)
        over, _ = made.running[1]
        over._log_side.ship_all = lambda partitions, done: done(None)
        run(over._give({(made[1].topics["t"].id, 0): made[1].state.leads[made[1].topics["t"].id, 0]}))
        assert "partitions stay here: the broker is fenced" in caplog.text


async def test_a_second_process_with_the_same_number_is_refused(tmp_path):
    async with brokers(tmp_path, 1) as made:
        with pytest.raises(TwoOfOneNumber):
            await OverStore(made.settings(1), made.new_requests(), OF_STORE, asyncio.get_running_loop()).register()


async def test_a_broker_that_finds_another_with_its_number_ends(tmp_path):
    async with brokers(tmp_path, 1, 2) as made:
        over, _ = made.running[1]
        over._fenced(Wal(1, 99))
        assert over.ended.is_set()
        assert over.is_fenced
        assert over.successor.incarnation == over.wal.incarnation  # the member of that number, as far as it is known


async def test_a_broker_is_fenced_by_an_entry_and_the_next_one_of_its_process_is_a_member(tmp_path):
    async with brokers(tmp_path, 1, 2) as made:
        over, _ = made.running[2]
        made[1].changes.make(lambda state: WalEnded(over.wal, 0, {}), lambda _: None)
        await until(over.ended.is_set)
        assert over.is_fenced
        assert over.successor is None
        await made.stop(2)
        again, _ = await made.start(2, over.wal)
        assert again.wal.incarnation > over.wal.incarnation


async def test_a_cluster_that_the_caller_refuses_is_not_joined(tmp_path):
    async with brokers(tmp_path, 1) as made:
        over = OverStore(made.settings(2), made.new_requests(), OF_STORE, asyncio.get_running_loop())

        def refuse(cluster_id):
            assert cluster_id == made[1].cluster_id
            raise LookupError

        with pytest.raises(LookupError):
            await over.register(check=refuse)
        assert made[1].nodes == (1,)
