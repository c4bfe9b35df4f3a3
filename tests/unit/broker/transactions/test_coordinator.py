"""The coordinator while the disk fails, step by step: what clients are told, and that everything ends well once the disk is back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from horolog.broker.base.java_hash import partition_for
from horolog.broker.cluster.cluster_state import Lead, LeadsChanged
from horolog.broker.log.integrity import BeingRescanned
from horolog.broker.log.partition import Partition, rewrite
from horolog.broker.log.storage.memory_disk import ALL
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.transactions.coordinator import TransactionCoordinator
from horolog.broker.transactions.states import LARGEST_EPOCH, VERSION_0, VERSION_2, Producer, TransactionState
from horolog.broker.transactions.strays import Suspect
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.control import Marker
from tests.support.at_once import at_once, delete_topic
from tests.support.members import among
from tests.support.transaction_world import TransactionWorld
from tests.support.transactional import batch

STATE = "__transaction_state"
PLACES = [("t", 0), ("t", 1)]
NOT_NOW = ErrorCode.COORDINATOR_NOT_AVAILABLE


class Told:
    """What one `done` was told."""

    def __init__(self) -> None:
        self.answers: list[tuple[ErrorCode, Producer | None]] = []

    def __call__(self, code: ErrorCode, producer: Producer | None) -> None:
        self.answers.append((code, producer))

    @property
    def code(self) -> ErrorCode:
        ((code, _),) = self.answers
        return code


def initialize(world: TransactionWorld) -> Told:
    told = Told()
    world.coordinator.initialize("x", 60_000, None, told)
    world.settle()
    return told


def end(world: TransactionWorld, producer: Producer, *, commit: bool = True, version: int = VERSION_2) -> Told:
    told = Told()
    world.coordinator.end("x", producer, version, told, commit=commit)
    world.settle()
    return told


@pytest.fixture
def world() -> TransactionWorld:
    return TransactionWorld(0)


@pytest.fixture
def producer(world: TransactionWorld) -> Producer:
    """One with an open transaction in two partitions."""
    ((code, producer),) = initialize(world).answers
    assert code == ErrorCode.NONE
    for place in PLACES:
        records = batch([b"v"], *producer, 0, timestamp=world.clock.wall_ms())
        assert world.produce("x", place, records, 12, lambda _: None) == 0
    world.settle()
    return producer


def ends(world: TransactionWorld) -> list[int]:
    return [world.partition(place).last_stable_offset for place in PLACES]


def state(world: TransactionWorld) -> TransactionState:
    found = world.coordinator.get("x")
    assert found is not None
    return found.state


def test_an_id_whose_record_could_not_be_written_is_not_kept(world: TransactionWorld) -> None:
    assert at_once(world.coordinator.ensure_topic) == ErrorCode.NONE
    world.storage.fail("write", STATE)
    assert initialize(world).code == NOT_NOW
    assert world.coordinator.get("x") is None
    assert initialize(world).answers == [(ErrorCode.NONE, Producer(1, 0))]


def test_a_producer_whose_next_epoch_could_not_be_written_keeps_the_one_it_has(world: TransactionWorld) -> None:
    initialize(world)
    world.storage.fail("write", STATE)
    assert initialize(world).code == NOT_NOW
    assert world.coordinator.get("x").producer_epoch == 0


def test_a_partition_that_could_not_be_written_down_is_not_part_of_it(
    world: TransactionWorld, producer: Producer
) -> None:
    world.storage.fail("write", STATE)
    assert at_once(world.coordinator.add, "x", producer, [("t", 2)], VERSION_2) == NOT_NOW
    assert at_once(world.coordinator.verify, "x", producer, ("t", 2)) == ErrorCode.TRANSACTION_ABORTABLE
    world.settle()
    assert at_once(world.coordinator.add, "x", producer, [("t", 2)], VERSION_2) == ErrorCode.NONE


def test_nothing_is_decided_by_a_decision_that_could_not_be_written(
    world: TransactionWorld, producer: Producer
) -> None:
    world.storage.fail("write", STATE)
    assert end(world, producer).code == NOT_NOW
    assert state(world) == TransactionState.ONGOING
    assert ends(world) == [0, 0]
    assert end(world, producer).answers == [(ErrorCode.NONE, Producer(producer.id, 1))]
    assert ends(world) == [2, 2]


def test_a_decision_that_may_be_on_the_disk_is_found_out_by_a_restart(
    world: TransactionWorld, producer: Producer
) -> None:
    world.storage.fail("sync", STATE)
    assert end(world, producer).code == NOT_NOW
    assert end(world, producer, commit=False).code == NOT_NOW
    world.kill()
    world.settle()
    assert state(world) == TransactionState.COMPLETE_COMMIT
    assert ends(world) == [2, 2]


def test_a_decided_transaction_is_finished_when_the_disk_takes_its_markers(
    world: TransactionWorld, producer: Producer
) -> None:
    world.storage.fail("write", "/t-1/")
    told = end(world, producer)
    assert told.answers == [(ErrorCode.NONE, Producer(producer.id, 1))]
    assert state(world) == TransactionState.PREPARE_COMMIT
    assert ends(world) == [2, 0]
    assert end(world, Producer(producer.id, 1)).code == ErrorCode.CONCURRENT_TRANSACTIONS
    world.coordinator.finish_prepared()
    world.settle()
    assert state(world) == TransactionState.COMPLETE_COMMIT
    assert ends(world) == [2, 2]
    assert told.code == ErrorCode.NONE


def test_a_partition_whose_topic_is_gone_needs_no_marker(world: TransactionWorld, producer: Producer) -> None:
    delete_topic(world.cluster, "t")
    assert end(world, producer).code == ErrorCode.NONE
    assert state(world) == TransactionState.COMPLETE_COMMIT


def test_while_a_decision_is_on_its_way_nothing_else_is_done(world: TransactionWorld, producer: Producer) -> None:
    told, other = Told(), Told()
    world.coordinator.end("x", producer, VERSION_0, told, commit=True)
    world.coordinator.end("x", producer, VERSION_0, other, commit=False)
    assert other.code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert at_once(world.coordinator.add, "x", producer, [("t", 2)], VERSION_0) == ErrorCode.CONCURRENT_TRANSACTIONS
    assert at_once(world.coordinator.verify, "x", producer, PLACES[0]) == ErrorCode.CONCURRENT_TRANSACTIONS
    world.clock.advance(120_000)
    world.coordinator.abort_timed_out()
    world.settle()
    assert told.code == ErrorCode.NONE
    assert state(world) == TransactionState.COMPLETE_COMMIT


def test_records_whose_transaction_nobody_knows_are_aborted_at_the_start(world: TransactionWorld) -> None:
    world.partition(PLACES[0]).append(
        batch([b"v"], 99, 3, 0, timestamp=world.clock.wall_ms()), world.clock.wall_ms(), produce_version=9
    )
    world.partition(PLACES[0]).flush()
    world.kill()
    world.settle()
    partition = world.partition(PLACES[0])
    assert partition.last_stable_offset == partition.high_watermark == 2
    assert world.read_committed(PLACES[0], 0) == ([], 2)


@pytest.mark.parametrize("forgotten", [STATE, "/t-", ""])
def test_what_cannot_be_put_back_on_record_at_the_start_is_when_the_disk_works(
    world: TransactionWorld, producer: Producer, forgotten: str
) -> None:
    """The record of its partitions went with the power, and the disk takes no new one: nothing of it is lost or shown meanwhile."""
    world.storage.crash()
    for place in PLACES:
        assert len(world.storage.read_all(f"/data/t-{place[1]}/{0:020d}.log")) > 0
    world.storage.fail("rename", forgotten, times=ALL)
    world.start()
    world.settle()
    ends_before = ends(world)
    if forgotten != "/t-":
        assert ends_before == [0, 0]
        assert end(world, producer).code == NOT_NOW
        assert initialize(world).code == NOT_NOW
        assert at_once(world.coordinator.add, "x", producer, [("t", 2)], VERSION_2) == NOT_NOW
    world.storage.heal()
    world.coordinator.finish_prepared()
    world.settle()
    assert end(world, producer).code == ErrorCode.NONE
    assert state(world) == TransactionState.COMPLETE_COMMIT
    assert ends(world) == [2, 2]
    for place in PLACES:
        assert len(world.read_committed(place, 0)[0]) == 1


def test_what_is_open_in_a_partition_that_comes_back_later_joins_its_transaction(
    world: TransactionWorld, producer: Producer
) -> None:
    """The power took the record that it belongs there, and the partition could not be opened by the start."""
    world.logs.abandon()
    world.storage.crash()
    world.storage.fail("read", "t-1/", times=ALL)
    world.start()
    partition = world.partition(PLACES[1])
    assert partition.condition.fault
    world.storage.heal()
    assert world.logs.open_again(partition)
    rewrite.job(partition)()
    world.coordinator.reopened(partition)
    world.settle()
    assert end(world, producer).code == ErrorCode.NONE
    assert ends(world) == [2, 2], "a marker is in both"


# -- shards that another broker coordinates for a while

ELSEWHERE = ErrorCode.NOT_COORDINATOR


def led_by(world: TransactionWorld, node: int, epoch: int) -> None:
    topic = world.cluster.topics["__transaction_state"]
    shard = partition_for("x", topic.partition_count)
    world.cluster.on_led = lambda _, shard: world.coordinator.gained(shard)
    world.cluster.on_led_elsewhere = lambda _, shard: world.coordinator.lost(shard)
    among(world.cluster, 2)
    change = LeadsChanged((((topic.id, shard), Lead(node, epoch)),))
    assert at_once(world.cluster.changes.make, lambda _: change) == {}


def test_a_lost_transaction_is_another_coordinators_and_comes_back_as_it_was(world, producer) -> None:
    led_by(world, 2, 4)
    assert world.coordinator.get("x") is None
    assert end(world, producer).code == ELSEWHERE
    assert initialize(world).code == ELSEWHERE
    assert at_once(world.coordinator.add, "x", producer, [("t", 2)], VERSION_2) == ELSEWHERE
    assert at_once(world.coordinator.verify, "x", producer, PLACES[0]) == ELSEWHERE
    assert ends(world) == [0, 0], "nothing is aborted that another coordinator may know"
    led_by(world, 1, 5)
    assert world.coordinator.get("x").partitions == frozenset(PLACES)
    assert end(world, producer).code == ErrorCode.NONE
    assert ends(world) == [2, 2]


def test_a_decision_on_its_way_when_the_shard_goes_is_told_to_nobody_and_carried_out_by_who_finds_it(
    world, producer
) -> None:
    told = Told()
    world.coordinator.end("x", producer, VERSION_2, told, commit=True)
    led_by(world, 2, 4)
    world.settle()
    assert told.code == ELSEWHERE
    assert ends(world) == [0, 0], "no marker of a decision that is another's"
    led_by(world, 1, 5)
    world.settle()
    assert ends(world) == [2, 2]
    assert world.coordinator.get("x").state.title == "CompleteCommit"


def test_markers_on_their_way_when_the_shard_goes_are_completed_by_who_gets_it(world, producer) -> None:
    told = Told()
    world.coordinator.end("x", producer, VERSION_2, told, commit=True)
    while not world.coordinator.get("x").state.is_prepared:
        assert world.loop.step(world.chance)
    led_by(world, 2, 4)
    world.settle()
    assert len(told.answers) == 1
    led_by(world, 1, 5)
    world.settle()
    assert world.coordinator.get("x").state.title == "CompleteCommit"


def test_a_first_record_that_is_written_while_the_shard_goes_makes_nobody_a_producer(world) -> None:
    at_once(world.coordinator.ensure_topic)
    told = Told()
    world.coordinator.initialize("x", 60_000, None, told)
    led_by(world, 2, 4)
    world.settle()
    assert told.code == ELSEWHERE
    assert world.coordinator.get("x") is None


def test_a_damaged_shard_is_read_as_soon_as_that_works(world, producer, monkeypatch) -> None:
    led_by(world, 2, 4)

    def damaged(*_arguments: object, **_fields: object) -> bytes:
        raise BeingRescanned("damaged")

    with monkeypatch.context() as patched:
        patched.setattr(Partition, "read", damaged)
        led_by(world, 1, 5)
    assert at_once(world.coordinator.verify, "x", producer, PLACES[0]) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert initialize(world).code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.coordinator.finish_prepared()
    assert at_once(world.coordinator.verify, "x", producer, PLACES[0]) == ErrorCode.NONE


# Requests that find nothing, too much, or the wrong time


NOT_KNOWN = ErrorCode.INVALID_PRODUCER_ID_MAPPING
LATER = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def initialize_id(world: TransactionWorld, transactional_id: str, timeout_ms: int = 60_000) -> Told:
    told = Told()
    world.coordinator.initialize(transactional_id, timeout_ms, None, told)
    world.settle()
    return told


def codes_of(world: TransactionWorld, transactional_id: str, producer: Producer) -> set[ErrorCode]:
    """What every request of a producer but the first is told."""
    ended = Told()
    world.coordinator.end(transactional_id, producer, VERSION_2, ended, commit=True)
    return {
        at_once(world.coordinator.add, transactional_id, producer, [("t", 0)], VERSION_2),
        at_once(world.coordinator.verify, transactional_id, producer, ("t", 0)),
        ended.code,
    }


def test_an_id_that_nobody_has_begun_is_told_so(world: TransactionWorld) -> None:
    assert codes_of(world, "unknown", Producer(7, 0)) == {NOT_KNOWN}
    assert world.coordinator.get("unknown") is None


def test_where_the_topic_cannot_be_made_everybody_is_told_to_come_again(world: TransactionWorld) -> None:
    world.storage.fail("sync", "horolog-journal", times=ALL)
    assert at_once(world.coordinator.ensure_topic) == ErrorCode.KAFKA_STORAGE_ERROR
    assert initialize(world).code == NOT_NOW
    assert codes_of(world, "x", Producer(7, 0)) == {NOT_NOW}


def test_ids_are_bounded(world: TransactionWorld) -> None:
    world.cluster.settings = replace(world.settings, horolog_transactional_ids_max=1)
    assert initialize(world).code == ErrorCode.NONE
    assert initialize_id(world, "y").code == ErrorCode.POLICY_VIOLATION
    assert [one.id for one in world.coordinator] == ["x"]
    assert repr(world.coordinator) == "<TransactionCoordinator of 1 transactional ids>"


def test_partitions_of_a_transaction_are_bounded(world: TransactionWorld, producer: Producer) -> None:
    world.cluster.settings = replace(world.settings, horolog_transaction_partitions_max=2)
    add = world.coordinator.add
    assert at_once(add, "x", producer, PLACES, VERSION_2) == ErrorCode.NONE
    assert at_once(add, "x", producer, [("t", 2)], VERSION_2) == ErrorCode.POLICY_VIOLATION


def test_without_a_producer_id_to_be_had_clients_try_again(world: TransactionWorld, producer: Producer) -> None:
    def none_left() -> int:
        raise ClusterError(LATER, "producer ids are still being reserved")

    world.cluster.producer_ids.take = none_left  # type: ignore[method-assign]
    assert initialize_id(world, "y").code == LATER
    last = world.coordinator._entries["x"]
    last.transaction = last.transaction._replace(producer_epoch=LARGEST_EPOCH)
    assert end(world, Producer(producer.id, LARGEST_EPOCH)).code == NOT_NOW
    assert state(world) == TransactionState.ONGOING


def test_the_end_of_what_has_ended_is_told_again(world: TransactionWorld, producer: Producer) -> None:
    first, again = end(world, producer), end(world, producer)
    assert again.answers == first.answers
    assert end(world, Producer(producer.id, 77)).code == ErrorCode.PRODUCER_FENCED


def test_a_producer_that_is_open_is_aborted_before_the_next_begins(world: TransactionWorld, producer: Producer) -> None:
    assert initialize(world).code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert state(world) == TransactionState.COMPLETE_ABORT
    assert initialize(world).code == ErrorCode.NONE


def test_while_a_write_is_on_its_way_everybody_else_tries_again(world: TransactionWorld, producer: Producer) -> None:
    told = Told()
    world.coordinator.end("x", producer, VERSION_2, told, commit=True)
    assert codes_of(world, "x", producer) == {ErrorCode.CONCURRENT_TRANSACTIONS}
    world.settle()
    assert told.code == ErrorCode.NONE


# Time


def test_a_transaction_that_takes_too_long_is_aborted(world: TransactionWorld, producer: Producer) -> None:
    world.clock.advance(59_000)
    world.coordinator.abort_timed_out()
    world.settle()
    assert state(world) == TransactionState.ONGOING
    world.clock.advance(2_000)
    world.coordinator.abort_timed_out()
    world.settle()
    assert state(world) == TransactionState.COMPLETE_ABORT
    assert ends(world) == [2, 2]


def test_one_that_is_off_record_is_not_aborted_before_it_is_on_it(world: TransactionWorld, producer: Producer) -> None:
    world.clock.advance(100_000)
    world.coordinator._strays._rounds[Suspect(producer, world.partition(("t", 2)), 0)] = 0
    world.coordinator.abort_timed_out()
    world.settle()
    assert state(world) == TransactionState.ONGOING


def test_an_id_that_nobody_uses_is_forgotten_for_good(world: TransactionWorld) -> None:
    initialize(world)
    week_ms = world.settings.transactional_id_expiration_ms
    world.clock.advance(week_ms - 1_000)
    world.coordinator.forget_expired()
    assert world.coordinator.get("x") is not None
    world.clock.advance(2_000)
    world.storage.fail("write", STATE)
    world.coordinator.forget_expired()
    assert world.coordinator.get("x") is not None
    world.settle()
    world.coordinator.forget_expired()
    world.settle()
    world.kill()
    assert world.coordinator.get("x") is None


# What an admin tool asks for, and what a start cannot read


def test_an_admin_tool_may_end_what_hangs(world: TransactionWorld, producer: Producer) -> None:
    partition = world.partition(PLACES[0])
    told: list[object] = []
    world.coordinator.marking.write_foreign([partition], producer, Marker(False, 0), told.append)
    world.settle()
    assert told == [{}]
    assert ends(world) == [2, 0]


def test_what_cannot_be_read_at_a_start_aborts_nobody(world: TransactionWorld, producer: Producer) -> None:
    world.storage.fail("read", STATE, times=ALL)
    world.kill()
    world.settle()
    assert ends(world) == [0, 0]


def test_a_shard_that_another_broker_leads_is_not_gained(world: TransactionWorld, producer: Producer) -> None:
    shard = partition_for("x", 2)
    world.cluster.topics[STATE].put(shard, None)
    world.coordinator.gained(shard)
    others = (name for name in map(str, range(100)) if partition_for(name, 2) == shard)
    assert codes_of(world, next(others), producer) == {ErrorCode.NOT_COORDINATOR}


# Several brokers


class Others:
    """They lead and coordinate nothing."""

    me = 1

    def transactions_of(self, producer_ids: object, done: Callable[[object], None]) -> None:
        done([])


@pytest.fixture
def among_others(world: TransactionWorld, producer: Producer) -> TransactionWorld:
    """A world whose coordinator is one of several."""
    among(world.cluster, 2)
    world.coordinator = TransactionCoordinator(
        world.cluster, world.committer, world.clock, lambda _producer_id, _committed: None, Others()
    )
    world.coordinator.open()
    world.settle()
    return world


@pytest.mark.parametrize("then", ["nothing", "adds a partition", "begins anew"])
def test_a_producer_that_aborts_nothing_behind_a_move_gets_a_new_epoch(world, producer, then) -> None:
    nothing_open, new_epoch = ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_ID_MAPPING

    def end(*, commit: bool) -> ErrorCode:
        told = Told()
        world.coordinator.end("x", world.coordinator.get("x").producer, VERSION_0, told, commit=commit)
        world.settle()
        return told.code

    assert end(commit=True) == ErrorCode.NONE
    assert end(commit=False) == nothing_open
    led_by(world, 2, 4)
    led_by(world, 1, 5)
    if then == "adds a partition":
        added: list[ErrorCode] = []
        world.coordinator.add("x", world.coordinator.get("x").producer, PLACES, VERSION_0, added.append)
        world.settle()
        assert (added, end(commit=True)) == ([ErrorCode.NONE], ErrorCode.NONE)
    elif then == "begins anew":
        assert initialize(world).code == ErrorCode.NONE
    assert end(commit=False) == (new_epoch if then == "nothing" else nothing_open)


@pytest.mark.parametrize("then", ["nothing", "adds a partition"])
def test_so_does_one_whose_partition_was_refused_while_the_transaction_before_was_ending(world, producer, then) -> None:
    """Its markers took longer than the request waited. librdkafka aborts all the same."""
    world.storage.fail("write", "/t-1/")
    assert end(world, producer, version=VERSION_0).code == ErrorCode.NONE
    add = partial(at_once, world.coordinator.add, "x", producer, [("t", 2)], VERSION_0)
    assert add() == ErrorCode.CONCURRENT_TRANSACTIONS
    world.coordinator.finish_prepared()
    world.settle()
    assert state(world) == TransactionState.COMPLETE_COMMIT
    if then == "nothing":
        assert end(world, producer, commit=False, version=VERSION_0).code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    else:
        assert add() == ErrorCode.NONE
        assert end(world, producer, version=VERSION_0).code == ErrorCode.NONE
        assert end(world, producer, commit=False, version=VERSION_0).code == ErrorCode.INVALID_TXN_STATE


def test_among_others_a_partition_is_added_when_that_is_on_the_disk(
    among_others: TransactionWorld, producer: Producer
) -> None:
    told: list[ErrorCode] = []
    among_others.coordinator.add("x", producer, [("t", 2)], VERSION_2, told.append)
    assert told == []
    among_others.settle()
    assert told == [ErrorCode.NONE]


def test_among_others_a_partition_that_may_not_be_on_the_disk_is_to_be_added_again(
    among_others: TransactionWorld, producer: Producer
) -> None:
    told: list[ErrorCode] = []
    among_others.storage.fail("sync", STATE)
    for _ in range(2):
        among_others.coordinator.add("x", producer, [("t", 2)], VERSION_2, told.append)
        among_others.settle()
    assert told == [NOT_NOW, NOT_NOW]


def test_among_others_what_nobody_knows_is_aborted_and_nothing_waits_for_records(
    among_others: TransactionWorld, producer: Producer
) -> None:
    partition = among_others.partition(("t", 2))
    partition.append(batch([b"v"], 99, 0, 0), among_others.clock.wall_ms(), produce_version=12)
    among_others.coordinator.reopened(partition)
    for _ in range(3):
        among_others.coordinator.finish_prepared()
        among_others.settle()
    assert partition.last_stable_offset == 2
    assert ends(among_others) == [0, 0]
    assert end(among_others, producer).code == ErrorCode.NONE


def test_why_an_id_is_not_here_is_told(
    world: TransactionWorld, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = partition_for("y", 2)
    assert world.coordinator.absence_of("y") == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert not world.coordinator.is_loading

    def damaged(*_: object) -> None:
        raise BeingRescanned("damaged")

    with monkeypatch.context() as patched:
        patched.setattr(world.coordinator, "_take_in", damaged)
        world.coordinator.gained(shard)
    assert world.coordinator.is_loading
    assert world.coordinator.absence_of("y") == LATER
    world.cluster.topics[STATE].put(shard, None)
    assert world.coordinator.absence_of("y") == ErrorCode.NOT_COORDINATOR


def test_among_others_a_coordinator_whose_disk_fails_knows_nothing(among_others: TransactionWorld) -> None:
    assert not among_others.coordinator.is_loading
    among_others.cluster.topics[STATE].find(0).condition.go_offline("no disk")
    assert among_others.coordinator.is_loading
