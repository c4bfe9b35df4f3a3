"""Records become safe when the store has them, in the order of numbers, and are refused when the WAL ends before."""

import pytest

from horolog.broker.bucket.fence import Fence
from horolog.broker.bucket.names import key
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.shipped_safety import PRODUCERS_WAIT_S, ShippedSafety, ShippingLimits
from horolog.broker.bucket.wal_object import decode
from horolog.broker.log.partition import Resources
from horolog.protocol.errors import ErrorCode
from tests.support.log_model import new_storage
from tests.support.shipping import TAKEN, UNKNOWN, WAL, HeldStore, StillLoop, append, new_partition, writer_over


class Cluster:
    """The other half, which notes each report."""

    def __init__(self):
        self.proofs, self.fences, self.at_fence = [], [], lambda: None

    def proof_of_life(self, sent_s):
        self.proofs.append(sent_s)

    def fenced(self, fence):
        self.fences.append(fence)
        self.at_fence()

    def lineages(self):
        return {}


class World:
    def __init__(self, flush_ms=100, flush_bytes=1 << 20, unsafe_bytes=1 << 20):
        self.loop, self.store, self.cluster, self.shown = StillLoop(), HeldStore(), Cluster(), []
        self.limits = ShippingLimits(flush_ms, flush_bytes, unsafe_bytes)
        resources = Resources(new_storage(), kind=ShippedPartition)
        self.a, self.b = new_partition(0, resources), new_partition(1, resources)
        self.safety = ShippedSafety(
            self.loop, lambda: self.limits, lambda moved: self.shown.append(list(moved)), lambda: self.loop.now
        )
        self.writer = self.safety.begin(writer_over(self.store), self.cluster)

    def make_safe(self, *partitions):
        failures = []
        self.safety.make_safe(partitions, failures.append)
        return failures

    def answer(self, number, *answers):
        self.store.answer(key(WAL.folder, number), *answers)

    @property
    def under_way(self):
        return sorted(self.store.waiting)

    def runs(self, number):
        data = decode(self.store.objects[key(WAL.folder, number)])
        return [(run.partition, run.base_offset, run.next_offset) for run in data.runs]


@pytest.fixture
def world():
    return World()


def codes(failures):
    (told,) = failures
    return {partition.index: fault.error for partition, fault in told.items()}


def test_the_batches_of_a_while_are_one_object(world):
    append(world.a, 1)
    first = world.make_safe(world.a)
    world.loop.advance(0.05)
    append(world.a, 2)
    append(world.b, 3)
    second = world.make_safe(world.a, world.b)
    assert not world.under_way
    world.loop.advance(0.05)
    assert world.under_way == [key(WAL.folder, 0)]
    assert (first, world.a.high_watermark) == ([], 0)
    world.answer(0)
    assert world.runs(0) == [(0, 0, 2), (1, 0, 1)]
    assert first == second == [{}]
    assert (world.a.high_watermark, world.b.high_watermark) == (2, 1)
    assert world.shown == [[world.a, world.b]]


def test_a_record_that_comes_alone_does_not_wait_and_the_next_ones_do(world):
    world.loop.advance(5)
    append(world.a, 1)
    world.make_safe(world.a)
    world.loop.advance()
    assert world.under_way == [key(WAL.folder, 0)]
    append(world.b, 2)
    world.make_safe(world.b)
    world.loop.advance(0.09)
    assert len(world.under_way) == 1
    world.loop.advance(0.02)
    assert len(world.under_way) == 2


def test_nothing_waits_for_records_that_are_safe(world):
    append(world.a, 1)
    world.make_safe(world.a)
    world.loop.advance(0.1)
    world.answer(0)
    told = world.make_safe(world.a, world.b)
    assert told == []
    world.loop.advance()
    assert told == [{}]
    world.loop.advance(1)
    assert not world.under_way, "an idle broker creates nothing"


def test_a_batch_that_is_under_way_is_not_shipped_again(world):
    append(world.a, 1)
    world.make_safe(world.a)
    world.loop.advance(0.1)
    again = world.make_safe(world.a)
    world.loop.advance(1)
    assert world.under_way == [key(WAL.folder, 0)]
    world.answer(0)
    assert again == [{}]


def test_numbers_count_in_order(world):
    told = []
    for number in range(3):
        append(world.a, number)
        told.append(world.make_safe(world.a))
        world.loop.advance(0.1)
    world.answer(2)
    world.answer(1)
    assert (told, world.a.high_watermark, world.shown) == ([[], [], []], 0, [])
    world.answer(0)
    assert (told, world.a.high_watermark) == ([[{}]] * 3, 3)


