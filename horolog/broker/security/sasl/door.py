"""What SASL needs at one listener, made once at the start: the mechanisms with all that they need, bounds, and counters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from horolog.base.clock import Clock
from horolog.broker.base.metrics import Described, Kind, Metrics
from horolog.broker.security.audit import AuditTrail
from horolog.broker.security.sasl.outcome import Mechanism

AUTHENTICATIONS: Final = Described(
    "authentications_total",
    Kind.COUNTER,
    "SASL logins and renewals of logins, by outcome.",
    ("listener", "mechanism", "kind", "outcome"),
)
ENDED_SESSIONS: Final = Described(
    "ended_sessions_total",
    Kind.COUNTER,
    "Connections that the broker closed because their login had expired.",
    ("listener",),
)
FAMILIES: Final = (AUTHENTICATIONS, ENDED_SESSIONS)
NO_MECHANISM: Final = "(none)"


class Cancellable(Protocol):
    def cancel(self) -> None: ...


Later = Callable[[float, Callable[[], None]], Cancellable]
"""Calls a function after a number of seconds."""


@dataclass(frozen=True, slots=True)
class SaslDoor:
    """`mechanisms` are those that are enabled, in the order in which peers learn of them."""

    listener: str
    mechanisms: Mapping[str, Callable[[], Mechanism]]
    max_reauth_ms: Mapping[str, int]
    max_receive_bytes: int
    delay_s: Callable[[str], float]
    """How long a peer at an address, which failed just now, waits for its answer."""
    clock: Clock
    metrics: Metrics
    later: Later
    audit: AuditTrail | None = None

    def count(self, mechanism: str, *, anew: bool, succeeded: bool) -> None:
        kind, outcome = "renewal" if anew else "login", "success" if succeeded else "failure"
        self.metrics.counter(AUTHENTICATIONS, self.listener, mechanism, kind, outcome).value += 1
