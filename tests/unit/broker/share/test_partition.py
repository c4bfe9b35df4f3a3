"""A share partition against a plain model with one entry for each offset: every history has to be one that the model allows."""

import random

import pytest

from horolog.broker.share.partition import SharePartition
from horolog.broker.share.state_batches import DeliveryState, StateBatch, combine, complete_count
from horolog.broker.share.terms import Acknowledgement, AcknowledgeType, Acquired, Fetched, Limits, Refused, Wish
from horolog.protocol.errors import ErrorCode

MEMBERS = ("ann", "bob", "cid")
LIMITS = Limits(lock_s=10.0, deliveries=3, locks=40)
SOME = Wish(max_records=10, batch_size=5)
AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = DeliveryState


class Model:
    """What became of each offset."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.batches = []
        self.aborted = set()
        self.limits = LIMITS._replace(
            deliveries=self.chance.choice((1, 2, 3, 5)), locks=self.chance.choice((5, 40, 400))
        )
        self.partition = SharePartition(0)
        self.now = 0.0
        self.counts = {}
        self.owners = {}
        self.done = set()
        self.open = []
        self.written = []
        self.log_start = 0
        for _ in range(4):
            self.append()

    def append(self):
        at = self.batches[-1][1] + 1 if self.batches else 0
        at += self.chance.choice((0, 0, 0, 3))
        self.batches.append((at, at + self.chance.choice((0, 0, 2, 6))))
        if self.chance.random() < 0.1:
            self.aborted.add(self.batches[-1])

    def compact(self):
        """A batch that is not the last leaves the log."""
        if len(self.batches) > 1:
            del self.batches[self.chance.randrange(len(self.batches) - 1)]

    def acquire(self):
        partition, offset = self.partition, self.partition.next_offset
        read = [one for one in self.batches if one[1] >= offset][: self.chance.randint(1, 4)]
        wish = Wish(self.chance.choice((1, 3, 10)), self.chance.choice((1, 5, 100)), self.chance.random() < 0.4)
        in_flight, member = partition.in_flight, self.chance.choice(MEMBERS)
        whole = max((run.batch.last - run.batch.first + 1 for run in partition.runs.all), default=0)
        is_possible = partition.may_acquire(self.limits)
        fetched = Fetched(offset, read, [one for one in read if one in self.aborted])
        found = partition.acquire(member, fetched, wish, self.limits, self.now)
        taken = [offset for one in found for offset in range(one.first, one.last + 1)]
        assert len(taken) == len(set(taken))
        for one in found:
            for each in range(one.first, one.last + 1):
                self.was_acquired(each, one.delivery_count, member)
        if wish.is_strict:
            assert len(taken) <= wish.max_records
        largest = max((last - first + 1 for first, last in self.batches), default=1)
        records = [offset for offset in taken if any(first <= offset <= last for first, last in self.batches)]
        assert len(records) < wish.max_records + max(whole, largest) + 1, "the last batch is whole"
        assert partition.in_flight <= max(self.limits.locks + 2 * largest + 30, in_flight)
        if read and is_possible and not fetched.aborted:
            assert taken or partition.next_offset > offset, "there was something to acquire"

    def was_acquired(self, offset, count, member):
        assert offset not in self.done, "its delivery was complete"
        assert self.owners.get(offset) is None, "it was acquired by another"
        assert offset >= self.log_start
        assert not any(first <= offset <= last for first, last in self.aborted.intersection(self.batches))
        assert count == self.counts.get(offset, 0) + 1 <= self.limits.deliveries
        self.counts[offset] = count
        self.owners[offset] = member, self.now + self.limits.lock_s

    def mine(self):
        held = [(offset, owner) for offset, owner in sorted(self.owners.items()) if owner and owner[0] != "in change"]
        if not held:
            return None, []
        first, (member, _) = self.chance.choice(held)
        offsets = [first]
        while self.owners.get(offsets[-1] + 1, (None,)) and self.owners.get(offsets[-1] + 1, (None,))[0] == member:
            offsets.append(offsets[-1] + 1)
            if self.chance.random() < 0.2:
                break
        return member, offsets

    def acknowledge(self):
        member, offsets = self.mine()
        if member is None:
            return
        types = [self.chance.choice(list(AcknowledgeType)) for _ in offsets]
        if self.chance.random() < 0.5:
            types = types[:1]
        change = self.partition.acknowledge(
            member, [Acknowledgement(offsets[0], offsets[-1], types)], self.limits, self.now
        )
        assert not isinstance(change, Refused), change
        becomes = dict(zip(offsets, types * (len(offsets) if len(types) == 1 else 1), strict=True))
        self.begin(change, becomes)

    def begin(self, change, becomes):
        before = {offset: self.owners[offset] for offset in becomes}
        for offset, kind in becomes.items():
            if kind == AcknowledgeType.RENEW:
                self.owners[offset] = before[offset][0], self.now + self.limits.lock_s
            else:
                self.owners[offset] = "in change", 0.0
        self.open.append((change, becomes, before))

    def refused(self):
        """A record that a member does not hold cannot be acknowledged by it."""
        offset = self.chance.randrange(self.partition.end + 3)
        member = self.chance.choice(MEMBERS)
        owner = self.owners.get(offset)
        if offset < self.partition.start or (owner and owner[0] == member):
            return
        code = self.partition.acknowledge(member, [Acknowledgement(offset, offset, [1])], self.limits, self.now)
        assert isinstance(code, Refused)

    def release(self):
        member = self.chance.choice(MEMBERS)
        held = [offset for offset, owner in self.owners.items() if owner and owner[0] == member]
        self.begin(self.partition.release(member, self.limits), dict.fromkeys(held, AcknowledgeType.RELEASE))

    def finish(self):
        if not self.open:
            return
        change, becomes, before = self.open.pop(self.chance.randrange(len(self.open)))
        if self.chance.random() < 0.2:
            self.partition.failed(change)
            for offset, kind in becomes.items():
                if kind != AcknowledgeType.RENEW and offset >= self.log_start:
                    self.owners[offset] = before[offset]
            return
        self.partition.written(change)
        self.written += change.batches
        for offset, kind in becomes.items():
            if kind != AcknowledgeType.RENEW:
                self.owners[offset] = None
                if kind != AcknowledgeType.RELEASE or self.counts[offset] >= self.limits.deliveries:
                    self.done.add(offset)

    def expire(self):
        self.now += self.chance.choice((1.0, 4.0, 11.0))
        freed = self.partition.expire(self.now, self.limits)
        self.written += freed
        offsets = {offset for first, last, _, _ in freed for offset in range(first, last + 1)}
        due = {
            offset
            for offset, owner in self.owners.items()
            if owner and owner[0] != "in change" and owner[1] <= self.now and offset >= self.log_start
        }
        assert offsets == due
        for offset in due:
            self.owners[offset] = None
            if self.counts[offset] >= self.limits.deliveries:
                self.done.add(offset)

    def expire_log(self):
        """Retention removes the first batch."""
        if len(self.batches) > 1:
            self.log_start = self.batches[1][0]
            del self.batches[0]
            self.partition.start_at(self.log_start)
            self.owners = {offset: owner for offset, owner in self.owners.items() if offset >= self.log_start}

    def restart(self):
        """Only what was written is known: the counts of records that were acquired are those of before."""
        kept = combine(self.written, self.partition.start)
        self.partition = SharePartition(self.partition.start, kept)
        self.open, self.owners = [], {}
        self.done = {o for one in kept if one.state >= 2 for o in range(one.first_offset, one.last_offset + 1)} | {
            offset for offset in self.done if offset < self.partition.start
        }
        self.counts = {o: one.delivery_count for one in kept for o in range(one.first_offset, one.last_offset + 1)}

    def check(self):
        partition = self.partition
        at = partition.start
        for run in partition.runs.all:
            assert run.first == at
            assert run.last >= run.first
            at = run.last + 1
        assert at == partition.end
        states = [StateBatch(run.first, run.last, run.state, run.count) for run in partition.runs.all]
        assert partition.complete_count == complete_count(states)
        available = [run.first for run in partition.runs.all if run.is_available]
        assert partition.next_offset == (available[0] if available else partition.end)
        for run in partition.runs.all:
            for offset in range(run.first, run.last + 1):
                owner = self.owners.get(offset)
                assert run.is_acquired == bool(owner and owner[0] != "in change")
                if run.is_acquired:
                    assert (run.member, run.deadline) == owner


STEPS = (
    [Model.acquire] * 6
    + [Model.acknowledge] * 5
    + [Model.finish] * 5
    + [Model.append] * 4
    + [Model.refused, Model.release, Model.expire, Model.compact, Model.expire_log, Model.restart]
)


@pytest.mark.parametrize("seed", range(150))
def test_every_history_is_one_that_the_model_allows(seed):
    model = Model(seed)
    for _ in range(80):
        model.chance.choice(STEPS)(model)
        model.check()


def acquired(*found, limits=LIMITS):
    """A partition of which `ann` has acquired these ranges of new records."""
    partition = SharePartition(0)
    for first, last in found:
        partition.acquire("ann", Fetched(first, [(first, last)]), Wish(1000, 1000), limits, 0.0)
    return partition


def test_a_record_that_is_accepted_is_behind_the_start_once_that_is_written():
    partition = acquired((0, 9))
    change = partition.acknowledge("ann", [Acknowledgement(0, 4, [1])], LIMITS, 1.0)
    assert change.batches == (StateBatch(0, 4, ACKNOWLEDGED, 1),)
    assert change.acknowledged == [(AcknowledgeType.ACCEPT, 5)]
    assert (partition.start, partition.complete_count) == (0, 5)
    partition.written(change)
    assert (partition.start, partition.complete_count) == (5, 0)


def test_a_change_that_is_not_written_is_taken_back_and_its_lock_counts_on():
    partition = acquired((0, 9))
    change = partition.acknowledge("ann", [Acknowledgement(0, 9, [1])], LIMITS, 1.0)
    assert partition.expire(20.0, LIMITS) == ()
    partition.failed(change)
    assert partition.next_deadline == 10.0
    assert partition.expire(20.0, LIMITS) == (StateBatch(0, 9, AVAILABLE, 1),)
    assert partition.next_deadline is None


def test_a_record_is_archived_after_its_last_delivery():
    partition = acquired((0, 0), limits=LIMITS._replace(deliveries=1))
    assert partition.expire(11.0, LIMITS._replace(deliveries=1)) == (StateBatch(0, 0, ARCHIVED, 1),)
    assert partition.start == partition.end == 1


def test_offsets_between_persisted_batches_are_delivered_again():
    partition = SharePartition(3, [StateBatch(5, 6, 2, 1), StateBatch(9, 9, 0, 2)])
    assert (partition.start, partition.end, partition.next_offset) == (3, 10, 3)
    found = partition.acquire("bob", Fetched(3, [(0, 9)]), Wish(100, 100), LIMITS._replace(deliveries=9), 0.0)
    assert found == [Acquired(3, 4, 1), Acquired(7, 8, 1), Acquired(9, 9, 3)]


def test_nothing_is_acquired_while_all_locks_are_in_use():
    limits = LIMITS._replace(locks=4)
    partition = acquired((0, 3), limits=limits)
    assert not partition.may_acquire(limits)
    assert partition.acquire("bob", Fetched(4, [(4, 9)]), SOME, limits, 0.0) == []


def test_what_the_log_has_lost_is_lost():
    partition = acquired((0, 9))
    partition.acknowledge("ann", [Acknowledgement(2, 3, [1])], LIMITS, 1.0)
    partition.start_at(5)
    assert (partition.start, partition.end, partition.complete_count) == (5, 10, 0)
    partition.start_at(4)
    assert partition.start == 5
    partition.start_at(20)
    assert (partition.start, partition.end) == (20, 20)


def test_a_member_acknowledges_only_its_own_records():
    partition = acquired((0, 9))
    for member, first, last, code in (
        ("bob", 0, 9, ErrorCode.INVALID_RECORD_STATE),
        ("ann", 10, 10, ErrorCode.INVALID_REQUEST),
        ("ann", 9, 10, ErrorCode.INVALID_REQUEST),
    ):
        refused = partition.acknowledge(member, [Acknowledgement(first, last, [1])], LIMITS, 1.0)
        assert isinstance(refused, Refused)
        assert refused.code == code


def test_records_in_flight_are_small():
    """20,000 records that every other time have another state: at most 300 bytes for each."""
    import tracemalloc

    limits = LIMITS._replace(locks=40_000)
    tracemalloc.start()
    try:
        partition = SharePartition(0)
        for base in range(0, 20_000, 500):
            partition.acquire("ann", Fetched(base, [(base, base + 499)]), Wish(500, 500), limits, 0.0)
            change = partition.acknowledge("ann", [Acknowledgement(base, base + 499, [2, 3] * 250)], limits, 1.0)
            partition.written(change)
        assert partition.in_flight == 20_000
        assert tracemalloc.get_traced_memory()[0] < 6 * 1024 * 1024
    finally:
        tracemalloc.stop()


def test_the_log_is_read_as_far_as_a_member_wants_records():
    partition = SharePartition(0)
    assert partition.reach(10) == 9
    fetched = Fetched(0, [(0, 9), (10, 19), (20, 29)])
    partition.acquire("ann", fetched, SOME._replace(max_records=30), LIMITS, 0.0)
    assert partition.reach(10) == 39
    change = partition.acknowledge("ann", [Acknowledgement(5, 14, (AcknowledgeType.RELEASE,))], LIMITS, 0.0)
    partition.written(change)
    assert partition.next_offset == 5
    assert partition.reach(8) == 12
    assert partition.reach(13) == 32
