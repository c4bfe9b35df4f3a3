"""CreateTopics 0 to 7, DeleteTopics 0 to 6, CreatePartitions 0 to 3: the life of topics.

- CreateTopics: -1 stands for the broker's default count (`num.partitions`) and replication factor in every version; a name
  twice in one request is INVALID_REQUEST and not created; v5+ answers carry the configuration, v7+ the topic id.
- DeleteTopics: by name, v6+ by topic id too; `delete.topic.enable=false` is TOPIC_DELETION_DISABLED (INVALID_REQUEST before v3).
- CreatePartitions: counts may only grow; given assignments must name this broker.
- Everything is on the disk before the answer. If that takes longer than 20 seconds, the answer is REQUEST_TIMED_OUT, and the change is made
  later; `timeout_ms` is not used.
- Validate-only requests are checked in full and change nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

from horolog.broker.cluster.changes import Failures
from horolog.broker.cluster.cluster import Cluster, Created
from horolog.broker.cluster.cluster_state import NO_NODE
from horolog.broker.cluster.new_topics import NewPartitions, NewTopic, unknown_topic
from horolog.broker.cluster.topic import NO_TOPIC_ID
from horolog.broker.config import topic_settings
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.throttling import may_change
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.cluster_file import StoredTopic
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

FIRST_CREATE_VERSION_WITH_CONFIGS = 5
FIRST_DELETE_VERSION_BY_ID = 6
FIRST_DELETE_VERSION_WITH_DISABLED_CODE = 3
REPLICATION_FACTOR = 1

DUPLICATE = ClusterError(ErrorCode.INVALID_REQUEST, "the request names this topic more than once")
THROTTLED = ClusterError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")
UNKNOWN_ID = ClusterError(ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic with this id here")


def duplicates(names: Iterable[str | None]) -> set[str | None]:
    return {name for name, count in Counter(names).items() if count > 1}


# -- CreateTopics


def create_topics(broker: BrokerView, request: CreateTopicsRequest, context: RequestContext) -> None:
    cluster = broker.cluster
    twice = duplicates(each.name for each in request.topics)
    asked = [_new_topic(each) for each in request.topics if each.name not in twice]
    known = cluster.topics
    throttled = {
        new.name for new in asked if new.name not in known and not may_change(context, _count_of(new, cluster))
    }
    wanted = [new for new in asked if new.name not in throttled]

    def done(results: Created) -> None:
        answers = [_not_created(name or "", DUPLICATE) for name in twice]
        answers += [_not_created(name, THROTTLED) for name in throttled]
        described: dict[Hashable, list[CreatableTopicConfigs]] = {}
        for new, result in zip(wanted, results, strict=True):
            if isinstance(result, ClusterError):
                answers.append(_not_created(new.name, result))
            else:
                configs: list[CreatableTopicConfigs] = []
                if context.version >= FIRST_CREATE_VERSION_WITH_CONFIGS:
                    own = tuple(result.overrides.items())
                    configs = described[own] = described.get(own) or _configs(cluster, result)
                answers.append(_created(result, configs, validated_only=request.validate_only))
        context.reply(CreateTopicsResponse(topics=answers))

    cluster.create_topics(wanted, done, validate_only=request.validate_only)


def _count_of(new: NewTopic, cluster: Cluster) -> int:
    if new.assignments:
        return len(new.assignments)
    return new.partition_count if new.partition_count > 0 else cluster.settings.num_partitions


def _new_topic(asked: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=asked.name,
        partition_count=asked.num_partitions,
        replication_factor=asked.replication_factor,
        overrides={config.name: config.value for config in asked.configs},
        assignments=_assignments(asked),
    )


def _assignments(asked: CreatableTopic) -> dict[int, list[int]]:
    """The brokers of each partition; one that is assigned more than once has too many, and is refused."""
    assignments: dict[int, list[int]] = {}
    for each in asked.assignments:
        brokers = assignments.get(each.partition_index)
        if brokers is None:
            assignments[each.partition_index] = list(each.broker_ids)
        else:
            brokers += (*each.broker_ids, NO_NODE)
    return assignments


def _not_created(name: str, error: ClusterError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error.message)


def _created(topic: StoredTopic, configs: list[CreatableTopicConfigs], *, validated_only: bool) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=topic.name,
        topic_id=NO_TOPIC_ID if validated_only else topic.id,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=topic.partition_count,
        replication_factor=REPLICATION_FACTOR,
        configs=configs,
    )


def _configs(cluster: Cluster, topic: StoredTopic) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
        )
        for entry in topic_settings.describe(topic.overrides, cluster.settings)
        if entry.name in topic.overrides or entry.name not in topic_settings.NOT_IN_KAFKA_4
    ]


# -- DeleteTopics


def delete_topics(broker: BrokerView, request: DeleteTopicsRequest, context: RequestContext) -> None:
    cluster = broker.cluster
    if context.version >= FIRST_DELETE_VERSION_BY_ID:
        asked = request.topics
    else:
        asked = [DeleteTopicState(name=name, topic_id=NO_TOPIC_ID) for name in request.topic_names]
    answers: list[DeletableTopicResult] = []
    doomed: dict[str, bytes] = {}
    by_id: set[str] = set()
    twice = duplicates(_name_of(cluster, each) for each in asked)
    for each in {(each.name, each.topic_id): each for each in asked}.values():
        name = _name_of(cluster, each) or ""
        error = _undeletable(broker, each, name, twice, context.version)
        if error is None and not may_change(context, cluster.topics[name].partition_count):
            error = THROTTLED
        if error is None:
            doomed[name] = cluster.topics[name].id
            if each.name is None:
                by_id.add(name)
        else:
            answers.append(_not_deleted(each.name, each.topic_id, error))
    partitions = [partition for name in doomed for partition in cluster.topics[name].led_here]

    def done(failures: Failures) -> None:
        for name, topic_id in doomed.items():
            failure = failures.get(name)
            if failure is not None:
                is_gone = name in by_id and failure.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                answers.append(_not_deleted(name, topic_id, UNKNOWN_ID if is_gone else failure))
            else:
                answers.append(DeletableTopicResult(name=name, topic_id=topic_id, error_code=ErrorCode.NONE))
        broker.waiting.changed(partitions)
        context.reply(DeleteTopicsResponse(responses=answers))

    cluster.delete_topics(doomed, done)


def _name_of(cluster: Cluster, asked: DeleteTopicState) -> str | None:
    """The topic that an element names, by its name or by its id, to find duplicates. An unknown id stands for itself."""
    if asked.name is not None:
        return asked.name
    topic = cluster.by_id.get(asked.topic_id)
    return topic.name if topic is not None else asked.topic_id.hex() + "/"


def _undeletable(
    broker: BrokerView, asked: DeleteTopicState, name: str, twice: set[str | None], version: int
) -> ClusterError | None:
    """Why the topic that is meant may not be deleted. Errors that requests share are never raised: tracebacks would gather in them."""
    if asked.name is not None and asked.topic_id != NO_TOPIC_ID:
        return ClusterError(ErrorCode.INVALID_REQUEST, "name a topic by its name or its id, not by both")
    if asked.name is None and asked.topic_id == NO_TOPIC_ID:
        return ClusterError(ErrorCode.INVALID_REQUEST, "name a topic by its name or its id")
    if name in twice:
        return DUPLICATE
    if name not in broker.cluster.topics:
        return UNKNOWN_ID if asked.name is None else unknown_topic(asked.name)
    if not broker.settings.delete_topic_enable:
        old = version < FIRST_DELETE_VERSION_WITH_DISABLED_CODE
        code = ErrorCode.INVALID_REQUEST if old else ErrorCode.TOPIC_DELETION_DISABLED
        return ClusterError(code, "delete.topic.enable is false")
    return None


def _not_deleted(name: str | None, topic_id: bytes, error: ClusterError) -> DeletableTopicResult:
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=error.code, error_message=error.message)


# -- CreatePartitions


def create_partitions(broker: BrokerView, request: CreatePartitionsRequest, context: RequestContext) -> None:
    twice = duplicates(each.name for each in request.topics)
    asked = [_new_partitions(each) for each in request.topics if each.name not in twice]
    throttled = {each.name: THROTTLED for each in asked if not may_change(context, _growth(each, broker.cluster))}
    wanted = [each for each in asked if each.name not in throttled]

    def done(refused: Failures) -> None:
        failures = {**refused, **throttled, **{name or "": DUPLICATE for name in twice}}
        names = dict.fromkeys(each.name for each in request.topics)
        context.reply(CreatePartitionsResponse(results=[_grown(name, failures.get(name)) for name in names]))

    broker.cluster.add_partitions(wanted, done, validate_only=request.validate_only)


def _growth(asked: NewPartitions, cluster: Cluster) -> int:
    """How many partitions are asked for beyond those that exist."""
    topic = cluster.topics.get(asked.name)
    return 0 if topic is None else max(0, asked.total_count - topic.partition_count)


def _grown(name: str, failure: ClusterError | None) -> CreatePartitionsTopicResult:
    code = failure.code if failure else ErrorCode.NONE
    return CreatePartitionsTopicResult(name=name, error_code=code, error_message=_told(failure))


def _told(failure: ClusterError | None) -> str | None:
    """The message of a refusal to grow: Kafka has none for a topic that it does not know."""
    return None if failure is None or failure.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else failure.message


def _new_partitions(asked: CreatePartitionsTopic) -> NewPartitions:
    assignments = None if asked.assignments is None else [each.broker_ids for each in asked.assignments]
    return NewPartitions(name=asked.name, total_count=asked.count, assignments=assignments)
