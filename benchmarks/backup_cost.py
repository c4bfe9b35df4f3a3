"""What a backup costs a broker under load, in processor time: two brokers, one with `horolog.backup.store`, take the same slices in turn.

    python -m benchmarks.backup_cost [--slices 6] [--mebibytes 256] [--round-seconds 1]
    python -m benchmarks.backup_cost --slices 18 --round-seconds 60 --every-seconds 5    # three rounds, as by default
    python -m benchmarks.backup_cost --workers 4 --paced                                 # how long producers wait

With `--paced` both brokers take one record at each beat of a clock instead, and the report says after how long it was acknowledged: workers
stand still together once a round.

The backup is a process beside the broker; it is what the second figure counts, up to the round that ships the end of the last slice. Short
rounds cost more: a round compares the end of each log with what it shipped before, and ships small pieces again as parts of larger ones.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks import process, real_client
from benchmarks.load import Options, Result, paced_produce
from tests.support.broker_process import BrokerProcess

TOPIC = "t"
PARTITIONS = 6
RECORD = b"x" * 1000
MIB = 1 << 20
PAUSE_S = 3.0
"""After the time of a round, so that it ships the end of the last slice."""
BEATS_A_SECOND, PACED_SLICE_S = 1000, 20.0


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
    workers: int


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


@contextmanager
def both(folder: Path, round_s: float, workers: int) -> Iterator[list[BrokerProcess]]:
    """Two brokers that run; the second one is backed up."""
    (folder / "copy").mkdir()
    common = {"num.partitions": str(PARTITIONS), "auto.create.topics.enable": "true", "horolog.workers": str(workers)}
    backup = {"horolog.backup.store": f"file://{folder}/copy", "horolog.backup.ms": f"{round_s * 1000:.0f}"}
    brokers = [BrokerProcess(folder / "without", common), BrokerProcess(folder / "with", common | backup)]
    try:
        for broker in brokers:
            broker.start()
        yield brokers
    finally:
        for broker in brokers:
            broker.kill()


def measure(folder: Path, load: Load) -> Found:
    found: tuple[list[Slice], list[Slice]] = ([], [])
    with both(folder, load.round_s, load.workers) as brokers:
        for broker in brokers:
            run_slice(broker, load._replace(size_bytes=load.size_bytes // 8))  # the topic is made, and code is warm
        time.sleep(PAUSE_S)
        before_s = _beside_s(brokers[1])
        for number in range(load.slices):
            for which in (0, 1) if number % 2 else (1, 0):
                found[which].append(run_slice(brokers[which], load))
        time.sleep(load.round_s + PAUSE_S)
        return Found(*found, _beside_s(brokers[1]) - before_s)


def show_paced(folder: Path, load: Load) -> None:
    """Print the times of acknowledgements of each slice, and the medians."""
    found: dict[str, list[Result]] = {"without": [], "with a backup": []}
    with both(folder, load.round_s, load.workers) as brokers:
        for number in range(load.slices):
            for name, broker in sorted(zip(found, brokers, strict=True), reverse=bool(number % 2)):
                asked = Options(broker.address, broker.pid, rate=BEATS_A_SECOND, seconds=PACED_SLICE_S)
                found[name].append(paced_produce(asked))
    for name, results in found.items():
        for what in ("p50_ms", "p99_ms", "p999_ms"):
            times = [getattr(one, what) for one in results]
            print(
                f"{name}: {what} {statistics.median(times):.2f} of {', '.join(f'{one:.2f}' for one in times)}",
                flush=True,
            )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backup_cost", description=__doc__.splitlines()[0])
    parser.add_argument("--slices", type=int, default=6, help="of each broker")
    parser.add_argument("--mebibytes", type=int, default=256, help="of one slice")
    parser.add_argument("--round-seconds", type=float, default=1.0, help="horolog.backup.ms, whose default is a minute")
    parser.add_argument("--workers", type=int, default=1, help="of each broker; with --paced")
    parser.add_argument("--paced", action="store_true", help="measure acknowledgements instead of processor time")
    parser.add_argument("--every-seconds", type=float, default=0.0, help="from one slice to the next")
    chosen = parser.parse_args(arguments)
    if chosen.workers != 1 and not chosen.paced:
        parser.error(
            "--workers: the processor time of workers cannot be told apart from that of the backup; add --paced"
        )
    load = Load(chosen.slices, chosen.mebibytes * MIB, chosen.round_seconds, chosen.every_seconds, chosen.workers)
    with tempfile.TemporaryDirectory() as folder:
        if chosen.paced:
            show_paced(Path(folder), load)
            return 0
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
