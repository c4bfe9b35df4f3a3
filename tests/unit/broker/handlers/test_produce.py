"""Produce: which answer comes when, what each refusal looks like, and what a failing disk does to it."""

from __future__ import annotations

import asyncio

import pytest

from horolog.broker.base.metrics import Metrics
from horolog.broker.cluster.cluster_state import Lead
from horolog.broker.cluster.placement import NOBODY, Endpoint
from horolog.broker.commit.committer import Committer
from horolog.broker.commit.safety import NotSafe
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import ListGroupsRequest
from horolog.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.support import raw_records as raw
from tests.support import transactional
from tests.support.at_once import at_once
from tests.support.memory_broker import NOW_MS, MemoryBroker

V2 = raw.batch([raw.record(b"value")], base_timestamp=NOW_MS, max_timestamp=NOW_MS)
V1 = raw.message(b"value", timestamp=NOW_MS)
VERSIONS = range(14)


def request(
    *parts: tuple[str | bytes, int, bytes | None], acks: int = 1, transaction: str | None = None
) -> ProduceRequest:
    topics = [
        TopicProduceData(
            **({"name": name} if isinstance(name, str) else {"topic_id": name}),
            partition_data=[PartitionProduceData(index=index, records=records)],
        )
        for name, index, records in parts
    ]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics, transactional_id=transaction)


def records_for(version: int) -> bytes:
    return V1 if version < 3 else V2


def only(response):
    (topic,) = response.responses
    (answer,) = topic.partition_responses
    return answer


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("acks", [1, -1])
async def test_every_version_appends_and_names_the_offset(version: int, acks: int) -> None:
    async with MemoryBroker() as memory:
        topic = memory.topic()
        client = memory.connect()
        name = topic.name if version <= 12 else topic.id
        for expected in (0, 1):
            answer = only(await client.ask(request((name, 0, records_for(version)), acks=acks), version))
            assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (0, expected, -1)
        assert topic.find(0).high_watermark == 2


async def test_acks_zero_gets_no_answer() -> None:
    async with MemoryBroker() as memory:
        topic = memory.topic()
        client = memory.connect()
        client.send(request(("t", 0, V2), acks=0), 9)
        answer = only(await client.ask(request(("t", 0, V2)), 9))
        assert answer.base_offset == 1
        assert client.answers() == 0
        assert topic.find(0).high_watermark == 2


class NeverSafe:
    """Holds all commits, and refuses each of them at the word of the test."""

    holds_all = True

    def __init__(self):
        self.calls, self.second, self.wait_s, self.refuses = [], asyncio.Event(), 0.0, False

    def producers_wait_s(self):
        return self.wait_s

    def make_safe(self, partitions, done):
        self.calls.append((partitions, done))
        if len(self.calls) == 2:
            self.second.set()
        if self.refuses:
            self.refuse_all()

    def refuse_all(self):
        self.refuses = True
        while self.calls:
            partitions, done = self.calls.pop()
            done(dict.fromkeys(partitions, NotSafe("fenced", ErrorCode.NOT_LEADER_OR_FOLLOWER)))


