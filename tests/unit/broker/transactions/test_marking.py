"""The markers of a decided transaction: written where they are needed, left where the disk or another broker keeps them."""

from types import SimpleNamespace

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.base.topic_names import GROUP_OFFSETS
from horolog.broker.cluster.membership import Members
from horolog.broker.cluster.peers import NO_PEERS
from horolog.broker.cluster.placement import NOBODY
from horolog.broker.cluster.topic import Topic
from horolog.broker.log.partition import Resources
from horolog.broker.log.recovery import PartitionFolder, create_partition
from horolog.broker.log.storage.memory_disk import ALL
from horolog.broker.transactions.marking import Marking
from horolog.broker.transactions.other_brokers import OtherBrokers
from horolog.broker.transactions.states import Producer, Transaction, TransactionState
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.control import Marker
from tests.support.group_world import TickCommitter
from tests.support.log_model import NEW, NOW_MS, new_storage, small_config
from tests.support.transactional import batch

T0, T1, OFFSETS = ("t", 0), ("t", 1), (GROUP_OFFSETS, 0)
PRODUCER = Producer(7, 3)


class Others:
    """They answer when the test says so."""

    def __init__(self, *nodes):
        self.nodes = nodes
        self.asked = []

    def write_markers(self, transaction, places, coordinator_epoch, done):
        self.asked.append((transaction.id, places, coordinator_epoch))
        self.done = done


class World:
    """Three partitions on a disk in memory; appends are written by `tick`."""

    def __init__(self):
        self.storage = new_storage()
        self.partitions = {place: self._made(*place) for place in (T0, T1, OFFSETS)}
        topics = {
            "t": Topic("t", bytes(16), [self.partitions[T0], self.partitions[T1]], {}, small_config()),
            GROUP_OFFSETS: Topic(GROUP_OFFSETS, bytes(16), [self.partitions[OFFSETS]], {}, small_config()),
        }
        self.cluster = SimpleNamespace(
            topics=topics, settings=SimpleNamespace(horolog_acks_all_sync=True), is_shared=False
        )
        self.committer = TickCommitter()
        self.offsets_ended = []
        self.marking = Marking(
            self.cluster,
            self.committer,
            ManualClock(NOW_MS),
            lambda *outcome: self.offsets_ended.append(outcome),
            OtherBrokers(
                self.cluster, SimpleNamespace(me=1, members=Members.of_one(1), lead=lambda *_: NOBODY), NO_PEERS
            ),
        )

    def _made(self, topic, index):
        place = PartitionFolder(topic, index, f"/data/{topic}-{index}")
        return create_partition(place, None, small_config(), Resources(self.storage), NOW_MS)

    def begin(self, *places, producer=PRODUCER):
        for place in places:
            partition = self.partitions[place]
            data = batch([b"v"], producer.id, producer.epoch, 0)
            partition.append(data, NOW_MS, produce_version=NEW)
            partition.flush()

    def with_others(self):
        """Brokers that lead what this one does not."""
        others = Others(2)
        self.cluster.is_shared = True
        self.marking = Marking(
            self.cluster,
            self.committer,
            ManualClock(NOW_MS),
            lambda *outcome: self.offsets_ended.append(outcome),
            others,
        )
        return others

    def begin_to_mark(self, *places, state=TransactionState.PREPARE_COMMIT, producer=PRODUCER, epoch=5):
        """Whatever is told once the partitions here are written."""
        told = []
        transaction = Transaction("x", *producer, 60_000, state, frozenset(places), NOW_MS, NOW_MS)
        self.marking.mark(transaction, transaction.partitions, epoch, told.append)
        self.committer.tick()
        return told

    def mark(self, *places, **chosen):
        """The places that are left, once they are told."""
        (left,) = self.begin_to_mark(*places, **chosen)
        return left

    def is_open(self, place):
        return self.partitions[place].last_stable_offset < self.partitions[place].high_watermark


@pytest.fixture
def world():
    return World()


class TestDecidedTransactions:
    @pytest.mark.parametrize(
        ("state", "aborted"), [(TransactionState.PREPARE_COMMIT, 0), (TransactionState.PREPARE_ABORT, 1)]
    )
    def test_end_in_every_partition(self, world, state, aborted):
        world.begin(T0, T1)
        assert world.mark(T0, T1, state=state) == frozenset()
        for place in (T0, T1):
            assert not world.is_open(place)
            assert len(list(world.partitions[place].aborted.overlapping(0, 10))) == aborted

    def test_are_told_at_once_where_nothing_is_to_be_marked(self, world):
        assert world.mark() == frozenset()

    def test_need_no_marker_where_the_partition_is_gone(self, world):
        world.begin(T0)
        assert world.mark(T0, ("gone", 0), ("t", 9)) == frozenset()
        assert not world.is_open(T0)

    def test_need_no_marker_where_a_newer_producer_has_written(self, world):
        world.begin(T0, producer=Producer(7, 9))
        assert world.mark(T0) == frozenset()
        assert world.is_open(T0)

    def test_are_left_to_the_broker_that_leads_the_partition(self, world):
        world.cluster.topics["t"].put(1, None)
        world.begin(T0)
        assert world.mark(T0, T1) == {T1}

    def test_are_ended_by_the_broker_that_leads_the_partition(self, world):
        others = world.with_others()
        world.cluster.topics["t"].put(1, None)
        world.begin(T0)
        told = world.begin_to_mark(T0, T1)
        assert told == []
        assert others.asked == [("x", [T1], 5)]
        others.done(frozenset())
        assert told == [frozenset()]
        told = world.begin_to_mark(T0, T1)
        others.done(frozenset({T1}))
        assert told == [{T1}]

    def test_are_left_where_a_newer_coordinator_has_written(self, world, caplog):
        world.with_others()
        world.begin(T0)
        world.mark(T0, epoch=9)
        data = batch([b"v"], PRODUCER.id, PRODUCER.epoch, 1)
        world.partitions[T0].append(data, NOW_MS, produce_version=NEW)
        world.partitions[T0].flush()
        assert world.mark(T0, epoch=8) == {T0}
        assert world.is_open(T0)
        assert "accepts no marker" in caplog.text
        assert world.mark(T0, epoch=9) == frozenset()

    def test_are_left_where_the_disk_takes_no_marker(self, world):
        world.begin(T0, T1)
        world.partitions[T1].condition.go_offline("no disk")
        assert world.mark(T0, T1) == {T1}

    def test_are_left_where_the_write_fails(self, world):
        world.begin(T0, T1)
        world.storage.fail("write", "t-1/", times=ALL)
        assert world.mark(T0, T1) == {T1}

    def test_are_not_fenced_by_the_marker_of_an_older_coordinator(self, world):
        world.begin(T0)
        world.mark(T0, epoch=90)
        data = batch([b"v"], PRODUCER.id, PRODUCER.epoch, 1)
        world.partitions[T0].append(data, NOW_MS, produce_version=NEW)
        world.partitions[T0].flush()
        assert world.mark(T0, epoch=5) == frozenset()
        assert not world.is_open(T0)


