"""What runs while the broker is killed and started again: real clients that write, read, commit and note in a history what they were told.

Every actor runs in a thread of its own until the stop event is set, and survives what its client raises while the broker is away; whatever is not
an error of the network or of the protocol ends the soak. A producer whose client calls an error fatal has come to harm: that is noted, and a new one goes on.
Rates are bounded: the sought faults are found by many ends, not by much load, and others may need the machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPlace
from aiokafka.errors import InvalidProducerEpoch, OutOfOrderSequenceNumber, ProducerFenced, UnknownProducerId
from aiokafka.errors import KafkaError as AioError
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.support.history import History, Outcome, Place

PLAIN, STAMPED, COMMITTED, OTHER = "plain", "stamped", "committed", "other"
TOPICS = (PLAIN, STAMPED, COMMITTED, OTHER)
PARTITIONS = 2
GROUP = "soakers"
FIRST_TIME_MS = 1_600_000_000_000
OPERATION_SECONDS = 60.0
MAX_IN_QUEUE = 200
BURST, BURST_SECONDS = 12, 0.4
"""Records that an idempotent producer hands over at once, two to a batch, and the pause behind them."""
TRANSACTION_PAUSE_SECONDS = 0.4
TRANSACTION_TIMEOUT_MS = 600_000
"""Longer than any start may take: the broker has no reason to end a transaction of a producer that lives."""
AIO_PAUSE_SECONDS = 0.06
AIO_TIMEOUT_MS = 60_000
"""A partition that has no leader for longer leaves a gap in the sequence: the client drops a batch that has its numbers already."""
AIO_FATAL = (OutOfOrderSequenceNumber, UnknownProducerId, ProducerFenced, InvalidProducerEpoch)


@dataclass(slots=True)
class Soak:
    """What the actors share."""

    address: str
    seed: int
    partitions: int = PARTITIONS
    """Of each topic."""
    stop: threading.Event = field(default_factory=threading.Event)
    history: History = field(default_factory=History)
    times: dict[bytes, int] = field(default_factory=dict)
    """The time that each record was given by its producer."""
    numbers: Counter[str] = field(default_factory=Counter)
    """What each actor has written or begun so far, over all its producers: no value comes twice."""
    commits: dict[Place, int] = field(default_factory=dict)
    """The highest offset of the group whose commit was acknowledged."""
    failures: list[str] = field(default_factory=list)
    """Actors that have ended."""
    counts: dict[str, int] = field(default_factory=dict)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def count(self, what: str) -> None:
        with self.guard:
            self.counts[what] = self.counts.get(what, 0) + 1

    def chance(self, name: str) -> random.Random:
        return random.Random(f"{self.seed} {name}")

    def harmed(self, name: str, error: object) -> None:
        with self.guard:
            self.history.died(name, error)

    def next(self, name: str) -> int:
        with self.guard:
            self.numbers[name] += 1
            return self.numbers[name]

    def attempt(self, name: str, place: Place, transaction: str | None = None) -> tuple[bytes, int]:
        """The value and the time of the actor's next record, noted before it is sent."""
        number = self.next(name)
        value, time_ms = f"{name}-{number}".encode(), FIRST_TIME_MS + number * 10
        with self.guard:
            self.times[value] = time_ms
            self.history.attempt(value, place, transaction)
        return value, time_ms


def delivered(soak: Soak, value: bytes) -> Callable[[KafkaError | None, Message], None]:
    def note(error: KafkaError | None, message: Message) -> None:
        if error is None:
            soak.history.acknowledge(value, message.offset())
            soak.count("acknowledged")
        else:
            soak.count("not acknowledged")

    return note


def idempotent_producer(soak: Soak, name: str, topic: str) -> None:
    """Writes with increasing times of its own; the client tries again for as long as the broker is away."""
    chance = soak.chance(name)
    while not soak.stop.is_set():
        errors: list[KafkaError] = []
        producer = Producer(
            {
                "bootstrap.servers": soak.address,
                "log_level": 0,
                "enable.idempotence": True,
                "linger.ms": 2,
                "batch.num.messages": 2,
                "message.timeout.ms": 600_000,
                "error_cb": errors.append,
            }
        )
        while not soak.stop.is_set() and not any(error.fatal() for error in errors):
            _burst(soak, producer, name, topic, chance)
        producer.flush(OPERATION_SECONDS)
        for error in errors:
            if error.fatal():
                soak.harmed(name, error)


