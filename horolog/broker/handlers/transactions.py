"""Requests of producers to the transaction coordinator: AddPartitionsToTxn 0-5, AddOffsetsToTxn 0-4, TxnOffsetCommit 0-5, EndTxn 0-5.

- A partition that does not exist keeps the others of its request from being added (OPERATION_NOT_ATTEMPTED); internal topics are
  TOPIC_AUTHORIZATION_FAILED. Brokers send AddPartitionsToTxn v4+ for several producers; it may only verify.
- TxnOffsetCommit v5 adds the group's offsets to the transaction by itself; older versions need AddOffsetsToTxn first.
- AddPartitionsToTxn of clients, AddOffsetsToTxn and EndTxn wait while the transaction before is ending, or its coordinator loads, up to
  five seconds; then the first two get CONCURRENT_TRANSACTIONS or COORDINATOR_LOAD_IN_PROGRESS.
- EndTxn v5 returns the producer id and epoch to continue with. EndTxn is answered when the markers are on the disk.
- Versions 0 and 1 do not know PRODUCER_FENCED and get INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from horolog.broker.base.topic_names import GROUP_OFFSETS, INTERNAL_TOPICS
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.coordination.keyed_queue import End, gather
from horolog.broker.groups.commits import (
    PartitionAnswer,
    TxnCommitRequest,
    TxnTopicAsked,
    merged_where_refused,
    missing,
)
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.transactions.states import VERSION_0, VERSION_2, Producer
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    EndTxnResponse,
)
from horolog.protocol.topic_partition import TopicPartition, each_topic_once

FIRST_VERSION_OF_BROKERS = 4
FIRST_VERSION_WITH_FENCED = 2
FIRST_END_WITH_NEW_EPOCH = 5
FIRST_COMMIT_THAT_ADDS = 5
FIRST_COMMIT_WITH_ABORTABLE = 4

Codes = dict[TopicPartition, ErrorCode]

REFUSED = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
"""The codes of partitions that this producer, or any, may not write to."""


def add_partitions(broker: BrokerView, request: AddPartitionsToTxnRequest, context: RequestContext) -> None:
    if context.version >= FIRST_VERSION_OF_BROKERS:
        transactions = request.transactions

        def all_done(found: list[Codes]) -> None:
            results = [
                AddPartitionsToTxnResult(
                    transactional_id=each.transactional_id,
                    topic_results=_results(each.topics, codes, once=each.verify_only),
                )
                for each, codes in zip(transactions, found, strict=True)
            ]
            context.reply(AddPartitionsToTxnResponse(results_by_transaction=results))

        gather([partial(_add, broker, each, VERSION_2) for each in transactions], all_done)
    else:
        _add_of_one(broker, request, context)


def _add_of_one(broker: BrokerView, request: AddPartitionsToTxnRequest, context: RequestContext) -> None:
    topics = request.v3_and_below_topics
    wanted = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        verify_only=False,
        topics=topics,
    )

    def done(found: Codes) -> None:
        codes = {place: _for_version(code, context.version) for place, code in found.items()}
        context.reply(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(topics, codes)))

    _add(broker, wanted, VERSION_0, done)


def _add(
    broker: BrokerView,
    wanted: AddPartitionsToTxnTransaction,
    client_version: int,
    done: Callable[[Codes], None],
) -> None:
    places = [(topic.name, index) for topic in wanted.topics for index in topic.partitions]
    producer = Producer(wanted.producer_id, wanted.producer_epoch)
    refused = _refused(broker.cluster, places, internal_too=client_version == VERSION_0)
    if not wanted.transactional_id:
        done(dict.fromkeys(places, ErrorCode.INVALID_REQUEST))
    elif refused:
        done(dict.fromkeys(places, ErrorCode.OPERATION_NOT_ATTEMPTED) | refused)
    elif wanted.verify_only:
        verify = partial(broker.transactions.verify, wanted.transactional_id, producer)
        gather([partial(verify, place) for place in places], lambda codes: done(dict(zip(places, codes, strict=True))))
    else:
        ask = partial(broker.transactions.add, wanted.transactional_id, producer, places, client_version)

        def added(code: ErrorCode) -> None:
            done(dict.fromkeys(places, code))

        if client_version == VERSION_0:
            broker.transaction_lines.serve(wanted.transactional_id, ask, added, len(places))
        else:
            ask(added)  # another broker asks, for several producers: none of them waits for another's transaction


def _refused(cluster: Cluster, places: Iterable[TopicPartition], *, internal_too: bool) -> Codes:
    """The partitions that no producer can write to."""
    refused: Codes = {}
    for name, index in places:
        topic = cluster.topics.get(name)
        if internal_too and name in INTERNAL_TOPICS:
            refused[name, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic is None or not topic.has(index):
            refused[name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return refused


def none_added(
    cluster: Cluster, topics: Sequence[AddPartitionsToTxnTopic], denied: Collection[str]
) -> list[AddPartitionsToTxnTopicResult]:
    """The answer where the producer may not write to some topics: nothing is added."""
    places = [(topic.name, index) for topic in topics for index in topic.partitions]
    codes: Codes = dict.fromkeys(places, ErrorCode.OPERATION_NOT_ATTEMPTED)
    codes |= _refused(cluster, places, internal_too=True)
    codes |= {place: ErrorCode.TOPIC_AUTHORIZATION_FAILED for place in places if place[0] in denied}
    return _results(topics, codes)


def _results(
    topics: Iterable[AddPartitionsToTxnTopic], codes: Codes, *, once: bool = False
) -> list[AddPartitionsToTxnTopicResult]:
    """Where something is refused, or only verified, each partition is answered once, as on real brokers."""
    if once or not REFUSED.isdisjoint(codes.values()):
        topics = _each_once(topics)
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=codes[topic.name, index])
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def _each_once(topics: Iterable[AddPartitionsToTxnTopic]) -> list[AddPartitionsToTxnTopic]:
    """The topics that have partitions, each once with all of them."""
    once = each_topic_once((topic.name, topic.partitions) for topic in topics)
    return [
        AddPartitionsToTxnTopic(name=name, partitions=list(dict.fromkeys(indexes)))
        for name, indexes in once.items()
        if indexes
    ]


def _for_version(code: ErrorCode, version: int) -> ErrorCode:
    if code == ErrorCode.PRODUCER_FENCED and version < FIRST_VERSION_WITH_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def add_offsets(broker: BrokerView, request: AddOffsetsToTxnRequest, context: RequestContext) -> None:
    def done(code: ErrorCode) -> None:
        context.reply(AddOffsetsToTxnResponse(error_code=_for_version(code, context.version)))

    if request.transactional_id:
        producer = Producer(request.producer_id, request.producer_epoch)
        add = partial(broker.transactions.add, request.transactional_id, producer)

        def then(place: TopicPartition) -> None:
            ask = partial(add, [place], VERSION_0)
            broker.transaction_lines.serve(request.transactional_id, ask, done)

        _with_group(broker, request.group_id, then, done)
    else:
        done(ErrorCode.INVALID_REQUEST)


def _with_group(
    broker: BrokerView, group_id: str, then: Callable[[TopicPartition], None], failed: Callable[[ErrorCode], None]
) -> None:
    """Go on with the partition that keeps a group's offsets."""
    try:
        place = broker.groups.offsets_place(group_id)
    except ClusterError:
        failed(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    else:
        then(place)


def commit_offsets(broker: BrokerView, request: TxnCommitRequest, context: RequestContext) -> None:
    """While the transaction's coordinator is asked, later commits of the same group in it wait behind this one.

    Request and answer are flat, see `groups.commits`.
    """
    transactional_id, group_id, producer_id, producer_epoch, *_, topics = request
    existing = _commits(broker.cluster, topics, ErrorCode.NONE)
    if all(code for _, each in existing for _, code in each):
        context.reply((0, merged_where_refused(existing)))
        return  # without touching the transaction
    producer = Producer(producer_id, producer_epoch)

    def begin(end: End) -> None:
        def checked(code: ErrorCode) -> None:
            told = _told_to_committer(code, context.version)
            try:
                if told == ErrorCode.NONE:
                    broker.groups.txn_commit(request, context.reply)
                else:
                    context.reply((0, merged_where_refused(_commits(broker.cluster, topics, told))))
            finally:
                end()

        _check_commit(broker, transactional_id, producer, group_id, context.version, checked)

    broker.turns.take([(transactional_id, GROUP_OFFSETS, group_id)], begin)


def _commits(
    cluster: Cluster, topics: Sequence[TxnTopicAsked], code: ErrorCode
) -> list[tuple[str, list[PartitionAnswer]]]:
    """The answers with a code for each partition that exists."""
    return [
        (name, [(asked[0], missing(topic, asked[0]) or code) for asked in each])
        for name, each in topics
        for topic in [cluster.topics.get(name) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        if each or isinstance(topic, ErrorCode)
    ]


def _check_commit(
    broker: BrokerView,
    transactional_id: str,
    producer: Producer,
    group_id: str,
    version: int,
    done: Callable[[ErrorCode], None],
) -> None:
    """Whether the group's offsets belong to the transaction; from v5 on this adds them.

    This broker coordinates the group; another one may coordinate its transaction.
    """
    add, verify = broker.joining.add, broker.joining.verify
    if not group_id:
        done(ErrorCode.INVALID_GROUP_ID)
    elif version >= FIRST_COMMIT_THAT_ADDS:
        _with_group(broker, group_id, lambda place: add(transactional_id, producer, [place], VERSION_2, done), done)
    else:
        _with_group(broker, group_id, lambda place: verify(transactional_id, producer, place, done), done)


def _told_to_committer(code: ErrorCode, version: int) -> ErrorCode:
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:  # its coordinator does not know the topic of groups
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code == ErrorCode.CONCURRENT_TRANSACTIONS and version < FIRST_COMMIT_THAT_ADDS:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE  # which these clients retry
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and version < FIRST_COMMIT_WITH_ABORTABLE:
        return ErrorCode.INVALID_TXN_STATE
    return code


def end(broker: BrokerView, request: EndTxnRequest, context: RequestContext) -> None:
    if not request.transactional_id:
        context.reply(EndTxnResponse(error_code=ErrorCode.INVALID_REQUEST))
        return

    def done(code: ErrorCode, producer: Producer | None) -> None:
        response = EndTxnResponse(error_code=_for_version(code, context.version))
        if producer is not None:
            response.producer_id, response.producer_epoch = producer
        context.reply(response)

    client_version = VERSION_2 if context.version >= FIRST_END_WITH_NEW_EPOCH else VERSION_0
    producer = Producer(request.producer_id, request.producer_epoch)
    ask = partial(broker.transactions.end, request.transactional_id, producer, client_version, commit=request.committed)
    broker.transaction_lines.serve(request.transactional_id, ask, done)
