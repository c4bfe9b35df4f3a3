"""The client confluent-kafka (librdkafka) against a broker process: produce, consume by assignment, lookups by time, administration."""

import time

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.interop.samples import BEYOND_MS, CODECS, SAMPLES, TARGETS, Sample, first_at_or_after
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique

WAIT_SECONDS = 60.0


@pytest.fixture
def admin(session_broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": session_broker.address})


@pytest.fixture
def topic(admin: AdminClient) -> str:
    name = unique("confluent")
    create(admin, name)
    return name


def create(admin: AdminClient, name: str, partitions: int = 1, **config: str) -> None:
    config = {key.replace("_", "."): value for key, value in config.items()}
    for future in admin.create_topics(
        [NewTopic(name, num_partitions=partitions, replication_factor=1, config=config)]
    ).values():
        future.result(WAIT_SECONDS)


def producer(broker: BrokerProcess, **config: object) -> Producer:
    return Producer(
        {"bootstrap.servers": broker.address, "linger.ms": 20, "message.timeout.ms": 20_000}
        | {k.replace("_", "."): v for k, v in config.items()}
    )


def produce(
    broker: BrokerProcess, topic: str, samples: list[Sample], **config: object
) -> list[tuple[KafkaError | None, Message]]:
    reports: list[tuple[KafkaError | None, Message]] = []
    sender = producer(broker, **config)
    for one in samples:
        sender.produce(
            topic,
            one.value,
            one.key,
            partition=0,
            timestamp=one.timestamp,
            headers=list(one.headers),
            on_delivery=lambda *report: reports.append(report),
        )
    assert sender.flush(WAIT_SECONDS) == 0
    return reports


def consume(broker: BrokerProcess, topic: str, expected: int, offset: int = OFFSET_BEGINNING) -> list[Message]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": "none",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, offset)])
        messages: list[Message] = []
        end = time.monotonic() + WAIT_SECONDS
        while len(messages) < expected and time.monotonic() < end:
            for message in consumer.consume(500, 0.5):
                assert message.error() is None, message.error()
                messages.append(message)
        return messages
    finally:
        consumer.close()


def as_sample(message: Message) -> Sample:
    headers = tuple((key, value) for key, value in message.headers() or [])
    return Sample(message.timestamp()[1], message.key(), message.value(), headers)


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_produced_is_consumed(session_broker: BrokerProcess, topic: str, codec: str) -> None:
    reports = produce(session_broker, topic, SAMPLES, compression_type=codec)
    assert [error for error, _ in reports if error] == []
    assert [message.offset() for _, message in reports] == list(range(len(SAMPLES)))
    read = consume(session_broker, topic, len(SAMPLES))
    assert [as_sample(message) for message in read] == SAMPLES
    assert {message.timestamp()[0] for message in read} == {TIMESTAMP_CREATE_TIME}


def test_look_ups_by_time(session_broker: BrokerProcess, topic: str, admin: AdminClient) -> None:
    produce(session_broker, topic, SAMPLES)
    consumer = Consumer({"bootstrap.servers": session_broker.address, "group.id": "none"})
    for target in TARGETS:
        (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, target)], WAIT_SECONDS)
        assert (found.error, found.offset) == (None, first_at_or_after(target)[0]), target
    (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, BEYOND_MS)], WAIT_SECONDS)
    assert found.offset == -1, "nothing later: the end of the log"
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), WAIT_SECONDS) == (0, len(SAMPLES))
    consumer.close()
    (future,) = admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.max_timestamp()}).values()
    largest = max(one.timestamp for one in SAMPLES)
    assert (future.result().offset, future.result().timestamp) == first_at_or_after(largest)


def test_log_append_time_is_what_everybody_is_told(session_broker: BrokerProcess, admin: AdminClient) -> None:
    name = unique("confluent")
    create(admin, name, message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    reports = produce(session_broker, name, SAMPLES[:10])
    after = int(time.time() * 1000)
    for message in [message for _, message in reports] + consume(session_broker, name, 10):
        kind, timestamp = message.timestamp()
        assert kind == TIMESTAMP_LOG_APPEND_TIME
        assert before <= timestamp <= after


@pytest.mark.parametrize(("key", "age_ms", "refused"), [
    ("message.timestamp.before.max.ms", 7_200_000, True),
    ("message.timestamp.after.max.ms", 7_200_000, False),
    ("message.timestamp.after.max.ms", -7_200_000, True),
    ("message.timestamp.difference.max.ms", 7_200_000, True),
    ("max.message.time.difference.ms", 7_200_000, True),
    ("max.message.time.difference.ms", -7_200_000, True),
    ("max.message.time.difference.ms", 1_800_000, False),
])  # fmt: skip
def test_a_time_out_of_bounds_is_the_clients_own_error(
    session_broker: BrokerProcess, admin: AdminClient, key: str, age_ms: int, *, refused: bool
) -> None:
    name = unique("confluent")
    create(admin, name, **{key: "3600000"})
    late = Sample(int(time.time() * 1000) - age_ms, b"k", b"v", ())
    ((error, _),) = produce(session_broker, name, [late])
    assert (error.code() if error else None) == (KafkaError.INVALID_TIMESTAMP if refused else None)
    ((error, _),) = produce(session_broker, name, [late._replace(timestamp=int(time.time() * 1000))])
    assert error is None


def test_topics_come_and_go(admin: AdminClient) -> None:
    name = unique("confluent")
    create(admin, name, partitions=2, retention_ms="123456")
    described = admin.list_topics(name, WAIT_SECONDS).topics[name]
    assert sorted(described.partitions) == [0, 1]
    (future,) = admin.create_partitions([NewPartitions(name, 3)]).values()
    future.result(WAIT_SECONDS)
    assert sorted(admin.list_topics(name, WAIT_SECONDS).topics[name].partitions) == [0, 1, 2]
    with pytest.raises(Exception, match="TOPIC_ALREADY_EXISTS"):
        create(admin, name)
    (future,) = admin.delete_topics([name]).values()
    future.result(WAIT_SECONDS)
    assert name not in admin.list_topics(timeout=WAIT_SECONDS).topics


def test_configurations_are_told_and_changed(admin: AdminClient, topic: str) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic)

    def value(key: str) -> str:
        (future,) = admin.describe_configs([resource]).values()
        told: str = future.result(WAIT_SECONDS)[key].value
        return told

    assert value("retention.ms") == "604800000"
    change = ConfigEntry("retention.ms", "1000", incremental_operation=AlterConfigOpType.SET)
    (future,) = admin.incremental_alter_configs(
        [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])]
    ).values()
    future.result(WAIT_SECONDS)
    assert value("retention.ms") == "1000"
    change = ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE)
    (future,) = admin.incremental_alter_configs(
        [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])]
    ).values()
    future.result(WAIT_SECONDS)
    assert value("retention.ms") == "604800000"


def test_an_idempotent_producer(session_broker: BrokerProcess, topic: str) -> None:
    reports = produce(session_broker, topic, SAMPLES, enable_idempotence=True, linger_ms=0)
    assert [error for error, _ in reports if error] == []
    assert [as_sample(message) for message in consume(session_broker, topic, len(SAMPLES))] == SAMPLES


def test_a_deleted_beginning_is_not_read(session_broker: BrokerProcess, topic: str, admin: AdminClient) -> None:
    produce(session_broker, topic, SAMPLES)
    (future,) = admin.delete_records([TopicPartition(topic, 0, 150)]).values()
    assert future.result(WAIT_SECONDS).low_watermark == 150
    assert [as_sample(message) for message in consume(session_broker, topic, 50)] == SAMPLES[150:]
