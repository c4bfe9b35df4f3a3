"""Who is over a quota is told to wait, and is not read from; through a whole broker, with a clock of the test's."""

from __future__ import annotations

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.base.principal import Principal
from horolog.broker.config.listeners import PEERS
from horolog.broker.handlers import HANDLERS
from horolog.broker.handlers.throttling import within_quotas
from horolog.broker.network.limits import ConnectionLimits
from horolog.broker.security.quota_entities import FETCH, MUTATION, PRODUCE, REQUEST
from horolog.broker.security.quotas import THROTTLE_SECONDS
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from horolog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from horolog.protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.support import raw_records as raw
from tests.support.memory_broker import NOW_MS, MemoryBroker, Wire

ANN = Principal("User", "ann")


class Muting(Wire):
    """Notes for how long it is not read from."""

    def muted(self, seconds: float) -> None:
        self.waits.append(seconds)


def connect(memory: MemoryBroker, principal: Principal = ANN) -> Muting:
    wire = Muting(memory.dispatcher, ConnectionLimits.of(memory.settings))
    wire.waits: list[float] = []
    wire.conversation.serve_as(principal)
    return wire


async def limit(memory: MemoryBroker, *, user: str = "ann", **values: float) -> None:
    """By the wire, from a connection of somebody else."""
    entity = [AlterClientQuotasRequestEntityData(entity_type="user", entity_name=user)]
    ops = [OpData(key=key, value=value, remove=not value) for key, value in values.items()]
    entry = AlterClientQuotasRequestEntryData(entity=entity, ops=ops)
    wire = connect(memory, Principal("User", "admin"))
    answer = await wire.ask(AlterClientQuotasRequest(entries=[entry], validate_only=False), 1)
    assert [one.error_code for one in answer.entries] == [0]


def produce(size: int, acks: int = 1) -> ProduceRequest:
    records = raw.batch([raw.record(bytes(size))], base_timestamp=NOW_MS, max_timestamp=NOW_MS)
    data = PartitionProduceData(index=0, records=records)
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[data])])


def fetch(**fields: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10**6)
    given = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 10**6, "session_epoch": -1, **fields}
    return FetchRequest(replica_id=-1, topics=[FetchTopic(topic="t", partitions=[partition])], **given)


async def test_without_a_quota_the_handler_is_asked_itself() -> None:
    async with MemoryBroker() as memory:
        function = HANDLERS[ApiKey.PRODUCE].function
        assert within_quotas(memory.broker, ApiKey.PRODUCE, function) is function
        await limit(memory, **{FETCH: 100.0})
        assert within_quotas(memory.broker, ApiKey.PRODUCE, function) is function
        await limit(memory, **{REQUEST: 100.0})
        assert within_quotas(memory.broker, ApiKey.PRODUCE, function) is not function
        assert within_quotas(memory.broker, ApiKey.SASL_HANDSHAKE, function) is function


async def test_a_producer_over_its_rate_is_told_and_not_read_from() -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        await limit(memory, **{PRODUCE: 1000.0})
        wire = connect(memory)
        assert (await wire.ask(produce(5000), 9)).throttle_time_ms == 0
        answer = await wire.ask(produce(15000), 9)
        assert answer.responses[0].partition_responses[0].base_offset == 1
        assert 9_000 < answer.throttle_time_ms < 12_000
        assert wire.waits[-1] * 1000 == pytest.approx(answer.throttle_time_ms, abs=1)
        told = memory.broker.metrics.histogram(THROTTLE_SECONDS, PRODUCE)
        assert sum(told.counts) == 1
        # What arrives meanwhile waits for the end of it.
        wire.send(MetadataRequest(topics=[]), 12)
        assert not wire.answers()
        assert not wire.conversation.idle
        wire.conversation.mute(0)
        assert wire.answers() == 1
        # Another user is not slowed.
        other = connect(memory, Principal("User", "bob"))
        assert (await other.ask(produce(50_000), 9)).throttle_time_ms == 0
        assert other.waits == []


async def test_a_producer_that_asks_for_no_answer_is_slowed_as_well() -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        await limit(memory, **{PRODUCE: 1000.0})
        wire = connect(memory)
        wire.send(produce(20_000, acks=0), 9)
        assert wire.waits[0] == pytest.approx(10.0, rel=0.1)
        assert sum(memory.broker.metrics.histogram(THROTTLE_SECONDS, PRODUCE).counts) == 1
        assert not wire.conversation.wants_to_read


