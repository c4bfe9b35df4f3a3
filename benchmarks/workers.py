"""What several workers give: the same load on brokers with so many workers each, in turn, with the processor time of both sides told.

    python -m benchmarks.workers 1 2                       # under two minutes; prints the table
    python -m benchmarks.workers 1 2 --kafka 4.3.1         # beside a real Kafka
    python -m benchmarks.workers 1 2 --json FILE           # keeps every figure
    python -m benchmarks.workers 1 2 4 8 --apart           # all workers on one core, the load on the others: what a worker costs its neighbours

A topic has eight partitions; each connection writes to one of them, at its leader. The load comes from one process, whose share of a
core is told: on a machine with as many cores as workers it takes away from them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import brokers, frames, load, process, pump, ready_memory, report
from benchmarks.brokers import HOROLOG, WORKERS, Running
from benchmarks.peer import BrokerError, Peer, fresh_name

PARTITIONS = 8
IN_FLIGHT_OF_PRODUCERS = 5
"""Kafka's default of `max.in.flight.requests.per.connection`: with one, a connection waits for each answer before it sends again."""
SERVED_WITHIN_S = 10.0
LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Case:
    """One load."""

    name: str
    title: str
    records: int
    connections: int
    in_flight: int
    unit: str


CASES = (
    Case("small-16", "one-record requests, 16 connections", 1, 16, 1, "requests"),
    Case("small-64", "one-record requests, 64 connections", 1, 64, 1, "requests"),
    Case("deep-16", "one-record requests, 16 connections x 5 in flight", 1, 16, IN_FLIGHT_OF_PRODUCERS, "requests"),
    Case("deep-64", "one-record requests, 64 connections x 5 in flight", 1, 64, IN_FLIGHT_OF_PRODUCERS, "requests"),
    Case("batches", "batches of 1,000 x 100 B, 8 connections x 2 in flight", 1000, 8, 2, "records"),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and how often."""

    rounds: int
    seconds: float
    warm_seconds: float


class Broker:
    """One that is compared, with all of its processes."""

    def __init__(self, name: str, running: Running) -> None:
        self.name = name
        self.running = running

    @property
    def pids(self) -> list[int]:
        """The one that was started, and the workers that it has started itself."""
        return [self.running.pid, *process.children(self.running.pid)]

    def cpu_seconds(self) -> float:
        return sum(map(process.fine_cpu_seconds, self.pids))


def name_of(workers: int) -> str:
    return f"{HOROLOG}-{workers}"


def start(root: Path, workers: Sequence[int], kafka: str | None, *, apart: bool = False) -> list[Broker]:
    """All that are compared, running; `apart`, they share one core, and this process has the others."""
    started: list[Broker] = []
    first, *others = sorted(os.sched_getaffinity(0))
    if apart and not others:
        raise process.StartError("one core cannot be divided between brokers and their load")
    if apart:
        os.sched_setaffinity(0, {first})  # a process has the cores of whoever starts it
    try:
        for count in workers:
            settings = {WORKERS: str(count)} if count > 1 else {}
            started.append(Broker(name_of(count), brokers.start(name_of(count), root, settings)))
        if kafka is not None:
            started.append(Broker(kafka, brokers.start(kafka, root)))
    except BaseException:
        stop(started)
        raise
    finally:
        if apart:
            os.sched_setaffinity(0, others)
    return started


def stop(started: Sequence[Broker]) -> None:
    for one in started:
        one.running.stop()


def targets(address: str, topic: str, case: Case) -> list[tuple[str, pump.Load]]:
    """Of each connection the leader that it goes to, and the frames that it sends there."""
    with Peer(address) as asker:
        placed = asker.placement([topic])
    leaders = placed.leaders[topic]
    values = (frames.payloads(100) * (case.records // 4096 + 1))[: case.records]
    records = frames.batch(values, load.now_ms())
    made = []
    for connection in range(case.connections):
        partition = connection % PARTITIONS
        frame = frames.produce(3, topic, records, acks=1, partition=partition)
        expect = pump.Load(
            [frame], [load.NO_ERROR], frames.produce_error_at(topic), frames.produce_reply_size(topic, 3)
        )
        made.append((placed.addresses[leaders[partition]], expect))
    return made


def wait_until_served(over: Sequence[tuple[str, pump.Load]]) -> None:
    """A Kafka refuses new partitions for a moment after it has named their leaders."""
    until_s = time.monotonic() + SERVED_WITHIN_S
    while True:
        try:
            pump.run_over(over, 1, LOOK_S)
        except pump.RefusedError:
            if time.monotonic() > until_s:
                raise
            time.sleep(LOOK_S)
        else:
            return


def measure(broker: Broker, case: Case, plan: Plan) -> dict[str, Any]:
    """One load on one broker."""
    topic = fresh_name(case.name)
    address = broker.running.address
    with Peer(address) as asker:
        asker.create_topics([topic], PARTITIONS, {})
    try:
        over = targets(address, topic, case)
        wait_until_served(over)
        if plan.warm_seconds:
            pump.run_over(over, case.in_flight, plan.warm_seconds)
        meter, before = load.Meter(0), broker.cpu_seconds()
        outcome = pump.run_over(over, case.in_flight, plan.seconds)
        used = broker.cpu_seconds() - before
        count = outcome.requests * (case.records if case.unit == "records" else 1)
        result = meter.result(
            case.name,
            case.unit,
            count,
            requests=outcome.requests,
            latencies=outcome.latencies,
            seconds=outcome.seconds,
        )
        found = {key: value for key, value in asdict(result).items() if value is not None}
        return found | {"cpu_s_per_million": used / count * 1e6, "broker_share": used / outcome.seconds}
    finally:
        with Peer(address) as asker:
            asker.delete_topics([topic])


def compare(
    started: Sequence[Broker], plan: Plan, filling: ready_memory.Filling
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Every case on every broker in turn, the order reversed in every second round."""
    results: dict[str, dict[str, list[dict[str, Any]]]] = {case.name: {} for case in CASES}
    for number in range(plan.rounds):
        for case in CASES:
            for broker in started if number % 2 == 0 else reversed(started):
                filling.again()
                results[case.name].setdefault(broker.name, []).append(measure(broker, case, plan))
    return results


def cell(metrics: Mapping[str, float]) -> str:
    """The rate, the latency, and what both sides took of the cores."""
    return (
        f"{report.number(metrics['rate'])}/s; {metrics['p50_ms']:.2g}/{metrics['p99_ms']:.2g} ms; "
        f"{metrics['broker_share']:.2f} cores, generator {metrics['client_share']:.2f}"
    )


def table(results: report.Results, names: Sequence[str]) -> list[str]:
    reduced = report.reduce(results)
    rows = []
    for case in CASES:
        by = reduced[case.name]
        first = by[names[0]]["rate"]
        ratios = ", ".join(f"{by[name]['rate'] / first:.2f}" for name in names[1:])
        rows.append([case.title, *(cell(by[name]) for name in names), ratios or "-"])
    return report.table(["load", *names, f"rate beside {names[0]}"], rows)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workers", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workers", type=int, nargs="+", help="how many workers each broker has")
    parser.add_argument("--kafka", help="a Kafka release beside them")
    parser.add_argument("--apart", action="store_true", help="brokers on one core, the load on the others")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--warm-seconds", type=float, default=1.0)
    parser.add_argument("--json", type=Path, help="where every figure is kept")
    chosen = parser.parse_args(arguments)
    plan = Plan(chosen.rounds, chosen.seconds, chosen.warm_seconds)
    root = Path(tempfile.mkdtemp(prefix="horolog-workers-"))
    try:
        started = start(root, chosen.workers, chosen.kafka, apart=chosen.apart)
        try:
            with ready_memory.filled(root) as filling:
                results = compare(started, plan, filling)
        finally:
            stop(started)
    except (BrokerError, pump.RefusedError, process.StartError, OSError) as fault:
        print(fault, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print(f"{report.machine()}; rate; p50/p99; cores that the broker and the generator took")
    print("\n".join(table(results, [broker.name for broker in started])))
    if chosen.json is not None:
        report.save(chosen.json, {"machine": report.machine(), "results": results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
