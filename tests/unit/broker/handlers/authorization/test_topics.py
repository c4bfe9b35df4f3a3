"""Topics: the part of a request that its principal may do is done, and of topics that he may not describe he learns nothing."""

from __future__ import annotations

from typing import Any

from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from horolog.protocol.messages.metadata import (
    Cursor,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    TopicRequest,
)
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from horolog.protocol.wire import NO_UUID
from tests.support.every_request import ABSENT, NO_RECORDS, OPEN, SECRET, UNKNOWN_ID, World, request_of
from tests.support.guarded_broker import GuardedBroker, acl
from tests.support.memory_broker import Wire
from tests.support.processor_time import at_most
from tests.support.transactional import batch

DENIED, UNKNOWN = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
OK = ErrorCode.NONE


def world_of(memory: GuardedBroker) -> World:
    for name in (OPEN, SECRET):
        memory.topic(name)
    return World({name: topic.id for name, topic in memory.broker.cluster.topics.items()})


async def produced(wire: Wire, world: World, version: int = 9) -> dict[str, int]:
    answer = await wire.ask(request_of(ApiKey.PRODUCE, world, version), version)
    names = {topic_id: name for name, topic_id in world.ids.items()} | {UNKNOWN_ID: ABSENT}
    return {one.name or names[one.topic_id]: one.partition_responses[0].error_code for one in answer.responses}


# -- Produce


async def test_records_go_where_they_may() -> None:
    async with GuardedBroker() as memory:
        world = world_of(memory)
        memory.put(acl("alice", "WRITE", name=OPEN))
        assert await produced(memory.wire(), world) == {OPEN: OK, SECRET: DENIED, ABSENT: DENIED}
        assert await produced(memory.wire(), world, 13) == {
            OPEN: OK,
            SECRET: DENIED,
            ABSENT: ErrorCode.UNKNOWN_TOPIC_ID,
        }
        assert await produced(memory.wire("bob"), world) == {OPEN: DENIED, SECRET: DENIED, ABSENT: DENIED}
        assert memory.broker.cluster.topics[SECRET].find(0).high_watermark == 0  # type: ignore[union-attr]


async def test_without_an_answer_a_refusal_closes_and_the_allowed_part_is_kept() -> None:
    async with GuardedBroker() as memory:
        world = world_of(memory)
        memory.put(acl("alice", "WRITE", name=OPEN))
        request: Any = request_of(ApiKey.PRODUCE, world, 9)
        request.acks = 0
        for who, kept in (("alice", 1), ("bob", 1), ("admin", 2)):
            wire = memory.wire(who)
            wire.send(request, 9)
            await memory.broker.committer.drain()
            assert wire.closed
            assert not wire.received
            assert memory.broker.cluster.topics[OPEN].find(0).high_watermark == kept  # type: ignore[union-attr]
        request.topic_data = request.topic_data[:1]
        wire = memory.wire()
        wire.send(request, 9)
        assert not wire.closed


async def test_records_of_a_transaction_need_its_id() -> None:
    async with GuardedBroker() as memory:
        world_of(memory)
        memory.put(
            acl("alice", "WRITE", name=OPEN), acl("bob", "ALL", name="*"), acl("bob", "WRITE", "TRANSACTIONAL_ID", "x")
        )
        records = batch([b"v"], 1, 0, 0)
        data = [TopicProduceData(name=OPEN, partition_data=[PartitionProduceData(index=0, records=records)])]
        for who, code in (
            ("alice", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
            ("bob", ErrorCode.INVALID_TXN_STATE),
        ):
            request = ProduceRequest(transactional_id="x", acks=1, timeout_ms=1000, topic_data=data)
            answer = await memory.wire(who).ask(request, 9)
            assert answer.responses[0].partition_responses[0].error_code in (
                code,
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            )
        plain = [TopicProduceData(name=OPEN, partition_data=[PartitionProduceData(index=0, records=NO_RECORDS)])]
        request = ProduceRequest(transactional_id="x", acks=1, timeout_ms=1000, topic_data=plain)
        assert (await memory.wire().ask(request, 9)).responses[0].partition_responses[0].error_code == OK


# -- Fetch


def fetch(world: World, *names: str, epoch: int = -1, session: int = 0, version: int = 12, **more: Any) -> FetchRequest:
    return FetchRequest(
        max_bytes=1 << 20,
        session_id=session,
        session_epoch=epoch,
        topics=[
            FetchTopic(
                topic=name if version < 13 else "",
                topic_id=world.id_of(name) if version >= 13 else NO_UUID,
                partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)],
            )
            for name in names
        ],
        **more,
    )


