"""Transactions over partitions of two brokers, one of which coordinates: whoever ends at whatever step, all of it ends the same way."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from horolog.broker.base.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from horolog.broker.groups.offsets import GroupOffsets
from horolog.broker.transactions.states import TransactionState
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.support.program import Program
from tests.support.transactional import aborted_in, batch, committed_records
from tests.support.two_brokers import NODES, TOPIC, TwoBrokers, leader_of, name_in, stopped

PARTITIONS = 4
PARTS = 16
"""All steps are tried, in so many tests."""

KINDS = pytest.mark.parametrize("newer", [False, True], ids=["older clients", "newer clients"])
FENCED = ErrorCode.TRANSACTION_COORDINATOR_FENCED


@pytest.fixture
def pair() -> Iterator[TwoBrokers]:
    pair = TwoBrokers()
    yield pair
    stopped(pair)


def program(pair: TwoBrokers, *, newer: bool, shard: int = 0, group_shard: int = 1) -> Program:
    """By default the first broker coordinates the transaction and the second one the group."""
    made = Program(pair, name_in(shard), name_in(group_shard, "g"), newer=newer)
    made.initialize()
    return made


def carry_out(one: Program, number: int, *, commit: bool = True) -> None:
    """A transaction over all partitions, and a group's offset."""
    one.write(*((index, b"%d-%d" % (number, index)) for index in range(PARTITIONS)))
    one.commit_offset(number)
    one.end(commit=commit)


def committed(pair: TwoBrokers, index: int) -> list[bytes]:
    """What readers of committed records are shown."""
    partition = pair.partition(index)
    stable = partition.last_stable_offset
    data = partition.read(0, 1 << 20, upto=stable)
    aborted = [(first, producer_id) for producer_id, first in aborted_in(partition, 0, stable)]
    return [value or b"" for _, value in committed_records(data, aborted)]


def offset_of(pair: TwoBrokers, group_id: str) -> int | None:
    broker = pair.nodes[pair.coordinator(group_id, GROUP_OFFSETS)].broker
    group = broker.groups.registry.groups.get(group_id)
    offsets: GroupOffsets | None = None if group is None else group.offsets
    if offsets is None:
        return None
    assert not offsets.has_pending
    found = offsets.get((TOPIC, 0))
    return None if found is None else found.offset


def assert_nothing_is_open(pair: TwoBrokers) -> None:
    for index in range(PARTITIONS):
        assert pair.partition(index).last_stable_offset == pair.partition(index).high_watermark
    for node in pair.nodes.values():
        assert all(one.is_idle for one in node.broker.transactions)


@KINDS
@pytest.mark.parametrize("shard", [0, 1])
@pytest.mark.parametrize("group_shard", [0, 1])
def test_what_is_written_at_both_brokers_is_committed_or_aborted_at_both(
    pair: TwoBrokers, newer: bool, shard: int, group_shard: int
) -> None:
    one = program(pair, newer=newer, shard=shard, group_shard=group_shard)
    carry_out(one, 1)
    carry_out(one, 2, commit=False)
    carry_out(one, 3)
    pair.pass_time(2_000)
    for index in range(PARTITIONS):
        assert committed(pair, index) == [b"%d-%d" % (number, index) for number in (1, 3)]
    assert offset_of(pair, name_in(group_shard, "g")) == 3
    assert_nothing_is_open(pair)


def test_the_coordinator_elsewhere_is_asked_once_for_each_transaction_and_partition(pair: TwoBrokers) -> None:
    one = program(pair, newer=True)
    asked = pair.nodes[2].peers.asked
    for number in range(5):
        one.write((1, b"%d" % number), (3, b"%d" % number))
    questions = [request for _, request in asked if isinstance(request, AddPartitionsToTxnRequest)]
    assert len(questions) == 2
    one.end()
    one.write((1, b"next"))
    assert len([request for _, request in asked if isinstance(request, AddPartitionsToTxnRequest)]) == 3


def test_markers_for_the_other_broker_go_in_one_request(pair: TwoBrokers) -> None:
    one = program(pair, newer=True)
    one.write(*((index, b"v") for index in range(PARTITIONS)))
    one.end()
    markers = [request for _, request in pair.nodes[1].peers.asked if isinstance(request, WriteTxnMarkersRequest)]
    assert [sorted(topic.partition_indexes) for topic in markers[0].markers[0].topics] == [[1, 3]]
    assert len(markers) == 1


def initialized(pair: TwoBrokers, name: str) -> tuple[int, int]:
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    answer = pair.ask(pair.coordinator(name), request, 5)
    return answer.producer_id, answer.producer_epoch


def test_what_another_broker_coordinates_is_not_answered_for(pair: TwoBrokers) -> None:
    name = name_in(0)
    producer_id, epoch = initialized(pair, name)
    end = EndTxnRequest(transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=True)
    not_here = ErrorCode.NOT_COORDINATOR
    assert pair.ask(2, end, 4).error_code == not_here
    assert pair.ask(2, InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1), 4).error_code == not_here
    listed = {node: pair.ask(node, ListTransactionsRequest(), 0).transaction_states for node in NODES}
    assert [one.transactional_id for one in listed[1]] == [name]
    assert listed[2] == []
    describe = DescribeTransactionsRequest(transactional_ids=[name, name_in(1, "unknown")])
    codes = [one.error_code for one in pair.ask(2, describe, 0).transaction_states]
    assert codes == [not_here, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND]


