"""The indexes for time that were weighed, side by side at 3,500 partitions: memory, size on disk, accuracy and the cost of a look-up.

    python -m benchmarks.index_designs [--segments 8] [--json FILE] [--write-docs]

One partition's day is made: a record a second, most of them created seconds before they arrive, some minutes or hours before (devices that were
offline), one in a thousand by a clock that is ahead. Every design is built from it with real objects. What it takes in memory is measured with
`tracemalloc`, for the index that ships by opening real partitions; then it is multiplied by 3,500 partitions (divided by those measured), for
each of them has objects of its own. The bound of the index cache that ships is added once, for it is shared.

A look-up's answer is held against the right one, the first record created at or after the time asked for: **missed** are records created at
or after it that lie before the answer, **read past** are records between the answer and the right one.
"""

import argparse
import gc
import random
import shutil
import sys
import time
import tracemalloc
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TypeVar

from benchmarks import designs, fill, frames, report, steps
from benchmarks.designs import MINUTE_MS, SECOND_MS, Day, Design
from horolog.base.clock import ManualClock
from horolog.broker.config.topic_settings import TopicConfig, resolve
from horolog.broker.log.indexes import INDEX_CACHE_BYTES
from horolog.broker.log.manager import LogManager
from horolog.broker.log.partition import Partition, lookups
from horolog.broker.log.storage import RealStorage

PARTITIONS = 3500
RECORDS = 86_400
RECORD_BYTES = 168  # a batch of one record with 100 B of value
LOOK_UPS = 2000
OPENED_PARTITIONS = 24
REPEATS = 3
DEFAULT_JSON = Path("build/benchmarks/index_designs.json")
SHIPPED = "shipped: offset and time index, then a walk"
RECKONED = {
    "draft 2: CreateTime map in memory, by the minute": "57 MB",
    "draft 2: CreateTime map in memory, by the second": "3.4 GB",
}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Figures:
    """Bytes are of one partition, `shared_bytes` of all together."""

    title: str
    memory_bytes: float
    disk_bytes: int
    missed: list[int]
    read_past: list[int]
    look_up_us: float
    shared_bytes: int = 0


