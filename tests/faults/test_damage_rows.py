"""Rows of the damage table that need a disk which refuses, is full, gives up what it took, or loses its power."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

from horolog.broker.log.integrity import seals
from horolog.broker.log.storage import RealStorage
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from horolog.protocol.messages.offsets import OffsetFetchRequest
from tests.faults.test_full_disk import LARGER, SMALL, fill
from tests.faults.test_injected_errors import ALONE, all_is_there, failing, log_file, resumes
from tests.faults.test_power_cut import cut_and_restart
from tests.faults.test_reads_go_on import OtherUser, commit, committed
from tests.support.broker_process import BrokerProcess
from tests.support.disks import LoopDisk, MemoryDisk
from tests.support.raw_wire import RawWire
from tests.support.witness import Witness, create, numbers_in, wait_until

Brokers = Callable[..., BrokerProcess]
Disks = Callable[..., LoopDisk]
OFFLINE = {ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.LEADER_NOT_AVAILABLE}
RECORDS = 30
GIVES_UP_AFTER_MS = 10_000
"""A producer waits this long for a partition without a leader."""


def errors_of(broker: BrokerProcess) -> dict[int, int]:
    """What Metadata tells of each partition of topic t."""
    with RawWire(broker.address) as wire:
        (found,) = wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9).topics
    return {one.partition_index: one.error_code for one in found.partitions}


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that the broker's user can reach, whoever runs the tests."""
    made = Path(subprocess.run(["mktemp", "-d"], check=True, capture_output=True, text=True).stdout.strip())
    made.chmod(0o777)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def locked_out(home: Path, brokers: Brokers) -> tuple[BrokerProcess, Witness]:
    """A stopped broker that permissions bind, and what was acknowledged."""
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("becoming another user needs setpriv")
    broker = brokers(home / "data", OtherUser if os.geteuid() == 0 else BrokerProcess).start()
    create(broker.address, "t", 3)
    witness = Witness(broker.address, "t", partitions=3, **ALONE | {"message.timeout.ms": GIVES_UP_AFTER_MS})
    witness.send(RECORDS)
    assert len(witness.acknowledged) == RECORDS
    assert broker.stop() == 0
    return broker, witness


def refuse(partition: Path, what: str) -> list[Path]:
    """Refused from now on: the list of the folder's files, looking at them, or reading any; whose modes those are."""
    paths = list(partition.iterdir()) if what == "read" else [partition]
    for path in paths:
        path.chmod({"list": 0o300, "look": 0o600, "read": 0}[what])
    return paths


def allow(paths: list[Path]) -> None:
    for path in paths:
        path.chmod(0o755)


@pytest.mark.parametrize("what", ["list", "look", "read"])
def test_an_unreadable_folder_is_told_in_metadata(locked_out: tuple[BrokerProcess, Witness], what: str) -> None:
    """H15: that partition is offline alone, the others are read and take records."""
    broker, witness = locked_out
    paths = refuse(broker.data / "t-1", what)
    broker.start()
    told = errors_of(broker)
    assert (told[0], told[2], told[1] in OFFLINE) == (0, 0, True)
    assert "t-1" in broker.log()
    known = dict(witness.acknowledged)
    witness.send(3)
    assert {place[0] for number, place in witness.acknowledged.items() if number not in known} == {0, 2}
    assert [code for _, code in witness.errors] == [KafkaError._MSG_TIMED_OUT], "it has no leader"
    allow(paths)


@pytest.mark.parametrize("what", ["list", "look", "read"])
def test_an_offline_partition_is_back_when_its_disk_is(locked_out: tuple[BrokerProcess, Witness], what: str) -> None:
    """H30: by itself, with all of its records, from where it started before."""
    broker, witness = locked_out
    broker.start()
    delete_records(broker, 4)
    broker.stop()
    paths = refuse(broker.data / "t-1", what)
    broker.start()
    assert errors_of(broker)[1] in OFFLINE
    allow(paths)
    wait_until(lambda: errors_of(broker) == {0: 0, 1: 0, 2: 0}, 20, "t-1 is back")
    wait_until(lambda: "accepts appends again" in broker.log(), 60, "a line in the log")
    witness.acknowledged = {n: at for n, at in witness.acknowledged.items() if at[0] != 1 or at[1] >= 4}
    for _ in range(3):
        resumes(witness)
    records = numbers_in(broker.address, "t", 3)
    assert min(offset for partition, offset in records if partition == 1) == 4
    all_is_there(broker, witness)


