"""A real `RequestContext` for a handler, a gate or a conversation, with a route and a connection of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from horolog.broker.base.principal import ANONYMOUS, Principal
from horolog.broker.handlers.context import RequestContext
from horolog.protocol.primitives import Part


class Meter:
    """Notes the size of each answer, 0 for none."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def answered(self, response: object, size_bytes: int, began: float) -> None:
        self.sizes.append(size_bytes)

    def not_answered(self, began: float) -> None:
        self.sizes.append(0)


@dataclass
class Route:
    """An answer is its own encoding."""

    version: int = 0
    holds_frame: bool = False
    name: str = "Test"
    response_header_version: int = 0
    meter: Meter = field(default_factory=Meter)
    encode: Callable[[Any, list[Part]], None] = lambda answer, parts: parts.append(answer)


@dataclass
class Connection:
    """Counts answers."""

    principal: Principal = ANONYMOUS
    listener: str = "PLAINTEXT"
    peer_host: str = "127.0.0.1"
    login: None = None
    answers: int = 0
    closing: bool = False

    def answered(self) -> None:
        self.answers += 1


def request_context(
    version: int = 0,
    *,
    connection: Any = None,
    client_id: str | None = "test",
    size_bytes: int = 100,
    holds_frame: bool = False,
    **of_connection: Any,
) -> RequestContext:
    """A request that has no answer yet. `of_connection`: fields of a connection of its own."""
    route: Any = Route(version, holds_frame)
    return RequestContext(connection or Connection(**of_connection), route, 7, client_id, size_bytes, 0.0)


def amended(context: RequestContext, answer: Any) -> Any:
    """The answer as it is encoded."""
    for change in context.changes:
        answer = change(answer)
    return answer
