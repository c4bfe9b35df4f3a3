"""What the bundled client makes of connections that break, brokers that are killed, and brokers of the first versions."""

import asyncio
import random
from pathlib import Path

import pytest

from horolog import Admin, Client, Consumer, Producer, TopicPartition
from horolog.client.values.errors import ConnectionFailed, KafkaError
from horolog.client.wire.retry import RetryPolicy
from horolog.protocol.apis import ApiKey
from tests.interop.our_client import BASE_MS, connected, new_name, new_topic, one_transaction, read, read_all, until
from tests.support.broker_process import BrokerProcess
from tests.support.fake_peer import go_between
from tests.support.fixtures import BrokerStarter


async def test_an_idempotent_producer_writes_once_whatever_connections_do(session_broker: BrokerProcess) -> None:
    """Connections end before requests arrive and before answers come back; every record is there once, and in order."""
    rng = random.Random(7)

    def cuts(key: int, _is_answer: bool) -> bool:
        return key == ApiKey.PRODUCE and rng.random() < 0.4

    async with go_between(session_broker.host, session_broker.port, cuts) as address, connected(address, 5) as client:
        topic = await new_topic(client)
        async with Producer(client, batch_bytes=600, linger_ms=1) as producer:
            futures = [await producer.send(topic, b"%d" % index) for index in range(300)]
        offsets = [future.result().offset for future in futures]
        async with connected(session_broker.address) as direct:
            got = await read_all(direct, topic)
    assert [int(each.value) for each in got] == list(range(300))
    assert offsets == [each.offset for each in got]


async def test_transactions_go_through_whatever_connections_do(session_broker: BrokerProcess) -> None:
    rng = random.Random(11)
    steps = {ApiKey.PRODUCE, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT}

    def cuts(key: int, _is_answer: bool) -> bool:
        return key in steps and rng.random() < 0.2

    async with go_between(session_broker.host, session_broker.port, cuts) as address, connected(address, 5) as client:
        topic, group = await new_topic(client, partitions=2), new_name("group")
        async with Producer(client, transactional_id=new_name("txn")) as producer:
            for part in range(8):
                offsets = {TopicPartition(topic, 0): part + 1}
                await one_transaction(producer, topic, range(part * 10, part * 10 + 10), group, offsets)
        async with connected(session_broker.address) as direct:
            got = await read_all(direct, topic, 2, isolation="read_committed")
            offsets = await Admin(direct).group_offsets(group)
    assert [int(each.value) for each in got if each.partition == 0] == list(range(0, 80, 2))
    assert [int(each.value) for each in got if each.partition == 1] == list(range(1, 80, 2))
    assert offsets[TopicPartition(topic, 0)].offset == 8


async def test_a_consumer_goes_on_whatever_connections_do(session_broker: BrokerProcess) -> None:
    rng = random.Random(5)
    kinds = {ApiKey.FETCH, ApiKey.HEARTBEAT, ApiKey.OFFSET_COMMIT, ApiKey.LIST_OFFSETS}

    def cuts(key: int, _is_answer: bool) -> bool:
        return key in kinds and rng.random() < 0.3

    async with connected(session_broker.address) as direct:
        topic = await new_topic(direct, partitions=2)
        async with Producer(direct, batch_bytes=300) as producer:
            for index in range(300):
                await producer.send(topic, b"%d" % index, partition=index % 2)
    async with go_between(session_broker.host, session_broker.port, cuts) as address, connected(address, 5) as client:
        options = {"group": new_name("group"), "heartbeat_ms": 50, "partition_max_bytes": 700}
        async with Consumer(client, **options) as consumer:
            await consumer.subscribe([topic])
            got = await read(consumer, 300)
            await consumer.commit()
    assert sorted(int(each.value) for each in got) == list(range(300))


async def test_a_group_resumes_after_its_broker_was_killed(start_broker: BrokerStarter, tmp_path: Path) -> None:
    """Kill -9, start again: the members come back to the group, committed offsets are kept, nothing is lost."""
    broker = start_broker(tmp_path / "data", group__initial__rebalance__delay__ms=0)
    async with connected(broker.address) as client:
        topic = await new_topic(client, partitions=2)
        consumer = Consumer(client, group="g", heartbeat_ms=100, session_timeout_ms=6_000)
        async with consumer, Producer(client) as producer:
            await consumer.subscribe([topic])
            for index in range(100):
                await producer.send(topic, b"%d" % index, partition=index % 2)
            await producer.flush()
            first = await read(consumer, 100)
            await consumer.commit()
            broker.kill()
            restarted = asyncio.create_task(asyncio.to_thread(broker.start))
            for index in range(100, 200):
                await producer.send(topic, b"%d" % index, partition=index % 2)
            await restarted
            await producer.flush()
            second = await read(consumer, 100)
            await consumer.commit()
        assert [int(each.value) for each in sorted(first + second, key=lambda each: int(each.value))] == [*range(200)]
        async with Consumer(client, group="g") as later:
            await later.subscribe([topic])
            await until(lambda: len(later.assignment) == 2, later)
            assert await later.poll(300) == []


@pytest.mark.one_worker("it is sent on to a second broker, which has heard of ApiVersions")
async def test_a_broker_that_never_heard_of_api_versions(session_broker: BrokerProcess) -> None:
    """As before 0.10: the connection ends on ApiVersions, and the oldest versions carry everything."""

    def cuts(key: int, _is_answer: bool) -> bool:
        return key == ApiKey.API_VERSIONS

    async with go_between(session_broker.host, session_broker.port, cuts) as address, connected(address, 5) as client:
        assert not (await client.versions()).told
        topic = new_name()
        for codec in (None, "gzip", "snappy", "lz4"):
            async with Producer(client, compression=codec) as producer:
                for index in range(50):
                    await producer.send(topic, b"%d" % index, key=b"k", timestamp_ms=BASE_MS)
        partition = TopicPartition(topic, 0)
        async with Consumer(client, group=new_name("group"), heartbeat_ms=100) as consumer:
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 200}
            with pytest.raises(KafkaError, match="ListOffsets"):
                await consumer.offsets_for_times({partition: BASE_MS})
            await consumer.subscribe([topic])
            got = await read(consumer, 200)
            assert [int(each.value) for each in got] == [*range(50)] * 4
            assert {each.timestamp_ms for each in got} == {-1}
            await consumer.commit()
            assert (await consumer.committed([partition]))[partition].offset == 200


async def test_nobody_listens() -> None:
    async with asyncio.timeout(30), Client("127.0.0.1:1", retry=RetryPolicy(timeout_ms=300)) as client:
        with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.1:1"):
            await client.metadata()
        async with Producer(client) as producer:
            with pytest.raises(ConnectionFailed):
                await producer.send("topic", b"value")
        async with Consumer(client) as consumer:
            with pytest.raises(ConnectionFailed):
                await consumer.end_offsets([TopicPartition("topic", 0)])