def _burst(soak: Soak, producer: Producer, name: str, topic: str, chance: random.Random) -> None:
    """Several batches of a partition are on their way at once, as many as the client allows."""
    partition = chance.randrange(soak.partitions)
    for _ in range(BURST if len(producer) < MAX_IN_QUEUE else 0):
        value, time_ms = soak.attempt(name, (topic, partition))
        try:
            producer.produce(topic, value, partition=partition, timestamp=time_ms, on_delivery=delivered(soak, value))
        except KafkaException as error:
            if not error.args[0].fatal():
                raise
            break  # told by the client's callback
    producer.poll(0)
    if not soak.stop.wait(BURST_SECONDS):
        producer.poll(0)


class GaveUp(Exception):
    """The client cannot continue; on Kafka it could not, either."""


def transactional_producer(soak: Soak, name: str, committed: float = 0.7) -> None:
    """Transactions over all partitions, of which this share is committed and the others are aborted; where its client gives up, a new one takes over."""
    chance = soak.chance(name)
    while not soak.stop.is_set():
        producer = Producer(
            {
                "bootstrap.servers": soak.address,
                "log_level": 0,
                "transactional.id": name,
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
                "message.timeout.ms": TRANSACTION_TIMEOUT_MS,
            }
        )
        try:
            producer.init_transactions(OPERATION_SECONDS)
            while not soak.stop.wait(chance.uniform(0, TRANSACTION_PAUSE_SECONDS)):
                _transact(soak, producer, name, chance, committed)
        except GaveUp:
            soak.count(f"{name}: aborted before a partition was added, and began anew")
        except KafkaException as error:
            soak.count(f"{name}: began anew")
            if not isinstance(error.args[0], KafkaError):
                raise
            if error.args[0].fatal():
                soak.harmed(name, error)


def _transact(soak: Soak, producer: Producer, name: str, chance: random.Random, committed: float) -> None:
    """One transaction; raises what cannot be settled with this producer."""
    transaction = f"{name} {soak.next(f'{name} transactions')}"
    producer.begin_transaction()
    for _ in range(chance.randint(1, 8)):
        partition = chance.randrange(soak.partitions)
        value, time_ms = soak.attempt(name, (COMMITTED, partition), transaction)
        producer.produce(COMMITTED, value, partition=partition, timestamp=time_ms, on_delivery=delivered(soak, value))
    try:
        if chance.random() < committed:
            _persist(lambda: producer.commit_transaction(OPERATION_SECONDS))
            soak.history.end(transaction, Outcome.COMMITTED)
        else:
            _abort(soak, producer, transaction)
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            raise
        soak.count("transactions that had to be aborted")
        _abort(soak, producer, transaction)
    soak.count("transactions")


def _abort(soak: Soak, producer: Producer, transaction: str) -> None:
    """Raises GaveUp if the coordinator has no partition of the transaction yet, to which librdkafka has no answer."""
    try:
        _persist(lambda: producer.abort_transaction(OPERATION_SECONDS))
    except KafkaException as error:
        if error.args[0].code() == KafkaError.INVALID_TXN_STATE:
            raise GaveUp from error
        raise
    soak.history.end(transaction, Outcome.ABORTED)


def _persist(action: Callable[[], None]) -> None:
    while True:
        try:
            action()
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
        else:
            return


def group_member(soak: Soak, name: str) -> None:
    """Reads committed records, and commits where it is now and then."""
    chance = soak.chance(name)
    consumer = Consumer(
        {
            "bootstrap.servers": soak.address,
            "log_level": 0,
            "group.id": GROUP,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
        }
    )

    def assigned(_: Consumer, places: list[TopicPartition]) -> None:
        soak.count("assignments")
        for place in places:
            soak.history.seek(name, (place.topic, place.partition))

    consumer.subscribe([PLAIN, COMMITTED], on_assign=assigned)
    while not soak.stop.is_set():
        for message in consumer.consume(100, 0.2):
            if message.error() is None:
                _polled(soak, name, message)
        if chance.random() < 0.1:
            _commit(soak, consumer)
    consumer.close()


