"""What the bundled client is to do on any broker: scenarios that are run against ours and against real Kafkas."""

import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from horolog import Admin, Client, Consumer, ConsumerRecord, Producer, TopicPartition
from horolog.client.values.errors import KafkaError, RecordRefused
from horolog.client.wire.retry import RetryPolicy
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode

WAIT_SECONDS = 60.0
BASE_MS = int(time.time() * 1000) - 3_600_000  # an hour ago, so that no retention takes it
_names = itertools.count()


def new_name(kind: str = "topic") -> str:
    return f"our-client-{kind}-{os.getpid()}-{next(_names)}"


@asynccontextmanager
async def connected(address: str, backoff_ms: int = 50) -> AsyncIterator[Client]:
    retry = RetryPolicy(backoff_ms=backoff_ms, backoff_max_ms=20 * backoff_ms, timeout_ms=45_000)
    async with asyncio.timeout(WAIT_SECONDS), Client(address, retry=retry) as client:
        yield client


async def serves(client: Client, key: ApiKey, version: int = 0) -> bool:
    return (await client.versions()).serves(key, version)


async def need(client: Client, key: ApiKey, version: int = 0) -> None:
    if not await serves(client, key, version):
        pytest.skip(f"the broker serves no {key.name} v{version}")


async def new_topic(client: Client, partitions: int = 1, **configs: str) -> str:
    """Made by hand where the broker lets clients do that, else by asking for it."""
    name = new_name()
    if await serves(client, ApiKey.CREATE_TOPICS):
        chosen = {key.replace("_", "."): value for key, value in configs.items()}
        await Admin(client).create_topic(name, partitions, configs=chosen)
    await client.topic(name, create=True)
    return name


async def read(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    records: list[ConsumerRecord] = []
    while len(records) < count:
        records += await consumer.poll(500)
    return records


async def read_all(client: Client, topic: str, partitions: int = 1, **options: object) -> list[ConsumerRecord]:
    """Everything up to the end."""
    all_partitions = [TopicPartition(topic, index) for index in range(partitions)]
    async with Consumer(client, **options) as consumer:  # type: ignore[arg-type]
        consumer.assign(all_partitions)
        ends = await consumer.end_offsets(all_partitions)
        records: list[ConsumerRecord] = []
        while any([await consumer.position(each) < ends[each] for each in all_partitions]):
            records += await consumer.poll(200)
        return records


async def every_codec(address: str) -> None:
    """Records with all that they may have come back as they were, whatever the codec."""
    async with connected(address) as client:
        headers = await serves(client, ApiKey.PRODUCE, 3)
        codecs = [None, "gzip", "snappy", "lz4"] + (["zstd"] if await serves(client, ApiKey.PRODUCE, 7) else [])
        for codec in codecs:
            topic = await new_topic(client)
            sent = [
                (
                    None if index % 7 == 3 else f"value {index} ".encode() * (index % 50),
                    None if index % 5 == 2 else f"key {index}".encode(),
                    ((b"a", b"1"), (b"b", None)) if headers and index % 3 else (),
                    BASE_MS + index * 10,
                )
                for index in range(300)
            ]
            async with Producer(client, compression=codec, batch_bytes=4000) as producer:
                futures = [
                    await producer.send(topic, value, key, head, timestamp_ms=time_ms)
                    for value, key, head, time_ms in sent
                ]
            assert [future.result().offset for future in futures] == list(range(300)), codec
            got = await read_all(client, topic)
            assert [(each.value, each.key, each.headers, each.timestamp_ms) for each in got] == sent, codec
            assert [each.offset for each in got] == list(range(300)), codec


async def times(address: str) -> None:
    """Lookups by time find the first record at or after it, and a consumer can begin there."""
    async with connected(address) as client:
        await need(client, ApiKey.LIST_OFFSETS, 1)
        topic = await new_topic(client)
        partition = TopicPartition(topic, 0)
        async with Producer(client, batch_bytes=2000) as producer:
            for index in range(200):
                await producer.send(topic, b"%d" % index, timestamp_ms=BASE_MS + 1000 * index)
        async with Consumer(client) as consumer:
            for index in (0, 1, 77, 199):
                found = await consumer.offsets_for_times({partition: BASE_MS + 1000 * index - 1})
                assert found[partition][:2] == (index, BASE_MS + 1000 * index)
                found = await consumer.offsets_for_times({partition: BASE_MS + 1000 * index})
                assert found[partition].offset == index
            assert (await consumer.offsets_for_times({partition: BASE_MS + 200_000}))[partition] is None
            consumer.assign([partition])
            assert await consumer.seek_to_time({partition: BASE_MS + 150_500}) == {partition: 151}
            assert [int(each.value) for each in await read(consumer, 49)] == list(range(151, 200))
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 200}
            assert await consumer.lag(partition) == 0
        async with Consumer(client, start=BASE_MS + 10_000) as consumer:
            consumer.assign([partition])
            assert (await read(consumer, 1))[0].offset == 10