def read(answer: Any) -> dict[str, tuple[int, bool]]:
    return {
        one.topic or one.topic_id: (one.partitions[0].error_code, bool(one.partitions[0].records))
        for one in answer.responses
    }


async def test_what_may_be_read_is_read() -> None:
    async with GuardedBroker() as memory:
        world = world_of(memory)
        memory.put(acl("alice", "READ", name=OPEN), acl("bob", "DESCRIBE", name="*"))
        await produced(memory.wire("admin"), world)
        names = (OPEN, SECRET, ABSENT)
        assert read(await memory.wire().ask(fetch(world, *names), 12)) == {
            OPEN: (OK, True),
            SECRET: (DENIED, False),
            ABSENT: (DENIED, False),
        }
        by_id = read(await memory.wire().ask(fetch(world, *names, version=13), 13))
        assert [by_id[world.id_of(name)] for name in names] == [
            (OK, True),
            (DENIED, False),
            (ErrorCode.UNKNOWN_TOPIC_ID, False),
        ]
        denied = await memory.wire("bob").ask(fetch(world, OPEN, max_wait_ms=10_000, min_bytes=1), 12)
        assert read(denied) == {OPEN: (DENIED, False)}  # at once


async def test_a_session_forgets_nothing_and_learns_of_rules_that_change() -> None:
    async with GuardedBroker() as memory:
        world = world_of(memory)
        reading = acl("alice", "READ", name=OPEN)
        memory.put(reading)
        wire = memory.wire()
        first = await wire.ask(fetch(world, OPEN, SECRET, epoch=0), 12)
        assert read(first) == {OPEN: (OK, False), SECRET: (DENIED, False)}
        following = lambda epoch: fetch(world, epoch=epoch, session=first.session_id)  # noqa: E731
        assert read(await wire.ask(following(1), 12)) == {SECRET: (DENIED, False)}
        memory.put(acl("alice", "READ", name=SECRET))
        assert read(await wire.ask(following(2), 12)) == {SECRET: (OK, False)}
        memory.remove(reading)
        assert read(await wire.ask(following(3), 12)) == {OPEN: (DENIED, False)}
        await produced(memory.wire("admin"), world)
        assert read(await wire.ask(following(4), 12)) == {OPEN: (DENIED, False), SECRET: (OK, True)}


async def test_a_session_of_another_principal_gives_nothing() -> None:
    async with GuardedBroker() as memory:
        world = world_of(memory)
        memory.put(acl("alice", "READ", name=OPEN))
        opened = await memory.wire().ask(fetch(world, OPEN, epoch=0), 12)
        await produced(memory.wire("admin"), world)
        stolen = await memory.wire("bob").ask(fetch(world, epoch=1, session=opened.session_id), 12)
        assert read(stolen) == {OPEN: (DENIED, False)}


async def test_a_fetch_that_waits_loses_the_right_with_the_rule() -> None:
    async with GuardedBroker() as memory:
        world = world_of(memory)
        reading = acl("alice", "READ", name=OPEN)
        memory.put(reading)
        wire = memory.wire()
        request = fetch(world, OPEN, max_wait_ms=60_000, min_bytes=1)
        wire.send(request, 12)
        assert not wire.answers()
        memory.remove(reading)
        await produced(memory.wire("admin"), world)
        assert read(await wire.take(request, 12)) == {OPEN: (DENIED, False)}


async def test_a_follower_needs_the_cluster() -> None:
    async with GuardedBroker() as memory:
        world = world_of(memory)
        memory.put(acl("alice", "READ", name=OPEN), acl("bob", "CLUSTER_ACTION", "CLUSTER"))
        following = fetch(world, OPEN, version=15, replica_state=ReplicaState(replica_id=2))
        code = lambda answer: answer.responses[0].partitions[0].error_code  # noqa: E731
        assert code(await memory.wire().ask(following, 15)) == DENIED
        assert code(await memory.wire("bob").ask(following, 15)) == ErrorCode.NOT_LEADER_OR_FOLLOWER


# -- Metadata


def known(answer: Any) -> dict[str, int]:
    return {one.name or one.topic_id: one.error_code for one in answer.topics}


