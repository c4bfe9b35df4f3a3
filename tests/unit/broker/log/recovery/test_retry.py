"""When stopped and offline partitions are tried again."""

from types import SimpleNamespace

from horolog.base.clock import ManualClock
from horolog.broker.log.partition import SERVING, Condition
from horolog.broker.log.partition.condition import DELETED, PartitionState
from horolog.broker.log.recovery import Retries
from horolog.broker.log.recovery.retry import LONGEST_REOPENING_PAUSE_S, LONGEST_REPAIR_PAUSE_S
from horolog.broker.log.storage import StorageFault

STEP_MS = 250


class Stand:
    """A partition as far as `Retries` looks at it."""

    def __init__(self, *, fault=None, stopped=None):
        self.condition = Condition("t-0", PartitionState(fault, stopped))
        self.folder = SimpleNamespace(storage=None)
        self.segments, self.written_end = [None], 0
        self.durability = SimpleNamespace(rewrite_job=lambda *_: self._write_again)
        self.broken = True
        self.repairs = 0

    def write_pending(self):
        """Nothing is queued."""

    def _write_again(self):
        self.repairs += 1
        if self.broken:
            raise StorageFault("still")


def run(retries, clock, partitions, seconds, *, reopened=None):
    for _ in range(int(seconds * 1000 / STEP_MS)):
        back, jobs = retries.step(partitions)
        if reopened is not None:
            reopened += back
        for job in jobs:
            job()
        clock.advance(STEP_MS)


def test_a_stopped_partition_is_tried_at_once_then_less_often_and_resumes_soon_after_its_disk():
    clock = ManualClock()
    partition = Stand(stopped="x")
    retries = Retries(clock.monotonic, lambda _: False)
    retries.step([partition])[1][0]()
    assert partition.repairs == 1
    run(retries, clock, [partition], 600)
    assert 600 / LONGEST_REPAIR_PAUSE_S <= partition.repairs <= 600 / LONGEST_REPAIR_PAUSE_S + 8
    partition.broken = False
    run(retries, clock, [partition], LONGEST_REPAIR_PAUSE_S + 1)
    assert partition.condition.takes_appends
    assert "0 partitions" in repr(retries)


def test_one_repair_of_a_partition_at_a_time():
    clock = ManualClock()
    partition = Stand(stopped="x")
    retries = Retries(clock.monotonic, lambda _: False)
    _, (job,) = retries.step([partition])
    clock.advance(3_600_000)
    assert retries.step([partition]) == ([], [])
    job()
    assert len(retries.step([partition])[1]) == 1


def test_a_wall_clock_that_jumps_changes_nothing():
    clock = ManualClock()
    partition = Stand(stopped="x")
    retries = Retries(clock.monotonic, lambda _: False)
    run(retries, clock, [partition], 60)
    before = partition.repairs
    clock.set_wall_ms(0)
    run(retries, clock, [partition], 60)
    assert before + 60 / LONGEST_REPAIR_PAUSE_S - 1 <= partition.repairs <= before + 60 / LONGEST_REPAIR_PAUSE_S + 1


def test_an_offline_partition_is_opened_again_and_repaired():
    clock = ManualClock()
    partition = Stand(fault="unreadable")
    tried = []

    def open_again(one):
        tried.append(one)
        if partition.broken:
            return False
        one.condition.state = PartitionState(stopped="was offline")
        return True

    retries = Retries(clock.monotonic, open_again)
    reopened = []
    run(retries, clock, [partition], 3600, reopened=reopened)
    assert 3600 / LONGEST_REOPENING_PAUSE_S <= len(tried) <= 3600 / LONGEST_REOPENING_PAUSE_S + 12
    partition.broken = False
    run(retries, clock, [partition], LONGEST_REOPENING_PAUSE_S + 1, reopened=reopened)
    assert reopened == [partition]
    assert partition.condition.takes_appends


def test_one_offline_partition_is_opened_at_a_time():
    """It may take a while, and everything else waits for it."""
    clock = ManualClock()
    partitions = [Stand(fault="x") for _ in range(5)]

    def open_again(one):
        one.condition.state = SERVING
        return True

    retries = Retries(clock.monotonic, open_again)
    for count in range(5):
        assert sum(one.condition.takes_appends for one in partitions) == count
        assert len(retries.step(partitions)[0]) == 1


def test_deleted_partitions_are_left_alone():
    assert Retries(ManualClock().monotonic, lambda _: True).step([Stand(fault=DELETED)]) == ([], [])
