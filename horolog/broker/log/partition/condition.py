"""The condition of a partition: it serves, is read only, or is offline, each with its reason.

    serving     takes appends and is read
    read only   is read, and accepts no appends until its disk works again
    offline     nothing of it works until its folder can be opened again
    deleted     offline for good

A stopped partition that goes offline stays stopped: its data is no safer than before, and none of it is synced until the
partition has been opened again. Nothing brings a deleted one back, whatever a worker thread finds later. Each state follows
from the one before, so changes are made under a lock.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

from horolog.broker.log.partition.rare_changes import RareChanges
from horolog.broker.log.storage import StorageFault

log = logging.getLogger(__name__)

DELETED = "deleted"
"""The fault of a deleted partition."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The condition at one time."""

    fault: str | None = None
    """Why it is offline."""
    stopped: str | None = None
    """Why it takes no appends though it is read."""

    @property
    def is_deleted(self) -> bool:
        return self.fault == DELETED

    def offline(self, reason: str) -> PartitionState:
        return self if self.is_deleted else PartitionState(reason, self.stopped)

    def read_only(self, reason: str) -> PartitionState:
        return self if self.is_deleted else PartitionState(self.fault, reason)

    def resumed(self) -> PartitionState:
        return SERVING if self.fault is None else PartitionState(self.fault)

    def deleted(self) -> PartitionState:
        return PartitionState(DELETED, self.stopped)


SERVING = PartitionState()


class Condition:
    """The condition of one partition. Any thread may change it, by its methods."""

    __slots__ = ("_changes", "_lock", "_name", "state")

    def __init__(self, name: str, state: PartitionState = SERVING, changes: RareChanges | None = None) -> None:
        self._name = name
        self._changes = changes or RareChanges()
        self._lock = threading.Lock()
        self.state = state

    def __repr__(self) -> str:
        return f"<Condition of {self._name}: {self}>"

    def __str__(self) -> str:
        if self.fault is not None:
            return f"is offline: {self.fault}"
        return "serves" if self.stopped is None else f"accepts no appends: {self.stopped}"

    @property
    def fault(self) -> str | None:
        """Why it is offline."""
        return self.state.fault

    @property
    def stopped(self) -> str | None:
        """Why it takes no appends, though it is read."""
        return self.state.stopped

    @property
    def takes_appends(self) -> bool:
        return self.state is SERVING

    @property
    def is_deleted(self) -> bool:
        return self.state.is_deleted

    def error(self, path: str) -> StorageFault:
        """The error for an operation that this condition does not allow, on the folder at `path`."""
        return StorageFault(f"{self._name} {self}", path=path)

    def stop(self, reason: str) -> None:
        """Take no appends, but be read, until everything that may not be on the disk has been written again."""
        with self._lock:
            self.state = self.state.read_only(reason)
        log.error("%s accepts no appends until its disk works again: %s", self._name, reason)

    def go_offline(self, reason: str) -> None:
        """Serve nothing until the folder can be opened again."""
        with self._lock:
            self.state = self.state.offline(reason)
        self._changes.note()

    def resume(self) -> None:
        """The whole log is on the disk: take appends again, unless it is offline."""
        with self._lock:
            self.state = self.state.resumed()

    def delete(self) -> None:
        with self._lock:
            self.state = self.state.deleted()
