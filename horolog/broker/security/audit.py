"""The audit: logins, refusals and administrative changes as events, each one line of JSON.

An event is a flat object in ASCII. Empty fields are left out:

    time        UTC with milliseconds, by the broker's clock
    event       login, refusal or change
    worker      its number, where several share the broker
    principal   such as User:alice; for a failed login, the user that it named
    address, listener, client_id
                where the client connects from and to, and the name that it gives itself
    request     the API and its version, such as CreateTopics v7
    operation   for a login, LOGIN or RENEWAL; else the operation of access lists that the request needs
    resource    TYPE:NAME, such as topic:orders, partition:orders-3, group:billing, cluster:kafka-cluster
    outcome     Kafka's name of the error; NONE where there is none
    mechanism   for a login: a mechanism of SASL, or TLS
    detail      what was changed, or why a login failed; never a secret
    left_out    how many events of this kind were dropped before this one, as too many

Text of clients is cut to `MAX_CHARACTERS`. Of each kind `rate` events a second are recorded, with bursts as large as one request
may well cause; more are only counted.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from horolog.base.acl_types import Operation, ResourceType
from horolog.base.clock import Clock
from horolog.broker.base.metrics import Described, Kind, Metrics
from horolog.broker.base.principal import ANONYMOUS, Principal
from horolog.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

LOGIN: Final = "login"
REFUSAL: Final = "refusal"
CHANGE: Final = "change"

TLS: Final = "TLS"
TLS_FAILED: Final = "SSL_AUTHENTICATION_FAILED"
"""Kafka's name for it; its protocol has no code for it."""

MAX_CHARACTERS: Final = 256
BURST: Final = 10_000
"""As many topics as one request may create."""
LEAST_BETWEEN_WARNINGS_S: Final = 60.0

EVENTS: Final = Described("audit_events_total", Kind.COUNTER, "Audit events recorded.", ("event",))
LOST: Final = Described(
    "audit_lost_events_total",
    Kind.COUNTER,
    "Lost audit events: above the rate limit (`rate`), or not written to the `file` or the `topic`.",
    ("by",),
)
FAMILIES: Final = (EVENTS, LOST)
_NAMES: Final[Mapping[int, str]] = {code: code.name for code in ErrorCode}


class Who(NamedTuple):
    """The client that caused an event."""

    principal: str | None
    address: str
    listener: str
    client_id: str | None = None


class Denied(NamedTuple):
    """A right that a client lacks."""

    operation: Operation
    kind: ResourceType
    name: str


class Part(NamedTuple):
    """One thing that was to be changed, and the outcome."""

    resource: str
    code: int
    detail: str = ""


class Sink(Protocol):
    """Where events go. It never waits, and never fails: what it cannot take is counted."""

    def open(self) -> None:
        """Raises OSError."""
        ...

    def take(self, event: str, line: bytes) -> None: ...
    def flush(self) -> None:
        """The broker takes no more requests: pass on all that is left."""
        ...

    def close(self) -> None: ...


class _Allowance:
    """How many events of one kind may still be recorded, and how many were left out since the last."""

    __slots__ = ("left", "left_out", "since_s", "warned_s")

    def __init__(self, now_s: float) -> None:
        self.left = float(BURST)
        self.since_s = now_s
        self.left_out = 0
        self.warned_s = now_s - LEAST_BETWEEN_WARNINGS_S

    def takes(self, now_s: float, rate: int) -> bool:
        self.left = min(self.left + (now_s - self.since_s) * rate, BURST)
        self.since_s = now_s
        if self.left < 1:
            self.left_out += 1
            return False
        self.left -= 1
        return True


class AuditTrail:
    """Makes events and hands them to the sinks."""

    def __init__(
        self,
        kinds: Collection[str],
        sinks: Sequence[Sink],
        clock: Clock,
        metrics: Metrics,
        *,
        rate: int,
        **labels: object,
    ) -> None:
        """Every event has the `labels`."""
        self._sinks = sinks
        self._clock = clock
        self._rate = rate
        self._always = labels
        now_s = clock.monotonic()
        self._allowances = {kind: _Allowance(now_s) for kind in kinds}
        self._counters = {kind: metrics.counter(EVENTS, kind) for kind in kinds}
        self._lost = metrics.counter(LOST, "rate")

    def __repr__(self) -> str:
        return f"<AuditTrail of {', '.join(self._allowances)}>"

    # -- what has happened

    def login(self, who: Who, mechanism: str, outcome: str, *, renewal: bool = False, detail: str = "") -> None:
        operation = "RENEWAL" if renewal else "LOGIN"
        self._tell(LOGIN, who, {"operation": operation, "outcome": outcome, "mechanism": mechanism, "detail": detail})

    def of_tls(self, listener: str) -> Callable[[str, Principal | None, str], None]:
        """A function that records the peers of one listener: those let in with a certificate, and those that were not, and why."""

        def tell(address: str, principal: Principal | None, reason: str) -> None:
            if principal is None:
                self.login(Who(None, address, listener), TLS, TLS_FAILED, detail=reason)
            elif principal != ANONYMOUS:
                self.login(Who(str(principal), address, listener), TLS, ErrorCode.NONE.name)

        return tell

    def refused(self, who: Who, request: str, denied: Iterable[Denied]) -> None:
        for operation, kind, name in denied:
            self._tell(
                REFUSAL,
                who,
                {
                    "request": request,
                    "operation": operation.name,
                    "resource": f"{kind.name.lower()}:{name}",
                    "outcome": f"{kind.name}_AUTHORIZATION_FAILED",
                },
            )

    def changed(self, who: Who, request: str, operation: Operation, parts: Iterable[Part]) -> None:
        for part in parts:
            self._tell(
                CHANGE,
                who,
                {
                    "request": request,
                    "operation": operation.name,
                    "resource": part.resource,
                    "outcome": _NAMES[part.code],
                    "detail": part.detail,
                },
            )

    def _tell(self, event: str, who: Who, fields: dict[str, str]) -> None:
        allowance = self._allowances.get(event)
        if allowance is None:
            return  # this kind is not recorded
        now_s = self._clock.monotonic()
        if not allowance.takes(now_s, self._rate):
            self._lost.value += 1
            if now_s - allowance.warned_s >= LEAST_BETWEEN_WARNINGS_S:
                allowance.warned_s = now_s
                log.warning("the audit skips events of the kind %s: more than %s per second", event, self._rate)
            return
        left_out, allowance.left_out = allowance.left_out, 0
        self._counters[event].value += 1
        told = {**who._asdict(), **fields}
        shown = {name: _cut(value) for name, value in told.items() if value}
        line: dict[str, object] = {"time": _time(self._clock.wall_ms()), "event": event, **self._always, **shown}
        if left_out:
            line["left_out"] = left_out
        data = json.dumps(line).encode()
        for sink in self._sinks:
            sink.take(event, data)

    # -- its life

    def open(self) -> None:
        """Raises OSError where events could not be kept."""
        for sink in self._sinks:
            sink.open()

    def flush(self) -> None:
        for sink in self._sinks:
            sink.flush()

    def close(self) -> None:
        for sink in self._sinks:
            sink.close()


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - 1] + "…"


def _time(wall_ms: int) -> str:
    seconds, ms = divmod(wall_ms, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{ms:03d}Z"
