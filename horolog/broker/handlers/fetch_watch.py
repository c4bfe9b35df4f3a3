"""Which partitions of a fetch may have news: only they are looked at, however many the fetch names.

A partition is quiet once a look has found nothing to read and nothing to report. It may have news again when it has been written to
(`WaitingRequests` reports that), or when the client asks for it again. All partitions may have news when something rare has changed
(`RareChanges`) or the fetch comes with other terms.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from horolog.broker.commit.waiting import Wait, WaitingRequests

if TYPE_CHECKING:
    from horolog.broker.handlers.fetch_sessions import FetchPosition, PartitionKey, Positions
    from horolog.broker.log.partition import Partition, RareChanges


class Terms(NamedTuple):
    """The fields of a request that limit what may be read, in all its partitions."""

    version: int
    isolation_level: int
    replica_id: int


class PartitionWatch:
    """One partition, as a fetch watches it."""

    __slots__ = ("key", "partition", "position", "watch")

    def __init__(self, watch: FetchWatch, key: PartitionKey, position: FetchPosition, partition: Partition) -> None:
        self.watch = watch
        self.key = key
        self.position = position
        self.partition = partition

    def __repr__(self) -> str:
        return f"<PartitionWatch on {self.partition!r}>"

    def changed(self) -> Iterable[Wait]:
        self.watch.dirty[self.key] = self.position
        return self.watch.waits


class FetchWatch:
    """Watches the positions of one fetch, or of all fetches of a session; `dirty` are those that may have news."""

    __slots__ = (
        "_changes",
        "_is_closed",
        "_seen",
        "_terms",
        "_turns",
        "_waiting",
        "_watches",
        "dirty",
        "positions",
        "waits",
    )

    def __init__(
        self, positions: Positions, waiting: WaitingRequests, changes: RareChanges, terms: Terms | None = None
    ) -> None:
        """`terms` are those of a look at all of them that has just been taken."""
        self.positions = positions
        self.dirty: Positions = dict(positions)
        self.waits: dict[Wait, None] = {}
        self._waiting = waiting
        self._changes = changes
        self._seen = changes.number
        self._terms = terms
        self._watches: dict[PartitionKey, PartitionWatch] = {}
        self._is_closed = False
        self._turns = count(len(positions))
        for turn, position in enumerate(positions.values()):
            position.turn = turn

    def __repr__(self) -> str:
        return f"<FetchWatch: {len(self.dirty)} of {len(self.positions)} partitions may have news>"

    def to_look_at(self, terms: Terms) -> Positions:
        """The positions that may have news, in the order of answers."""
        number = self._changes.number  # before the look: what changes during it counts for the next one
        if terms != self._terms or number != self._seen:
            self._terms, self._seen = terms, number
            self.dirty = dict(self.positions)
        elif len(self.dirty) > 1:
            self.dirty = dict(sorted(self.dirty.items(), key=lambda one: one[1].turn))
        return dict(self.dirty)

    def note(self, key: PartitionKey, position: FetchPosition, partition: Partition | None, *, is_quiet: bool) -> None:
        """Note what a look has found at one position; `partition` is None where there is none to wait for."""
        if self._is_closed and not self.waits:
            return
        if partition is None or not is_quiet:
            self.dirty[key] = position
        else:
            self.dirty.pop(key, None)
        watch = self._watches.get(key)
        if watch is None or watch.partition is not partition:
            self._forget(key)
            if partition is not None:
                watch = self._watches[key] = PartitionWatch(self, key, position, partition)
                self._waiting.watch(partition, watch)

    def ask(self, key: PartitionKey, position: FetchPosition, *, is_new: bool) -> None:
        """The client asks for a partition, for the first time or again."""
        self.dirty[key] = position
        if is_new:
            self.put_last(position)

    def put_last(self, position: FetchPosition) -> None:
        """Answer it after all others from now on, as its place in `positions` says."""
        position.turn = next(self._turns)

    def drop(self, key: PartitionKey) -> None:
        """The client no longer asks for a partition."""
        self.dirty.pop(key, None)
        self._forget(key)

    def _forget(self, key: PartitionKey) -> None:
        watch = self._watches.pop(key, None)
        if watch is not None:
            self._waiting.unwatch(watch.partition, watch)

    # -- its life: a closed one goes on watching until its last wait ends

    def enter(self, wait: Wait) -> None:
        self.waits[wait] = None

    def leave(self, wait: Wait) -> None:
        self.waits.pop(wait, None)
        if self._is_closed:
            self.close()

    def close(self) -> None:
        self._is_closed = True
        if not self.waits:
            for key in list(self._watches):
                self._forget(key)