async def test_of_all_topics_those_that_may_be_described_are_told() -> None:
    async with GuardedBroker() as memory:
        world_of(memory)
        memory.put(acl("alice", "WRITE", name="op", prefixed=True))
        for version, topics in ((0, []), (1, None), (12, None)):
            request = MetadataRequest(topics=topics)
            assert known(await memory.wire().ask(request, version)) == {OPEN: OK}
            assert known(await memory.wire("bob").ask(request, version)) == {}


async def test_a_topic_that_may_not_be_described_might_as_well_not_be() -> None:
    async with GuardedBroker() as memory:
        world = world_of(memory)
        memory.put(acl("alice", "DESCRIBE", name=OPEN), acl("carol", "DESCRIBE", name="*"))
        named = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in (OPEN, SECRET, ABSENT)])
        for version in (0, 1, 9, 12):
            answer = await memory.wire().ask(named, version)
            assert known(answer) == {OPEN: OK, SECRET: DENIED, ABSENT: DENIED}
            assert answer.brokers
            assert known(await memory.wire("bob").ask(named, version)) == dict.fromkeys((OPEN, SECRET, ABSENT), DENIED)
            assert known(await memory.wire("carol").ask(named, version)) == {OPEN: OK, SECRET: OK, ABSENT: UNKNOWN}
        by_id = MetadataRequest(
            topics=[MetadataRequestTopic(topic_id=world.id_of(name), name=None) for name in (SECRET, ABSENT)]
        )
        hidden = await memory.wire().ask(by_id, 12)
        assert known(hidden) == {world.id_of(SECRET): DENIED, UNKNOWN_ID: ErrorCode.UNKNOWN_TOPIC_ID}


async def test_whoever_asks_for_a_topic_makes_it_only_if_he_may() -> None:
    async with GuardedBroker(auto_create_topics_enable="true") as memory:
        memory.put(
            acl("*", "DESCRIBE", name="*"),
            acl("bob", "CREATE", name="by-", prefixed=True),
            acl("carol", "CREATE", "CLUSTER"),
        )
        for who, name, code in (
            ("alice", "by-alice", DENIED),
            ("bob", "by-bob", UNKNOWN),
            ("bob", "other", DENIED),
            ("carol", "other", UNKNOWN),
        ):
            request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
            assert known(await memory.wire(who).ask(request, 9)) == {name: code}
            assert (name in memory.broker.cluster.topics) == (code == UNKNOWN)
        quiet = MetadataRequest(topics=[MetadataRequestTopic(name="by-x")], allow_auto_topic_creation=False)
        assert known(await memory.wire().ask(quiet, 9)) == {"by-x": UNKNOWN}


async def test_operations_are_those_of_the_principal() -> None:
    async with GuardedBroker() as memory:
        world_of(memory)
        memory.put(acl("alice", "READ", name=OPEN), acl("bob", "ALTER", "CLUSTER"), acl("bob", "DESCRIBE", name="*"))
        request = MetadataRequest(
            topics=None, include_cluster_authorized_operations=True, include_topic_authorized_operations=True
        )
        answer = await memory.wire().ask(request, 10)
        assert answer.cluster_authorized_operations == 0
        assert [one.topic_authorized_operations for one in answer.topics] == [1 << 3 | 1 << 8]
        answer = await memory.wire("bob").ask(request, 10)
        assert answer.cluster_authorized_operations == 1 << 7 | 1 << 8
        assert {one.topic_authorized_operations for one in answer.topics} == {1 << 8}


async def test_pages_tell_of_the_same_topics() -> None:
    async with GuardedBroker() as memory:
        world_of(memory)
        memory.put(acl("alice", "READ", name=OPEN))
        everything = await memory.wire().ask(DescribeTopicPartitionsRequest(), 0)
        assert known(everything) == {OPEN: OK}
        assert everything.topics[0].topic_authorized_operations == 1 << 3 | 1 << 8
        assert known(await memory.wire("bob").ask(DescribeTopicPartitionsRequest(), 0)) == {}
        behind = DescribeTopicPartitionsRequest(cursor=Cursor(topic_name="z", partition_index=0))
        assert known(await memory.wire().ask(behind, 0)) == {}
        named = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name) for name in (OPEN, SECRET, ABSENT)])
        assert known(await memory.wire().ask(named, 0)) == {OPEN: OK, SECRET: DENIED, ABSENT: DENIED}
        assert known(await memory.wire("bob").ask(named, 0)) == dict.fromkeys((OPEN, SECRET, ABSENT), DENIED)


