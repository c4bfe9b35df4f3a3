"""Fetch: what each version gets, how long it waits for it, and how sessions and limits shape the answer."""

from __future__ import annotations

import asyncio

import pytest

from horolog.broker.cluster.cluster_state import Lead
from horolog.broker.cluster.placement import Endpoint
from horolog.broker.log.partition import SERVING
from horolog.broker.log.segments.upconversion import AT_ONCE_BYTES, CHUNK_BYTES
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.topics import DeleteTopicsRequest
from horolog.protocol.records.entries import iter_records
from horolog.protocol.records.head import heads_in
from tests.support import raw_records as raw
from tests.support.at_once import at_once
from tests.support.memory_broker import NOW_MS, MemoryBroker, Wire
from tests.support.on_its_way import OnItsWay


def batch(*values: bytes, **fields: int) -> bytes:
    records = [raw.record(value, offset_delta=index) for index, value in enumerate(values)]
    return raw.batch(records, base_timestamp=NOW_MS, max_timestamp=NOW_MS, **fields)


async def put(client: Wire, records: bytes, name: str = "t", index: int = 0, version: int = 9) -> None:
    data = [TopicProduceData(name=name, partition_data=[PartitionProduceData(index=index, records=records)])]
    response = await client.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=data), version)
    assert response.responses[0].partition_responses[0].error_code == 0


def fetch(
    *parts: tuple[str | bytes, int, int], max_bytes: int = 2**20, wait_ms: int = 0, **fields: object
) -> FetchRequest:
    topics = [
        FetchTopic(
            **({"topic": name} if isinstance(name, str) else {"topic_id": name}),
            partitions=[FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes)],
        )
        for name, index, offset in parts
    ]
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=1, topics=topics, **fields)  # type: ignore[arg-type]


def only(response):
    (topic,) = response.responses
    (answer,) = topic.partitions
    return answer


def values(answer) -> list[bytes | None]:
    return [record.value for record in iter_records(answer.records)]


@pytest.mark.parametrize("version", range(19))
async def test_every_version_reads_what_newer_and_older_producers_wrote(version: int) -> None:
    async with MemoryBroker() as memory:
        topic = memory.topic()
        client = memory.connect()
        await put(client, raw.message(b"old", timestamp=NOW_MS), version=2)
        await put(client, batch(b"new", b"newer"))
        answer = only(await client.ask(fetch((topic.name if version < 13 else topic.id, 0, 0)), version))
        assert (answer.error_code, answer.high_watermark) == (0, 3)
        assert values(answer) == [b"old", b"new", b"newer"]
        most = 0 if version < 2 else 1 if version < 4 else 2
        assert max(entry.magic for entry in heads_in(answer.records)) == most
        if version >= 4:
            assert {entry.magic for entry in heads_in(answer.records)} == {2}
            assert (answer.last_stable_offset, answer.aborted_transactions) == (3, None)


async def test_a_message_is_cut_for_old_versions_and_whole_for_new_ones() -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        client = memory.connect()
        await put(client, raw.message(b"x" * 500), version=2)
        for version, size in ((0, 60), (2, 60), (3, 534), (4, 570)):
            stored = 534 - 8 if version == 0 else 534
            answer = only(await client.ask(fetch(("t", 0, 0), max_bytes=60), version))
            assert len(answer.records) in {size, min(size, stored)}, version


async def test_a_topic_can_ask_for_what_is_stored() -> None:
    async with MemoryBroker() as memory:
        memory.topic(horolog_message_upconversion_enable="false")
        memory.topic("u")
        client = memory.connect()
        for name in ("t", "u"):
            await put(client, raw.message(b"old", timestamp=NOW_MS), name=name, version=2)
        assert bytes(only(await client.ask(fetch(("t", 0, 0)), 4)).records) == raw.message(b"old", timestamp=NOW_MS)
        (entry,) = heads_in(only(await client.ask(fetch(("u", 0, 0)), 4)).records)
        assert (entry.magic, entry.max_timestamp) == (2, NOW_MS)
        at_once(memory.broker.cluster.alter_broker_configs, "", {"horolog.log.message.upconversion.enable": "false"})
        assert bytes(only(await client.ask(fetch(("u", 0, 0)), 4)).records) == raw.message(b"old", timestamp=NOW_MS)


