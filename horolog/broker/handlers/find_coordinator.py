"""FindCoordinator, versions 0 to 6: the broker that coordinates a group or a transactional id, or keeps the state of a share partition.

- v0 knows groups only, v1+ also transactions (key type 1), v4+ asks for many keys at once, v6+ share partitions (key type 2): a key is
  `group:topic id:partition`, any other is INVALID_REQUEST.
- The topic that a coordinator keeps its state in is created if it does not exist. Kafka answers COORDINATOR_NOT_AVAILABLE
  while it creates it; here it is created before the answer, so that this code means that it could not be created.
- A leader that is still opening the partition is named: it answers COORDINATOR_LOAD_IN_PROGRESS itself.
- Other key types: INVALID_REQUEST.
"""

from __future__ import annotations

from horolog.broker.base.java_hash import partition_for
from horolog.broker.base.topic_names import GROUP_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from horolog.broker.cluster.cluster_state import NO_NODE
from horolog.broker.cluster.placement import Endpoint, endpoint_of
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from horolog.protocol.uuids import parse_uuid

GROUP, TRANSACTION, SHARE = 0, 1, 2
FIRST_VERSION_WITH_MANY_KEYS = 4
NO_PORT = -1
FIRST_VERSION_WITH_SHARES = 6
TOPICS = {GROUP: GROUP_OFFSETS, TRANSACTION: TRANSACTION_STATE, SHARE: SHARE_GROUP_STATE}
"""By the kind of key, the topic whose partitions keep them: the leader of a partition coordinates its keys."""


def handle(broker: BrokerView, request: FindCoordinatorRequest, context: RequestContext) -> None:
    def ensured(code: ErrorCode) -> None:
        context.reply(_response(broker, request, context, ErrorCode.COORDINATOR_NOT_AVAILABLE if code else code))

    knows_shares = context.version >= FIRST_VERSION_WITH_SHARES
    match request.key_type:
        case 0:
            broker.groups.ensure_topic(ensured)
        case 1:
            broker.transactions.ensure_topic(ensured)
        case 2 if knows_shares:
            broker.shares.persister.ensure_topic(ensured)
        case _:
            context.reply(_response(broker, request, context, ErrorCode.INVALID_REQUEST))


def _response(
    broker: BrokerView, request: FindCoordinatorRequest, context: RequestContext, code: ErrorCode
) -> FindCoordinatorResponse:
    """The coordinators, or why there are none of this kind."""
    kind, listener = request.key_type, context.listener
    if context.version >= FIRST_VERSION_WITH_MANY_KEYS:
        return FindCoordinatorResponse(
            coordinators=[
                _answer(key, kind, code or _key_error(kind, key) or _coordinator(broker, TOPICS[kind], key, listener))
                for key in request.coordinator_keys
            ]
        )
    found = code or _coordinator(broker, TOPICS[kind], request.key, listener)
    if isinstance(found, ErrorCode):
        return FindCoordinatorResponse(
            error_code=found, error_message=found.message, node_id=NO_NODE, host="", port=NO_PORT
        )
    return FindCoordinatorResponse(
        error_code=ErrorCode.NONE, error_message="NONE", node_id=found.node, host=found.host, port=found.port
    )


def _answer(key: str, kind: int, found: Endpoint | ErrorCode) -> Coordinator:
    if isinstance(found, ErrorCode):
        message = found.message if found == ErrorCode.INVALID_REQUEST and kind != SHARE else ""
        return Coordinator(key=key, node_id=NO_NODE, host="", port=NO_PORT, error_code=found, error_message=message)
    return Coordinator(
        key=key, node_id=found.node, host=found.host, port=found.port, error_code=ErrorCode.NONE, error_message=""
    )


def _key_error(kind: int, key: str) -> ErrorCode:
    """INVALID_REQUEST for what names no share partition."""
    group, topic_id, index = [*key.rsplit(":", 2), "", ""][:3]
    try:
        is_place = bool(group) and index.isdecimal() and bool(parse_uuid(topic_id))
    except ValueError:
        is_place = False
    return ErrorCode.INVALID_REQUEST if kind == SHARE and not is_place else ErrorCode.NONE


def _coordinator(broker: BrokerView, topic_name: str, key: str, listener: str) -> Endpoint | ErrorCode:
    """The leader of the partition that keeps a group or a transactional id."""
    topic = broker.cluster.topics[topic_name]
    node = broker.placement.coordinator(topic.id, partition_for(key, topic.partition_count))
    return endpoint_of(broker.placement, node, listener) or ErrorCode.COORDINATOR_NOT_AVAILABLE
