"""Brokers of one cluster inside a test: they lead, are killed, stop and come back, and nothing that was acknowledged is lost."""

import asyncio
import threading

import pytest

from horolog.base.clock import SystemClock
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.client.admin.admin import Admin
from horolog.client.producing.producer import Producer
from horolog.client.values.types import TopicPartition
from horolog.stores.faults import StoreError
from horolog.stores.memory_store import MemoryStore
from horolog.stores.object_store import Outcome
from horolog.testing import horolog_cluster
from horolog.testing.clustered import BROKERS, KILLED, ClusterBroker, StoreOfOne, answered
from horolog.testing.runs import AlreadyRunning, NotRunning
from tests.support.waiting import until

ALL = {1, 2, 3}


async def test_leaders_move_and_a_broker_that_dies_takes_nothing_with_it():
    async with horolog_cluster() as cluster:
        await cluster.create_topic("orders", retention_ms=-1)
        assert set(cluster.leaders("orders").values()) == ALL
        assert cluster.running == sorted(ALL)
        assert cluster.bootstrap == ",".join(cluster.addresses.values())
        async with Producer(cluster.bootstrap) as producer:
            for number in range(6):
                await producer.send_and_wait("orders", b"%d" % number, partition=number % 3)
            await cluster.move("orders", 0, to=2)
            assert cluster.leader("orders") == 2
            await cluster.kill(2)
            assert (await cluster.until_led("orders")).keys() == {0, 1, 2}
            assert cluster.leader("orders") in {1, 3}
            await producer.send_and_wait("orders", b"after", partition=0)
        found = await cluster.records("orders")
        assert [(one.partition, one.value) for one in found] == [
            *((0, value) for value in (b"0", b"3", b"after")),
            *((1, value) for value in (b"1", b"4")),
            *((2, value) for value in (b"2", b"5")),
        ]
        await cluster.start(2)
        assert cluster.running == sorted(ALL)
        await cluster.restart(3)
        assert 3 not in (await cluster.until_led("orders")).values()
        assert await cluster.records("orders") == found


async def test_records_that_lie_in_the_store_alone_are_fetched_before_they_are_read(monkeypatch):
    at_once, asked = MemoryStore.get_range, threading.Event()

    def delayed(store: MemoryStore, key: str, start: int, end: int) -> bytes:
        if key.startswith("data/"):
            asked.wait(10)
        return at_once(store, key, start, end)

    async with horolog_cluster(2) as cluster:
        await cluster.create_topic("orders", 1, retention_ms=-1)
        async with Producer(cluster.bootstrap) as producer:
            await producer.send_and_wait("orders", b"one")
        first = cluster.leader("orders")
        other = next(iter({1, 2} - {first}))
        await cluster.move("orders", 0, to=other)
        await cluster.kill(first)
        await cluster.start(first)
        monkeypatch.setattr(MemoryStore, "get_range", delayed)
        await cluster.stop(other)
        await cluster.until_led("orders")
        with pytest.raises(TimeoutError, match="records of orders have not come from the store after 20 ms"):
            await cluster.records("orders", within="20ms")
        asked.set()
        assert [one.value for one in await cluster.records("orders")] == [b"one"]


async def test_clients_see_the_brokers_and_move_partitions_between_them():
    async with horolog_cluster() as cluster, Admin(cluster.bootstrap) as admin:
        await cluster.create_topic("orders", 2)
        place = TopicPartition("orders", 1)
        target = next(iter(ALL - {cluster.leader("orders", 1)}))
        await admin.reassign({place: [target]})
        assert (await cluster.until_led("orders"))[1] == target
        assert {node.id for node in (await admin.describe_cluster()).nodes} == ALL
        assert await admin.reassignments() == {}


async def test_a_broker_that_is_fenced_begins_anew():
    async with horolog_cluster(2) as cluster:
        await cluster.create_topic("orders", 2)
        before = cluster.broker(2)
        cluster._brokers[2]._over._fenced(None)
        await until(lambda: cluster.running == [1, 2] and cluster.broker(2) is not before)
        assert set((await cluster.until_led("orders")).values()) <= {1, 2}


async def test_what_cannot_be_done_says_why():
    async with horolog_cluster(1, settings={"auto.create.topics.enable": False}) as cluster:
        assert "ClusterBroker 1 at 127.0.0.1:" in repr(cluster)
        await cluster.create_topic("orders", 1)
        with pytest.raises(ClusterError, match="orders"):
            await cluster.create_topic("orders", 1)
        with pytest.raises(ValueError, match="there is no broker 7: the cluster has 1"):
            await cluster.kill(7)
        with pytest.raises(AlreadyRunning):
            await cluster.start(1)
        with pytest.raises(ValueError, match="no broker leads orders-5"):
            await cluster.move("orders", 5, to=1)
        with pytest.raises(TimeoutError, match="partitions of none have no leader after 10 ms"):
            await cluster.until_led("none", within="10ms")
        assert await cluster.records("none") == []
        cluster.broker(1).hand_overs.move = lambda *given: given[-1](ClusterError(1, "not now"))
        with pytest.raises(ClusterError, match="not now"):
            await cluster.move("orders", 0, to=1)
        await cluster.stop(1)
        await cluster.stop(1)
        for call in (lambda: cluster.broker(1), cluster._any):
            with pytest.raises(NotRunning):
                call()
    with pytest.raises(ValueError, match="brokers=0"):
        async with horolog_cluster(0):
            pass


async def test_a_store_that_is_cut_off_answers_with_errors_alone():
    loop, store = asyncio.get_running_loop(), MemoryStore(SystemClock())
    ours = StoreOfOne(store, loop)
    assert (await answered(lambda done: ours.create("k", b"x", done))).outcome is Outcome.MADE
    assert await answered(lambda done: ours.get("k", done)) == b"x"
    assert await answered(lambda done: ours.get_range("k", 0, 1, done)) == b"x"
    assert len(await answered(lambda done: ours.list("", done))) == 1
    assert await answered(lambda done: ours.folders("k", done)) == []
    ours.cut()
    assert repr(ours) == "<StoreOfOne, cut>"
    assert (await answered(lambda done: ours.create("l", b"x", done))).outcome is Outcome.UNKNOWN
    for ask in (ours.get, ours.list, ours.folders, ours.delete):
        refused = await answered(lambda done, ask=ask: ask("k", done))
        assert (type(refused), str(refused)) == (StoreError, KILLED)
    assert isinstance(await answered(lambda done: ours.get_range("k", 0, 1, done)), StoreError)
    assert store.get("k") == b"x"
    ours.close()


async def test_the_rest_of_a_store():
    ours = StoreOfOne(MemoryStore(SystemClock()), asyncio.get_running_loop())
    assert await answered(lambda done: ours.delete("k", done)) is None
    assert "open" in repr(ours)
    ours.close()


def test_a_broker_is_down_before_its_first_start():
    broker = ClusterBroker(1, {}, MemoryStore(SystemClock()))
    assert (broker.is_running, "down" in repr(broker), BROKERS) == (False, True, 3)