async def test_one_request_has_only_so_much_converted_and_goes_on_with_the_next() -> None:
    async with MemoryBroker() as memory:
        memory.topic(partitions=4)
        client = memory.connect()
        messages = b"".join(raw.message(b"x" * 900, timestamp=NOW_MS) for _ in range(600))
        for index in range(4):
            await put(client, messages, index=index, version=2)
        offsets, rounds = [0] * 4, 0
        while min(offsets) < 600:
            parts = [("t", index, offset) for index, offset in enumerate(offsets) if offset < 600]
            response = await client.ask(fetch(*parts), 4)
            answers = response.responses[0].partitions
            assert 0 < sum(len(answer.records) for answer in answers) < AT_ONCE_BYTES + 2 * CHUNK_BYTES
            for answer in answers:
                offsets[answer.partition_index] += len(values(answer))
            rounds += 1
        assert rounds == 3
        response = await client.ask(fetch(*[("t", index, 0) for index in range(4)]), 4)
        assert [len(values(answer)) for answer in response.responses[0].partitions] == [600] * 4, "all remembered"


async def test_damage_is_not_given_a_checksum_of_its_own() -> None:
    async with MemoryBroker() as memory:
        topic = memory.topic()
        client = memory.connect()
        await put(client, raw.message(b"good", timestamp=NOW_MS) + raw.message(b"flip", timestamp=NOW_MS), version=2)
        (segment,) = topic.find(0).segments
        segment.log.pwritev([b"F"], segment.size_bytes - 4)
        answer = only(await client.ask(fetch(("t", 0, 0)), 4))
        assert values(answer) == [b"good"]
        answer = only(await client.ask(fetch(("t", 0, 1)), 6))
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert len(memory.broker.logs.resources.rescan_queue) == 1


async def test_data_that_comes_ends_the_wait() -> None:
    async with MemoryBroker() as memory:
        memory.topic(partitions=2)
        waiting, producing = memory.connect(), memory.connect()
        request = fetch(("t", 0, 0), ("t", 1, 0), wait_ms=30_000)
        waiting.send(request, 4)
        await asyncio.sleep(0.01)
        assert waiting.answers() == 0
        await put(producing, batch(b"v"), index=1)
        response = await waiting.take(request, 4)
        (topic,) = response.responses
        assert [values(answer) for answer in topic.partitions] == [[], [b"v"]]
        assert len(memory.broker.waiting) == 0


async def test_too_little_data_waits_for_more_and_time_ends_it() -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        client = memory.connect()
        await put(client, batch(b"v"))
        request = fetch(("t", 0, 0), wait_ms=50)
        request.min_bytes = 100_000
        answer = only(await client.ask(request, 4))
        assert values(answer) == [b"v"]


async def test_a_request_behind_a_waiting_fetch_is_answered_after_it() -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        client = memory.connect()
        request = fetch(("t", 0, 0), wait_ms=40)
        first, second = client.send(request, 4), client.send(fetch(("t", 0, 0)), 4)
        assert first < second
        assert client.answers() == 0
        only(await client.take(request, 4))
        only(await client.take(request, 4))


async def test_a_client_that_goes_away_no_longer_waits() -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        client = memory.connect()
        client.send(fetch(("t", 0, 0), wait_ms=30_000), 4)
        assert len(memory.broker.waiting) == 1
        client.conversation.lost()
        assert len(memory.broker.waiting) == 0


async def test_fetches_beyond_the_bound_on_waiting_ones_are_answered_at_once() -> None:
    async with MemoryBroker(horolog_fetch_waiting_max_bytes=10_000) as memory:
        memory.topic()
        client, other = memory.connect(), memory.connect()
        request = fetch(("t", 0, 0), wait_ms=30_000)
        while len(memory.broker.waiting) < 4:
            client.send(request, 4)
            assert client.answers() == 0
        assert values(only(await other.ask(request, 4))) == []
        assert memory.broker.waiting.held_bytes <= 10_000
        client.conversation.lost()
        other.send(request, 4)
        assert other.answers() == 0


