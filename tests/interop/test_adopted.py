"""Folders written by real brokers are put into a data folder, and a client reads them through the wire, also by isolation level."""

import time
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from tests.support import golden
from tests.support.broker_process import BrokerProcess
from tests.support.fixtures import BrokerStarter
from tests.support.golden import Case, GoldenRecord

pytestmark = pytest.mark.one_broker("a folder is adopted")
TRANSACTIONAL = ("v2-txn", "v2-txn-multiseg", "v2-compacted-txn")
PLAIN = (
    "v0-multiseg",
    "v0-gzip-ct",
    "v0-then-v1",
    "v1-gzip-lat",
    "v1-lz4-lat",
    "v1-compacted-none",
    "v1-multiseg",
    "v2-delete-records",
    "v2-multiseg-zstd",
)
UNTIMED = "NoTimestampType"


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden.unpacked(tmp_path_factory)


def adopt(start_broker: BrokerStarter, cases: Path, data: Path, names: tuple[str, ...]) -> BrokerProcess:
    """One broker over a data folder that holds every case as a topic of its name."""
    for name in names:
        Case(name, cases).copy("clean", data, name)
    # Each copy leaves checkpoints with its own line only: without the marker nothing in them is needed to read.
    for left in ("recovery-point-offset-checkpoint", "cleaner-offset-checkpoint"):
        (data / left).unlink(missing_ok=True)
    start = next((f"{name} 0 20" for name in names if name == "v2-delete-records"), "")
    (data / "log-start-offset-checkpoint").write_text(f"0\n1\n{start}\n" if start else "0\n0\n")
    return start_broker(data, log__retention__ms=-1, log__cleaner__enable="false")


def consume(broker: BrokerProcess, topic: str, isolation: str) -> list[Message]:
    settings = {
        "bootstrap.servers": broker.address,
        "group.id": "none",
        "enable.auto.commit": False,
        "isolation.level": isolation,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 10,  # at the end
    }
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        messages: list[Message] = []
        end = time.monotonic() + 60
        while not (messages and messages[-1].error()):
            assert time.monotonic() < end, f"{topic} is not read to its end"
            messages += consumer.consume(1, 0.5)
        end_of_topic = messages.pop().error()
        assert end_of_topic is not None
        assert end_of_topic.code() == KafkaError._PARTITION_EOF
        assert [message.error() for message in messages if message.error()] == []
        return messages
    finally:
        consumer.close()


def as_golden(message: Message, expected: GoldenRecord) -> GoldenRecord:
    kind, timestamp = message.timestamp()
    headers = tuple((key, value) for key, value in message.headers() or ())
    told = (UNTIMED, "CreateTime", "LogAppendTime")[kind]
    if expected.timestamp_type == UNTIMED and (kind, timestamp) == (1, -1):
        told = UNTIMED  # current readers get v0 as v2, which has a type for every record
    return GoldenRecord(
        message.offset(), timestamp if kind else expected.timestamp, told, message.key(), message.value(), headers
    )


def check(messages: list[Message], expected: list[GoldenRecord]) -> None:
    assert [message.offset() for message in messages] == [record.offset for record in expected]
    for message, record in zip(messages, expected, strict=True):
        assert as_golden(message, record) == record


def test_plain_folders_are_read(start_broker: BrokerStarter, cases: Path, tmp_path: Path) -> None:
    broker = adopt(start_broker, cases, tmp_path / "data", PLAIN)
    for name in PLAIN:
        expected = Case(name, cases).records()
        check(consume(broker, name, "read_uncommitted"), expected)


def test_transactions_are_read_by_isolation_level(start_broker: BrokerStarter, cases: Path, tmp_path: Path) -> None:
    """Aborted transactions come out of the adopted folder's own index, markers are never seen."""
    broker = adopt(start_broker, cases, tmp_path / "data", TRANSACTIONAL)
    for name in TRANSACTIONAL:
        for isolation in ("read_uncommitted", "read_committed"):
            expected = Case(name, cases).records(isolation)
            check(consume(broker, name, isolation), expected)
