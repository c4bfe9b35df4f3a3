"""What a backup costs a broker under load, in processor time: two brokers, one with `horolog.backup.store`, take the same slices in turn.

    python -m benchmarks.backup_cost [--slices 6] [--mebibytes 256] [--round-seconds 1]
    python -m benchmarks.backup_cost --slices 18 --round-seconds 60 --every-seconds 5    # three rounds, as by default

The backup is a process beside the broker; it is what the second figure counts, up to the round that ships the end of the last slice. Short
rounds cost more: a round compares the end of each log with what it shipped before, and ships small pieces again as parts of larger ones.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import process, real_client
from tests.support.broker_process import BrokerProcess

TOPIC = "t"
PARTITIONS = 6
RECORD = b"x" * 1000
MIB = 1 << 20
PAUSE_S = 3.0
"""After the time of a round, so that it ships the end of the last slice."""


class Slice(NamedTuple):
    """Seconds that one slice took: of the broker's processor time, and on the clock."""

    broker_s: float
    wall_s: float


class Load(NamedTuple):
    """What both brokers take."""

    slices: int
    size_bytes: int
    round_s: float
    every_s: float
    """A slice begins so long after the one before, or when that has ended."""


class Found(NamedTuple):
    """The slices without a backup and with one, and the processor time of the process beside the broker for all of these."""

    without: list[Slice]
    backed_up: list[Slice]
    beside_s: float


def run_slice(broker: BrokerProcess, load: Load) -> Slice:
    before, began_s = process.cpu_seconds(broker.pid), time.monotonic()
    wall_s = real_client.send(broker.address, TOPIC, PARTITIONS, RECORD, load.size_bytes)
    time.sleep(max(0.0, began_s + load.every_s - time.monotonic()))
    return Slice(process.cpu_seconds(broker.pid) - before, wall_s)


def _beside_s(broker: BrokerProcess) -> float:
    """Of the processes beside the broker."""
    return sum(process.cpu_seconds(pid) for pid in process.children(broker.pid))


def measure(folder: Path, load: Load) -> Found:
    (folder / "copy").mkdir()
    common = {"num.partitions": str(PARTITIONS), "auto.create.topics.enable": "true"}
    backup = {"horolog.backup.store": f"file://{folder}/copy", "horolog.backup.ms": f"{load.round_s * 1000:.0f}"}
    brokers = [BrokerProcess(folder / "without", common), BrokerProcess(folder / "with", common | backup)]
    found: tuple[list[Slice], list[Slice]] = ([], [])
    try:
        for broker in brokers:
            broker.start()
            run_slice(broker, load._replace(size_bytes=load.size_bytes // 8))  # the topic is made, and code is warm
        time.sleep(PAUSE_S)
        before_s = _beside_s(brokers[1])
        for number in range(load.slices):
            for which in (0, 1) if number % 2 else (1, 0):
                found[which].append(run_slice(brokers[which], load))
        time.sleep(load.round_s + PAUSE_S)
        return Found(*found, _beside_s(brokers[1]) - before_s)
    finally:
        for broker in brokers:
            broker.kill()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backup_cost", description=__doc__.splitlines()[0])
    parser.add_argument("--slices", type=int, default=6, help="of each broker")
    parser.add_argument("--mebibytes", type=int, default=256, help="of one slice")
    parser.add_argument("--round-seconds", type=float, default=1.0, help="horolog.backup.ms, whose default is a minute")
    parser.add_argument("--every-seconds", type=float, default=0.0, help="from one slice to the next")
    chosen = parser.parse_args(arguments)
    load = Load(chosen.slices, chosen.mebibytes * MIB, chosen.round_seconds, chosen.every_seconds)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), load)
    for name, slices in (("without", found.without), ("with a backup", found.backed_up)):
        shown = ", ".join(f"{one.broker_s:.2f}" for one in slices)
        print(f"{name}: CPU seconds of the broker: {shown}", flush=True)
    base, broker = (statistics.median(one.broker_s for one in slices) for slices in found[:2])
    wall = [statistics.median(one.wall_s for one in slices) for slices in found[:2]]
    beside = found.beside_s / load.slices
    print(
        f"the broker: {broker / base - 1:+.1%} CPU time; the process beside it: {beside:.2f} s a slice, {beside / base:.1%}"
    )
    print(f"records a second: {wall[0] / wall[1] - 1:+.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
