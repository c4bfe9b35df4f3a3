"""The tails of the partitions that a broker leads: records that no segment in the bucket covers, and that the next leader copies from WALs.

A segment of which earlier leaders have written a part is closed, however small it is, once the lineage is long, or had many small objects:
the next leader reads every WAL that the lineage names, and no such WAL is removed. Before a partition moves, its segment is closed if
other leaders have written a part, or it is large: what the next leader copies is what clients wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from horolog.broker.base.answers import Answer
from horolog.broker.bucket.led_segments import LedSegments
from horolog.broker.bucket.seams import ClusterSide
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.store_upkeep import StoreUpkeep
from horolog.broker.on_record.cluster_file import Place

MOST_STRETCHES = 8
"""Of a lineage, until a small segment is closed so that all stretches but the last are covered."""
MOST_OBJECTS = 64
"""The same for the objects that a partition was opened from: those of a broker that was killed are small, and stay so."""
CLOSED_AT_ONCE = 20
"""Closing a segment writes to the disk."""
LONG_BYTES = 1 << 20
"""A tail of so many bytes is covered before its partition moves."""
MOST_MOVING = 100
"""No more can be uploaded while their move waits."""
MOVING_AT_ONCE = 4
"""So many segments of partitions that move are uploaded at a time."""
LOOKED_AT_EVERY_S = 0.02


class Begun(NamedTuple):
    """Where the records of this broker begin in a partition that it leads, and in how many objects those before them lay."""

    offset: int
    object_count: int


class Led(NamedTuple):
    """The partitions that this broker leads, their segments, and the cluster, which knows where their records lie."""

    partitions: Mapping[Place, ShippedPartition]
    segments: LedSegments
    cluster: ClusterSide


class LedTails:
    """The tails of all partitions of one broker; `begun` has an entry for each that it leads."""

    def __init__(
        self, led: Led, upkeep: StoreUpkeep, now: Callable[[], float], pause: Callable[[float], Answer[None]]
    ) -> None:
        self.begun: dict[Place, Begun] = {}
        self._led, self._segments, self._cluster = led
        self._upkeep = upkeep
        self._now = now
        self._pause = pause

    def __repr__(self) -> str:
        return f"<LedTails of {len(self.begun)} partitions>"

    def covered(self) -> dict[Place, int]:
        """The partitions for which no WAL of an earlier leader is needed any more, and the epochs that they are led in."""
        covered_end = self._segments.manifests.covered_end
        return {
            place: one.leader_epoch
            for place, one in self._led.items()
            if self._stretches(place) > 1 and covered_end(one) >= self.begun[place].offset
        }

    def close_some(self) -> None:
        """Close segments of partitions that are slow to take over."""
        for one in self._some(self._led, self._is_slow, CLOSED_AT_ONCE).values():
            self._segments.uploader.close(one)

    async def shorten(self, places: Iterable[Place], within_s: float) -> None:
        """Have segments cover the long tails of partitions that will move, within so many seconds. Clients are served meanwhile."""
        until_s = self._now() + within_s
        long = self._some(places, self._is_long, MOST_MOVING)
        uploader, covered_end = self._segments.uploader, self._segments.manifests.covered_end
        ends: dict[Place, int] = {}
        for place, one in long.items():
            uploader.close(one)
            ends[place] = one.written_end
            if len(ends) % CLOSED_AT_ONCE == 0:
                await self._pause(0)
        await self._until(until_s, long, lambda place: long[place].high_watermark >= ends[place])
        uploader.look(MOVING_AT_ONCE)
        await self._until(until_s, long, lambda place: covered_end(long[place]) >= ends[place])
        covered = {place: epoch for place, epoch in self.covered().items() if place in long}
        self._upkeep.let_go_of_tails(covered)
        await self._until(until_s, covered, lambda place: self._stretches(place) < 2)

    async def _until(self, until_s: float, places: Iterable[Place], is_so: Callable[[Place], bool]) -> None:
        """Wait until it is so for all that are led here, or for no longer."""
        while not all(map(is_so, filter(self._led.__contains__, places))) and self._now() < until_s:
            await self._pause(LOOKED_AT_EVERY_S)

    def _some(
        self, places: Iterable[Place], are_meant: Callable[[Place, ShippedPartition], bool], most: int
    ) -> dict[Place, ShippedPartition]:
        """The first of these places that are led here and meant."""
        led = ((place, self._led[place]) for place in places if place in self._led)
        return dict(islice((one for one in led if are_meant(*one)), most))

    def _is_slow(self, place: Place, partition: ShippedPartition) -> bool:
        """Whether it is slow to take over, and its last segment begins before this broker's records."""
        offset, object_count = self.begun[place]
        is_slow = object_count > MOST_OBJECTS or self._stretches(place) > MOST_STRETCHES
        return is_slow and partition.segments[-1].base_offset < offset

    def _is_long(self, place: Place, partition: ShippedPartition) -> bool:
        is_long = self._stretches(place) > 1 or partition.segments[-1].size_bytes >= LONG_BYTES
        return is_long and partition.condition.takes_appends

    def _stretches(self, place: Place) -> int:
        return len(self._cluster.lineages().get(place, ()))
