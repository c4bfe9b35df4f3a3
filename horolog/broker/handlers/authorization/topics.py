"""Checks of APIs about topics, beyond the common ones: only principals that may DESCRIBE a topic learn whether it exists."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from horolog.base.acl_types import CLUSTER_NAME, Operation, ResourceType
from horolog.broker.cluster.topic import NO_TOPIC_ID
from horolog.broker.handlers import fetch, metadata, produce, topic_partitions, topics
from horolog.broker.handlers.auditing import tell_refusal
from horolog.broker.handlers.authorization.authorized_request import AuthorizedRequest
from horolog.broker.handlers.authorization.checks import own_cluster_operations, own_operations
from horolog.broker.handlers.fetch_sessions import FetchSession, PartitionKey, Positions
from horolog.broker.handlers.refusals import NO_NUMBER
from horolog.broker.log.partition import Partition
from horolog.broker.security.audit import Denied
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.metadata import (
    DescribeTopicPartitionsResponse,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
    TopicRequest,
)
from horolog.protocol.messages.topics import CreateTopicsResponse, DeleteTopicState

if TYPE_CHECKING:
    from horolog.broker.handlers.context import BrokerView, RequestContext

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


# -- Produce


def transactional(asked: AuthorizedRequest) -> ErrorCode | None:
    """Records of a transaction need WRITE on its id; without an id the handler refuses them."""
    transactional_id, _, _, data = asked.request
    if transactional_id is None or not produce.has_transactional_batch(data):
        return None
    if asked.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return None
    return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def closed_if_unanswered(asked: AuthorizedRequest) -> None:
    """With acks=0, closing the connection is the only way to report a refusal."""
    _, acks, _, _ = asked.request
    if acks == produce.ACKS_NONE and asked.refuses_something:
        connection = asked.context.connection
        connection.answered()  # earlier answers still leave
        connection.close(produce.REFUSED_WITHOUT_ANSWER)


# -- Fetch


def checked_later(_: AuthorizedRequest) -> None:
    """Checked by `GuardedFetch`, which looks at partitions more than once."""


class GuardedFetch(fetch.PendingFetch):
    """A fetch that checks the right to read each time that it looks at a partition, also in a session and after a wait."""

    __slots__ = ()

    def __init__(
        self,
        broker: BrokerView,
        request: fetch.FetchRequest,
        context: RequestContext,
        positions: Positions,
        session: FetchSession | None,
    ) -> None:
        super().__init__(broker, request, context, positions, session)
        self.known = {}  # every partition goes through `_find`, which checks

    def _find(self, key: PartitionKey) -> Partition | ErrorCode:
        name, _ = key
        broker, context = self.broker, self.context
        authorizer = broker.authorizer
        assert authorizer is not None
        if isinstance(name, bytes):
            topic = broker.cluster.by_id.get(name)
            if topic is None:
                return ErrorCode.UNKNOWN_TOPIC_ID
            name = topic.name
        rights = authorizer.rights(context.principal, context.connection.peer_host)
        if self.terms.replica_id >= 0:
            allowed = rights.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
        else:
            allowed = rights.may(Operation.READ, ResourceType.TOPIC, name)
        if not allowed:
            self._tell_refusal(name)
            return DENIED
        return broker.cluster.partition_cache.get(key) or super()._find(key)

    def _tell_refusal(self, name: str) -> None:
        if self.broker.audit is None:
            return
        missing = Denied(Operation.READ, ResourceType.TOPIC, name)
        if self.terms.replica_id >= 0:
            missing = Denied(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
        tell_refusal(self.broker.audit, self.context, [missing])


def guarded_fetch(broker: BrokerView, request: fetch.FetchRequest, context: RequestContext) -> object | None:
    return fetch.handle(broker, request, context, GuardedFetch)


# -- Metadata and DescribeTopicPartitions


def describable(asked: AuthorizedRequest) -> None:
    """All topics: those that the principal may know. A topic by name or id that it may not know is refused, whether it exists or not."""
    wanted = asked.request.topics
    asked.then(lambda answer: _own_operations(asked, answer))
    if wanted is None or (not wanted and asked.version <= metadata.LAST_VERSION_WHERE_EMPTY_MEANS_ALL):
        asked.then(lambda answer: _keep_known(asked, answer))
        return

    def may_be_told(topic: MetadataRequestTopic) -> bool:
        by_id = asked.version >= metadata.FIRST_VERSION_BY_TOPIC_ID and topic.topic_id != NO_TOPIC_ID
        name = asked.name_of(topic.topic_id) if by_id else topic.name
        return name is None or (asked.may_topic(Operation.DESCRIBE, name) and _exists_or_may_be_made(asked, name))

    asked.keep_if(may_be_told, "topics", DENIED)
    asked.ask_in_any_case()
    if not asked.request.topics and asked.version <= metadata.LAST_VERSION_WHERE_EMPTY_MEANS_ALL:
        asked.then(_keep_none)


def _exists_or_may_be_made(asked: AuthorizedRequest, name: str) -> bool:
    """Asking for a topic that does not exist may create it."""
    broker, request = asked.broker, asked.request
    if name in broker.cluster.topics:
        return True
    if not (request.allow_auto_topic_creation and broker.settings.auto_create_topics_enable):
        return True
    return asked.may_cluster(Operation.CREATE) or asked.may_topic(Operation.CREATE, name)


def _keep_known(asked: AuthorizedRequest, answer: MetadataResponse) -> None:
    answer.topics = [one for one in answer.topics if asked.may_topic(Operation.DESCRIBE, one.name or "")]


def _keep_none(answer: MetadataResponse) -> None:
    answer.topics = []


def _own_operations(asked: AuthorizedRequest, answer: MetadataResponse) -> None:
    answer.cluster_authorized_operations = own_cluster_operations(asked, answer.cluster_authorized_operations)
    for topic in answer.topics:
        topic.topic_authorized_operations = _operations(asked, topic)


def _operations(asked: AuthorizedRequest, topic: MetadataResponseTopic | Any) -> int:
    return own_operations(asked, ResourceType.TOPIC, topic.name or "", topic.topic_authorized_operations)


def describable_pages(asked: AuthorizedRequest) -> None:
    """The same for DescribeTopicPartitions, whose answer always includes the operations."""
    request = asked.request
    asked.then(lambda answer: _own_operations_of_page(asked, answer))
    names = dict.fromkeys(each.name for each in request.topics)
    known: list[TopicRequest] = []
    unknown: list[TopicRequest] = []
    for name in names or asked.broker.cluster.topics:
        (known if asked.may_topic(Operation.DESCRIBE, name) else unknown).append(TopicRequest(name=name))
    if names:
        asked.leave_out("topics", known, unknown, DENIED)
        return
    cursor = request.cursor
    if cursor is not None and cursor.partition_index >= 0 and all(each.name != cursor.topic_name for each in known):
        known = [each for each in known if each.name > cursor.topic_name]
        request.cursor = None  # which must stand at a topic that the request names
    request.topics = known


def describe_pages(broker: BrokerView, request: Any, context: RequestContext) -> object:
    """Do not pass on an empty list of topics: the handler takes it for all topics."""
    return topic_partitions.handle(broker, request, context) if request.topics else DescribeTopicPartitionsResponse()


def _own_operations_of_page(asked: AuthorizedRequest, answer: DescribeTopicPartitionsResponse) -> None:
    for topic in answer.topics:
        topic.topic_authorized_operations = _operations(asked, topic)


# -- CreateTopics and DeleteTopics


def creatable(asked: AuthorizedRequest) -> None:
    """CREATE on the cluster or on the topic; the answer has the configuration only for principals that may describe it."""
    asked.then(lambda answer: _hide_configs(asked, answer))
    if asked.may_cluster(Operation.CREATE):
        return
    twice = topics.duplicates(each.name for each in asked.request.topics)
    asked.keep_if(lambda each: each.name in twice or asked.may_topic(Operation.CREATE, each.name), "topics", DENIED)


def _hide_configs(asked: AuthorizedRequest, answer: CreateTopicsResponse) -> None:
    for topic in answer.topics:
        if not topic.error_code and not asked.may_topic(Operation.DESCRIBE_CONFIGS, topic.name):
            topic.topic_config_error_code = DENIED
            topic.num_partitions = topic.replication_factor = NO_NUMBER
            topic.configs = []


def growable(asked: AuthorizedRequest) -> None:
    """ALTER on the topic; one that the request names twice is refused for that."""
    twice = topics.duplicates(each.name for each in asked.request.topics)
    asked.keep_if(lambda each: each.name in twice or asked.may_topic(Operation.ALTER, each.name), "topics", DENIED)


def deletable(asked: AuthorizedRequest) -> ErrorCode | None:
    """DELETE on the cluster or on the topic; a name that may not be described is refused whether it exists or not."""
    settings, version = asked.broker.settings, asked.version
    if not settings.delete_topic_enable:
        old = version < topics.FIRST_DELETE_VERSION_WITH_DISABLED_CODE
        return ErrorCode.INVALID_REQUEST if old else ErrorCode.TOPIC_DELETION_DISABLED
    if asked.may_cluster(Operation.DELETE):
        return None
    if version < topics.FIRST_DELETE_VERSION_BY_ID:
        names = asked.request.topic_names
        denied = {name for name in names if not _may_delete(asked, name)}
        twice = topics.duplicates(names)
        kept = [name for name in names if name not in denied or name in twice]
        asked.leave_out("topic_names", kept, [name for name in names if name in denied and name not in twice], DENIED)
        return None
    every = asked.request.topics
    counts = Counter((each.name, each.topic_id) for each in every)
    remaining, refused = [], []
    for each in every:
        name = asked.name_of(each.topic_id) if each.name is None else each.name
        both = each.name is not None and each.topic_id != NO_TOPIC_ID
        if name is None or both or counts[each.name, each.topic_id] > 1 or _may_delete(asked, name):
            remaining.append(each)
        elif each.name is None and asked.may_topic(Operation.DESCRIBE, name):
            refused.append(DeleteTopicState(name=name, topic_id=each.topic_id))
        else:
            refused.append(each)
    asked.leave_out("topics", remaining, refused, DENIED)
    return None


def _may_delete(asked: AuthorizedRequest, name: str) -> bool:
    """A principal that may DESCRIBE a topic learns that it does not exist; then there is nothing to delete."""
    if name not in asked.broker.cluster.topics and asked.may_topic(Operation.DESCRIBE, name):
        return True
    return asked.may_topic(Operation.DELETE, name)
