"""Audit events, read back from their lines."""

from __future__ import annotations

import json
from typing import Any

from horolog.base.clock import ManualClock
from horolog.broker.base.metrics import Metrics
from horolog.broker.network.dispatch import Dispatcher
from horolog.broker.security.audit import CHANGE, LOGIN, REFUSAL, AuditTrail
from tests.support.memory_broker import NOW_MS, MemoryBroker

KINDS = (LOGIN, REFUSAL, CHANGE)


class Kept:
    """A sink that keeps the lines it gets."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, bytes]] = []
        self.calls: list[str] = []

    def open(self) -> None:
        self.calls.append("open")

    def take(self, event: str, line: bytes) -> None:
        self.lines.append((event, line))

    def flush(self) -> None:
        self.calls.append("flush")

    def close(self) -> None:
        self.calls.append("close")

    def events(self) -> list[dict[str, Any]]:
        """Everything since the last call."""
        lines, self.lines = self.lines, []
        events = [json.loads(line) for _, line in lines]
        assert [kind for kind, _ in lines] == [each["event"] for each in events]
        return events

    def told(self, *names: str) -> list[tuple[Any, ...]]:
        """Some fields of each event."""
        return [tuple(each.get(name) for name in names) for each in self.events()]


def trail(
    kept: Kept,
    *,
    clock: ManualClock | None = None,
    kinds: tuple[str, ...] = KINDS,
    rate: int = 100,
    metrics: Metrics | None = None,
    **labels: object,
) -> AuditTrail:
    return AuditTrail(kinds, [kept], clock or ManualClock(NOW_MS), metrics or Metrics(), rate=rate, **labels)


def audited(memory: MemoryBroker) -> Kept:
    """The audit events of a running broker in memory from now on."""
    kept = Kept()
    memory.broker.audit = trail(kept)
    memory.dispatcher = Dispatcher(memory.broker)
    return kept
