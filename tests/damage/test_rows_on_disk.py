"""Rows of the damage table as users meet them: a broker process over a real folder, hurt between its end and its next start."""

import base64
import os
import random
import re
import shutil
import signal
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Producer

from horolog.broker.log.producers import producers_file
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from horolog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.transactions import InitProducerIdRequest
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record
from tests.damage.test_data_folder import GARBLED
from tests.damage.test_transaction_files import ENTRY_BYTES, FOUND_BY_MARKERS, KINDS
from tests.support.broker_process import TARGET_SETTINGS, BrokerProcess
from tests.support.fixtures import BrokerStarter
from tests.support.raw_wire import RawWire
from tests.support.witness import Place, create, values_in, wait_until

RECORDS, TRANSACTIONS, BATCHES = 12, 12, 8
FIRST_MS = 1_700_000_000_000
TRANSACTION_PARTITIONS = len(KINDS)
SNAPSHOT_DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda _: b"",
    "cut": lambda data: data[:-7],
    "random": lambda data: random.Random(5).randbytes(len(data)),
    "one bit": lambda data: data[:20] + bytes([data[20] ^ 1]) + data[21:],
}
SNAPSHOT_KINDS = ["missing", "a newer one's contents", *SNAPSHOT_DAMAGE]
PRODUCERS_KINDS = ["missing", "another's", *SNAPSHOT_DAMAGE]
PRODUCER_PARTITIONS = len(SNAPSHOT_KINDS) + 1

Take = Callable[[str], Path]


def sent(place: Place) -> bytes:
    return b"%d of %d-" % (place[1], place[0]) + b"v" * 60


PLAIN: dict[Place, bytes] = {(index, n): sent((index, n)) for index in range(3) for n in range(RECORDS)}
COMMITTED: dict[Place, bytes] = {
    (index, 2 * n): b"%d" % n + b"v" * 60 for index in range(TRANSACTION_PARTITIONS) for n in range(1, TRANSACTIONS, 2)
}
"""A marker follows each; the even transactions were aborted."""


def produce(
    wire: RawWire, topic: str, index: int, value: bytes, producer_id: int = -1, sequence: int = -1
) -> tuple[int, int]:
    """One batch of one record: the error and the offset."""
    record = Record(0, FIRST_MS, 0, b"k", value)
    epoch = -1 if producer_id < 0 else 0
    batch = bytes(encode_batch([record], producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence))
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=batch)])
    answer = wire.ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data]), 9)
    (found,) = answer.responses[0].partition_responses
    return found.error_code, found.base_offset


def fetch_error(wire: RawWire, topic: str, index: int, offset: int = 0) -> int:
    partition = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic=topic, partitions=[partition])]
    answer = wire.ask(FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=topics), 11)
    return int(answer.responses[0].partitions[0].error_code)


def topic_as_told(broker: BrokerProcess, name: str = "t") -> tuple[object, dict[int, int]]:
    """Its id, and the error of each partition, as Metadata tells."""
    with RawWire(broker.address) as wire:
        (found,) = wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 12).topics
    return found.topic_id, {one.partition_index: one.error_code for one in found.partitions}


def topic_names(broker: BrokerProcess) -> set[str]:
    with RawWire(broker.address) as wire:
        return {one.name for one in wire.ask(MetadataRequest(topics=None), 9).topics}


