"""The clients of a chaos run: those of the soak, members of groups of all kinds, and ones that write down what they learn of offsets and times."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.chaos.deliveries import Deliveries
from tests.chaos.observations import NOTHING, Acknowledged, LookUp, Observations, Seen
from tests.chaos.sent_again import SentAgain
from tests.chaos.sharing import QUEUED, Sharer
from tests.soak import workload
from tests.soak.workload import COMMITTED, FIRST_TIME_MS, MAX_IN_QUEUE, OTHER, PLAIN, STAMPED, Soak
from tests.support.history import Outcome

TIMED, LOOSE = "timed", "loose"
TOPICS = (PLAIN, STAMPED, COMMITTED, OTHER, TIMED, LOOSE, QUEUED)
CLASSIC, NEW = "classic", "kip848"
GROUPS = {
    CLASSIC: {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500},
    NEW: {"group.protocol": "consumer"},
}
PAUSE_S = 0.05
ASKED_WITHIN_S = 10.0
COMMIT_SHARE = 0.1


@dataclass(slots=True)
class Chaos:
    """What the clients share."""

    soak: Soak
    log: logging.Logger
    """Takes what a client's library says of its sequences: why it began a new epoch, if records are there twice."""
    observed: Observations = field(default_factory=Observations)
    deliveries: Deliveries = field(default_factory=Deliveries)
    sent_again: SentAgain = field(default_factory=SentAgain)

    def settings(self) -> dict[str, object]:
        return {"bootstrap.servers": self.soak.address, "log_level": 0}

    def places(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, number) for number in range(self.soak.partitions)]


def timed_producer(chaos: Chaos, name: str) -> None:
    """An idempotent producer whose records have increasing times, and have to stay in order."""
    soak, chance = chaos.soak, chaos.soak.chance(name)
    while not soak.stop.is_set():
        errors: list[KafkaError] = []
        how = {"enable.idempotence": True, "linger.ms": 0, "message.timeout.ms": 600_000, "error_cb": errors.append}
        producer = Producer({**chaos.settings(), **how, "log_level": 7, "debug": "eos"}, logger=chaos.log)
        while not soak.stop.is_set() and not any(error.fatal() for error in errors):
            if len(producer) < MAX_IN_QUEUE:
                _send_timed(chaos, producer, name, chance.randrange(soak.partitions))
            producer.poll(PAUSE_S)
        producer.flush(workload.OPERATION_SECONDS)
        for error in errors:
            if error.fatal():
                soak.harmed(name, error)


def _send_timed(chaos: Chaos, producer: Producer, name: str, partition: int) -> None:
    soak, place = chaos.soak, (TIMED, partition)
    number = soak.next(name)
    value, time_ms = f"{name}-{number}".encode(), FIRST_TIME_MS + number * 10
    with soak.guard:
        soak.times[value] = time_ms
        soak.history.attempt(value, place, in_order_of=name)

    def note(error: KafkaError | None, message: Message) -> None:
        offset = message.offset()
        if error is None:
            soak.history.acknowledge(value, offset)
        if error is None and offset is not None:
            chaos.observed.acknowledged.append(Acknowledged(place, offset, time_ms, time.monotonic()))

    producer.produce(TIMED, value, partition=partition, timestamp=time_ms, on_delivery=note)


def loose_producer(chaos: Chaos, name: str) -> None:
    """A producer that wants one acknowledgement and sends nothing twice: what it knows to be there is there."""
    soak, chance = chaos.soak, chaos.soak.chance(name)
    how = {"acks": 1, "retries": 0, "message.timeout.ms": 20_000, "log_level": 7, "debug": "msg"}
    producer = Producer({**chaos.settings(), **how}, logger=chaos.sent_again)
    while not soak.stop.is_set():
        if len(producer) < MAX_IN_QUEUE:
            place = LOOSE, chance.randrange(soak.partitions)
            value, time_ms = soak.attempt(name, place)
            report = chaos.sent_again.sending(place, value, workload.delivered(soak, value))
            producer.produce(LOOSE, value, partition=place[1], timestamp=time_ms, on_delivery=report)
        producer.poll(PAUSE_S)
    producer.flush(workload.OPERATION_SECONDS)


