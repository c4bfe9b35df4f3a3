"""InitProducerId, versions 0 to 5: gives producers their ids and epochs.

- Without a transactional id: a new id with epoch 0, never given out before, crash or not.
- With one: the id's producer with its next epoch, which fences the producer with the one before. An open transaction is aborted first,
  and the request waits for that. v3+: a producer that continues after an error names its id and epoch, or neither.
- An empty transactional id is INVALID_REQUEST, a transaction timeout outside of 1 to `transaction.max.timeout.ms` is
  INVALID_TRANSACTION_TIMEOUT, as on real brokers. Before v4 PRODUCER_FENCED is called INVALID_PRODUCER_EPOCH.
Not done: v6 (two-phase commit), which Kafka 4.3 does not advertise either.
"""

from __future__ import annotations

from functools import partial

from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.transactions.states import NO_EPOCH, NO_PRODUCER_ID, Producer
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse

FIRST_EPOCH = 0
FIRST_VERSION_WITH_FENCED = 4


def handle(
    broker: BrokerView, request: InitProducerIdRequest, context: RequestContext
) -> InitProducerIdResponse | None:
    if request.transactional_id is None:
        broker.cluster.producer_ids.when_there(lambda: context.reply(_idempotent(broker)))
        return None
    refusal = _refusal(request, broker.settings.transaction_max_timeout_ms)
    if refusal is not None:
        return _refused(refusal)

    def done(code: ErrorCode, producer: Producer | None) -> None:
        if producer is None:
            fenced = code == ErrorCode.PRODUCER_FENCED and context.version < FIRST_VERSION_WITH_FENCED
            context.reply(_refused(ErrorCode.INVALID_PRODUCER_EPOCH if fenced else code))
        else:
            context.reply(_given(producer))

    expected = Producer(request.producer_id, request.producer_epoch) if request.producer_id >= 0 else None
    ask = partial(broker.transactions.initialize, request.transactional_id, request.transaction_timeout_ms, expected)
    broker.transaction_lines.serve(request.transactional_id, ask, done)
    return None


def _idempotent(broker: BrokerView) -> InitProducerIdResponse:
    try:
        return _given(Producer(broker.cluster.producer_ids.take(), FIRST_EPOCH))
    except ClusterError:
        # Kafka's brokers answer so when they get no block of ids; clients retry.
        return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def _refusal(request: InitProducerIdRequest, max_timeout_ms: int) -> ErrorCode | None:
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_EPOCH):
        return ErrorCode.INVALID_REQUEST
    if not 0 < request.transaction_timeout_ms <= max_timeout_ms:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return None


def _given(producer: Producer) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=ErrorCode.NONE, producer_id=producer.id, producer_epoch=producer.epoch)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)