async def log_append_time(address: str) -> None:
    async with connected(address) as client:
        await need(client, ApiKey.CREATE_TOPICS)
        topic = await new_topic(client, message_timestamp_type="LogAppendTime")
        before = int(time.time() * 1000) - 1
        async with Producer(client) as producer:
            sent = await producer.send_and_wait(topic, b"x", timestamp_ms=BASE_MS)
        assert before <= sent.timestamp_ms <= time.time() * 1000 + 1
        (got,) = await read_all(client, topic)
        assert (got.timestamp_ms, got.timestamp_type) == (sent.timestamp_ms, 1)


async def refused_times(address: str) -> None:
    """A record whose time is refused fails alone, and says which it is; its neighbours are written."""
    async with connected(address) as client:
        await need(client, ApiKey.PRODUCE, 3)
        topic = await new_topic(client, message_timestamp_before_max_ms="86400000")
        too_old = {3, 4, 50, 99}
        async with Producer(client, linger_ms=50) as producer:
            futures = [
                await producer.send(
                    topic, b"%d" % index, timestamp_ms=BASE_MS - (172_800_000 if index in too_old else 0) + index
                )
                for index in range(100)
            ]
        failed = {}
        for index, future in enumerate(futures):
            if (error := future.exception()) is not None:
                failed[index] = error
        assert set(failed) == too_old
        for index, error in failed.items():
            assert isinstance(error, RecordRefused)
            assert error.code == ErrorCode.INVALID_TIMESTAMP
            assert error.record.value == b"%d" % index
        got = await read_all(client, topic)
        assert [int(each.value) for each in got] == [index for index in range(100) if index not in too_old]
        ok = [future.result().offset for index, future in enumerate(futures) if index not in too_old]
        assert ok == [each.offset for each in got]


async def too_large(address: str) -> None:
    """A batch that is too large is cut until it fits; a record that is too large fails alone."""
    async with connected(address) as client:
        await need(client, ApiKey.CREATE_TOPICS)
        topic = await new_topic(client, max_message_bytes="3000")
        async with Producer(client, linger_ms=50) as producer:
            futures = [await producer.send(topic, b"x" * (5000 if index == 7 else 300)) for index in range(40)]
        errors = {index: future.exception() for index, future in enumerate(futures) if future.exception()}
        assert set(errors) == {7}
        assert errors[7].code in {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}
        assert len(await read_all(client, topic)) == 39


async def unknown_topics(address: str) -> None:
    async with connected(address) as client:
        await need(client, ApiKey.METADATA, 4)
        async with Consumer(client) as consumer:
            with pytest.raises(KafkaError) as caught:
                await consumer.end_offsets([TopicPartition("there-is-none", 0)])
            assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def partitioning(address: str) -> None:
    """A key has one partition for ever; without keys a batch goes to one partition as a whole."""
    async with connected(address) as client:
        await need(client, ApiKey.CREATE_TOPICS)
        topic = await new_topic(client, partitions=3)
        async with Producer(client, batch_bytes=1000) as producer:
            for index in range(90):
                await producer.send(topic, b"with", key=b"key %d" % (index % 9))
                await producer.send(topic, b"without" * 5)
        got = await read_all(client, topic, 3)
        by_key: dict[bytes | None, set[int]] = {}
        for each in got:
            by_key.setdefault(each.key, set()).add(each.partition)
        assert by_key.pop(None) == {0, 1, 2}
        assert len(by_key) == 9
        assert all(len(partitions) == 1 for partitions in by_key.values())
        assert len(got) == 180


