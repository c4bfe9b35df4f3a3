"""A small disk in memory that fills up and is enlarged."""

import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource

from tests.faults.test_injected_errors import ALONE, all_is_there, resumes
from tests.support.broker_process import BrokerProcess
from tests.support.disks import Disk, MemoryDisk
from tests.support.processor_time import quickest
from tests.support.waiting import wait_until
from tests.support.witness import Witness, create, numbers_in

SMALL, LARGER = 16 << 20, 64 << 20


def test_refused_at_once_read_as_before_and_taken_again(
    disk_of: Callable[..., MemoryDisk], brokers: Callable[..., BrokerProcess]
) -> None:
    disk = disk_of("tmpfs", SMALL)
    broker = brokers(disk.root / "data").start()
    create(broker.address, "t", 2, segment_bytes="1000000")
    witness = Witness(broker.address, "t", partitions=2, value_bytes=8000, **ALONE)
    with witness.producing():
        assert witness.wait_for_error() == KafkaError.KAFKA_STORAGE_ERROR
        time.sleep(1)
    witness.check(numbers_in(broker.address, "t", 2))

    def refused() -> float:
        began = time.monotonic()
        witness.send(100)
        return time.monotonic() - began

    assert quickest(refused, below=3) < 3, "refused at once"
    fill(disk)
    with pytest.raises(KafkaException):
        create(broker.address, "late")
    disk.resize(LARGER)
    for _ in range(2):
        resumes(witness)
    witness.send(100)
    create(broker.address, "late")
    all_is_there(broker, witness)
    assert broker.stop() == 0
    broker.start()
    witness.check(numbers_in(broker.address, "t", 2))


@pytest.mark.parametrize("workers", ["1", "2"])
def test_room_is_told_before_it_has_run_out_and_then(
    disk_of: Callable[..., MemoryDisk], brokers: Callable[..., BrokerProcess], tmp_path: Path, workers: str
) -> None:
    disk = disk_of("tmpfs", SMALL)
    settings = {"horolog.workers": workers, "horolog.http.listen": "127.0.0.1:0"}
    broker = brokers(beside(disk, tmp_path), **settings).start()
    port = http_port(broker)
    assert answer(port, "/ready") == (200, {"ready": True, "phase": "ready", "reasons": [], "warnings": []})
    with (disk.root / "filler").open("wb") as file:
        file.write(bytes(SMALL - (512 << 10)))
    wait_until(lambda: "the disk is nearly full" in broker.log())
    status, told = answer(port, "/ready")
    assert (status, ["nearly full" in line for line in told["warnings"]]) == (200, [True])
    fill(disk)
    wait_until(lambda: "the disk is full" in broker.log())
    status, told = answer(port, "/ready")
    assert status == 503
    assert all("the disk is full, 0 bytes of 16.0 MiB are left" in line for line in told["reasons"])
    rows = [line for line in metrics(port) if line.startswith("horolog_data_folder_room_bytes{")]
    assert [row.rpartition(" ")[2] for row in rows] == ["0"] * int(workers)
    disk.resize(LARGER)
    wait_until(lambda: "there is free space again" in broker.log())
    assert answer(port, "/ready")[0] == 200


@pytest.mark.parametrize(
    ("before", "after"), [("1", "1"), ("2", "2"), ("1", "2"), ("2", "3"), ("3", "2"), ("2", "1"), ("3", "1")]
)
def test_a_start_on_a_disk_without_a_byte_serves_reads_whoever_was_killed_there(
    disk_of: Callable[..., MemoryDisk],
    brokers: Callable[..., BrokerProcess],
    tmp_path: Path,
    before: str,
    after: str,
) -> None:
    disk = disk_of("tmpfs", SMALL)
    broker = brokers(beside(disk, tmp_path), **{"horolog.workers": before}).start()
    create(broker.address, "t", 4)
    witness = Witness(broker.address, "t", partitions=4, value_bytes=8000)
    witness.send(100)
    fill(disk)
    broker.kill()
    fill(disk)
    broker.settings["horolog.workers"] = after
    with next_port_taken(broker):
        broker.start()
    witness.check(numbers_in(broker.address, "t", 4))
    disk.resize(LARGER)
    wait_until(lambda: is_created(broker, "late"), pause_s=0.2)  # each look is a client with threads and pipes
    witness.send(100)
    assert broker.stop() == 0
    broker.start()
    witness.check(numbers_in(broker.address, "t", 4))
    assert "late" in AdminClient({"bootstrap.servers": broker.address}).list_topics(timeout=10).topics
    assert broker.stop() == 0


@contextmanager
def next_port_taken(broker: BrokerProcess) -> Iterator[None]:
    """Nobody promised it to a broker of one worker, nor to several whose ports are named."""
    with socket.socket() as other:
        with suppress(OSError):  # another test has it
            other.bind((broker.host, broker.port + 1))
        yield


def test_a_change_that_had_no_room_does_not_make_what_is_recorded_look_old(
    disk_of: Callable[..., MemoryDisk], brokers: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    disk = disk_of("tmpfs", SMALL)
    broker = brokers(beside(disk, tmp_path)).start()
    create(broker.address, "t", retention_ms="86400000")
    fill(disk)
    with pytest.raises(KafkaException):
        create(broker.address, "late")
    disk.resize(LARGER)
    assert broker.stop() == 0
    broker.start()
    admin = AdminClient({"bootstrap.servers": broker.address})
    asked = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, "t")])
    (found,) = (one.result(timeout=10) for one in asked.values())
    assert (found["retention.ms"].value, found["horolog.settings.unknown"].value) == ("86400000", "false")
    assert "older copy" not in broker.log()


def is_created(broker: BrokerProcess, name: str) -> bool:
    try:
        create(broker.address, name)
    except KafkaException as error:
        return bool(error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS)
    return True


def beside(disk: Disk, folder: Path) -> Path:
    """A data folder on the disk under a path beside it: what the broker says is not written to the full disk."""
    (disk.root / "data").mkdir()
    (folder / "data").symlink_to(disk.root / "data")
    return folder / "data"


def http_port(broker: BrokerProcess) -> int:
    """Which free port the broker has taken for HTTP, as it tells clients."""
    admin = AdminClient({"bootstrap.servers": broker.address})
    (node,) = list(admin.list_topics(timeout=10).brokers)[:1]
    asked = admin.describe_configs([ConfigResource(ConfigResource.Type.BROKER, str(node))])
    (found,) = (one.result(timeout=10) for one in asked.values())
    return int(found["horolog.http.listen"].value.rpartition(":")[2])


def answer(port: int, path: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as said:
            return said.status, json.loads(said.read())
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read())


def metrics(port: int) -> list[str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as said:
        return said.read().decode().splitlines()


def fill(disk: Disk) -> None:
    """Not a byte is left."""
    with (disk.root / "filler").open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return
