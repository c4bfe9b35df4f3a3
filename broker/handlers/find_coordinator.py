"""FindCoordinator, versions 0 to 6: this broker coordinates every group and every transaction.

- v0 knows groups only, v1+ also transactions (key type 1), v4+ asks for many keys at once.
- Key type 2 (share partitions, which are not served) and others: INVALID_REQUEST.
"""

from __future__ import annotations

from broker.handlers.context import BrokerView, RequestContext
from protocol.errors import ErrorCode
from protocol.messages.groups import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

GROUP, TRANSACTION = 0, 1
FIRST_WITH_MANY_KEYS = 4
NOBODY = -1


def handle(broker: BrokerView, request: FindCoordinatorRequest, context: RequestContext) -> FindCoordinatorResponse:
    code = ErrorCode.NONE if request.key_type in {GROUP, TRANSACTION} else ErrorCode.INVALID_REQUEST
    node_id, (host, port) = broker.cluster.node_id, broker.endpoints.advertised(context.listener)
    if code:
        node_id, host, port = NOBODY, "", NOBODY
    if context.version >= FIRST_WITH_MANY_KEYS:
        message = code.message if code else ""
        coordinators = [
            Coordinator(key=key, node_id=node_id, host=host, port=port, error_code=code, error_message=message)
            for key in request.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=coordinators)
    message = code.message if code else "NONE"
    return FindCoordinatorResponse(error_code=code, error_message=message, node_id=node_id, host=host, port=port)