async def test_when_answers_pile_up_a_fetch_gets_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        client = memory.connect()
        for _ in range(3):
            await put(client, batch(b"v"))
        assert values(only(await client.ask(fetch(("t", 0, 0)), 4))) == [b"v"] * 3
        monkeypatch.setattr("horolog.broker.network.conversation.Conversation.room_for_answer_bytes", 0)
        assert values(only(await client.ask(fetch(("t", 0, 0)), 4))) == [b"v"]


async def test_deleting_the_topic_ends_the_wait_with_its_error() -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        waiting, admin = memory.connect(), memory.connect()
        request = fetch(("t", 0, 0), wait_ms=30_000)
        waiting.send(request, 4)
        await admin.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 1)
        assert only(await waiting.take(request, 4)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("offset", [-1, 2, 2**63 - 1])
async def test_offsets_outside_of_the_log(offset: int) -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        client = memory.connect()
        await put(client, batch(b"v"))
        answer = only(await client.ask(fetch(("t", 0, offset), wait_ms=30_000), 4))
        assert (answer.error_code, answer.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


async def test_epochs_are_checked() -> None:
    async with MemoryBroker() as memory:
        partition = memory.topic().find(0)
        partition.leader_epoch = 5
        client = memory.connect()
        await put(client, batch(b"v"))
        for claimed, code in ((-1, 0), (5, 0), (6, ErrorCode.UNKNOWN_LEADER_EPOCH), (4, ErrorCode.FENCED_LEADER_EPOCH)):
            request = fetch(("t", 0, 0))
            request.topics[0].partitions[0].current_leader_epoch = claimed
            assert only(await client.ask(request, 9)).error_code == code


async def sized(client: Wire, count: int, size: int) -> int:
    """As many partitions with two batches each; the size of a batch."""
    for index in range(count):
        for _ in range(2):
            await put(client, batch(bytes(size)), index=index)
    return len(only(await client.ask(fetch(("t", 0, 0)), 4)).records) // 2


def sizes(response) -> list[int]:
    return [len(answer.records) for topic in response.responses for answer in topic.partitions]


async def test_where_the_first_batch_of_a_later_partition_does_not_fit_it_is_left_empty() -> None:
    async with MemoryBroker() as memory:
        memory.topic(partitions=4)
        client = memory.connect()
        one = await sized(client, 4, 500)
        asked = [("t", index, 0) for index in range(4)]
        for version in (4, 12):
            fitting = fetch(*asked, max_bytes=one * 2 - 1)
            fitting.max_bytes = one * 5 - 3
            assert sizes(await client.ask(fitting, version)) == [one * 2 - 1, one * 2 - 1, 0, 0]
        small = fetch(*asked, max_bytes=one - 1)
        assert sizes(await client.ask(small, 12)) == [one, 0, 0, 0], "of batches larger than their partition may give"


async def test_no_wait_for_more_where_only_the_limit_of_the_answer_keeps_it_small() -> None:
    async with MemoryBroker() as memory:
        memory.topic(partitions=2)
        client = memory.connect()
        one = await sized(client, 2, 500)
        request = fetch(("t", 0, 1), ("t", 1, 0), wait_ms=60_000)
        request.min_bytes, request.max_bytes = one + 1, one * 2 - 1
        assert sizes(await client.ask(request, 12)) == [one, 0]
        request.min_bytes = one * 10
        assert sizes(await client.ask(request, 12)) == [one, 0], "no more than the answer may have is waited for"


async def test_no_wait_for_more_at_the_end_of_a_segment() -> None:
    async with MemoryBroker() as memory:
        memory.topic(segment_bytes=1000, segment_index_bytes=240)
        client = memory.connect()
        for _ in range(3):
            await put(client, batch(bytes(600)))
        request = fetch(("t", 0, 0), wait_ms=60_000)
        request.min_bytes = 1000
        assert [each.base_offset for each in heads_in(only(await client.ask(request, 12)).records)] == [0]


async def test_aborted_transactions_are_null_where_nothing_fits() -> None:
    async with MemoryBroker() as memory:
        memory.topic(partitions=3)
        client = memory.connect()
        one = await sized(client, 2, 500)
        request = fetch(*(("t", index, 0) for index in range(3)), isolation_level=1)
        request.max_bytes = one * 2
        answer = await client.ask(request, 12)
        assert [each.aborted_transactions for each in answer.responses[0].partitions] == [[], None, []]


async def test_the_whole_answer_is_bounded_but_its_first_batch_comes_whole() -> None:
    async with MemoryBroker() as memory:
        memory.topic("a")
        memory.topic("b")
        client = memory.connect()
        for name in ("a", "b"):
            await put(client, batch(b"x" * 500), name=name)
        response = await client.ask(fetch(("a", 0, 0), ("b", 0, 0), max_bytes=10**6), 4)
        assert [len(topic.partitions[0].records) > 0 for topic in response.responses] == [True, True]
        request = fetch(("a", 0, 0), ("b", 0, 0))
        request.max_bytes = 60
        response = await client.ask(request, 4)
        assert [values(topic.partitions[0]) for topic in response.responses] == [[b"x" * 500], []]


@pytest.mark.parametrize("version", range(4))
async def test_what_grows_in_an_old_format_stays_within_max_bytes(version: int) -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        client = memory.connect()
        digits = [b"%d" % n for n in range(10)]
        first, second = batch(*digits[:5]), batch(*digits[5:])
        await put(client, first)
        await put(client, second)
        request = fetch(("t", 0, 0), max_bytes=len(first + second))
        answer = only(await client.ask(request, version))
        assert values(answer) == digits[:5]
        request.topics[0].partitions[0].fetch_offset = 5
        assert values(only(await client.ask(request, version))) == digits[5:]


async def test_zstd_does_not_go_down_and_is_told_so() -> None:
    async with MemoryBroker() as memory:
        memory.topic(compression_type="zstd")
        client = memory.connect()
        await put(client, batch(b"v" * 100))
        for version in (2, 9):
            assert (
                only(await client.ask(fetch(("t", 0, 0)), version)).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
            )
        assert values(only(await client.ask(fetch(("t", 0, 0)), 10))) == [b"v" * 100]


async def test_conversion_can_be_forbidden() -> None:
    async with MemoryBroker() as memory:
        memory.topic(message_downconversion_enable="false")
        client = memory.connect()
        await put(client, batch(b"v"))
        assert only(await client.ask(fetch(("t", 0, 0)), 3)).error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_a_session_mentions_only_what_has_changed() -> None:
    async with MemoryBroker() as memory:
        memory.topic("a")
        memory.topic("b")
        client = memory.connect()
        await put(client, batch(b"1"), name="a")
        full = await client.ask(fetch(("a", 0, 0), ("b", 0, 0), session_epoch=0), 7)
        assert full.session_id
        assert len(full.responses) == 2

        async def incremental(epoch: int, *parts: tuple[str, int, int], forget: str = ""):
            gone = [ForgottenTopic(topic=forget, partitions=[0])] if forget else []
            request = fetch(*parts, session_id=full.session_id, session_epoch=epoch, forgotten_topics_data=gone)
            return await client.ask(request, 7)

        assert (await incremental(1, ("a", 0, 1))).responses == []
        await put(client, batch(b"2"), name="b")
        (topic,) = (await incremental(2)).responses
        assert (topic.topic, values(topic.partitions[0])) == ("b", [b"2"])
        assert (await incremental(3, forget="b")).responses == []
        assert (await incremental(9)).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        await incremental(-1)
        assert (await incremental(4)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_a_partition_that_is_offline_says_so() -> None:
    async with MemoryBroker() as memory:
        memory.topic().find(0).condition.go_offline("the disk is gone")
        client = memory.connect()
        assert only(await client.ask(fetch(("t", 0, 0)), 5)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert only(await client.ask(fetch(("t", 0, 0)), 6)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        memory.broker.cluster.topics["t"].find(0).condition.state = SERVING


async def test_there_are_no_followers() -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        request = fetch(("t", 0, 0))
        request.replica_id = 77
        assert only(await memory.connect().ask(request, 4)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_reading_an_internal_topic_lets_nobody_write_to_it() -> None:
    async with MemoryBroker() as memory:
        name = memory.topic("__consumer_offsets").name
        client = memory.connect()
        for _ in range(2):
            assert only(await client.ask(fetch((name, 0, 0)), 12)).error_code == 0
            data = [TopicProduceData(name=name, partition_data=[PartitionProduceData(index=0, records=batch(b"v"))])]
            answer = await client.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=data), 9)
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_bytes_on_their_way_are_waited_for_like_records_to_come() -> None:
    async with MemoryBroker() as memory:
        partition = memory.topic().find(0)
        client = memory.connect()
        await put(client, batch(b"a"))
        log = OnItsWay(partition.segments[-1])
        request = fetch(("t", 0, 0), wait_ms=30_000)
        client.send(request, 4)
        assert (client.answers(), len(memory.broker.waiting)) == (0, 1)
        log.arrive(memory.broker, partition)
        assert values(only(await client.take(request, 4))) == [b"a"]


async def test_a_wait_for_bytes_ends_empty_and_in_a_failing_store_with_an_error_that_clients_retry() -> None:
    async with MemoryBroker() as memory:
        partition = memory.topic().find(0)
        client = memory.connect()
        await put(client, batch(b"a"))
        log = OnItsWay(partition.segments[-1])
        answer = only(await client.ask(fetch(("t", 0, 0), wait_ms=20), 6))
        assert (answer.error_code, answer.records, answer.high_watermark) == (0, b"", 1)
        log.has_failed = True
        answer = only(await client.ask(fetch(("t", 0, 0), wait_ms=20), 6))
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR


class Selector:
    """Sends every reader of rack "far" to broker 9, and serves those of rack "near" what it has for them."""

    def __init__(self) -> None:
        self.there, self.asked, self.leader = ErrorCode.NOT_LEADER_OR_FOLLOWER, [], None

    def readers(self, topic, index):
        return [1, 9]

    def preferred(self, partition, offset, reader):
        return 9 if reader.rack == "far" else None

    def followed(self, topic, index, offset, reader, *, committed):
        self.asked.append((topic.name, index, offset, reader.rack, committed))
        return self.there

    def leader_for(self, topic, index, offset, reader):
        return self.leader


async def test_a_reader_is_sent_to_the_broker_of_its_rack_at_once_also_in_a_session() -> None:
    async with MemoryBroker() as memory:
        topic = memory.topic()
        memory.broker.placement.selector = Selector()
        client = memory.connect()
        await put(client, batch(b"new"))
        for version, node in ((10, -1), (11, 9), (18, 9)):
            wanted = fetch((topic.name if version < 13 else topic.id, 0, 0), wait_ms=60_000, rack_id="far")
            answer = only(await client.ask(wanted, version))
            assert (answer.error_code, answer.high_watermark, answer.preferred_read_replica) == (0, 1, node)
            assert bool(answer.records) == (node == -1)
        opened = await client.ask(fetch((topic.id, 0, 1), session_epoch=0, rack_id="near"), 18)
        session = {"session_id": opened.session_id, "wait_ms": 60_000}
        again = await client.ask(fetch(session_epoch=1, rack_id="far", **session), 18)
        assert only(again).preferred_read_replica == 9, "it is news, although nothing else has changed"
        answer = only(await client.ask(fetch((topic.id, 0, 0), rack_id="near"), 18))
        assert values(answer) == [b"new"]
        assert values(only(await client.ask(fetch((topic.id, 0, 0)), 18))) == [b"new"]


@pytest.mark.parametrize("version", [12, 18])
async def test_a_partition_of_another_leader_is_read_by_clients_of_the_rack(version: int) -> None:
    async with MemoryBroker() as memory:
        topic = memory.topic()
        selector = memory.broker.placement.selector = Selector()
        client = memory.connect()
        await put(client, batch(b"new"))
        partition = topic.find(0)
        topic.put(0, None)
        memory.broker.cluster.partition_cache.clear()
        key = topic.name if version < 13 else topic.id
        refused = ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert only(await client.ask(fetch((key, 0, 0)), version)).error_code == refused
        assert selector.asked == []
        wanted = fetch((key, 0, 0), rack_id="near", isolation_level=1)
        assert only(await client.ask(wanted, version)).error_code == refused
        assert selector.asked == [(topic.name, 0, 0, "near", True)]
        selector.leader = 9
        answer = only(await client.ask(wanted, version))
        assert (answer.error_code, answer.preferred_read_replica, answer.records) == (refused, 9, b"")
        selector.there = partition
        assert values(only(await client.ask(wanted, version))) == [b"new"]
        wanted.topics[0].partitions[0].last_fetched_epoch = 0
        assert only(await client.ask(wanted, version)).error_code == refused, (
            "a client that compares logs asks the leader"
        )
        of_broker = fetch((key, 0, 0), rack_id="near", **({"replica_id": 2} if version < 15 else {}))
        if version < 15:
            assert only(await client.ask(of_broker, version)).error_code == refused, "no broker copies from another"
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert only(await client.ask(fetch((key, 7, 0), rack_id="near"), version)).error_code == missing
        topic.put(0, partition)


async def test_a_reader_is_not_sent_away_from_a_failed_partition_and_one_that_waits_gets_its_records() -> None:
    async with MemoryBroker() as memory:
        topic = memory.topic()
        selector = memory.broker.placement.selector = Selector()
        client = memory.connect()
        partition = topic.find(0)
        selector.preferred = lambda *_: None
        waiting = asyncio.ensure_future(client.ask(fetch((topic.id, 0, 0), wait_ms=60_000, rack_id="far"), 18))
        await asyncio.sleep(0)
        await put(memory.connect(), batch(b"new"))
        assert values(only(await waiting)) == [b"new"]
        del selector.preferred
        partition.condition.go_offline("test")
        answer = only(await client.ask(fetch((topic.id, 0, 0), rack_id="far"), 18))
        assert (answer.error_code, answer.preferred_read_replica) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)


@pytest.mark.parametrize("version", [13, 15, 16, 18])
async def test_a_reader_learns_who_leads_a_partition_that_is_not_here_or_in_another_epoch(version: int) -> None:
    """KIP-951, as for a producer. In a session, too."""
    async with MemoryBroker() as memory:
        topic = memory.topic(partitions=3)
        placement, client = memory.broker.placement, memory.connect()
        topic.put(1, None)
        topic.put(2, None)
        leads = {0: Lead(placement.me, 7), 1: Lead(2, 4), 2: Lead(placement.me, 3)}
        placement.lead = lambda topic_id, index: leads[index]
        mine = Endpoint(placement.me, "one", 9001)
        placement.brokers = lambda listener: [mine, Endpoint(2, listener, 9002, "b")]
        topic.find(0).lead(7)
        wanted = fetch(*((topic.id, index, 0) for index in range(3)), session_epoch=0)
        wanted.topics[0].partitions[0].current_leader_epoch = 6
        opened = await client.ask(wanted, version)
        again = await client.ask(fetch(session_id=opened.session_id, session_epoch=1), version)
        refused = [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_LEADER_OR_FOLLOWER]
        for response in (opened, again):
            answers = [one for of in response.responses for one in of.partitions]
            assert [one.error_code for one in answers] == refused
            leaders = [
                one.current_leader and (one.current_leader.leader_id, one.current_leader.leader_epoch)
                for one in answers
            ]
            endpoints = [(one.node_id, one.host, one.port, one.rack) for one in response.node_endpoints]
            if version < 16:
                assert (leaders, endpoints) == ([None] * 3, [])
            else:
                assert leaders == [(placement.me, 7), (2, 4), None], (
                    "one that this broker still opens has no leader yet"
                )
                assert endpoints == [(placement.me, "one", 9001, None), (2, "PLAINTEXT", 9002, "b")]
