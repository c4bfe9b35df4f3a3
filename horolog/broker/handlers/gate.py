"""Decides whether a request is allowed, at one point: in `network.dispatch`, between decoding and the handler.

A gate is asked once for each route, and returns the function that serves its requests. That may be the handler itself: then the
request is allowed, and costs nothing more. It may be a function that answers with an error instead; or one that decides by the
request and `context.principal`, passes on the allowed part, and has the answer report the rest (`RequestContext.amend`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from horolog.broker.handlers import HandlerFunction
    from horolog.broker.handlers.context import BrokerView
    from horolog.protocol.apis import ApiKey

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
