"""With `horolog.read.only` whatever would change something is refused here, before its handler sees it; all else is served as ever.

The error is one that clients do not try again: POLICY_VIOLATION, with a sentence where the answer has room for one. Producers that
ask for an id get CLUSTER_AUTHORIZATION_FAILED, those with a transactional id TRANSACTIONAL_ID_AUTHORIZATION_FAILED: these end a
producer at once, where others are tried again for minutes. Groups are served, in memory; only their commits are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from horolog.broker.handlers import HANDLERS, Handler
from horolog.broker.handlers.produce import refuse_all
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from horolog.protocol.messages.configs import (
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse as IncrementalResourceResponse,
)
from horolog.protocol.messages.groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from horolog.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from horolog.protocol.messages.produce import ProduceRequest
from horolog.protocol.messages.topics import (
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from horolog.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from horolog.broker.handlers import HandlerFunction
    from horolog.broker.handlers.context import BrokerView, RequestContext

REFUSED = ErrorCode.POLICY_VIOLATION
REFUSED_PRODUCER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
REFUSED_TRANSACTION = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
WHY = "this broker only reads its data folder (horolog.read.only)"
LAST_DELETE_BY_NAME = 5
LAST_VERSION_WITH_ONE_TRANSACTION = 3
NO_NUMBER = -1


def produce(_: BrokerView, request: ProduceRequest, context: RequestContext) -> None:
    refuse_all(request, context, REFUSED, WHY)


def commit_offsets(_: BrokerView, request: OffsetCommitRequest, __: RequestContext) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=REFUSED)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def delete_offsets(_: BrokerView, __: OffsetDeleteRequest, ___: RequestContext) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=REFUSED, topics=[])


def delete_groups(_: BrokerView, request: DeleteGroupsRequest, __: RequestContext) -> DeleteGroupsResponse:
    results = [DeletableGroupResult(group_id=one, error_code=REFUSED) for one in dict.fromkeys(request.groups_names)]
    return DeleteGroupsResponse(results=results)


# -- topics and settings


def create_topics(_: BrokerView, request: CreateTopicsRequest, __: RequestContext) -> CreateTopicsResponse:
    names = dict.fromkeys(each.name for each in request.topics)
    return CreateTopicsResponse(
        topics=[CreatableTopicResult(name=name, error_code=REFUSED, error_message=WHY, configs=[]) for name in names]
    )


def delete_topics(_: BrokerView, request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
    if context.version <= LAST_DELETE_BY_NAME:
        results = [DeletableTopicResult(name=name) for name in request.topic_names]
    else:
        results = [DeletableTopicResult(name=each.name, topic_id=each.topic_id) for each in request.topics]
    for result in results:
        result.error_code, result.error_message = REFUSED, WHY
    return DeleteTopicsResponse(responses=results)


def create_partitions(_: BrokerView, request: CreatePartitionsRequest, __: RequestContext) -> CreatePartitionsResponse:
    names = dict.fromkeys(each.name for each in request.topics)
    return CreatePartitionsResponse(
        results=[CreatePartitionsTopicResult(name=name, error_code=REFUSED, error_message=WHY) for name in names]
    )


def delete_records(_: BrokerView, request: DeleteRecordsRequest, __: RequestContext) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=each.partition_index, low_watermark=NO_NUMBER, error_code=REFUSED
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def alter_configs(_: BrokerView, request: AlterConfigsRequest, __: RequestContext) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=REFUSED,
                error_message=WHY,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in request.resources
        ]
    )


def incremental_alter_configs(
    _: BrokerView, request: IncrementalAlterConfigsRequest, __: RequestContext
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[
            IncrementalResourceResponse(
                error_code=REFUSED,
                error_message=WHY,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in request.resources
        ]
    )


# -- producers and transactions


def init_producer_id(_: BrokerView, request: InitProducerIdRequest, __: RequestContext) -> InitProducerIdResponse:
    code = REFUSED_PRODUCER if request.transactional_id is None else REFUSED_TRANSACTION
    return InitProducerIdResponse(error_code=code, producer_id=NO_NUMBER, producer_epoch=NO_NUMBER)


def add_partitions(
    _: BrokerView, request: AddPartitionsToTxnRequest, context: RequestContext
) -> AddPartitionsToTxnResponse:
    if context.version <= LAST_VERSION_WITH_ONE_TRANSACTION:
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=_not_added(request.v3_and_below_topics),
        )
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(transactional_id=each.transactional_id, topic_results=_not_added(each.topics))
            for each in request.transactions
        ]
    )


def _not_added(topics: list[AddPartitionsToTxnTopic]) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=REFUSED_TRANSACTION)
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def add_offsets(_: BrokerView, __: AddOffsetsToTxnRequest, ___: RequestContext) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=REFUSED_TRANSACTION)


def end_transaction(_: BrokerView, __: EndTxnRequest, ___: RequestContext) -> EndTxnResponse:
    return EndTxnResponse(error_code=REFUSED_TRANSACTION)


def commit_in_transaction(
    _: BrokerView, request: TxnOffsetCommitRequest, __: RequestContext
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=REFUSED_TRANSACTION
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def write_markers(_: BrokerView, request: WriteTxnMarkersRequest, __: RequestContext) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=REFUSED_PRODUCER)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


REFUSALS: dict[ApiKey, HandlerFunction] = {
    ApiKey.PRODUCE: produce,
    ApiKey.OFFSET_COMMIT: commit_offsets,
    ApiKey.OFFSET_DELETE: delete_offsets,
    ApiKey.DELETE_GROUPS: delete_groups,
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.CREATE_PARTITIONS: create_partitions,
    ApiKey.DELETE_RECORDS: delete_records,
    ApiKey.ALTER_CONFIGS: alter_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs,
    ApiKey.INIT_PRODUCER_ID: init_producer_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: add_partitions,
    ApiKey.ADD_OFFSETS_TO_TXN: add_offsets,
    ApiKey.END_TXN: end_transaction,
    ApiKey.TXN_OFFSET_COMMIT: commit_in_transaction,
    ApiKey.WRITE_TXN_MARKERS: write_markers,
}

READ_ONLY_HANDLERS = HANDLERS | {
    key: Handler(HANDLERS[key].min_version, HANDLERS[key].max_version, refusal) for key, refusal in REFUSALS.items()
}