def write_everything(broker: BrokerProcess) -> None:
    """Records, transactions of which every second was aborted, and batches of a producer for each partition."""
    small = {"segment_bytes": "600", "index_interval_bytes": "150", "segment_index_bytes": "4000", "retention_ms": "-1"}
    create(broker.address, "t", 3, **small)
    create(broker.address, "tx", TRANSACTION_PARTITIONS, **small)
    create(broker.address, "p", PRODUCER_PARTITIONS, **small | {"segment_bytes": "300"})
    with RawWire(broker.address) as wire:
        for (index, offset), value in PLAIN.items():
            assert produce(wire, "t", index, value) == (0, offset)
        for index in range(PRODUCER_PARTITIONS):
            producer_id = wire.ask(InitProducerIdRequest(transaction_timeout_ms=0), 4).producer_id
            assert producer_id == index
            for number in range(BATCHES):
                assert produce(wire, "p", index, b"v" * 60, producer_id, number) == (0, number)
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": "x", "log_level": 0, "linger.ms": 0})
    producer.init_transactions(20)
    for number in range(TRANSACTIONS):
        producer.begin_transaction()
        for index in range(TRANSACTION_PARTITIONS):
            producer.produce("tx", b"%d" % number + b"v" * 60, partition=index)
        producer.flush(20)
        (producer.commit_transaction if number % 2 else producer.abort_transaction)(20)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """What a broker has left after SIGKILL, and after a clean stop."""
    home = tmp_path_factory.mktemp("left")
    broker = BrokerProcess(home / "data", {**TARGET_SETTINGS, "transaction.state.log.num.partitions": "1"})
    try:
        write_everything(broker.start())
        broker.freeze()  # SIGKILL would leave these very files
        killed = shutil.copytree(broker.data, home / "killed")
        os.kill(broker.pid, signal.SIGCONT)
        assert broker.stop() == 0
    finally:
        broker.kill()
    return {"SIGKILL": killed, "clean stop": broker.data}


@pytest.fixture
def take(folders: Mapping[str, Path], tmp_path: Path) -> Take:
    """A copy of such a folder, its times kept."""
    return lambda end: shutil.copytree(folders[end], tmp_path / "data")


@pytest.fixture
def start(start_broker: BrokerStarter) -> Iterator[Callable[..., BrokerProcess]]:
    """A broker over a folder; it has to end normally."""
    started: list[BrokerProcess] = []

    def start(data: Path, **settings: str) -> BrokerProcess:
        started.append(start_broker(data, auto__create__topics__enable="false", **settings))
        return started[-1]

    yield start
    assert [one.stop() for one in started] == [0] * len(started)
    assert not any("Traceback" in one.log() for one in started)


def log_files(data: Path, partition: str, suffix: str = ".log") -> list[Path]:
    return sorted(path for path in (data / partition).iterdir() if path.name.endswith(suffix))


# Transactions and producers


@pytest.mark.parametrize("end", ["clean stop", "SIGKILL", pytest.param("no seals", marks=pytest.mark.slow)])
def test_transaction_index(take: Take, start: Callable[..., BrokerProcess], end: str) -> None:
    """H4: each kind of damage to a partition of its own. A reader of committed records is shown those alone."""
    data = take("clean stop" if end == "no seals" else end)
    kinds = FOUND_BY_MARKERS if end == "no seals" else KINDS
    good: dict[Path, bytes] = {}
    for index, kind in enumerate(kinds):
        files = [path for path in log_files(data, f"tx-{index}", ".txnindex") if path.stat().st_size][:2]
        good |= {path: path.read_bytes() for path in files}
        assert len(files) == 2
        spoil(files[0], files[1], kind)
        assert files[0].read_bytes() != good[files[0]] if files[0].exists() else kind == "missing"
        if end == "no seals":
            (data / f"tx-{index}/horolog-seals").unlink()
    broker = start(data)
    assert values_in(broker.address, "tx", TRANSACTION_PARTITIONS, isolation="read_committed") == COMMITTED
    assert {path: path.read_bytes() for path in good} == good


def spoil(path: Path, other: Path, kind: str) -> None:
    data = path.read_bytes()
    first = list(struct.unpack_from(">hqqqq", data))
    if kind == "missing":
        path.unlink()
        return
    if kind == "swapped":
        path.write_bytes(other.read_bytes())
        other.write_bytes(data)
        return
    first[1] += kind == "wrong producer"
    first[2] += kind == "wrong first offset"
    changed = struct.pack(">hqqqq", *first) + data[ENTRY_BYTES:]
    made = {
        "emptied": b"",
        "shortened": data[:-ENTRY_BYTES],
        "cut inside": data[:-5],
        "random": random.Random(4).randbytes(len(data)),
        "one more": data + struct.pack(">hqqqq", 0, 5, first[3], first[3] + 1, 1 << 40),
    }
    path.write_bytes(made.get(kind, changed))


