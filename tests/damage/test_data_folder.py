"""Whatever a crash, a copy, a restored backup or a full disk leaves in a data folder, the broker serves what it can."""

import asyncio
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from horolog.broker.log.partition import log_start
from horolog.broker.log.storage import DataFolderError, MemoryStorage
from horolog.broker.log.storage.memory_disk import ALL
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from horolog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.damaged_log import COUNT, DamagedLog
from tests.support.log_model import encode, read_all
from tests.support.logs import open_logs
from tests.support.memory_broker import MemoryBroker, Wire
from tests.support.waiting import until

CHECKPOINTS = [
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
]
LOG_STARTS = ("log-start-offset-checkpoint", "horolog-log-starts")
GARBLED: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut": lambda data: data[: len(data) // 2],
    "zeros": lambda data: bytes(len(data)),
    "garbage": lambda _: b"\xff\x00garbage",
    "another version": lambda data: b"7" + data[1:],
}


@pytest.fixture
def log(tmp_path: Path) -> Iterator[DamagedLog]:
    log = DamagedLog(tmp_path)
    log.write()
    log.stop(clean=True)
    yield log
    log.close()


# Small files


@pytest.mark.parametrize("garbled", GARBLED)
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_checkpoints(log: DamagedLog, name: str, garbled: str) -> None:
    path = log.data / name
    path.write_bytes(GARBLED[garbled](path.read_bytes() if path.exists() else b"0\n0\n"))
    log.open()
    log.check_goes_on(COUNT)


@pytest.mark.parametrize("garbled", GARBLED)
@pytest.mark.parametrize(
    "name", ["leader-epoch-checkpoint", "horolog-seals", "partition.metadata", f"{COUNT:020d}.snapshot"]
)
def test_files_of_a_partition(log: DamagedLog, name: str, garbled: str) -> None:
    path = log.folder / name
    path.write_bytes(GARBLED[garbled](path.read_bytes() if path.exists() else b"0\n0\n"))
    log.open()
    log.check_goes_on(COUNT)


@pytest.mark.parametrize("garbled", GARBLED)
def test_transaction_index(log: DamagedLog, garbled: str) -> None:
    path = log.file(0, ".txnindex")
    path.write_bytes(GARBLED[garbled](bytes(68)))
    log.open()
    log.check_goes_on(COUNT)


@pytest.mark.parametrize("order", [LOG_STARTS, LOG_STARTS[::-1]])
def test_both_files_of_log_starts_one_after_the_other(log: DamagedLog, order: tuple[str, str]) -> None:
    """A start has two good ones again, however soon it ends."""
    start = log.base(1) - 1
    logs = open_logs(log.data)
    log_start.delete_records_before(logs.partitions["t", 0], start)
    assert logs.write_log_starts() == set()
    logs.abandon()
    for name in order:
        path = log.data / name
        path.write_bytes(GARBLED["cut"](path.read_bytes()))
        logs = open_logs(log.data)
        assert logs.partitions["t", 0].log_start_offset == start
        logs.abandon()


@pytest.mark.parametrize("garbled", ["empty", "cut", "zeros", "garbage"])
def test_meta_properties(log: DamagedLog, garbled: str) -> None:
    """It is kept aside, what can be read of it still counts, and the data is served."""
    path = log.data / "meta.properties"
    before = path.read_bytes()
    path.write_bytes(GARBLED[garbled](before))
    log.open()
    assert (log.data / "meta.properties.damaged").read_bytes() == GARBLED[garbled](before)
    log.check_goes_on(COUNT)
    logs = open_logs(log.data)
    assert len(logs.cluster_id) == 22
    logs.abandon()


def test_what_can_be_read_of_meta_properties_counts(log: DamagedLog) -> None:
    path = log.data / "meta.properties"
    first = open_logs(log.data)
    cluster_id = first.cluster_id
    first.close()
    path.write_bytes(path.read_bytes().replace(b"version=1", b"versi\x00n=1"))
    logs = open_logs(log.data)
    assert logs.cluster_id == cluster_id
    logs.abandon()
    path.write_bytes(path.read_bytes().replace(b"version=1", b"").replace(b"node.id=1", b"node.id=8"))
    with pytest.raises(DataFolderError, match=r"node\.id=8"):
        open_logs(log.data)


def test_a_meta_properties_of_a_later_release_is_refused(log: DamagedLog) -> None:
    path = log.data / "meta.properties"
    path.write_bytes(path.read_bytes().replace(b"version=1", b"version=9"))
    with pytest.raises(DataFolderError, match="version '9'"):
        open_logs(log.data)


# Copies


@pytest.mark.parametrize("which", [0, 1, -1])
def test_emptied_log(log: DamagedLog, which: int) -> None:
    """A copy that was interrupted, or a full disk: the records are gone, nothing else is."""
    bases = [log.base(number) for number in range(len(list(log.folder.glob("*.log"))))] + [COUNT]
    number = which % (len(bases) - 1)
    log.lose(*range(bases[number], bases[number + 1]))
    log.file(which).write_bytes(b"")
    log.open()
    log.check_goes_on(COUNT)