async def test_records_that_are_not_safe_are_refused_with_the_error_of_the_reason() -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        broker, safety = memory.broker, NeverSafe()
        broker.committer = Committer(
            asyncio.get_running_loop(), safety, broker.waiting.changed, Metrics(), memory.clock.monotonic
        )
        sent, client = request(("t", 0, V2)), memory.connect()
        sent.timeout_ms = 1
        assert only(await client.ask(sent, 9)).error_code == ErrorCode.REQUEST_TIMED_OUT
        sent.timeout_ms = 60_000
        client.send(sent, 9)
        await asyncio.wait_for(safety.second.wait(), 60)
        safety.refuse_all()
        assert only(await client.take(sent, 9)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_producers_are_not_read_from_while_too_many_records_are_not_safe() -> None:
    async with MemoryBroker() as memory:
        topic, broker, safety = memory.topic(), memory.broker, NeverSafe()
        broker.committer = Committer(
            asyncio.get_running_loop(), safety, broker.waiting.changed, Metrics(), memory.clock.monotonic
        )
        safety.wait_s = 0.5
        client = memory.connect()
        client.send(request(("t", 0, V2)), 9)
        assert client.conversation.is_muted
        assert not safety.calls
        assert topic.find(0).log_end_offset == 0
        safety.wait_s = 0.0
        client.conversation.mute(0)
        assert topic.find(0).log_end_offset == 1
        other = memory.connect()
        safety.wait_s = 0.5
        assert (await other.ask(ListGroupsRequest(), 4)).error_code == 0
        safety.refuse_all()  # a stop would wait for it


async def test_a_refusal_with_acks_zero_closes_the_connection() -> None:
    async with MemoryBroker() as memory:
        client = memory.connect()
        client.send(request(("nowhere", 0, V2), acks=0), 9)
        assert client.closed


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        (("nowhere", 0, V2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("t", 1, V2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("t", -1, V2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("t", 0, V2[:-1] + b"!"), ErrorCode.CORRUPT_MESSAGE),
        (("t", 0, b""), ErrorCode.INVALID_RECORD),
    ],
)
async def test_refusals_leave_the_log_alone(parts: tuple[str, int, bytes], code: ErrorCode) -> None:
    async with MemoryBroker() as memory:
        topic = memory.topic()
        answer = only(await memory.connect().ask(request(parts), 9))
        assert (answer.error_code, answer.base_offset) == (code, -1)
        assert topic.find(0).log_end_offset == 0


async def test_an_unknown_topic_id_is_told_as_such() -> None:
    async with MemoryBroker() as memory:
        answer = only(await memory.connect().ask(request((b"\7" * 16, 0, V2)), 13))
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("acks", [2, -2, 100])
async def test_acks_must_be_one_of_three(acks: int) -> None:
    async with MemoryBroker() as memory:
        topic = memory.topic()
        answer = only(await memory.connect().ask(request(("t", 0, V2), acks=acks), 9))
        assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS
        assert topic.find(0).log_end_offset == 0


async def test_a_refused_time_names_the_record_and_the_bound() -> None:
    async with MemoryBroker() as memory:
        memory.topic(max_message_time_difference_ms=1000)
        records = [raw.record(), raw.record(offset_delta=1, timestamp_delta=-5000)]
        late = raw.batch(records, base_timestamp=NOW_MS, max_timestamp=NOW_MS)
        answer = only(await memory.connect().ask(request(("t", 0, late)), 9))
        assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
        assert [one.batch_index for one in answer.record_errors] == [1]
        assert "5000" in str(answer.record_errors[0].batch_index_error_message)


async def test_one_refused_partition_does_not_hold_the_others_back() -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        response = await memory.connect().ask(request(("t", 0, V2), ("nowhere", 0, V2)), 9)
        codes = [topic.partition_responses[0].error_code for topic in response.responses]
        assert codes == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


async def test_of_a_partition_named_twice_the_last_counts() -> None:
    async with MemoryBroker() as memory:
        topic = memory.topic()
        twice = request(("t", 0, V2))
        twice.topic_data[0].partition_data *= 2
        only(await memory.connect().ask(twice, 9))
        assert topic.find(0).log_end_offset == 1


async def test_a_transactional_batch_needs_a_transactional_id() -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        batch = raw.batch([raw.record()], attributes=0x10, producer=(1, 0, 0), base_timestamp=NOW_MS)
        answer = only(await memory.connect().ask(request(("t", 0, batch)), 9))
        assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("version", "code"), [(3, ErrorCode.NOT_LEADER_OR_FOLLOWER), (9, ErrorCode.KAFKA_STORAGE_ERROR)]
)
@pytest.mark.parametrize("acks", [1, -1])
async def test_a_full_disk_is_told_at_once_and_writing_goes_on_after(version: int, code: ErrorCode, acks: int) -> None:
    async with MemoryBroker() as memory:
        topic = memory.topic()
        client = memory.connect()
        assert only(await client.ask(request(("t", 0, V2), acks=acks), version)).error_code == 0
        memory.storage.fail("write", ".log", times=1)
        answer = only(await client.ask(request(("t", 0, V2), acks=acks), version))
        assert (answer.error_code, answer.base_offset) == (code, -1)
        answer = only(await client.ask(request(("t", 0, V2), acks=acks), version))
        assert (answer.error_code, answer.base_offset) == (0, 1)
        assert topic.find(0).high_watermark == 2


async def test_acks_all_survives_a_power_cut_and_acks_one_need_not() -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        client = memory.connect()
        only(await client.ask(request(("t", 0, V2), acks=-1), 9))
        storage = memory.storage
        only(await client.ask(request(("t", 0, V2), acks=1), 9))
        memory.broker.logs.abandon()
        storage.crash()
        memory.broker.logs.partitions.clear()
    async with MemoryBroker(storage) as memory:
        assert 1 <= memory.broker.cluster.topics["t"].find(0).high_watermark <= 2


async def test_flush_messages_makes_every_answer_durable() -> None:
    async with MemoryBroker() as memory:
        partition = memory.topic(flush_messages=1).find(0)
        client = memory.connect()
        only(await client.ask(request(("t", 0, V2), acks=1), 9))
        assert partition.sync_state.recovery_point == 1


async def test_the_setting_that_relaxes_acks_all() -> None:
    async with MemoryBroker(horolog_acks_all_sync="false") as memory:
        partition = memory.topic().find(0)
        only(await memory.connect().ask(request(("t", 0, V2), acks=-1), 9))
        assert partition.sync_state.recovery_point == 0


def all_codes(response) -> list[int]:
    return [answer.error_code for topic in response.responses for answer in topic.partition_responses]


async def test_a_write_that_fails_is_told_for_its_partition_alone() -> None:
    async with MemoryBroker() as memory:
        memory.topic(partitions=3)
        client = memory.connect()
        memory.storage.fail("write", "/t-1/0000", times=1)
        answer = await client.ask(request(("t", 0, V2), ("t", 1, V2), ("nowhere", 0, V2), ("t", 2, V2)), 9)
        assert all_codes(answer) == [0, ErrorCode.KAFKA_STORAGE_ERROR, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert only(await client.ask(request(("t", 1, V2)), 9)).base_offset == 0


async def test_what_a_tick_has_answered_leaves_at_once() -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        client = memory.connect()
        taken: list[int] = []
        client.output_ready = lambda: taken.append(len(client.conversation.take_output()))  # type: ignore[method-assign]
        for _ in range(3):
            client.send(request(("t", 0, V2)), 9)
        await memory.broker.committer.drain()
        assert taken == [3]


async def test_an_answer_leaves_before_a_refusal_closes_the_connection() -> None:
    async with MemoryBroker() as memory:
        memory.topic(partitions=2)
        client = memory.connect()
        memory.storage.fail("write", "/t-1/0000", times=1)
        client.send(request(("t", 0, V2)), 9)
        client.send(request(("t", 1, V2), acks=0), 9)
        await memory.broker.committer.drain()
        assert (client.answers(), client.closed) == (1, True)


async def test_a_topic_that_was_made_anew_is_found_anew() -> None:
    async with MemoryBroker() as memory:
        client = memory.connect()
        before = memory.topic()
        for _ in range(2):
            assert only(await client.ask(request(("t", 0, V2)), 9)).error_code == 0
        assert only(await client.ask(request((before.id, 0, V2)), 13)).base_offset == 2
        cluster = memory.broker.cluster
        at_once(cluster.delete_topics, {"t": cluster.topics["t"].id})
        gone = [only(await client.ask(request((key, 0, V2)), version)) for key, version in (("t", 9), (before.id, 13))]
        assert [one.error_code for one in gone] == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_ID,
        ]
        memory.topic(message_timestamp_type="LogAppendTime")
        answer = only(await client.ask(request(("t", 0, V2)), 9))
        assert (answer.base_offset, answer.log_append_time_ms) == (0, NOW_MS)


async def test_a_configuration_counts_from_the_next_request_on() -> None:
    async with MemoryBroker() as memory:
        topic = memory.topic()
        client = memory.connect()
        assert only(await client.ask(request(("t", 0, V2)), 9)).log_append_time_ms == -1
        overrides = {"message.timestamp.type": "LogAppendTime"}
        topic.configure(overrides, memory.broker.cluster.topic_config(overrides))
        assert only(await client.ask(request(("t", 0, V2)), 9)).log_append_time_ms == NOW_MS


async def test_an_offline_partition_is_told_as_the_version_knows_it() -> None:
    async with MemoryBroker() as memory:
        memory.topic().find(0).condition.go_offline("its folder is gone")
        client = memory.connect()
        for version, code in ((3, ErrorCode.NOT_LEADER_OR_FOLLOWER), (9, ErrorCode.KAFKA_STORAGE_ERROR)):
            assert only(await client.ask(request(("t", 0, V2)), version)).error_code == code


async def test_null_records_end_the_conversation() -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        for transaction in (None, "x"):
            client = memory.connect()
            client.send(request(("t", 0, None), transaction=transaction), 9)
            assert client.closed


async def test_a_request_in_a_transaction_is_served_as_far_as_its_batches_belong_to_it() -> None:
    batch = raw.batch([raw.record(b"value")], base_timestamp=NOW_MS, attributes=0x10, producer=(7, 0, 0))
    async with MemoryBroker() as memory:
        memory.topic(partitions=2)
        client = memory.connect()
        answer = await client.ask(request(("t", 0, V2), ("t", 1, batch), ("no", 0, V2), transaction="x"), 9)
        served, refused, unknown = all_codes(answer)
        assert (served, unknown) == (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert refused not in {0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.parametrize("version", [9, 10, 12, 13])
async def test_a_producer_learns_who_leads_a_partition_that_is_not_here(version: int) -> None:
    """KIP-951: it need not ask for Metadata, and Java's does not pause."""
    async with MemoryBroker() as memory:
        topic = memory.topic(partitions=4)
        placement = memory.broker.placement
        for index in (1, 2, 3):
            topic.put(index, None)
        leads = {1: Lead(2, 4), 2: Lead(2, 5), 3: NOBODY}
        placement.lead = lambda topic_id, index: leads[index]
        placement.brokers = lambda listener: [Endpoint(1, "one", 9001), Endpoint(2, listener, 9002, "b")]
        name = topic.name if version <= 12 else topic.id
        response = await memory.connect().ask(request(*((name, index, V2) for index in range(4))), version)
        answers = {one.index: one for of in response.responses for one in of.partition_responses}
        refused = ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert [answers[index].error_code for index in range(4)] == [0, refused, refused, refused]
        named = [answers[index].current_leader for index in range(4)]
        if version < 10:
            assert (named, response.node_endpoints) == ([None] * 4, [])
        else:
            assert named == [
                None if one is None else LeaderIdAndEpoch(leader_id=2, leader_epoch=one) for one in (None, 4, 5, None)
            ]
            assert response.node_endpoints == [NodeEndpoint(node_id=2, host="PLAINTEXT", port=9002, rack="b")]


async def test_a_producer_is_not_sent_to_a_broker_that_opens_a_partition_itself() -> None:
    async with MemoryBroker() as memory:
        topic = memory.topic()
        topic.put(0, None)
        memory.broker.placement.lead = lambda topic_id, index: Lead(memory.broker.placement.me, 4)
        response = await memory.connect().ask(request((topic.name, 0, V2)), 12)
        assert only(response).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (only(response).current_leader, response.node_endpoints) == (None, [])


@pytest.mark.parametrize(("code", "appended"), [(ErrorCode.INVALID_TXN_STATE, 0), (ErrorCode.NONE, 2)])
async def test_nothing_is_appended_behind_a_refused_request_without_an_answer(code, appended) -> None:
    """It has waited for its turn meanwhile, for the coordinator's word on the first one."""
    answers = []
    async with MemoryBroker() as memory:
        partition = memory.topic().find(0)
        memory.broker.joining.verify = lambda _id, _producer, _place, done: answers.append(done)
        client = memory.connect()
        client.send(request(("t", 0, transactional.batch([b"v"], 7, 0, 0)), acks=0, transaction="x"), 11)
        client.send(request(("t", 0, V2), acks=0, transaction="x"), 11)
        assert (len(answers), partition.log_end_offset) == (1, 0)
        answers.pop()(code)
        assert (partition.log_end_offset, client.closed) == (appended, appended == 0)
