"""Reports changes that requests have made, and refusals, to the audit.

The changes of a request are read from its answer, after the handler has answered and before other refused parts are added. The
table of the access lists names the APIs that change things, with or without an authorizer. Requests of peers are left out: the
broker that serves the client reports them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from horolog.broker.config.listeners import PEERS
from horolog.broker.security.audit import Who

if TYPE_CHECKING:
    from horolog.base.acl_types import Operation
    from horolog.broker.handlers import HandlerFunction
    from horolog.broker.handlers.authorization.changes import ChangingApi
    from horolog.broker.handlers.context import BrokerView, RequestContext
    from horolog.broker.handlers.gate import Gate
    from horolog.broker.security.audit import AuditTrail, Denied, Part
    from horolog.protocol.apis import ApiKey

log = logging.getLogger(__name__)


def auditing(audit: AuditTrail, gate: Gate) -> Gate:
    """The same gate; changes behind it are reported."""
    from horolog.broker.handlers.authorization.table import NEEDS

    def audited(key: ApiKey, handle: HandlerFunction) -> HandlerFunction:
        function, changes = gate(key, handle), NEEDS[key].changes
        return function if changes is None else _telling(audit, changes, function)

    return audited


def _telling(audit: AuditTrail, changes: ChangingApi, handle: HandlerFunction) -> HandlerFunction:
    def telling(broker: BrokerView, request: Any, context: RequestContext) -> object | None:
        if context.listener != PEERS and not getattr(request, "validate_only", False):
            context.amend(lambda answer: _tell(audit, changes, request, answer, context))
        return handle(broker, request, context)

    return telling


def _tell(audit: AuditTrail, changes: ChangingApi, request: Any, answer: Any, context: RequestContext) -> Any:
    try:
        audit.changed(who(context), _shown(context), changes.operation, changes.parts_of(request, answer))
    except Exception:
        log.exception("the audit could not record a %s", _shown(context))
    return answer


def tell_refusal(audit: AuditTrail, context: RequestContext, denied: Iterable[Denied]) -> None:
    audit.refused(who(context), _shown(context), denied)


def tell_change(audit: AuditTrail, context: RequestContext, operation: Operation, parts: Iterable[Part]) -> None:
    """Report a change that its answer does not name."""
    audit.changed(who(context), _shown(context), operation, parts)


def who(context: RequestContext) -> Who:
    """The sender of a request."""
    peer = context.connection
    return Who(str(peer.principal), peer.peer_host, peer.listener, context.client_id)


def _shown(context: RequestContext) -> str:
    return f"{context.route.name} v{context.route.version}"