@pytest.mark.parametrize("seals", [True, False])
@pytest.mark.parametrize("which", [0, 1, -1])
def test_half_copied_segment(log: DamagedLog, which: int, *, seals: bool) -> None:
    """Where the folder says that there was more, its offsets are not given out again."""
    path = log.file(which)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    if not seals:
        (log.folder / "horolog-seals").unlink()
    base = log.base(which)
    log.open()
    there = {row[0] for row in read_all(log.partition)}
    end = COUNT if which == -1 else log.base(which + 1)
    assert there >= {row[0] for row in log.rows if not base <= row[0] < end}
    log.lose(*(set(range(COUNT)) - there))
    assert base in there
    log.check_goes_on(COUNT)


def test_only_the_logs_were_copied(log: DamagedLog, tmp_path: Path) -> None:
    for path in log.folder.iterdir():
        if path.suffix != ".log":
            path.unlink()
    for path in log.data.iterdir():
        if path.is_file():
            path.unlink()
    log.open()
    log.check_goes_on(COUNT)


def test_a_segment_gap_at_the_start(log: DamagedLog) -> None:
    following = log.base(1)
    log.file(0).unlink()
    log.lose(*range(following))
    log.open()
    assert log.partition.log_start_offset == following
    log.check_goes_on(COUNT)


def test_a_segment_that_repeats_records_of_the_one_before(log: DamagedLog) -> None:
    """A copy taken while segments were merged: each offset is served once, doubles are kept."""
    (log.folder / "horolog-seals").unlink()
    first, second = log.file(0), log.file(1)
    first.write_bytes(first.read_bytes() + second.read_bytes())
    log.open()
    log.check_goes_on(COUNT)
    assert [kind for kind, _, _ in log.set_aside()] == ["damaged"]


def test_an_empty_segment_in_the_middle_of_another(log: DamagedLog) -> None:
    """A copy taken during a roll: a name that begins inside of the log before it, and nothing in it, hides nothing."""
    inside = log.base(1) + 1
    for suffix in (".log", ".index", ".timeindex"):
        (log.folder / f"{inside:020d}{suffix}").write_bytes(b"")
    log.open()
    log.check()


def test_a_log_under_a_wrong_name(log: DamagedLog) -> None:
    """Its records are not served under offsets that they do not have."""
    (log.folder / "horolog-seals").unlink()
    wrong, right = log.base(-1) + 1, log.base(-1)
    log.file(-1).rename(log.folder / f"{wrong:020d}.log")
    log.lose(*range(right, wrong))
    log.open()
    served = read_all(log.partition)
    assert [row for row in served if row[0] < wrong] == log.rows[:right]
    assert all(row in log.rows for row in served)
    assert log.partition.log_end_offset == COUNT


# Folders


def test_foreign_files_and_folders(log: DamagedLog) -> None:
    for name in ("lost+found", "t-x", "t-00", "-1", "..-0", "backup of t-0"):
        (log.data / name).mkdir()
    (log.data / "u-0").write_bytes(b"a file, not a folder")
    (log.folder / f"{7:020d}.log.d").mkdir()
    log.open()
    assert log.logs is not None
    assert set(log.logs.partitions) == {("t", 0)}
    log.check_goes_on(COUNT)


def test_one_partition_that_cannot_be_opened_is_offline_alone(log: DamagedLog) -> None:
    shutil.copytree(log.folder, log.data / "t-1")
    broken = log.data / "t-1" / log.file(0).name
    broken.unlink()
    broken.mkdir()
    log.open()
    assert log.logs is not None
    fault = log.logs.partitions["t", 1].condition.fault
    assert fault is not None
    assert str(broken) in fault
    log.check()


def test_two_brokers_never_open_one_folder(log: DamagedLog) -> None:
    log.open()
    with pytest.raises(DataFolderError, match="in use"):
        open_logs(log.data)
    log.check()


def test_a_data_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"")
    with pytest.raises(DataFolderError):
        open_logs(tmp_path / "data" / "below")


# The whole broker


def produce(index: int) -> ProduceRequest:
    records = encode(2, 0, [1_700_000_000_000], [b"v"])
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=index, records=records)])
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data])


async def states(wire: Wire) -> list[tuple[int, int, int]]:
    """Partition, error and leader of topic t as Metadata tells them."""
    answer = await wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
    return [(one.partition_index, one.error_code, one.leader_id) for one in answer.topics[0].partitions]


