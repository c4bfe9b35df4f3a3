"""Groups and transactions beside a real Kafka, alternately in one run: rebalances, commits, transactions, and the memory of many groups.

    python -m benchmarks.groups                  # four minutes; prints the table
    python -m benchmarks.groups --write-docs     # and puts it into the performance page

Kafka answers commits and ends of transactions before anything is on the disk, unless `flush.messages` is 1. horolog syncs transactions
unless `horolog.acks.all.sync` is false. Each runs both ways, as two brokers, and is held against the one that promises the same.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, Producer

from benchmarks import brokers, fill, process, pump, report, share
from benchmarks.brokers import HOROLOG, Running
from benchmarks.group_frames import become_member, commit_error_at, commit_reply_size, offset_commit
from benchmarks.peer import Peer, fresh_name

KAFKA = "4.3.1"
UNSYNCED = "horolog, not synced"
SYNCED_KAFKA = f"{KAFKA}, flush.messages=1"
SYNC_ALWAYS = {"log.flush.interval.messages": "1"}
"""The broker's default of `flush.messages`: it holds for the logs of the coordinators, too, which horolog syncs as well."""
DEFAULT_JSON = Path("build/benchmarks/groups.json")
HEARTBEAT_MS = 500
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
}
KAFKA_ONLY = {"group.consumer.min.heartbeat.interval.ms": str(HEARTBEAT_MS)}
WAIT_SECONDS = 60.0
REBALANCES = 5
MANY = 10_000
IN_FLIGHT, HELD_OF_EACH = 100_000, 1_000
KIB_PER_MIB = 1024


@dataclass(frozen=True, slots=True)
class Measure:
    """One row: the quantity, how it is measured, whether more is better, and whether horolog syncs before it answers."""

    title: str
    run: Callable[[Running], float]
    more_is_better: bool = True
    is_synced: bool = False

    @property
    def beside(self) -> str:
        """The Kafka that promises what horolog promises."""
        return SYNCED_KAFKA if self.is_synced else KAFKA

    def concerns(self, name: str) -> bool:
        """Whether a load is measured beside a Kafka: `flush.messages` changes only those that wait for a sync."""
        return self.is_synced or name != SYNCED_KAFKA


# -- rebalances


def member(address: str, group: str, protocol: str) -> Consumer:
    config: dict[str, str | int | float | bool] = {
        "bootstrap.servers": address,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 50,
    }
    if protocol == "classic":
        config |= {"heartbeat.interval.ms": HEARTBEAT_MS, "session.timeout.ms": 10_000}
    return Consumer(config)


def rebalance(broker: Running, protocol: str) -> float:
    """Seconds from the second member's subscription until both have read from their own partitions; the median of several."""
    topic = fresh_name("rebalance")
    with Peer(broker.address) as peer:
        peer.create_topics([topic], 2, {})
    stop = threading.Event()
    feeder = threading.Thread(target=feed, args=(broker.address, topic, stop))
    feeder.start()
    try:
        return statistics.median(one_rebalance(broker.address, topic, protocol) for _ in range(REBALANCES))
    finally:
        stop.set()
        feeder.join()


