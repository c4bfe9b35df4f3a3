"""Safety of one machine: every partition is synced, failures are told by partition, once all of them are through."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.base.metrics import Metrics
from horolog.broker.commit.safety import SYNC_RECORDS, LocalSafety
from horolog.broker.log.partition.sync_state import SyncState
from horolog.broker.log.storage import StorageFault


class Partition:
    """Ten records that are not safe; `holds` keeps a sync from ending."""

    def __init__(self, error=None):
        self.sync_state = SyncState(5)
        self.error = error
        self.holds = Event()
        self.holds.set()
        self.is_through = Event()

    def sync(self):
        self.holds.wait(60)
        if self.error is not None:
            raise self.error
        self.sync_state.reached(15)
        self.is_through.set()


@pytest.fixture
def metrics():
    return Metrics()


@pytest.fixture
async def safety(metrics):
    with ThreadPoolExecutor(2) as pool:
        yield LocalSafety(asyncio.get_running_loop(), pool, metrics, ManualClock().monotonic)


async def made_safe(safety, *partitions):
    told = asyncio.get_running_loop().create_future()
    safety.make_safe(partitions, told.set_result)
    return await told


async def test_records_are_safe_when_it_is_told(safety, metrics):
    partition = Partition()
    assert await made_safe(safety, partition) == {}
    assert partition.sync_state.recovery_point == 15
    synced = metrics.histogram(SYNC_RECORDS)
    assert (sum(synced.counts), synced.sum) == (1, 10)


async def test_it_is_told_once_and_after_the_last(safety):
    first, last = Partition(), Partition()
    last.holds.clear()
    told = asyncio.get_running_loop().create_future()
    safety.make_safe([first, last], told.set_result)
    assert await asyncio.to_thread(first.is_through.wait, 5)
    assert not told.done()
    last.holds.set()
    assert await told == {}


@pytest.mark.parametrize("error", [StorageFault("no disk"), ValueError("a fault of our own")])
async def test_who_failed_is_told_and_the_others_are_safe(safety, metrics, error, caplog):
    good, bad = Partition(), Partition(error)
    failures = await made_safe(safety, bad, good)
    assert list(failures) == [bad]
    assert str(failures[bad]) == str(error)
    assert isinstance(failures[bad], StorageFault)
    assert "could not sync" in caplog.text
    assert metrics.histogram(SYNC_RECORDS).counts.count(1) == 1
