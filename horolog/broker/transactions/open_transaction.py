"""A transactional id as its coordinator keeps it: its current state, and the requests that wait for its end."""

from __future__ import annotations

from collections.abc import Callable

from horolog.base.clock import Clock
from horolog.broker.transactions.states import Producer, Transaction
from horolog.protocol.errors import ErrorCode

Done = Callable[[ErrorCode, Producer | None], None]
"""Called with an error, or with NONE and the producer's id and epoch from now on."""


class OpenTransaction:
    """One transactional id: its current state, and the requests that wait for its end."""

    __slots__ = ("_began_at", "_started_ms", "busy", "is_lost", "may_have_begun", "transaction", "unmarked", "waiting")

    def __init__(self, transaction: Transaction, *, may_have_begun: bool = False) -> None:
        self.transaction = transaction
        self.may_have_begun = may_have_begun
        """Whether its producer may have begun a transaction on its side that is not on record: the request was refused, or an earlier
        coordinator had it."""
        self.unmarked = transaction.partitions  # of a decided transaction: those whose marker is not on the disk yet
        self.busy = False
        self.is_lost = False  # to another broker: requests in progress here fail
        self.waiting: list[Done] = []
        self._started_ms = -1  # of the transaction that is timed
        self._began_at = 0.0

    def age_ms(self, clock: Clock) -> int:
        """The age of the transaction, on the monotonic clock since the first call."""
        transaction, monotonic = self.transaction, clock.monotonic()
        if self._started_ms != transaction.started_ms:
            self._started_ms = transaction.started_ms
            already_ms = clock.wall_ms() - transaction.started_ms  # from before a restart, otherwise close to zero
            self._began_at = monotonic - min(max(already_ms, 0), transaction.timeout_ms) / 1000
        return round((monotonic - self._began_at) * 1000)

    def __repr__(self) -> str:
        return f"<{self.transaction.id} {self.transaction.state.title}{', busy' if self.busy else ''}>"
