"""A broker over a store answers as a leader or coordinator only while its lease holds, which is asked before each request and its answer.

A request may wait for records, and the process may stand still meanwhile: what it read then may be less than others have shown since.
DeleteRecords needs the lease: the next leader looks for the start of a partition when this lease has ended.

A request that appends is answered once the store has its records, which proves more than a lease. But a coordinator also refuses, by what
it knows, and a member or a producer ends for some of these errors: the lease is asked before. So does a broker that keeps states of share
partitions: it does not know one that its successor initialized. A partition asks it for a gap alone (see `ShippedPartition`), so that
producers go on where the store is slow. WriteTxnMarkers needs none: a marker counts once the store has it, and refusals name newer epochs.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from horolog.broker.handlers.refusals import refuse_for_now, refused_parts
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from horolog.broker.bucket.lease import Lease
    from horolog.broker.handlers import HandlerFunction
    from horolog.broker.handlers.context import BrokerView, RequestContext
    from horolog.broker.handlers.gate import Gate

AS_LEADER = (
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.DELETE_RECORDS,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
)
AS_COORDINATOR = (
    ApiKey.OFFSET_FETCH,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.STREAMS_GROUP_HEARTBEAT,
    ApiKey.STREAMS_GROUP_DESCRIBE,
    ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
)
APPENDING = (
    ApiKey.OFFSET_COMMIT,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.OFFSET_DELETE,
    ApiKey.LEAVE_GROUP,
    ApiKey.DELETE_GROUPS,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
)
"""A coordinator answers these once the store has what they append."""
REFUSALS = {
    **dict.fromkeys(AS_LEADER, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    **dict.fromkeys((*AS_COORDINATOR, *APPENDING), ErrorCode.NOT_COORDINATOR),
}


def leased(lease: Lease, gate: Gate) -> Gate:
    """A gate that also asks the lease; APIs that need none cost nothing more."""

    def guard(key: ApiKey, handle: HandlerFunction) -> HandlerFunction:
        inner, code = gate(key, handle), REFUSALS.get(key)
        return inner if code is None else partial(_guarded, Leased(lease, key, code), inner)

    return guard


class Leased(NamedTuple):
    """What an API needs, and how it is refused."""

    lease: Lease
    key: ApiKey
    code: ErrorCode


def _guarded(
    needs: Leased, handle: HandlerFunction, broker: BrokerView, request: Any, context: RequestContext
) -> object | None:
    if not needs.lease.holds() and _needs_coordinator(needs.key, request):
        return _refusal(needs, broker, request, context)
    if needs.key not in APPENDING:
        context.amend(partial(_if_it_still_holds, needs, broker, request, context))
    return handle(broker, request, context)


def _if_it_still_holds(
    needs: Leased, broker: BrokerView, request: Any, context: RequestContext, response: object
) -> object | None:
    return response if needs.lease.holds() else _refusal(needs, broker, request, context)


def _needs_coordinator(key: ApiKey, request: Any) -> bool:
    """False for a producer without a transactional id: every broker gives it an id."""
    return key is not ApiKey.INIT_PRODUCER_ID or request.transactional_id is not None


def _refusal(needs: Leased, broker: BrokerView, request: Any, context: RequestContext) -> object | None:
    """Each partition is refused by itself, so that clients look for its leader; a coordinator refuses as a whole."""
    if needs.key in AS_LEADER:
        parts: object = refused_parts(needs.key, request, context.version, needs.code)
        return parts
    return refuse_for_now(broker, needs.key, request, context, needs.code)
