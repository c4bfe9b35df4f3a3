"""A broker over several data folders, one of which is on a disk that goes and comes back."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from horolog import Admin
from tests.support.broker_process import BrokerNotReadyError, BrokerProcess
from tests.support.disks import LoopDisk, MemoryDisk
from tests.support.waiting import wait_until
from tests.support.witness import create

Brokers = Callable[..., BrokerProcess]
PARTITIONS = 4


def over(brokers: Brokers, *folders: Path) -> BrokerProcess:
    """A broker over these folders; a setting wins over the flag that names one."""
    broker = brokers(folders[0])
    broker.settings["log.dirs"] = ",".join(map(str, folders))
    return broker


def send(broker: BrokerProcess, partition: int, value: bytes = b"v", seconds: float = 5.0) -> KafkaError | None:
    """Send one record with acks=all; what it was refused with."""
    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": broker.address, "acks": "all", "message.timeout.ms": int(seconds * 1000)})
    producer.produce("t", value, partition=partition, on_delivery=lambda error, _: errors.append(error))
    producer.flush(seconds + 5)
    return errors[0]


def places(*folders: Path) -> dict[Path, set[str]]:
    return {one: {each.name for each in one.iterdir() if each.name.startswith("t-")} for one in folders}


async def described(broker: BrokerProcess) -> dict[str, int]:
    async with Admin(broker.address) as admin:
        return {one.path: len(one.sizes) for one in await admin.log_dirs()}


def test_partitions_are_spread_and_stay_where_they_are(brokers: Brokers, tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    broker = over(brokers, a, b).start()
    create(broker.address, "t", PARTITIONS)
    assert [send(broker, index) for index in range(PARTITIONS)] == [None] * PARTITIONS
    there = places(a, b)
    assert {len(names) for names in there.values()} == {PARTITIONS // 2}
    broker.kill()
    broker.settings["log.dirs"] = f"{b},{a}"
    broker.start()
    assert [send(broker, index) for index in range(PARTITIONS)] == [None] * PARTITIONS
    assert places(a, b) == there


@pytest.mark.parametrize("ends", ["stop", "kill"])
def test_a_disk_that_is_not_there_at_the_start_takes_only_its_partitions(
    disk_of: Callable[..., MemoryDisk], brokers: Brokers, tmp_path: Path, ends: str
) -> None:
    good, disk = tmp_path / "good", disk_of("ext4")
    assert isinstance(disk, LoopDisk)
    bad = disk.root / "data"
    broker = over(brokers, good, bad).start()
    create(broker.address, "t", PARTITIONS)
    assert [send(broker, index) for index in range(PARTITIONS)] == [None] * PARTITIONS
    mine = {int(name.removeprefix("t-")) for name in places(good)[good]}
    getattr(broker, ends)()
    disk.unmount()
    disk.root.chmod(0o500)
    disk.root.rmdir()
    disk.root.write_text("in the place of the disk there is no folder")
    broker.start()
    for index in range(PARTITIONS):
        assert (send(broker, index, seconds=2.0) is None) == (index in mine)
    create(broker.address, "new", 2)
    assert {one.name for one in good.iterdir()} >= {"new-0", "new-1"}
    disk.root.unlink()
    disk.root.mkdir()
    disk.mount()
    wait_until(lambda: all(send(broker, index, seconds=2.0) is None for index in range(PARTITIONS)))
    broker.stop()
    broker.start()
    found = numbers_of(broker)
    assert all(count >= 2 for count in found.values())


def numbers_of(broker: BrokerProcess) -> dict[int, int]:
    """How many records each partition has."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "none"})
    try:
        return {
            index: consumer.get_watermark_offsets(TopicPartition("t", index), timeout=10)[1]
            for index in range(PARTITIONS)
        }
    finally:
        consumer.close()


def test_a_disk_that_fails_while_running_takes_only_its_partitions(
    disk_of: Callable[..., LoopDisk], brokers: Brokers, tmp_path: Path
) -> None:
    good, disk = tmp_path / "good", disk_of("ext4")
    bad = disk.root / "data"
    broker = over(brokers, good, bad).start()
    create(broker.address, "t", PARTITIONS)
    assert [send(broker, index) for index in range(PARTITIONS)] == [None] * PARTITIONS
    mine = {int(name.removeprefix("t-")) for name in places(good)[good]}
    disk.cut_power()
    for index in range(PARTITIONS):
        assert (send(broker, index, seconds=2.0) is None) == (index in mine)

    def can_create() -> bool:
        try:
            create(broker.address, "new", 2)
        except KafkaException:
            return False
        return True

    wait_until(can_create)
    assert {one.name for one in good.iterdir()} >= {"new-0", "new-1"}
    broker.kill()
    disk.restore_power()
    broker.start()
    assert [send(broker, index) for index in range(PARTITIONS)] == [None] * PARTITIONS
    counts = numbers_of(broker)
    assert all(counts[index] >= (3 if index in mine else 2) for index in range(PARTITIONS))


async def test_the_folders_are_described_with_what_lies_in_each(brokers: Brokers, tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    broker = over(brokers, a, b).start()
    create(broker.address, "t", PARTITIONS)
    assert await described(broker) == {str(a): 2, str(b): 2}


def test_folders_of_two_brokers_are_refused_with_one_line(brokers: Brokers, tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    for folder in (a, b):
        broker = over(brokers, folder).start()
        broker.stop()
    with pytest.raises(BrokerNotReadyError, match="belong to different clusters"):
        over(brokers, a, b).start()
