"""Changes of the cluster, one after the other: decide on the present state, have the entry kept, apply it, do what it asks of this broker.

Where another broker's entry came first the decision is made again on the state that it left. What Kafka has its controller for
is this loop, in any broker.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from horolog.broker.cluster_errors import ClusterError
from horolog.broker.cluster_state import ClusterState, Entry, Step, transitions
from horolog.broker.journal import Appended, Journal
from horolog.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

Decide = Callable[[ClusterState], Entry | ClusterError | None]
"""The entry that a state asks for; None where nothing is to change. Called again where another entry came first."""

Failures = Mapping[str, ClusterError]
"""What of an entry could not be done here, by topic."""

Done = Callable[[Failures | ClusterError], None]

BEHIND = "%r is behind the topics; the next start sets it right"
NO_FAILURES: Failures = {}
NOT_WRITTEN = ClusterError(ErrorCode.KAFKA_STORAGE_ERROR, "the cluster file could not be written")


class _Change(NamedTuple):
    """`is_so` is what the disk has already: it counts even where it could not be written."""

    decide: Decide
    done: Done
    is_so: bool


class Changes:
    """The present state of the cluster and the way to change it."""

    def __init__(self, journal: Journal, me: int, carry_out: Callable[[Sequence[Step]], Failures]) -> None:
        self.state = ClusterState()
        self._journal = journal
        self._me = me
        self._carry_out = carry_out
        self._waiting: deque[_Change] = deque()
        self._is_busy = False

    def __repr__(self) -> str:
        return f"<Changes: {self.state.number} made, {len(self._waiting)} waiting>"

    def begin(self, state: ClusterState, *, is_news: bool) -> None:
        """Go on from the state that a start has found, kept first where it is news."""
        self.state = state
        if is_news and not self._journal.keep(state):
            log.warning(BEHIND, self._journal)

    def make(self, decide: Decide, done: Done) -> None:
        """Change the cluster; `done` is told why not, or what of it could not be done here."""
        self._queue(_Change(decide, done, is_so=False))

    def note(self, entry: Entry) -> None:
        """Keep an entry that holds already. If it cannot be written now, the next entry writes it, or the next start finds it."""
        self._queue(_Change(lambda _: entry, _nobody_waits, is_so=True))

    def _queue(self, change: _Change) -> None:
        self._waiting.append(change)
        self._go_on()

    def _go_on(self) -> None:
        while self._waiting and not self._is_busy:
            self._is_busy = True
            self._try(self._waiting.popleft())

    def _try(self, change: _Change) -> None:
        decided = change.decide(self.state)
        if decided is None or isinstance(decided, ClusterError):
            self._end(change, NO_FAILURES if decided is None else decided)
        else:
            becomes = self.state.apply(decided)
            self._journal.append(decided, becomes, partial(self._appended, change, decided))

    def _appended(self, change: _Change, entry: Entry, outcome: Appended) -> None:
        if outcome is Appended.TAKEN:
            for other in self._journal.tail(self.state.number):
                self._apply(other)
            self._try(change)
        elif outcome is Appended.WRITTEN:
            self._end(change, self._apply(entry))
        elif change.is_so:
            log.warning(BEHIND, self._journal)
            self._end(change, self._apply(entry))
        else:
            self._end(change, NOT_WRITTEN)

    def _apply(self, entry: Entry) -> Failures:
        before, self.state = self.state, self.state.apply(entry)
        return self._carry_out(transitions(before, self.state, self._me))

    def _end(self, change: _Change, outcome: Failures | ClusterError) -> None:
        """The next change begins on the state that whoever waited for this one has seen."""
        self._is_busy = False
        change.done(outcome)
        self._go_on()


def _nobody_waits(_outcome: Failures | ClusterError) -> None:
    """For what nobody asked for."""
