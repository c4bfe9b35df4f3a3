"""Transactions through whole frames: what readers see, who is fenced, what survives."""

from __future__ import annotations

import pytest

from horolog.broker.handlers import transaction_lines, transactions
from horolog.broker.handlers.transactional_produce import FIRST_VERSION_THAT_ADDS
from horolog.broker.log.partition import log_start
from horolog.broker.transactions.marking import Marking
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from horolog.protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestTopic
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from horolog.protocol.records.entries import iter_records
from tests.support.memory_broker import NOW_MS, MemoryBroker, Wire
from tests.support.transactional import Producer, batch, committed_records, fetch

FENCED, OLD_EPOCH, STRANGER = (
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
)
SETTINGS = {"transaction_state_log_num_partitions": 2, "offsets_topic_num_partitions": 2}


def values(answer) -> list[bytes | None]:
    """What a reader that knows nothing of transactions would have, markers left out."""
    return [record.value for record in iter_records(answer.records)]


async def shown(wire: Wire, name: str = "t", index: int = 0) -> list[bytes | None]:
    """What a client that reads committed records shows: it leaves out what it is told was aborted."""
    answer = await fetch(wire, name, index, committed=True)
    aborted = [(one.first_offset, one.producer_id) for one in answer.aborted_transactions or ()]
    return [value for _, value in committed_records(bytes(answer.records), aborted)]


async def begin(memory: MemoryBroker, transactional_id: str = "x", **more: int) -> Producer:
    producer = Producer(memory.connect(), transactional_id, **more)
    assert await producer.initialize() == 0
    return producer


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(("produce_version", "end_version"), [(3, 0), (11, 4), (12, 5)])
async def test_readers_see_a_transaction_when_it_is_committed(commit, produce_version, end_version) -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        memory.topic(partitions=2)
        producer = await begin(memory)
        if produce_version < FIRST_VERSION_THAT_ADDS:
            assert await producer.add(("t", 0), ("t", 1)) == 0
        for index in (0, 1):
            assert await producer.send("t", index, b"a", b"b", version=produce_version) == 0
        wire = memory.connect()
        open_answer = await fetch(wire, "t", committed=True)
        assert (open_answer.high_watermark, open_answer.last_stable_offset) == (2, 0)
        assert values(open_answer) == []
        assert await producer.end(commit=commit, version=end_version) == 0
        for index in (0, 1):
            assert await shown(wire, index=index) == ([b"a", b"b"] if commit else [])
            answer = await fetch(wire, "t", index, committed=False)
            assert values(answer) == [b"a", b"b"]
            assert (answer.high_watermark, answer.last_stable_offset) == (3, 3)
        assert producer.epoch == (1 if end_version == 5 else 0)


async def test_one_open_transaction_holds_back_what_others_committed_behind_it() -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        memory.topic()
        slow, quick, wire = await begin(memory, "slow"), await begin(memory, "quick"), memory.connect()
        assert await slow.send("t", 0, b"s", version=12) == 0
        assert await quick.send("t", 0, b"q", version=12) == 0
        assert await quick.end(commit=True, version=5) == 0
        assert await shown(wire) == []
        assert await slow.end(commit=False, version=5) == 0
        assert await shown(wire) == [b"q"]


async def test_markers_answer_no_look_up_by_time_and_have_no_largest_one() -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        memory.topic()
        producer, wire = await begin(memory), memory.connect()
        assert await producer.send("t", 0, b"a", version=12) == 0
        memory.clock.advance(3_600_000)
        assert await producer.end(commit=True, version=5) == 0

        async def look(timestamp: int) -> tuple[int, int]:
            partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
            request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[partition])])
            answer = await wire.ask(request, 9)
            found = answer.topics[0].partitions[0]
            return found.timestamp, found.offset

        assert await look(NOW_MS) == (NOW_MS, 0)
        assert await look(NOW_MS + 1) == (-1, -1)
        assert await look(-3) == (NOW_MS, 0)


