"""Measures horolog and real Kafka releases alternately in one run: rates, CPU, latency, memory, starts, and how they stand to the targets.

    python -m benchmarks.compare --quick                  # about three minutes
    python -m benchmarks.compare --write-docs             # about an hour, all tables, the performance page rewritten

In every round each load runs on each broker in turn, the order reversed in every second round; figures are medians over the rounds. A broker
that waits for its turn is left running and idle. Kafka gets a 1 GiB heap and is warmed up before the first round.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks import brokers, floor, load, process, ready_memory, report, second_opinion
from benchmarks.brokers import BEFORE, FLOOR, HOROLOG, OURS, Running
from benchmarks.peer import BrokerError, Peer
from benchmarks.scenarios import ALL_KAFKA, NEWEST, SCENARIOS, Scenario

DEFAULT_JSON = Path("build/benchmarks/compare.json")
LOAD_TIMEOUT_SECONDS = 300
SETTLE_SECONDS = 0.3
IDLE_SETTLE_SECONDS = 2.0
IDLE_CONNECTIONS = 2000
PARTITIONS, PARTITIONS_PER_TOPIC = 3500, 100
WARM_UP = ("raw-mixed", "lz4-100", "small-64", "lookup-16kb", "paced", "old-100", "old-1")


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and how often."""

    rounds: int
    seconds: float
    warm_seconds: float
    starts: int
    idle_seconds: float
    warm_up_seconds: float
    rest_seconds: float


QUICK = Plan(rounds=1, seconds=2.0, warm_seconds=0.5, starts=2, idle_seconds=4.0, warm_up_seconds=2.5, rest_seconds=0.0)
FULL = Plan(
    rounds=5, seconds=4.0, warm_seconds=1.0, starts=3, idle_seconds=10.0, warm_up_seconds=8.0, rest_seconds=60.0
)


@dataclass(slots=True)
class Run:
    """All that one comparison has and finds."""

    plan: Plan
    root: Path
    names: tuple[str, ...]
    scenarios: tuple[Scenario, ...]
    second: str = ""
    tree: Path | None = None
    settings: dict[str, str] = field(default_factory=dict)
    results: dict[str, dict[str, list[dict[str, Any]]]] = field(default_factory=dict)
    footprint: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    filling: ready_memory.Filling | None = None


def say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def start(run: Run, name: str, *, folder: str = "", partitions: int = 0) -> Running:
    settings = run.settings if name in OURS else None
    return brokers.start(name, run.root / folder, settings, partitions=partitions, tree=run.tree)


def measure_starts(run: Run, name: str) -> None:
    """Start to ready, memory and CPU when idle, what idle connections add: on a data folder that was used before, as after any restart."""
    start(run, name, folder="starts").stop()
    for number in range(run.plan.starts):
        broker = start(run, name, folder="starts")
        found: dict[str, Any] = {"ready_s": broker.ready_seconds}
        try:
            if number == 0:
                found |= idle(broker, run.plan.idle_seconds)
                options = load.Options(broker.address, broker.pid, connections=IDLE_CONNECTIONS)
                found["kib_per_connection"] = load.many_connections(options).kib_per_connection
        finally:
            broker.stop()
        run.footprint.setdefault(name, []).append(found)
    say(f"{name}: {run.footprint[name]}")


def idle(broker: Running, seconds: float) -> dict[str, Any]:
    time.sleep(IDLE_SETTLE_SECONDS)
    before = process.fine_cpu_seconds(broker.pid)
    time.sleep(seconds)
    used = process.fine_cpu_seconds(broker.pid) - before
    return {"idle_cpu_percent": used / seconds * 100, "idle_mib": process.resident_kib(broker.pid) / 1024}


