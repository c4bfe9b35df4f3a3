"""What hostile peers cost: the broker's memory while each of them does its worst, and how long another client waits meanwhile.

python -m benchmarks.hostile                  # a minute; prints the table
python -m benchmarks.hostile --write-docs     # and puts it into the performance page
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks import brokers, frames, process, report
from benchmarks.brokers import HOROLOG
from benchmarks.hostile_peers import PEERS, Attack, Held, idle
from benchmarks.peer import BrokerError, Peer

DEFAULT_JSON = Path("build/benchmarks/hostile.json")
HOLD_SECONDS = 1.5
AFTER_SECONDS = 1.0
SAMPLE_SECONDS = 0.02
PAUSE_SECONDS = 0.005
KIB_PER_MIB = 1024
READY = "ready"
MANY_IDLE = 10_000
BEHIND_EPOCH = 16  # the broker writes base offset and leader epoch into a batch


@dataclass(slots=True)
class Watched:
    """A broker while something is done to it."""

    before_mib: float = 0.0
    peak_mib: float = 0.0
    after_mib: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)
    error: str = ""
    closed: int = 0
    connections: int = 0

    @property
    def grown_mib(self) -> float:
        return self.peak_mib - self.before_mib

    def median_ms(self) -> float:
        return statistics.median(self.latencies_ms)


def resident_mib(pid: int) -> float:
    return process.resident_kib(pid) / KIB_PER_MIB


def well_behaved(address: str, told: Connection) -> None:
    """A client in a process of its own that writes a record and reads it, again and again, and expects to be served."""
    topic = "horolog-hostile-other"
    latencies_ms: list[float] = []
    error = ""
    try:
        with Peer(address) as peer:
            peer.create_topics([topic], 1, {})
            batch = frames.batch([b"x" * 100], time.time_ns() // 1_000_000)
            told.send(READY)
            offset = 0
            while not told.poll(PAUSE_SECONDS):
                began = time.monotonic()
                peer.call(frames.produce(3, topic, batch))
                answer = peer.call(frames.fetch(4, topic, offset))
                latencies_ms.append((time.monotonic() - began) * 1000)
                offset += 1
                if batch[BEHIND_EPOCH:] not in answer:
                    error = "what was written was not read"
    except (OSError, BrokerError) as refused:
        error = str(refused)
    told.send((latencies_ms, error))


@contextmanager
def watching(address: str, pid: int) -> Iterator[Watched]:
    """Sample memory and serve a well-behaved client until the block ends."""
    watched, stop = Watched(), threading.Event()

    def sample() -> None:
        while not stop.wait(SAMPLE_SECONDS):
            watched.peak_mib = max(watched.peak_mib, resident_mib(pid))

    watched.before_mib = watched.peak_mib = resident_mib(pid)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    client = context.Process(target=well_behaved, args=(address, theirs))
    client.start()
    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        if ours.recv() != READY:
            raise BrokerError("the other client could not begin")
        yield watched
    finally:
        stop.set()
        sampler.join()
        ours.send(None)
        watched.latencies_ms, watched.error = ours.recv()
        client.join()


def endure(address: str, pid: int, attack: Attack, hold_seconds: float = HOLD_SECONDS) -> Watched:
    """Let one hostile peer do its worst, hold it, and let go."""
    with watching(address, pid) as watched:
        with attack(address) as held:
            time.sleep(hold_seconds)
            watched.closed, watched.connections = held.closed_by_broker(), _count(held)
        time.sleep(AFTER_SECONDS)
    watched.after_mib = resident_mib(pid)
    return watched


def _count(held: Held) -> int:
    return len(held.sockets)


def measure(settings: Mapping[str, str]) -> dict[str, Watched]:
    """Each peer against a broker of its own."""
    attacks = PEERS | {"ten thousand idle connections": partial(idle, count=MANY_IDLE)}
    found = {}
    for name, attack in attacks.items():
        with tempfile.TemporaryDirectory(prefix="horolog-hostile-") as root:
            broker = brokers.start(HOROLOG, Path(root), settings)
            try:
                found[name] = endure(broker.address, broker.pid, attack)
            finally:
                broker.stop()
        print("  ".join(row(name, found[name])), flush=True)
    return found


def row(name: str, watched: Watched) -> list[str]:
    slow = sorted(watched.latencies_ms)
    return [
        name,
        str(watched.connections),
        str(watched.closed),
        f"{watched.before_mib:.0f}",
        f"{watched.peak_mib:.0f}",
        f"{watched.after_mib:.0f}",
        f"{watched.median_ms():.2f}",
        f"{slow[int(len(slow) * 0.99)]:.1f}",
        f"{slow[-1]:.0f}",
        watched.error or "none",
    ]


HEAD = ["peer", "connections", "closed", "MiB before", "at most", "after", "p50 ms", "p99 ms", "longest ms", "errors"]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hostile", description="What hostile peers cost.")
    parser.add_argument("--json", type=Path, default=DEFAULT_JSON)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the broker")
    parser.add_argument("--write-docs", action="store_true", help="rewrite the table of docs/measurements.md")
    chosen = parser.parse_args(arguments)
    found = measure(dict(one.split("=", 1) for one in chosen.set))
    rows = [row(name, watched) for name, watched in found.items()]
    report.save(
        chosen.json, {"machine": report.machine(), "rows": [dict(zip(HEAD, each, strict=True)) for each in rows]}
    )
    if chosen.write_docs:
        report.replace(report.PAGE, "hostile", [f"{report.machine()}.", "", *report.table(HEAD, rows)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
