"""Three brokers in three racks: a consumer reads old records from the broker of its own rack, and goes on when that one is killed."""

import socket
import subprocess
import urllib.request
from contextlib import ExitStack

import pytest

pytest.importorskip("obstore")
pytest.importorskip("confluent_kafka")

import confluent_kafka

from tests.interop.toolchains import go_program, java_program
from tests.stores.test_three_brokers import NODES, QUIET, WITHIN_S, free_port, three_brokers
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SELECTOR = "replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector"
COUNT = 24_000
VALUE_BYTES = 500
"""12 segments of 1 MiB."""


def ports_of_http():
    """A port for each number of a broker, as one setting: 1NNNN, 2NNNN, 3NNNN."""
    while True:
        tail = free_port() % 10_000
        if all(port_is_free(node * 10_000 + tail) for node in NODES):
            return tail


def port_is_free(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def figure(port, name):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        rows = [line.split() for line in answer.read().decode().splitlines() if line.startswith(f"horolog_{name} ")]
    return float(rows[0][1])


def fill(servers):
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "linger.ms": 5, **QUIET})
    for number in range(COUNT):
        producer.produce("t", b"%0*d" % (VALUE_BYTES, number), partition=0)
        producer.poll(0)
        if number % 2_000 == 0:
            producer.flush(WITHIN_S)
    assert producer.flush(WITHIN_S) == 0


def offsets(consumer, upto):
    """The offsets that a consumer reads, checked against the values, until it has read so many."""
    found = []
    while len(found) < upto:
        for message in consumer.consume(500, 1.0):
            assert message.error() is None, message.error()
            assert message.offset() == int(message.value())
            found.append(message.offset())
    return found


def consumer_in(rack, servers, offset=0):
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "g",
            "client.rack": rack,
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 200_000,
            "queued.max.messages.kbytes": 500,
            **QUIET,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition("t", 0, offset)])
    return consumer


def test_old_records_come_from_the_broker_of_the_rack_and_from_the_leader_when_it_is_gone(tmp_path):
    tail = ports_of_http()
    settings = (
        SELECTOR,
        "broker.rack=rack-NODE",
        "log.segment.bytes=1048576",
        f"horolog.http.listen=127.0.0.1:NODE{tail:04}",
    )
    with three_brokers(tmp_path, {"t": 1}, *settings) as (cluster, admin):
        leader = cluster.leaders(admin)[0]
        reader, third = (node for node in NODES if node != leader)
        http = {node: node * 10_000 + tail for node in NODES}
        (found,) = admin.list_topics("t", timeout=WITHIN_S).topics["t"].partitions.values()
        assert found.replicas[0] == leader
        assert set(found.replicas) == set(found.isrs) == set(NODES)
        fill(cluster.servers)
        wait_until(lambda: figure(http[leader], "store_uploaded_segments_total") >= 10)

        consumer = consumer_in(f"rack-{reader}", cluster.servers)
        assert offsets(consumer, COUNT) == list(range(COUNT))
        consumer.close()
        served = {node: figure(http[node], "store_followed_bytes_total") for node in NODES}
        assert served[leader] == served[third] == 0
        assert served[reader] >= 10 * 2**20 * 0.8

        consumer = consumer_in(f"rack-{third}", cluster.servers)
        before = offsets(consumer, 4_000)
        assert figure(http[third], "store_followed_bytes_total") > 0
        cluster.kill(third)
        assert before + offsets(consumer, COUNT - len(before)) == list(range(COUNT))
        consumer.close()


@pytest.mark.parametrize(
    ("program_in", "comes_back"),
    [
        pytest.param(
            java_program("4.3.1", "RackReader", needs=()),
            False,
            marks=[pytest.mark.kafka_jars, pytest.mark.java],
            id="java",
        ),
        pytest.param(go_program("rackreader"), True, marks=pytest.mark.go, id="franz-go"),
    ],
)
def test_another_client_reads_from_its_rack_and_goes_on_when_that_broker_is_killed(tmp_path, program_in, comes_back):
    """franz-go asks the same broker until that is back, or until the leader changes."""
    program = program_in(tmp_path)
    tail = ports_of_http()
    settings = (
        SELECTOR,
        "broker.rack=rack-NODE",
        "log.segment.bytes=1048576",
        f"horolog.http.listen=127.0.0.1:NODE{tail:04}",
    )
    with three_brokers(tmp_path, {"t": 1}, *settings) as (cluster, admin), ExitStack() as stack:
        leader = cluster.leaders(admin)[0]
        reader = next(node for node in NODES if node != leader)
        fill(cluster.servers)
        wait_until(lambda: figure(leader * 10_000 + tail, "store_uploaded_segments_total") >= 10)
        arguments = [cluster.servers, f"rack-{reader}", "t", str(COUNT // 2), str(COUNT)]
        client = subprocess.Popen([*program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        stack.callback(client.wait)
        stack.callback(client.kill)
        assert client.stdout.readline() == "some\n"
        assert figure(reader * 10_000 + tail, "store_followed_bytes_total") >= COUNT // 2 * VALUE_BYTES
        cluster.kill(reader)
        if comes_back:
            cluster.start(reader)
        said, _ = client.communicate("go on\n", timeout=2 * WITHIN_S)
        assert said == "all in order\n"


def test_aborted_records_and_deleted_ones_are_not_read_in_another_rack_either(tmp_path):
    tail = ports_of_http()
    settings = (
        SELECTOR,
        "broker.rack=rack-NODE",
        "log.segment.bytes=1048576",
        f"horolog.http.listen=127.0.0.1:NODE{tail:04}",
    )
    with three_brokers(tmp_path, {"t": 1}, *settings) as (cluster, admin):
        leader = cluster.leaders(admin)[0]
        reader = next(node for node in NODES if node != leader)
        producer = confluent_kafka.Producer({"bootstrap.servers": cluster.servers, "transactional.id": "x", **QUIET})
        producer.init_transactions(WITHIN_S)
        committed = []
        for number in range(40):
            producer.begin_transaction()
            for each in range(500):
                producer.produce("t", b"%0500d" % (number * 500 + each), partition=0)
            if number % 3 == 1:
                producer.flush(WITHIN_S)
                producer.abort_transaction(WITHIN_S)
            else:
                producer.commit_transaction(WITHIN_S)
                committed += range(number * 500, number * 500 + 500)
        wait_until(lambda: figure(leader * 10_000 + tail, "store_uploaded_segments_total") >= 8)
        consumer = consumer_in(f"rack-{reader}", cluster.servers)
        found = []
        while len(found) < len(committed):
            found += [int(message.value()) for message in consumer.consume(500, 1.0) if message.error() is None]
        assert found == committed
        consumer.close()
        served = figure(reader * 10_000 + tail, "store_followed_bytes_total")
        assert served >= 6 * 2**20

        place = confluent_kafka.TopicPartition("t", 0, 9_000)
        admin.delete_records([place])[place].result(WITHIN_S)

        def first_read():
            consumer = consumer_in(f"rack-{reader}", cluster.servers, 8_000)
            first = None
            while first is None:
                first = next((one for one in consumer.consume(1, 1.0) if one.error() is None), None)
            consumer.close()
            return first.offset()

        wait_until(lambda: first_read() >= 9_000)
