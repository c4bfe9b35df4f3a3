"""`__transaction_state` at a start: what was read is on the disk before anything is done because of it."""

from __future__ import annotations

from typing import Any

import pytest

from horolog.broker.log.storage.memory_disk import ALL
from horolog.broker.log.validation.own_batch import NEWEST_PRODUCE_VERSION
from horolog.broker.transactions import records
from horolog.broker.transactions.journal import NotWritten, TransactionJournal
from horolog.broker.transactions.states import VERSION_2, Transaction, TransactionState
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record
from tests.support.at_once import at_once
from tests.support.group_world import GroupWorld
from tests.support.transaction_world import TransactionWorld

STATE = "__transaction_state"


def never(*_: object) -> None:
    raise AssertionError("this is not answered")


@pytest.fixture
def world() -> TransactionWorld:
    """One whose broker was killed after it had written the record of a transactional id, and before it had synced it."""
    world = TransactionWorld(0)
    world.coordinator.initialize("x", 60_000, None, never)
    write_without_sync(world)
    return world


def write_without_sync(world: TransactionWorld) -> None:
    while world.loop.callbacks:
        callback, arguments = world.loop.callbacks.pop(0)
        callback(*arguments)
    assert world.loop.tasks


def state_files(world: TransactionWorld) -> dict[str, bytes]:
    return {
        path: world.storage.read_all(path) for path in world.storage.files() if STATE in path and path.endswith(".log")
    }


def test_what_a_killed_broker_had_not_synced_is_synced(world: TransactionWorld) -> None:
    world.kill()
    assert world.coordinator.get("x").state == TransactionState.EMPTY
    written = state_files(world)
    assert any(written.values())
    world.logs.abandon()
    world.storage.crash()
    assert state_files(world) == written


def test_nothing_is_done_because_of_a_record_that_cannot_be_synced(world: TransactionWorld) -> None:
    world.storage.fail("sync", STATE, times=ALL)
    world.kill()
    producer = world.coordinator.get("x").producer
    answers = []
    world.coordinator.initialize("x", 60_000, None, lambda code, _: answers.append(code))
    world.settle()
    assert answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert at_once(world.coordinator.add, "x", producer, [("t", 0)], VERSION_2) == ErrorCode.COORDINATOR_NOT_AVAILABLE


