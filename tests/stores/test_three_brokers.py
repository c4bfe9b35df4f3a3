"""Three brokers over one store as processes: one is killed, its partitions move, and what was acknowledged is there once."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager

import pytest

pytest.importorskip("obstore")
pytest.importorskip("confluent_kafka")

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from horolog.broker.prefix.findings import is_fault
from horolog.broker.prefix.verifying import verify
from horolog.stores.opening import open_store
from tests.support.style import PROJECT
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

NODES = (1, 2, 3)
PARTITIONS = 6
WITHIN_S = 60
QUIET = {"log_level": 0}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    """Three processes, with NODE in settings for the number of each; `acknowledged` has what an idempotent producer was told, with the time."""

    def __init__(self, folder, *settings, url=None, release=PROJECT):
        self.settings, self.url, self.release = settings, url or f"file://{folder}/store", release
        self.folder, self.ports, self.processes = folder, {node: free_port() for node in NODES}, {}
        self.servers = ",".join(f"127.0.0.1:{port}" for port in self.ports.values())
        self.acknowledged, self.errors, self.is_over = {}, [], threading.Event()

    def start(self, node):
        (self.folder / "store").mkdir(exist_ok=True)
        arguments = [self.url, str(node), str(self.ports[node]), f"{self.folder}/{node}"]
        settings = [one.replace("NODE", str(node)) for one in self.settings]
        command = [sys.executable, "-m", "tests.support.store_broker", *arguments, *settings]
        process = self.processes[node] = subprocess.Popen(
            command, cwd=self.release, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert process.stdout.readline() == "ready\n"

    def kill(self, node):
        os.kill(self.processes[node].pid, signal.SIGKILL)
        self.processes[node].wait()
        self.processes[node].stdout.close()

    def end(self, *nodes):
        """End these, or all, in order."""
        processes = [self.processes[node] for node in nodes or self.processes]
        for process in processes:
            process.terminate()
        codes = [process.wait(WITHIN_S) for process in processes]
        for process in processes:
            process.stdout.close()
        return codes

    def leaders(self, admin):
        found = admin.list_topics("t", timeout=WITHIN_S).topics["t"].partitions
        return {number: one.leader for number, one in found.items()}

    def produce(self):
        def told(error, message):
            if error is None:
                self.acknowledged[message.partition(), message.offset()] = message.value(), time.monotonic()
            else:
                self.errors.append(error)

        producer = confluent_kafka.Producer({"bootstrap.servers": self.servers, "enable.idempotence": True, **QUIET})
        count = 0
        while not self.is_over.is_set():
            for partition in range(PARTITIONS):
                count += 1
                producer.produce("t", b"%d" % count, partition=partition, on_delivery=told)
            producer.poll(0.05)
        assert producer.flush(WITHIN_S) == 0

    def told_since(self, when):
        """The partitions of which something was acknowledged after a moment."""
        return {partition for (partition, _), (_, at) in self.acknowledged.copy().items() if at > when}

    def consumed(self):
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": self.servers, "group.id": "g", "auto.offset.reset": "earliest", **QUIET}
        )
        consumer.subscribe(["t"])
        found, latest = {}, time.monotonic() + WITHIN_S
        while not self.acknowledged.keys() <= found.keys() and time.monotonic() < latest:
            for message in consumer.consume(500, 0.2):
                if message.error() is None:
                    found[message.partition(), message.offset()] = message.value()
        consumer.close()
        return found


@contextmanager
def three_brokers(folder, topics, *settings, url=None, release=PROJECT):
    """A cluster whose brokers all serve, with these topics and their partitions, and an admin client; it ends with the block."""
    cluster = Cluster(folder, *settings, url=url, release=release)
    try:
        for node in NODES:
            cluster.start(node)
        admin = AdminClient({"bootstrap.servers": cluster.servers, **QUIET})
        if topics:
            for created in admin.create_topics([NewTopic(*each, 1) for each in topics.items()]).values():
                created.result(WITHIN_S)
        yield cluster, admin
    finally:
        cluster.end()


@pytest.mark.timeout(300)
def test_a_broker_that_is_killed_takes_nothing_with_it(tmp_path):
    with three_brokers(tmp_path, {"t": PARTITIONS}) as (cluster, admin), ExitStack() as stack:
        leaders = cluster.leaders(admin)
        assert set(leaders.values()) == set(NODES)
        producing = threading.Thread(target=cluster.produce)
        producing.start()
        stack.callback(producing.join)
        stack.callback(cluster.is_over.set)
        wait_until(lambda: len(cluster.told_since(0)) == PARTITIONS)
        killed = leaders[0]
        cluster.kill(killed)
        died = time.monotonic()
        wait_until(lambda: len(cluster.told_since(died)) == PARTITIONS)
        assert killed not in cluster.leaders(admin).values()
        cluster.start(killed)  # with its folder, which counts for nothing
        cluster.is_over.set()
        producing.join(WITHIN_S)
        assert cluster.errors == []
        found = cluster.consumed()
        assert {place: value for place, (value, _) in cluster.acknowledged.items()} == {
            place: found.get(place) for place in cluster.acknowledged
        }
        assert len(set(found.values())) == len(found), "a record is there twice"
    assert [process.returncode for process in cluster.processes.values()] == [0, 0, 0]
    verified = verify(open_store(f"file://{tmp_path}/store"))
    assert [one for one in verified.findings if is_fault(one)] == []
    assert verified.partitions > PARTITIONS
