"""FindCoordinator, versions 0 to 6: this broker coordinates every group and every transaction.

- v0 knows groups only, v1+ also transactions (key type 1), v4+ asks for many keys at once.
- The topic that a coordinator keeps its state in is made when it is not there yet. Kafka answers COORDINATOR_NOT_AVAILABLE
  while it makes it; here it is made before the answer, so that this code means that it could not be made.
- Other key types: INVALID_REQUEST.
Not done: share partitions (key type 2).
"""

from __future__ import annotations

from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

GROUP, TRANSACTION, SHARE = 0, 1, 2
FIRST_WITH_MANY_KEYS = 4
NOBODY = -1


def handle(broker: BrokerView, request: FindCoordinatorRequest, context: RequestContext) -> FindCoordinatorResponse:
    code = _coordinator_error(broker, request.key_type)
    node_id, (host, port) = broker.cluster.node_id, broker.endpoints.advertised(context.listener)
    if code:
        node_id, host, port = NOBODY, "", NOBODY
    if context.version >= FIRST_WITH_MANY_KEYS:
        message = code.message if code == ErrorCode.INVALID_REQUEST and request.key_type != SHARE else ""
        coordinators = [
            Coordinator(key=key, node_id=node_id, host=host, port=port, error_code=code, error_message=message)
            for key in request.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=coordinators)
    message = code.message if code else "NONE"
    return FindCoordinatorResponse(error_code=code, error_message=message, node_id=node_id, host=host, port=port)


def _coordinator_error(broker: BrokerView, key_type: int) -> ErrorCode:
    """Why there is no coordinator of this kind, if there is none; its topic is there afterwards."""
    if key_type not in {GROUP, TRANSACTION}:
        return ErrorCode.INVALID_REQUEST
    code = broker.groups.ensure_topic() if key_type == GROUP else broker.transactions.ensure_topic()
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if code else ErrorCode.NONE