class TestOneTransaction:
    """One transaction, over a log in memory."""

    @pytest.fixture
    def group_world(self):
        return GroupWorld({"transaction.state.log.num.partitions": "2", "message.max.bytes": "5000"})

    @pytest.fixture
    def journal(self, group_world):
        return TransactionJournal(group_world.cluster, group_world.committer, group_world.clock)

    def transaction(self, state=TransactionState.ONGOING, name="x", places=1):
        partitions = frozenset(("a-topic-with-a-name", index) for index in range(places))
        return Transaction(name, 7, 0, 60_000, state, partitions, 5, 5)

    def kept(self, journal, name="x"):
        return [found for one, found in journal.read(journal.partition_of(name)) if one == name]

    def test_a_record_is_written_when_the_call_returns(self, journal):
        journal.write(self.transaction())
        assert self.kept(journal) == [self.transaction()]

    def test_a_decision_is_told_once_it_is_on_the_disk(self, group_world, journal):
        told = []
        journal.commit(self.transaction(TransactionState.PREPARE_COMMIT), told.append)
        assert told == []
        group_world.tick()
        assert told == [True]
        assert [one.state for one in self.kept(journal)] == [TransactionState.PREPARE_COMMIT]

    def test_a_decision_that_is_not_written_is_told(self, group_world, journal):
        told = []
        journal.commit(self.transaction(TransactionState.PREPARE_COMMIT), told.append)
        group_world.storage.fail("write", STATE)
        group_world.tick()
        assert told == [False]

    def test_what_is_written_is_safe_when_that_is_told(self, group_world, journal):
        told = []
        journal.write(self.transaction())
        journal.when_safe("x", told.append)
        assert told == []
        group_world.tick()
        assert told == [ErrorCode.NONE]

    def test_without_room_no_client_waits_for_safety(self, group_world, journal):
        journal.write(self.transaction())
        group_world.committer.has_room = False
        with pytest.raises(NotWritten) as raised:
            journal.when_safe("x", print)
        assert raised.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    def test_what_could_not_be_made_safe_is_told(self, group_world, journal):
        told = []
        journal.commit(self.transaction(), lambda _: None)
        journal.when_safe("x", told.append)
        group_world.storage.fail("write", STATE)
        group_world.tick()
        assert told == [ErrorCode.COORDINATOR_NOT_AVAILABLE]

    def test_a_forgotten_id_leaves_a_tombstone(self, journal):
        journal.write(self.transaction())
        journal.forget("x")
        assert self.kept(journal) == [self.transaction(), None]

    def test_a_transaction_leaves_room_for_its_end(self, journal):
        journal.write(self.transaction(places=300))
        with pytest.raises(NotWritten, match="too large") as caught:
            journal.write(self.transaction(places=5000))
        assert caught.value.code == ErrorCode.POLICY_VIOLATION

    def test_what_is_too_large_for_the_log_is_refused(self, journal):
        with pytest.raises(NotWritten) as caught:
            journal.commit(self.transaction(TransactionState.PREPARE_COMMIT, places=5000), never)
        assert caught.value.code == ErrorCode.POLICY_VIOLATION

    def test_a_failed_write_is_told_and_the_next_one_goes_on(self, group_world, journal):
        journal.open()
        group_world.storage.fail("write", STATE)
        with pytest.raises(NotWritten):
            journal.write(self.transaction())
        group_world.tick()
        journal.write(self.transaction())
        assert self.kept(journal) == [self.transaction()]

    @pytest.mark.parametrize(
        ("stop", "code"),
        [
            (lambda topic, one: one.condition.go_offline("no disk"), ErrorCode.COORDINATOR_NOT_AVAILABLE),
            (lambda topic, one: one.condition.stop("a failed sync"), ErrorCode.COORDINATOR_NOT_AVAILABLE),
            (lambda topic, one: topic.put(one.index, None), ErrorCode.NOT_COORDINATOR),
        ],
    )
    def test_without_a_partition_that_takes_it_nothing_is_written(self, group_world, journal, stop, code):
        partition = journal.partition_of("x")
        stop(group_world.cluster.topics[STATE], partition)
        for use in (lambda: journal.write(self.transaction()), lambda: journal.forget("x")):
            with pytest.raises(NotWritten) as caught:
                use()
            assert caught.value.code == code

    def test_a_topic_that_cannot_be_made_is_told(self, group_world, journal):
        group_world.storage.fail("sync", "horolog-journal")
        with pytest.raises(NotWritten) as caught:
            journal.open()
        assert caught.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    def test_a_partition_that_is_offline_or_fails_has_nothing_to_tell(self, group_world, journal):
        journal.write(self.transaction())
        partition = journal.partition_of("x")
        assert journal.is_readable
        group_world.storage.fail("read", STATE, times=ALL)
        assert list(journal.read(partition)) == []
        assert "cannot be read" in partition.condition.fault
        assert not journal.is_readable
        assert list(journal.read(partition)) == []

    def test_a_partition_that_takes_no_appends_is_read_all_the_same(self, journal):
        journal.write(self.transaction())
        partition = journal.partition_of("x")
        partition.condition.stop("a failed sync")
        assert list(journal.read(partition)) == [("x", self.transaction())]

    def test_records_of_another_kind_and_values_that_nobody_knows_are_left_out(self, group_world, journal, caplog):
        journal.write(self.transaction())
        partition = journal.partition_of("x")
        good = records.key_bytes("x")
        for key, value in ((b"\0\x63other kind", b"?"), (good, b"\0\x63newer version")):
            data = encode_batch([Record(0, 5, 0, key, value)])
            partition.append(data, 5, produce_version=NEWEST_PRODUCE_VERSION)
            partition.flush()
        journal.write(self.transaction(TransactionState.COMPLETE_COMMIT, places=0))
        assert [one.state for one in self.kept(journal)] == [TransactionState.ONGOING, TransactionState.COMPLETE_COMMIT]
        assert "cannot be read" in caplog.text


class SharedCluster:
    """A cluster of two brokers; this one, with number 1, leads every second partition."""

    is_shared = True

    def __init__(self, open_here: set[int]) -> None:
        self.settings = self.state = self
        self.node_id = 1
        self.partition_count, self.id = 4, bytes(16)
        self.topics = {STATE: self}
        self.open_here = open_here

    def leader(self, topic_id: bytes, index: int) -> int:
        return 1 + index % 2

    def find(self, index: int) -> Served | ErrorCode:
        return Served() if index in self.open_here else ErrorCode.NOT_LEADER_OR_FOLLOWER

    @property
    def led_here(self) -> list[Served]:
        return [Served() for _ in self.open_here]


class Served:
    """A partition without a fault."""

    fault = None

    @property
    def condition(self) -> Served:
        return self


@pytest.mark.parametrize(("open_here", "is_readable"), [({0, 2}, True), ({0}, False), (set(), False)])
def test_a_partition_that_is_led_here_and_not_open_yet_keeps_all_from_being_known(
    open_here: set[int], is_readable: bool
) -> None:
    """Else a transaction would count as unknown, and be aborted, while its coordinator reads what its predecessor has left."""
    cluster: Any = SharedCluster(open_here)
    none: Any = None
    journal = TransactionJournal(cluster, none, none)
    assert (journal.is_readable, journal.is_opening) == (is_readable, not is_readable)
    cluster.is_shared = False
    assert TransactionJournal(cluster, none, none).is_readable
    cluster.is_shared, cluster.topics = True, {}
    assert TransactionJournal(cluster, none, none).is_readable
