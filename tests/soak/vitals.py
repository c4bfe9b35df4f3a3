"""What a broker's process takes over the time of a soak: memory, descriptors, processor time of its starts; and the judgement of that.

Lives are judged one by one, for what a process leaks while it serves; and one against the others at the same age, for files left behind on
the disk and loaded by the next. Both in their second half, when caches are full; by the median of all slopes, which no single peak moves.
"""

from __future__ import annotations

import itertools
import os
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

SAMPLE_SECONDS = 0.5
LEAST_SAMPLES = 10
MOST_POINTS = 300
YOUNG_SECONDS = 1.0
"""The age at which lives are compared with each other."""

MOST_MEMORY_GROWTH_BYTES = 8 << 20
MOST_DESCRIPTOR_GROWTH = 16

START_SECONDS = 3.0
START_BYTES_A_SECOND = 20_000_000
"""Processor time that a start may take, however busy the machine is: a part for itself and one for what lies on the disk."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at the process."""

    life: int
    age_s: float
    """Since it was ready to serve."""
    memory_bytes: int
    descriptors: int


@dataclass(frozen=True, slots=True)
class Start:
    ready_s: float
    processor_s: float
    disk_bytes: int
    load: float
    """Of the machine: how many wanted to run, on average of a minute."""

    @property
    def allowed_s(self) -> float:
        return START_SECONDS + self.disk_bytes / START_BYTES_A_SECOND


@dataclass(slots=True)
class Vitals:
    """Filled while the broker runs; `problems` is asked at the end."""

    samples: list[Sample] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    _serving: tuple[int, float] | None = None

    def started(self, process_id: int, ready_s: float, folder: Path) -> None:
        """A life begins: the broker is ready."""
        process = psutil.Process(process_id)
        spent = process.cpu_times()
        self.starts.append(Start(ready_s, spent.user + spent.system, disk_bytes(folder), os.getloadavg()[0]))
        self._serving = process_id, time.monotonic()

    def ended(self) -> None:
        self._serving = None

    def look(self) -> None:
        """Take a sample, if the broker serves."""
        if self._serving is None:
            return
        process_id, since = self._serving
        sample = taken(process_id, len(self.starts), time.monotonic() - since)
        if sample is not None:
            self.samples.append(sample)

    def watch(self, stop: threading.Event) -> None:
        """Take samples until `stop` is set."""
        while not stop.wait(SAMPLE_SECONDS):
            self.look()

    def problems(self) -> Iterator[str]:
        for life in self.lives():
            yield from grown(f"life {life[0].life}", second_half(life))
        yield from grown("from one life to the next", self.later_lives())
        for start in self.starts:
            if start.processor_s > start.allowed_s:
                yield f"slow start: {start}, more than {start.allowed_s:.1f} s of processor time"

    def lives(self) -> list[list[Sample]]:
        return lives_in(self.samples)

    def later_lives(self) -> list[Sample]:
        return of_one_age(self.samples, YOUNG_SECONDS)

    def figures(self) -> Iterator[str]:
        """What a person wants to know of it."""
        yield f"starts: {len(self.starts)}"
        yield f"ready after: {spread([one.ready_s for one in self.starts])} s"
        yield f"processor time of a start: {spread([one.processor_s for one in self.starts])} s"
        yield f"load of the machine: {spread([one.load for one in self.starts])}"
        yield f"on the disk at the last start: {self.starts[-1].disk_bytes / 1e6:.1f} MB"
        for life in self.lives():
            half = second_half(life)
            if len(half) >= LEAST_SAMPLES:
                yield f"second half of a life of {life[-1].age_s:.0f} s: {described(half)}"
        if self.later_lives():
            yield f"{len(self.later_lives())} later lives, {YOUNG_SECONDS} s old: {described(self.later_lives())}"


def taken(process_id: int, life: int, age_s: float, *, without: Path | None = None) -> Sample | None:
    """A sample of a process, without the descriptors of files below a folder; None if it has just been killed."""
    try:
        process = psutil.Process(process_id)
        descriptors = process.num_fds()
        if without is not None:
            descriptors -= sum(Path(one.path).is_relative_to(without) for one in process.open_files())
        return Sample(life, age_s, process.memory_info().rss, descriptors)
    except psutil.Error:
        return None


def lives_in(samples: Sequence[Sample]) -> list[list[Sample]]:
    return [list(life) for _, life in itertools.groupby(samples, key=lambda sample: sample.life)]


def of_one_age(samples: Sequence[Sample], age_s: float) -> list[Sample]:
    """The first sample of each life that is at least so old, from the second half of all lives."""
    found = (next((one for one in life if one.age_s >= age_s), None) for life in lives_in(samples))
    alike = [one for one in found if one is not None]
    return alike[len(alike) // 2 :]


def spread(numbers: Sequence[float]) -> str:
    return f"{statistics.median(numbers):.2f} (median) to {max(numbers):.2f}"


def second_half(samples: Sequence[Sample]) -> list[Sample]:
    return [one for one in samples if one.age_s >= samples[-1].age_s / 2]


def grown(where: str, samples: Sequence[Sample]) -> Iterator[str]:
    """What has grown more than it may; too few samples tell nothing."""
    if len(samples) < LEAST_SAMPLES:
        return
    memory, descriptors = growths(samples)
    if memory > MOST_MEMORY_GROWTH_BYTES:
        yield f"memory grows: {where}, by {memory / (1 << 20):.1f} MiB: {described(samples)}"
    if descriptors > MOST_DESCRIPTOR_GROWTH:
        yield f"descriptors grow: {where}, by {descriptors:.0f}: {described(samples)}"


def growths(samples: Sequence[Sample]) -> tuple[float, float]:
    """By how much memory and descriptors grow over the samples, one after the other."""
    numbered = list(enumerate(samples))
    return growth([(at, one.memory_bytes) for at, one in numbered]), growth(
        [(at, one.descriptors) for at, one in numbered]
    )


def growth(points: Sequence[Point]) -> float:
    """The median of the slopes between all pairs, over the whole span."""
    points = points[:: len(points) // MOST_POINTS + 1]
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in itertools.combinations(points, 2)]
    return statistics.median(slopes) * (points[-1][0] - points[0][0])


def described(samples: Sequence[Sample]) -> str:
    memory = [one.memory_bytes / (1 << 20) for one in samples]
    descriptors = [one.descriptors for one in samples]
    return (
        f"memory {min(memory):.1f} to {max(memory):.1f} MiB, from {memory[0]:.1f} to {memory[-1]:.1f};"
        f" descriptors {min(descriptors)} to {max(descriptors)}, from {descriptors[0]} to {descriptors[-1]}"
    )


def disk_bytes(folder: Path) -> int:
    """What files really take: logs and indexes are allocated ahead, and files come and go."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_blocks * 512
        except FileNotFoundError:
            continue
    return total