async def test_pages_tell_a_topic_that_is_named_many_times_once() -> None:
    async with GuardedBroker() as memory:
        world_of(memory)
        memory.put(acl("alice", "READ", name=OPEN))
        names = [OPEN, SECRET] * 15_000
        request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name) for name in names])
        with at_most(3.0):
            answer = await memory.wire().ask(request, 0)
        assert [(one.name, one.error_code) for one in answer.topics] == [(OPEN, OK), (SECRET, DENIED)]


# -- CreateTopics and DeleteTopics


def creation(*names: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    )


async def test_topics_are_made_by_those_who_may() -> None:
    async with GuardedBroker() as memory:
        memory.put(
            acl("alice", "CREATE", name="a", prefixed=True),
            acl("alice", "DESCRIBE_CONFIGS", name="a2"),
            acl("bob", "CREATE", "CLUSTER"),
        )
        answer = await memory.wire().ask(creation("a1", "a2", "b", "b", "c"), 7)
        found = {one.name: one for one in answer.topics}
        assert {name: one.error_code for name, one in found.items()} == {
            "a1": OK,
            "a2": OK,
            "b": ErrorCode.INVALID_REQUEST,
            "c": DENIED,
        }
        assert (found["a1"].topic_config_error_code, found["a1"].num_partitions, found["a1"].configs) == (
            DENIED,
            -1,
            [],
        )
        assert (found["a2"].topic_config_error_code, found["a2"].num_partitions) == (OK, 1)
        assert found["a2"].configs
        assert [one.error_code for one in (await memory.wire("bob").ask(creation("c"), 7)).topics] == [OK]


def deletion(world: World, *asked: str | bytes) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(
        topics=[
            DeleteTopicState(name=one, topic_id=NO_UUID)
            if isinstance(one, str)
            else DeleteTopicState(name=None, topic_id=one)
            for one in asked
        ]
    )


def deleted(answer: Any) -> list[tuple[str | None, int]]:
    return sorted((one.name, one.error_code) for one in answer.responses if one.name) + [
        (None, one.error_code) for one in answer.responses if not one.name
    ]


async def test_topics_are_deleted_by_those_who_may_and_hidden_from_others() -> None:
    async with GuardedBroker() as memory:
        world = world_of(memory)
        memory.topic("described")
        world = World({name: topic.id for name, topic in memory.broker.cluster.topics.items()})
        memory.put(acl("alice", "DELETE", name=OPEN), acl("alice", "DESCRIBE", name="d", prefixed=True))
        names = DeleteTopicsRequest(topic_names=[SECRET, ABSENT, "described", "d-absent", SECRET + "2", SECRET + "2"])
        assert deleted(await memory.wire().ask(names, 5)) == [
            (ABSENT, DENIED),
            ("d-absent", UNKNOWN),
            ("described", DENIED),
            (SECRET, DENIED),
            (SECRET + "2", ErrorCode.INVALID_REQUEST),
        ]
        asked = deletion(world, SECRET, ABSENT, world.id_of("described"), world.id_of(SECRET), UNKNOWN_ID)
        answer = await memory.wire().ask(asked, 6)
        assert deleted(answer) == [
            (ABSENT, DENIED),
            ("described", DENIED),
            (SECRET, DENIED),
            (None, ErrorCode.UNKNOWN_TOPIC_ID),
            (None, DENIED),
        ]
        assert set(memory.broker.cluster.topics) == {OPEN, SECRET, "described"}
        assert deleted(await memory.wire().ask(deletion(world, world.id_of(OPEN)), 6)) == [(OPEN, OK)]
        memory.put(acl("bob", "DELETE", "CLUSTER"))
        assert deleted(await memory.wire("bob").ask(deletion(world, SECRET), 6)) == [(SECRET, OK)]


async def test_where_nothing_is_deleted_everybody_is_told_so() -> None:
    async with GuardedBroker(delete_topic_enable="false") as memory:
        world = world_of(memory)
        for version, code in ((2, ErrorCode.INVALID_REQUEST), (5, ErrorCode.TOPIC_DELETION_DISABLED)):
            request = DeleteTopicsRequest(topic_names=[SECRET, ABSENT])
            assert {one.error_code for one in (await memory.wire().ask(request, version)).responses} == {code}
        assert (await memory.wire().ask(deletion(world, SECRET), 6)).responses[0].error_code == 73
