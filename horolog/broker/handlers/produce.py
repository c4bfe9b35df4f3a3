"""Produce, versions 0 to 13: appends record sets, and answers when they are as safe as the producer asked.

- v0-v2 carry message sets of magic 0 and 1 (a v2 batch inside is accepted as 3.9 does), v3+ exactly one v2 batch per partition.
- acks=0 gets no answer, and a closed connection if anything was refused; acks=1 is answered after the write, acks=-1 after the sync.
  Where the committer holds all commits, each waits for that, and a producer whose timeout has passed gets REQUEST_TIMED_OUT.
- A topic named twice in one request is answered once, with the partitions of both; a partition named twice counts once, the
  last one. Both as real brokers do.
- The error message is null except for records that are refused one by one and for batches outside of their transaction.
- v10+ names the leader of a partition that another broker leads, and where it is (KIP-951).
- v13+ names topics by id.
- Batches of a transaction have to belong to one: see `transactional_produce`.

Requests and answers are flat: tuples of the fields that `protocol.messages.produce` declares, in their order. The names of the
types below stand for them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final

from horolog.broker.base.topic_names import INTERNAL_TOPICS
from horolog.broker.cluster.placement import Endpoint
from horolog.broker.commit.safety import Failures, NotSafe
from horolog.broker.handlers import transactional_produce
from horolog.broker.handlers.context import BrokerView, ClientConnection, RequestContext
from horolog.broker.handlers.lookup import storage_error_for
from horolog.broker.handlers.next_leaders import Leader, leader_to_name
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.validation import RefusedSet
from horolog.protocol.errors import ErrorCode, ProtocolError
from horolog.protocol.records.head import ATTRIBUTES_LOW_AT, TRANSACTIONAL_BIT
from horolog.protocol.wire import NO_THROTTLING_MS

ACKS_NONE: Final = 0
ACKS_ALL: Final = -1
LAST_VERSION_WITH_NAMES: Final = 12
LAST_VERSION_WITH_OLD_FORMATS: Final = 2
FIRST_VERSION_WITH_STORAGE_ERROR: Final = 4
FIRST_VERSION_WITH_LEADERS: Final = 10

REFUSED_RECORDS: Final = frozenset({ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP})
"""Refusals of records, not of a batch or of the partition: Kafka sends an error message for these only."""

NONE_REFUSED: Mapping[Partition, ErrorCode] = {}

PartitionData = tuple[int, memoryview | None]
"""The number of a partition, and its records as a view of the frame."""
TopicData = tuple[str, bytes, list[PartitionData]]
"""A topic's name, its id, of which every version sends one, and its partitions."""
ProduceRequest = tuple[str | None, int, int, list[TopicData]]
"""Transactional id, acks, timeout, topics."""

PartitionAnswer = tuple[int, int, int, int, int, Sequence[tuple[int, str]], str | None, Leader | None]
"""Number, error code, base offset, append time, log start; records refused one by one, the text, and the leader if it is another."""
TopicAnswer = tuple[str, bytes, list[PartitionAnswer]]

REFUSED_WITHOUT_ANSWER: Final = (
    "a Produce request with acks=0 was refused, and closing the connection is the only way to report it"
)


class Produced:
    """A request whose records are appended but not yet written: the committer finishes it."""

    __slots__ = ("acks", "answers", "context", "durable", "leaders", "partitions", "timeout_ms")

    def __init__(self, context: RequestContext, acks: int, timeout_ms: int) -> None:
        self.context = context
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.answers: list[TopicAnswer] = []
        self.partitions: list[Partition] = []  # one for each answer without an error, in their order
        self.leaders: list[Endpoint] = []  # of partitions that others lead
        self.durable = False

    def __repr__(self) -> str:
        return f"<Produced acks={self.acks} to {len(self.partitions)} partitions for {self.context!r}>"

    def finish(self, failures: Failures) -> ClientConnection:
        """Make the answer; the committer notifies the conversation, once for all of its requests."""
        if failures:
            self._refuse_failed(failures)
        _set_answer(self.context, self.acks, self.answers, self.leaders)
        return self.context.connection

    def _refuse_failed(self, failures: Failures) -> None:
        storage_error = storage_error_for(self.context.version, FIRST_VERSION_WITH_STORAGE_ERROR)
        partitions = iter(self.partitions)
        for _, _, answers in self.answers:
            for place, (index, error, _, _, log_start, _, _, _) in enumerate(answers):
                if not error and (fault := failures.get(next(partitions))) is not None:
                    code = fault.error if isinstance(fault, NotSafe) else storage_error
                    answers[place] = _refusal(index, code, log_start)