def _polled(soak: Soak, name: str, message: Message) -> None:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    soak.history.poll(name, (topic, partition), [(offset, message.value() or b"")])
    soak.count("polled")


def _commit(soak: Soak, consumer: Consumer) -> None:
    try:
        places = consumer.commit(asynchronous=False) or []
    except KafkaException as error:
        if not isinstance(error.args[0], KafkaError):
            raise
        soak.count("commits refused")
        return
    with soak.guard:
        for one in places:
            if one.error is None and one.offset >= 0:
                key = (one.topic, one.partition)
                soak.commits[key] = max(soak.commits.get(key, -1), one.offset)
    soak.count("commits")


# -- aiokafka


async def aiokafka_producer(soak: Soak, name: str) -> None:
    chance = soak.chance(name)
    while not soak.stop.is_set():
        producer = AIOKafkaProducer(
            bootstrap_servers=soak.address, enable_idempotence=True, request_timeout_ms=AIO_TIMEOUT_MS
        )
        await _started(producer.start)
        try:
            while not soak.stop.is_set():
                await _send_with_aiokafka(soak, producer, name, chance.randrange(soak.partitions))
                await asyncio.sleep(AIO_PAUSE_SECONDS)
        except AIO_FATAL as error:
            soak.harmed(name, repr(error))
        await producer.stop()


async def _send_with_aiokafka(soak: Soak, producer: AIOKafkaProducer, name: str, partition: int) -> None:
    value, time_ms = soak.attempt(name, (OTHER, partition))
    try:
        told = await producer.send_and_wait(OTHER, value, partition=partition, timestamp_ms=time_ms)
    except AIO_FATAL:
        raise
    except AioError:
        soak.count("aiokafka: not acknowledged")
    else:
        soak.history.acknowledge(value, told.offset)
        soak.count("aiokafka: acknowledged")


async def aiokafka_reader(soak: Soak, name: str) -> None:
    """Follows one topic from its beginning without a group."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=soak.address,
        group_id=None,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        request_timeout_ms=5000,
    )
    await _started(consumer.start)
    consumer.assign([AioPlace(OTHER, number) for number in range(soak.partitions)])
    while not soak.stop.is_set():
        try:
            found = await consumer.getmany(timeout_ms=200)
        except AioError:
            soak.count("aiokafka: not read")
            continue
        for place, records in found.items():
            rows = [(one.offset, one.value or b"") for one in records]
            soak.history.poll(name, (place.topic, place.partition), rows)
            soak.count("aiokafka: polled")
    with contextlib.suppress(asyncio.CancelledError):  # of a fetch that it cancels itself
        await consumer.stop()


async def _started(start: Callable[[], Awaitable[None]]) -> None:
    end = time.monotonic() + OPERATION_SECONDS
    while True:
        try:
            await start()
        except AioError:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.2)
        else:
            return


def actors(soak: Soak) -> list[threading.Thread]:
    """The threads of the soak."""
    jobs: dict[str, Callable[[], object]] = {
        "idempotent": lambda: idempotent_producer(soak, "idempotent", PLAIN),
        "stamper": lambda: idempotent_producer(soak, "stamper", STAMPED),
        "transactional-a": lambda: transactional_producer(soak, "transactional-a"),
        "transactional-b": lambda: transactional_producer(soak, "transactional-b"),
        "member-a": lambda: group_member(soak, "member-a"),
        "member-b": lambda: group_member(soak, "member-b"),
        "aio-producer": lambda: asyncio.run(aiokafka_producer(soak, "aio-producer")),
        "aio-reader": lambda: asyncio.run(aiokafka_reader(soak, "aio-reader")),
    }
    return threads_of(soak, jobs)


def threads_of(soak: Soak, jobs: dict[str, Callable[[], object]]) -> list[threading.Thread]:
    """A thread for each job; a failure of any is noted."""

    def guarded(name: str, job: Callable[[], object]) -> None:
        try:
            job()
        except Exception as error:  # noqa: BLE001 - told at the end
            soak.failures.append(f"{name}: {error!r}")

    return [threading.Thread(target=guarded, args=one, name=one[0], daemon=True) for one in jobs.items()]
