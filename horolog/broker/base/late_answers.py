"""How long, and how many, callers wait for a disk or a store on behalf of clients: it may not answer for a while.

Whatever they wait for still takes effect later; a client that is answered too late or refused asks again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from horolog.broker.base.own_thread import Later

Outcome = TypeVar("Outcome")

ANSWERED_WITHIN_S = 20.0
"""Before a client gives up by itself, which by default it does after 30 seconds."""

MOST_WAITING = 10_000
"""Callers of one kind. Clients choose how many they ask for."""

MOST_RECORDS = 100_000
"""Records that coordinators have appended for clients. One request may have thousands."""


class InTime(Generic[Outcome]):
    """Calls `done` once: with the outcome, or after a while with `late`. A later outcome is dropped; the change is made all the same."""

    def __init__(self, done: Callable[[Outcome], None], late: Outcome, later: Later) -> None:
        self._done: Callable[[Outcome], None] | None = done
        self._timer = later(ANSWERED_WITHIN_S, lambda: self(late))

    def __call__(self, outcome: Outcome) -> None:
        done, self._done = self._done, None
        if done is not None:
            self._timer.cancel()
            done(outcome)
