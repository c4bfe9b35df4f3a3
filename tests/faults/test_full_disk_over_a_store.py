"""The small disk of a broker over a store fills up: nothing that was acknowledged is lost, and the broker goes on once there is room."""

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("obstore")

from tests.faults.test_full_disk import LARGER, fill
from tests.faults.test_injected_errors import ALONE, resumes
from tests.support.broker_process import BrokerProcess
from tests.support.disks import MemoryDisk
from tests.support.witness import Witness, create, numbers_in

SMALL = 24 << 20


def test_a_broker_over_a_store_goes_on_when_its_full_disk_has_room(
    disk_of: Callable[..., MemoryDisk], brokers: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    disk = disk_of("tmpfs", SMALL)
    store = {"horolog.store": f"file://{tmp_path}/store", "horolog.store.flush.ms": "10"}
    broker = brokers(disk.root / "data", **store).start()
    create(broker.address, "t", 2, segment_bytes="1000000")
    witness = Witness(broker.address, "t", partitions=2, value_bytes=8000, **ALONE)
    witness.send(20)
    fill(disk)
    with witness.producing():
        witness.wait_for_error()
    witness.check(numbers_in(broker.address, "t", 2))
    assert "No space left on device" in broker.log()
    disk.resize(LARGER)
    resumes(witness)
    witness.send(100)
    witness.check(numbers_in(broker.address, "t", 2))
    assert broker.stop() == 0
    again = brokers(tmp_path / "empty", **store).start()
    witness.check(numbers_in(again.address, "t", 2))
    assert again.stop() == 0