async def test_a_quota_that_is_removed_holds_for_nobody() -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        await limit(memory, **{PRODUCE: 1000.0})
        wire = connect(memory)
        await wire.ask(produce(5000), 9)
        await limit(memory, **{PRODUCE: 0.0})
        assert (await wire.ask(produce(50_000), 9)).throttle_time_ms == 0


async def test_a_fetch_over_its_rate_is_answered_with_nothing() -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        writer = connect(memory, Principal("User", "bob"))
        for _ in range(30):
            await writer.ask(produce(1000), 9)
        await limit(memory, **{FETCH: 1000.0})
        wire = connect(memory)
        first = await wire.ask(fetch(), 12)
        assert first.throttle_time_ms == 0
        # No more than the quota allows in all windows, or nothing could ever leave.
        assert 5_000 < len(first.responses[0].partitions[0].records) <= 10_000
        second = await wire.ask(fetch(session_epoch=0), 12)
        assert (second.responses, second.session_id) == ([], 0)
        assert second.throttle_time_ms > 5_000
        assert wire.waits == [pytest.approx(second.throttle_time_ms / 1000, abs=0.001)]
        wire.conversation.mute(0)
        memory.clock.advance(12_000)
        third = await wire.ask(fetch(), 12)
        assert third.responses[0].partitions[0].records


async def test_a_session_that_is_throttled_goes_on() -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        writer = connect(memory, Principal("User", "bob"))
        for _ in range(30):
            await writer.ask(produce(1000), 9)
        wire = connect(memory)
        opened = await wire.ask(fetch(session_epoch=0, max_bytes=1), 12)
        assert opened.session_id
        await limit(memory, **{FETCH: 1000.0})
        greedy = connect(memory)
        await greedy.ask(fetch(), 12)
        more = FetchRequest(
            replica_id=-1, max_bytes=10**6, min_bytes=1, session_id=opened.session_id, session_epoch=1, topics=[]
        )
        throttled = await wire.ask(more, 12)
        assert (throttled.responses, throttled.session_id) == ([], opened.session_id)
        wire.conversation.mute(0)
        memory.clock.advance(12_000)
        more.session_epoch = 2
        after = await wire.ask(more, 12)
        assert after.responses[0].partitions[0].records


class Working(ManualClock):
    """Time passes whenever it is looked at."""

    def monotonic(self) -> float:
        self.advance(10)
        return super().monotonic()


async def test_the_time_of_a_thread_is_charged_for_every_api() -> None:
    memory = MemoryBroker()
    memory.clock = Working(NOW_MS)
    async with memory:
        memory.topic()
        await limit(memory, **{REQUEST: 0.1})
        wire = connect(memory)
        waits = []
        for _ in range(5):
            waits.append((await wire.ask(MetadataRequest(topics=[]), 12)).throttle_time_ms)
            memory.clock.advance(waits[-1])
            wire.conversation.mute(0)
        assert waits[-1] == 1000  # a window, and no more
        assert (await wire.ask(fetch(), 12)).responses == []
        memory.clock.advance(1000)
        wire.conversation.mute(0)
        assert (await wire.ask(produce(10), 9)).throttle_time_ms == 1000


@pytest.mark.parametrize("kind", [PRODUCE, FETCH, REQUEST, MUTATION])
async def test_who_is_over_a_quota_waits_on_every_connection(kind: str) -> None:
    """Also on one that is opened meanwhile; other users, and what the quota does not count, are served."""
    memory = MemoryBroker()
    memory.clock = Working(NOW_MS) if kind == REQUEST else memory.clock
    async with memory:
        memory.topic("t", 1)
        await connect(memory, Principal("User", "bob")).ask(produce(500), 9)
        await limit(memory, **{kind: 0.1 if kind in {REQUEST, MUTATION} else 10.0})
        request, version = {
            PRODUCE: (produce(500), 9),
            FETCH: (fetch(), 12),
            REQUEST: (MetadataRequest(topics=[]), 12),
            MUTATION: (topics("a"), 5),
        }[kind]
        wait_ms = 0
        for _ in range(4):
            if not wait_ms:
                wait_ms = (await connect(memory).ask(request, version)).throttle_time_ms
        assert wait_ms > 0
        others = [connect(memory) for _ in range(3)]
        for one in others:
            one.send(request, version)
            assert not one.answers()
            assert one.waits[0] * 1000 >= wait_ms - 100
        waits = [one.waits[0] for one in others]
        assert kind == REQUEST or waits == sorted(waits)  # one after the other; there looking takes time itself
        stranger = connect(memory, Principal("User", "bob"))
        assert (await stranger.ask(request, version)).throttle_time_ms == 0
        if kind != REQUEST:
            uncounted = connect(memory)
            assert (await uncounted.ask(MetadataRequest(topics=[]), 12)).throttle_time_ms == 0
        # The first that goes on is served and charged, the others wait again.
        memory.clock.advance(wait_ms + 100)
        for one in others:
            one.conversation.mute(0)
        await others[0].take(request, version)
        if kind == PRODUCE:
            assert [one.answers() for one in others[1:]] == [0, 0]
            assert [len(one.waits) for one in others[1:]] == [2, 2]
        # A quota that is gone holds nobody.
        await limit(memory, **{kind: 0.0})
        late = connect(memory)
        assert (await late.ask(request, version)).throttle_time_ms == 0


