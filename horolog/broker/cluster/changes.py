"""Changes the cluster, one change at a time: decide on the present state, journal the entry, apply it, do what it asks of this broker.

If another broker's entry came first, the decision is made again on the state that it left. This loop, in any broker, does what Kafka's
controller does. Other brokers are notified (`Announce`), and the caller of a change is answered once they have applied it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from horolog.broker.cluster.cluster_state import ClusterState, Entry, Step, transitions
from horolog.broker.cluster.journal import AppendOutcome, Journal
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

Decide = Callable[[ClusterState], Entry | ClusterError | None]
"""The entry that a state asks for; None if nothing is to change. Called again if another entry came first."""

Failures = Mapping[str, ClusterError]
"""What of an entry could not be done here, by topic."""

Done = Callable[[Failures | ClusterError], None]

BEHIND = "%r is behind the topics; the next start sets it right"
NO_FAILURES: Failures = {}
NOT_WRITTEN = ClusterError(ErrorCode.KAFKA_STORAGE_ERROR, "the cluster file could not be written")


Announce = Callable[[int, Callable[[], None]], None]
"""Notifies the other brokers that the journal is written up to an entry; calls back when all of them have applied it, or after a while."""


class _Change(NamedTuple):
    """`is_so`: already true on the disk, so it is applied even if a journal of our own could not be written."""

    decide: Decide
    done: Done
    is_so: bool = False
    waits: bool = True


class Changes:
    """The present state of the cluster and the way to change it."""

    def __init__(
        self,
        journal: Journal,
        me: int,
        carry_out: Callable[[Sequence[Step]], Failures],
        announce: Announce,
    ) -> None:
        self.state = ClusterState(nodes=(me,))
        self._journal = journal
        self._me = me
        self._carry_out = carry_out
        self._announce = announce
        self._waiting: deque[_Change] = deque()
        self._is_busy = False
        self._has_begun = False

    def __repr__(self) -> str:
        return f"<Changes: {self.state.number} made, {len(self._waiting)} waiting>"

    def begin(self, state: ClusterState, *, is_news: bool) -> None:
        """Go on from the state that a start has found, and keep it if it is news."""
        self.state, self._has_begun = state, True
        if is_news and not self._journal.keep(state):
            log.warning(BEHIND, self._journal)

    def make(self, decide: Decide, done: Done, *, waits: bool = True) -> None:
        """Change the cluster; `done` gets the error, or what could not be done here. With `waits`, once the others have applied it."""
        self._queue(_Change(decide, done, waits=waits))

    def note(self, entry: Entry) -> None:
        """Keep an entry that holds already. If it cannot be written now, the next entry writes it, or the next start finds it."""
        self._queue(_Change(lambda _: entry, _nobody_waits, is_so=True))

    def catch_up(self) -> None:
        """Apply what others have changed. A change of ours that is under way does so itself."""
        if not self._is_busy:
            self._is_busy = True
            self._follow_others()
            self._is_busy = False
            self._go_on()

    def check_record(self) -> None:
        """Write the record again if the disk has something else; not after a failed start, which does not know the record."""
        if self._has_begun and not self._is_busy:
            self._journal.check(self.state)

    def _queue(self, change: _Change) -> None:
        self._waiting.append(change)
        self._go_on()

    def _go_on(self) -> None:
        while self._waiting and not self._is_busy:
            self._is_busy = True
            self._try(self._waiting.popleft())

    def _try(self, change: _Change) -> None:
        while True:
            decided = change.decide(self.state)
            if decided is not None and not isinstance(decided, ClusterError):
                becomes = self.state.apply(decided)
                self._journal.append(decided, becomes, partial(self._appended, change, decided))
                return
            if not self._follow_others():  # a refusal appends nothing, and would miss what others have changed
                break
        self._end(change, NO_FAILURES if decided is None else decided)

    def _appended(self, change: _Change, entry: Entry, outcome: AppendOutcome) -> None:
        if outcome is AppendOutcome.TAKEN:
            self._follow_others()
            self._try(change)
        elif outcome is AppendOutcome.WRITTEN:
            self._written(change, self._apply(entry))
        elif change.is_so and not self._journal.is_shared:
            log.warning(BEHIND, self._journal)
            self._end(change, self._apply(entry))
        else:
            self._end(change, NOT_WRITTEN)

    def _apply(self, entry: Entry) -> Failures:
        return self._carry_out(self._steps(entry))

    def _steps(self, entry: Entry) -> list[Step]:
        before, self.state = self.state, self.state.apply(entry)
        return transitions(before, self.state, self._me)

    def _follow_others(self) -> bool:
        """Whether there was anything to follow."""
        entries = self._journal.tail(self.state.number)
        for entry in entries:
            self._carry_out(self._steps(entry))  # as far as it can be done
        return bool(entries)

    def _written(self, change: _Change, outcome: Failures) -> None:
        """Notify the others of the change; the next one begins meanwhile."""
        self._is_busy = False
        done = partial(change.done, outcome)
        self._announce(self.state.number, done if change.waits else _nothing)
        if not change.waits:
            done()
        self._go_on()

    def _end(self, change: _Change, outcome: Failures | ClusterError) -> None:
        """The next change begins on the state that the caller of this one has seen."""
        self._is_busy = False
        change.done(outcome)
        self._go_on()


def _nobody_waits(_outcome: Failures | ClusterError) -> None:
    """For changes without a caller."""


def _nothing() -> None:
    """For changes that no caller waits for."""
