"""The simplest possible Fetch, on messages as objects: the reference for the broker's own handler.

Every partition is read every time, and nothing is kept between two looks except the session.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from horolog.broker.cluster.placement import endpoint_of
from horolog.broker.commit.waiting import Wait
from horolog.broker.handlers import HANDLERS, Handler
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.fetch_sessions import FetchPosition, FetchSession, PartitionKey, Positions
from horolog.broker.log.partition import OffsetOutOfRange, Partition, lookups
from horolog.broker.log.segments import Allowance
from horolog.broker.log.storage import StorageFault
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import DecodeError, ErrorCode
from horolog.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from horolog.protocol.records.convert import ConversionError, convert_down
from horolog.protocol.records.head import heads_in

UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class Refusal(Exception):
    def __init__(self, code: ErrorCode, records: bytes | None = b"") -> None:
        super().__init__(code)
        self.code = code
        self.records = records


def refusal(index: int, code: ErrorCode, records: bytes | None = b"") -> PartitionData:
    return PartitionData(
        partition_index=index, error_code=code, high_watermark=-1, aborted_transactions=None, records=records
    )


def is_news(position: FetchPosition, answer: PartitionData) -> bool:
    told = (position.told_high_watermark, position.told_log_start_offset)
    changed = (answer.high_watermark, answer.log_start_offset) != told
    return changed or bool(answer.records or answer.error_code or answer.diverging_epoch)


class AnyChange:
    """Watches one partition for one request."""

    def __init__(self, wait: Wait) -> None:
        self.wait = wait

    def changed(self) -> Iterable[Wait]:
        return [self.wait]


class PlainFetch:
    """One request."""

    def __init__(self, broker: BrokerView, request: FetchRequest, context: RequestContext) -> None:
        self.broker = broker
        self.request = request
        self.context = context
        self.version = context.version
        self.session: FetchSession | None = None
        self.positions: Positions = {}
        self.answers: dict[PartitionKey, PartitionData] = {}
        replica = request.replica_state
        self.replica = request.replica_id if replica is None else replica.replica_id

    @property
    def is_incremental(self) -> bool:
        return self.request.session_epoch > 0

    def key(self, name: str, topic_id: bytes, index: int) -> PartitionKey:
        return (topic_id if self.version >= 13 else name), index

    def asked(self) -> Positions:
        return {
            self.key(topic.topic, topic.topic_id, one.partition): FetchPosition(
                one.fetch_offset, one.partition_max_bytes, one.current_leader_epoch, one.last_fetched_epoch
            )
            for topic in self.request.topics
            for one in topic.partitions
        }

    def plan(self) -> ErrorCode | None:
        sessions, request = self.broker.fetch_sessions, self.request
        if self.is_incremental:
            session = sessions.resume(request.session_id, request.session_epoch)
            if isinstance(session, ErrorCode):
                return session
            forgotten = [
                self.key(topic.topic, topic.topic_id, index)
                for topic in request.forgotten_topics_data
                for index in topic.partitions
            ]
            session.apply(self.asked(), forgotten)
            self.session, self.positions = session, session.positions
            return None
        self.positions = self.asked()
        if request.session_id:
            sessions.close(request.session_id)
        if request.session_epoch == 0 and self.positions:
            self.session = sessions.open(self.positions)
        return None

    def find(self, key: PartitionKey) -> Partition | ErrorCode:
        name, index = key
        by_id = isinstance(name, bytes)
        for topic in self.broker.cluster.topics.values():
            if name == (topic.id if by_id else topic.name):
                return topic.find(index)
        return ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def look(self) -> bool:
        """Look at everything; returns whether it is enough for a response."""
        self.answers = {}
        size_bytes, is_done, is_here = 0, False, False
        room = self.context.connection.room_for_answer_bytes
        most = min(self.broker.settings.fetch_max_bytes, room, self.request.max_bytes)
        allowance = Allowance()
        for key, position in self.positions.items():
            found = self.find(key)
            if isinstance(found, Partition):
                is_here = True
                limit = min(position.max_bytes, max(0, most - size_bytes) if self.answers else most)
                try:
                    answer = self.read(found, position, limit, self.version >= 3 and not size_bytes, allowance)
                except Refusal as refused:
                    answer = refusal(key[1], refused.code, refused.records)
            else:
                answer = refusal(key[1], found)
                answer.aborted_transactions = []
            self.answers[key] = answer
            size_bytes += len(answer.records or b"")
            if answer.error_code and (self.version < 4 or answer.error_code not in UNKNOWN):
                is_done = True
            if answer.diverging_epoch is not None:
                is_done = True
        fewest = min(self.request.min_bytes, self.request.max_bytes, self.broker.settings.fetch_max_bytes)
        is_enough = size_bytes >= fewest or (size_bytes > 0 and self.ahead() >= fewest)
        return is_done or not is_here or is_enough

    def ahead(self) -> int:
        """What lies ahead of the reader, ignoring the limit of the whole response; unbounded if segments follow."""
        ahead_bytes = 0
        for key, position in self.positions.items():
            partition, answer = self.find(key), self.answers[key]
            if isinstance(partition, Partition) and not answer.error_code and answer.diverging_epoch is None:
                upto = answer.last_stable_offset if self.request.isolation_level == 1 else answer.high_watermark
                lies = partition.read(position.fetch_offset, sys.maxsize, upto=upto)
                following = max((head.last_offset + 1 for head in heads_in(lies)), default=upto)
                ahead_bytes += min(position.max_bytes, len(lies) if following >= upto else sys.maxsize)
        return ahead_bytes

    def check(self, partition: Partition, position: FetchPosition, limit: int) -> None:
        broken = ErrorCode.KAFKA_STORAGE_ERROR if self.version >= 6 else ErrorCode.NOT_LEADER_OR_FOLLOWER
        claimed = position.current_leader_epoch
        if self.replica >= 0:
            raise Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if partition.condition.fault is not None:
            raise Refusal(broken)
        if claimed > partition.leader_epoch:
            raise Refusal(ErrorCode.UNKNOWN_LEADER_EPOCH)
        if 0 <= claimed < partition.leader_epoch:
            raise Refusal(ErrorCode.FENCED_LEADER_EPOCH)
        if limit < 0:
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
        if self.version < 10 and partition.config.compression == "zstd":
            raise Refusal(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)

    def diverging(self, partition: Partition, position: FetchPosition) -> EpochEndOffset | None:
        if position.last_fetched_epoch == -1 or self.version < 12:  # the session may be from a newer version
            return None
        epoch, end_offset = lookups.end_offset_for_epoch(partition, position.last_fetched_epoch)
        if epoch == -1:
            raise Refusal(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch < position.last_fetched_epoch or end_offset < position.fetch_offset:
            return EpochEndOffset(epoch=epoch, end_offset=end_offset)
        return None

    def read(
        self, partition: Partition, position: FetchPosition, limit: int, whole: bool, allowance: Allowance
    ) -> PartitionData:
        self.check(partition, position, limit)
        answer = PartitionData(
            partition_index=partition.index,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.last_stable_offset,
            log_start_offset=partition.log_start_offset,
            diverging_epoch=self.diverging(partition, position),
            aborted_transactions=None,
            records=b"",
        )
        if answer.diverging_epoch is not None:
            return answer
        offset, committed = position.fetch_offset, self.request.isolation_level == 1
        upto = partition.last_stable_offset if committed else partition.high_watermark
        try:
            if self.version < 4:
                answer.records = self.older(partition, offset, limit, whole, upto)
            else:
                converts = allowance if partition.config.up_conversion else None
                records = partition.read(offset, limit, at_least_one=whole, upto=upto, upconvert=converts)
                answer.records = records if any(heads_in(records)) else b""
            if committed and (answer.records or offset >= upto):
                answer.aborted_transactions = [
                    AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset)
                    for one in partition.aborted.overlapping(offset, upto)
                ]
        except OffsetOutOfRange:
            raise Refusal(ErrorCode.OFFSET_OUT_OF_RANGE) from None
        except ConversionError as error:
            raise Refusal(error.code, None) from None
        except StorageFault:
            raise Refusal(
                ErrorCode.KAFKA_STORAGE_ERROR if self.version >= 6 else ErrorCode.NOT_LEADER_OR_FOLLOWER
            ) from None
        except DecodeError:
            raise Refusal(ErrorCode.CORRUPT_MESSAGE) from None
        return answer

    def older(self, partition: Partition, offset: int, limit: int, whole: bool, upto: int) -> bytes:
        magic = 0 if self.version <= 1 else 1
        while True:
            records = partition.read(offset, limit, at_least_one=whole, upto=upto)
            heads = list(heads_in(records))
            if self.version == 3 and not heads:
                return b""
            if all(head.magic <= magic for head in heads):
                return records
            if not partition.config.down_conversion:
                raise ConversionError(ErrorCode.UNSUPPORTED_VERSION, "it may not be converted")
            converted = convert_down(records, magic, offset, max_bytes=limit)
            if converted:
                return converted
            offset = heads[-1].last_offset + 1

    def response(self) -> FetchResponse:
        told = self.answers
        leaders = self.name_leaders() if self.version >= 16 else []
        if self.session is not None:
            if self.is_incremental:
                told = {key: answer for key, answer in told.items() if is_news(self.positions[key], answer)}
            for key, answer in told.items():
                self.positions[key].told_high_watermark = answer.high_watermark
                self.positions[key].told_log_start_offset = answer.log_start_offset
            if self.is_incremental:
                self.session.serve_last([key for key, answer in told.items() if answer.records])
        session_id = self.session.id if self.session else 0
        return FetchResponse(session_id=session_id, responses=self.by_topic(told), node_endpoints=leaders)

    def name_leaders(self) -> list[NodeEndpoint]:
        """A broker alone leads everything: it names itself where a client has an older epoch (KIP-951)."""
        fenced = [key for key, one in self.answers.items() if one.error_code == ErrorCode.FENCED_LEADER_EPOCH]
        me = self.broker.placement.me
        for key in fenced:
            partition = self.find(key)
            assert isinstance(partition, Partition)
            self.answers[key].current_leader = LeaderIdAndEpoch(leader_id=me, leader_epoch=partition.leader_epoch)
        found = endpoint_of(self.broker.placement, me, self.context.listener)
        assert found is not None
        return [NodeEndpoint(node_id=me, host=found.host, port=found.port, rack=found.rack)] if fenced else []

    def by_topic(self, told: dict[PartitionKey, PartitionData]) -> list[FetchableTopicResponse]:
        responses: list[FetchableTopicResponse] = []
        for (name, _), answer in told.items():
            one = FetchableTopicResponse(partitions=[])
            if isinstance(name, str):
                one.topic = name
            else:
                one.topic_id = name
            if not responses or (responses[-1].topic, responses[-1].topic_id) != (one.topic, one.topic_id):
                responses.append(one)
            responses[-1].partitions.append(answer)
        return responses

    def wait(self) -> None:
        """Look again whenever a partition has changed, and a last time at the timeout."""
        waiting = self.broker.waiting
        watched: list[tuple[Partition, AnyChange]] = []

        def again() -> bool:
            is_done = self.look()
            if is_done:
                self.context.reply(self.response())
            return is_done

        def expire() -> None:
            self.look()
            self.context.reply(self.response())

        wait = Wait(again, expire, lambda _: [waiting.unwatch(*each) for each in watched], len(self.positions))
        for key in self.positions:
            partition = self.find(key)
            if isinstance(partition, Partition):
                watched.append((partition, AnyChange(wait)))
                waiting.watch(*watched[-1])
        waiting.add(wait, self.request.max_wait_ms)
        self.context.on_abandoned = lambda: waiting.remove(wait)


def handle(broker: BrokerView, request: FetchRequest, context: RequestContext) -> FetchResponse | None:
    fetch = PlainFetch(broker, request, context)
    if request.isolation_level not in (0, 1):
        answers = {key: refusal(key[1], ErrorCode.UNKNOWN_SERVER_ERROR) for key in fetch.asked()}
        for answer in answers.values():
            answer.aborted_transactions = []
        return FetchResponse(responses=fetch.by_topic(answers))
    code = fetch.plan()
    if code is not None:
        return FetchResponse(error_code=code, session_id=0, responses=[])
    if fetch.look() or request.max_wait_ms <= 0:
        return fetch.response()
    fetch.wait()
    return None


HANDLERS_WITH_PLAIN_FETCH = {**HANDLERS, ApiKey.FETCH: Handler(0, 18, handle)}