async def test_old_data_is_not_rolled_or_kept_by_the_time_of_a_marker() -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        old_ms = NOW_MS - 30 * 86_400_000
        topic = memory.topic(segment_ms=60_000, retention_ms=86_400_000)
        producer, wire = await begin(memory), memory.connect()
        for sequence in range(2):
            assert await producer.add(("t", 0)) == 0
            records = batch([b"old"], producer.id, producer.epoch, sequence, timestamp=old_ms)
            data = [TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=records)])]
            request = ProduceRequest(transactional_id="x", acks=-1, timeout_ms=1000, topic_data=data)
            answer = await wire.ask(request, 11)
            assert answer.responses[0].partition_responses[0].error_code == 0
            assert await producer.end(commit=True) == 0
        (partition,) = topic.led_here
        assert len(partition.segments) == 1
        assert partition.segments[0].max_timestamp == old_ms
        assert not log_start.apply_retention(partition, NOW_MS), "its producer is known from nowhere else"
        partition.sync()
        assert log_start.finish_retention(partition, NOW_MS)
        assert partition.log_start_offset == partition.high_watermark == 4


# -- who may write


@pytest.mark.parametrize(
    ("version", "code"),
    [(3, ErrorCode.INVALID_TXN_STATE), (10, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE)],
)
async def test_writing_to_what_was_not_added(version, code) -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        topic = memory.topic(partitions=2)
        producer = await begin(memory)
        assert await producer.add(("t", 1)) == 0
        assert await producer.send("t", 0, b"a", version=version) == code
        assert topic.find(0).log_end_offset == 0
        assert await producer.send("t", 1, b"a", version=version) == 0


@pytest.mark.parametrize("version", [9, 12])
async def test_a_fenced_producer_writes_adds_and_ends_nothing(version) -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        topic = memory.topic()
        zombie = await begin(memory)
        assert await zombie.send("t", 0, b"a", version=12) == 0
        heir = Producer(memory.connect())
        assert await heir.initialize() == 0
        assert heir.id == zombie.id
        end_offset = topic.find(0).log_end_offset
        assert await zombie.send("t", 0, b"b", version=version) == OLD_EPOCH
        for add_version, code in ((0, OLD_EPOCH), (2, FENCED), (3, FENCED)):
            assert await zombie.add(("t", 0), version=add_version) == code
        for end_version, code in ((0, OLD_EPOCH), (2, FENCED), (4, FENCED)):
            assert await zombie.end(commit=True, version=end_version) == code
        assert topic.find(0).log_end_offset == end_offset == 2
        assert await shown(memory.connect()) == []


async def test_nobody_ends_the_transaction_of_another() -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        memory.topic()
        producer, wire = await begin(memory), memory.connect()
        for fields, code in (
            ({"transactional_id": "", "producer_id": 0, "producer_epoch": 0}, ErrorCode.INVALID_REQUEST),
            ({"transactional_id": "y", "producer_id": 0, "producer_epoch": 0}, STRANGER),
            ({"transactional_id": "x", "producer_id": 99, "producer_epoch": 0}, STRANGER),
            ({"transactional_id": "x", "producer_id": producer.id, "producer_epoch": 0}, ErrorCode.INVALID_TXN_STATE),
        ):
            assert (await wire.ask(EndTxnRequest(committed=True, **fields), 4)).error_code == code