def make_day(records: int, segments: int, seed: int = 5) -> Day:
    chance = random.Random(seed)
    appended = [fill.FIRST_TIMESTAMP + number * 1000 for number in range(records)]
    created = [time_ms - _delay_ms(chance) for time_ms in appended]
    starts = [number * records // segments for number in range(segments)]
    return Day(created, appended, starts, RECORD_BYTES)


def _delay_ms(chance: random.Random) -> int:
    kind = chance.random()
    if kind < 0.9:
        return int(abs(chance.gauss(0, 2000)))
    if kind < 0.98:
        return chance.randrange(10 * MINUTE_MS)
    if kind < 0.999:
        return chance.randrange(180 * MINUTE_MS)
    return -chance.randrange(5 * MINUTE_MS)


def accuracy(day: Day, look_up: Callable[[int], int | None], targets: Sequence[int]) -> tuple[list[int], list[int]]:
    """For each target: records missed and records read past."""
    so_far = list(accumulate(day.created, max))
    missed, past = [], []
    for target in targets:
        right, answer = bisect_left(so_far, target), look_up(target)
        at = len(day.created) if answer is None else answer
        missed.append(sum(created >= target for created in day.created[right:at]))
        past.append(max(0, right - at))
    return missed, past


def memory_of(build: Callable[[], T], parts: int = 1) -> tuple[T, float]:
    """What was built, and the bytes that it holds for each of its parts."""
    gc.collect()
    tracemalloc.start()
    made = build()
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return made, held / parts


def look_up_us(look_up: Callable[[int], object], targets: Sequence[int]) -> float:
    best = float("inf")
    for _ in range(REPEATS):
        began = time.perf_counter()
        for target in targets:
            look_up(target)
        best = min(best, time.perf_counter() - began)
    return best / len(targets) * 1e6


def measure_design(day: Day, targets: Sequence[int], build: Callable[[], Design]) -> Figures:
    design, held = memory_of(build)
    missed, past = accuracy(day, design.lookup, targets)
    return Figures(design.title, held, design.disk_bytes(), missed, past, look_up_us(design.lookup, targets))


def measure_shipped(day: Day, targets: Sequence[int]) -> Figures:
    """Real partitions: one is written and closed, its folder copied, and all are opened as after a restart."""
    with steps.scratch_logs() as (logs, _):
        root = Path(logs.folders[0].path)
    root.mkdir()
    try:
        config = shipped_config(len(day.segment_starts))
        _write_day(root, day, config)
        disk = sum(path.stat().st_size for path in (root / "day-0").glob("*index"))
        for number in range(1, OPENED_PARTITIONS):
            shutil.copytree(root / "day-0", root / f"day-{number}")
        _open(root, config).close()  # the copies are sealed, as they are in any folder that was opened before
        logs, held = memory_of(lambda: _open(root, config), OPENED_PARTITIONS)
        partition = logs.partitions["day", 0]
        look_up = lambda target: _offset(partition, target)  # noqa: E731
        missed, past = accuracy(day, look_up, targets)
        figures = Figures(SHIPPED, held, disk, missed, past, look_up_us(look_up, targets), INDEX_CACHE_BYTES)
        logs.close()
        return figures
    finally:
        shutil.rmtree(root, ignore_errors=True)


def shipped_config(segments: int) -> TopicConfig:
    size = RECORDS * RECORD_BYTES // segments
    return resolve(
        {"retention.ms": "-1", "segment.ms": str(2**62), "segment.bytes": str(size)}, steps.default_settings()
    )


def _open(root: Path, config: TopicConfig) -> LogManager:
    logs = LogManager([str(root)], RealStorage(), ManualClock(fill.FIRST_TIMESTAMP), steps.default_settings())
    logs.open(lambda _topic: config)
    return logs


def _write_day(root: Path, day: Day, config: TopicConfig) -> None:
    logs = _open(root, config)
    partition = logs.create("day", 0, config, steps.TOPIC_ID)
    value = frames.payloads(100, 1)[0]
    for number, created in enumerate(day.created):
        partition.append(frames.batch([value], created), day.appended[number], produce_version=3)
        if number % 64 == 0:
            partition.flush()
    partition.flush()
    logs.close()


def _offset(partition: Partition, target: int) -> int | None:
    found = lookups.first_at_or_after(partition, target)
    return found.offset if found else None


def measure(segments: int) -> list[Figures]:
    day = make_day(RECORDS, segments)
    chance = random.Random(9)
    targets = [chance.randrange(day.appended[0], day.appended[-1]) for _ in range(LOOK_UPS)]
    builds: list[Callable[[], Design]] = [
        lambda: designs.AppendTimeMinutes(day),
        lambda: designs.CreateTimeMap(day, MINUTE_MS),
        lambda: designs.CreateTimeMap(day, SECOND_MS),
        lambda: designs.WideOffsetIndex(day),
    ]
    return [*(measure_design(day, targets, build) for build in builds), measure_shipped(day, targets)]


def size(value: float) -> str:
    for bound, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if value >= bound:
            return f"{value / bound:.3g} {unit}"
    return f"{value:.0f} B"


def rows(found: Sequence[Figures]) -> list[list[str]]:
    made = []
    for one in found:
        wrong = sum(map(bool, one.missed)) / len(one.missed) * 100
        past = sorted(one.read_past)
        made.append(
            [
                one.title,
                RECKONED.get(one.title, "-"),
                size(one.memory_bytes * PARTITIONS + one.shared_bytes),
                size(one.disk_bytes * PARTITIONS),
                f"{wrong:.1f} % of look-ups, up to {max(one.missed)} records" if wrong else "never",
                f"median {past[len(past) // 2]}, up to {past[-1]} records",
                f"{one.look_up_us:.1f} us",
            ]
        )
    return made


HEAD = ("index", "reckoned memory", "memory at 3,500", "disk at 3,500", "misses records", "reads past", "a look-up")


def note(segments: int) -> str:
    sentences = (
        f"One day, {RECORDS:,} records of {RECORD_BYTES} B a partition in {segments} segments; {LOOK_UPS:,} random look-ups.",
        f"Memory: measured on one partition (the index that ships: on {OPENED_PARTITIONS} real ones, opened after a clean stop, all that a partition and its segments hold) and multiplied;",
        f"the {INDEX_CACHE_BYTES >> 20} MiB that bound its shared index cache are counted in full.",
        "The reckoned figures are packed entries of 12 bytes, the measured ones Python objects.",
        "A look-up of the index that ships includes reading the log and walking it to the exact record; of the others the index alone.",
    )
    return " ".join(sentences)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.index_designs", description="Indexes for time, side by side."
    )
    parser.add_argument("--segments", type=int, default=8, help="of each partition")
    parser.add_argument("--json", type=Path, default=DEFAULT_JSON)
    parser.add_argument("--write-docs", action="store_true", help="rewrite the table of docs/measurements.md")
    chosen = parser.parse_args(arguments)
    made = rows(measure(chosen.segments))
    lines = [*report.table(HEAD, made), "", note(chosen.segments)]
    print("\n".join(lines))
    report.save(
        chosen.json,
        {
            "machine": report.machine(),
            "segments": chosen.segments,
            "designs": [dict(zip(HEAD, row, strict=True)) for row in made],
        },
    )
    if chosen.write_docs:
        report.replace(report.PAGE, "index-designs", lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
