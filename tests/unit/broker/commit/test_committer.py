"""The committer answers only written commits, and durable commits only when they are synced."""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.base.metrics import Metrics
from horolog.broker.commit import committer as committer_module
from horolog.broker.commit.committer import Committer
from horolog.broker.commit.safety import Failures, LocalSafety, NotSafe
from horolog.broker.log.partition import Partition
from horolog.broker.log.partition.sync_state import SyncState
from horolog.broker.log.storage import StorageFault
from horolog.protocol.errors import ErrorCode


class FakePartition(Partition):
    """Counts its writes and syncs; a sync can be held or made to fail."""

    def __init__(self) -> None:
        self.topic, self.index = "t", 0
        self.flushes = 0
        self.syncs = 0
        self.sync_state = SyncState(0)
        self.fail_flush = False
        self.fail_sync = False
        self.let_sync = threading.Event()
        self.let_sync.set()

    def __repr__(self) -> str:
        return f"<FakePartition, {self.flushes} writes, {self.syncs} syncs>"

    def flush(self) -> None:
        self.flushes += 1
        if self.fail_flush:
            raise StorageFault("no space")

    def sync(self) -> None:
        assert self.let_sync.wait(60)
        self.syncs += 1
        if self.fail_sync:
            raise StorageFault("input/output error")
        self.sync_state.reached(self.sync_state.recovery_point + 10)


class FakeCommit:
    def __init__(self, partitions: Sequence[Any], *, durable: bool = False, timeout_ms: int = 0) -> None:
        self.partitions = partitions
        self.durable = durable
        self.timeout_ms = timeout_ms
        self.failures: Failures | None = None
        self.finished = asyncio.Event()

    def finish(self, failures: Failures) -> None:
        assert self.failures is None, "finished twice"
        self.failures = failures
        self.finished.set()


@pytest.fixture
def workers():
    with ThreadPoolExecutor(2) as pool:
        yield pool


def committer(workers, written=None) -> Committer:
    loop, clock = asyncio.get_running_loop(), ManualClock()
    told = written if written is not None else []
    return Committer(
        loop, LocalSafety(loop, workers, Metrics(), clock.monotonic), told.append, Metrics(), clock.monotonic
    )


async def test_commits_of_one_tick_share_one_write(workers) -> None:
    written: list[Any] = []
    c, partition = committer(workers, written), FakePartition()
    commits = [FakeCommit([partition]) for _ in range(5)]
    for commit in commits:
        c.submit(commit)
    assert partition.flushes == 0, "nothing is written before the tick ends"
    await c.drain()
    assert partition.flushes == 1
    assert [list(partitions) for partitions in written] == [[partition]]
    assert all(commit.failures == {} for commit in commits)


async def test_a_failed_write_fails_its_partition_only(workers) -> None:
    c, good, bad = committer(workers), FakePartition(), FakePartition()
    bad.fail_flush = True
    of_good, of_both = FakeCommit([good]), FakeCommit([good, bad], durable=True)
    c.submit(of_good)
    c.submit(of_both)
    await c.drain()
    assert of_good.failures is not None
    assert good not in of_good.failures
    assert of_both.failures is not None
    assert set(of_both.failures) == {bad}


async def test_a_durable_commit_waits_for_every_sync(workers) -> None:
    c, quick, slow = committer(workers), FakePartition(), FakePartition()
    slow.let_sync.clear()
    commit = FakeCommit([quick, slow], durable=True)
    c.submit(commit)
    await asyncio.sleep(0.05)
    assert quick.syncs == 1
    assert commit.failures is None
    slow.let_sync.set()
    await asyncio.wait_for(c.drain(), 60)
    assert commit.failures == {}


async def test_commits_that_arrive_during_a_sync_share_the_next(workers) -> None:
    c, partition = committer(workers), FakePartition()
    partition.let_sync.clear()
    first = FakeCommit([partition], durable=True)
    c.submit(first)
    await asyncio.sleep(0.02)
    later = [FakeCommit([partition], durable=True) for _ in range(10)]
    for commit in later:
        c.submit(commit)
        await asyncio.sleep(0)
    assert first.failures is None
    partition.let_sync.set()
    await asyncio.wait_for(c.drain(), 60)
    assert partition.syncs == 2
    assert all(commit.failures == {} for commit in later)


async def test_a_failed_sync_is_told_to_all_who_waited_for_it(workers) -> None:
    c, partition = committer(workers), FakePartition()
    partition.fail_sync = True
    commits = [FakeCommit([partition], durable=True) for _ in range(3)]
    for commit in commits:
        c.submit(commit)
    await asyncio.wait_for(c.drain(), 60)
    assert all(commit.failures is not None and partition in commit.failures for commit in commits)


class HoldingSafety:
    """Holds every commit until the test makes its partition safe."""

    holds_all = True

    def __init__(self):
        self.calls = []

    def make_safe(self, partitions, done):
        self.calls.append(done)


def too_early(_: object) -> None:
    raise AssertionError("readers wait for the safety")


def holding() -> tuple[Committer, HoldingSafety]:
    safety = HoldingSafety()
    return Committer(asyncio.get_running_loop(), safety, too_early, Metrics(), ManualClock().monotonic), safety


async def test_a_safety_that_holds_all_commits_gets_each_tick_at_once() -> None:
    (c, safety), partition = holding(), FakePartition()
    first, second = FakeCommit([partition]), FakeCommit([partition], durable=True)
    for commit in (first, second):
        c.submit(commit)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert len(safety.calls) == c.waiting_for_sync == 2
    assert partition.flushes == 2
    assert first.failures is None
    safety.calls[0]({})
    assert (first.failures, second.failures) == ({}, None)
    safety.calls[1]({})
    await asyncio.wait_for(c.drain(), 60)
    assert second.failures == {}


async def test_of_the_brokers_own_records_only_so_many_have_room(monkeypatch) -> None:
    """Those of one batch count each; what has ended counts no more, however it ended."""
    monkeypatch.setattr(committer_module, "MOST_RECORDS", 5)
    loop, safety = asyncio.get_running_loop(), HoldingSafety()
    c = Committer(loop, safety, lambda _: None, Metrics(), ManualClock().monotonic)
    partition, told = FakePartition(), []
    c.submit_own((partition,), told.append, durable=False, records=4)
    c.submit(FakeCommit([partition]))
    assert c.has_room
    c.submit_own((partition,), told.append, durable=False)
    await asyncio.sleep(0)
    assert (c.has_room, told) == (False, [])
    for done in safety.calls:
        done({partition: StorageFault("fenced")})
    assert c.has_room
    assert [list(one) for one in told] == [[partition]] * 2


async def test_a_client_that_waits_too_long_is_answered_without_its_records_being_safe() -> None:
    (c, safety), slow, gone = holding(), FakePartition(), FakePartition()
    gone.fail_flush = True
    commit, patient = FakeCommit([slow, gone], timeout_ms=1), FakeCommit([slow], timeout_ms=60_000)
    c.submit(commit)
    c.submit(patient)
    await asyncio.wait_for(commit.finished.wait(), 60)
    late, fault = commit.failures[slow], commit.failures[gone]
    assert isinstance(late, NotSafe)
    assert late.error == ErrorCode.REQUEST_TIMED_OUT
    assert not isinstance(fault, NotSafe)
    assert patient.failures is None
    safety.calls[0]({slow: NotSafe("fenced", ErrorCode.NOT_LEADER_OR_FOLLOWER)})
    assert patient.failures[slow].error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    await asyncio.wait_for(c.drain(), 60)
