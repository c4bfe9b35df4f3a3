"""Workers over a store as processes: each is a broker of the cluster, one may be killed, and all stop together."""

import json
import os
import re
import signal
import urllib.error
import urllib.request

import pytest

pytest.importorskip("obstore")
pytest.importorskip("confluent_kafka")

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from tests.stores.test_three_brokers import QUIET, WITHIN_S, free_port
from tests.support import s3_server
from tests.support.broker_process import BrokerNotReadyError, BrokerProcess
from tests.support.waiting import wait_until
from tests.support.worker_processes import workers_of

pytestmark = pytest.mark.slow

PARTITIONS = 4


def served(folder, node, name="data", **more):
    (folder / "store").mkdir(exist_ok=True)
    settings = {
        "node.id": str(node),
        "horolog.workers": "2",
        "horolog.store": f"file://{folder}/store",
        "horolog.store.flush.ms": "10",
        "horolog.http.listen": f"127.0.0.1:{free_port()}",
    }
    return BrokerProcess(folder / name, settings | {key.replace("_", "."): value for key, value in more.items()})


def get(broker, path):
    try:
        with urllib.request.urlopen(f"http://{broker.settings['horolog.http.listen']}{path}", timeout=WITHIN_S) as said:
            return said.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()


def is_ready(broker):
    return json.loads(get(broker, "/ready"))["ready"]


def client(broker, kind=confluent_kafka.Producer, **more):
    return kind({"bootstrap.servers": broker.address, **QUIET, **more})


def leaders(admin):
    found = admin.list_topics("t", timeout=WITHIN_S).topics["t"].partitions
    return {number: one.leader for number, one in found.items()}


def produce(producer, value):
    """One record to each partition; returns once all are acknowledged."""
    errors = []
    for partition in range(PARTITIONS):
        producer.produce("t", value, partition=partition, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(WITHIN_S) == 0
    assert errors == [None] * PARTITIONS


def values(broker):
    """What each partition has, from its start."""
    consumer = client(broker, confluent_kafka.Consumer, **{"group.id": "g", "enable.auto.commit": False})
    try:
        ends = {}
        for partition in range(PARTITIONS):
            ends[partition] = consumer.get_watermark_offsets(confluent_kafka.TopicPartition("t", partition), WITHIN_S)[
                1
            ]
        consumer.assign([confluent_kafka.TopicPartition("t", partition, 0) for partition in ends])
        found = {partition: [] for partition in ends}

        def all_read():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                found[message.partition()].append(message.value())
            return sum(map(len, found.values())) == sum(ends.values())

        wait_until(all_read)
        return found
    finally:
        consumer.close()


@pytest.mark.timeout(300)
def test_workers_are_brokers_of_the_cluster(tmp_path):
    check_workers(tmp_path)


def test_workers_over_a_real_server(s3_folder, monkeypatch):
    with s3_server.running(s3_folder / "s3") as server:
        server.enter(monkeypatch)
        check_workers(s3_folder, horolog_store="s3://lake/cluster", horolog_store_endpoint=server.endpoint)


def check_workers(folder, **more):
    broker = served(folder, 10, **more).start()
    try:
        admin, producer = client(broker, AdminClient), client(broker, **{"enable.idempotence": True})
        admin.create_topics([NewTopic("t", PARTITIONS, 1)])["t"].result(WITHIN_S)
        found = admin.describe_cluster(request_timeout=WITHIN_S).result(WITHIN_S).nodes
        assert {node.id for node in found} == {10, 11}
        assert broker.port not in {node.port for node in found}
        assert set(leaders(admin).values()) == {10, 11}
        produce(producer, b"first")
        assert is_ready(broker)
        metrics = get(broker, "/metrics")
        for worker in (1, 2):
            assert f'\nhorolog_store_member_brokers{{worker="{worker}"}} 2\n' in metrics
        assert sorted(one.name for one in (folder / "data/brokers").iterdir()) == ["10", "11"]

        killed = workers_of(broker)[2]
        os.kill(killed, signal.SIGKILL)
        produce(producer, b"second")
        wait_until(lambda: workers_of(broker).get(2, killed) != killed)
        wait_until(lambda: is_ready(broker))
        wait_until(lambda: set(leaders(admin).values()) == {10, 11})
        produce(producer, b"third")
        assert broker.stop() == 0

        # One worker fewer is a broker that has left; its folder had copies only.
        broker.settings["horolog.workers"] = "1"
        broker.start()
        assert values(broker) == {number: [b"first", b"second", b"third"] for number in range(PARTITIONS)}
        assert set(leaders(client(broker, AdminClient)).values()) == {10}
        assert broker.stop() == 0
        broker.settings["horolog.workers"] = "2"
        broker.start()
        assert values(broker) == {number: [b"first", b"second", b"third"] for number in range(PARTITIONS)}
    finally:
        assert broker.stop() == 0


@pytest.mark.timeout(200)
def test_a_number_that_another_machine_has_is_refused(tmp_path):
    broker = served(tmp_path, 10).start()
    try:
        with pytest.raises(BrokerNotReadyError, match="exit status 2") as refused:
            served(tmp_path, 11, "other").start()
        assert re.search(r"horolog: node\.id=11 is in use: another broker with this id runs at \S+", str(refused.value))
        assert is_ready(broker)
    finally:
        assert broker.stop() == 0