def member(chaos: Chaos, name: str, group: str) -> None:
    """Reads committed records in a group, and commits where it is now and then."""
    soak, chance = chaos.soak, chaos.soak.chance(name)
    how = {"enable.auto.commit": False, "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    consumer = Consumer({**chaos.settings(), **how, **GROUPS[group], "group.id": group})

    def assigned(_: Consumer, places: list[TopicPartition]) -> None:
        soak.count(f"{name}: assignments")
        for place in places:
            soak.history.seek(name, (place.topic, place.partition))

    consumer.subscribe([PLAIN, COMMITTED], on_assign=assigned)
    while not soak.stop.is_set():
        for message in consumer.consume(100, 0.2):
            error = message.error()
            if error is None:
                _polled(soak, name, message)
            elif error.fatal():
                soak.harmed(name, error)
                return
            else:
                soak.count(f"{name}: {error.name()}")
        if chance.random() < COMMIT_SHARE:
            _commit(chaos, consumer, group)
    consumer.close()


def _polled(soak: Soak, name: str, message: Message) -> None:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    soak.history.poll(name, (topic, partition), [(offset, message.value() or b"")])
    soak.count(f"{name}: polled")


def _commit(chaos: Chaos, consumer: Consumer, group: str) -> None:
    began = time.monotonic()
    try:
        places = consumer.commit(asynchronous=False) or []
    except KafkaException as error:
        chaos.soak.count(f"commits refused: {error.args[0].name()}")
        return
    _note_positions(chaos, group, began, places)
    chaos.soak.count(f"{group}: commits")


def _note_positions(chaos: Chaos, group: str, began: float, places: list[TopicPartition]) -> None:
    ended = time.monotonic()
    chaos.observed.positions.extend(
        Seen(group, (one.topic, one.partition), began, ended, one.offset)
        for one in places
        if one.error is None and one.offset >= 0
    )


def watcher(chaos: Chaos, name: str) -> None:
    """Asks for positions of groups, for ends of partitions, and for records by time, and notes each answer with when it asked."""
    soak, chance = chaos.soak, chaos.soak.chance(name)
    groups = {one: Consumer({**chaos.settings(), "group.id": one}) for one in GROUPS}
    reader = groups[CLASSIC]
    questions: list[Callable[[], None]] = [
        *(lambda one=one: _ask_positions(chaos, one, groups[one]) for one in GROUPS),
        lambda: _ask_ends(chaos, reader, chance.choice([PLAIN, TIMED, LOOSE]), chance.randrange(soak.partitions)),
        lambda: _look_up(
            chaos, reader, chance.randrange(soak.partitions), chance.randint(0, soak.numbers["timed"] + 20)
        ),
        lambda: _look_up(
            chaos,
            reader,
            chance.randrange(soak.partitions),
            max(0, soak.numbers["timed"] - 40 + chance.randint(0, 50)),
        ),
    ]
    while not soak.stop.wait(PAUSE_S):
        try:
            chance.choice(questions)()
        except KafkaException as error:
            soak.count(f"questions without an answer: {error.args[0].name()}")
    for one in groups.values():
        one.close()


def _ask_positions(chaos: Chaos, group: str, consumer: Consumer) -> None:
    began = time.monotonic()
    asked = [*chaos.places(PLAIN), *chaos.places(COMMITTED)]
    _note_positions(chaos, group, began, consumer.committed(asked, ASKED_WITHIN_S))
    chaos.soak.count("watcher: positions")


def _ask_ends(chaos: Chaos, consumer: Consumer, topic: str, partition: int) -> None:
    began = time.monotonic()
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), ASKED_WITHIN_S)
    chaos.observed.ends.append(Seen("end", (topic, partition), began, time.monotonic(), end))
    chaos.soak.count("watcher: ends")


def _look_up(chaos: Chaos, consumer: Consumer, partition: int, number: int) -> None:
    time_ms = FIRST_TIME_MS + number * 10 - 5
    began = time.monotonic()
    (found,) = consumer.offsets_for_times([TopicPartition(TIMED, partition, time_ms)], ASKED_WITHIN_S)
    if found.error is None:
        offset = found.offset if found.offset >= 0 else NOTHING
        chaos.observed.look_ups.append(LookUp((TIMED, partition), time_ms, began, time.monotonic(), offset))
        chaos.soak.count("watcher: lookups")


def jobs(chaos: Chaos) -> dict[str, Callable[[], object]]:
    """What runs, each in a thread of its own, by the name under which it makes progress."""
    soak = chaos.soak
    return {
        "idempotent": lambda: workload.idempotent_producer(soak, "idempotent", PLAIN),
        "stamper": lambda: workload.idempotent_producer(soak, "stamper", STAMPED),
        "transactional-a": lambda: workload.transactional_producer(soak, "transactional-a"),
        "transactional-b": lambda: workload.transactional_producer(soak, "transactional-b"),
        **{name: lambda name=name: workload.transactional_producer(soak, name, 0.5) for name in ABORTING},
        "aio-producer": lambda: asyncio.run(workload.aiokafka_producer(soak, "aio-producer")),
        "aio-reader": lambda: asyncio.run(workload.aiokafka_reader(soak, "aio-reader")),
        "timed": lambda: timed_producer(chaos, "timed"),
        "loose": lambda: loose_producer(chaos, "loose"),
        **{
            f"{group}-{letter}": lambda group=group, letter=letter: member(chaos, f"{group}-{letter}", group)
            for group in GROUPS
            for letter in "ab"
        },
        "queued": lambda: workload.idempotent_producer(soak, "queued", QUEUED),
        **{name: Sharer(soak, chaos.deliveries, name).run for name in ("sharer-a", "sharer-b")},
        "watcher": lambda: watcher(chaos, "watcher"),
    }


def progress(chaos: Chaos) -> Counter[str]:
    """How far each kind of work has come; what stands still while all is well is stuck."""
    history, done = chaos.soak.history, Counter[str]()
    with chaos.soak.guard:
        writes, outcomes, polls = history.writes.copy(), history.outcomes.copy(), history.polls.copy()
    for value, write in writes.items():
        if write.is_acknowledged:
            done[value.decode().rpartition("-")[0]] += 1
    for transaction, outcome in outcomes.items():
        if outcome is Outcome.COMMITTED:
            done[f"{transaction.partition(' ')[0]}: commits"] += 1
    for (name, _), sequences in polls.items():
        done[f"read by {name.rpartition('-')[0]}"] += sum(map(len, sequences))
    for what in WATCHED:
        done[what] = chaos.soak.counts.get(what, 0)
    return done


ABORTING = ("aborting-a", "aborting-b")
"""Producers that abort half of their transactions."""
WATCHED = (
    "watcher: positions",
    "watcher: ends",
    "watcher: lookups",
    *(f"{group}: commits" for group in GROUPS),
    "share: accepted",
)
SOUGHT = (
    *(
        "idempotent",
        "stamper",
        "timed",
        "loose",
        "aio-producer",
        "queued",
        "transactional-a: commits",
        "transactional-b: commits",
        *(f"{name}: commits" for name in ABORTING),
    ),
    *(f"read by {one}" for one in (*GROUPS, "aio")),
    *WATCHED,
)
"""What has to go on once faults are over."""
