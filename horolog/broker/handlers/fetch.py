"""Fetch, versions 0 to 18: hands out log slices, and waits for `min_bytes` of them.

- v0-v2: a slice is cut at the partition's max_bytes, even inside its first message; v3+: the first message of a response comes whole.
- v0-v1 read magic 0, v2-v3 magic 1 (newer data is converted down, all else is as stored), v4+ magic 2 (older data is converted
  up unless the topic's settings say otherwise); zstd needs v10.
- v7+: incremental sessions (KIP-227); v12+: diverging epochs are pointed out; v13+ names topics by id.
- An unknown topic or partition ends a wait in v0-v3 only, as each era's brokers do; other errors always end it.
Not done: fetching as a follower (any replica id is refused), preferred read replicas.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.fetch_sessions import (
    FULL_FETCH_EPOCH,
    NO_SESSION_EPOCH,
    FetchPosition,
    FetchSession,
    PartitionKey,
    Positions,
    TopicKey,
)
from horolog.broker.handlers.lookout import Lookout, Terms
from horolog.broker.handlers.lookup import storage_error_for
from horolog.broker.log.partition import OffsetOutOfRange, Partition, lookups
from horolog.broker.log.segments import Allowance
from horolog.broker.log.storage import StorageFault
from horolog.broker.waiting import Wait
from horolog.protocol.errors import DecodeError, ErrorCode
from horolog.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from horolog.protocol.records.convert import ConversionError, convert_down
from horolog.protocol.records.head import heads_in

log = logging.getLogger(__name__)

FIRST_VERSION_WITH_WHOLE_MESSAGE = 3
FIRST_VERSION_WITH_V2 = 4
FIRST_VERSION_WITH_ZSTD = 10
FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_WITH_STORAGE_ERROR = 6
NO_EPOCH = -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1

UNKNOWN_PLACE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class Collected:
    """The result of a look at the partitions of a fetch: each with its answer, and the partition where there is one."""

    __slots__ = ("answers", "done", "partitions", "size_bytes")

    def __init__(self) -> None:
        self.answers: list[tuple[PartitionKey, FetchPosition, PartitionData]] = []
        self.partitions: list[Partition | None] = []
        self.size_bytes = 0
        self.done = False


class PendingFetch:
    """A fetch from its plan to its answer; looked at again when its partitions have new data."""

    __slots__ = ("broker", "context", "is_incremental", "lookout", "positions", "request", "session")

    def __init__(
        self,
        broker: BrokerView,
        request: FetchRequest,
        context: RequestContext,
        positions: Positions,
        session: FetchSession | None,
    ) -> None:
        self.broker = broker
        self.request = request
        self.context = context
        self.positions = positions
        self.session = session
        self.is_incremental = session is not None and request.session_epoch > FULL_FETCH_EPOCH
        self.lookout: Lookout | None = None
        if session is not None and self.is_incremental:
            if session.lookout is None:
                session.lookout = self._look_out()
            self.lookout = session.lookout

    def __repr__(self) -> str:
        return f"<PendingFetch of {len(self.positions)} partitions for {self.context!r}>"

    @property
    def terms(self) -> Terms:
        return Terms(self.context.version, self.request.isolation_level, _replica_of(self.request))

    def _look_out(self) -> Lookout:
        return Lookout(self.positions, self.broker.waiting, self.broker.logs.resources.changes)

    def collect(self) -> Collected:
        """Look at every partition that may have news, or at all of them where all are answered."""
        lookout = self.lookout
        return self._look(self.positions if lookout is None else lookout.to_look_at(self.terms))

    def _look(self, positions: Positions) -> Collected:
        request, version = self.request, self.context.version
        collected = Collected()
        limit = min(self.broker.settings.fetch_max_bytes, self.context.connection.room_for_answer_bytes)
        if version >= FIRST_VERSION_WITH_WHOLE_MESSAGE:
            limit = min(limit, request.max_bytes)
        allowance = Allowance()
        has_found = len(positions) < len(self.positions)
        known = self.broker.cluster.led
        for key, position in positions.items():
            partition = known.get(key)
            found = self._find(key) if partition is None else partition
            if isinstance(found, ErrorCode):
                answer = _error(key[1], found)
                answer.aborted_transactions = []  # as real brokers have it where nothing was tried to be read
            else:
                partition = known[key] = found
                has_found = True
                whole = version >= FIRST_VERSION_WITH_WHOLE_MESSAGE and not collected.size_bytes
                most = min(position.max_bytes, limit)
                answer = _read(partition, position, most, whole, request, version, allowance)
            size = len(answer.records or b"")
            collected.size_bytes += size
            limit = max(0, limit - size)
            collected.answers.append((key, position, answer))
            collected.partitions.append(partition)
            if answer.error_code and not (version >= FIRST_VERSION_WITH_V2 and answer.error_code in UNKNOWN_PLACE):
                collected.done = True
        if not has_found or collected.size_bytes >= request.min_bytes:
            collected.done = True
        return collected

    def _find(self, key: PartitionKey) -> Partition | ErrorCode:
        name, index = key
        cluster = self.broker.cluster
        if isinstance(name, str):
            topic, unknown = cluster.topics.get(name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            topic, unknown = cluster.by_id.get(name), ErrorCode.UNKNOWN_TOPIC_ID
        return unknown if topic is None else topic.find(index)

    def check(self) -> bool:
        """Looked at again: answered if there is enough now."""
        collected = self.collect()
        if collected.done:
            self._answer(collected)
        else:
            self._note(collected)
        return collected.done

    def expire(self) -> None:
        self._answer(self.collect() if self.is_incremental else self._look(self.positions))

    def _answer(self, collected: Collected) -> None:
        if not self.is_incremental and len(collected.answers) < len(self.positions):
            collected = self._look(self.positions)
        self.context.reply(self.respond(collected))

    def wait(self, collected: Collected) -> bool:
        """Wait for more, unless too many wait already."""
        waiting, lookout = self.broker.waiting, self.lookout
        if lookout is None:
            lookout = self._look_out()
        wait = Wait(self.check, self.expire, lookout.leave, len(self.positions))
        if waiting.held_bytes + wait.size_bytes > self.broker.settings.horolog_fetch_waiting_max_bytes:
            return False
        if self.lookout is None:
            self.lookout = lookout
            lookout.to_look_at(self.terms)
        lookout.enter(wait)
        self._note(collected)
        if not self.is_incremental:
            lookout.close()  # with this wait
        waiting.add(wait, self.request.max_wait_ms)
        self.context.on_abandoned = lambda: waiting.remove(wait)
        return True

    def _note(self, collected: Collected) -> None:
        """What was found decides which partitions are looked at again."""
        lookout, committed = self.lookout, self.request.isolation_level == READ_COMMITTED
        if lookout is None:
            return
        for (key, position, answer), partition in zip(collected.answers, collected.partitions, strict=True):
            is_told = not self.is_incremental or not _is_news(position, answer)
            is_quiet = is_told and _is_quiet(position, answer, committed)
            lookout.note(key, position, partition, is_quiet=is_quiet)

    def respond(self, collected: Collected) -> FetchResponse:
        session = self.session
        answers = collected.answers
        if self.is_incremental:
            answers = [told for told in collected.answers if _is_news(told[1], told[2])]
        if session is not None:
            for _, position, answer in answers:
                position.told_high_watermark = answer.high_watermark
                position.told_log_start_offset = answer.log_start_offset
            if self.is_incremental:
                self._note(collected)
                session.serve_last([key for key, _, answer in answers if answer.records])
        return FetchResponse(session_id=session.id if session is not None else 0, responses=_group_by_topic(answers))


def handle(broker: BrokerView, request: FetchRequest, context: RequestContext) -> FetchResponse | None:
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        return _refuse_whole(request, context.version)
    planned = _plan(broker, request, context.version)
    if isinstance(planned, ErrorCode):
        return FetchResponse(error_code=planned, session_id=0, responses=[])
    positions, session = planned
    fetch = PendingFetch(broker, request, context, positions, session)
    collected = fetch.collect()
    if collected.done or request.max_wait_ms <= 0:
        return fetch.respond(collected)
    if not fetch.wait(collected):
        return fetch.respond(collected)
    request.topics, request.forgotten_topics_data = [], []  # the positions say it, too; one copy waits
    return None


def _plan(broker: BrokerView, request: FetchRequest, version: int) -> tuple[Positions, FetchSession | None] | ErrorCode:
    """Which partitions to read, in which order, and the session that remembers them."""
    wanted = _positions(request, version)
    epoch = request.session_epoch
    if epoch > FULL_FETCH_EPOCH:
        session = broker.fetch_sessions.resume(request.session_id, epoch)
        if isinstance(session, ErrorCode):
            return session
        session.apply(wanted, _forgotten(request, version))
        return session.positions, session
    if request.session_id:
        broker.fetch_sessions.close(request.session_id)
    if epoch == NO_SESSION_EPOCH or not wanted:
        return wanted, None
    return wanted, broker.fetch_sessions.open(wanted)


def _positions(request: FetchRequest, version: int) -> Positions:
    by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
    positions: Positions = {}
    for topic in request.topics:
        name: TopicKey = topic.topic_id if by_id else topic.topic
        for p in topic.partitions:
            positions[name, p.partition] = FetchPosition(
                p.fetch_offset, p.partition_max_bytes, p.current_leader_epoch, p.last_fetched_epoch
            )
    return positions


def _forgotten(request: FetchRequest, version: int) -> Iterable[PartitionKey]:
    by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            yield (topic.topic_id if by_id else topic.topic), index


def _read(
    partition: Partition,
    position: FetchPosition,
    max_bytes: int,
    whole: bool,
    request: FetchRequest,
    version: int,
    allowance: Allowance,
) -> PartitionData:
    """One partition's answer: its records, or why not."""
    index = partition.index
    refusal = _check(partition, position, max_bytes, request, version)
    if refusal is not None:
        return _error(index, refusal)
    committed = request.isolation_level == READ_COMMITTED
    high_watermark = partition.high_watermark
    stable_offset = partition.last_stable_offset
    answer = PartitionData(
        partition_index=index,
        high_watermark=high_watermark,
        last_stable_offset=stable_offset,
        log_start_offset=partition.log_start_offset,
        aborted_transactions=None,
        preferred_read_replica=-1,
        records=b"",
    )
    if position.last_fetched_epoch != NO_EPOCH:
        diverging = _diverging_epoch(partition, position)
        if isinstance(diverging, ErrorCode):
            return _error(index, diverging)
        if diverging is not None:
            answer.diverging_epoch = diverging
            return answer
    upto = stable_offset if committed else high_watermark
    try:
        if version < FIRST_VERSION_WITH_V2:
            magic = 0 if version <= 1 else 1
            records = _read_for_old(partition, position.fetch_offset, max_bytes, magic, whole=whole, upto=upto)
        else:
            upconvert = allowance if partition.config.up_conversion else None
            offset = position.fetch_offset
            records = partition.read(offset, max_bytes, at_least_one=whole, upto=upto, upconvert=upconvert)
        if committed:
            answer.aborted_transactions = _aborted(partition, position.fetch_offset, upto)
    except OffsetOutOfRange:
        return _error(index, ErrorCode.OFFSET_OUT_OF_RANGE)
    except ConversionError as error:
        answer = _error(index, error.code)
        answer.records = None
        return answer
    except StorageFault:
        return _error(index, storage_error_for(version, FIRST_VERSION_WITH_STORAGE_ERROR))
    except DecodeError as error:
        log.warning("%r: cannot be converted for a reader from %s on: %s", partition, position.fetch_offset, error)
        return _error(index, ErrorCode.CORRUPT_MESSAGE)
    answer.records = records
    return answer


