"""The sockets at which workers ask each other lie where nobody cleans, and are made again when somebody removes them all the same."""

import asyncio
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

from horolog import Admin, Producer
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.support.broker_process import BrokerProcess
from tests.support.raw_wire import RawWire
from tests.support.waiting import wait_until
from tests.support.worker_processes import is_running, workers_of

PARTITIONS = 4


@pytest.fixture
def runs(tmp_path):
    """Starts a broker of two workers with its data in this folder, and ends it well."""
    brokers, pids = [], set()

    def run(data=tmp_path / "data"):
        broker = BrokerProcess(data, {"horolog.workers": "2", "transaction.state.log.num.partitions": "4"})
        brokers.append(broker)
        broker.start()
        pids.update(workers_of(broker).values())
        return broker

    yield run
    for broker in brokers:
        pids.update(workers_of(broker).values())
        assert broker.stop() == 0
        assert not [pid for pid in pids if is_running(pid)]


def sockets_of(broker):
    """The paths at which its workers listen."""
    inodes = set()
    for pid in workers_of(broker).values():
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            target = str(descriptor.readlink()) if descriptor.is_symlink() else ""
            inodes.add(target.removeprefix("socket:[").rstrip("]"))
    rows = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return {row[7] for row in rows if len(row) > 7 and row[6] in inodes and row[3] == "00010000"}


async def described(address):
    """The leader of each partition, and where each worker is found."""
    async with Admin(address) as admin:
        if "t" not in await admin.topics():
            await admin.create_topic("t", PARTITIONS)
        topic = (await admin.describe_topics(["t"]))["t"]
        nodes = (await admin.describe_cluster()).nodes
    leaders = {index: one.leader for index, one in topic.partitions.items()}
    return leaders, {one.id: f"{one.host}:{one.port}" for one in nodes}


async def transact(address, name):
    async with asyncio.timeout(60):
        async with Producer(address, transactional_id=name) as producer, producer.transaction():
            for index in range(PARTITIONS):
                await producer.send("t", b"x", partition=index)


def move(address, index, node):
    wanted = ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=index, replicas=[node])])
    with RawWire(address) as wire:
        answer = wire.ask(AlterPartitionReassignmentsRequest(timeout_ms=10_000, topics=[wanted]), 0)
    return answer.responses[0].partitions[0].error_code


def everything_works(broker):
    """Transactions over both workers, a move that the other one is asked for, and a successor of one that is killed."""
    for name in "abcd":  # their coordinators are different workers
        asyncio.run(transact(broker.address, name))
    leaders, addresses = asyncio.run(described(broker.address))
    index = next(index for index, leader in leaders.items() if leader == 1)
    wait_until(lambda: move(addresses[2], index, 2) == ErrorCode.NONE)
    wait_until(lambda: asyncio.run(described(broker.address))[0][index] == 2)
    served = broker.log().count("worker 2 serves again")
    os.kill(workers_of(broker)[2], signal.SIGKILL)
    wait_until(lambda: broker.log().count("worker 2 serves again") > served, what=broker.log())
    asyncio.run(transact(broker.address, "e"))


def test_they_lie_in_the_data_folder_and_are_there_again_after_their_folder_was_removed(runs):
    broker = runs()
    assert {Path(path).parent for path in sockets_of(broker)} == {broker.data / ".sockets"}
    asyncio.run(described(broker.address))
    shutil.rmtree(broker.data / ".sockets")
    everything_works(broker)


def test_they_lie_where_systemd_says(runs, monkeypatch):
    with tempfile.TemporaryDirectory(prefix="h-") as runtime:
        monkeypatch.setenv("RUNTIME_DIRECTORY", runtime)
        broker = runs()
        (folder,) = Path(runtime).iterdir()
        assert {Path(path).parent for path in sockets_of(broker)} == {folder}
        asyncio.run(described(broker.address))
        shutil.rmtree(runtime)
        everything_works(broker)


def test_a_data_folder_with_a_long_path_will_do(runs, tmp_path):
    broker = runs(tmp_path / ("x" * 100) / "data")
    asyncio.run(described(broker.address))
    assert len(list((broker.data / ".sockets").iterdir())) == 2
    everything_works(broker)


def test_they_are_gone_after_all_processes_were_killed_and_one_serves_alone(tmp_path):
    broker = BrokerProcess(tmp_path / "data", {"horolog.workers": "2"}).start()
    pids = workers_of(broker).values()
    asyncio.run(described(broker.address))
    broker.kill()
    for pid in pids:
        if is_running(pid):
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(map(is_running, pids)))
    assert list((broker.data / ".sockets").iterdir())
    alone = BrokerProcess(broker.data, {"horolog.workers": "1"}).start()
    try:
        assert not (broker.data / ".sockets").exists()
        assert set(asyncio.run(described(alone.address))[0]) == set(range(PARTITIONS))
    finally:
        assert alone.stop() == 0
