"""Acts on the requests of the machine of `changes`: reads and writes the journal, carries out steps, and answers callers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from horolog.broker.base.late_answers import MOST_WAITING
from horolog.broker.cluster.changes import (
    BEHIND,
    TOO_MANY,
    Changes,
    ClusterChange,
    Decide,
    Done,
    Failures,
    Outcome,
    Ready,
)
from horolog.broker.cluster.cluster_state import ClusterState, Entry, Step
from horolog.broker.cluster.journal import AppendOutcome, Journal

log = logging.getLogger(__name__)

Announce = Callable[[int, Callable[[], None]], None]
"""Notifies the other brokers that the journal is written up to an entry; calls back when all of them have applied it, or after a while."""


class ChangeDriver:
    """The way to change the cluster. Everything runs on the event loop's thread; the journal may answer later."""

    def __init__(
        self,
        journal: Journal,
        me: int,
        carry_out: Callable[[Sequence[Step]], Failures],
        announce: Announce,
        applied: Callable[[int], None] = lambda _: None,
        *,
        is_shared: bool,
    ) -> None:
        """`applied` is called with the number of the state each time that entries of others are applied here."""
        self._changes = Changes(me, is_shared=is_shared)
        self._journal = journal
        self._carry_out = carry_out
        self._announce = announce
        self._applied = applied
        self._has_begun = False
        self._at_rest: asyncio.Event | None = None

    def __repr__(self) -> str:
        return f"<ChangeDriver of {self._changes!r}>"

    @property
    def state(self) -> ClusterState:
        return self._changes.state

    @property
    def written_count(self) -> int:
        """How often changes were written since the start."""
        return self._journal.written_count

    def begin(self, state: ClusterState, *, is_news: bool) -> None:
        """Go on from the state that a start has found, and keep it if it is news."""
        self._changes.state, self._has_begun = state, True
        if not self._journal.begin(state, is_news=is_news):
            log.warning(BEHIND)

    def make(self, decide: Decide, done: Done, *, waits: bool = True) -> None:
        """Change the cluster; `done` gets the error, or the parts that failed here. With `waits`, once the others have applied it."""
        self._act(self._changes.ask(ClusterChange(decide, done, waits=waits)))

    def make_for_client(self, decide: Decide, done: Done) -> None:
        """The same, unless too many changes wait. The broker's own have no bound: there are few of them."""
        if self._changes.waiting_count >= MOST_WAITING:
            done(TOO_MANY)
        else:
            self.make(decide, done)

    def note(self, entry: Entry) -> None:
        """Keep an entry that is true already. If it cannot be written now, the next entry writes it, or the next start finds it."""
        self._act(self._changes.ask(ClusterChange(lambda _: entry, _nobody_waits, is_so=True)))

    def catch_up(self) -> None:
        """Apply the changes of others."""
        self._act(self._changes.hear())

    async def drain(self) -> None:
        """Wait until all changes that were asked for are made here."""
        if not self._changes.is_at_rest:
            self._at_rest = self._at_rest or asyncio.Event()
            await self._at_rest.wait()

    def close(self) -> None:
        """Wait until the journal has taken what was given to it. A failed start leaves the disk as it is."""
        self._journal.close(self.state if self._has_begun else None)

    def check_record(self) -> None:
        """Write the record again if the disk differs from it; not after a failed start, which does not know the record."""
        if self._has_begun and self._changes.is_at_rest:
            self._journal.check(self.state)

    def _act(self, ready: Ready) -> None:
        """Do what can be done now; the journal's answer goes on from there."""
        while True:
            if ready.steps is not None:
                ready = self._changes.carried_out(self._carry_out(ready.steps))
            elif ready.answer is not None:
                change, outcome = ready.answer
                change.done(outcome)
                ready = self._changes.go_on()
            elif ready.announce is not None:
                self._tell(*ready.announce)
                ready = self._changes.go_on()
            else:
                break
        if ready.append is not None:
            self._journal.append(*ready.append, self._appended)
        elif ready.follow:
            self._journal.follow(self.state.number, self._followed)
        if self._at_rest is not None and self._changes.is_at_rest:
            self._at_rest.set()
            self._at_rest = None

    def _appended(self, outcome: AppendOutcome) -> None:
        ready = self._changes.appended(outcome)
        if outcome is AppendOutcome.FAILED and ready.steps is not None:
            log.warning(BEHIND)
        self._act(ready)

    def _followed(self, entries: Sequence[Entry]) -> None:
        self._act(self._changes.followed(entries))
        self._applied(self.state.number)

    def _tell(self, change: ClusterChange, outcome: Outcome) -> None:
        """Announce the state to the others, and answer the caller when they have applied it."""
        if change.waits:
            self._announce(self.state.number, lambda: change.done(outcome))
        else:
            self._announce(self.state.number, _nothing)
            change.done(outcome)


def _nobody_waits(_outcome: Outcome) -> None:
    """For changes without a caller."""


def _nothing() -> None:
    """For changes that no caller waits for."""