def _read_for_old(partition: Partition, offset: int, max_bytes: int, magic: int, *, whole: bool, upto: int) -> bytes:
    """The slice in the format of older readers; one that holds nothing newer stays as it was cut.

    Reads on where a slice held only what they are not shown (control batches): an empty answer would hold them there for ever.
    """
    while True:
        records = partition.read(offset, max_bytes, at_least_one=whole, upto=upto)
        entries = list(heads_in(records))
        if all(entry.magic <= magic for entry in entries):
            return records
        if not partition.config.down_conversion:
            raise ConversionError(ErrorCode.UNSUPPORTED_VERSION, "message.downconversion.enable is false")
        converted = convert_down(records, magic, offset)
        if converted:
            return converted
        offset = entries[-1].last_offset + 1


def _check(
    partition: Partition, position: FetchPosition, max_bytes: int, request: FetchRequest, version: int
) -> ErrorCode | None:
    """Why this partition may not be read, before its offset is looked at."""
    if _replica_of(request) >= 0:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if partition.condition.fault is not None:
        return storage_error_for(version, FIRST_VERSION_WITH_STORAGE_ERROR)
    known, claimed = partition.leader_epoch, position.current_leader_epoch
    if claimed > known:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if 0 <= claimed < known:
        return ErrorCode.FENCED_LEADER_EPOCH
    if max_bytes < 0:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    if version < FIRST_VERSION_WITH_ZSTD and partition.config.compression == "zstd":
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    return None


