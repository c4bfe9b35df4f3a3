"""Requests in a transaction whose coordinator answers later: they wait, and in order."""

import pytest

from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.support import raw_records as raw
from tests.support.memory_broker import NOW_MS, MemoryBroker
from tests.support.transactional import Producer, batch

PLAIN = raw.batch([raw.record()], base_timestamp=NOW_MS, max_timestamp=NOW_MS)
NONE, FENCED = ErrorCode.NONE, ErrorCode.PRODUCER_FENCED


class LateCoordinator:
    """Between the handlers and the coordinator: every question is asked when the test says so, in any order."""

    def __init__(self, coordinator):
        self._coordinator = coordinator
        self.asked = []

    def __getattr__(self, name):
        return getattr(self._coordinator, name)

    def add(self, *arguments):
        self.asked.append((self._coordinator.add, arguments))

    def verify(self, *arguments):
        self.asked.append((self._coordinator.verify, arguments))

    def places(self):
        """The partitions that each question names."""
        return [arguments[2] for _, arguments in self.asked]

    def answer(self, place=0):
        method, arguments = self.asked.pop(place)
        method(*arguments)

    def refuse(self, code, place=0):
        _, arguments = self.asked.pop(place)
        arguments[-1](code)


@pytest.fixture
async def memory():
    async with MemoryBroker(transaction_state_log_num_partitions=2, offsets_topic_num_partitions=2) as memory:
        yield memory


async def begin(memory):
    producer = Producer(memory.connect(), "x")
    assert await producer.initialize() == 0
    memory.broker.transactions = memory.broker.joining = LateCoordinator(memory.broker.transactions)
    return producer, memory.broker.transactions


def request(producer, *wanted):
    """One Produce with a record for each (index, sequence)."""
    data = [
        PartitionProduceData(index=index, records=batch([b"v"], producer.id, producer.epoch, sequence))
        for index, sequence in wanted
    ]
    topics = [TopicProduceData(name="t", partition_data=data)]
    return ProduceRequest(transactional_id="x", acks=1, timeout_ms=1000, topic_data=topics)


def codes(answer):
    return [one.error_code for one in answer.responses[0].partition_responses]


async def test_a_produce_waits_for_its_verification_and_later_ones_wait_behind_it(memory):
    topic, (producer, late) = memory.topic(partitions=2), await begin(memory)
    wires = [memory.connect() for _ in range(3)]
    for sequence, wire in enumerate(wires):
        wire.send(request(producer, (0, sequence)), 12)
    assert late.places() == [[("t", 0)]]  # the others are not even asked about: they would be known by then
    assert topic.find(0).log_end_offset == 0
    late.answer()
    late.answer()
    late.answer()
    answers = [await wire.take(request(producer, (0, 0)), 12) for wire in wires]
    assert [codes(answer) for answer in answers] == [[NONE]] * 3
    assert [one.responses[0].partition_responses[0].base_offset for one in answers] == [0, 1, 2]


async def test_what_is_behind_a_batch_that_has_to_be_sent_again_has_to_be_sent_again_too(memory):
    """Otherwise it leaves a gap where the partition knows the producer, and librdkafka aborts the transaction."""
    topic, (producer, late) = memory.topic(), await begin(memory)

    async def sent(*sequences, refusals=()):
        wires = [memory.connect() for _ in sequences]
        for sequence, wire in zip(sequences, wires, strict=True):
            wire.send(request(producer, (0, sequence)), 12)
        for code in refusals:
            late.refuse(code)
        while late.asked:
            late.answer()
        answers = [await wire.take(request(producer, (0, 0)), 12) for wire in wires]
        return [code for answer in answers for code in codes(answer)]

    assert await sent(0) == [NONE]
    refused = await sent(1, 2, 3, refusals=[ErrorCode.COORDINATOR_NOT_AVAILABLE])
    assert refused == [ErrorCode.NOT_ENOUGH_REPLICAS] * 3
    assert await sent(1, 2, 3) == [NONE] * 3
    assert topic.find(0).log_end_offset == 4


@pytest.mark.parametrize("comes_back", [False, True])
async def test_a_partition_that_has_come_here_while_the_coordinator_was_asked_takes_nothing(memory, comes_back):
    """Nobody has made it part of the transaction, or its own refusal was meant for what it was before."""
    topic, (producer, late) = memory.topic(partitions=2), await begin(memory)
    cluster, moved, wire = memory.broker.cluster, topic.find(1), memory.connect()
    if not comes_back:
        topic.put(1, None)
    wire.send(request(producer, (0, 0), (1, 0)), 12)
    assert late.places() == [[("t", 0)], [("t", 1)]][: 1 + comes_back]
    if comes_back:
        late.refuse(FENCED, 1)
        known = cluster._logs
        known.forget(moved)
        moved = known.take_over("t", 1, topic.config, topic.id, None, was_clean=True)
    topic.put(1, moved)
    cluster.partition_cache.clear()
    late.answer()
    assert codes(await wire.take(request(producer, (0, 0)), 12)) == [NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert (topic.find(0).log_end_offset, moved.log_end_offset) == (1, 0)


async def test_other_partitions_and_other_producers_do_not_wait(memory):
    topic, (producer, late) = memory.topic(partitions=2), await begin(memory)
    first, second, third = (memory.connect() for _ in range(3))
    first.send(request(producer, (0, 0)), 12)
    second.send(request(producer, (1, 0)), 12)
    plain_data = [PartitionProduceData(index=0, records=PLAIN)]
    plain = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=plain_data)])
    assert codes(await third.ask(plain, 12)) == [NONE]
    assert late.places() == [[("t", 0)], [("t", 1)]]
    late.answer(1)
    assert codes(await second.take(plain, 12)) == [NONE]
    late.answer()
    assert codes(await first.take(plain, 12)) == [NONE]
    assert (topic.find(0).log_end_offset, topic.find(1).log_end_offset) == (2, 1)


