"""Three brokers over a real S3 server, killed, stopped and started anew with emptied disks, while producers, transactions and a group go on.

Nothing that was acknowledged is lost or there twice, no aborted record is shown, and the group's positions never go back.
"""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip("obstore")
pytest.importorskip("confluent_kafka")

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support import s3_server
from tests.support.style import PROJECT

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.faults]

NODES = (1, 2, 3)
FAULTS = ("kill", "empty", "stop", "end", "store")
FAULTS_FOR_S = 35.0
PATIENCE_S = 60.0
QUIET = {"log_level": 0}


class Brokers:
    """The processes, each with a folder and a port of its own."""

    def __init__(self, folder, server):
        self.folder, self.server, self.processes = folder, server, {}
        self.ports = {node: free_port() for node in NODES}
        self.servers = ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def start(self, node):
        place = self.folder / f"node-{node}"
        place.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "tests.support.store_broker", "s3://lake/cluster", str(node)]
        environment = os.environ | self.server.at.environment | {"HOME": "/nonexistent", "PYTHONUNBUFFERED": "1"}
        with (self.folder / f"log-{node}").open("ab") as log:
            self.processes[node] = subprocess.Popen(
                [*command, str(self.ports[node]), str(place)],
                cwd=PROJECT,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def fault(self, kind, node, chance):
        if kind == "store":
            self.server.kill()
            time.sleep(chance.choice([0.2, 2]))
            self.server.start()
        elif kind == "stop":
            self.processes[node].send_signal(signal.SIGSTOP)
            time.sleep(chance.choice([1, 3, 6]))
            self.processes[node].send_signal(signal.SIGCONT)
        else:
            self.processes[node].send_signal(signal.SIGTERM if kind == "end" else signal.SIGKILL)
            self.processes[node].wait(PATIENCE_S)
            if kind == "empty":
                shutil.rmtree(self.folder / f"node-{node}")
            time.sleep(chance.choice([0.2, 3]))
            self.start(node)

    def end(self):
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes.values():
            process.wait(PATIENCE_S)

    def errors(self):
        return [line for node in NODES for line in (self.folder / f"log-{node}").read_text().splitlines()]


class Clients:
    """What they were told, until `is_over`."""

    def __init__(self, servers):
        self.settings = {**QUIET, "bootstrap.servers": servers, "socket.timeout.ms": 10_000}
        self.is_over = threading.Event()
        self.acknowledged, self.committed, self.aborted, self.faults = {}, set(), set(), []

    def produce(self):
        producer = Producer(
            {**self.settings, "enable.idempotence": True, "linger.ms": 0, "message.timeout.ms": 120_000}
        )

        def told(error, message):
            if error:
                self.faults.append(str(error))
            else:
                self.acknowledged[message.partition(), message.offset()] = message.value()

        number = 0
        while not self.is_over.is_set():
            producer.produce("plain", b"%d" % number, partition=number % 6, on_delivery=told)
            number += 1
            producer.poll(0.01)
        if producer.flush(PATIENCE_S):
            self.faults.append("records were not acknowledged")

    def transact(self):
        chance = random.Random(1)
        producer = Producer({**self.settings, "transactional.id": "x", "transaction.timeout.ms": 30_000})
        try:
            producer.init_transactions(PATIENCE_S)
            number = 0
            while not self.is_over.is_set():
                producer.begin_transaction()
                values = {b"%d" % each for each in range(number, number + 5)}
                number += 5
                for value in values:
                    producer.produce("transactions", value, partition=int(value) % 3)
                if chance.random() < 0.2:
                    producer.abort_transaction(PATIENCE_S)
                    self.aborted |= values
                else:
                    producer.commit_transaction(PATIENCE_S)
                    self.committed |= values
        except KafkaException as error:
            self.faults.append(f"transactions: {error}")

    def consume(self):
        consumer = Consumer(
            {**self.settings, "group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        )
        consumer.subscribe(["plain"])
        done, positions, count = {}, {}, 0
        while not self.is_over.is_set():
            message = consumer.poll(0.2)
            if message is None or message.error():
                continue
            positions[message.partition()] = message.offset() + 1
            count += 1
            if count % 50 == 0:
                done |= self._commit(consumer, positions)
                self._check(consumer, done)
        consumer.close()
        if not done:
            self.faults.append("the group has committed nothing")

    @staticmethod
    def _commit(consumer, positions):
        try:
            committed = consumer.commit(
                offsets=[TopicPartition("plain", *one) for one in positions.items()], asynchronous=False
            )
        except KafkaException:
            return {}  # it may be committed, or not
        return {one.partition: one.offset for one in committed if one.error is None}

    def _check(self, consumer, done):
        try:
            found = consumer.committed([TopicPartition("plain", index) for index in done], PATIENCE_S)
        except KafkaException:
            return
        self.faults += [
            f"partition {one.partition}: {one.offset} behind {done[one.partition]}"
            for one in found
            if one.offset < done[one.partition]
        ]

    def read(self, topic, partitions, isolation):
        """All values by their places."""
        consumer = Consumer({**self.settings, "group.id": topic, "isolation.level": isolation})
        places = [TopicPartition(topic, index, 0) for index in range(partitions)]
        ends = {one.partition: consumer.get_watermark_offsets(one, PATIENCE_S)[1] for one in places}
        consumer.assign(places)
        values, deadline = {}, time.monotonic() + PATIENCE_S
        while any(one.offset < ends[one.partition] for one in consumer.position(places)):
            assert time.monotonic() < deadline, f"{topic} is read up to {consumer.position(places)} of {ends}"
            message = consumer.poll(0.5)
            if message is not None and not message.error():
                values[message.partition(), message.offset()] = message.value()
        consumer.close()
        return values


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def create_topics(servers):
    admin = AdminClient({**QUIET, "bootstrap.servers": servers})
    made = admin.create_topics([NewTopic("plain", 6, 1), NewTopic("transactions", 3, 1)], request_timeout=PATIENCE_S)
    for future in made.values():
        future.result(PATIENCE_S)


@pytest.mark.timeout(400)
def test_whatever_happens_to_three_brokers_clients_keep_what_they_were_told(s3_folder):
    chance = random.Random(int(os.environ.get("SEED", "5")))
    with s3_server.restartable(s3_folder) as server:
        brokers = Brokers(s3_folder, server)
        for node in NODES:
            brokers.start(node)
        clients = Clients(brokers.servers)
        try:
            create_topics(brokers.servers)
            threads = [threading.Thread(target=one) for one in (clients.produce, clients.transact, clients.consume)]
            for thread in threads:
                thread.start()
            ends = time.monotonic() + FAULTS_FOR_S
            while time.monotonic() < ends:
                time.sleep(chance.uniform(1, 4))
                brokers.fault(chance.choice(FAULTS), chance.choice(NODES), chance)
            clients.is_over.set()
            for thread in threads:
                thread.join()
            assert clients.faults == []
            plain = clients.read("plain", 6, "read_uncommitted")
            assert {place: plain.get(place) for place in clients.acknowledged} == clients.acknowledged
            assert len(set(plain.values())) == len(plain), "a record is there twice"
            decided = list(clients.read("transactions", 3, "read_committed").values())
            assert clients.committed <= set(decided)
            assert not clients.aborted & set(decided)
            assert len(set(decided)) == len(decided), "a record is there twice"
            assert len(clients.acknowledged) > 500
            assert len(clients.committed) > 50
        finally:
            clients.is_over.set()
            brokers.end()
        assert not [line for line in brokers.errors() if "Traceback" in line]
