"""What a backup costs a broker under load, in processor time: two brokers, one with `horolog.backup.store`, take the same slices in turn.

    python -m benchmarks.backup_cost [--slices 6] [--mebibytes 256]

The backup is a process beside the broker; it is what the second figure counts. Its rounds come every second instead of every minute, so
each slice has several: with the default there are fewer, and they ship the same bytes.
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
ROUNDS_MS = 1_000
PAUSE_S = 3.0
"""After a slice, so that a round ships the end of it."""


class Slice(NamedTuple):
    """Seconds of the processor that one slice took."""

    broker_s: float
    backup_s: float
    wall_s: float


def run_slice(broker: BrokerProcess, size_bytes: int) -> Slice:
    before = _used(broker)
    wall_s = real_client.send(broker.address, TOPIC, PARTITIONS, RECORD, size_bytes)
    time.sleep(PAUSE_S)
    after = _used(broker)
    return Slice(after[0] - before[0], after[1] - before[1], wall_s)


def _used(broker: BrokerProcess) -> tuple[float, float]:
    """Of the broker, and of the processes beside it."""
    beside = sum(process.cpu_seconds(pid) for pid in process.children(broker.pid))
    return process.cpu_seconds(broker.pid), beside


def measure(folder: Path, slices: int, size_bytes: int) -> tuple[list[Slice], list[Slice]]:
    """The slices without a backup, and those with one."""
    (folder / "copy").mkdir()
    common = {"num.partitions": str(PARTITIONS), "auto.create.topics.enable": "true"}
    backup = {"horolog.backup.store": f"file://{folder}/copy", "horolog.backup.ms": str(ROUNDS_MS)}
    brokers = [BrokerProcess(folder / "without", common), BrokerProcess(folder / "with", common | backup)]
    found: tuple[list[Slice], list[Slice]] = ([], [])
    try:
        for broker in brokers:
            broker.start()
            run_slice(broker, size_bytes // 8)  # the topic is made, and code is warm
        for number in range(slices):
            for which in (0, 1) if number % 2 else (1, 0):
                found[which].append(run_slice(brokers[which], size_bytes))
    finally:
        for broker in brokers:
            broker.kill()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backup_cost", description=__doc__.splitlines()[0])
    parser.add_argument("--slices", type=int, default=6, help="of each broker")
    parser.add_argument("--mebibytes", type=int, default=256, help="of one slice")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        without, backed_up = measure(Path(folder), chosen.slices, chosen.mebibytes * MIB)
    for name, slices in (("without", without), ("with a backup", backed_up)):
        shown = ", ".join(f"{one.broker_s:.2f} + {one.backup_s:.2f}" for one in slices)
        print(f"{name}: CPU seconds of broker + backup: {shown}", flush=True)
    wall = [statistics.median(one.wall_s for one in slices) for slices in (without, backed_up)]
    base = statistics.median(one.broker_s for one in without)
    broker = statistics.median(one.broker_s for one in backed_up)
    beside = statistics.median(one.backup_s for one in backed_up)
    print(f"the broker: {broker / base - 1:+.1%} CPU time; the process beside it: {beside / base:.1%} of the broker's")
    print(f"records a second: {wall[0] / wall[1] - 1:+.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