class TestOffsets:
    @pytest.mark.parametrize(
        ("state", "committed"), [(TransactionState.PREPARE_COMMIT, True), (TransactionState.PREPARE_ABORT, False)]
    )
    def test_whoever_keeps_them_is_told_how_it_ended(self, world, state, committed):
        world.begin(T0, OFFSETS)
        world.mark(T0, OFFSETS, state=state)
        assert world.offsets_ended == [(7, committed)]

    def test_nobody_is_told_of_a_transaction_without_them_or_before_its_marker_is_there(self, world):
        world.begin(T0, OFFSETS)
        world.mark(T0)
        world.storage.fail("write", GROUP_OFFSETS, times=ALL)
        assert world.mark(OFFSETS) == {OFFSETS}
        assert world.offsets_ended == []


class TestMarkersOfAnAdminTool:
    def write(self, world, *places, producer=PRODUCER):
        told = []
        partitions = [world.partitions[place] for place in places]
        world.marking.write_foreign(partitions, producer, Marker(False, 0), told.append)
        world.committer.tick()
        ((errors),) = told
        return {(one.topic, one.index): code for one, code in errors.items()}

    def test_abort_what_is_open(self, world):
        world.begin(T0, OFFSETS)
        assert self.write(world, T0, OFFSETS) == {}
        assert not world.is_open(T0)
        assert world.offsets_ended == [(7, False)]

    def test_are_refused_each_by_itself(self, world):
        world.begin(T0)
        world.begin(T1, producer=Producer(7, 9))
        world.partitions[OFFSETS].condition.go_offline("no disk")
        assert self.write(world, T0, T1, OFFSETS) == {
            T1: ErrorCode.INVALID_PRODUCER_EPOCH,
            OFFSETS: ErrorCode.KAFKA_STORAGE_ERROR,
        }

    def test_are_refused_at_once_where_none_could_be_written(self, world):
        world.partitions[T0].condition.go_offline("no disk")
        assert self.write(world, T0) == {T0: ErrorCode.KAFKA_STORAGE_ERROR}

    def test_that_could_not_be_written_are_told(self, world):
        world.begin(T0)
        world.storage.fail("write", "t-0/", times=ALL)
        assert self.write(world, T0) == {T0: ErrorCode.KAFKA_STORAGE_ERROR}


class TestStrays:
    def test_they_are_aborted_by_the_newest_coordinator_that_the_partition_knows(self, world):
        world.with_others()
        world.begin(T0)
        world.mark(T0, epoch=9)
        world.partitions[T0].append(batch([b"v"], *PRODUCER, 1), NOW_MS, produce_version=NEW)
        world.partitions[T0].flush()
        assert self.abort(world) == 0
        assert not world.is_open(T0)

    def abort(self, world):
        failed = []
        world.marking.abort_stray(PRODUCER, world.partitions[T0], lambda: failed.append(True))
        world.committer.tick()
        return len(failed)

    def test_open_transactions_are_found_where_they_are(self, world):
        assert list(world.marking.open_places()) == []
        world.begin(T0)
        world.begin(T1, producer=Producer(8, 0))
        found = [(producer, (one.topic, one.index)) for producer, one in world.marking.open_places()]
        assert found == [(PRODUCER, T0), (Producer(8, 0), T1)]
        world.partitions[T1].condition.go_offline("no disk")
        assert len(list(world.marking.open_places())) == 1

    def test_they_are_aborted(self, world):
        world.begin(T0)
        assert self.abort(world) == 0
        assert not world.is_open(T0)

    def test_they_are_tried_again_where_the_disk_fails_before_or_after(self, world):
        world.begin(T0)
        world.storage.fail("write", "t-0/", times=ALL)
        assert self.abort(world) == 1
        world.partitions[T0].condition.go_offline("no disk")
        assert self.abort(world) == 1

    def test_they_are_left_where_a_newer_producer_has_written(self, world, caplog):
        world.begin(T0, producer=Producer(7, 9))
        assert self.abort(world) == 0
        assert world.is_open(T0)
        assert "could not be aborted" in caplog.text
