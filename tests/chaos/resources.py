"""What brokers and their bucket take over the time of a run: memory and descriptors of each process, objects and bytes, the lag of groups."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.chaos.brokers import NODES, StoreBrokers
from tests.chaos.clients import GROUPS
from tests.soak.vitals import Sample, described, grown, of_one_age, taken
from tests.soak.workload import COMMITTED, PLAIN

LOOKS_EVERY_S = 5.0
ROWS_EVERY = 12
OLD_S = 30.0
"""The age at which lives are compared with each other."""
ASKED_WITHIN_S, ASKS_EVERY_S, ANSWER_S = 20.0, 0.5, 5.0


class Row(NamedTuple):
    """One look at the bucket and the groups."""

    at_s: float
    objects: int
    size_bytes: int
    lag: int | None
    """None if no broker said it in time."""

    def __str__(self) -> str:
        lag = "unknown" if self.lag is None else f"{self.lag:,} records"
        return (
            f"{self.at_s:7.1f} s  bucket {self.objects:,} objects, {self.size_bytes / 1e6:.1f} MB; lag of groups {lag}"
        )


class Resources:
    """Filled by `watch`, in a thread of its own, while a run goes on; `problems` is called at the end."""

    def __init__(self, brokers: StoreBrokers, partitions: int) -> None:
        self.samples: dict[int, list[Sample]] = {node: [] for node in NODES}
        self.rows: list[Row] = []
        self._brokers = brokers
        self._places = [TopicPartition(topic, number) for topic in (PLAIN, COMMITTED) for number in range(partitions)]
        self._lives: dict[int, tuple[int, int, float]] = {}
        """The process of each broker, its life, and since when it is known."""

    def watch(self, stop: threading.Event) -> None:
        began, looks = time.monotonic(), 0
        groups = [Consumer({"bootstrap.servers": self._brokers.servers, "group.id": one}) for one in GROUPS]
        while not stop.wait(LOOKS_EVERY_S):
            for node in NODES:
                self._look(node)
            if looks % ROWS_EVERY == 0:
                at_s, lag = time.monotonic() - began, lag_of(groups, self._places)
                self.rows.append(Row(at_s, *size_of(self._brokers.server.at.bucket), lag))
                print(self.rows[-1], flush=True)
            looks += 1
        for one in groups:
            one.close()

    def _look(self, node: int) -> None:
        pid, now_s = self._brokers.processes[node].pid, time.monotonic()
        known, life, since = self._lives.get(node, (0, 0, 0.0))
        if known != pid:
            life, since = life + 1, now_s
            self._lives[node] = pid, life, since
        sample = taken(pid, life, now_s - since, without=self._brokers.place(node))
        if sample is not None:
            self.samples[node].append(sample)

    def problems(self) -> Iterator[str]:
        """Growth from one life to the next, at the same age. How many logs are open then depends on how soon a broker has its share."""
        for node in NODES:
            yield from grown(f"broker {node}, {OLD_S:g} s old", self.of_one_age(node))

    def of_one_age(self, node: int) -> list[Sample]:
        return of_one_age(self.samples[node], OLD_S)

    def figures(self) -> Iterator[str]:
        for node in NODES:
            samples = self.samples[node]
            if samples:
                yield f"broker {node}, {samples[-1].life} lives: {described(samples)}"
            if alike := self.of_one_age(node):
                yield f"  {len(alike)} later lives, {OLD_S:g} s old: {described(alike)}"


def size_of(bucket: Path) -> tuple[int, int]:
    """The objects of a bucket that is a folder, and their bytes."""
    count, size_bytes = 0, 0
    for folder, _, names in os.walk(bucket):
        for name in names:
            try:
                size_bytes += (Path(folder) / name).stat().st_size
            except FileNotFoundError:
                continue
            count += 1
    return count, size_bytes


def lag_of(groups: Sequence[Consumer], places: Sequence[TopicPartition]) -> int | None:
    """The records behind the positions of these groups, which begin at 0; None if no answer came in time."""
    until = time.monotonic() + ASKED_WITHIN_S
    while True:
        try:
            return sum(_behind(group, places) for group in groups)
        except KafkaException:  # a client that asks seldom learns of new leaders by such an error
            if time.monotonic() > until:
                return None
        time.sleep(ASKS_EVERY_S)


def _behind(group: Consumer, places: Sequence[TopicPartition]) -> int:
    """Raises KafkaException."""
    found = group.committed(list(places), ANSWER_S)
    return sum(group.get_watermark_offsets(one, ANSWER_S)[1] - max(one.offset, 0) for one in found)
