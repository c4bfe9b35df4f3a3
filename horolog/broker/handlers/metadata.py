"""Metadata, versions 0 to 13: the brokers, the cluster, and topics with their partitions.

- v0: an empty list means all topics; v1+: null means all, an empty list none.
- A topic that does not exist is created when the broker (`auto.create.topics.enable`) and, from v4, the client allow it. The first
  answer is UNKNOWN_TOPIC_OR_PARTITION all the same, as on real brokers; the next one has the topic.
- v10+ answers carry topic ids; v12+ requests may name topics by id (unknown: UNKNOWN_TOPIC_ID), v10 and v11 requests may not.
- A topic named twice is answered once. A name that no topic may have is INVALID_TOPIC_EXCEPTION.
- A partition whose files failed has no leader and LEADER_NOT_AVAILABLE, its replica is offline.
- Authorized operations are bit fields of all operations, which an authorizer narrows; only if the request asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import cast

from horolog.broker.base.topic_names import INTERNAL_TOPICS, wrong_with
from horolog.broker.cluster.cluster import Cluster, Created
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.cluster.placement import Placement
from horolog.broker.cluster.topic import NO_TOPIC_ID, Topic
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.lookup import Leadership, leadership
from horolog.broker.handlers.operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from horolog.broker.handlers.partition_rows import LARGE, RowForm, begun
from horolog.broker.handlers.throttling import may_change
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

LAST_VERSION_WHERE_EMPTY_MEANS_ALL = 0
FIRST_VERSION_WITH_TOPIC_IDS = 10
FIRST_VERSION_BY_TOPIC_ID = 12

MANY_TOPICS, TOPICS_AT_ONCE = 500, 50
"""The number of topics above which all topics are described in steps, and the number in each step."""

Large = tuple[MetadataResponseTopic, Topic]
"""A large topic whose description has no rows yet."""


def handle(
    broker: BrokerView, request: MetadataRequest, context: RequestContext
) -> MetadataResponse | Generator[None, None, MetadataResponse]:
    version = context.version
    cluster = broker.cluster
    large: list[Large] = []
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED
    wanted = request.topics
    error = ErrorCode.NONE
    if wanted is None or (not wanted and version <= LAST_VERSION_WHERE_EMPTY_MEANS_ALL):
        if len(cluster.topics) > MANY_TOPICS:
            return _all_in_steps(broker, request, context, operations)
        topics = [describe_topic(broker.placement, topic, operations, large) for topic in cluster.topics.values()]
    elif version < FIRST_VERSION_BY_TOPIC_ID and any(
        each.name is None or each.topic_id != NO_TOPIC_ID for each in wanted
    ):
        error = ErrorCode.INVALID_REQUEST
        topics = [_unknown(each.name or "", each.topic_id, error, NOT_ASKED) for each in wanted]
    else:
        topics = _find(broker, request, context, operations, large)
    if large:
        return begun(_with_large(broker, context, large, partial(_answer, broker, request, context, topics, error)))
    return _answer(broker, request, context, topics, error)


def _with_large(
    broker: BrokerView, context: RequestContext, large: Iterable[Large], answer: Callable[[], MetadataResponse]
) -> Generator[None, None, MetadataResponse]:
    """The answer once it has the rows of large topics."""
    for described, topic in large:
        described.partitions = yield from _rows(broker, context, topic)
    return answer()


def _rows(
    broker: BrokerView, context: RequestContext, topic: Topic
) -> Generator[None, None, list[MetadataResponsePartition]]:
    form = RowForm(ApiKey.METADATA, context.version, _row)
    rows = yield from broker.partition_rows.of(topic, form, range(topic.partition_count))
    return cast("list[MetadataResponsePartition]", rows)


def _all_in_steps(
    broker: BrokerView, request: MetadataRequest, context: RequestContext, operations: int
) -> Generator[None, None, MetadataResponse]:
    """All topics, in steps, between which topics may come and go."""
    topics: list[MetadataResponseTopic] = []
    large: list[Large] = []
    for number, topic in enumerate(list(broker.cluster.topics.values())):
        if broker.cluster.topics.get(topic.name) is topic:
            topics.append(describe_topic(broker.placement, topic, operations, large))
            if large:
                large.clear()
                topics[-1].partitions = yield from _rows(broker, context, topic)
        if number % TOPICS_AT_ONCE == TOPICS_AT_ONCE - 1:
            yield
    return _answer(broker, request, context, topics, ErrorCode.NONE)


def _answer(
    broker: BrokerView,
    request: MetadataRequest,
    context: RequestContext,
    topics: list[MetadataResponseTopic],
    error: ErrorCode,
) -> MetadataResponse:
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=one.node, host=one.host, port=one.port, rack=one.rack)
            for one in broker.placement.brokers(context.listener)
        ],
        cluster_id=broker.cluster.cluster_id,
        controller_id=broker.placement.controller(),
        topics=topics,
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
        error_code=error,
    )


def _find(
    broker: BrokerView, request: MetadataRequest, context: RequestContext, operations: int, large: list[Large]
) -> list[MetadataResponseTopic]:
    """The topics asked for, each once; missing ones are created for the next request."""
    cluster = broker.cluster
    found: list[MetadataResponseTopic] = []
    missing: list[str] = []
    for name, topic_id in dict.fromkeys((each.name, each.topic_id) for each in request.topics or ()):
        if topic_id != NO_TOPIC_ID or name is None:
            topic = cluster.by_id.get(topic_id)
            if topic is None:
                found.append(_unknown(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID, NOT_ASKED))
        else:
            topic = cluster.topics.get(name)
            if topic is None:
                missing.append(name)
        if topic is not None:
            found.append(describe_topic(broker.placement, topic, operations, large))
    codes = dict.fromkeys(missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    codes |= {name: ErrorCode.INVALID_TOPIC_EXCEPTION for name in missing if wrong_with(name) is not None}
    if (
        request.allow_auto_topic_creation
        and broker.settings.auto_create_topics_enable
        and not broker.settings.horolog_read_only
    ):
        codes |= create_on_demand(cluster, [name for name in missing if wrong_with(name) is None], context)
    found.extend(_unknown(name, NO_TOPIC_ID, code, operations) for name, code in codes.items())
    return found


def create_on_demand(cluster: Cluster, names: Iterable[str], context: RequestContext) -> dict[str, ErrorCode]:
    """Create topics that a client asked about; return those that are refused at once, and why.

    Internal topics are left to the coordinators that need them, and topics beyond the client's quota to a later request.
    """
    count = cluster.settings.num_partitions
    wanted = [NewTopic(name) for name in names if name not in INTERNAL_TOPICS and may_change(context, count)]
    refused: dict[str, ErrorCode] = {}

    def done(results: Created) -> None:
        for new, result in zip(wanted, results, strict=True):
            if isinstance(result, ClusterError):
                refused[new.name] = result.code

    if wanted:  # else each request would wait for its turn among the changes of the cluster, and read the journal
        cluster.create_topics(wanted, done)
    return refused


def describe_topic(placement: Placement, topic: Topic, operations: int, large: list[Large]) -> MetadataResponseTopic:
    """A topic with its partitions. One of many partitions goes to `large`, and is still to get its rows."""
    count = topic.partition_count
    described = MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.internal,
        partitions=[_row(index, leadership(placement, topic, index)) for index in range(count if count < LARGE else 0)],
        topic_authorized_operations=operations,
    )
    if count >= LARGE:
        large.append((described, topic))
    return described


def _row(index: int, told: Leadership) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        error_code=told.code,
        partition_index=index,
        leader_id=told.leader,
        leader_epoch=told.epoch,
        replica_nodes=told.replicas,
        isr_nodes=told.replicas,
        offline_replicas=told.offline,
    )


def _unknown(name: str | None, topic_id: bytes, code: ErrorCode, operations: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=code,
        name=name,
        topic_id=topic_id,
        is_internal=name in INTERNAL_TOPICS,
        partitions=[],
        topic_authorized_operations=operations,
    )
