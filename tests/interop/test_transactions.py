"""Transactions by real clients: commit, abort, commit, seen by isolation level; exactly-once from topic to topic; a killed broker."""

import asyncio
import gc
import time
import warnings
from collections.abc import Callable, Iterator

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

with warnings.catch_warnings():  # it reads its schemas in a way that Python deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer

from tests.support.broker_process import BrokerProcess
from tests.support.fixtures import BrokerStarter
from tests.support.names import unique

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
WAIT_SECONDS = 60.0
EACH = 50
ROUNDS = ((b"first", True), (b"aborted", False), (b"last", True))
"""Commit, abort, commit: readers of committed records see two thirds of it."""


@pytest.fixture(autouse=True)
def collect_what_clients_leave() -> Iterator[None]:
    """Unclosed sockets of theirs are said here and not at some later test."""
    yield
    gc.collect()


def values(name: bytes) -> list[bytes]:
    return [b"%s-%d" % (name, number) for number in range(EACH)]


def with_confluent(address: str, topic: str, transactional_id: str) -> None:
    producer = Producer({"bootstrap.servers": address, "transactional.id": transactional_id, "linger.ms": 5})
    producer.init_transactions(WAIT_SECONDS)
    for name, commit in ROUNDS:
        producer.begin_transaction()
        for value in values(name):
            producer.produce(topic, value, partition=0)
        producer.flush(WAIT_SECONDS)
        if commit:
            producer.commit_transaction(WAIT_SECONDS)
        else:
            producer.abort_transaction(WAIT_SECONDS)


def with_aiokafka(address: str, topic: str, transactional_id: str) -> None:
    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=address, transactional_id=transactional_id)
        await producer.start()
        try:
            for name, commit in ROUNDS:
                await producer.begin_transaction()
                for future in [await producer.send(topic, value, partition=0) for value in values(name)]:
                    await future
                await (producer.commit_transaction() if commit else producer.abort_transaction())
        finally:
            await producer.stop()

    asyncio.run(run())


def with_kafka_python(address: str, topic: str, transactional_id: str) -> None:
    producer = KafkaProducer(bootstrap_servers=address, transactional_id=transactional_id)
    try:
        producer.init_transactions()
        for name, commit in ROUNDS:
            producer.begin_transaction()
            for value in values(name):
                producer.send(topic, value, partition=0)
            producer.flush(WAIT_SECONDS)
            if commit:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    finally:
        producer.close()


CLIENTS: dict[str, Callable[[str, str, str], None]] = {
    "confluent-kafka": with_confluent,
    "aiokafka": with_aiokafka,
    "kafka-python": with_kafka_python,
}


def read(address: str, topic: str, isolation: str, expected: int) -> list[bytes]:
    """So many values from the start, and whatever comes in the half second after them."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": unique("reader"),
            "enable.auto.commit": False,
            "isolation.level": isolation,
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[bytes] = []
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        messages = consumer.consume(500, 0.5)
        found += [message.value() for message in messages if message.error() is None]
        if not messages and len(found) >= expected:
            break
    consumer.close()
    return found


@pytest.mark.parametrize("client", CLIENTS)
def test_readers_see_what_their_isolation_level_shows(session_broker: BrokerProcess, client: str) -> None:
    topic = unique("transactions")
    CLIENTS[client](session_broker.address, topic, unique("id"))
    committed = values(b"first") + values(b"last")
    everything = values(b"first") + values(b"aborted") + values(b"last")
    assert read(session_broker.address, topic, "read_committed", len(committed)) == committed
    assert read(session_broker.address, topic, "read_uncommitted", len(everything)) == everything


def test_a_second_producer_fences_the_first(session_broker: BrokerProcess) -> None:
    topic, transactional_id = unique("fenced"), unique("id")
    settings = {"bootstrap.servers": session_broker.address, "transactional.id": transactional_id}
    first, second = Producer(settings), Producer(settings)
    first.init_transactions(WAIT_SECONDS)
    first.begin_transaction()
    first.produce(topic, b"of the first", partition=0)
    first.flush(WAIT_SECONDS)
    second.init_transactions(WAIT_SECONDS)
    with pytest.raises(KafkaException) as raised:
        first.commit_transaction(WAIT_SECONDS)
    assert raised.value.args[0].fatal()
    second.begin_transaction()
    second.produce(topic, b"of the second", partition=0)
    second.commit_transaction(WAIT_SECONDS)
    assert read(session_broker.address, topic, "read_committed", 1) == [b"of the second"]


def group_consumer(address: str, group: str, topic: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
        }
    )
    consumer.subscribe([topic])
    return consumer


def transform(
    address: str, source: str, target: str, group: str, transactional_id: str, count: int, *, dies: bool
) -> int:
    """Consume, transform, produce, with the offsets in the same transaction, until so many records are done.

    Or, if it `dies`, until the transaction that would do the last of them, which it leaves open; how many are done.
    """
    consumer = group_consumer(address, group, source)
    producer = Producer({"bootstrap.servers": address, "transactional.id": transactional_id, "linger.ms": 0})
    producer.init_transactions(WAIT_SECONDS)
    done = 0
    end = time.monotonic() + WAIT_SECONDS
    while done < count and time.monotonic() < end:
        messages = [one for one in consumer.consume(10, 0.5) if one.error() is None]
        if not messages:
            continue
        producer.begin_transaction()
        for message in messages:
            producer.produce(target, b"made of " + message.value(), partition=0)
        positions = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), WAIT_SECONDS)
        if dies and done + len(messages) >= count:
            producer.flush(WAIT_SECONDS)  # and no commit
            break
        producer.commit_transaction(WAIT_SECONDS)
        done += len(messages)
    consumer.close()
    return done


def test_confluent_transforms_every_record_exactly_once_though_the_program_dies(session_broker: BrokerProcess) -> None:
    address, source, target = session_broker.address, unique("source"), unique("target")
    group, transactional_id = unique("group"), unique("id")
    with_confluent(address, source, unique("id"))
    expected = values(b"first") + values(b"last")
    first = transform(address, source, target, group, transactional_id, 45, dies=True)
    second = transform(address, source, target, group, transactional_id, len(expected) - first, dies=False)
    assert first + second == len(expected)
    assert read(address, target, "read_committed", len(expected)) == [b"made of " + one for one in expected]


def test_nothing_is_half_committed_by_a_broker_that_is_killed_in_the_middle(start_broker: BrokerStarter) -> None:
    broker = start_broker()
    topic = unique("killed")
    producer = Producer(
        {"bootstrap.servers": broker.address, "transactional.id": "id", "transaction.timeout.ms": 20_000}
    )
    producer.init_transactions(WAIT_SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"committed", partition=0)
    producer.commit_transaction(WAIT_SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush(WAIT_SECONDS)
    broker.kill()
    broker.start()
    assert read(broker.address, topic, "read_committed", 1) == [b"committed"]
    producer.commit_transaction(WAIT_SECONDS)
    assert read(broker.address, topic, "read_committed", 2) == [b"committed", b"open"]
