"""Consumer groups with unmodified clients: two members share, one leaves, offsets are resumed, groups are looked at, reset and removed."""

import asyncio
import gc
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tests.support.broker_process import BrokerProcess
from tests.support.names import unique

with warnings.catch_warnings():  # it reads its schemas in a way that Python deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer
    from kafka import TopicPartition as KafkaPlace
    from kafka.admin import OffsetTimestamp

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
PARTITIONS = 4
RECORDS = 40
WAIT_SECONDS = 60.0
BASE_MS = time.time_ns() // 1_000_000 - 600_000


@pytest.fixture(autouse=True)
def collect_what_clients_leave() -> Iterator[None]:
    """Some do not close all of their sockets, or late; let that be said here and not at some later test."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(10.0)
    gc.collect()


@pytest.fixture
def admin(session_broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": session_broker.address})


@pytest.fixture
def topic(session_broker: BrokerProcess, admin: AdminClient) -> str:
    """A topic with records on every partition; record n has the time BASE_MS + n seconds."""
    name = unique("grouped")
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(WAIT_SECONDS)
    produce(session_broker, name, 0)
    return name


def produce(broker: BrokerProcess, topic: str, first: int) -> None:
    producer = Producer({"bootstrap.servers": broker.address})
    for number in range(first, first + RECORDS):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS, timestamp=BASE_MS + number * 1000)
    assert not producer.flush(WAIT_SECONDS)


def until(condition: Callable[[], bool], step: Callable[[], object]) -> None:
    """Step until it is so."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come to it in time"
        step()


# -- confluent-kafka, both protocols


def confluent(broker: BrokerProcess, group: str, protocol: str, **config: object) -> Consumer:
    timeouts = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 300} if protocol == "classic" else {}
    return Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        | timeouts
        | {key.replace("_", "."): value for key, value in config.items()}
    )


def read(consumers: Sequence[Consumer], seen: list[int]) -> None:
    for consumer in consumers:
        message = consumer.poll(0.05)
        if message is not None:
            assert message.error() is None, message.error()
            seen.append(int(message.value() or b""))


@pytest.fixture
def quick_broker(start_broker: Callable[..., BrokerProcess]) -> BrokerProcess:
    """Members of the newer protocol hear of changes with their heartbeats: here they come quickly."""
    return start_broker(group__consumer__heartbeat__interval__ms=200, group__initial__rebalance__delay__ms=0)


@pytest.mark.parametrize(
    ("protocol", "strategy"), [("classic", "range"), ("classic", "cooperative-sticky"), ("consumer", None)]
)
def test_confluent_members_share_leave_and_resume(
    quick_broker: BrokerProcess, protocol: str, strategy: str | None
) -> None:
    broker, group, name = quick_broker, unique("group"), unique("shared")
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(WAIT_SECONDS)
    produce(broker, name, 0)
    config = {"partition_assignment_strategy": strategy} if strategy else {}
    first, second = (confluent(broker, group, protocol, **config) for _ in range(2))
    seen: list[int] = []
    first.subscribe([name])
    until(lambda: len(seen) == RECORDS, lambda: read([first], seen))
    first.commit(asynchronous=False)
    second.subscribe([name])
    until(lambda: len(first.assignment()) == len(second.assignment()) == 2, lambda: read([first, second], seen))
    assert {one.partition for one in first.assignment() + second.assignment()} == set(range(PARTITIONS))
    produce(broker, name, RECORDS)
    until(lambda: len(seen) == 2 * RECORDS, lambda: read([first, second], seen))
    for consumer in (first, second):
        consumer.commit(asynchronous=False)
    first.close()
    until(lambda: len(second.assignment()) == PARTITIONS, lambda: read([second], seen))
    second.close()
    assert sorted(seen) == list(range(2 * RECORDS))
    broker.kill()
    broker.start()
    produce(broker, name, 2 * RECORDS)
    third = confluent(broker, group, protocol, **config)
    third.subscribe([name])
    resumed: list[int] = []
    until(lambda: len(resumed) >= RECORDS, lambda: read([third], resumed))
    third.close()
    assert sorted(resumed) == list(range(2 * RECORDS, 3 * RECORDS))


def test_confluent_subscribes_by_pattern(quick_broker: BrokerProcess) -> None:
    prefix = unique("pattern")
    admin = AdminClient({"bootstrap.servers": quick_broker.address})
    names = [f"{prefix}-{end}" for end in "ab"]
    for future in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        future.result(WAIT_SECONDS)
    consumer = confluent(quick_broker, unique("group"), "consumer")
    consumer.subscribe([f"^{prefix}-.*"])
    until(lambda: {one.topic for one in consumer.assignment()} == set(names), lambda: consumer.poll(0.05))
    consumer.close()


