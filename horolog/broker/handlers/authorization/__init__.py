"""Which requests are allowed, by the access list: the gate that an authorizer asks for.

`table` says what each API needs, in terms of `checks`. A request is refused part by part: the handler gets the allowed parts, and
the refused ones are added to its answer. Requests of peers are allowed, since the broker that serves the client has checked them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from horolog.broker.config.listeners import PEERS
from horolog.broker.handlers.auditing import tell_refusal
from horolog.broker.handlers.authorization.authorized_request import AuthorizedRequest, NotingRights
from horolog.broker.handlers.authorization.table import NEEDS
from horolog.broker.handlers.refusals import refuse

__all__ = [
    "changes",
    "gate_by",
    "table",
    "topics",
]

if TYPE_CHECKING:
    from horolog.broker.handlers import HandlerFunction
    from horolog.broker.handlers.context import BrokerView, RequestContext
    from horolog.broker.handlers.gate import Gate
    from horolog.broker.security.audit import AuditTrail
    from horolog.broker.security.authorizer import Authorizer
    from horolog.protocol.apis import ApiKey


def gate_by(authorizer: Authorizer, audit: AuditTrail | None = None) -> Gate:
    """See `handlers.gate`. An API that the table leaves out would be refused to every client; a test checks that there is none.

    If a part of a request is refused, the audit, where there is one, gets the missing rights.
    """

    def gate(key: ApiKey, handle: HandlerFunction) -> HandlerFunction:
        needs = NEEDS[key]
        if not (needs.checks or needs.handle):
            return handle
        checks = [check.of_requests(key) for check in needs.checks]

        def guarded(broker: BrokerView, request: Any, context: RequestContext) -> object | None:
            if context.listener == PEERS:
                return handle(broker, request, context)
            rights = authorizer.rights(context.principal, context.connection.peer_host)
            noting = None if audit is None else NotingRights(rights)
            asked = AuthorizedRequest(key, broker, request, context, noting or rights)
            code = None
            for check in checks:
                code = check(asked)
                if code is not None:
                    break
            if audit is not None and noting is not None and (code is not None or asked.refuses_something):
                tell_refusal(audit, context, noting.missing())
            if code is not None:
                return refuse(key, request, context, code)
            return asked.answered_by(needs.handle or handle)

        return guarded

    return gate