async def test_a_request_that_is_held_is_counted_and_given_back() -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        await limit(memory, **{PRODUCE: 10.0})
        first = connect(memory)
        await first.ask(produce(2000), 9)
        held = connect(memory)
        held.send(produce(3000), 9)
        held.send(MetadataRequest(topics=[]), 12)
        unfinished = held.conversation._memory.unfinished
        assert unfinished.total_bytes > 3000
        held.conversation.lost()
        assert unfinished.total_bytes == 0


async def test_peers_are_never_slowed() -> None:
    async with MemoryBroker() as memory:
        memory.topic()
        await limit(memory, user="ANONYMOUS", **{PRODUCE: 1.0})
        wire = memory.connect()
        wire.conversation.listener = PEERS
        assert (await wire.ask(produce(5000), 9)).throttle_time_ms == 0


def topics(*names: str, partitions: int = 5) -> CreateTopicsRequest:
    wanted = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=wanted, timeout_ms=1000)


async def test_changes_of_topics_that_are_too_many_are_refused_or_make_wait() -> None:
    async with MemoryBroker() as memory:
        memory.topic("there", 2)
        await limit(memory, **{MUTATION: 1.0})
        wire = connect(memory)
        assert (await wire.ask(topics("a", "b", "there", partitions=6), 6)).throttle_time_ms == 0
        refused = await wire.ask(topics("c", "there"), 6)
        codes = {one.name: one.error_code for one in refused.topics}
        assert codes == {
            "c": ErrorCode.THROTTLING_QUOTA_EXCEEDED,
            "there": ErrorCode.TOPIC_ALREADY_EXISTS,
        }
        assert refused.throttle_time_ms == 1000
        wire.conversation.mute(0)
        grown = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="there", count=4)], timeout_ms=1000)
        (answer,) = (await wire.ask(grown, 3)).results
        assert answer.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        wire.conversation.mute(0)
        deleted = DeleteTopicsRequest(topics=[DeleteTopicState(name="a")], timeout_ms=1000)
        (answer,) = (await wire.ask(deleted, 6)).responses
        assert answer.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        # Older clients do not understand this: they are served once the wait is over, and wait again.
        memory.clock.advance(1000)
        wire.conversation.mute(0)
        older = await wire.ask(topics("d"), 5)
        assert (older.topics[0].error_code, older.throttle_time_ms) == (0, 5000)
        wire.conversation.mute(0)
        memory.clock.advance(20_000)
        (answer,) = (await wire.ask(deleted, 6)).responses
        assert answer.error_code == 0
        unknown = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="x", count=4)], timeout_ms=1000)
        (answer,) = (await wire.ask(unknown, 3)).results
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_topics_that_are_made_on_the_way_are_changes_too() -> None:
    async with MemoryBroker() as memory:
        await limit(memory, **{MUTATION: 0.01})
        wire = connect(memory)
        names = [MetadataRequestTopic(name=name) for name in ("a", "b", "c")]
        request = MetadataRequest(topics=names, allow_auto_topic_creation=True)
        answer = await wire.ask(request, 9)
        assert {one.error_code for one in answer.topics} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert (answer.throttle_time_ms, wire.waits) == (0, [])
        assert list(memory.broker.cluster.topics) == ["a"]
        memory.clock.advance(1_000_000)
        await wire.ask(request, 9)
        assert list(memory.broker.cluster.topics) == ["a", "b"]


async def test_the_time_counts_beside_bytes_and_each_wait_once() -> None:
    memory = MemoryBroker()
    memory.clock = Working(NOW_MS)
    async with memory:
        memory.topic()
        await limit(memory, **{REQUEST: 0.001, PRODUCE: 50_000.0})
        wire = connect(memory)
        answer = await wire.ask(produce(501_000), 9)
        assert answer.throttle_time_ms == 1000
        for kind in (PRODUCE, REQUEST):
            assert sum(memory.broker.metrics.histogram(THROTTLE_SECONDS, kind).counts) == 1
        assert len(wire.waits) == 2