def test_confluent_static_member_comes_back_without_a_rebalance(session_broker: BrokerProcess, topic: str) -> None:
    group, rebalances = unique("group"), []
    other = confluent(session_broker, group, "classic", group_instance_id="other")
    other.subscribe([topic], on_assign=lambda *_: rebalances.append("assigned"))
    static = confluent(session_broker, group, "classic", group_instance_id="static")
    static.subscribe([topic])
    until(lambda: len(other.assignment()) == len(static.assignment()) == 2, lambda: read([other, static], []))
    mine, count = static.assignment(), len(rebalances)
    static.close()
    again = confluent(session_broker, group, "classic", group_instance_id="static")
    again.subscribe([topic])
    until(lambda: len(again.assignment()) == 2, lambda: read([other, again], []))
    assert again.assignment() == mine
    assert len(rebalances) == count
    for consumer in (other, again):
        consumer.close()


def test_confluent_looks_at_resets_and_removes_groups(
    session_broker: BrokerProcess, admin: AdminClient, topic: str
) -> None:
    group, seen = unique("group"), []
    consumer = confluent(session_broker, group, "classic")
    consumer.subscribe([topic])
    until(lambda: len(seen) == RECORDS, lambda: read([consumer], seen))
    consumer.commit(asynchronous=False)
    listed = {one.group_id: one for one in admin.list_consumer_groups().result(WAIT_SECONDS).valid}
    assert (listed[group].state.name, listed[group].type.name) == ("STABLE", "CLASSIC")
    described = admin.describe_consumer_groups([group])[group].result(WAIT_SECONDS)
    assert described.partition_assignor == "range"
    (member,) = described.members
    assert {one.partition for one in member.assignment.topic_partitions} == set(range(PARTITIONS))
    with pytest.raises(KafkaException, match="NON_EMPTY_GROUP"):
        admin.delete_consumer_groups([group])[group].result(WAIT_SECONDS)
    consumer.close()

    wanted_ms = BASE_MS + RECORDS // 2 * 1000
    places = [Place(topic, partition) for partition in range(PARTITIONS)]
    found = admin.list_offsets({place: OffsetSpec.for_timestamp(wanted_ms) for place in places})
    offsets = [
        Place(place.topic, place.partition, future.result(WAIT_SECONDS).offset) for place, future in found.items()
    ]
    until(
        lambda: admin.describe_consumer_groups([group])[group].result(WAIT_SECONDS).state.name == "EMPTY",
        lambda: time.sleep(0.05),
    )
    asked = [ConsumerGroupTopicPartitions(group, offsets)]
    altered = admin.alter_consumer_group_offsets(asked)[group].result(WAIT_SECONDS)
    assert all(one.error is None for one in altered.topic_partitions)
    again, seen = confluent(session_broker, group, "classic"), []
    again.subscribe([topic])
    until(lambda: len(seen) == RECORDS // 2, lambda: read([again], seen))
    assert min(seen) == RECORDS // 2
    again.close()
    admin.delete_consumer_groups([group])[group].result(WAIT_SECONDS)
    left = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(WAIT_SECONDS)
    assert not left.topic_partitions


# -- aiokafka


async def aiokafka_consumer(broker: BrokerProcess, group: str, topic: str) -> AIOKafkaConsumer:
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=broker.address,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6_000,
        heartbeat_interval_ms=300,
    )
    await consumer.start()
    return consumer


async def aiokafka_read(consumers: Sequence[AIOKafkaConsumer], count: int) -> list[int]:
    seen: list[int] = []
    async with asyncio.timeout(WAIT_SECONDS):
        while len(seen) < count:
            for consumer in consumers:
                for records in (await consumer.getmany(timeout_ms=50)).values():
                    seen += [int(record.value) for record in records]
    return sorted(seen)


async def test_aiokafka_members_share_leave_and_resume(session_broker: BrokerProcess, topic: str) -> None:
    group = unique("group")
    first = await aiokafka_consumer(session_broker, group, topic)
    assert await aiokafka_read([first], RECORDS) == list(range(RECORDS))
    await first.commit()
    second = await aiokafka_consumer(session_broker, group, topic)
    async with asyncio.timeout(WAIT_SECONDS):
        while not len(first.assignment()) == len(second.assignment()) == 2:  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0.05)
    await asyncio.to_thread(produce, session_broker, topic, RECORDS)
    assert await aiokafka_read([first, second], RECORDS) == list(range(RECORDS, 2 * RECORDS))
    await first.commit()
    await second.commit()
    await first.stop()
    await second.stop()
    third = await aiokafka_consumer(session_broker, group, topic)
    await asyncio.to_thread(produce, session_broker, topic, 2 * RECORDS)
    assert await aiokafka_read([third], RECORDS) == list(range(2 * RECORDS, 3 * RECORDS))
    await third.stop()


