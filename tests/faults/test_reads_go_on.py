"""What can be read is served where nothing can be written: full disks, files and folders that are only to be read."""

import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.faults.test_full_disk import LARGER, SMALL, fill
from tests.faults.test_injected_errors import ALONE, all_is_there, resumes
from tests.support.broker_process import BrokerProcess
from tests.support.disks import Disk, MemoryDisk, run
from tests.support.witness import Witness, create, numbers_in

Brokers = Callable[..., BrokerProcess]
Disks = Callable[..., Disk]


def consumer_of(broker: BrokerProcess, group: str = "readers") -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )


def commit(broker: BrokerProcess, offset: int) -> None:
    consumer = consumer_of(broker)
    consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
    consumer.close()


def committed(broker: BrokerProcess) -> int:
    consumer = consumer_of(broker)
    (found,) = consumer.committed([TopicPartition("t", 0)], timeout=20)
    consumer.close()
    assert found.offset is not None
    return found.offset


def offset_at(broker: BrokerProcess, time_ms: int) -> int:
    consumer = consumer_of(broker)
    (found,) = consumer.offsets_for_times([TopicPartition("t", 0, time_ms)], timeout=20)
    consumer.close()
    assert found.offset is not None
    return found.offset


def a_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def warnings_of(port: int) -> list[str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=10) as answer:
            said = json.load(answer)
    except urllib.error.HTTPError as refused:
        said = json.load(refused)
    return [*said["warnings"], *said["reasons"]]


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_a_full_disk_a_kill_and_a_start(kind: str, tmp_path: Path, disk_of: Disks, brokers: Brokers) -> None:
    """Nothing is lost, nothing is refused that could be read, and appends begin again as soon as there is room."""
    disk, port = disk_of(kind, SMALL), a_free_port()
    link = tmp_path / "data"  # beside it is the log of the process
    link.symlink_to(disk.root / "data")
    broker = brokers(link, horolog_http_listen=f"127.0.0.1:{port}").start()
    create(broker.address, "t", 2, segment_bytes="1000000", index_interval_bytes="100")
    witness = Witness(broker.address, "t", partitions=2, value_bytes=3000, **ALONE)
    witness.send(300)
    middle_ms = time.time_ns() // 1_000_000
    boundary = max(offset for partition, offset in witness.acknowledged.values() if partition == 0) + 1
    commit(broker, 7)
    time.sleep(0.01)
    witness.send(300)
    fill(disk)
    broker.kill()
    for index in disk.root.glob("data/t-*/*index"):
        index.unlink()  # as if the disk had been full before they were first written
    fill(disk)
    broker.start()
    fill(disk)
    witness.check(numbers_in(broker.address, "t", 2))
    assert (offset_at(broker, 0), offset_at(broker, middle_ms)) == (0, boundary)
    assert committed(broker) == 7
    with pytest.raises(KafkaException):
        commit(broker, 8)  # after it was tried again and again
    known = len(witness.errors)
    witness.send(10)
    assert {code for _, code in witness.errors[known:]} == {KafkaError.KAFKA_STORAGE_ERROR}
    accepts_none = re.compile(r"\bt-[01] accepts no appends")  # the first to be opened may get the last block
    assert any(map(accepts_none.search, warnings_of(port)))
    assert accepts_none.search(broker.log())
    give_room(disk)
    resumes(witness)
    resumes(witness)
    commit(broker, 9)
    all_is_there(broker, witness)
    assert broker.stop() == 0
    broker.start()
    witness.check(numbers_in(broker.address, "t", 2))
    assert committed(broker) == 9


def give_room(disk: Disk) -> None:
    if isinstance(disk, MemoryDisk):
        disk.resize(LARGER)
    else:
        (disk.root / "filler").unlink()


