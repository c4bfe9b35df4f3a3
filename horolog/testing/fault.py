"""One fault armed by a test: what happens, to which requests, how often and for how long."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from horolog.protocol.errors import ErrorCode
from horolog.testing.fault_scope import Scope

if TYPE_CHECKING:
    from horolog.broker.coordination.timers import Timer

REFUSE, DELAY, DROP, THROTTLE, LEADER_AWAY, DISK_FULL = (
    "refuse",
    "delay",
    "drop",
    "throttle",
    "leader_away",
    "disk_full",
)


class Fault:
    """Armed from the start; ends with its `with`, by `end()`, or after its `times` or its duration."""

    def __init__(
        self,
        kind: str,
        scope: Scope,
        *,
        error: ErrorCode = ErrorCode.NONE,
        span_ms: int = 0,
        after_work: bool = False,
    ) -> None:
        """`span_ms` is the length of a delay or of a throttling."""
        self.kind = kind
        self.scope = scope
        self.error = error
        self.span_ms = span_ms
        self.after_work = after_work
        self.hits = 0
        """How many requests it has struck."""
        self.number = 0
        self.is_armed = True
        self.held: dict[Timer, None] = {}
        """Held requests and responses."""
        self.on_spent: Callable[[], None] = lambda: None
        self.on_end: Callable[[], None] = lambda: None

    def __repr__(self) -> str:
        state = "armed" if self.is_armed else "over"
        return f"<Fault {self.number} {self.kind}, {self.hits} hits, {state}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """End the fault; held requests continue."""
        self.on_end()

    def hit(self) -> None:
        """Count a struck request."""
        self.hits += 1
        if self.scope.times is not None and self.hits >= self.scope.times:
            self.is_armed = False
            self.on_spent()

    def as_json(self) -> dict[str, Any]:
        """The fault as the control endpoint shows it."""
        scope = self.scope
        return {
            "id": self.number,
            "kind": self.kind,
            "apis": None if scope.apis is None else sorted(key.name for key in scope.apis),
            "topic": scope.topic,
            "partition": scope.partition,
            "client_id": scope.client_id,
            "error": self.error.name if self.error else None,
            "hits": self.hits,
            "armed": self.is_armed,
        }