async def test_aiokafka_administers_groups(session_broker: BrokerProcess, topic: str) -> None:
    group = unique("group")
    consumer = await aiokafka_consumer(session_broker, group, topic)
    await aiokafka_read([consumer], RECORDS)
    await consumer.commit()
    admin = AIOKafkaAdminClient(bootstrap_servers=session_broker.address)
    await admin.start()
    assert (group, "consumer") in await admin.list_consumer_groups()
    offsets = await admin.list_consumer_group_offsets(group)
    assert offsets[TopicPartition(topic, 0)].offset == RECORDS // PARTITIONS
    described = await admin.describe_consumer_groups([group])
    assert described[0].groups[0][1:4] == (group, "Stable", "consumer")
    await consumer.stop()
    await admin.close()


# -- kafka-python


def kafka_python_consumer(broker: BrokerProcess, group: str, topic: str) -> KafkaConsumer:
    return KafkaConsumer(
        topic,
        bootstrap_servers=broker.address,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6_000,
        heartbeat_interval_ms=300,
    )


JOIN_MS = 10_000
"""How long the first poll of a lone member may take; it ends with the first records.

kafka-python 3.0.12 joins before it knows the topic's partitions, then again when it does. If a poll ends while this second join is under way,
the assignment that it brings is dropped and the member believes that it has nothing to read: so the join has to fit into one poll.
"""


def kafka_python_read(consumers: Sequence[KafkaConsumer], seen: list[int], timeout_ms: int = 100) -> None:
    for consumer in consumers:
        for records in consumer.poll(timeout_ms=timeout_ms).values():
            seen += [int(record.value) for record in records]


def test_kafka_python_members_share_leave_and_resume(session_broker: BrokerProcess, topic: str) -> None:
    group, seen = unique("group"), []
    first = kafka_python_consumer(session_broker, group, topic)
    until(lambda: len(seen) == RECORDS, lambda: kafka_python_read([first], seen, JOIN_MS))
    first.commit()
    second = kafka_python_consumer(session_broker, group, topic)
    until(
        lambda: len(first.assignment()) == len(second.assignment()) == 2,
        lambda: kafka_python_read([first, second], seen),
    )
    produce(session_broker, topic, RECORDS)
    until(lambda: len(seen) == 2 * RECORDS, lambda: kafka_python_read([first, second], seen))
    assert sorted(seen) == list(range(2 * RECORDS))
    first.commit()
    second.commit()
    first.close()
    until(lambda: len(second.assignment()) == PARTITIONS, lambda: kafka_python_read([second], seen))
    second.close()
    resumed: list[int] = []
    third = kafka_python_consumer(session_broker, group, topic)
    produce(session_broker, topic, 2 * RECORDS)
    until(lambda: len(resumed) >= RECORDS, lambda: kafka_python_read([third], resumed, JOIN_MS))
    third.close()
    assert sorted(resumed) == list(range(2 * RECORDS, 3 * RECORDS))


def test_kafka_python_looks_at_resets_and_removes_groups(session_broker: BrokerProcess, topic: str) -> None:
    group, seen = unique("group"), []
    consumer = kafka_python_consumer(session_broker, group, topic)
    until(lambda: len(seen) == RECORDS, lambda: kafka_python_read([consumer], seen, JOIN_MS))
    consumer.commit()
    admin = KafkaAdminClient(bootstrap_servers=session_broker.address)
    assert group in str(admin.list_groups())
    assert "Stable" in str(admin.describe_groups([group])[group])
    places = [KafkaPlace(topic, partition) for partition in range(PARTITIONS)]
    offsets = admin.list_group_offsets(group)[group]
    assert [offsets[place].offset for place in places] == [RECORDS // PARTITIONS] * PARTITIONS
    assert "NonEmptyGroup" in str(admin.delete_groups([group]))
    consumer.close()
    wanted = OffsetTimestamp(BASE_MS + RECORDS // 2 * 1000)
    admin.reset_group_offsets(group, dict.fromkeys(places, wanted))
    offsets = admin.list_group_offsets(group)[group]
    assert sum(offsets[place].offset for place in places) == RECORDS // 2
    admin.delete_groups([group])
    assert group not in str(admin.list_groups())
    admin.close()
