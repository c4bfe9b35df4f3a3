"""Looking at transactions, and ending those that hang."""

from __future__ import annotations

import pytest

from horolog.base.patterns import Regex
from horolog.broker.groups import topic_patterns
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.transactions import (
    DescribeTransactionsRequest,
    ListTransactionsRequest,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.support.guarded_broker import GuardedBroker, acl
from tests.support.memory_broker import NOW_MS, MemoryBroker, Wire
from tests.support.processor_time import at_most
from tests.support.transactional import Producer, committed_records, fetch

SETTINGS = {"transaction_state_log_num_partitions": 2}
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def begin(memory: MemoryBroker, transactional_id: str = "x") -> Producer:
    producer = Producer(memory.connect(), transactional_id)
    assert await producer.initialize() == 0
    return producer


async def test_a_transaction_is_described_as_it_goes_on() -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        memory.topic(partitions=3)
        producer, wire = await begin(memory), memory.connect()

        async def describe():
            answer = await wire.ask(DescribeTransactionsRequest(transactional_ids=["x"]), 0)
            (one,) = answer.transaction_states
            assert (one.error_code, one.producer_id, one.transaction_timeout_ms) == (0, producer.id, 60_000)
            topics = [(topic.topic, topic.partitions) for topic in one.topics]
            return one.transaction_state, one.transaction_start_time_ms, one.producer_epoch, topics

        assert await describe() == ("Empty", -1, 0, [])
        assert await producer.add(("t", 2), ("t", 0)) == 0
        assert await describe() == ("Ongoing", NOW_MS, 0, [("t", [0, 2])])
        assert await producer.end(commit=False, version=5) == 0
        assert await describe() == ("CompleteAbort", NOW_MS, 1, [])


async def test_ids_that_nobody_knows() -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        wire = memory.connect()
        answer = await wire.ask(DescribeTransactionsRequest(transactional_ids=["", "y"]), 0)
        assert [one.error_code for one in answer.transaction_states] == [
            ErrorCode.INVALID_REQUEST,
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        ]


@pytest.mark.parametrize(
    ("version", "filters", "found", "unknown"),
    [
        (0, {}, {"empty", "open"}, []),
        (0, {"state_filters": ["Ongoing"]}, {"open"}, []),
        (0, {"state_filters": ["Ongoing", "Empty"]}, {"empty", "open"}, []),
        (0, {"state_filters": ["ongoing"]}, set(), ["ongoing"]),
        (0, {"state_filters": ["Ongoing", "Nonsense"]}, {"open"}, ["Nonsense"]),
        (0, {"state_filters": ["Nonsense", "Nonsense", "No", "Nonsense"]}, set(), ["Nonsense", "No"]),
        (0, {"producer_id_filters": [1]}, {"open"}, []),
        (0, {"producer_id_filters": [99]}, set(), []),
        (1, {"duration_filter": 4999, "state_filters": ["Ongoing"]}, {"open"}, []),
        (1, {"duration_filter": 5000, "state_filters": ["Ongoing"]}, set(), []),
        (1, {"duration_filter": -5}, {"empty", "open"}, []),
        (2, {"transactional_id_pattern": "o.*"}, {"open"}, []),
        (2, {"transactional_id_pattern": "p"}, set(), []),
        (2, {"transactional_id_pattern": ""}, {"empty", "open"}, []),
    ],
)
async def test_transactions_are_listed_by_what_is_asked_for(version, filters, found, unknown) -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        memory.topic()
        await begin(memory, "empty")
        producer = await begin(memory, "open")
        assert producer.id == 1
        assert await producer.add(("t", 0)) == 0
        memory.clock.advance(5000)
        answer = await memory.connect().ask(ListTransactionsRequest(**filters), version)
        assert {one.transactional_id for one in answer.transaction_states} == found
        assert answer.unknown_state_filters == unknown


async def test_a_bad_pattern_is_refused() -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        answer = await memory.connect().ask(ListTransactionsRequest(transactional_id_pattern="("), 2)
        assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


async def test_a_pattern_that_repeats_nothing_takes_no_time() -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        await begin(memory, "a")
        request = ListTransactionsRequest(transactional_id_pattern="((((a{0}){1000}){1000}){1000}){1000}|a")
        with at_most(1.0):
            answer = await memory.connect().ask(request, 2)
        assert [one.transactional_id for one in answer.transaction_states] == ["a"]


async def test_only_what_may_be_described_is_matched_by_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    monkeypatch.setattr(Regex, "matches", lambda _, text: texts.append(text) or True)
    async with GuardedBroker() as memory:
        memory.put(*(acl("admin", one, "TRANSACTIONAL_ID") for one in ("WRITE", "DESCRIBE")))
        memory.put(acl("alice", "DESCRIBE", "TRANSACTIONAL_ID", "seen"))
        for transactional_id in ("seen", "hidden"):
            assert await Producer(memory.wire("admin"), transactional_id).initialize() == 0
        request = ListTransactionsRequest(transactional_id_pattern=".*")
        for user, expected in (("alice", ["seen"]), ("bob", []), ("admin", ["seen", "hidden"])):
            texts.clear()
            answer = await memory.wire(user).ask(request, 2)
            assert sorted(one.transactional_id for one in answer.transaction_states) == sorted(expected)
            assert sorted(texts) == sorted(expected)


async def test_a_pattern_that_takes_too_many_steps_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        await begin(memory, "a" * 200)
        monkeypatch.setattr(topic_patterns.tried, "__defaults__", (100,))
        request = ListTransactionsRequest(transactional_id_pattern="(a?){100}b")
        assert (await memory.connect().ask(request, 2)).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def marker(producer: Producer, *indexes: int, name: str = "t", commit: bool = False, coordinator: int = 0):
    return WritableTxnMarker(
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        transaction_result=commit,
        coordinator_epoch=coordinator,
        topics=[WritableTxnMarkerTopic(name=name, partition_indexes=list(indexes))],
    )


async def write(wire: Wire, *markers: WritableTxnMarker, version: int = 1) -> list[list[int]]:
    answer = await wire.ask(WriteTxnMarkersRequest(markers=list(markers)), version)
    return [[one.error_code for topic in each.topics for one in topic.partitions] for each in answer.markers]


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_a_hanging_transaction_is_ended_by_hand(version) -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        memory.topic(partitions=2)
        producer, wire = await begin(memory), memory.connect()
        for index in (0, 1):
            assert await producer.send("t", index, b"a", version=12) == 0
        assert await write(wire, marker(producer, 0, 5), marker(producer, 0, name="nope"), version=version) == [
            [0, UNKNOWN],
            [UNKNOWN],
        ]
        answer = await fetch(wire, "t", 0, committed=True)
        aborted = [(one.first_offset, one.producer_id) for one in answer.aborted_transactions]
        assert answer.last_stable_offset == 2
        assert committed_records(bytes(answer.records), aborted) == []
        assert (await fetch(wire, "t", 1, committed=True)).last_stable_offset == 0


async def test_no_markers_are_answered_at_once() -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        wire = memory.connect()
        stranger = Producer(wire)
        assert await write(wire) == []
        assert await write(wire, marker(stranger)) == [[]]


async def test_markers_of_the_past_are_refused_and_fence_nobody_for_good() -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        memory.topic()
        producer, wire = await begin(memory), memory.connect()
        assert await producer.initialize() == 0
        assert await producer.send("t", 0, b"a", version=12) == 0
        producer.epoch -= 1
        assert await write(wire, marker(producer, 0)) == [[ErrorCode.INVALID_PRODUCER_EPOCH]]
        producer.epoch += 1
        assert await write(wire, marker(producer, 0, coordinator=7)) == [[0]]
        assert await write(wire, marker(producer, 0, coordinator=6)) == [[ErrorCode.TRANSACTION_COORDINATOR_FENCED]]
        assert await producer.end(commit=True, version=5) == 0  # our coordinator is the only one there is
        assert memory.broker.transactions.get("x").state.title == "CompleteCommit"