@pytest.mark.parametrize("end", ["clean stop", "SIGKILL"])
def test_producer_snapshot(take: Take, start: Callable[..., BrokerProcess], end: str) -> None:
    """H5: the last batch, sent again, is told where it is, and the next one is taken."""
    data = take(end)
    for index, kind in enumerate(SNAPSHOT_KINDS):
        (data / f"p-{index}/horolog-producers").unlink(missing_ok=True)
        files = log_files(data, f"p-{index}", ".snapshot")
        newest = files[-1].read_bytes()
        if kind == "a newer one's contents":
            assert len(files) > 1
            files[0].write_bytes(newest)
        if kind in SNAPSHOT_DAMAGE:
            files[-1].write_bytes(SNAPSHOT_DAMAGE[kind](newest))
        else:
            files[-1].unlink()
    with RawWire(start(data).address) as wire:
        for index in range(len(SNAPSHOT_KINDS)):
            for number in (BATCHES - 1, BATCHES, BATCHES):
                assert produce(wire, "p", index, b"v" * 60, index, number) == (0, number)


def test_producers_file(take: Take, start: Callable[..., BrokerProcess]) -> None:
    """H31: without it the snapshot's last batch of each producer is known, and no earlier one; with it, five are."""
    data = take("clean stop")
    whole = len(PRODUCERS_KINDS)
    for index, kind in enumerate(PRODUCERS_KINDS):
        path = data / f"p-{index}/{producers_file.FILE_NAME}"
        if kind == "another's":
            path.write_bytes((data / f"p-{whole}/{producers_file.FILE_NAME}").read_bytes())
        elif kind in SNAPSHOT_DAMAGE:
            path.write_bytes(SNAPSHOT_DAMAGE[kind](path.read_bytes()))
        else:
            path.unlink()
    with RawWire(start(data).address) as wire:
        for number in range(BATCHES - 5, BATCHES):
            assert produce(wire, "p", whole, b"v" * 60, whole, number) == (0, number)
        for index, kind in enumerate(PRODUCERS_KINDS):
            assert produce(wire, "p", index, b"v" * 60, index, BATCHES - 1) == (0, BATCHES - 1), kind
            error, _ = produce(wire, "p", index, b"v" * 60, index, BATCHES - 2)
            assert error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, kind
            assert produce(wire, "p", index, b"v" * 60, index, BATCHES) == (0, BATCHES), kind


# The folder


def topic_id_on_disk(data: Path) -> bytes:
    (text,) = re.findall(r"topic_id: (\S{22})", (data / "t-0/partition.metadata").read_text())
    return base64.urlsafe_b64decode(text + "==")


@pytest.mark.parametrize(
    "garbled", ["cut", *(pytest.param(one, marks=pytest.mark.slow) for one in GARBLED if one != "cut")]
)
def test_cluster_file(take: Take, start: Callable[..., BrokerProcess], garbled: str) -> None:
    """H9: topics are found by their folders, with their ids, and the file's bytes are kept."""
    data = take("clean stop")
    told = topic_id_on_disk(data)
    path = data / "horolog-cluster"
    hurt = GARBLED[garbled](path.read_bytes())
    path.write_bytes(hurt)
    broker = start(data)
    assert (data / "horolog-cluster.damaged").read_bytes() == hurt
    topic_id, errors = topic_as_told(broker)
    assert (topic_id, errors) == (told, {0: 0, 1: 0, 2: 0})
    assert values_in(broker.address, "t", 3) == PLAIN
    with RawWire(broker.address) as wire:
        assert produce(wire, "t", 1, b"on") == (0, RECORDS)


