"""Loads the partitions of the groups' log: at startup, and again after a failed write or when a disk is back."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from functools import partial

from horolog.broker.coordination.timers import Timer, Timers
from horolog.broker.groups.classic_events import GroupLoaded, Killed
from horolog.broker.groups.journal import GroupJournal
from horolog.broker.groups.loading import Folded, Loader
from horolog.broker.groups.registry import Registry
from horolog.broker.groups.runner import Runner
from horolog.broker.log.integrity import BeingRescanned
from horolog.broker.log.storage import StorageFault
from horolog.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

PIECES_AT_ONCE = 4
"""Pieces of the log, a few megabytes, read at once while everything else waits, when a partition is read again."""
END = object()


class Shards:
    """Fills the registry from the journal. Until a group's partition is read, requests for it get a retriable error."""

    def __init__(
        self, registry: Registry, journal: GroupJournal, loader: Loader, timers: Timers, runner: Runner
    ) -> None:
        self._registry = registry
        self._journal = journal
        self._loader = loader
        self._timers = timers
        self._runner = runner
        self._readings: Counter[int] = Counter()
        """How often a read of each shard was begun or cancelled: older reads stop."""

    def __repr__(self) -> str:
        return f"<Shards of {self._journal!r}, {self._registry!r}>"

    def load(self) -> Iterator[None]:
        """Read the log, one piece a step.

        A partition that cannot be read is offline, and its groups are loading, until it is `reopened`: none of its records are
        dropped.
        """
        here = {one.index for one in self._journal.led_here}
        self._registry.loading = here
        self._registry.elsewhere = self._journal.led_elsewhere
        for shard in sorted(self._registry.loading):
            yield from self._load(shard)

    def _load(self, shard: int) -> Iterator[None]:
        folded = Folded()
        self._readings[shard] += 1
        reading = self._readings[shard]
        if self._journal.is_offline(shard):
            return
        try:
            for piece in self._journal.read(shard):
                folded.take(piece)
                yield
                if self._readings[shard] != reading:
                    return
        except BeingRescanned as damage:
            log.warning("partition %s of the group topic will be read after its rescan: %s", shard, damage)
            return
        except StorageFault as fault:
            self._journal.put_offline(shard, fault)
            return
        self._loader.load(shard, folded)
        self._registry.loading.discard(shard)
        for group in self._registry.of_shard(shard):
            self._runner.run(group, GroupLoaded())

    def reload(self, shard: int) -> None:
        """A write has failed and has no effect: rebuild the groups of a partition from the log.

        A short log is read at once, a longer one in parts: until the last one its groups are loading, as at startup.
        """
        if self._registry.load_error(shard):
            return
        self._registry.loading.add(shard)
        for group in self._registry.of_shard(shard):
            self._runner.run(group, Killed())
            del self._registry.groups[group.id]
        self._read_on(self._load(shard))

    def gained(self, shard: int) -> None:
        """Coordinate the groups of a shard from now on, as read from the log."""
        self._registry.elsewhere.discard(shard)
        self._registry.loading.add(shard)
        self._read_on(self._load(shard))

    def lost(self, shard: int) -> None:
        """Another broker now coordinates the groups of a shard: answer waiting members, stop timers, forget the groups."""
        self._readings[shard] += 1
        self._registry.loading.discard(shard)
        self._registry.elsewhere.add(shard)
        for group in self._registry.of_shard(shard):
            self._runner.run(group, Killed(ErrorCode.NOT_COORDINATOR))
        self._registry.drop(shard, self._journal.shard_of)

    def _read_on(self, steps: Iterator[None]) -> None:
        for _ in range(PIECES_AT_ONCE):
            if next(steps, END) is END:
                return
        self._timers.start(Timer(partial(self._read_on, steps)), 0)

    def reopened(self, shard: int) -> None:
        """An unreadable partition is back. Groups known in memory are newer than it."""
        if shard in self._registry.loading:
            self._read_on(self._load(shard))
        elif not any(True for _ in self._registry.of_shard(shard)):
            self.reload(shard)

    def rescanned(self, shard: int) -> None:
        """A partition that was found damaged while loading can be read now."""
        if shard in self._registry.loading:
            self._read_on(self._load(shard))