class _Verdicts(dict[Partition, ErrorCode]):
    """The reasons why partitions refuse their records. A partition that has moved here after the coordinator was asked refuses, too."""

    def __init__(self, asked: Collection[Partition], refused: Mapping[Partition, ErrorCode]) -> None:
        super().__init__(refused)
        self._asked = asked

    def __bool__(self) -> bool:
        return True

    def __contains__(self, partition: object) -> bool:
        return super().__contains__(partition) or partition not in self._asked

    def __missing__(self, partition: Partition) -> ErrorCode:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER


def handle(broker: BrokerView, request: ProduceRequest, context: RequestContext) -> None:
    transactional_id, acks, timeout_ms, topics = request
    if not -1 <= acks <= 1:
        refuse_all(request, context, ErrorCode.INVALID_REQUIRED_ACKS)
        return
    if transactional_id is None and context.version > LAST_VERSION_WITH_OLD_FORMATS and has_transactional_batch(topics):
        refuse_all(request, context, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return
    if len(topics) > 1:
        topics = _each_topic_once(topics)
    if transactional_id is None:
        _serve(broker, topics, acks, timeout_ms, context, NONE_REFUSED)
    else:
        found = _partitions_to_verify(broker, topics, context.version)
        asked = frozenset(partition for partition, _ in found)
        serve = partial(_serve_verified, broker, (transactional_id, acks, timeout_ms, topics), context, asked)
        transactional_produce.verify(broker, transactional_id, found, context.version, serve)


def _serve_verified(
    broker: BrokerView,
    request: ProduceRequest,
    context: RequestContext,
    asked: Collection[Partition],
    refused: Mapping[Partition, ErrorCode],
) -> None:
    _, acks, timeout_ms, topics = request
    if acks == ACKS_NONE and context.connection.closed_here:
        return  # over one that this has waited for: without transactions, nothing behind that is read
    _serve(broker, topics, acks, timeout_ms, context, _Verdicts(asked, refused))


def _serve(
    broker: BrokerView,
    topics: Sequence[TopicData],
    acks: int,
    timeout_ms: int,
    context: RequestContext,
    refused: Mapping[Partition, ErrorCode],
) -> None:
    """Append the records that are not refused, and answer once they are written."""
    version = context.version
    produced = Produced(context, acks, timeout_ms)
    partitions = produced.partitions
    now_ms = broker.clock.wall_ms()
    led = broker.cluster.partition_cache
    for name, topic_id, sets in topics:
        key = topic_id if version > LAST_VERSION_WITH_NAMES else name
        answers: list[PartitionAnswer] = []
        for index, records in sets if len(sets) == 1 else dict(sets).items():
            place = led.get((key, index)) or _find(broker, key, index)
            if not isinstance(place, Partition):
                answers.append(_not_found(broker, produced, key, index, place))
                continue
            answer = _append(place, index, records, version, now_ms, refused)
            answers.append(answer)
            if not answer[1]:
                partitions.append(place)
                if place.counts_to_flush and place.durability.is_due_at(
                    place.log_end_offset, place.config.flush_messages
                ):
                    produced.durable = True
        produced.answers.append((name, topic_id, answers))
    if not partitions:
        _answer(context, acks, produced.answers, produced.leaders)
        return
    if acks == ACKS_ALL and broker.settings.horolog_acks_all_sync:
        produced.durable = True
    broker.committer.submit(produced)


def has_transactional_batch(topics: Sequence[TopicData]) -> bool:
    """Whether any batch says that it belongs to a transaction."""
    for _, _, sets in topics:
        for _, records in sets:
            if records and len(records) > ATTRIBUTES_LOW_AT and records[ATTRIBUTES_LOW_AT] & TRANSACTIONAL_BIT:
                return True
    return False


def refuse_all(request: ProduceRequest, context: RequestContext, code: ErrorCode, message: str | None = None) -> None:
    """A request that is refused as a whole gets the same error for every partition."""
    _, acks, _, _ = request
    _answer(context, acks, refused(request, code, message))


def refused(request: ProduceRequest, code: ErrorCode, message: str | None = None) -> list[TopicAnswer]:
    """An error for every partition of a request."""
    _, _, _, topics = request
    return [
        (name, topic_id, [_refusal(index, code, message=message) for index in dict(sets)])
        for name, topic_id, sets in _each_topic_once(topics)
    ]


def _find(broker: BrokerView, key: str | bytes, index: int) -> Partition | ErrorCode:
    """A partition by the name or the id of its topic; one that takes records is cached for the next time."""
    cluster = broker.cluster
    if isinstance(key, bytes):
        topic = cluster.by_id.get(key)
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic = cluster.topics.get(key)
        if topic is None:
            internal = key in INTERNAL_TOPICS
            return ErrorCode.INVALID_TOPIC_EXCEPTION if internal else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic.internal:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    partition = topic.find(index)
    if isinstance(partition, Partition):
        cluster.partition_cache[key, index] = partition
    return partition


def _each_topic_once(topics: Sequence[TopicData]) -> list[TopicData]:
    """Each topic once, by name and id, with the partitions of all its mentions."""
    merged: dict[tuple[str, bytes], TopicData] = {}
    for name, topic_id, sets in topics:
        merged.setdefault((name, topic_id), (name, topic_id, []))[2].extend(sets)
    return list(merged.values())


def _partitions_to_verify(
    broker: BrokerView, topics: Sequence[TopicData], version: int
) -> list[tuple[Partition, memoryview]]:
    """The partitions that take their records if the transaction allows it."""
    found: list[tuple[Partition, memoryview]] = []
    for name, topic_id, sets in topics:
        key = topic_id if version > LAST_VERSION_WITH_NAMES else name
        for index, given in dict(sets).items():
            partition = broker.cluster.partition_cache.get((key, index)) or _find(broker, key, index)
            if isinstance(partition, Partition):
                records = _present(given, partition, version)
                if partition.condition.fault is None:
                    found.append((partition, records))
    return found


def _present(records: memoryview | None, partition: Partition, version: int) -> memoryview:
    if records is None:
        raise ProtocolError(f"Produce v{version} with null records for {partition.topic}-{partition.index}")
    return records


def _append(
    partition: Partition,
    index: int,
    records: memoryview | None,
    version: int,
    now_ms: int,
    refused: Mapping[Partition, ErrorCode],
) -> PartitionAnswer:
    """Append one partition's records; an answer without an error stands for records that are yet to be written."""
    if records is None:
        records = _present(records, partition, version)
    try:
        if refused and partition in refused and partition.condition.fault is None:
            code = refused[partition]
            return _refusal(index, code, message=code.message if code == ErrorCode.INVALID_TXN_STATE else None)
        base_offset, _, append_time, log_start, _ = partition.append(records, now_ms, produce_version=version)
    except RefusedSet as refusal:
        if refusal.code in REFUSED_RECORDS:
            return index, refusal.code, -1, -1, partition.log_start_offset, refusal.record_errors, refusal.message, None
        return _refusal(index, refusal.code)
    except StorageFault:
        return _refusal(index, storage_error_for(version, FIRST_VERSION_WITH_STORAGE_ERROR))
    return index, 0, base_offset, append_time, log_start, (), None, None


def _refusal(
    index: int, code: ErrorCode, log_start: int = -1, *, message: str | None = None, leader: Leader | None = None
) -> PartitionAnswer:
    return index, code, -1, -1, log_start, (), message, leader


def _not_found(
    broker: BrokerView, produced: Produced, key: str | bytes, index: int, code: ErrorCode
) -> PartitionAnswer:
    """The refusal of a partition that is not here. If another broker leads it, the client learns which one, and where that is."""
    if code != ErrorCode.NOT_LEADER_OR_FOLLOWER or produced.context.version < FIRST_VERSION_WITH_LEADERS:
        return _refusal(index, code)
    context = produced.context
    return _refusal(index, code, leader=leader_to_name(broker, key, index, context.listener, produced.leaders))


def _set_answer(
    context: RequestContext, acks: int, answers: Sequence[TopicAnswer], leaders: Sequence[Endpoint] = ()
) -> None:
    if acks != ACKS_NONE:
        context.set_response((answers, NO_THROTTLING_MS, leaders))
        return
    if any(answer[1] for _, _, partitions in answers for answer in partitions):
        context.connection.answered()  # earlier answers still leave
        context.connection.close(REFUSED_WITHOUT_ANSWER)
    context.set_no_response()


def _answer(
    context: RequestContext, acks: int, answers: Sequence[TopicAnswer], leaders: Sequence[Endpoint] = ()
) -> None:
    _set_answer(context, acks, answers, leaders)
    context.connection.answered()
