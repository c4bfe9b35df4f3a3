"""Transactions over the partitions of several worker processes: all of one is read or nothing, be it that a worker is killed meanwhile."""

import asyncio
import contextlib
import os
import signal
from collections import Counter

import pytest

from horolog import Admin, Consumer, Producer, TopicPartition
from tests.support.broker_process import BrokerProcess
from tests.support.waiting import wait_until
from tests.support.worker_processes import is_running, workers_of

PARTITIONS = 4
PRODUCERS = 4
TRANSACTIONS = 6
TIMEOUT_MS = 60_000
PLACES = [TopicPartition("t", index) for index in range(PARTITIONS)]


@pytest.fixture
def broker(tmp_path):
    broker = BrokerProcess(
        tmp_path / "data",
        {
            "horolog.workers": "2",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.num.partitions": "4",
            "group.initial.rebalance.delay.ms": "0",
        },
    )
    broker.start()
    pids = set(workers_of(broker).values())
    yield broker
    pids.update(workers_of(broker).values())
    broker.stop()
    assert not [pid for pid in pids if is_running(pid)]


async def made(address):
    async with Admin(address) as admin:
        await admin.create_topic("t", PARTITIONS)
        described = await admin.describe_topics(["t"])
        return {one.leader for one in described["t"].partitions.values()}


async def run(address, name, outcomes):
    """Transactions one after the other, each with records for all partitions and the offset of a group; each third is aborted."""
    async with Producer(address, transactional_id=name, delivery_timeout_ms=TIMEOUT_MS) as producer:
        for number in range(TRANSACTIONS):
            aborts = number % 3 == 2
            value = f"{name}-{number}".encode()
            with contextlib.suppress(KeyError):
                await write(producer, name, number, value, aborts=aborts)
            outcomes[value] = not aborts


async def write(producer, name, number, value, *, aborts):
    async with producer.transaction():
        for index in range(PARTITIONS):
            await producer.send("t", value, partition=index)
        await producer.flush()
        await producer.send_offsets(f"group-{name}", {PLACES[0]: number})
        if aborts:
            raise KeyError(name)


async def committed(address):
    """How often readers of committed records see each value, in how many partitions."""
    seen = Counter()
    async with Consumer(address, isolation="read_committed") as consumer:
        consumer.assign(PLACES)
        await consumer.seek_to_beginning(PLACES)
        ends = await consumer.end_offsets(PLACES)
        while any([await consumer.position(place) < end for place, end in ends.items()]):
            seen.update((record.partition, record.value) for record in await consumer.poll(500))
    return seen


def assert_all_or_nothing(seen, outcomes):
    expected = {
        (index, value): 1 for value, is_committed in outcomes.items() if is_committed for index in range(PARTITIONS)
    }
    assert seen == expected


async def offsets_of(address, name):
    async with Consumer(address, group=f"group-{name}") as consumer:
        found = await consumer.committed(PLACES[:1])
        return found[PLACES[0]].offset


async def test_all_of_a_transaction_is_read_or_nothing(broker):
    assert len(await made(broker.address)) == 2
    outcomes = {}
    names = [f"p{number}" for number in range(PRODUCERS)]
    async with asyncio.timeout(60):
        await asyncio.gather(*(run(broker.address, name, outcomes) for name in names))
        assert_all_or_nothing(await committed(broker.address), outcomes)
        last = max(number for number in range(TRANSACTIONS) if number % 3 != 2)
        assert [await offsets_of(broker.address, name) for name in names] == [last] * PRODUCERS


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2])
async def test_a_worker_that_is_killed_leaves_no_half_of_a_transaction(broker, number):
    await made(broker.address)
    outcomes = {}
    names = [f"p{number}" for number in range(PRODUCERS)]

    async def kill():
        await asyncio.sleep(0.3)
        pid = workers_of(broker)[number]
        os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(wait_until, lambda: workers_of(broker).get(number, pid) != pid)

    async with asyncio.timeout(100):
        await asyncio.gather(kill(), *(run(broker.address, name, outcomes) for name in names))
        assert len(outcomes) == PRODUCERS * TRANSACTIONS
        assert_all_or_nothing(await committed(broker.address), outcomes)
