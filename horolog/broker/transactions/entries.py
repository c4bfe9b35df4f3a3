"""A transactional id as its coordinator keeps it: the present state, and those who wait for its end."""

from __future__ import annotations

from collections.abc import Callable

from horolog.broker.clock import Clock
from horolog.broker.transactions.states import Producer, Transaction
from horolog.protocol.errors import ErrorCode

Done = Callable[[ErrorCode, Producer | None], None]
"""Told the error, or none and the producer as it goes on."""


class Entry:
    """One transactional id: its present state, and those who wait for its end."""

    __slots__ = ("_began_at", "_started_ms", "busy", "is_lost", "transaction", "unmarked", "waiting")

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        self.unmarked = transaction.partitions  # of a decided transaction: where its end is not yet on the disk
        self.busy = False
        self.is_lost = False  # to another broker: requests under way here come to nothing
        self.waiting: list[Done] = []
        self._started_ms = -1  # of the transaction that is timed
        self._began_at = 0.0

    def age_ms(self, clock: Clock) -> int:
        """For how long the transaction has been going on, on monotonic time since it was first asked for."""
        transaction, monotonic = self.transaction, clock.monotonic()
        if self._started_ms != transaction.started_ms:
            self._started_ms = transaction.started_ms
            already_ms = clock.wall_ms() - transaction.started_ms  # from before a start, or else next to nothing
            self._began_at = monotonic - min(max(already_ms, 0), transaction.timeout_ms) / 1000
        return round((monotonic - self._began_at) * 1000)

    def __repr__(self) -> str:
        return f"<{self.transaction.id} {self.transaction.state.title}{', busy' if self.busy else ''}>"
