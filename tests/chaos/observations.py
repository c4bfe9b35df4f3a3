"""What clients learned besides their records, and rules that hold for it whatever happened in between.

    wrong lookup       a lookup by time found a record that is not the first of that time or later
    lookup behind      a lookup by time found nothing, or a later record, although an earlier answer had shown one
    end went back       the end of a partition is before one that a client has learned earlier
    position went back  a group's position is before one that was acknowledged, or shown, earlier

"Earlier" is real time: an answer that had arrived before the later request was sent. `tests.support.history` holds the rules for records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Place = tuple[str, int]
NOTHING = -1
"""The offset of a lookup that found no record."""


class Seen(NamedTuple):
    """An offset that a client learned with a request that it sent at `began`, and whose answer it had at `ended`."""

    subject: str
    place: Place
    began: float
    ended: float
    offset: int


class LookUp(NamedTuple):
    """As `Seen`, of a lookup of a time."""

    place: Place
    time_ms: int
    began: float
    ended: float
    offset: int


class Acknowledged(NamedTuple):
    """A record that a producer knows to be in the log since `at`."""

    place: Place
    offset: int
    time_ms: int
    at: float


@dataclass(slots=True)
class Observations:
    """Filled while clients run, by any thread; `problems` is called at the end."""

    look_ups: list[LookUp] = field(default_factory=list)
    ends: list[Seen] = field(default_factory=list)
    positions: list[Seen] = field(default_factory=list)
    acknowledged: list[Acknowledged] = field(default_factory=list)

    def problems(self, times: Mapping[Place, Sequence[tuple[int, int]]]) -> list[str]:
        """The faults, given offset and time of all records at the end."""
        return [
            *self._wrong_look_ups(times),
            *(f"lookup behind: {text}" for text in self._behind()),
            *(f"end went back: {text}" for text in gone_back(self.ends)),
            *(f"position went back: {text}" for text in gone_back(self.positions)),
        ]

    def _wrong_look_ups(self, times: Mapping[Place, Sequence[tuple[int, int]]]) -> Iterator[str]:
        for one in self.look_ups:
            right = next((offset for offset, time_ms in times[one.place] if time_ms >= one.time_ms), NOTHING)
            if one.offset not in {NOTHING, right}:
                yield f"wrong lookup: {one.time_ms} of {one.place} found {one.offset}, not {right}"

    def _behind(self) -> Iterator[str]:
        """Lookups that found nothing when a record of that time was acknowledged."""
        known: dict[Place, list[Acknowledged]] = defaultdict(list)
        for record in self.acknowledged:
            known[record.place].append(record)
        for one in self.look_ups:
            if one.offset == NOTHING:
                found = [it for it in known[one.place] if it.at < one.began and it.time_ms >= one.time_ms]
                if found:
                    yield f"{one.time_ms} of {one.place} found nothing, and {found[0].offset} was acknowledged"


def gone_back(seen: Iterable[Seen]) -> Iterator[str]:
    """Answers that show less than an answer which was there before they were asked for."""
    of: dict[tuple[str, Place], list[Seen]] = defaultdict(list)
    for one in seen:
        of[one.subject, one.place].append(one)
    for (subject, place), group in of.items():
        arrivals = sorted(group, key=lambda one: one.ended)
        highest, taken = None, 0
        for one in sorted(group, key=lambda one: one.began):
            while taken < len(arrivals) and arrivals[taken].ended < one.began:
                arrived = arrivals[taken]
                highest = arrived if highest is None or arrived.offset > highest.offset else highest
                taken += 1
            if highest is not None and one.offset < highest.offset:
                yield f"{subject}, {place}: {one.offset} behind {highest.offset}"
