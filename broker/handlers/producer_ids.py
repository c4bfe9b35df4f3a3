"""InitProducerId, versions 0 to 5: gives idempotent producers their ids.

- Without a transactional id: a new id with epoch 0, never given out before, crash or not.
- An empty transactional id is INVALID_REQUEST, a transaction timeout outside of 1 to `transaction.max.timeout.ms` is
  INVALID_TRANSACTION_TIMEOUT, as on real brokers.
Not done: transactions. A transactional id is answered with UNSUPPORTED_VERSION: clients take it as final and say so at once. A
coordinator code would be truer to the letter and worse to live with: clients retry those until their timeouts, minutes
later. The usual client never comes this far, for it misses FindCoordinator in ApiVersions first.
"""

from __future__ import annotations

from broker.cluster_errors import ClusterError
from broker.handlers.context import BrokerView, RequestContext
from protocol.errors import ErrorCode
from protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse

NO_PRODUCER_ID = -1
NO_EPOCH = -1
FIRST_EPOCH = 0


def handle(broker: BrokerView, request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:  # noqa: ARG001
    refusal = _transactional_refusal(request, broker.settings.transaction_max_timeout_ms)
    if refusal is not None:
        return _refused(refusal)
    try:
        producer_id = broker.cluster.next_producer_id()
    except ClusterError:
        # Kafka's brokers answer so when they get no block of ids; clients try again.
        return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=FIRST_EPOCH)


def _transactional_refusal(request: InitProducerIdRequest, max_timeout_ms: int) -> ErrorCode | None:
    if request.transactional_id is None:
        return None
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if not 0 < request.transaction_timeout_ms <= max_timeout_ms:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.UNSUPPORTED_VERSION


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)