def written(broker: BrokerProcess) -> Witness:
    """A stopped broker with a topic of two partitions that has been written to."""
    broker.start()
    create(broker.address, "t", 2, segment_bytes="1000000")
    witness = Witness(broker.address, "t", partitions=2, value_bytes=5000, **ALONE)
    for _ in range(10):
        witness.send(100)
    assert len(witness.acknowledged) == 1000
    commit(broker, 7)
    assert broker.stop() == 0
    return witness


@contextmanager
def immutable(path: Path) -> Iterator[None]:
    """Not even root may write to it."""
    run("chattr", "+i", str(path))
    try:
        yield
    finally:
        run("chattr", "-i", str(path))


@pytest.mark.parametrize("after", ["clean stop", "kill"])
def test_a_log_that_nobody_may_write_to(after: str, disk_of: Disks, brokers: Brokers) -> None:
    disk, port = disk_of("ext4"), a_free_port()
    broker = brokers(disk.root / "data", horolog_http_listen=f"127.0.0.1:{port}")
    witness = written(broker)
    if after == "kill":
        (disk.root / "data/.kafka_cleanshutdown").unlink()
        (disk.root / "data/t-0/horolog-seals").unlink()
    with immutable(max((disk.root / "data/t-0").glob("*.log"))):
        broker.start()
        refused_for_appends_only(broker, witness, port)
        assert [each for each in numbers_in(broker.address, "t", 2) if each[0] == 1]
    resumes(witness)
    all_is_there(broker, witness)
    assert broker.stop() == 0


class OtherUser(BrokerProcess):
    """A broker that is not run by root."""

    def command(self) -> list[str]:
        return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *super().command()]


def test_a_log_of_another_owner(tmp_path: Path, brokers: Brokers) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("becoming another user needs root and setpriv")
    home = Path(subprocess.run(["mktemp", "-d"], check=True, capture_output=True, text=True).stdout.strip())
    try:
        home.chmod(0o777)
        port = a_free_port()
        broker = brokers(home / "data", OtherUser, horolog_http_listen=f"127.0.0.1:{port}")
        witness = written(broker)
        active = max((home / "data/t-0").glob("*.log"))
        os.chown(active, 0, 0)
        active.chmod(0o444)
        broker.start()
        refused_for_appends_only(broker, witness, port)
        os.chown(active, 65534, 65534)
        active.chmod(0o644)
        resumes(witness)
        all_is_there(broker, witness)
        assert broker.stop() == 0
    finally:
        shutil.rmtree(home)


def test_a_log_that_cannot_be_read_is_offline_and_not_read_by_halves(tmp_path: Path, brokers: Brokers) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("becoming another user needs root and setpriv")
    home = Path(subprocess.run(["mktemp", "-d"], check=True, capture_output=True, text=True).stdout.strip())
    try:
        home.chmod(0o777)
        broker = brokers(home / "data", OtherUser)
        witness = written(broker)
        active = max((home / "data/t-0").glob("*.log"))
        active.chmod(0)
        broker.start()
        assert "t-0 cannot be opened and is offline" in broker.log()
        partitions = consumer_of(broker).list_topics("t", timeout=10).topics["t"].partitions
        assert (partitions[0].leader, partitions[1].leader >= 0) == (-1, True)
        active.chmod(0o644)
        all_is_there(broker, witness)
        assert broker.stop() == 0
    finally:
        shutil.rmtree(home)


def refused_for_appends_only(broker: BrokerProcess, witness: Witness, port: int) -> None:
    """Partition 0 is read and not written to, and partition 1 goes on; whoever looks is told."""
    witness.check(numbers_in(broker.address, "t", 2))
    assert offset_at(broker, 0) == 0
    known = len(witness.errors)
    witness.send(10)
    assert [code for _, code in witness.errors[known:]] == [KafkaError.KAFKA_STORAGE_ERROR] * 5
    assert any("t-0 accepts no appends" in line for line in warnings_of(port))
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert b'partition_stopped_info{topic="t",partition="0"' in answer.read()
    assert consumer_of(broker).list_topics("t", timeout=10).topics["t"].partitions[0].leader >= 0