def feed(address: str, topic: str, stop: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
    while not stop.wait(0.01):
        for partition in (0, 1):
            producer.produce(topic, b"x", partition=partition)
        producer.poll(0)
    producer.flush(10)


def one_rebalance(address: str, topic: str, protocol: str) -> float:
    group = fresh_name("group")
    first, second = (member(address, group, protocol) for _ in range(2))
    try:
        first.subscribe([topic])
        _read_until(lambda: len(first.assignment()) == 2, [first])
        _read_until_read([first])
        began = time.perf_counter()
        second.subscribe([topic])
        _read_until(lambda: len(first.assignment()) == len(second.assignment()) == 1, [first, second])
        _read_until_read([first, second])
        return time.perf_counter() - began
    finally:
        first.close()
        second.close()


def _read_until(condition: Callable[[], bool], consumers: list[Consumer]) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("the group did not settle")
        for consumer in consumers:
            consumer.poll(0.005)


def _read_until_read(consumers: list[Consumer]) -> None:
    """Each gets a record of a partition that is its own now."""
    waiting = set(range(len(consumers)))
    end = time.monotonic() + WAIT_SECONDS
    while waiting:
        if time.monotonic() > end:
            raise TimeoutError("a member read nothing")
        for place in list(waiting):
            message = consumers[place].poll(0.005)
            if message is not None and message.error() is None:
                waiting.discard(place)


# -- commits


def commits(broker: Running, connections: int, seconds: float = 2.0) -> float:
    topic = fresh_name("commits")
    with Peer(broker.address) as peer:
        peer.create_topics([topic], 1, {})
        peer.call(offset_commit("first", topic, [0], 1))
    groups = [fresh_name("group") for _ in range(connections)]
    frames = [offset_commit(group, topic, [0], 7) for group in groups]
    load = pump.Load(frames, [b"\0\0"] * len(frames), commit_error_at(topic), commit_reply_size(topic))
    pump.run(broker.address, load, connections, 1, 1.0)
    outcome = pump.run(broker.address, load, connections, 1, seconds)
    return outcome.requests / outcome.seconds


# -- transactions


def transactions(broker: Running, producers: int, seconds: float = 3.0) -> float:
    """Transactions of one record a second, by so many producers in parallel."""
    topic = fresh_name("transactions")
    with Peer(broker.address) as peer:
        peer.create_topics([topic], producers, {})
    counts = [0] * producers
    go, stop = threading.Event(), threading.Event()
    ready = threading.Barrier(producers + 1)

    def run(number: int) -> None:
        producer = Producer({"bootstrap.servers": broker.address, "transactional.id": fresh_name("id"), "linger.ms": 0})
        producer.init_transactions(WAIT_SECONDS)
        _transact(producer, topic, number)
        ready.wait()
        go.wait()
        while not stop.is_set():
            _transact(producer, topic, number)
            counts[number] += 1

    threads = [threading.Thread(target=run, args=(number,)) for number in range(producers)]
    for thread in threads:
        thread.start()
    ready.wait()
    go.set()
    began = time.perf_counter()
    time.sleep(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - began)


def _transact(producer: Producer, topic: str, partition: int) -> None:
    producer.begin_transaction()
    producer.produce(topic, b"x" * 100, partition=partition)
    producer.commit_transaction(WAIT_SECONDS)


# -- many groups


def many_groups(broker: Running) -> float:
    """MiB that so many groups with a committed offset add."""
    topic = fresh_name("many")
    with Peer(broker.address) as peer:
        peer.create_topics([topic], 1, {})
        peer.call(offset_commit("first", topic, [0], 1))
        before = process.resident_kib(broker.pid)
        for number in range(MANY):
            reply = peer.call(offset_commit(f"{topic}-{number}", topic, [0], number))
            if struct.unpack_from(">h", reply, commit_error_at(topic) - 8)[0]:
                raise ValueError(f"a commit was refused: {reply.hex()}")
    return (process.resident_kib(broker.pid) - before) / KIB_PER_MIB


def many_members(broker: Running) -> float:
    """MiB that so many groups of one member add, which say nothing more."""
    name = fresh_name("members")
    with Peer(broker.address) as peer:
        become_member(peer, name)
        before = process.resident_kib(broker.pid)
        for number in range(MANY):
            become_member(peer, f"{name}-{number}")
    return (process.resident_kib(broker.pid) - before) / KIB_PER_MIB


def in_flight(broker: Running) -> float:
    """MiB that so many records add that a member of a share group holds, each beside one that is accepted."""
    topic = fresh_name("flight")
    with Peer(broker.address) as peer:
        peer.create_topics([topic], IN_FLIGHT // HELD_OF_EACH, {"retention.ms": "-1"})
    fill.in_each(broker.address, topic, IN_FLIGHT // HELD_OF_EACH, 2 * HELD_OF_EACH)
    with share.Group(broker.address, topic, IN_FLIGHT // HELD_OF_EACH, 1, 2 * HELD_OF_EACH) as group:
        before = process.resident_kib(broker.pid)
        group.hold(IN_FLIGHT)
        return (process.resident_kib(broker.pid) - before) / KIB_PER_MIB


MEASURES = (
    Measure("second member's join until both consume, classic, s", lambda one: rebalance(one, "classic"), False),
    Measure("second member's join until both consume, KIP-848, s", lambda one: rebalance(one, "consumer"), False),
    Measure("OffsetCommits, 1 connection, 1/s", lambda one: commits(one, 1)),
    Measure("OffsetCommits, 16 connections, 1/s", lambda one: commits(one, 16)),
    Measure("transactions of one record, 1 producer, 1/s", lambda one: transactions(one, 1), is_synced=True),
    Measure("transactions of one record, 4 producers, 1/s", lambda one: transactions(one, 4), is_synced=True),
    Measure("transactions of one record, 16 producers, 1/s", lambda one: transactions(one, 16), is_synced=True),
)
ONCE = (
    Measure("10,000 groups with one offset add, MiB", many_groups, False),
    Measure("10,000 idle members add, MiB", many_members, False),
    Measure("100,000 records of a share group in flight add, MiB", in_flight, False),
    Measure("resident with all of them, MiB", lambda one: process.resident_kib(one.pid) / KIB_PER_MIB, False),
)

Found = dict[str, dict[str, list[float]]]


def start(name: str, root: Path) -> Running:
    if name == UNSYNCED:
        return brokers.start(HOROLOG, root / "unsynced", SETTINGS | {"horolog.acks.all.sync": "false"})
    if name == SYNCED_KAFKA:
        return brokers.start(KAFKA, root / "synced", SETTINGS | KAFKA_ONLY | SYNC_ALWAYS)
    return brokers.start(name, root, SETTINGS | (KAFKA_ONLY if name == KAFKA else {}))


def measure(rounds: int, names: tuple[str, ...]) -> Found:
    found: Found = {one.title: {} for one in (*MEASURES, *ONCE)}
    root = Path(tempfile.mkdtemp(prefix="horolog-groups-"))
    running: dict[str, Running] = {}
    try:
        for name in names:
            running[name] = start(name, root)
        for number in range(rounds):
            for one in (*MEASURES, *(ONCE if number == rounds - 1 else ())):
                for name in filter(one.concerns, names if number % 2 else reversed(names)):
                    value = one.run(running[name])
                    found[one.title].setdefault(name, []).append(value)
                    print(f"{value:12.3f}  {name}: {one.title}", flush=True)
    finally:
        for broker in running.values():
            broker.stop()
        shutil.rmtree(root, ignore_errors=True)
    return found


def table(found: Mapping[str, Mapping[str, list[float]]], names: tuple[str, ...]) -> list[str]:
    rows = []
    for one in (*MEASURES, *ONCE):
        values = {name: statistics.median(runs) for name, runs in found[one.title].items()}
        ours, theirs = values[HOROLOG], values[one.beside]
        best = ours / theirs if one.more_is_better else theirs / ours
        figures = [_figure(values[name]) if name in values else "-" for name in names]
        rows.append([one.title, *figures, f"{ours / theirs:.2f}", "met" if best >= 1.0 else "short"])
    return report.table(["", *names, "horolog / Kafka of the same promise", "at least equal"], rows)


def _figure(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.groups", description="Groups and transactions.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, default=DEFAULT_JSON)
    parser.add_argument("--write-docs", action="store_true", help="rewrite the table of docs/measurements.md")
    chosen = parser.parse_args(arguments)
    names = (HOROLOG, UNSYNCED, KAFKA, SYNCED_KAFKA)
    found = measure(chosen.rounds, names)
    lines = table(found, names)
    print("\n".join(lines))
    report.save(chosen.json, {"machine": report.machine(), "found": found})
    if chosen.write_docs:
        about = f"{report.machine()}; {chosen.rounds} round(s), medians; heartbeats every {HEARTBEAT_MS} ms."
        report.replace(report.PAGE, "groups", [about, "", *lines])
    return 0


if __name__ == "__main__":
    sys.exit(main())