async def groups(address: str) -> None:
    """Two members share four partitions; when one leaves the other gets all; offsets are kept for those who come later."""
    async with connected(address) as client:
        topic = await new_topic(client, partitions=4)
        count = len(await client.topic(topic))
        group = new_name("group")
        async with Producer(client) as producer:
            for index in range(200):
                await producer.send(topic, b"%d" % index, partition=index % count)
        options = {"group": group, "heartbeat_ms": 200, "session_timeout_ms": 10_000}
        first, second = Consumer(client, **options), Consumer(client, **options)
        seen: list[ConsumerRecord] = []
        await first.subscribe([topic])
        await until(lambda: len(first.assignment) == count, first, seen)
        await second.subscribe([topic])
        shares = [count - count // 2, count // 2]
        await until(
            lambda: sorted([len(first.assignment), len(second.assignment)]) == sorted(shares), first, second, into=seen
        )
        assert not set(first.assignment) & set(second.assignment)
        # A member that got a partition before its offset was committed reads it from the start: all is read once positions say so.
        await until(lambda: read_so_far(first, second) == 200, first, second, into=seen)
        assert len({(each.partition, each.offset) for each in seen}) == 200
        await second.commit()
        await second.close()
        await until(lambda: len(first.assignment) == count and read_so_far(first) == 200, first, into=seen)
        await first.commit()
        await first.close()
        async with Consumer(client, **options) as third:
            await third.subscribe([topic])
            await until(lambda: len(third.assignment) == count, third)
            offsets = {each: await third.position(each) for each in third.assignment}
            assert sum(offsets.values()) == 200
            assert await third.poll(300) == []


def read_so_far(*consumers: Consumer) -> int:
    return sum(position.offset for consumer in consumers for position in consumer.positions().values())


async def until(
    done: Callable[[], bool], *consumers: Consumer | list[ConsumerRecord], into: list[ConsumerRecord] | None = None
) -> None:
    """Poll all of them until it is so; the time limit is that of the whole scenario."""
    into = into if into is not None else next((each for each in consumers if isinstance(each, list)), [])
    polled = [each for each in consumers if isinstance(each, Consumer)]
    while not done():
        for records in await asyncio.gather(*(consumer.poll(100) for consumer in polled)):
            into += records


async def transactions(address: str) -> None:
    """Committed ones are seen as a whole, aborted ones by those who read uncommitted records only, offsets with them."""
    async with connected(address) as client:
        await need(client, ApiKey.INIT_PRODUCER_ID)
        topic, group = await new_topic(client, partitions=2), new_name("group")
        source = TopicPartition(topic, 0)
        async with Producer(client, transactional_id=new_name("txn"), batch_bytes=500) as producer:
            await one_transaction(producer, topic, range(50), group, {source: 10})
            with pytest.raises(RuntimeError, match="changed my mind"):
                await one_transaction(
                    producer, topic, range(50, 100), group, {source: 20}, RuntimeError("changed my mind")
                )
            await one_transaction(producer, topic, range(100, 150), group, {source: 30})
            committed = await read_all(client, topic, 2, isolation="read_committed")
            everything = await read_all(client, topic, 2)
        assert sorted(int(each.value) for each in committed) == [*range(50), *range(100, 150)]
        assert len(everything) >= 100  # of the aborted one, what had been sent
        assert {int(each.value) for each in committed} <= {int(each.value) for each in everything}
        assert (await Admin(client).group_offsets(group, [source]))[source].offset == 30


async def one_transaction(
    producer: Producer,
    topic: str,
    values: range,
    group: str,
    offsets: dict[TopicPartition, int],
    fails: Exception | None = None,
) -> None:
    async with producer.transaction():
        for value in values:
            await producer.send(topic, b"%d" % value, partition=value % 2)
        await producer.send_offsets(group, offsets)
        if fails is not None:
            raise fails


async def fenced(address: str) -> None:
    """A second producer of the same transactional id ends the first."""
    async with connected(address) as client:
        await need(client, ApiKey.INIT_PRODUCER_ID)
        topic, name = await new_topic(client), new_name("txn")
        async with Producer(client, transactional_id=name) as old, Producer(client, transactional_id=name) as new:
            async with old.transaction():
                await old.send(topic, b"1")
            async with new.transaction():
                await new.send(topic, b"2")
            with pytest.raises(KafkaError) as caught:
                async with old.transaction():
                    await old.send(topic, b"3")
            assert caught.value.code in {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
            with pytest.raises(KafkaError):
                async with old.transaction():
                    pass
        assert [each.value for each in await read_all(client, topic, isolation="read_committed")] == [b"1", b"2"]


async def administration(address: str) -> None:
    async with connected(address) as client:
        await need(client, ApiKey.DESCRIBE_CONFIGS)
        admin = Admin(client)
        topic = await new_topic(client, partitions=2, retention_ms="123456789")
        assert topic in await admin.topics()
        assert list((await admin.describe_topics([topic]))[topic].partitions) == [0, 1]
        with pytest.raises(KafkaError) as caught:
            await admin.create_topic(topic)
        assert caught.value.code == ErrorCode.TOPIC_ALREADY_EXISTS
        await admin.create_partitions({topic: 3})
        configs = await admin.describe_configs("topic", topic, ["retention.ms", "cleanup.policy"])
        assert configs["retention.ms"].value == "123456789"
        assert not configs["retention.ms"].is_default
        assert configs["cleanup.policy"].is_default
        if await serves(client, ApiKey.INCREMENTAL_ALTER_CONFIGS):
            await admin.alter_configs("topic", topic, {"retention.ms": None, "segment.bytes": "1048577"})
            while not configs["retention.ms"].is_default:  # a Kafka takes a moment; the scenario's time is limited
                configs = await admin.describe_configs("topic", topic, ["retention.ms", "segment.bytes"])
            assert configs["segment.bytes"].value == "1048577"
        partition = TopicPartition(topic, 0)
        async with Producer(client) as producer:
            for index in range(10):
                await producer.send(topic, b"%d" % index, partition=0)
        assert await admin.delete_records({partition: 4}) == {partition: 4}
        async with Consumer(client) as consumer:
            assert await consumer.beginning_offsets([partition]) == {partition: 4}
        cluster = await admin.describe_cluster()
        assert cluster.controller_id in {node.id for node in cluster.nodes}
        assert any(partition in each.sizes for each in await admin.log_dirs())
        await group_administration(client, admin, partition)
        await admin.delete_topics([topic])
        assert topic not in await admin.topics()


async def group_administration(client: Client, admin: Admin, partition: TopicPartition) -> None:
    group = new_name("group")
    await admin.alter_group_offsets(group, {partition: 7})
    assert (await admin.group_offsets(group))[partition].offset == 7
    assert group in {each.group for each in await admin.list_groups()}
    async with Consumer(client, group=group, heartbeat_ms=200) as consumer:
        await consumer.subscribe([partition.topic])
        await until(lambda: len(consumer.assignment) == 3, consumer)
        described = (await admin.describe_groups([group]))[group]
        assert described.state == "Stable"
        assert set(described.members[0].assignment) == set(consumer.assignment)
        assert described.members[0].topics == (partition.topic,)
        with pytest.raises(KafkaError):
            await admin.delete_groups([group])
    assert (await admin.describe_groups([group]))[group].state == "Empty"
    if await serves(client, ApiKey.OFFSET_DELETE):
        await admin.delete_group_offsets(group, [partition])
        assert (await admin.group_offsets(group, [partition]))[partition] is None
        await admin.alter_group_offsets(group, {partition: 1})  # a Kafka forgets a group without offsets
    await admin.delete_groups([group])
    assert group not in {each.group for each in await admin.list_groups()}


SCENARIOS = [
    every_codec,
    times,
    log_append_time,
    refused_times,
    too_large,
    unknown_topics,
    partitioning,
    groups,
    transactions,
    fenced,
    administration,
]
