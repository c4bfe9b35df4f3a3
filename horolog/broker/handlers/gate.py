"""Whether a request is allowed: asked at one point, in `network.dispatch`, between decoding and the handler.

A gate is asked once for each route, and returns the function that serves its requests. That may be the handler itself: then the
request is allowed, and costs nothing more. It may be a function that answers with an error instead; or one that decides by the
request and `context.principal`, passes on the allowed part, and has the answer report the rest (`amend`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from horolog.broker.handlers import HandlerFunction
    from horolog.broker.handlers.context import BrokerView, RequestContext, RequestRoute
    from horolog.protocol.apis import ApiKey
    from horolog.protocol.primitives import Part

    Gate = Callable[[ApiKey, HandlerFunction], HandlerFunction]


def open_gate(_: ApiKey, handle: HandlerFunction) -> HandlerFunction:
    """Everything is allowed."""
    return handle


def gate_of(broker: BrokerView) -> Gate:
    """The gate that the settings ask for; the rights of the principal are checked before what holds for all clients."""
    gate = _gate_for_all(broker)
    if broker.audit is not None:
        from horolog.broker.handlers.auditing import auditing

        gate = auditing(broker.audit, gate)
    if broker.authorizer is None:
        return gate
    from horolog.broker.handlers.authorization import gate_by

    guard = gate_by(broker.authorizer, broker.audit)
    return lambda key, handle: guard(key, gate(key, handle))


def _gate_for_all(broker: BrokerView) -> Gate:
    if broker.settings.horolog_read_only:
        from horolog.broker.handlers.read_only import gate

        return gate
    return open_gate


def amend(context: RequestContext, change: Callable[[Any], None]) -> None:
    """Have the answer changed before it is encoded, whether the handler gives it at once or late."""
    context.route = _Amended(context.route, change)


class _Amended:
    """The route of one request whose answer is changed."""

    __slots__ = ("_change", "_encode", "holds_frame", "meter", "name", "response_header_version", "throttle", "version")

    def __init__(self, route: RequestRoute, change: Callable[[Any], None]) -> None:
        self._change = change
        self._encode = route.encode
        self.name = route.name
        self.version = route.version
        self.response_header_version = route.response_header_version
        self.meter = route.meter
        self.holds_frame = route.holds_frame
        self.throttle = route.throttle

    def encode(self, response: Any, parts: list[Part]) -> None:
        self._change(response)
        self._encode(response, parts)
