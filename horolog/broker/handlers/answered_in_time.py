"""Coordinators over a store answer once the store has what they append. A client waits for that as long as `late_answers` says, and then
gets an error after which it asks again.

What was appended takes effect when the store has it. So a repeated request does nothing twice: an offset is committed again, a member
finds its place, EndTxn gets CONCURRENT_TRANSACTIONS until the decision is there, and then its outcome. Kafka's coordinators do so, too:
they wait for replicas as long as `offset.commit.timeout.ms` or `request.timeout.ms` say, and answer COORDINATOR_NOT_AVAILABLE.

Each request that is repeated appends again, so while too many records wait, such requests are refused before they do anything.
JoinGroup and SyncGroup also wait for other members, longer than this: `groups.runner` ends their waits for the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from horolog.broker.base.late_answers import ANSWERED_WITHIN_S
from horolog.broker.handlers.refusals import refuse, refuse_for_now
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from horolog.broker.handlers import HandlerFunction
    from horolog.broker.handlers.context import BrokerView, RequestContext

BY_MEMBERS = (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.LEAVE_GROUP)
"""These are refused while too many records wait, and have no limit in time here."""

REFUSALS = {
    **dict.fromkeys(
        (
            *BY_MEMBERS,
            ApiKey.OFFSET_COMMIT,
            ApiKey.OFFSET_DELETE,
            ApiKey.DELETE_GROUPS,
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            ApiKey.SHARE_GROUP_HEARTBEAT,
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            ApiKey.ALTER_SHARE_GROUP_OFFSETS,
            ApiKey.DELETE_SHARE_GROUP_OFFSETS,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            ApiKey.ADD_OFFSETS_TO_TXN,
            ApiKey.TXN_OFFSET_COMMIT,
            ApiKey.END_TXN,
            ApiKey.INITIALIZE_SHARE_GROUP_STATE,
            ApiKey.READ_SHARE_GROUP_STATE,
            ApiKey.WRITE_SHARE_GROUP_STATE,
            ApiKey.DELETE_SHARE_GROUP_STATE,
        ),
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ),
    # These clients are to ask the same broker again. Of a producer without a transactional id there is no other.
    ApiKey.INIT_PRODUCER_ID: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ApiKey.OFFSET_FETCH: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    # Of coordinators and operators. Partitions move once all of them is shipped, and a broker is fenced in the store.
    ApiKey.WRITE_TXN_MARKERS: ErrorCode.REQUEST_TIMED_OUT,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: ErrorCode.REQUEST_TIMED_OUT,
    ApiKey.UNREGISTER_BROKER: ErrorCode.REQUEST_TIMED_OUT,
}
"""The error for a request that waits too long, or for which there is no room."""


def answered_in_time(key: ApiKey, handle: HandlerFunction) -> HandlerFunction:
    """A gate right before the handler: it sees what other gates pass on."""
    code = REFUSALS.get(key)
    return handle if code is None else _in_time(key, code, handle)


def _in_time(key: ApiKey, code: ErrorCode, handle: HandlerFunction) -> HandlerFunction:
    def guarded(broker: BrokerView, request: Any, context: RequestContext) -> object | None:
        if not broker.committer.has_room:
            return refuse_for_now(broker, key, request, context, code)
        response = handle(broker, request, context)
        if response is None and context.parts is None and key not in BY_MEMBERS:
            left_s = ANSWERED_WITHIN_S - (broker.clock.monotonic() - context.began)
            timer = broker.cluster.later(max(0.0, left_s), lambda: context.reply(refuse(key, request, context, code)))

            def ended(answer: Any) -> Any:
                timer.cancel()
                return answer

            context.amend(ended)
        return response

    return guarded
