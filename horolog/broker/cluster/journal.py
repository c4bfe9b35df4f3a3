"""Keeps the entries that change a cluster: the journal decides which of two changes came first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

from horolog.broker.cluster.cluster_state import ClusterState, Entry


class AppendOutcome(Enum):
    """The outcome of an append."""

    WRITTEN = "written"
    TAKEN = "taken"
    """Another entry has this number: read it, and decide again."""
    FAILED = "failed"


class Journal(Protocol):
    """A sequence of numbered entries, each durable before it is acted on."""

    @property
    def written_count(self) -> int:
        """How often it was written since the start."""
        ...

    def append(self, entry: Entry, becomes: ClusterState, done: Callable[[AppendOutcome], None]) -> None:
        """Keep an entry under the number of the state that it leads to; `done` gets the outcome, maybe at once."""
        ...

    def begin(self, state: ClusterState, *, is_news: bool) -> bool:
        """Go on from the state that a start has found, and put it on record if it is news; False if that fails."""
        ...

    def follow(self, after: int, done: Callable[[Sequence[Entry]], None]) -> None:
        """Read the entries of others after this number; `done` gets them, maybe at once."""
        ...

    def close(self, state: ClusterState | None) -> None:
        """Wait until everything that was given is done, and leave the disk as the next start is to find it: with this state."""
        ...

    def check(self, state: ClusterState) -> None:
        """Check the disk against what was written, and write it again from this state if it is damaged."""
        ...
