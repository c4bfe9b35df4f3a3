"""A small disk in memory that fills up and is enlarged."""

import time
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException

from tests.faults.test_injected_errors import ALONE, all_is_there, resumes
from tests.support.broker_process import BrokerProcess
from tests.support.disks import Disk, MemoryDisk
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
    began = time.monotonic()
    witness.send(100)
    assert time.monotonic() - began < 3, "refused at once"
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


def fill(disk: Disk) -> None:
    """Not a byte is left."""
    with (disk.root / "filler").open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return
