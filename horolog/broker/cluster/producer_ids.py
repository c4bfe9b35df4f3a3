"""Gives out producer ids, each once: from blocks that the cluster's record reserves before the first id of them is used.

The journal may not answer for a while. Callers wait no longer than their clients do, and no more than `MOST_WAITING` of them: a client that
is refused asks again.
"""

from __future__ import annotations

from collections.abc import Callable

from horolog.broker.base.late_answers import MOST_WAITING, InTime
from horolog.broker.base.own_thread import Later
from horolog.broker.cluster.change_driver import ChangeDriver
from horolog.broker.cluster.changes import Outcome
from horolog.broker.cluster.cluster_state import PRODUCER_ID_BLOCK_SIZE, ClusterState, Entry, ProducerIdsReserved
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.protocol.errors import ErrorCode

NOT_YET = ClusterError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "producer ids are still being reserved")


class ProducerIds:
    """The ids of the block that this broker has reserved last."""

    def __init__(self, changes: ChangeDriver, later: Later) -> None:
        self._changes = changes
        self._later = later
        self._left = range(0)
        self._waiting: list[Callable[[], None]] = []
        self._in_time: InTime[None]
        """Answers those that wait."""
        self._is_reserving = False
        self._refusal = NOT_YET

    def __repr__(self) -> str:
        return f"<ProducerIds: {len(self._left)} left>"

    def when_there(self, then: Callable[[], None]) -> None:
        """Call `then` once an id can be given out, or none could be in time: at once, if there is one."""
        if self._left or len(self._waiting) >= MOST_WAITING:
            then()
            return
        self._waiting.append(then)
        if len(self._waiting) == 1:
            self._in_time = InTime(self._go_on, None, self._later)
        self._reserve()

    def take(self) -> int:
        """An id that was never given out before; raises ClusterError while none is there."""
        if not self._left:
            self._refusal = NOT_YET
            self._reserve()
        if not self._left:
            raise self._refusal
        found, self._left = self._left[0], self._left[1:]
        return found

    def _reserve(self) -> None:
        if self._is_reserving:
            return
        self._is_reserving = True
        first = 0

        def decide(state: ClusterState) -> Entry:
            nonlocal first
            first = state.next_producer_id
            return ProducerIdsReserved(first)

        def made(outcome: Outcome) -> None:
            self._is_reserving = False
            if isinstance(outcome, ClusterError):
                self._refusal = outcome
            else:
                self._left = range(first, first + PRODUCER_ID_BLOCK_SIZE)
            if self._waiting:
                self._in_time(None)

        self._changes.make(decide, made, waits=False)

    def _go_on(self, _: None) -> None:
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then()