def measure_many_partitions(run: Run, name: str) -> None:
    """A clean stop with 3,500 empty partitions, and the start after it until all of them are led."""
    broker = start(run, name, folder="partitions")
    names = [f"many-{number}" for number in range(PARTITIONS // PARTITIONS_PER_TOPIC)]
    began = time.monotonic()
    try:
        with Peer(broker.address, 120.0) as asker:
            for one in names:
                asker.create_topics([one], PARTITIONS_PER_TOPIC, {})
        created = time.monotonic() - began
    finally:
        broker.stop()
    broker = start(run, name, folder="partitions", partitions=PARTITIONS)
    try:
        cpu = process.cpu_seconds(broker.pid)
        time.sleep(1.0)
        found = {
            "create_s": created,
            "open_s": broker.ready_seconds,
            "open_cpu_s": cpu,
            "open_mib": process.resident_kib(broker.pid) / 1024,
        }
    finally:
        broker.stop()
        shutil.rmtree(run.root / "partitions", ignore_errors=True)
    run.footprint.setdefault(name, []).append(found)
    say(f"{name}: {found}")


def measure(run: Run, scenario: Scenario, broker: Running, plan: Plan) -> dict[str, Any] | None:
    """One load on one broker; None when it failed, which is kept and told at the end."""
    arguments = [*scenario.arguments, "--address", broker.address, "--pid", str(broker.pid)]
    arguments += ["--seconds", str(plan.seconds * scenario.stretch), "--warm-seconds", str(plan.warm_seconds)]
    arguments += scenario.kafka_topic if broker.name not in (*OURS, FLOOR) else ()
    _ready_memory(run, broker, arguments)
    try:
        if run.second:
            mode, options = load.parse(arguments)
            return second_opinion.run(run.second, mode, options)
        return _in_a_process(arguments)
    except (BrokerError, OSError, subprocess.SubprocessError) as fault:
        run.failures.append(f"{scenario.name} on {broker.name}: {fault}")
        say(f"FAILED {run.failures[-1]}")
        return None
    finally:
        time.sleep(SETTLE_SECONDS)
        broker.wait_until_removed()


def _ready_memory(run: Run, broker: Running, arguments: list[str]) -> None:
    """Whatever ran before: no memory is free before a load that writes much, and what a load reads lies in the page cache."""
    mode, options = load.parse(arguments)
    if run.filling is not None and mode in ready_memory.WRITES_MUCH:
        run.filling.again()
    if mode in ready_memory.READS_KEPT_RECORDS:
        for folder in broker.folders_of(load.filled_topic(options)):
            ready_memory.read_whole(folder)


def _in_a_process(arguments: Sequence[str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.load", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LOAD_TIMEOUT_SECONDS, check=False)
    if done.returncode != 0:
        raise BrokerError(done.stderr.strip()[-500:])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure_loads(run: Run) -> None:
    started: list[Running] = []
    try:
        for name in run.names:
            started.append(start(run, name, folder="loads"))  # noqa: PERF401 - when a later one fails the earlier must be stopped
        _warm_up(run, [broker for broker in started if broker.name not in (*OURS, FLOOR)])
        for number in range(run.plan.rounds):
            _measure_round(run, number, started if number % 2 == 0 else started[::-1])
        _keep_resident(run, started, "loaded_mib")
        if run.plan.rest_seconds:
            time.sleep(run.plan.rest_seconds)
            _keep_resident(run, started, "rested_mib")
    finally:
        for broker in started:
            broker.stop()


def _keep_resident(run: Run, started: Sequence[Running], metric: str) -> None:
    for broker in started:
        run.footprint.setdefault(broker.name, []).append({metric: process.resident_kib(broker.pid) / 1024})


def _measure_round(run: Run, number: int, order: Sequence[Running]) -> None:
    for scenario in run.scenarios:
        for broker in order:
            if _serves(broker.name, scenario):
                _keep(run, number, scenario, broker)


def _serves(name: str, scenario: Scenario) -> bool:
    return name in OURS or name in scenario.kafka or (name == FLOOR and floor.drives(scenario.arguments))


def _warm_up(run: Run, machines: Sequence[Running]) -> None:
    """Let the compilers of the virtual machines see each kind of request."""
    short = Plan(1, run.plan.warm_up_seconds, 0.0, 0, 0.0, 0.0, 0.0)
    chosen = [one for one in run.scenarios if one.name in WARM_UP]
    for broker in machines:
        for scenario in chosen:
            if broker.name in scenario.kafka:
                measure(run, scenario, broker, short)


def _keep(run: Run, number: int, scenario: Scenario, broker: Running) -> None:
    found = measure(run, scenario, broker, run.plan)
    if found is None:
        return
    run.results.setdefault(scenario.name, {}).setdefault(broker.name, []).append(found)
    say(f"{number + 1}/{run.plan.rounds} {scenario.name:14} {broker.name:9} {report.cell(report.medians([found]))}")


def choose(arguments: argparse.Namespace) -> tuple[Scenario, ...]:
    """By name, else those of the mode; with a second generator only what it can drive."""
    chosen = [
        one for one in SCENARIOS if (one.name in arguments.only if arguments.only else one.quick or not arguments.quick)
    ]
    if arguments.loadgen:
        chosen = [one for one in chosen if second_opinion.drives(one.arguments)]
    return tuple(chosen)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare", description="horolog beside real Kafka releases."
    )
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--kafka", nargs="*", default=None, metavar="VERSION", help="releases to measure beside")
    parser.add_argument("--without-horolog", action="store_true", help="the Kafka releases alone")
    parser.add_argument(
        "--before",
        type=Path,
        default=None,
        metavar="FOLDER",
        help="another checkout of horolog, measured beside this one",
    )
    parser.add_argument(
        "--floor",
        action="store_true",
        help="and a C server that does the least that a load demands (needs a C compiler)",
    )
    parser.add_argument("--only", nargs="+", default=[], choices=[one.name for one in SCENARIOS], metavar="SCENARIO")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.0, help="of each load")
    parser.add_argument("--skip-starts", action="store_true", help="leave out starts, idle figures and partitions")
    parser.add_argument("--skip-loads", action="store_true")
    parser.add_argument(
        "--loadgen", default="", metavar="PROGRAM", help="drive the loads with this generator instead of ours"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of horolog")
    parser.add_argument(
        "--data", type=Path, default=None, help="where the brokers' data goes; a scratch folder otherwise"
    )
    parser.add_argument("--json", type=Path, default=DEFAULT_JSON)
    parser.add_argument("--write-docs", action="store_true", help="rewrite the tables of docs/measurements.md")
    return parser.parse_args(arguments)


def plan_of(chosen: argparse.Namespace) -> Plan:
    base = QUICK if chosen.quick else FULL
    rounds, seconds = chosen.rounds or base.rounds, chosen.seconds or base.seconds
    return replace(base, rounds=rounds, seconds=seconds)


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = parse(arguments)
    versions = tuple(chosen.kafka) if chosen.kafka is not None else ALL_KAFKA
    names = (
        *(() if chosen.without_horolog else (HOROLOG,)),
        *((BEFORE,) if chosen.before else ()),
        *versions,
        *((FLOOR,) if chosen.floor else ()),
    )
    root = Path(tempfile.mkdtemp(prefix="horolog-bench-", dir=chosen.data))
    settings = dict(pair.split("=", 1) for pair in chosen.set)
    run = Run(plan_of(chosen), root, names, choose(chosen), chosen.loadgen, chosen.before, settings)
    began = time.monotonic()
    try:
        if not chosen.skip_starts:
            _measure_footprints(run, quick=chosen.quick)
        if not chosen.skip_loads:
            with ready_memory.filled(root) as run.filling:
                say(f"{run.filling}")
                measure_loads(run)
    finally:
        shutil.rmtree(root, ignore_errors=True)
        show(run, chosen, time.monotonic() - began)
    return 1 if run.failures else 0


def _measure_footprints(run: Run, *, quick: bool) -> None:
    for name in run.names:
        if name != FLOOR and (not quick or name in (*OURS, NEWEST)):
            measure_starts(run, name)
    for name in run.names:
        if name != FLOOR and (not quick or name in OURS):
            measure_many_partitions(run, name)


def show(run: Run, chosen: argparse.Namespace, seconds: float) -> None:
    plan = run.plan
    head = f"{report.machine()}; {plan.rounds} round(s) of {plan.seconds:g} s a load, medians; the whole took {seconds / 60:.1f} minutes."
    loads = [head, "", *report.load_table(run.results, run.names)] if run.results else []
    footprints = [head, "", *report.footprint_table(run.footprint, run.names)] if run.footprint else []
    print("\n".join(["", *loads, "", *footprints, *(f"FAILED {failure}" for failure in run.failures)]), flush=True)
    report.save(
        chosen.json,
        {"machine": report.machine(), "loads": run.results, "footprint": run.footprint, "failures": run.failures},
    )
    print(f"written to {chosen.json}")
    if chosen.write_docs:
        prefix = "second-" if run.second else ""
        whole = [] if chosen.skip_starts else footprints
        for name, lines in ((f"{prefix}loads", loads), (f"{prefix}footprint", whole)):
            if lines:
                report.replace(report.PAGE, name, lines)


if __name__ == "__main__":
    sys.exit(main())