@pytest.fixture
def held_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No marker is written as long as there is something in the list."""
    held, mark = ["x"], Marking.mark

    def mark_later(self, transaction, partitions, epoch, done) -> None:
        if held:
            done(frozenset(partitions))
        else:
            mark(self, transaction, partitions, epoch, done)

    monkeypatch.setattr(Marking, "mark", mark_later)
    return held


@pytest.mark.parametrize("asks", ["partitions", "offsets", "next producer"])
async def test_a_request_waits_until_the_transaction_before_has_its_markers_and_the_end_waits_behind_it(
    held_up, asks
) -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        memory.topic()
        producer = await begin(memory)
        request, version = {
            "partitions": (producer.add_request(("t", 0)), 3),
            "offsets": (
                AddOffsetsToTxnRequest(transactional_id="x", producer_id=producer.id, producer_epoch=0, group_id="g"),
                3,
            ),
            "next producer": (InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000), 4),
        }[asks]
        assert await producer.add(("t", 0)) == 0
        assert await producer.end(commit=True) == 0
        wire, end = memory.connect(), producer.end_request(commit=False)
        wire.send(request, version)
        wire.send(end, 4)
        assert len(memory.broker.waiting) == 2
        held_up.clear()
        memory.broker.transactions.finish_prepared()
        answer = await wire.take(request, version)
        if asks == "partitions":
            answer = answer.results_by_topic_v3_and_below[0].results_by_partition[0]
            assert answer.partition_error_code == 0
        else:
            assert answer.error_code == 0
        assert (await wire.take(end, 4)).error_code == (FENCED if asks == "next producer" else 0)
        assert len(memory.broker.waiting) == 0


async def test_a_request_that_has_waited_for_long_is_refused_and_so_is_one_for_which_there_is_no_room(
    held_up, monkeypatch
) -> None:
    monkeypatch.setattr(transaction_lines, "LONGEST_WAIT_MS", 1)
    for bytes_max in (1_000_000, 0):
        async with MemoryBroker(horolog_fetch_waiting_max_bytes=bytes_max, **SETTINGS) as memory:
            memory.topic()
            producer = await begin(memory)
            assert await producer.add(("t", 0)) == 0
            assert await producer.end(commit=True) == 0
            assert await producer.add(("t", 0)) == ErrorCode.CONCURRENT_TRANSACTIONS
            held_up.clear()
            memory.broker.transactions.finish_prepared()
            await memory.broker.committer.drain()
            assert await producer.add(("t", 0)) == 0
            held_up.append("x")


async def test_one_wrong_partition_keeps_the_others_out() -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        memory.topic()
        producer, wire = await begin(memory), memory.connect()
        answer = await wire.ask(producer.add_request(("t", 0), ("t", 1), ("nope", 0), ("__transaction_state", 0)), 3)
        found = {
            (topic.name, one.partition_index): one.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for one in topic.results_by_partition
        }
        assert found == {
            ("t", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
            ("t", 1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("nope", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("__transaction_state", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        }
        assert memory.broker.transactions.get("x").partitions == frozenset()


@pytest.mark.parametrize("version", [4, 5])
async def test_brokers_ask_for_several_at_once_and_may_only_ask(version) -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        memory.topic(partitions=2)
        one, other = await begin(memory, "one"), await begin(memory, "other")
        wire = memory.connect()

        async def ask(*, verify_only: bool) -> list[list[int]]:
            topics = [AddPartitionsToTxnTopic(name="t", partitions=[0])]
            wanted = [
                AddPartitionsToTxnTransaction(
                    transactional_id=producer.transactional_id,
                    producer_id=producer.id,
                    producer_epoch=epoch,
                    verify_only=verify_only,
                    topics=topics,
                )
                for producer, epoch in ((one, one.epoch), (other, other.epoch + 1))
            ]
            answer = await wire.ask(AddPartitionsToTxnRequest(transactions=wanted), version)
            return [
                [place.partition_error_code for topic in each.topic_results for place in topic.results_by_partition]
                for each in answer.results_by_transaction
            ]

        assert await ask(verify_only=True) == [[ErrorCode.TRANSACTION_ABORTABLE], [FENCED]]
        assert await ask(verify_only=False) == [[0], [FENCED]]
        assert await ask(verify_only=True) == [[0], [FENCED]]


# -- bounds


async def test_more_transactional_ids_than_are_allowed_are_refused() -> None:
    async with MemoryBroker(horolog_transactional_ids_max=2, **SETTINGS) as memory:
        await begin(memory, "a")
        await begin(memory, "b")
        third = Producer(memory.connect(), "c")
        assert await third.initialize() == ErrorCode.POLICY_VIOLATION
        assert memory.broker.transactions.get("c") is None
        await begin(memory, "a")


async def test_more_partitions_than_are_allowed_are_refused() -> None:
    async with MemoryBroker(horolog_transaction_partitions_max=2, **SETTINGS) as memory:
        memory.topic(partitions=3)
        producer = await begin(memory)
        assert await producer.add(("t", 0), ("t", 1)) == 0
        assert await producer.add(("t", 2)) == ErrorCode.POLICY_VIOLATION
        assert await producer.send("t", 2, b"a", version=12) == ErrorCode.POLICY_VIOLATION
        assert await producer.send("t", 1, b"a", version=12) == 0
        assert await producer.end(commit=True, version=5) == 0


# -- time


async def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_may_go_on() -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        memory.topic()
        producer = await begin(memory, timeout_ms=1000)
        assert await producer.add(("t", 0)) == 0
        assert await producer.send("t", 0, b"a") == 0
        memory.clock.advance(1000)
        memory.broker.transactions.abort_timed_out()
        assert await producer.send("t", 0, b"b") == 0
        memory.clock.advance(1)
        memory.broker.transactions.abort_timed_out()
        await memory.broker.committer.drain()
        assert await shown(memory.connect()) == []
        assert await producer.end(commit=True) == FENCED
        assert await producer.send("t", 0, b"c") == OLD_EPOCH
        assert await producer.initialize(as_before=True) == 0
        assert producer.epoch == 1
        assert await producer.send("t", 0, b"d", version=12) == 0
        assert await producer.end(commit=True, version=5) == 0
        assert await shown(memory.connect()) == [b"d"]


async def test_idle_ids_are_forgotten_and_stay_so_after_a_restart() -> None:
    memory = MemoryBroker(transactional_id_expiration_ms=5000, **SETTINGS)
    async with memory:
        await begin(memory, "old")
        memory.clock.advance(4000)
        await begin(memory, "new")
        memory.clock.advance(1000)
        memory.broker.transactions.forget_expired()
        assert [one.id for one in memory.broker.transactions] == ["new"]
    async with memory:
        assert [one.id for one in memory.broker.transactions] == ["new"]


async def test_a_restart_knows_every_transaction_as_it_was() -> None:
    memory = MemoryBroker(**SETTINGS)
    async with memory:
        memory.topic()
        producer = await begin(memory)
        assert await producer.send("t", 0, b"a", version=12) == 0
        before = memory.broker.transactions.get("x")
    async with memory:
        assert memory.broker.transactions.get("x") == before
        producer.wire = memory.connect()
        assert await producer.end(commit=True, version=5) == 0
        assert await shown(producer.wire) == [b"a"]


# -- offsets


async def committed_offset(wire: Wire, group: str, *, stable: bool = False) -> tuple[int, int]:
    topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    answer = await wire.ask(OffsetFetchRequest(group_id=group, topics=topics, require_stable=stable), 7)
    found = answer.topics[0].partitions[0]
    return found.committed_offset, found.error_code


def offsets_of(producer: Producer, group: str, offset: int) -> TxnOffsetCommitRequest:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="m")
    return TxnOffsetCommitRequest(
        transactional_id=producer.transactional_id,
        group_id=group,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
    )


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", [0, 3, 4, 5])
async def test_offsets_count_when_the_transaction_is_committed(version, commit) -> None:
    memory = MemoryBroker(**SETTINGS)
    async with memory:
        memory.topic()
        producer, wire = await begin(memory), memory.connect()
        if version < 5:
            request = AddOffsetsToTxnRequest(
                transactional_id="x", producer_id=producer.id, producer_epoch=producer.epoch, group_id="g"
            )
            assert (await wire.ask(request, min(version, 3))).error_code == 0
        answer = await wire.ask(offsets_of(producer, "g", 42), version)
        assert answer.topics[0].partitions[0].error_code == 0
        assert await committed_offset(wire, "g") == (-1, 0)
        assert await committed_offset(wire, "g", stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        assert await producer.end(commit=commit, version=5 if version == 5 else 3) == 0
        assert await committed_offset(wire, "g", stable=True) == (42 if commit else -1, 0)
    async with memory:
        assert await committed_offset(memory.connect(), "g", stable=True) == (42 if commit else -1, 0)


@pytest.mark.parametrize(
    ("version", "code"),
    [(0, ErrorCode.INVALID_TXN_STATE), (3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE)],
)
async def test_offsets_of_a_group_that_was_not_added(version, code) -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        memory.topic()
        producer, wire = await begin(memory), memory.connect()
        answer = await wire.ask(offsets_of(producer, "g", 42), version)
        assert answer.topics[0].partitions[0].error_code == code


async def test_offsets_of_partitions_that_do_not_exist_are_refused_for_that_whatever_the_producer() -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        memory.topic()
        producer, wire = await begin(memory), memory.connect()
        producer.epoch += 1
        request = offsets_of(producer, "g", 42)
        (topic,) = request.topics
        topic.partitions += [TxnOffsetCommitRequestPartition(partition_index=9, committed_offset=1)]
        answer = await wire.ask(request, 5)
        assert [one.error_code for one in answer.topics[0].partitions] == [
            OLD_EPOCH,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]


async def test_offsets_of_a_fenced_producer_or_of_no_group() -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        memory.topic()
        producer, wire = await begin(memory), memory.connect()
        for version in (3, 5):
            answer = await wire.ask(offsets_of(producer, "", 42), version)
            assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_GROUP_ID
            producer.epoch += 1
            answer = await wire.ask(offsets_of(producer, "g", 42), version)
            assert answer.topics[0].partitions[0].error_code == OLD_EPOCH
            producer.epoch -= 1


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("decided", [True, False])
async def test_offsets_of_an_open_or_only_decided_transaction_outlive_a_restart(commit, decided) -> None:
    memory = MemoryBroker(**SETTINGS)
    async with memory:
        memory.topic()
        producer, wire = await begin(memory), memory.connect()
        answer = await wire.ask(offsets_of(producer, "g", 42), 5)
        assert answer.topics[0].partitions[0].error_code == 0
        if decided:
            memory.storage.fail("write", "/__consumer_offsets-")
            assert await producer.end(commit=commit, version=5) == 0
            assert memory.broker.transactions.get("x").state.is_prepared
            memory.storage.heal()
    async with memory:
        producer.wire = wire = memory.connect()
        if not decided:
            assert await committed_offset(wire, "g", stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
            assert await producer.end(commit=commit, version=5) == 0
        await memory.broker.committer.drain()
        assert await committed_offset(wire, "g", stable=True) == (42 if commit else -1, 0)


@pytest.mark.parametrize("piece_bytes", [70, 100, 257, 1000])
async def test_transactions_are_found_again_wherever_the_pieces_end_in_which_they_are_read(
    monkeypatch: pytest.MonkeyPatch, piece_bytes: int
) -> None:
    monkeypatch.setattr("horolog.broker.coordination.topic_journal.READ_BYTES", piece_bytes)
    async with MemoryBroker(**SETTINGS) as memory:
        for number in range(20):
            await begin(memory, f"id-{number}")
        before = {one.id: one for one in memory.broker.transactions}
    async with MemoryBroker(memory.storage, **SETTINGS) as again:
        assert {one.id for one in again.broker.transactions} == set(before)


async def test_requests_without_a_transactional_id_are_refused() -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        memory.topic()
        wire = memory.connect()
        topics = [AddPartitionsToTxnTopic(name="t", partitions=[0])]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="",
            v3_and_below_producer_id=1,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=topics,
        )
        (topic,) = (await wire.ask(request, 3)).results_by_topic_v3_and_below
        assert topic.results_by_partition[0].partition_error_code == ErrorCode.INVALID_REQUEST
        offsets = AddOffsetsToTxnRequest(transactional_id="", producer_id=1, producer_epoch=0, group_id="g")
        assert (await wire.ask(offsets, 3)).error_code == ErrorCode.INVALID_REQUEST


async def test_offsets_of_topics_that_do_not_exist_leave_the_transaction_alone() -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        place = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        request = TxnOffsetCommitRequest(
            transactional_id="x",
            group_id="g",
            producer_id=1,
            producer_epoch=0,
            topics=[TxnOffsetCommitRequestTopic(name="gone", partitions=[place])],
        )
        (topic,) = (await memory.connect().ask(request, 3)).topics
        assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_where_something_is_denied_nothing_is_added() -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        memory.topic()
        topics = [AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in ("t", "secret", "gone")]
        results = transactions.none_added(memory.broker.cluster, topics, {"secret"})
        assert {one.name: one.results_by_partition[0].partition_error_code for one in results} == {
            "t": ErrorCode.OPERATION_NOT_ATTEMPTED,
            "secret": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "gone": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
