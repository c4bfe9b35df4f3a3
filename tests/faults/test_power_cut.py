"""Power cuts by the file system's own shutdown call while real clients work: what was acknowledged is there afterwards."""

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.broker_process import BrokerProcess
from tests.support.disks import LoopDisk
from tests.support.witness import Witness, create, numbers_in

KINDS = ["ext4", "xfs"]
Brokers = Callable[..., BrokerProcess]
DiskOf = Callable[..., LoopDisk]


def cut_and_restart(disk: LoopDisk, broker: BrokerProcess) -> None:
    """The broker stands still first: a machine without power answers nothing, and kernels may report a sync as done in that moment."""
    broker.freeze()
    disk.cut_power()
    broker.kill()
    disk.restore_power()
    broker.start()


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_acknowledged_is_lost(disk_of: DiskOf, brokers: Brokers, kind: str, idempotent: bool) -> None:
    disk = disk_of(kind)
    broker = brokers(disk.root / "data").start()
    create(broker.address, "t", 3, segment_bytes="200000")
    witness = Witness(
        broker.address, "t", partitions=3, acks="all", **{"message.timeout.ms": 2000, "enable.idempotence": idempotent}
    )
    with witness.producing():
        witness.wait_for(1000)
        time.sleep(1.5)
        cut_and_restart(disk, broker)
    assert len(witness.acknowledged) > 1000
    witness.check(numbers_in(broker.address, "t", 3), exactly_once=idempotent)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_moments_of_a_data_folder_and_of_topics(disk_of: DiskOf, brokers: Brokers, kind: str) -> None:
    """The first round cuts the power right after the first record of a folder that has never been synced."""
    disk = disk_of(kind)
    broker = brokers(disk.root / "new" / "data").start()
    witnesses: list[Witness] = []
    for number in range(4):
        if number % 2:
            create(broker.address, f"t{number}")
        witness = Witness(broker.address, f"t{number}", acks="all", **{"message.timeout.ms": 2000})
        witness.send(1 + number)
        assert len(witness.acknowledged) == 1 + number
        witnesses.append(witness)
        cut_and_restart(disk, broker)
        for one in witnesses:
            one.check(numbers_in(broker.address, one.topic), exactly_once=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_topic_that_was_answered_is_there(disk_of: DiskOf, brokers: Brokers, kind: str) -> None:
    disk = disk_of(kind)
    broker = brokers(disk.root / "data").start()
    create(broker.address, "kept", 5, retention_ms="12345678")
    cut_and_restart(disk, broker)
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "g", "log_level": 0})
    topics = consumer.list_topics(timeout=10).topics
    consumer.close()
    assert len(topics["kept"].partitions) == 5


@pytest.mark.parametrize("kind", KINDS)
def test_committed_transactions_and_offsets(disk_of: DiskOf, brokers: Brokers, kind: str) -> None:
    """Offsets are synced before they are answered where `horolog.offsets.commit.sync` says so."""
    disk = disk_of(kind)
    broker = brokers(disk.root / "data", horolog_offsets_commit_sync="true").start()
    create(broker.address, "t", 2)
    config = {"bootstrap.servers": broker.address, "transactional.id": "x", "log_level": 0}
    producer = Producer({**config, "message.timeout.ms": 5000, "transaction.timeout.ms": 10_000})
    producer.init_transactions(20)
    group = Consumer(
        {"bootstrap.servers": broker.address, "group.id": "g", "enable.auto.commit": False, "log_level": 0}
    )
    committed: list[int] = []
    offset = 0
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        producer.begin_transaction()
        numbers = [len(committed) * 10 + n for n in range(10)]
        for number in numbers:
            producer.produce("t", b"%d" % number, partition=number % 2)
        producer.commit_transaction(20)
        committed += numbers
        offset += 1
        group.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
    producer.begin_transaction()
    producer.produce("t", b"-1", partition=0)
    producer.flush(5)
    cut_and_restart(disk, broker)
    assert len(committed) > 20
    (known,) = group.committed([TopicPartition("t", 0)], timeout=20)
    group.close()
    assert known.offset >= offset
    successor = Producer(config)
    successor.init_transactions(30)
    seen = numbers_in(broker.address, "t", 2, isolation="read_committed")
    assert sorted(seen.values()) == sorted(committed)
