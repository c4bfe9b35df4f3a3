"""Faults between the bytes of a request and its handler: every API and version, part by part, in order, and nobody else is struck."""

import asyncio

import pytest

from horolog.broker.handlers import HANDLERS
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from horolog.protocol.messages.groups import HeartbeatRequest
from horolog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from horolog.protocol.messages.metadata import MetadataRequest
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.testing.faults import Faults
from horolog.testing.full_disk import Fullness
from tests.support.every_request import ABSENT, BUILDERS, NO_RECORDS, OPEN, SECRET, World, request_of, told
from tests.support.memory_broker import MemoryBroker

WRONG = ErrorCode.KAFKA_STORAGE_ERROR
SPLIT = [
    (key, version)
    for key in (
        *(ApiKey.PRODUCE, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FOR_LEADER_EPOCH),
        *(ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.DELETE_RECORDS, ApiKey.DESCRIBE_PRODUCERS),
    )
    for version in range(HANDLERS[key].min_version, HANDLERS[key].max_version + 1)
]


class Struck:
    """A broker in memory with faults."""

    def __init__(self):
        self.memory = MemoryBroker(log_segment_bytes=1_000_000)

    async def __aenter__(self):
        await self.memory.__aenter__()
        self.broker = self.memory.broker
        self.memory.dispatcher = self.broker.dispatcher
        self.faults = Faults(self.broker, Fullness())
        for name in (OPEN, SECRET):
            self.memory.topic(name, 2)
        ids = {name: self.broker.cluster.topics[name].id for name in (OPEN, SECRET)}
        self.world = World(ids, "made")
        self.names = {known: name for name, known in ids.items()}
        return self

    async def __aexit__(self, *failure):
        self.faults.close()
        await self.memory.__aexit__(*failure)

    async def rows(self, key, version):
        """What every part is told, by the names of parts."""
        answer = await self.memory.connect().ask(request_of(key, self.world, version), version)
        return told(answer, self.names)


def produce(topic=OPEN, partitions=(0,), acks=1):
    data = [PartitionProduceData(index=index, records=NO_RECORDS) for index in partitions]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=data)])


def codes(answer):
    return {(topic.name, one.index): one.error_code for topic in answer.responses for one in topic.partition_responses}


@pytest.mark.parametrize(("key", "version"), SPLIT)
async def test_one_topic_of_a_request_is_refused_and_the_others_served(key, version):
    async with Struck() as plain:
        before = await plain.rows(key, version)
    async with Struck() as struck:
        with struck.faults.refuse("KAFKA_STORAGE_ERROR", key, topic=OPEN) as fault:
            after = await struck.rows(key, version)
    others = [row for row in before if OPEN not in row[0]]
    assert fault.hits == 1 or before == after  # by ids, which are others in each broker
    assert [row for row in after if SECRET in row or ABSENT in row] == [
        row for row in others if SECRET in row or ABSENT in row
    ]
    if fault.hits:
        mine = [row for row in after if row[0] == OPEN and any("error_code" in each for each in row)]
        assert mine
        assert all(f"error_code={int(WRONG)}" in row for row in mine)


@pytest.mark.parametrize("key", list(BUILDERS))
async def test_every_api_is_refused_delayed_dropped_and_throttled(key):
    version = HANDLERS[key].max_version
    async with Struck() as struck:
        request = request_of(key, struck.world, version)
        with struck.faults.refuse("KAFKA_STORAGE_ERROR", key) as fault:
            answer = await struck.memory.connect().ask(request, version)
            assert str(int(WRONG)) in repr(told(answer, {})) or key is ApiKey.FETCH
            assert fault.hits == 1
        with struck.faults.drop(key, times=1):
            wire = struck.memory.connect()
            wire.send(request, version)
            assert wire.closed
        wire = struck.memory.connect()
        with struck.faults.delay("1h", key):
            wire.send(request, version)
            await asyncio.sleep(0)
            assert not wire.answers()
        await wire.take(request, version)
        wire = struck.memory.connect()
        with struck.faults.throttle("2s", key):
            answer = await wire.ask(request, version)
        if "throttle_time_ms" in API[key].response.FIELDS:
            assert answer.throttle_time_ms == 2000
        assert wire.conversation.is_muted
        assert struck.broker.dispatcher.gate is struck.faults._base