def test_foreign_files_and_folders(take: Take, start: Callable[..., BrokerProcess]) -> None:
    """H14: a file where a partition's folder should be leaves that partition offline, and whatever is foreign is left alone."""
    data = take("clean stop")
    shutil.rmtree(data / "t-1")
    files = [data / "t-1", data / "u-0", data / "notes"]
    folders = [data / name for name in ("lost+found", "t-x", "t-00", "-1", "..-0", "backup of t-0")]
    folders.append(data / "t-0" / f"{7:020d}.log.d")
    for path in files:
        path.write_bytes(b"a file, not a folder")
    for path in folders:
        path.mkdir()
    broker = start(data)
    _, errors = topic_as_told(broker)
    assert [index for index, error in errors.items() if error] == [1]
    assert topic_names(broker) - {"__transaction_state", "__consumer_offsets"} == {"t", "tx", "p"}
    with RawWire(broker.address) as wire:
        assert produce(wire, "t", 1, b"refused")[0] == ErrorCode.KAFKA_STORAGE_ERROR
        assert produce(wire, "t", 2, b"on") == (0, RECORDS)
        assert fetch_error(wire, "t", 1) == ErrorCode.KAFKA_STORAGE_ERROR
    assert values_in(broker.address, "t", 1) == {place: value for place, value in PLAIN.items() if place[0] == 0}
    assert str(data / "t-1") in broker.log()
    assert {path.read_bytes() for path in files} == {b"a file, not a folder"}
    assert all(path.is_dir() for path in folders)


# Damage that is found while the broker runs


def flip_bit_of(data: Path, partition: str, number: int) -> tuple[Path, bytes]:
    """A bit in the value of a segment's first record, under the old modification time; the log, and the batch as it is now."""
    path = log_files(data, partition)[number]
    times = path.stat()
    contents = bytearray(path.read_bytes())
    contents[contents.index(b"vvvv") + 9] ^= 1
    with path.open("r+b") as file:
        file.write(contents)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return path, bytes(contents[: 12 + struct.unpack_from(">i", contents, 8)[0]])


def is_kept(path: Path, batch: bytes) -> bool:
    """Set aside beside the log, under a name that tells the one offset."""
    base = int(path.stem)
    return [one.read_bytes() for one in path.parent.glob(f"{path.name}.0.{base}-{base}.*.damaged")] == [batch]


def all_but(path: Path) -> dict[Place, bytes]:
    """The good rows if the first record of a log of t-1 is not."""
    return {place: value for place, value in PLAIN.items() if place != (1, int(path.stem))}


@pytest.mark.parametrize("number", [1, -1], ids=["middle segment", "last segment"])
def test_damage_is_rescanned_while_the_broker_runs(
    take: Take, start: Callable[..., BrokerProcess], number: int
) -> None:
    """H18: who reads it first is told to come again; then everything that is good is served."""
    data = take("clean stop")
    path, batch = flip_bit_of(data, "t-1", number)
    broker = start(data)
    assert not is_kept(path, batch), "found by nobody yet"
    with RawWire(broker.address) as wire:
        assert fetch_error(wire, "t", 1, int(path.stem)) == ErrorCode.KAFKA_STORAGE_ERROR
    assert values_in(broker.address, "t", 3) == all_but(path)
    assert is_kept(path, batch)
    with RawWire(broker.address) as wire:
        assert produce(wire, "t", 1, b"on") == (0, RECORDS)


def test_the_scrub_finds_what_nobody_reads(take: Take, start: Callable[..., BrokerProcess]) -> None:
    """H19: hurt under the running broker; set aside although no client asks for it."""
    broker = start(take("clean stop"), horolog__scrub__interval__ms="100")
    path, batch = flip_bit_of(broker.data, "t-1", 1)
    wait_until(lambda: is_kept(path, batch), 20, "the scrub has found it")
    assert values_in(broker.address, "t", 3) == all_but(path)