@pytest.mark.parametrize("operation", ["list", "read", "stat"])
def test_an_unreadable_folder_is_told_in_metadata(operation: str, caplog: pytest.LogCaptureFixture) -> None:
    """Wrong permissions, a bad sector: that partition is offline, the others take records."""

    async def run() -> None:
        storage = MemoryStorage()
        async with MemoryBroker(storage) as broker:
            broker.topic("t", 3)
            wire = broker.connect()
            for index in range(3):
                await wire.ask(produce(index), 9)
            storage.crash()
        part = "t-1/00000000000000000000.log" if operation == "stat" else "t-1"
        storage.fail(operation, part, times=ALL, code=errno.EACCES)
        async with MemoryBroker(storage) as broker:
            wire = broker.connect()
            found = await states(wire)
            offline = int(ErrorCode.KAFKA_STORAGE_ERROR), int(ErrorCode.LEADER_NOT_AVAILABLE)
            assert [(index, leader) for index, error, leader in found if not error] == [(0, 1), (2, 1)]
            assert [(index, error in offline) for index, error, _ in found if error] == [(1, True)]
            answer = await wire.ask(produce(2), 9)
            assert answer.responses[0].partition_responses[0].error_code == 0
            answer = await wire.ask(produce(1), 9)
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert "t-1" in caplog.text
            storage.heal()

    asyncio.run(run())


@pytest.mark.parametrize("garbled", GARBLED)
def test_cluster_file(garbled: str) -> None:
    """Topics are found by their folders, with their ids; the file is kept aside."""

    async def run() -> None:
        storage = MemoryStorage()
        async with MemoryBroker(storage) as broker:
            topic = broker.topic("t", 2)
            topic_id = topic.id
            await broker.connect().ask(produce(1), 9)
        data = storage.read_all("/data/horolog-cluster")
        storage.create("/data/horolog-cluster").pwritev([GARBLED[garbled](data)], 0)
        async with MemoryBroker(storage) as broker:
            found = broker.broker.cluster.topics["t"]
            assert (found.id, found.partition_count) == (topic_id, 2)
            assert found.find(1).high_watermark == 1
            assert storage.read_all("/data/horolog-cluster.damaged") == GARBLED[garbled](data)
            assert [one[1] for one in await states(broker.connect())] == [0, 0]

    asyncio.run(run())


def test_a_full_disk_at_the_start() -> None:
    """Nothing can be written: everything that is there is served."""

    async def run() -> None:
        storage = MemoryStorage()
        async with MemoryBroker(storage) as broker:
            broker.topic("t", 1)
            await broker.connect().ask(produce(0), 9)
        storage.remove("/data/t-0/partition.metadata")
        storage.capacity_bytes = storage.used_bytes()
        async with MemoryBroker(storage) as broker:
            wire = broker.connect()
            assert [one[1] for one in await states(wire)] == [0]
            answer = await wire.ask(produce(0), 9)
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
            storage.heal()

    asyncio.run(run())


def test_a_folder_that_is_a_file_leaves_its_partition_offline() -> None:
    async def run() -> None:
        storage = MemoryStorage()
        async with MemoryBroker(storage) as broker:
            broker.topic("t", 2)
            await broker.connect().ask(produce(0), 9)
        for name in storage.list_dir("/data/t-1"):
            storage.remove(f"/data/t-1/{name}")
        storage.remove_dir("/data/t-1")
        storage.create("/data/t-1")
        async with MemoryBroker(storage) as broker:
            found = await states(broker.connect())
            assert [bool(error) for _, error, _ in found] == [False, True]

    asyncio.run(run())


def test_damage_is_rescanned_while_the_broker_runs() -> None:
    """A bit that flipped while the broker was stopped: the fetch is told to come again, then gets everything that is good."""

    async def run() -> None:
        storage = MemoryStorage()
        async with MemoryBroker(storage) as broker:
            broker.topic("t", 1)
            wire = broker.connect()
            for _ in range(5):
                await wire.ask(produce(0), 9)
        path = "/data/t-0/00000000000000000000.log"
        data = bytearray(storage.read_all(path))
        data[len(data) // 5 * 2 + 65] ^= 1
        storage.create(path).pwritev([bytes(data)], 0)
        async with MemoryBroker(storage) as broker:
            wire = broker.connect()
            first = await wire.ask(fetch(0), 11)
            assert first.responses[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
            broker.broker.time_has_moved()
            await until(lambda: broker.broker.logs.resources.counters.segments_mended.value)
            served = read_all(broker.broker.logs.partitions["t", 0])
            assert [row[0] for row in served] == [0, 1, 3, 4]
            answer = await wire.ask(fetch(3), 11)
            assert answer.responses[0].partitions[0].error_code == 0

    asyncio.run(run())


def fetch(offset: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic="t", partitions=[partition])
    return FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=[topic])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_without_permission(log: DamagedLog) -> None:
    shutil.copytree(log.folder, log.data / "t-1")
    (log.data / "t-1").chmod(0)
    log.open()
    assert log.logs is not None
    assert log.logs.partitions["t", 1].condition.fault is not None
    log.check()
    (log.data / "t-1").chmod(0o755)