def delete_records(broker: BrokerProcess, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    (future,) = admin.delete_records([TopicPartition("t", 1, before)]).values()
    future.result(20)


def test_a_full_disk_at_the_start(disk_of: Callable[..., MemoryDisk], brokers: Brokers, tmp_path: Path) -> None:
    """H16: after a clean stop, a file that a start would write is missing: all is served, and appends wait for room."""
    disk = disk_of("tmpfs", SMALL)
    (tmp_path / "data").symlink_to(disk.root / "data")
    broker = brokers(tmp_path / "data").start()
    create(broker.address, "t", 1)
    witness = Witness(broker.address, "t", value_bytes=5000, **ALONE)  # more than a page
    witness.send(RECORDS)
    assert broker.stop() == 0
    metadata = broker.data / "t-0/partition.metadata"
    metadata.unlink()
    fill(disk)
    broker.start()
    fill(disk)
    assert errors_of(broker) == {0: 0}
    witness.check(numbers_in(broker.address, "t"))
    witness.send(2)
    assert [code for _, code in witness.errors] == [KafkaError.KAFKA_STORAGE_ERROR] * 2
    disk.resize(LARGER)
    resumes(witness)
    assert "topic_id" in metadata.read_text()
    all_is_there(broker, witness)


def test_a_power_cut_leaves_what_was_sealed(disk_of: Disks, brokers: Brokers) -> None:
    """H20: the active segment was sealed as it grew; all of that, and what was synced behind it, is there."""
    disk = disk_of("ext4")
    broker = brokers(disk.root / "data", log_flush_offset_checkpoint_interval_ms="200").start()
    create(broker.address, "t")
    witness = Witness(broker.address, "t", value_bytes=20_000, **ALONE)
    witness.send(600)
    wait_until(lambda: sealed_bytes(broker) > 8 << 20, 20, "the active segment is sealed up to where it is synced")
    witness.send(20)
    assert len(witness.acknowledged) == 620
    assert sealed_bytes(broker) < log_file(broker, "t-0").stat().st_size, "partly"
    unsynced = Witness(broker.address, "t", acks=1)
    unsynced.send(20)
    cut_and_restart(disk, broker)
    records = numbers_in(broker.address, "t")
    assert {place: records.get(place) for place in witness.acknowledged.values()} == {
        place: number for number, place in witness.acknowledged.items()
    }
    assert not list(broker.data.glob("t-0/*.damaged"))
    resumes(witness)


def sealed_bytes(broker: BrokerProcess) -> int:
    """How much of the active segment of t-0 has a seal on the disk."""
    sealed = seals.load(RealStorage(), str(broker.data / "t-0"))
    return sealed[0].contents.size_bytes if 0 in sealed else 0


def test_records_that_nothing_has_any_more_are_gone_and_the_rest_goes_on(tmp_path: Path, brokers: Brokers) -> None:
    """H29: syncs fail, and the unsynced bytes read as zeros, as after the cache has given them up."""
    broker = brokers(tmp_path / "data").start()
    create(broker.address, "t")
    path = log_file(broker, "t-0")
    witness = Witness(broker.address, "t", **ALONE)
    witness.send(RECORDS)
    synced = path.read_bytes()
    with failing(broker, "fdatasync,fsync", "EIO", path):
        witness.send(5)
        assert [code for _, code in witness.errors] == [KafkaError.KAFKA_STORAGE_ERROR] * 5
        written = path.stat().st_size
        assert written > len(synced)
        with path.open("r+b") as file:
            file.seek(len(synced))
            file.write(bytes(written - len(synced)))
    resumes(witness)
    records = numbers_in(broker.address, "t")
    assert records[0, RECORDS] == max(witness.acknowledged), "the log went on where it was synced"
    assert len(records) == RECORDS + 1
    assert path.read_bytes()[: len(synced)] == synced
    all_is_there(broker, witness)


def lose_line_of(data: Path, topic: str) -> None:
    """A bit of the topic's line in the cluster file flips."""
    path = data / "horolog-cluster"
    contents = bytearray(path.read_bytes())
    contents[contents.index(b'{"name": "%s"' % topic.encode())] ^= 1
    path.write_bytes(contents)


def test_a_topic_keeps_its_id(locked_out: tuple[BrokerProcess, Witness]) -> None:
    """H39: its line is lost while its folders cannot be listed; its records and its group's offsets are there afterwards."""
    broker, witness = locked_out
    commit(broker.start(), 7)
    topic_id = id_of(broker)
    broker.stop()
    lose_line_of(broker.data, "t")
    paths = [path for index in range(3) for path in refuse(broker.data / f"t-{index}", "list")]
    create(broker.start().address, "other")
    assert all(error in OFFLINE for error in errors_of(broker).values())
    broker.stop()
    allow(paths)
    broker.start()
    assert (id_of(broker), committed(broker)) == (topic_id, 7)
    witness.check(numbers_in(broker.address, "t", 3))


def id_of(broker: BrokerProcess) -> bytes:
    with RawWire(broker.address) as wire:
        (found,) = wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12).topics
    topic_id: bytes = found.topic_id
    return topic_id


def test_offsets_are_not_taken_for_missing(locked_out: tuple[BrokerProcess, Witness]) -> None:
    """H40: groups are told to come again until their folder can be read."""
    broker, _ = locked_out
    commit(broker.start(), 7)
    broker.stop()
    paths = [path for folder in broker.data.glob("__consumer_offsets-*") for path in refuse(folder, "list")]
    broker.start()
    with RawWire(broker.address) as wire:
        answer = wire.ask(OffsetFetchRequest(group_id="readers", topics=None), 5)
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    allow(paths)
    assert committed(broker) == 7


def test_a_power_cut_while_a_topic_is_deleted(disk_of: Disks, brokers: Brokers) -> None:
    """H38: it is whole or gone, and gone once that was answered."""
    disk = disk_of("ext4")
    broker = brokers(disk.root / "data", auto_create_topics_enable="false").start()
    for number, pause_s in enumerate([0.003, 0.01, None]):
        topic = f"t{number}"
        create(broker.address, topic, 3)
        witness = Witness(broker.address, topic, partitions=3, **ALONE)
        witness.send(RECORDS)
        admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
        (deleted,) = admin.delete_topics([topic], request_timeout=10).values()
        if pause_s is None:
            deleted.result(20)
        else:
            time.sleep(pause_s)
        cut_and_restart(disk, broker)
        answered = deleted.exception(60) is None  # also by the next start, if it was still on its way
        is_there = topic in AdminClient({"bootstrap.servers": broker.address}).list_topics(timeout=20).topics
        if is_there:
            assert not answered
            witness.check(numbers_in(broker.address, topic, 3))
        else:
            assert not list(broker.data.glob(f"{topic}-?"))
