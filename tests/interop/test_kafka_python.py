"""The client kafka-python against a broker process: produce, consume by assignment, lookups by time, administration."""

import gc
import time
import warnings
from collections.abc import Iterator

import pytest

with warnings.catch_warnings():  # it reads its schemas in a way that Python deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
    from kafka.codec import has_snappy
    from kafka.errors import InvalidTimestampError

from tests.interop.samples import BEYOND_MS, CODECS, SAMPLES, TARGETS, Sample, first_at_or_after
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
WAIT_SECONDS = 60


@pytest.fixture(autouse=True)
def collect_what_the_client_leaves() -> Iterator[None]:
    """It does not close its wake-up sockets; let that be said here and not at some later test."""
    yield
    gc.collect()


@pytest.fixture
def admin(session_broker: BrokerProcess) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=session_broker.address)
    yield client
    client.close()


def create(admin: KafkaAdminClient, **config: str) -> str:
    name = unique("kafka-python")
    admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=1, topic_configs=config)])
    return name


def produce(
    broker: BrokerProcess, topic: str, samples: list[Sample], codec: str = "none", **config: object
) -> list[object]:
    sender = KafkaProducer(
        bootstrap_servers=broker.address,
        compression_type=None if codec == "none" else codec,
        linger_ms=20,
        **config,
    )
    try:
        futures = [
            sender.send(topic, one.value, one.key, list(one.headers), partition=0, timestamp_ms=one.timestamp)
            for one in samples
        ]
        return [future.get(WAIT_SECONDS) for future in futures]
    finally:
        sender.close()


def consume(broker: BrokerProcess, topic: str, expected: int) -> list[object]:
    consumer = KafkaConsumer(
        bootstrap_servers=broker.address, group_id=None, auto_offset_reset="earliest", enable_auto_commit=False
    )
    try:
        consumer.assign([TopicPartition(topic, 0)])
        records: list[object] = []
        end = time.monotonic() + WAIT_SECONDS
        while len(records) < expected and time.monotonic() < end:
            for batch in consumer.poll(timeout_ms=500).values():
                records += batch
        return records
    finally:
        consumer.close()


def as_sample(record: object) -> Sample:
    return Sample(record.timestamp, record.key, record.value, tuple(record.headers))


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_produced_is_consumed(session_broker: BrokerProcess, admin: KafkaAdminClient, codec: str) -> None:
    if codec == "snappy" and not has_snappy():
        pytest.skip("kafka-python finds no snappy library")
    topic = create(admin)
    told = produce(session_broker, topic, SAMPLES, codec, enable_idempotence=False)
    assert [report.offset for report in told] == list(range(len(SAMPLES)))
    assert [as_sample(record) for record in consume(session_broker, topic, len(SAMPLES))] == SAMPLES


def test_look_ups_by_time(session_broker: BrokerProcess, admin: KafkaAdminClient) -> None:
    topic = create(admin)
    produce(session_broker, topic, SAMPLES)
    consumer = KafkaConsumer(bootstrap_servers=session_broker.address, group_id=None)
    partition = TopicPartition(topic, 0)
    try:
        for target in TARGETS:
            found = consumer.offsets_for_times({partition: target})[partition]
            assert (found.offset, found.timestamp) == first_at_or_after(target), target
        assert consumer.offsets_for_times({partition: BEYOND_MS})[partition] is None
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: len(SAMPLES)}
    finally:
        consumer.close()


def test_log_append_time_is_what_everybody_is_told(session_broker: BrokerProcess, admin: KafkaAdminClient) -> None:
    topic = create(admin, **{"message.timestamp.type": "LogAppendTime"})
    before = int(time.time() * 1000)
    told = produce(session_broker, topic, SAMPLES[:10])
    read = consume(session_broker, topic, 10)
    assert {record.timestamp_type for record in read} == {1}
    for record in [*told, *read]:
        assert before <= record.timestamp <= int(time.time() * 1000)


def test_a_time_out_of_bounds_is_the_clients_own_error(session_broker: BrokerProcess, admin: KafkaAdminClient) -> None:
    topic = create(admin, **{"message.timestamp.difference.max.ms": "3600000"})
    late = Sample(int(time.time() * 1000) - 172_800_000, b"k", b"v", ())
    with pytest.raises(InvalidTimestampError):
        produce(session_broker, topic, [late])
    produce(session_broker, topic, [late._replace(timestamp=int(time.time() * 1000))])


def test_topics_and_configurations(admin: KafkaAdminClient) -> None:
    topic = create(admin, **{"retention.ms": "1234"})
    assert topic in admin.list_topics()
    told = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    assert "1234" in str(told)
    admin.delete_topics([topic])
    assert topic not in admin.list_topics()


def test_an_idempotent_producer(session_broker: BrokerProcess, admin: KafkaAdminClient) -> None:
    topic = create(admin)
    produce(session_broker, topic, SAMPLES, enable_idempotence=True)
    assert [as_sample(record) for record in consume(session_broker, topic, len(SAMPLES))] == SAMPLES