async def test_answers_about_several_partitions_may_come_in_any_order(memory):
    topic, (producer, late) = memory.topic(partitions=2), await begin(memory)
    first, second = memory.connect(), memory.connect()
    first.send(request(producer, (0, 0), (1, 0)), 12)
    second.send(request(producer, (1, 1)), 12)
    late.refuse(FENCED, 1)
    assert (topic.find(0).log_end_offset, len(late.asked)) == (0, 1)
    late.answer()
    assert codes(await first.take(request(producer, (0, 0)), 12)) == [NONE, ErrorCode.INVALID_PRODUCER_EPOCH]
    late.answer()
    assert codes(await second.take(request(producer, (1, 1)), 12)) == [NONE]
    assert (topic.find(0).log_end_offset, topic.find(1).log_end_offset) == (1, 1)


async def test_what_is_deleted_meanwhile_is_not_there_afterwards(memory):
    memory.topic()
    producer, late = await begin(memory)
    wire = memory.connect()
    wire.send(request(producer, (0, 0)), 12)
    memory.broker.cluster.delete_topics({"t": memory.broker.cluster.topics["t"].id}, lambda failures: None)
    late.refuse(NONE)
    assert codes(await wire.take(request(producer, (0, 0)), 12)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


async def test_a_client_that_has_gone_takes_its_request_with_it_in_order(memory):
    topic, (producer, late) = memory.topic(), await begin(memory)
    gone, other = memory.connect(), memory.connect()
    gone.send(request(producer, (0, 0)), 12)
    other.send(request(producer, (0, 1)), 12)
    gone.conversation.lost()
    late.answer()
    late.answer()
    assert codes(await other.take(request(producer, (0, 1)), 12)) == [NONE]
    assert topic.find(0).log_end_offset == 2


async def test_partitions_of_several_transactions_are_added_whenever_each_is_known(memory):
    memory.topic(partitions=2)
    producer, late = await begin(memory)
    wire = memory.connect()
    transactions = [
        AddPartitionsToTxnTransaction(
            transactional_id="x",
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name="t", partitions=[0, 1])],
        )
        for verify_only in (False, True)
    ]
    asked = AddPartitionsToTxnRequest(transactions=transactions)
    wire.send(asked, 4)
    assert late.places() == [[("t", 0), ("t", 1)], ("t", 0), ("t", 1)]
    late.answer(2)
    late.answer(0)
    late.answer(0)
    answer = await wire.take(asked, 4)
    found = [
        [one.partition_error_code for one in each.topic_results[0].results_by_partition]
        for each in answer.results_by_transaction
    ]
    assert found == [[NONE, NONE], [NONE, ErrorCode.TRANSACTION_ABORTABLE]]


async def test_a_group_is_added_when_the_coordinator_says_so(memory):
    producer, late = await begin(memory)
    wire = memory.connect()
    asked = AddOffsetsToTxnRequest(
        transactional_id="x", producer_id=producer.id, producer_epoch=producer.epoch, group_id="g"
    )
    wire.send(asked, 3)
    assert wire.answers() == 0
    late.answer()
    assert (await wire.take(asked, 3)).error_code == NONE


def commit(producer, offset):
    partition = TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_leader_epoch=-1, committed_metadata=""
    )
    return TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        generation_id=-1,
        member_id="",
        group_instance_id=None,
        topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
    )


async def test_offsets_of_a_transaction_are_committed_in_order(memory):
    memory.topic()
    producer, late = await begin(memory)
    wires = [memory.connect(), memory.connect()]
    for offset, wire in enumerate(wires, start=5):
        wire.send(commit(producer, offset), 5)
    assert len(late.asked) == 1
    late.answer()
    late.answer()
    for wire in wires:
        assert (await wire.take(commit(producer, 5), 5)).topics[0].partitions[0].error_code == NONE
    assert await producer.end(commit=True, version=5) == 0
    assert memory.broker.groups.registry.groups["g"].offsets.get(("t", 0)).offset == 6


async def test_a_commit_that_fails_lets_the_next_be_asked_about(memory, monkeypatch):
    memory.topic()
    producer, late = await begin(memory)
    wires = [memory.connect(), memory.connect()]
    for offset, wire in enumerate(wires, start=5):
        wire.send(commit(producer, offset), 5)
    with monkeypatch.context() as patch:
        patch.setattr(memory.broker.groups, "txn_commit", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            late.answer()
    late.answer()
    assert (await wires[1].take(commit(producer, 6), 5)).topics[0].partitions[0].error_code == NONE
