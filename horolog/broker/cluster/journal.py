"""Where the entries that change a cluster are kept: the journal decides which of two changes came first.

`WholeFile` is the journal of a broker alone: nobody else writes, and with every entry the cluster file has the whole state. The one
that several brokers share is `file_journal`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

from horolog.broker.cluster.cluster_state import ClusterState, Entry
from horolog.broker.log.storage import StorageFault
from horolog.broker.on_record.cluster_file import ClusterFile

log = logging.getLogger(__name__)


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

    is_shared: bool
    """Whether others write it, too; then each entry counts, and one that is not written has not happened."""

    def append(self, entry: Entry, becomes: ClusterState, done: Callable[[AppendOutcome], None]) -> None:
        """Keep an entry under the number of the state that it leads to; `done` gets the outcome, maybe at once."""
        ...

    def keep(self, state: ClusterState) -> bool:
        """Write a whole state, as a start has found it; False if the write fails."""
        ...

    def follow(self, after: int, done: Callable[[Sequence[Entry]], None]) -> None:
        """Read the entries of others after this number; `done` gets them, maybe at once."""
        ...

    def close(self) -> None:
        """Wait until everything that was given is done."""
        ...

    def check(self, state: ClusterState) -> None:
        """Check the disk against what was written, and write it again from this state if it is damaged."""
        ...


class WholeFile:
    """The cluster file as a journal. Each write has the whole state, also what an earlier write has missed."""

    is_shared = False

    def __init__(self, file: ClusterFile) -> None:
        self._file = file
        self.written_count = 0

    def __repr__(self) -> str:
        return f"<WholeFile {self._file!r}>"

    def append(self, entry: Entry, becomes: ClusterState, done: Callable[[AppendOutcome], None]) -> None:  # noqa: ARG002
        done(AppendOutcome.WRITTEN if self.keep(becomes) else AppendOutcome.FAILED)

    def follow(self, after: int, done: Callable[[Sequence[Entry]], None]) -> None:  # noqa: ARG002
        """Nobody else writes."""
        done(())

    def close(self) -> None:
        """Everything is done."""

    def check(self, state: ClusterState) -> None:
        if self._file.is_hurt():
            log.error("%r is not what was written: it is written anew, from all that is known here", self._file)
            self.keep(state)

    def keep(self, state: ClusterState) -> bool:
        """Write the whole state; False if the write fails."""
        try:
            state.save(self._file)
        except StorageFault as fault:
            log.error("%r: could not write: %s", self._file, fault)
            return False
        self.written_count += 1
        return True
