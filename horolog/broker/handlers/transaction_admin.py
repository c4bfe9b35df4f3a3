"""Looking at transactions, and ending those that hang: DescribeTransactions 0, ListTransactions 0-2, WriteTxnMarkers 0-2.

- An unknown transactional id is TRANSACTIONAL_ID_NOT_FOUND, an empty one INVALID_REQUEST. One that another broker coordinates is
  NOT_COORDINATOR, and is not listed here.
- ListTransactions returns the state filters that it does not know; states are case-sensitive. A duration filter below 0 is none.
- Coordinators of other brokers send WriteTxnMarkers, and so does the tool that aborts a hanging transaction. A marker of an older epoch
  is INVALID_PRODUCER_EPOCH, one of an older coordinator TRANSACTION_COORDINATOR_FENCED.
- ListTransactions v2 may ask for ids that match a regular expression as a whole; a bad one is INVALID_REGULAR_EXPRESSION, and so is one
  that takes too many steps. It runs over the ids that the client may DESCRIBE, so its run time reveals nothing about others.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping

from horolog.base.acl_types import Operation, ResourceType
from horolog.base.patterns import PatternError, Regex
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.config.listeners import PEERS
from horolog.broker.groups.topic_patterns import TEXTS_AT_ONCE, tried
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.lookup import find_partition
from horolog.broker.log.partition import Partition
from horolog.broker.transactions.states import STATES_BY_TITLE, Producer, Transaction
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsResponseTransactionState,
    TopicData,
    TransactionState,
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from horolog.protocol.records.control import Marker
from horolog.protocol.topic_partition import by_topic


def describe(
    broker: BrokerView,
    request: DescribeTransactionsRequest,
    context: RequestContext,  # noqa: ARG001
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_describe_one(broker, each) for each in request.transactional_ids]
    )


def _describe_one(broker: BrokerView, transactional_id: str) -> TransactionState:
    if not transactional_id:
        return TransactionState(error_code=ErrorCode.INVALID_REQUEST, transactional_id=transactional_id)
    found = broker.transactions.get(transactional_id)
    if found is None:
        code = broker.transactions.absence_of(transactional_id)
        return TransactionState(error_code=code, transactional_id=transactional_id)
    return TransactionState(
        error_code=ErrorCode.NONE,
        transactional_id=transactional_id,
        transaction_state=found.state.title,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=[
            TopicData(topic=topic, partitions=indexes) for topic, indexes in by_topic(sorted(found.partitions)).items()
        ],
    )


def list_all(
    broker: BrokerView, request: ListTransactionsRequest, context: RequestContext
) -> Generator[None, None, ListTransactionsResponse]:
    try:
        pattern = Regex(request.transactional_id_pattern) if request.transactional_id_pattern else None
        if broker.transactions.is_loading:
            return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        wanted = yield from _wanted(broker, request, _may_describe(broker, context))
        if pattern is not None:
            matching = set((yield from tried(pattern, [each.id for each in wanted])))
            wanted = [each for each in wanted if each.id in matching]
    except PatternError:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    return ListTransactionsResponse(
        error_code=ErrorCode.NONE,
        unknown_state_filters=[name for name in dict.fromkeys(request.state_filters) if name not in STATES_BY_TITLE],
        transaction_states=[
            ListTransactionsResponseTransactionState(
                transactional_id=each.id, producer_id=each.producer_id, transaction_state=each.state.title
            )
            for each in wanted
        ],
    )


def _may_describe(broker: BrokerView, context: RequestContext) -> Callable[[str], bool]:
    """Whether the client may know of a transactional id."""
    if broker.authorizer is None or context.listener == PEERS:
        return lambda _: True
    rights = broker.authorizer.rights(context.principal, context.connection.peer_host)
    return lambda one: rights.may(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, one)


def _wanted(
    broker: BrokerView, request: ListTransactionsRequest, may_describe: Callable[[str], bool]
) -> Generator[None, None, list[Transaction]]:
    """The transactions that the filters choose, of those that the client may know; found in steps."""
    states, producer_ids = frozenset(request.state_filters), frozenset(request.producer_id_filters)
    now_ms = broker.clock.wall_ms()
    chosen = []
    for number, each in enumerate(list(broker.transactions)):
        if number % TEXTS_AT_ONCE == TEXTS_AT_ONCE - 1:
            yield
        if not may_describe(each.id):
            continue
        if (states and each.state.title not in states) or (producer_ids and each.producer_id not in producer_ids):
            continue
        if request.duration_filter < 0 or now_ms - each.started_ms > request.duration_filter:
            chosen.append(each)
    return chosen


class _Markers:
    """One WriteTxnMarkers request: answered when all its markers are written."""

    def __init__(self, context: RequestContext, response: WriteTxnMarkersResponse, waits_for: int) -> None:
        self._context = context
        self._response = response
        self._waits_for = waits_for

    def written(
        self,
        results: Mapping[Partition, list[WritableTxnMarkerPartitionResult]],
        errors: Mapping[Partition, ErrorCode],
    ) -> None:
        for partition, code in errors.items():
            for result in results[partition]:
                result.error_code = code
        self._waits_for -= 1
        if not self._waits_for:
            self._context.reply(self._response)


def write_markers(broker: BrokerView, request: WriteTxnMarkersRequest, context: RequestContext) -> None:
    response = WriteTxnMarkersResponse(markers=[])
    waiting = _Markers(context, response, len(request.markers))
    if not request.markers:
        context.reply(response)
    for marker in request.markers:
        answer, results = _find_all(broker.cluster, marker)
        response.markers.append(answer)
        broker.transactions.marking.write_foreign(
            list(results),
            Producer(marker.producer_id, marker.producer_epoch),
            Marker(marker.transaction_result, marker.coordinator_epoch),
            lambda errors, results=results: waiting.written(results, errors),  # type: ignore[misc]
        )


def _find_all(
    cluster: Cluster, marker: WritableTxnMarker
) -> tuple[WritableTxnMarkerResult, dict[Partition, list[WritableTxnMarkerPartitionResult]]]:
    """The answer so far, and its results for the partitions that a marker goes to."""
    answer = WritableTxnMarkerResult(producer_id=marker.producer_id, topics=[])
    places: dict[Partition, list[WritableTxnMarkerPartitionResult]] = {}
    for topic in marker.topics:
        results: list[WritableTxnMarkerPartitionResult] = []
        answer.topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=results))
        for index in topic.partition_indexes:
            found = find_partition(cluster, topic.name, index)
            result = WritableTxnMarkerPartitionResult(partition_index=index, error_code=ErrorCode.NONE)
            results.append(result)
            if isinstance(found, ErrorCode):
                result.error_code = found
            else:
                places.setdefault(found, []).append(result)
    return answer, places
