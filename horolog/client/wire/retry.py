"""Decides how long to wait before a retry, and which errors put the view of the cluster in doubt: pure."""

from collections.abc import Callable
from dataclasses import dataclass

from horolog.protocol.errors import ErrorCode

JITTER = 0.2  # each delay is up to this fraction shorter or longer, so that clients do not all retry at once

STALE_LEADERS = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
STALE_COORDINATOR = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
UNKNOWN_TOPIC_ATTEMPTS = 5
"""A topic created a moment ago is known soon; one still unknown after this many looks does not exist."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    backoff_ms: int = 50
    backoff_max_ms: int = 1000
    timeout_ms: int = 30_000

    def delay_ms(self, attempt: int, random: Callable[[], float]) -> float:
        """The pause after `attempt` failures (from 1), doubling up to the bound; `random` gives numbers from 0 to 1."""
        base = float(min(self.backoff_max_ms, self.backoff_ms << min(attempt - 1, 20)))
        return base * (1 + JITTER * (2 * random() - 1))

    def gives_up(self, code: ErrorCode, attempt: int, elapsed_ms: float) -> bool:
        """Whether `attempt` failures, the last of them retriable, are enough."""
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and attempt >= UNKNOWN_TOPIC_ATTEMPTS:
            return True
        return elapsed_ms >= self.timeout_ms
