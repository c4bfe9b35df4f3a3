"""What members of a share group were delivered and what they settled, and rules that hold for it whatever happened in between.

    not delivered         an acknowledged record was delivered to no member
    not delivered again   a record whose release was acknowledged was not delivered again
    wrong record          a member was delivered a record that is not at that offset
    delivered again       a record was acquired after a member had it that has accepted it with success: it held the record no more
    count went back       a record was acquired after its release was acknowledged, and its delivery count did not grow

A settlement without an answer, or with an error, may have taken place or not: no rule follows from it. A delivery that was acquired and
not settled may not count for the next leader of the partition: its count says nothing of whether it came before another one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.support.history import Place, Row


class Delivery(NamedTuple):
    """A record that a member was given. The broker acquired it for the member at `asked_at` or later."""

    place: Place
    offset: int
    value: bytes
    count: int
    asked_at: float


class Settlement(NamedTuple):
    """A delivery that a member had since `had_at`, and accepted or released, and whose success it knows since `at`."""

    place: Place
    offset: int
    count: int
    is_accepted: bool
    had_at: float
    at: float


@dataclass(slots=True)
class Deliveries:
    """Filled while members run, by any thread; `problems` is called at the end."""

    delivered: list[Delivery] = field(default_factory=list)
    settled: list[Settlement] = field(default_factory=list)

    def problems(self, acknowledged: Iterable[bytes], final: Mapping[Place, Sequence[Row]]) -> list[str]:
        """The faults, given the acknowledged records, and all records at the end."""
        return [
            *(f"not delivered: {value!r}" for value in self.not_delivered(acknowledged)),
            *(f"not delivered again: {one}" for one in self.awaited()),
            *self._wrong_records(final),
            *self._acquired_wrongly(),
        ]

    def not_delivered(self, acknowledged: Iterable[bytes]) -> list[bytes]:
        known = {one.value for one in self.delivered.copy()}
        return [one for one in acknowledged if one not in known]

    def awaited(self) -> Iterator[Settlement]:
        """The releases that no delivery has followed."""
        most: dict[tuple[Place, int], int] = {}
        for one in self.delivered.copy():
            most[one.place, one.offset] = max(one.count, most.get((one.place, one.offset), 0))
        for release in self.settled.copy():
            if not release.is_accepted and most.get((release.place, release.offset), 0) <= release.count:
                yield release

    def _wrong_records(self, final: Mapping[Place, Sequence[Row]]) -> Iterator[str]:
        there = {place: dict(rows) for place, rows in final.items()}
        for one in self.delivered:
            if there.get(one.place, {}).get(one.offset) != one.value:
                yield f"wrong record: {one}"

    def _acquired_wrongly(self) -> Iterator[str]:
        settled: dict[tuple[Place, int], list[Settlement]] = defaultdict(list)
        for settlement in self.settled:
            settled[settlement.place, settlement.offset].append(settlement)
        for one in self.delivered:
            for before in settled[one.place, one.offset]:
                if before.is_accepted and before.had_at < one.asked_at:
                    yield f"delivered again: {one}, {before}"
                elif not before.is_accepted and before.at < one.asked_at and one.count <= before.count:
                    yield f"count went back: {one}, {before}"
