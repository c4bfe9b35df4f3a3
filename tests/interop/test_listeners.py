"""Listeners for inside and outside: whoever comes in through one is sent to its address, for data, groups and transactions."""

import socket
import sys

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from horolog.testing import broker_in_thread, horolog_broker
from tests.support.broker_process import BrokerProcess

LISTENERS = {
    "listeners": "INSIDE://0.0.0.0:0,OUTSIDE://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "advertised.listeners": "INSIDE://127.0.0.2:0,OUTSIDE://localhost:0",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "INSIDE",
}
HOSTS = {"INSIDE": "127.0.0.2", "OUTSIDE": "localhost"}


@pytest.mark.parametrize("name", sorted(HOSTS))
def test_librdkafka_stays_on_its_listener(name):
    with broker_in_thread(settings=LISTENERS) as broker:
        assert sorted(broker.addresses) == sorted(HOSTS)
        address = broker.addresses[name]
        admin = AdminClient({"bootstrap.servers": address})
        (node,) = admin.list_topics(timeout=20).brokers.values()
        assert (node.host, f"{node.host}:{node.port}") == (HOSTS[name], address)
        assert {each.host for each in admin.describe_cluster().result(20).nodes} == {HOSTS[name]}
        producer = Producer({"bootstrap.servers": address, "transactional.id": f"t-{name}"})
        producer.init_transactions(20)
        producer.begin_transaction()
        producer.produce("t", b"x")
        producer.commit_transaction(20)
        consumer = Consumer({"bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        record = consumer.poll(20)
        consumer.close()
        assert record.value() == b"x"


@pytest.mark.parametrize("name", sorted(HOSTS))
async def test_aiokafka_stays_on_its_listener(name):
    async with horolog_broker(settings=LISTENERS) as broker:
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.addresses[name])
        await admin.start()
        described = await admin.describe_cluster()
        await admin.close()
        assert [node["host"] for node in described["brokers"]] == [HOSTS[name]]
        producer = AIOKafkaProducer(bootstrap_servers=broker.addresses[name])
        await producer.start()
        sent = await producer.send_and_wait("t", b"x")
        await producer.stop()
        assert sent.offset == 0


class OldKafkaBroker(BrokerProcess):
    """A broker that is told everything by a file, as Kafka 0.10 was."""

    def command(self):
        return [
            sys.executable,
            "-m",
            "horolog.client.cli.main",
            "serve",
            "--config",
            str(self.data.parent / "old.properties"),
        ]


@pytest.mark.one_broker("the file has the folder and the port of one")
def test_a_properties_file_of_kafka_0_10_says_where_to_listen_and_what_to_tell(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "old.properties").write_text(
        "############################# Socket Server Settings #############################\n"
        f"broker.id=0\nport={port}\nhost.name=127.0.0.1\nadvertised.host.name=localhost\n"
        f"advertised.port={port}\nnum.network.threads=3\nlog.dirs={tmp_path / 'data'}\nzookeeper.connect=localhost:2181\n"
    )
    broker = OldKafkaBroker(tmp_path / "data")
    try:
        broker.start()
        assert broker.port == port
        admin = AdminClient({"bootstrap.servers": broker.address})
        (found,) = admin.list_topics(timeout=10).brokers.values()
        assert (found.host, found.port) == ("localhost", port)
        assert "host.name and port of Kafka 0.10 is used; set listeners=" in broker.log()
    finally:
        broker.kill()
