"""Who acquires which records: batches, limits, portions, and records of aborted transactions."""

from horolog.broker.share.acquiring import Acquiring, portions_from
from horolog.broker.share.partition import SharePartition
from horolog.broker.share.state_batches import StateBatch
from horolog.broker.share.terms import Acquired, Fetched, Limits, Wish

LIMITS = Limits(lock_s=10.0, deliveries=5, locks=2000)
LOG = [(0, 4), (5, 9), (10, 19)]


def acquire(partition, batches=LOG, wish=None, limits=LIMITS, member="ann", aborted=(), now=0.0, offset=None):
    offset = partition.next_offset if offset is None else offset
    return partition.acquire(member, Fetched(offset, batches, aborted), wish or Wish(500, 500), limits, now)


def test_new_records_come_in_whole_batches_of_the_log():
    assert acquire(SharePartition(0), wish=Wish(3, 500)) == [Acquired(0, 4, 1)]
    assert acquire(SharePartition(0), wish=Wish(6, 500)) == [Acquired(0, 9, 1)]
    assert acquire(SharePartition(0), wish=Wish(6, 500, is_strict=True)) == [Acquired(0, 5, 1)]


def test_batches_of_acquired_records_have_about_the_size_that_was_asked_for():
    assert acquire(SharePartition(0), wish=Wish(500, 5)) == [Acquired(0, 4, 1), Acquired(5, 9, 1), Acquired(10, 19, 1)]
    assert acquire(SharePartition(0), wish=Wish(10, 5)) == [Acquired(0, 4, 1), Acquired(5, 9, 1)]
    assert acquire(SharePartition(0), wish=Wish(500, 8)) == [Acquired(0, 9, 1), Acquired(10, 19, 1)]


def test_what_was_released_comes_before_what_is_new():
    partition = SharePartition(0, [StateBatch(0, 4, 0, 1), StateBatch(5, 9, 2, 1)])
    assert acquire(partition) == [Acquired(0, 4, 2), Acquired(10, 19, 1)]
    partition = SharePartition(0, [StateBatch(0, 4, 0, 1), StateBatch(5, 9, 0, 1)])
    assert acquire(partition, wish=Wish(5, 500)) == [Acquired(0, 4, 2)]


def test_nothing_comes_of_nothing():
    partition = SharePartition(7)
    assert acquire(partition, []) == []
    assert acquire(partition, [(0, 4)]) == []
    assert acquire(partition, wish=Wish(0, 500)) == []
    assert "0 found" in repr(Acquiring(partition, "ann", Wish(1, 1), LIMITS, 0.0))


def test_a_start_inside_of_a_batch_leaves_its_earlier_records_out():
    assert acquire(SharePartition(7)) == [Acquired(7, 19, 1)]


def test_a_hole_that_compaction_has_left_is_no_record():
    partition = SharePartition(0, [StateBatch(0, 4, 0, 1), StateBatch(9, 9, 0, 1)])
    assert acquire(partition, [(9, 9), (12, 14)]) == [Acquired(9, 9, 2), Acquired(10, 14, 1)]
    assert partition.start == 9


def test_with_all_locks_in_use_only_what_is_in_flight_comes_again():
    limits = LIMITS._replace(locks=10)
    partition = SharePartition(0, [StateBatch(0, 4, 0, 1), StateBatch(5, 9, 0, 1)])
    assert acquire(partition, limits=limits) == [Acquired(0, 4, 2), Acquired(5, 9, 2)]
    assert acquire(partition, limits=limits, offset=10) == []


def test_records_that_were_delivered_often_come_in_portions():
    assert [portions_from(LIMITS._replace(deliveries=one)) for one in (1, 2, 5, 6)] == [2, 2, 3, 3]
    partition = SharePartition(0, [StateBatch(0, 7, 0, 3), StateBatch(8, 9, 0, 1)])
    assert acquire(partition) == [Acquired(0, 3, 4)], "half of the batch, and nothing else"
    partition = SharePartition(0, [StateBatch(0, 1, 0, 1), StateBatch(2, 9, 0, 3)])
    assert acquire(partition) == [Acquired(0, 1, 2)], "what comes in portions comes alone"


def test_a_record_comes_alone_for_the_last_time():
    partition = SharePartition(0, [StateBatch(0, 7, 0, 4)])
    assert acquire(partition) == [Acquired(0, 0, 5)]
    assert acquire(partition, wish=Wish(5, 5, is_strict=True)) == [Acquired(1, 1, 5)]


def test_a_portion_ends_before_a_record_that_comes_alone():
    limits = LIMITS._replace(deliveries=6)
    partition = SharePartition(0)
    acquire(partition, [(0, 7)], limits=limits)
    for run in partition.runs.isolate(0, 0):
        run.count = 3
    for run in partition.runs.isolate(1, 7):
        run.count = 5
    partition.expire(20.0, limits)
    assert acquire(partition, [(0, 7)], limits=limits, now=20.0) == [Acquired(0, 0, 4)]


def test_strict_limits_hold_for_what_was_in_flight_too():
    partition = SharePartition(0, [StateBatch(0, 4, 0, 1), StateBatch(5, 9, 0, 1)])
    wish = Wish(7, 500, is_strict=True)
    assert acquire(partition, wish=wish) == [Acquired(0, 4, 2), Acquired(5, 6, 2)]


def test_records_of_aborted_transactions_are_nobodys():
    partition = SharePartition(0)
    assert acquire(partition, aborted=[(5, 9)]) == [Acquired(0, 4, 1), Acquired(10, 19, 1)]
    assert partition.in_flight == 20
    partition = SharePartition(0)
    assert acquire(partition, aborted=[(0, 4), (10, 19)], wish=Wish(10, 500)) == [Acquired(5, 9, 1)]
    assert partition.start == 5


def test_what_was_acquired_before_a_restart_and_not_persisted_is_as_new():
    partition = SharePartition(0, [StateBatch(19, 19, 2, 1)])
    assert acquire(partition, wish=Wish(7, 5)) == [Acquired(0, 4, 1), Acquired(5, 9, 1)]
    assert acquire(partition, wish=Wish(2, 5, is_strict=True)) == [Acquired(10, 11, 1)]
    assert acquire(partition) == [Acquired(12, 18, 1)]
    assert partition.next_offset == partition.end == 20
