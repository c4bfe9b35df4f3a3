"""A real Kafka serves the partitions that `horolog store export` wrote, with their offsets and times."""

import shutil

import pytest

pytest.importorskip("obstore")

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks import kafka
from tests.interop.test_adopted_kafka import COUNT, consume, create, produce, release_or_skip, within
from tests.support.broker_process import BrokerProcess
from tests.support.command import run_typed

pytestmark = [pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(400)]

RELEASE = "4.3.1"
TIMES = {"forever": 1_600_000_000_000, "table": 1_700_000_000_000}
SETTINGS = {"forever": {"retention.ms": "-1", "segment.bytes": "1048576"}, "table": {"cleanup.policy": "compact"}}


def at(address, topic, time_ms):
    """The offset that a lookup by time finds."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "none", "log_level": 0})
    (found,) = within(lambda: consumer.offsets_for_times([TopicPartition(topic, 0, time_ms)], timeout=30))
    consumer.close()
    return found.offset


def test_a_kafka_serves_an_exported_prefix(tmp_path, capsys):
    release_or_skip(RELEASE)
    broker = BrokerProcess(tmp_path / "made").start()
    try:
        create(broker.address, SETTINGS)
        for topic, start_ms in TIMES.items():
            producer = Producer({"bootstrap.servers": broker.address, "enable.idempotence": True, "log_level": 0})
            for number in range(COUNT):
                producer.produce(topic, b"%d" % number, b"key %d" % number, 0, timestamp=start_ms + number * 1_000)
            assert producer.flush(30) == 0
    finally:
        assert broker.stop() == 0
    url, exported = f"file://{tmp_path}/store", tmp_path / "exported"
    assert run_typed(capsys, "store", "import", tmp_path / "made", url).code == 0
    assert run_typed(capsys, "store", "export", url, exported).code == 0

    home = tmp_path / "kafka"
    with kafka.running(RELEASE, data=home) as node:
        create(node.address, SETTINGS)
    for topic in TIMES:
        folder = home / "logs" / f"{topic}-0"
        for path in folder.iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        for path in (exported / f"{topic}-0").iterdir():
            if path.name != "partition.metadata":
                shutil.copy(path, folder)
    with kafka.running(RELEASE, data=home) as node:
        for topic, start_ms in TIMES.items():
            assert within(lambda one=topic: consume(node.address, one), len) == list(range(COUNT))
            assert at(node.address, topic, start_ms + 7_500) == 8
        produce(node.address, "forever", range(COUNT, COUNT + 5))
        assert consume(node.address, "forever") == list(range(COUNT + 5))