def test_so_many_bytes_do_not_wait(world):
    world.limits = ShippingLimits(60_000, 150, 1 << 20)
    append(world.a, 1)
    world.make_safe(world.a)
    world.loop.advance()
    assert not world.under_way
    append(world.a, 2)
    world.make_safe(world.a)
    world.loop.advance()
    assert world.under_way == [key(WAL.folder, 0)]


def test_what_finds_no_free_number_follows_when_there_is_one(world):
    for number in range(6):
        append(world.a, number)
        world.make_safe(world.a)
        world.loop.advance(0.1)
    assert len(world.under_way) == 4
    world.answer(0)
    assert world.under_way[-1] == key(WAL.folder, 4)
    for number in range(1, 5):
        world.answer(number)
    assert world.runs(4) == [(0, 4, 6)]
    assert world.a.high_watermark == 6


def test_a_large_partition_leaves_room_for_others(world):
    append(world.a, *range(8))
    append(world.b, 1)
    world.limits = ShippingLimits(100, world.a.size_bytes // 4, 1 << 20)
    world.make_safe(world.a, world.b)
    world.loop.advance(0.1)
    for number in range(4):
        world.answer(number)
    assert world.runs(0) == [(0, 0, 2)]
    assert (1, 0, 1) in world.runs(1)


def test_unsafe_bytes_keep_producers_waiting(world):
    append(world.a, 1)
    size = world.a.size_bytes
    world.limits = ShippingLimits(100, 1 << 20, size)
    assert world.safety.producers_wait_s() == 0
    world.make_safe(world.a)
    assert world.safety.unsafe_bytes == size
    assert world.safety.producers_wait_s() == PRODUCERS_WAIT_S
    world.loop.advance(0.1)
    assert world.safety.unsafe_bytes > size, "an object is a little larger than its batches"
    world.answer(0)
    assert (world.safety.unsafe_bytes, world.safety.producers_wait_s()) == (0, 0)


def test_a_number_that_is_made_proves_life_when_it_was_sent_first(world):
    append(world.a, 1)
    world.make_safe(world.a)
    world.loop.advance(0.1)
    world.loop.advance(3)
    world.answer(0, UNKNOWN)
    world.answer(0)
    assert world.cluster.proofs == [pytest.approx(0.1)]


def test_a_fence_refuses_what_waits_and_all_that_comes(world):
    append(world.a, 1)
    told = world.make_safe(world.a)
    world.loop.advance(0.1)
    append(world.b, 1)
    not_shipped = world.make_safe(world.b)
    world.cluster.at_fence = lambda: told.append("the cluster was told first")
    fence = Fence(WAL, 0, 3, b"f" * 16)
    world.store.objects[key(WAL.folder, 0)] = fence.encode()
    world.answer(0, TAKEN)
    assert world.cluster.fences == [fence]
    assert told.pop(0) == "the cluster was told first"
    assert codes(told) == {0: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert codes(not_shipped) == {1: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert (world.a.high_watermark, world.shown) == (0, [])
    later = world.make_safe(world.b)
    world.loop.advance(1)
    assert codes(later) == {1: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert not world.under_way


def test_after_a_stop_late_answers_count_for_nothing(world):
    append(world.a, 1)
    told = world.make_safe(world.a)
    world.loop.advance(0.1)
    append(world.b, 1)
    not_shipped = world.make_safe(world.b)
    world.safety.stop()
    assert codes(told) == {0: ErrorCode.REQUEST_TIMED_OUT}, "the store may have its records, or get them"
    assert codes(not_shipped) == {1: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    world.answer(0)
    world.loop.advance(1)
    assert (world.a.high_watermark, world.shown, world.under_way) == (0, [], [])


def test_a_wal_that_ends_without_a_fence_says_nothing_of_what_is_under_way(world):
    append(world.a, 1)
    told = world.make_safe(world.a)
    world.loop.advance(0.1)
    world.store.objects[key(WAL.folder, 0)] = b"of another process"
    world.answer(0, TAKEN)
    assert world.cluster.fences == [None]
    assert codes(told) == {0: ErrorCode.REQUEST_TIMED_OUT}


def test_what_lies_below_a_fence_is_safe_although_it_was_not_answered(world, caplog):
    calls = []
    for time in (1, 2):
        append(world.a, time)
        calls.append(world.make_safe(world.a))
        world.loop.advance(0.1)
    append(world.a, 3)
    calls.append(world.make_safe(world.a))
    below, behind, waiting = calls
    fence = Fence(WAL, 1, 3, b"f" * 16)
    world.store.objects[key(WAL.folder, 1)] = fence.encode()
    world.cluster.at_fence = lambda: calls.append(list(below))
    world.answer(1, TAKEN)
    assert (below, calls[-1], world.a.high_watermark) == ([{}], [{}], 1)
    assert codes(behind) == codes(waiting) == {0: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert world.under_way == [key(WAL.folder, 0)], "nothing more is shipped"
    assert f"broker 3 has fenced this broker: its WAL {WAL} ends at number 1" in caplog.text


def test_a_fence_of_a_wal_that_is_not_written_any_more_is_no_news(world):
    append(world.a, 1)
    world.make_safe(world.a)
    world.loop.advance(0.1)
    world.safety.stop()
    world.store.objects[key(WAL.folder, 0)] = Fence(WAL, 0, 3, b"f" * 16).encode()
    world.answer(0, TAKEN)
    assert world.cluster.fences == []


def test_a_partition_that_is_dropped_is_shipped_no_more(world):
    append(world.a, 1)
    told = world.make_safe(world.a)
    world.loop.advance(0.1)
    append(world.a, 2)
    append(world.b, 2)
    of_both = world.make_safe(world.a, world.b)
    world.safety.drop(world.a)
    assert codes(told) == {0: ErrorCode.REQUEST_TIMED_OUT}
    world.loop.advance(0.1)
    world.answer(0)
    world.answer(1)
    assert world.runs(1) == [(1, 0, 1)]
    assert codes(of_both) == {0: ErrorCode.REQUEST_TIMED_OUT}
    assert world.a.high_watermark == 0


def test_all_of_a_partition_is_shipped_without_waiting(world):
    append(world.a, 1, is_written=False)
    ends = []
    world.safety.ship_all([world.a], ends.append)
    world.answer(0)
    assert (ends, world.a.high_watermark) == ([1], 1)
    world.safety.ship_all([world.a], ends.append)
    world.loop.advance()
    assert ends == [1, 1]


def test_what_cannot_be_written_is_not_shipped(world):
    append(world.a, 1)
    append(world.a, 2, is_written=False)
    world.a.resources.storage.fail("write")
    ends = []
    world.safety.ship_all([world.a], ends.append)
    world.answer(0)
    assert (ends, world.a.high_watermark, world.a.log_end_offset) == ([1], 1, 1)


def test_a_fence_ends_the_wait_for_all_of_a_partition(world):
    append(world.a, 1)
    ends = []
    world.safety.ship_all([world.a], ends.append)
    world.store.objects[key(WAL.folder, 0)] = Fence(WAL, 0, 3, b"f" * 16).encode()
    world.answer(0, TAKEN)
    world.safety.ship_all([world.a], ends.append)
    world.loop.advance()
    assert ends == [None, None]


def test_a_local_log_that_lost_what_it_has_to_ship_goes_offline(world):
    append(world.a, 1)
    append(world.b, 1)
    told = world.make_safe(world.a, world.b)
    world.a.written_end = 2
    world.a.shipping_end = 1
    world.loop.advance(0.1)
    assert "no longer there" in world.a.condition.fault
    world.answer(0)
    (failures,) = told
    assert list(failures) == [world.a]
    assert world.b.high_watermark == 1


def test_a_new_wal_begins_with_nothing_of_the_one_before(world):
    append(world.a, 1)
    told = world.make_safe(world.a)
    world.loop.advance(0.1)
    writer = world.safety.begin(writer_over(HeldStore()), world.cluster)
    assert codes(told) == {0: ErrorCode.REQUEST_TIMED_OUT}
    assert (writer.next_number, world.safety.unsafe_bytes) == (0, 0)


def test_a_reader_that_fails_does_not_hold_up_the_wal(world):
    for number in range(6):
        append(world.a, number)
        world.make_safe(world.a)
        world.loop.advance(0.1)

    def fail(_):
        raise RuntimeError("a reader's request failed")

    world.safety._shown = fail
    with pytest.raises(RuntimeError):
        world.answer(0)
    assert world.under_way[-1] == key(WAL.folder, 4)