def _replica_of(request: FetchRequest) -> int:
    """The replica that fetches, -1 for a consumer; v15 moved it into a tagged field."""
    return request.replica_state.replica_id if request.replica_state is not None else request.replica_id


def _diverging_epoch(partition: Partition, position: FetchPosition) -> EpochEndOffset | ErrorCode | None:
    """Where the log of the epoch last fetched ended here, if the client's has gone another way (KIP-595)."""
    epoch, end_offset = lookups.end_offset_for_epoch(partition, position.last_fetched_epoch)
    if epoch == NO_EPOCH:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if epoch < position.last_fetched_epoch or end_offset < position.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def _aborted(partition: Partition, from_offset: int, upto: int) -> list[AbortedTransaction]:
    return [
        AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset)
        for one in partition.aborted.overlapping(from_offset, upto)
    ]


def _error(index: int, code: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=code,
        high_watermark=-1,
        last_stable_offset=-1,
        log_start_offset=-1,
        aborted_transactions=None,
        preferred_read_replica=-1,
        records=b"",
    )


def _refuse_whole(request: FetchRequest, version: int) -> FetchResponse:
    """A request that makes no sense as a whole gets an unknown error for each of its partitions."""
    answers = []
    for key, position in _positions(request, version).items():
        answer = _error(key[1], ErrorCode.UNKNOWN_SERVER_ERROR)
        answer.aborted_transactions = []
        answers.append((key, position, answer))
    return FetchResponse(responses=_group_by_topic(answers))


