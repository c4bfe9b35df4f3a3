"""With `horolog.read.only`, requests that would change something are refused before they reach their handlers; others are served.

The error is one that clients do not retry: POLICY_VIOLATION, with a message where the answer has room for one. Producers that
ask for an id get CLUSTER_AUTHORIZATION_FAILED, those with a transactional id TRANSACTIONAL_ID_AUTHORIZATION_FAILED: these end a
producer at once, where it would retry others for minutes. Groups are served, in memory; only their commits are refused. Share groups,
whose every delivery is kept, and streams groups, whose members write, are refused as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from horolog.broker.handlers.refusals import refusing
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from horolog.broker.handlers import HandlerFunction
    from horolog.broker.handlers.context import RequestContext

WHY = "this broker only reads its data folder (horolog.read.only)"

REFUSALS: dict[ApiKey, ErrorCode] = {
    ApiKey.PRODUCE: ErrorCode.POLICY_VIOLATION,
    ApiKey.OFFSET_COMMIT: ErrorCode.POLICY_VIOLATION,
    ApiKey.OFFSET_DELETE: ErrorCode.POLICY_VIOLATION,
    ApiKey.SHARE_FETCH: ErrorCode.POLICY_VIOLATION,
    ApiKey.SHARE_ACKNOWLEDGE: ErrorCode.POLICY_VIOLATION,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: ErrorCode.POLICY_VIOLATION,
    ApiKey.READ_SHARE_GROUP_STATE: ErrorCode.POLICY_VIOLATION,
    ApiKey.WRITE_SHARE_GROUP_STATE: ErrorCode.POLICY_VIOLATION,
    ApiKey.DELETE_SHARE_GROUP_STATE: ErrorCode.POLICY_VIOLATION,
    ApiKey.DELETE_GROUPS: ErrorCode.POLICY_VIOLATION,
    ApiKey.CREATE_TOPICS: ErrorCode.POLICY_VIOLATION,
    ApiKey.DELETE_TOPICS: ErrorCode.POLICY_VIOLATION,
    ApiKey.CREATE_PARTITIONS: ErrorCode.POLICY_VIOLATION,
    ApiKey.DELETE_RECORDS: ErrorCode.POLICY_VIOLATION,
    ApiKey.ALTER_CONFIGS: ErrorCode.POLICY_VIOLATION,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: ErrorCode.POLICY_VIOLATION,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ErrorCode.POLICY_VIOLATION,
    ApiKey.CREATE_DELEGATION_TOKEN: ErrorCode.POLICY_VIOLATION,
    ApiKey.RENEW_DELEGATION_TOKEN: ErrorCode.POLICY_VIOLATION,
    ApiKey.EXPIRE_DELEGATION_TOKEN: ErrorCode.POLICY_VIOLATION,
    ApiKey.CREATE_ACLS: ErrorCode.POLICY_VIOLATION,
    ApiKey.DELETE_ACLS: ErrorCode.POLICY_VIOLATION,
    ApiKey.ALTER_CLIENT_QUOTAS: ErrorCode.POLICY_VIOLATION,
    ApiKey.SHARE_GROUP_HEARTBEAT: ErrorCode.POLICY_VIOLATION,
    ApiKey.STREAMS_GROUP_HEARTBEAT: ErrorCode.POLICY_VIOLATION,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: ErrorCode.POLICY_VIOLATION,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: ErrorCode.POLICY_VIOLATION,
    ApiKey.INIT_PRODUCER_ID: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ApiKey.WRITE_TXN_MARKERS: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ApiKey.ADD_PARTITIONS_TO_TXN: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ApiKey.ADD_OFFSETS_TO_TXN: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ApiKey.END_TXN: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ApiKey.TXN_OFFSET_COMMIT: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


def gate(key: ApiKey, handle: HandlerFunction) -> HandlerFunction:
    """See `handlers.gate`."""
    return _refuse(key, handle) if key in REFUSALS else handle


def _error(key: ApiKey, request: Any, _: RequestContext) -> ErrorCode:
    if key is ApiKey.INIT_PRODUCER_ID and request.transactional_id is not None:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return REFUSALS[key]


_refuse = refusing(_error, WHY)
