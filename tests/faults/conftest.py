"""Every test here hurts a real broker process with real means; one that the machine does not allow says why it is skipped."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import disks
from tests.support.broker_process import BrokerProcess
from tests.support.disks import Disk, LoopDisk, MemoryDisk

SETTINGS = {
    "auto.create.topics.enable": "true",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
}


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.faults)
    item.add_marker(pytest.mark.slow)


@pytest.fixture
def brokers() -> Iterator[Callable[..., BrokerProcess]]:
    """Makes brokers, not started; whatever runs in the end is killed, before any disk goes."""
    made: list[BrokerProcess] = []

    def make(data: Path, kind: type[BrokerProcess] = BrokerProcess, **settings: str) -> BrokerProcess:
        broker = kind(data, SETTINGS | {key.replace("_", "."): value for key, value in settings.items()})
        made.append(broker)
        return broker

    yield make
    for broker in made:
        if broker.running:
            broker.kill()


@pytest.fixture
def disk_of(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Disk]:
    """Makes a disk of a kind, or skips."""

    def make(kind: str, size_bytes: int = 0) -> Disk:
        reason = disks.why_not(kind)
        if reason is not None:
            pytest.skip(f"no {kind} to be had: {reason}")
        try:
            disk = MemoryDisk(tmp_path, size_bytes) if kind == "tmpfs" else LoopDisk(tmp_path, kind)
        except OSError as error:
            pytest.skip(f"no {kind} to be had: {error}")
        request.addfinalizer(disk.close)
        return disk

    return make