def _is_news(position: FetchPosition, answer: PartitionData) -> bool:
    """Whether an incremental response must mention this partition."""
    return bool(
        answer.records
        or answer.error_code
        or answer.high_watermark != position.told_high_watermark
        or answer.log_start_offset != position.told_log_start_offset
        or answer.diverging_epoch is not None
    )


def _is_quiet(position: FetchPosition, answer: PartitionData, committed: bool) -> bool:
    """Whether there is nothing to read before the partition changes."""
    upto = answer.last_stable_offset if committed else answer.high_watermark
    nothing = not answer.records and not answer.error_code and answer.diverging_epoch is None
    return nothing and position.fetch_offset >= upto


def _group_by_topic(
    answers: Sequence[tuple[PartitionKey, FetchPosition, PartitionData]],
) -> list[FetchableTopicResponse]:
    """Neighbours of one topic share an entry; the order of partitions is kept."""
    responses: list[FetchableTopicResponse] = []
    last: TopicKey | None = None
    for (name, _), _, answer in answers:
        if name != last or not responses:
            last = name
            response = FetchableTopicResponse(partitions=[])
            if isinstance(name, str):
                response.topic = name
            else:
                response.topic_id = name
            responses.append(response)
        responses[-1].partitions.append(answer)
    return responses