async def test_partitions_of_one_topic_part_ways():
    async with Struck() as struck:
        wire = struck.memory.connect()
        with struck.faults.refuse("NOT_ENOUGH_REPLICAS", "produce", topic=OPEN, partition=1) as fault:
            answer = await wire.ask(produce(partitions=(0, 1)), 7)
            assert codes(answer) == {(OPEN, 0): 0, (OPEN, 1): ErrorCode.NOT_ENOUGH_REPLICAS}
            assert codes(await wire.ask(produce(SECRET, (1,)), 7)) == {(SECRET, 1): 0}
            assert fault.hits == 1
        assert codes(await wire.ask(produce(partitions=(1,)), 7)) == {(OPEN, 1): 0}


async def test_two_refusals_strike_one_request():
    async with Struck() as struck:
        wire = struck.memory.connect()
        struck.faults.refuse("NOT_ENOUGH_REPLICAS", "produce", topic=OPEN, partition=1)
        struck.faults.refuse("KAFKA_STORAGE_ERROR", "produce", topic=OPEN, partition=0)
        answer = await wire.ask(produce(partitions=(0, 1)), 7)
        assert codes(answer) == {(OPEN, 0): WRONG, (OPEN, 1): ErrorCode.NOT_ENOUGH_REPLICAS}
        struck.faults.clear()
        assert struck.faults.armed == []


async def test_a_produce_that_wants_no_answer_learns_it_by_the_end_of_its_connection():
    async with Struck() as struck:
        struck.faults.refuse("NOT_ENOUGH_REPLICAS", "produce", topic=OPEN, partition=1)
        wire = struck.memory.connect()
        wire.send(produce(partitions=(0, 1), acks=0), 7)
        assert wire.closed
        await struck.broker.committer.drain()
        assert struck.broker.cluster.topics[OPEN].find(0).high_watermark == 1


async def test_requests_behind_a_delayed_one_wait_and_keep_their_order():
    async with Struck() as struck:
        wire = struck.memory.connect()
        with struck.faults.delay("1h", "produce", times=1) as fault:
            wire.send(produce(), 7)
            wire.send(MetadataRequest(topics=None), 9)
            await asyncio.sleep(0.01)
            assert not wire.answers()
            assert struck.broker.cluster.topics[OPEN].find(0).log_end_offset == 0
            assert fault.hits == 1
            struck.memory.clock.advance(3_600_000)
            struck.faults.timers.run_due()
            assert codes(await wire.take(produce(), 7)) == {(OPEN, 0): 0}
            assert (await wire.take(MetadataRequest(topics=None), 9)).topics


async def test_an_answer_is_late_or_lost_but_the_work_is_done():
    async with Struck() as struck:
        partition = struck.broker.cluster.topics[OPEN].find(0)
        wire = struck.memory.connect()
        with struck.faults.delay("1h", "produce", after_work=True):
            wire.send(produce(), 7)
            await struck.broker.committer.drain()
            assert (partition.high_watermark, wire.answers()) == (1, 0)
        assert codes(await wire.take(produce(), 7)) == {(OPEN, 0): 0}
        with struck.faults.drop("produce", after_work=True):
            wire.send(produce(), 7)
            await struck.broker.committer.drain()
            assert partition.high_watermark == 2
            assert wire.closed
            assert not wire.answers()
        gone = struck.memory.connect()
        with struck.faults.delay("1h", "produce", after_work=True):
            gone.send(produce(), 7)
            gone.conversation.lost()
            await struck.broker.committer.drain()
        with struck.faults.delay("1h", "produce") as fault:
            gone = struck.memory.connect()
            gone.send(produce(), 7)
            assert len(fault.held) == 1
            gone.conversation.lost()
            assert len(fault.held) == 0
        assert partition.high_watermark == 3


async def test_a_delayed_request_that_breaks_the_protocol_ends_its_connection():
    async with Struck() as struck:
        wire = struck.memory.connect()
        request = produce()
        request.topic_data[0].partition_data[0].records = None
        with struck.faults.delay("1h", "produce"):
            wire.send(request, 7)
        assert wire.closed


