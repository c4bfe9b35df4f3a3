"""How soon three brokers over a store go on when one is away, what an acknowledgement takes, and what they cost: beside three nodes of Kafka.

    python -m benchmarks.over_store [--kafka 4.3.1] [--parts failover] [--rounds 3] [--json FILE] [--write-docs]
    python -m benchmarks.over_store --parts failover --ways stop --rounds 8     # planned stops alone
    python -m benchmarks.over_store --take-over 3000     # of so many partitions, alone

One idempotent producer, which waits at most 3 s for an answer, sends to all partitions all the time. A broker that leads some is killed, stands still, or is stopped by SIGTERM.
What counts is the time from there to the next acknowledgement of each of its partitions; that of the others is the longest gap. The
store is a real S3 server on this machine, behind a proxy that makes each PUT take as long as the table says.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks import process, real_client, report
from tests.chaos.brokers import NODES, Brokers, StoreBrokers, over_a_store
from tests.chaos.kafka_nodes import of_kafka
from tests.support.store_proxy import Weather

TOPIC = "t"
PARTITIONS = 12
SEND_EVERY_S = 0.02
WITHIN_S = 120.0
CLIENT_TIMEOUT_MS = 3_000
"""How long the producer waits for an answer on a connection that is open: a broker that stands still closes none."""
ON_THEIR_WAY_S = 0.3
"""Acknowledgements of a broker that is away arrive for so long: they lay in the connection, and do not end the wait."""
MOST_UNACKNOWLEDGED = 100
"""Of a partition."""
SETTLED_S = 12.0
"""A broker that came back has its share again."""
IDLE_S = 30.0
LATENCY_RECORDS = 400
LATENCY_EVERY_S = 0.03
LOAD_BYTES = 64 << 20
RECORD = b"x" * 1000
DAY_S = 86_400
MIB = 1 << 20
LATENCIES = ((0.005, 10), (0.030, 100))
"""Seconds of a PUT, and `flush.ms`."""
PARTS = ("latency", "failover", "load", "idle")
WAYS = {"kill": "kill -9", "pause": "stands still (SIGSTOP)", "stop": "planned stop (SIGTERM)"}
"""How a broker is taken away."""
DEFAULT_JSON = Path("build/benchmarks/over_store.json")

Row = tuple[str, str]


class Acknowledgements:
    """An idempotent producer that sends to all partitions until `stop`, and the moments of its acknowledgements by partition."""

    def __init__(self, servers: str, partitions: int = PARTITIONS, every_s: float = SEND_EVERY_S) -> None:
        self.at: dict[int, list[float]] = defaultdict(list)
        self.errors: list[str] = []
        self._partitions, self._every_s = partitions, every_s
        self._is_over = threading.Event()
        how = {"enable.idempotence": True, "socket.timeout.ms": CLIENT_TIMEOUT_MS}
        self._producer = Producer({"bootstrap.servers": servers, "log_level": 0, **how})
        self._sent = [0] * partitions
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.is_set():
            for partition in range(self._partitions):
                if self._sent[partition] - len(self.at[partition]) < MOST_UNACKNOWLEDGED:
                    self._producer.produce(TOPIC, b"v", partition=partition, on_delivery=self._note)
                    self._sent[partition] += 1
            self._producer.poll(self._every_s)

    def _note(self, error: object, message: object) -> None:
        if error is None:
            self.at[message.partition()].append(time.monotonic())  # type: ignore[attr-defined]
        else:
            self.errors.append(str(error))

    def next_after(self, moment: float, partition: int) -> float | None:
        return next((one for one in self.at[partition] if one > moment), None)

    def wait_for_all(self, moment: float) -> None:
        """Until every partition has acknowledged something after that moment."""
        latest = time.monotonic() + WITHIN_S
        while not all(self.next_after(moment, one) for one in range(self._partitions)):
            if time.monotonic() > latest:
                raise TimeoutError("partitions acknowledge nothing")
            time.sleep(0.05)

    def gap(self, moment: float, partition: int, seconds: float) -> float:
        """The longest time without an acknowledgement in so many seconds."""
        times = [moment, *(one for one in self.at[partition] if moment < one < moment + seconds)]
        return max(after - before for before, after in pairwise(times))

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()
        self._producer.flush(WITHIN_S)


class Gaps(NamedTuple):
    """Seconds without an acknowledgement: of partitions of the broker that was away, and of the others."""

    own: list[float]
    others: list[float]

    def row(self, name: str) -> Iterator[Row]:
        yield (
            name + ", its partitions",
            f"{statistics.median(self.own):.1f} s in the median, {max(self.own):.1f} at most",
        )
        yield name + ", partitions of others", f"{max(self.others):.1f} s at most"


def create(brokers: Brokers, partitions: int) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": brokers.servers, "log_level": 0})
    latest = time.monotonic() + WITHIN_S
    while len(admin.list_topics(timeout=WITHIN_S).brokers) < len(NODES):
        if time.monotonic() > latest:
            raise TimeoutError("not all brokers have joined")
        time.sleep(0.1)
    wanted = NewTopic(TOPIC, partitions, brokers.replication_factor)
    for future in admin.create_topics([wanted], operation_timeout=WITHIN_S, request_timeout=WITHIN_S).values():
        future.result(WITHIN_S)
    return admin


def leaders(admin: AdminClient) -> dict[int, int]:
    found = admin.list_topics(TOPIC, timeout=WITHIN_S).topics[TOPIC].partitions
    return {number: one.leader for number, one in found.items()}


def away(admin: AdminClient, acks: Acknowledgements, take: Callable[[int], None]) -> Gaps:
    """The gaps when the broker that leads most is taken away; `take` does it."""
    leads = leaders(admin)
    node = max(NODES, key=list(leads.values()).count)
    began = time.monotonic()
    take(node)
    time.sleep(ON_THEIR_WAY_S)
    acks.wait_for_all(time.monotonic())
    time.sleep(2.0)
    took = time.monotonic() - began
    own = [acks.gap(began, one, took) for one, leader in leads.items() if leader == node]
    return Gaps(own, [acks.gap(began, one, took) for one, leader in leads.items() if leader != node])


def failovers(brokers: Brokers, admin: AdminClient, rounds: int, ways: Sequence[str]) -> Iterator[Row]:
    """Kills, pauses and planned stops, or some of these, each so many times."""
    acks = Acknowledgements(brokers.servers)
    acks.wait_for_all(time.monotonic())
    how: dict[str, tuple[Callable[[int], None], Callable[[int], None]]] = {
        "kill": (brokers.kill, brokers.start),
        "pause": (brokers.pause, brokers.resume),
        "stop": (brokers.end, brokers.start),
    }
    for way in ways:
        take, give_back = how[way]
        gaps = Gaps([], [])
        for _ in range(rounds):
            taken: list[int] = []
            found = away(admin, acks, lambda node, taken=taken, take=take: (taken.append(node), take(node))[0])  # type: ignore[misc]
            gaps.own.extend(found.own)
            gaps.others.extend(found.others)
            give_back(taken[0])
            time.sleep(SETTLED_S)
        yield from gaps.row(WAYS[way])
    acks.stop()
    yield "errors that the producer did not retry itself", str(len(acks.errors))


def latency(brokers: Brokers) -> str:
    """Of records that are sent one by one, each when its time has come."""
    producer = Producer({"bootstrap.servers": brokers.servers, "log_level": 0, "linger.ms": 0, "acks": "all"})
    took: list[float] = []
    for number in range(LATENCY_RECORDS):
        began = time.monotonic()
        note = lambda error, _, began=began: took.append(time.monotonic() - began) if error is None else None  # noqa: E731
        producer.produce(TOPIC, b"v", partition=number % PARTITIONS, on_delivery=note)
        while (left := began + LATENCY_EVERY_S - time.monotonic()) > 0:
            producer.poll(left)
    producer.flush(WITHIN_S)
    ranked = sorted(took)[LATENCY_RECORDS // 10 :]  # the first connections are made meanwhile
    return (
        f"{statistics.median(ranked) * 1000:.0f} ms in the median, p99 {ranked[int(len(ranked) * 0.99)] * 1000:.0f} ms"
    )


def cpu(brokers: Brokers) -> float:
    return sum(process.cpu_seconds(one.pid) for one in brokers.processes.values())


def throughput(brokers: Brokers) -> Row:
    before = cpu(brokers)
    took = real_client.send(brokers.servers, TOPIC, PARTITIONS, RECORD, LOAD_BYTES)
    used = cpu(brokers) - before
    rate = f"{LOAD_BYTES / used / MIB:.0f} MiB a CPU second of all brokers ({LOAD_BYTES / took / MIB:.0f} MiB/s)"
    return "records of 1,000 B", rate


def idle(brokers: Brokers) -> Iterator[Row]:
    asked = brokers.proxy.requests.total() if isinstance(brokers, StoreBrokers) else 0
    before = cpu(brokers)
    time.sleep(IDLE_S)
    share = (cpu(brokers) - before) / IDLE_S / len(NODES)
    memory = [process.resident_kib(one.pid) / 1024 for one in brokers.processes.values()]
    yield "idle, processor", f"{share:.2%} of a core a broker"
    yield "idle, memory", f"{min(memory):.0f} to {max(memory):.0f} MiB a broker"
    if isinstance(brokers, StoreBrokers):
        a_day = (brokers.proxy.requests.total() - asked) / IDLE_S / len(NODES) * DAY_S
        yield "idle, requests to the store", f"{a_day:,.0f} a day a broker"


def take_over(folder: Path, partitions: int) -> Iterator[Row]:
    """One broker of two is killed: how long until the other serves all that moves."""
    with over_a_store(folder) as brokers:
        admin = create(brokers, partitions)
        producer = Producer({"bootstrap.servers": brokers.servers, "log_level": 0, "enable.idempotence": True})
        for number in range(partitions):
            producer.produce(TOPIC, b"v", partition=number)
        if producer.flush(WITHIN_S):
            raise TimeoutError("records were not acknowledged")
        leads = leaders(admin)
        node = max(NODES, key=list(leads.values()).count)
        moving = [one for one, leader in leads.items() if leader == node]
        gets, began = brokers.proxy.requests["GET"], time.monotonic()
        brokers.kill(node)
        acknowledged: list[float] = []
        for number in moving:
            producer.produce(
                TOPIC, b"w", partition=number, on_delivery=lambda *_: acknowledged.append(time.monotonic())
            )
        if producer.flush(WITHIN_S):
            raise TimeoutError("records were not acknowledged")
        asked = brokers.proxy.requests["GET"] - gets
        memory = max(process.resident_kib(one.pid) for at, one in brokers.processes.items() if at != node) / 1024
        took = f"first after {min(acknowledged) - began:.1f} s, last after {max(acknowledged) - began:.1f} s"
        yield f"take-over of {len(moving)} partitions of {partitions}", f"{took}; {asked} GETs, {memory:.0f} MiB"
        brokers.start(node)


def over_store(parts: Sequence[str], rounds: int, ways: Sequence[str]) -> Iterator[Row]:
    for put_s, flush_ms in LATENCIES if "latency" in parts else ():
        with tempfile.TemporaryDirectory() as folder, over_a_store(Path(folder), flush_ms=flush_ms) as brokers:
            brokers.proxy.weather = Weather(put_s=put_s)
            create(brokers, PARTITIONS)
            how = f"a PUT takes {put_s * 1000:.0f} ms more, flush after {flush_ms} ms"
            yield f"acknowledgement, {how}", latency(brokers)
    with tempfile.TemporaryDirectory() as folder:
        yield from common(over_a_store(Path(folder)), parts, rounds, ways)


def of_kafka_nodes(version: str, parts: Sequence[str], rounds: int, ways: Sequence[str]) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        yield from common(of_kafka(Path(folder), version), parts, rounds, ways)


def common(
    starting: AbstractContextManager[Brokers], parts: Sequence[str], rounds: int, ways: Sequence[str]
) -> Iterator[Row]:
    """What both have."""
    with starting as brokers:
        admin = create(brokers, PARTITIONS)
        if "failover" in parts:
            yield from failovers(brokers, admin, rounds, ways)
        if "latency" in parts:
            yield "acknowledgement", latency(brokers)
        if "load" in parts:
            yield throughput(brokers)
        if "idle" in parts:
            time.sleep(SETTLED_S)
            yield from idle(brokers)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.over_store", description=__doc__.splitlines()[0])
    parser.add_argument("--kafka", help="the same of three nodes of this release, and nothing else")
    parser.add_argument("--take-over", type=int, metavar="PARTITIONS", help="a take-over alone")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="how a broker is taken away")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, default=DEFAULT_JSON)
    parser.add_argument("--write-docs", action="store_true", help="rewrite the table of docs/measurements.md")
    chosen = parser.parse_args(arguments)
    found = report.load(chosen.json)
    name = f"Kafka {chosen.kafka}" if chosen.kafka else "horolog"
    for row in _rows(chosen):
        print(*row, sep="  ", flush=True)
        found.setdefault(row[0], {})[name] = row[1]
        report.save(chosen.json, found)
    if chosen.write_docs:
        report.replace(report.PAGE, "over-store", table(found))
    return 0


def _rows(chosen: argparse.Namespace) -> Iterator[Row]:
    if chosen.take_over:
        with tempfile.TemporaryDirectory() as folder:
            yield from take_over(Path(folder), chosen.take_over)
    elif chosen.kafka:
        yield from of_kafka_nodes(chosen.kafka, chosen.parts, chosen.rounds, chosen.ways)
    else:
        yield from over_store(chosen.parts, chosen.rounds, chosen.ways)


def table(found: dict[str, dict[str, str]]) -> list[str]:
    """What all runs have found so far, a row for each figure."""
    names = sorted({name for of in found.values() for name in of}, key=lambda name: name != "horolog")
    rows = [[figure, *(of.get(name, "-") for name in names)] for figure, of in found.items()]
    return [f"{report.machine()}.", "", *report.table(["", *names], rows)]


if __name__ == "__main__":
    sys.exit(main())
