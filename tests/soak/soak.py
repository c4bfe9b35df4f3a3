"""A broker that is killed and started again at random instants while real clients use it; then everything is read and checked.

Half of the time it is killed again and again; then it is left alone for as long, for its memory and descriptors to be judged.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.soak.vitals import Vitals
from tests.soak.workload import COMMITTED, GROUP, PARTITIONS, PLAIN, STAMPED, TOPICS, Soak, actors
from tests.support.broker_process import BrokerProcess
from tests.support.history import Place, Row

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "log.segment.bytes": "1048576",
    "log.index.size.max.bytes": "65536",
}
LEAST_UP_SECONDS, MOST_UP_SECONDS = 0.2, 4.0
ROUND_SECONDS, LEAST_ROUNDS = 600.0, 3
"""A round is one half of kills and one long life."""
START_WAIT_SECONDS = 300.0
"""Behind this a start hangs; whether it was slow is told by the processor time it took."""
WAIT_SECONDS = 90.0
"""For one thing, or for the next record."""
MORE_SECONDS = 240.0
"""On top of its time, for a soak on a busy machine in which not everything has happened yet."""
LEAST_KILLS = 5
SOUGHT = ("acknowledged", "transactions", "commits", "polled", "aiokafka: acknowledged", "aiokafka: polled")
"""What a soak has to count before it shows anything."""

Times = dict[Place, list[tuple[int, int, bytes]]]
"""Offset, time and value of every record."""


def run(folder: Path, seconds: float, seed: int) -> tuple[Soak, Vitals, list[str]]:
    """The soak, what it took, and what was wrong; nothing if all is well."""
    broker = BrokerProcess(folder / "data", SETTINGS).start(START_WAIT_SECONDS)
    vitals, watched = Vitals(), threading.Event()
    watcher = threading.Thread(target=vitals.watch, args=(watched,))
    try:
        vitals.started(broker.pid, broker.ready_seconds, broker.data)
        create_topics(broker.address)
        soak = Soak(broker.address, seed)
        threads = actors(soak)
        for thread in (*threads, watcher):
            thread.start()
        kill_and_restart(broker, soak, vitals, seconds)
        soak.stop.set()
        for thread in threads:
            thread.join(WAIT_SECONDS)
        alive = [f"{thread.name}: did not end" for thread in threads if thread.is_alive()]
        times = read_all(broker.address, soak.partitions)
        final = {place: [(offset, value) for offset, _, value in rows] for place, rows in times.items()}
        problems = [*alive, *soak.failures, *soak.history.problems(final)]
        problems += wrong_times(times, soak.times)
        problems += commits_gone_back(broker.address, soak, final)
        problems += vitals.problems()
    finally:
        watched.set()
        broker.kill()
    return soak, vitals, problems


def create_topics(
    address: str, partitions: int = PARTITIONS, topics: Sequence[str] = TOPICS, replication_factor: int = 1
) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    stamped = {"message.timestamp.type": "LogAppendTime"}
    wanted = [
        NewTopic(
            name, partitions, replication_factor, config={"retention.ms": "-1"} | (stamped if name == STAMPED else {})
        )
        for name in topics
    ]
    for future in admin.create_topics(wanted).values():
        future.result(WAIT_SECONDS)


def kill_and_restart(broker: BrokerProcess, soak: Soak, vitals: Vitals, seconds: float) -> None:
    """Goes on until the time is over and enough has happened: a busy machine takes longer for as much."""
    end = time.monotonic() + seconds
    least = min(LEAST_KILLS, seconds // 10)
    for up_seconds in lives(random.Random(soak.seed), seconds):
        left = end - time.monotonic()
        if not alone(soak, min(up_seconds, left) if left > 0 else up_seconds):
            return
        vitals.ended()
        broker.kill()
        broker.start(START_WAIT_SECONDS)
        vitals.started(broker.pid, broker.ready_seconds, broker.data)
        soak.count("kills")
        over = time.monotonic() - end
        if over >= MORE_SECONDS or (over >= 0 and soak.counts["kills"] >= least and not missing(soak)):
            return


def missing(soak: Soak) -> list[str]:
    """What has not happened yet."""
    return [what for what in SOUGHT if not soak.counts.get(what)]


def alone(soak: Soak, seconds: float) -> bool:
    """Let the broker serve; False if an actor has failed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not soak.failures:
        time.sleep(min(1.0, max(0.0, end - time.monotonic())))
    return not soak.failures


def lives(chance: random.Random, seconds: float) -> Iterator[float]:
    """How long the broker serves before each kill, for ever."""
    half = min(ROUND_SECONDS, seconds / LEAST_ROUNDS) / 2
    while True:
        began = time.monotonic()
        while time.monotonic() < began + half:
            yield chance.uniform(LEAST_UP_SECONDS, MOST_UP_SECONDS)
        yield half


def read_all(
    address: str,
    partitions: int = PARTITIONS,
    topics: Sequence[str] = TOPICS,
    isolation: str = "read_committed",
) -> Times:
    """What a reader of this isolation level finds at the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    places = [(topic, partition) for topic in topics for partition in range(partitions)]
    consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in places])
    found: Times = {place: [] for place in places}
    ended: set[Place] = set()
    end = time.monotonic() + WAIT_SECONDS
    while len(ended) < len(places):
        messages = consumer.consume(500, 0.5)
        end = time.monotonic() + WAIT_SECONDS if messages else end
        assert time.monotonic() < end, "nothing more could be read in time"
        for message in messages:
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            assert topic is not None
            assert partition is not None
            assert offset is not None
            if message.error() is not None:
                ended.add((topic, partition))
            else:
                found[topic, partition].append((offset, message.timestamp()[1], message.value() or b""))
    consumer.close()
    return found


def wrong_times(times: Times, given: Mapping[bytes, int]) -> list[str]:
    """Times of producers are kept; times of the broker do not go back, for its clock does not."""
    problems = []
    for (topic, partition), rows in times.items():
        latest_ms = -1
        for offset, time_ms, value in rows:
            if topic != STAMPED and time_ms != given.get(value):
                problems.append(f"changed time: {value!r} at {topic}-{partition} {offset} has {time_ms}")
            if topic == STAMPED and time_ms < latest_ms:
                problems.append(f"time went back: {topic}-{partition} {offset} has {time_ms} after {latest_ms}")
            latest_ms = max(latest_ms, time_ms)
    return problems


def commits_gone_back(address: str, soak: Soak, final: Mapping[Place, list[Row]]) -> list[str]:
    """The group's offsets are those of the last commits, or of later ones whose answers were lost."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": GROUP})
    asked = [TopicPartition(topic, partition) for topic in (PLAIN, COMMITTED) for partition in range(soak.partitions)]
    problems = []
    for one in consumer.committed(asked, WAIT_SECONDS):
        acknowledged = soak.commits.get((one.topic, one.partition))
        if acknowledged is not None and one.offset < acknowledged:
            problems.append(f"commit lost: {one.topic}-{one.partition} is at {one.offset}, not {acknowledged}")
        rows = final[one.topic, one.partition]
        if rows and one.offset > rows[-1][0] + 1 + len(rows):
            problems.append(f"commit beyond the end: {one.topic}-{one.partition} is at {one.offset}")
    consumer.close()
    return problems