async def test_a_fetch_finds_the_error_also_in_a_session_and_only_while_it_lasts():
    async with Struck() as struck:
        wire = struck.memory.connect()
        await wire.ask(produce(), 7)

        def fetch(session=0, epoch=0, topics=(OPEN, SECRET)):
            asked = [
                FetchTopic(topic=name, partitions=[FetchPartition(partition=0, partition_max_bytes=1000)])
                for name in topics
            ]
            return FetchRequest(max_wait_ms=50, min_bytes=1, session_id=session, session_epoch=epoch, topics=asked)

        opened = await wire.ask(fetch(), 11)
        assert len(opened.responses) == 2
        waiting = fetch(opened.session_id, 1, ())
        wire.send(waiting, 11)
        with struck.faults.leader_away(OPEN) as fault:
            await wire.take(waiting, 11)
            away = await wire.ask(fetch(opened.session_id, 2, ()), 11)
            told_codes = {(one.topic, one.partitions[0].error_code) for one in away.responses}
            assert told_codes == {(OPEN, ErrorCode.NOT_LEADER_OR_FOLLOWER)}
            assert fault.hits == 1
        back = await wire.ask(fetch(opened.session_id, 3, ()), 11)
        assert [one.partitions[0].error_code for one in back.responses] == [0]
        with struck.faults.refuse("FETCH_SESSION_ID_NOT_FOUND", "fetch"):
            refused = await wire.ask(fetch(opened.session_id, 4, ()), 11)
            assert refused.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        with struck.faults.refuse("KAFKA_STORAGE_ERROR", "fetch", topic="elsewhere"):
            assert not (await wire.ask(fetch(opened.session_id, 4, ()), 11)).error_code


async def test_a_leader_is_away_for_everything_that_it_is_asked():
    async with Struck() as struck:
        wire = struck.memory.connect()
        times = ListOffsetsRequest(
            topics=[
                ListOffsetsTopic(
                    name=OPEN,
                    partitions=[ListOffsetsPartition(partition_index=index, timestamp=-1) for index in (0, 1)],
                )
            ]
        )
        with struck.faults.leader_away(OPEN, 1):
            answer = await wire.ask(MetadataRequest(topics=None), 9)
            leaders = {
                (topic.name, one.partition_index): (one.leader_id, one.error_code)
                for topic in answer.topics
                for one in topic.partitions
            }
            assert leaders[OPEN, 1] == (-1, ErrorCode.LEADER_NOT_AVAILABLE)
            assert leaders[OPEN, 0][1] == leaders[SECRET, 1][1] == 0
            offsets = await wire.ask(times, 5)
            assert sorted(
                (one.partition_index, one.error_code) for topic in offsets.topics for one in topic.partitions
            ) == [(0, 0), (1, ErrorCode.NOT_LEADER_OR_FOLLOWER)]
        offsets = await wire.ask(times, 5)
        assert [one.error_code for one in offsets.topics[0].partitions] == [0, 0]
        with struck.faults.refuse("TOPIC_AUTHORIZATION_FAILED", "metadata", topic=SECRET) as fault:
            answer = await wire.ask(MetadataRequest(topics=None), 9)
            found = {topic.name: topic.error_code for topic in answer.topics}
            assert found == {OPEN: 0, SECRET: ErrorCode.TOPIC_AUTHORIZATION_FAILED}
            assert fault.hits == 1


async def test_another_client_and_another_api_are_served_as_ever():
    async with Struck() as struck:
        wire = struck.memory.connect()
        handle = struck.broker.dispatcher.gate(ApiKey.HEARTBEAT, HANDLERS[ApiKey.HEARTBEAT].function)
        with struck.faults.refuse("NOT_ENOUGH_REPLICAS", "produce", client_id="another") as fault:
            assert codes(await wire.ask(produce(), 7)) == {(OPEN, 0): 0}
            assert fault.hits == 0
            assert struck.broker.dispatcher.gate(ApiKey.HEARTBEAT, handle) is handle
        with struck.faults.drop("produce", topic=SECRET):
            assert codes(await wire.ask(produce(), 7)) == {(OPEN, 0): 0}
            answer = await wire.ask(HeartbeatRequest(group_id="g", member_id="m"), 3)
            assert answer.error_code
