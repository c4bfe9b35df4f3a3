"""The journal that the event loop does not wait for: its files are read and written in a thread of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from horolog.broker.base.own_thread import Beside
from horolog.broker.cluster.cluster_state import ClusterState, Entry
from horolog.broker.cluster.journal import AppendOutcome


class JournalFiles(Protocol):
    """The files of a journal. Each call waits for the disk."""

    written_count: int

    def append(self, entry: Entry, becomes: ClusterState) -> AppendOutcome: ...
    def tail(self, after: int) -> Sequence[Entry]: ...
    def check(self, state: ClusterState) -> None: ...


class RecordKeeper(Protocol):
    """The record that the journal continues, at the start and at a clean stop."""

    def begin(self, state: ClusterState, *, is_news: bool) -> bool: ...
    def end(self, state: ClusterState) -> None: ...


class KeptBySettling:
    """The record of workers: `settling` writes it before their start and after their stop."""

    def begin(self, state: ClusterState, *, is_news: bool) -> bool:  # noqa: ARG002
        return True

    def end(self, state: ClusterState) -> None:
        """The supervisor merges what workers leave."""


class JournalBeside:
    """The journal for the event loop: reads and writes take turns beside it. Only the start and the stop of a broker wait for the disk."""

    def __init__(self, files: JournalFiles, beside: Beside, keeper: RecordKeeper) -> None:
        self._files = files
        self._beside = beside
        self._keeper = keeper

    def __repr__(self) -> str:
        return f"<JournalBeside of {self._files!r}>"

    @property
    def written_count(self) -> int:
        return self._files.written_count

    def begin(self, state: ClusterState, *, is_news: bool) -> bool:
        return self._keeper.begin(state, is_news=is_news)

    def append(self, entry: Entry, becomes: ClusterState, done: Callable[[AppendOutcome], None]) -> None:
        self._beside.run(partial(self._files.append, entry, becomes), done)

    def follow(self, after: int, done: Callable[[Sequence[Entry]], None]) -> None:
        self._beside.run(partial(self._files.tail, after), done)

    def check(self, state: ClusterState) -> None:
        self._beside.run(partial(self._files.check, state), _nobody_waits)

    def close(self, state: ClusterState | None) -> None:
        self._beside.close()
        if state is not None:
            self._keeper.end(state)


def _nobody_waits(_result: object) -> None:
    """For work without a caller."""
