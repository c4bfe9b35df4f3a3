"""The client aiokafka against a broker process: produce, consume by assignment, lookups by time, administration."""

import time
from collections.abc import AsyncIterator

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import InvalidTimestampError
from aiokafka.structs import ConsumerRecord

from tests.interop.samples import BEYOND_MS, CODECS, SAMPLES, TARGETS, Sample, first_at_or_after
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique

WAIT_SECONDS = 60


@pytest.fixture
async def admin(session_broker: BrokerProcess) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(bootstrap_servers=session_broker.address)
    await client.start()
    yield client
    await client.close()


async def create(admin: AIOKafkaAdminClient, **config: str) -> str:
    name = unique("aiokafka")
    await admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=1, topic_configs=config)])
    return name


async def produce(
    broker: BrokerProcess, topic: str, samples: list[Sample], codec: str = "none", **config: object
) -> list[object]:
    sender = AIOKafkaProducer(
        bootstrap_servers=broker.address, compression_type=None if codec == "none" else codec, linger_ms=20, **config
    )
    await sender.start()
    try:
        futures = [
            await sender.send(
                topic, one.value, one.key, partition=0, timestamp_ms=one.timestamp, headers=list(one.headers)
            )
            for one in samples
        ]
        return [await future for future in futures]
    finally:
        await sender.stop()


async def consume(broker: BrokerProcess, topic: str, expected: int) -> list[ConsumerRecord]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=broker.address, group_id=None, auto_offset_reset="earliest", enable_auto_commit=False
    )
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 0)])
        records: list[ConsumerRecord] = []
        end = time.monotonic() + WAIT_SECONDS
        while len(records) < expected and time.monotonic() < end:
            for batch in (await consumer.getmany(timeout_ms=500)).values():
                records += batch
        return records
    finally:
        await consumer.stop()


def as_sample(record: ConsumerRecord) -> Sample:
    return Sample(record.timestamp, record.key, record.value, tuple(record.headers))


@pytest.mark.parametrize("codec", CODECS)
async def test_what_is_produced_is_consumed(
    session_broker: BrokerProcess, admin: AIOKafkaAdminClient, codec: str
) -> None:
    topic = await create(admin)
    told = await produce(session_broker, topic, SAMPLES, codec)
    assert [report.offset for report in told] == list(range(len(SAMPLES)))
    assert [as_sample(record) for record in await consume(session_broker, topic, len(SAMPLES))] == SAMPLES


async def test_look_ups_by_time(session_broker: BrokerProcess, admin: AIOKafkaAdminClient) -> None:
    topic = await create(admin)
    await produce(session_broker, topic, SAMPLES)
    consumer = AIOKafkaConsumer(bootstrap_servers=session_broker.address, group_id=None)
    await consumer.start()
    try:
        partition = TopicPartition(topic, 0)
        for target in TARGETS:
            found = (await consumer.offsets_for_times({partition: target}))[partition]
            assert (found.offset, found.timestamp) == first_at_or_after(target), target
        assert (await consumer.offsets_for_times({partition: BEYOND_MS}))[partition] is None
        assert await consumer.beginning_offsets([partition]) == {partition: 0}
        assert await consumer.end_offsets([partition]) == {partition: len(SAMPLES)}
    finally:
        await consumer.stop()


async def test_log_append_time_is_what_everybody_is_told(
    session_broker: BrokerProcess, admin: AIOKafkaAdminClient
) -> None:
    topic = await create(admin, **{"message.timestamp.type": "LogAppendTime"})
    before = int(time.time() * 1000)
    told = await produce(session_broker, topic, SAMPLES[:10])
    for record in [*told, *await consume(session_broker, topic, 10)]:
        assert record.timestamp_type == 1
        assert before <= record.timestamp <= int(time.time() * 1000)


async def test_a_time_out_of_bounds_is_the_clients_own_error(
    session_broker: BrokerProcess, admin: AIOKafkaAdminClient
) -> None:
    topic = await create(admin, **{"max.message.time.difference.ms": "3600000"})
    late = Sample(int(time.time() * 1000) - 172_800_000, b"k", b"v", ())
    with pytest.raises(InvalidTimestampError):
        await produce(session_broker, topic, [late])
    await produce(session_broker, topic, [late._replace(timestamp=int(time.time() * 1000))])


async def test_topics_and_configurations(admin: AIOKafkaAdminClient) -> None:
    topic = await create(admin, **{"retention.ms": "1234"})
    assert topic in await admin.list_topics()
    (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    ((_, _, _, _, entries, *_),) = answer.resources
    assert {entry[0]: entry[1] for entry in entries}["retention.ms"] == "1234"
    await admin.delete_topics([topic])
    assert topic not in await admin.list_topics()


async def test_an_idempotent_producer(session_broker: BrokerProcess, admin: AIOKafkaAdminClient) -> None:
    topic = await create(admin)
    await produce(session_broker, topic, SAMPLES, enable_idempotence=True)
    assert [as_sample(record) for record in await consume(session_broker, topic, len(SAMPLES))] == SAMPLES
