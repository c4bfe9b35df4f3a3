"""Partitions that a broker is to lead, from the entry that says so until clients are served.

They are loaded at once. If the leader before was fenced, it may not know of it while its lease lasts: until then its successor serves no
client, so that no client sees less than it has seen. Nor does it serve any before it has learned where that leader has moved the start.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from horolog.broker.base.own_thread import Later
from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.lease import Lease
from horolog.broker.bucket.seams import LogSide, Opening
from horolog.broker.log.partition import Partition
from horolog.broker.on_record.cluster_file import Place

Serve = Callable[[Opening, Partition], None]


def waits_for_lease(state: BucketState, opening: Opening) -> bool:
    """Whether the leader before may still answer clients."""
    return len(opening.lineage) > 1 and opening.lineage[-2].wal in state.fenced


class Leading:
    """`serve` is called with each partition that can be served from now on."""

    def __init__(
        self,
        log_side: LogSide,
        lease: Lease,
        later: Later,
        serve: Serve,
        all_served: Callable[[int, float], None] = lambda _count, _seconds: None,
    ) -> None:
        """`all_served` gets how many partitions were opened, and the seconds that this took, once none is left."""
        self._all_served = all_served
        self._began_s, self._served_count = 0.0, 0
        self._log_side = log_side
        self._lease = lease
        self._later = later
        self._serve = serve
        self._wanted: dict[Place, Opening] = {}
        self._is_over = False

    def __repr__(self) -> str:
        return f"<Leading: {len(self._wanted)} partitions are being opened>"

    @property
    def opening_count(self) -> int:
        """How many partitions are led and not served yet."""
        return len(self._wanted)

    def is_opening(self, place: Place) -> bool:
        """Whether a partition is led and not served yet."""
        return place in self._wanted

    def open(self, opening: Opening, *, waits: bool) -> None:
        if self._is_over:
            return
        if not self._wanted:
            self._began_s, self._served_count = self._lease.now(), 0
        self._wanted[opening.place] = opening
        from_s = self._lease.now() + self._lease.serves_after_s() if waits else None
        self._log_side.open_from(opening, partial(self._opened, opening, from_s))

    def end(self) -> None:
        """Nothing that is not served yet will be."""
        for place in list(self._wanted):
            self.close(place)
        self._is_over = True

    def close(self, place: Place) -> None:
        """Another broker leads it."""
        self._wanted.pop(place, None)
        self._log_side.give_up(place)

    def remove(self, place: Place) -> None:
        """Its topic is deleted."""
        self._wanted.pop(place, None)
        self._log_side.remove(place)

    def _opened(self, opening: Opening, from_s: float | None, partition: Partition) -> None:
        if from_s is None:
            self._settled(opening, partition)
        elif (left_s := from_s - self._lease.now()) > 0:
            self._later(left_s, partial(self._opened, opening, from_s, partition))
        elif self._wanted.get(opening.place) is opening:
            self._log_side.settle_start(opening, partial(self._settled, opening, partition))

    def _settled(self, opening: Opening, partition: Partition) -> None:
        if self._wanted.get(opening.place) is not opening:
            return
        del self._wanted[opening.place]
        self._serve(opening, partition)
        self._served_count += 1
        if not self._wanted:
            self._all_served(self._served_count, self._lease.now() - self._began_s)