def test_a_partition_takes_no_marker_of_an_older_coordinator_and_the_transaction_stays_as_it_is(
    pair: TwoBrokers, caplog: pytest.LogCaptureFixture
) -> None:
    """A tool, or a newer coordinator, has written a marker with a higher epoch."""
    one = program(pair, newer=False)
    one.write((0, b"here"), (1, b"there"))
    producer_id = next(iter(pair.nodes[1].broker.transactions)).producer_id
    for index in (0, 1):
        topics = [WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[index])]
        marker = WritableTxnMarker(
            producer_id=producer_id, producer_epoch=0, transaction_result=False, coordinator_epoch=9, topics=topics
        )
        answer = pair.ask(leader_of(index), WriteTxnMarkersRequest(markers=[marker]), 1)
        assert answer.markers[0].topics[0].partitions[0].error_code == ErrorCode.NONE
        marker.coordinator_epoch = 0
        answer = pair.ask(leader_of(index), WriteTxnMarkersRequest(markers=[marker]), 1)
        assert answer.markers[0].topics[0].partitions[0].error_code == FENCED
    one.end()
    pair.pass_time(3_000)
    (transaction,) = pair.nodes[1].broker.transactions
    assert transaction.state == TransactionState.PREPARE_COMMIT
    assert committed(pair, 0) == committed(pair, 1) == []


def test_markers_are_sent_until_the_leader_is_back(pair: TwoBrokers) -> None:
    one = program(pair, newer=True)
    one.write(*((index, b"v") for index in range(PARTITIONS)))
    pair.network.leave(2)
    one.end()
    (transaction,) = pair.nodes[1].broker.transactions
    assert transaction.state == TransactionState.PREPARE_COMMIT
    assert (committed(pair, 0), committed(pair, 1)) == ([b"v"], [])
    pair.restart(2)
    pair.pass_time(3_000)
    assert committed(pair, 1) == [b"v"]
    assert_nothing_is_open(pair)


def test_what_no_coordinator_knows_is_aborted_when_all_have_said_so(pair: TwoBrokers) -> None:
    partition = pair.partition(1)
    partition.append(batch([b"stray"], 999, 0, 0), pair.clock.wall_ms(), produce_version=9)
    partition.flush()
    partition.sync()
    pair.network.leave(1)
    pair.restart(2)
    pair.pass_time(5_000)
    assert pair.partition(1).last_stable_offset == 0
    pair.restart(1)
    pair.pass_time(5_000)
    assert committed(pair, 1) == []
    assert_nothing_is_open(pair)


def test_what_was_added_is_on_the_disk_before_it_is_used(pair: TwoBrokers) -> None:
    """Nobody but its coordinator knows that a partition elsewhere is part of a transaction: no power cut may take that."""
    one = program(pair, newer=True)
    one.write(*((index, b"v") for index in range(PARTITIONS)))
    coordinator = pair.nodes[1]
    pair.network.leave(1)
    coordinator.broker.logs.abandon()
    coordinator.storage.crash(survival=0.0)
    coordinator.start()
    pair.settle()
    (transaction,) = pair.nodes[1].broker.transactions
    assert transaction.partitions == {(TOPIC, index) for index in range(PARTITIONS)}
    one.end()
    pair.pass_time(2_000)
    assert [committed(pair, index) for index in range(PARTITIONS)] == [[b"v"]] * PARTITIONS


def count_of_steps(newer: bool) -> int:
    pair = TwoBrokers(seed=1)
    one = program(pair, newer=newer)
    carry_out(one, 1)
    carry_out(one, 2)
    steps = pair.steps
    stopped(pair)
    return steps


@KINDS
@pytest.mark.parametrize("number", NODES)
@pytest.mark.parametrize("power_cut", [False, True], ids=["killed", "power cut"])
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, PARTS))])
def test_an_end_of_either_broker_at_any_step_leaves_no_half_of_a_transaction(
    newer: bool, number: int, power_cut: bool, part: int
) -> None:
    for step in range(1 + part, count_of_steps(newer), PARTS):
        pair = TwoBrokers(seed=1)

        def end_once(now: int, pair: TwoBrokers = pair, step: int = step) -> None:
            if now == step:
                pair.restart(number, power_cut=power_cut)

        pair.before_step = end_once
        one = program(pair, newer=newer)
        carry_out(one, 1)
        carry_out(one, 2)
        pair.pass_time(5_000)
        assert pair.nodes[number].starts == 2, step
        for index in range(PARTITIONS):
            assert committed(pair, index) == [b"1-%d" % index, b"2-%d" % index], (step, index)
        assert offset_of(pair, name_in(1, "g")) == 2, step
        assert_nothing_is_open(pair)
        assert TRANSACTION_STATE in pair.nodes[1].broker.cluster.topics
        stopped(pair)
