"""Fetch, versions 0 to 18: hands out log slices, and waits for `min_bytes` of them.

- v0-v2: a slice is cut at the partition's max_bytes, even inside its first message. v3+: the first message of a response comes whole,
  and a later partition whose first message no longer fits is left empty.
- v0-v1 read magic 0, v2-v3 magic 1 (newer data is converted down, all else is as stored), v4+ magic 2 (older data is converted
  up unless the topic's settings say otherwise); zstd needs v10.
- v7+: incremental sessions (KIP-227); v12+: diverging epochs are pointed out; v13+ names topics by id.
- Bytes that are on their way here from a store are waited for like records that are not written yet.
- A topic or partition that is unknown, or may not be read, ends a wait in v0-v3 only, as each era's brokers do; other errors always end it.
- v11+: a client that names its rack may be sent to a broker that serves older records there, or be served such records (KIP-392).
Not done: fetches by followers (any replica id is refused).

Requests and answers are flat: tuples of the fields that `protocol.messages.fetch` declares, in their order. The names of the types
below stand for them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from mypy_extensions import mypyc_attr

from horolog.broker.cluster.placement import Endpoint, Reader
from horolog.broker.cluster.topic import NO_TOPIC_ID
from horolog.broker.commit.waiting import Wait
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
from horolog.broker.handlers.fetch_watch import FetchWatch, Terms
from horolog.broker.handlers.lookup import READ_COMMITTED, READ_UNCOMMITTED, storage_error_for
from horolog.broker.handlers.next_leaders import MISPLACED, Leader, leader_to_name
from horolog.broker.log.partition import OffsetOutOfRange, Partition, lookups
from horolog.broker.log.segments import Allowance
from horolog.broker.log.storage import NotHere, StorageFault
from horolog.protocol.errors import DecodeError, ErrorCode
from horolog.protocol.primitives import Unread
from horolog.protocol.records.convert import ConversionError, convert_down
from horolog.protocol.records.head import NO_EPOCH, heads_in
from horolog.protocol.wire import NO_THROTTLING_MS

log = logging.getLogger(__name__)

FIRST_VERSION_WITH_WHOLE_MESSAGE = 3
FIRST_VERSION_WITH_V2 = 4
FIRST_VERSION_WITH_ZSTD = 10
FIRST_VERSION_WITH_RACK = 11
FIRST_VERSION_WITH_DIVERGING_EPOCH = 12
FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_WITH_STORAGE_ERROR = 6
FIRST_VERSION_WITH_LEADERS = 16
NO_SESSION = 0
HERE = -1
"""The preferred read replica: this broker."""

NO_PLACE = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)

FetchPartition = tuple[int, int, int, int, int, int, bytes, int]
"""Number, the leader epoch that the client knows, offset, the epoch fetched last, the log start of a follower, the most bytes; and what
followers say."""
FetchTopic = tuple[str, bytes, list[FetchPartition]]
ForgottenTopic = tuple[str, bytes, list[int]]
FetchRequest = tuple[
    str | None, int, tuple[int, int] | None, int, int, int, int, int, int, list[FetchTopic], list[ForgottenTopic], str
]
"""Cluster; replica, and replica with its epoch; max wait, min bytes, max bytes; isolation level; session and its epoch; topics, topics
that leave the session; rack."""


class PartitionAnswer(NamedTuple):
    """A named tuple, since its fields are read to decide whether the response includes it."""

    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    diverging_epoch: tuple[int, int] | None
    current_leader: Leader | None
    snapshot_id: None
    aborted_transactions: list[tuple[int, int]] | None
    preferred_read_replica: int
    records: bytes | Unread | None


_new_tuple = tuple.__new__  # a third of the cost of a named tuple's own constructor

TopicAnswer = tuple[str, bytes, list[PartitionAnswer]]
FetchResponse = tuple[int, int, int, list[TopicAnswer], Sequence[Endpoint]]
"""Throttle time, error code, session, topics, and the leaders that refusals name."""
PartitionResult = tuple[PartitionKey, FetchPosition, PartitionAnswer, Partition | None]
"""The result for one partition; None for the partition if this broker does not have it."""


class FetchResult:
    """The result of a look at the partitions of a fetch."""

    __slots__ = ("done", "found", "leaders", "size_bytes")

    def __init__(self) -> None:
        self.found: list[PartitionResult] = []
        self.leaders: list[Endpoint] = []
        self.size_bytes = 0
        self.done = False


@mypyc_attr(allow_interpreted_subclasses=True)
class PendingFetch:
    """A fetch from its plan to its answer; checked again when its partitions have new data."""

    __slots__ = (
        "broker",
        "context",
        "is_incremental",
        "known",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "positions",
        "reader",
        "session",
        "terms",
        "throttle",
        "watch",
    )

    def __init__(
        self,
        broker: BrokerView,
        request: FetchRequest,
        context: RequestContext,
        positions: Positions,
        session: FetchSession | None,
    ) -> None:
        _, replica_id, replica, max_wait_ms, min_bytes, max_bytes, isolation_level, _, epoch, _, _, rack = request
        self.broker = broker
        self.context = context
        self.positions = positions
        self.session = session
        self.known = broker.cluster.partition_cache
        self.reader: Reader | None = None
        if rack and broker.placement.selector is not None:
            self.reader = Reader(rack, context.client_id, context.connection.peer_host)
        self.max_wait_ms = max_wait_ms
        max_bytes = min(max_bytes, broker.settings.fetch_max_bytes)
        self.throttle = throttle = context.throttle
        if throttle is not None:  # an answer that exceeds the quota by itself could never leave
            max_bytes = int(min(max_bytes, throttle.most_fetched_bytes))
        self.max_bytes = max_bytes
        self.min_bytes = min(min_bytes, max_bytes)
        if replica is not None:  # v15 moved it into a tagged field
            replica_id = replica[0]
        self.terms = _new_tuple(Terms, (context.version, isolation_level, replica_id))
        self.is_incremental = session is not None and epoch > FULL_FETCH_EPOCH
        self.watch: FetchWatch | None = None
        if session is not None and self.is_incremental:
            if session.watch is None:
                session.watch = FetchWatch(positions, broker.waiting, broker.logs.resources.changes)
            self.watch = session.watch

    def __repr__(self) -> str:
        return f"<PendingFetch of {len(self.positions)} partitions for {self.context!r}>"

    def collect(self) -> FetchResult:
        """Look at every partition that may have news, or at all of them where all are answered."""
        watch = self.watch
        return self._look(self.positions if watch is None else watch.to_look_at(self.terms))

    def _look(self, positions: Positions) -> FetchResult:
        terms, version = self.terms, self.terms.version
        collected = FetchResult()
        found, size_bytes = collected.found, 0
        limit = self.max_bytes
        allowance = Allowance(room_bytes=self.context.connection.room_for_answer_bytes)
        takes_cut = version < FIRST_VERSION_WITH_WHOLE_MESSAGE
        may_be_unread = version >= FIRST_VERSION_WITH_V2 and self.context.takes_unread
        is_here = len(positions) < len(self.positions)
        known, reader = self.known, self.reader
        for key, position in positions.items():
            here = known.get(key) or self._find(key)
            partition = here if reader is None else self._by_rack(key, position, here, reader)
            if isinstance(partition, Partition):
                is_here = True
                whole = not takes_cut and not size_bytes
                most = min(position.max_bytes, limit)
                answer = _read(partition, position, most, whole, terms, allowance, may_be_unread=may_be_unread)
                found.append((key, position, answer, partition))
            elif isinstance(partition, tuple):
                answer = partition
                found.append((key, position, answer, None))
                collected.done = True
            else:  # as real brokers answer where they attempt no read
                answer = _error(key[1], partition, aborted=[])
                found.append((key, position, answer, None))
            records = answer.records
            if records:
                size = len(records)
                size_bytes += size
                limit = max(0, limit - size)
                if not isinstance(records, Unread):
                    allowance.room_bytes = max(0, allowance.room_bytes - size)
            elif limit < 0:
                limit = 0
            if answer.diverging_epoch is not None or (
                answer.error_code and not (version >= FIRST_VERSION_WITH_V2 and answer.error_code in NO_PLACE)
            ):
                collected.done = True
                if version >= FIRST_VERSION_WITH_LEADERS and answer.error_code in MISPLACED:
                    found[-1] = (key, position, self._with_leader(key, answer, collected.leaders), found[-1][3])
        collected.size_bytes = size_bytes
        if not is_here or size_bytes >= self.min_bytes or (size_bytes and self._is_full(found)):
            collected.done = True
        return collected

    def _with_leader(self, key: PartitionKey, refusal: PartitionAnswer, endpoints: list[Endpoint]) -> PartitionAnswer:
        """The refusal with the leader. One that fences a client's epoch comes from the leader itself."""
        is_here = refusal.error_code == ErrorCode.FENCED_LEADER_EPOCH
        leader = leader_to_name(self.broker, *key, self.context.listener, endpoints, is_here=is_here)
        return refusal._replace(current_leader=leader)

    def _is_full(self, found: list[PartitionResult]) -> bool:
        """Whether there is enough to read, and only the limits of the answer or the end of a segment keep the answer small."""
        committed, missing = self.terms.isolation_level == READ_COMMITTED, self.min_bytes
        for _, position, answer, partition in found:
            if partition is not None and not answer.error_code:
                upto = answer.last_stable_offset if committed else answer.high_watermark
                try:
                    missing -= min(position.max_bytes, partition.bytes_ahead(position.fetch_offset, upto))
                except StorageFault:  # the next request gets the error
                    return True
                if missing <= 0:
                    return True
        return False

    def _by_rack(
        self, key: PartitionKey, position: FetchPosition, found: Partition | ErrorCode, reader: Reader
    ) -> Partition | ErrorCode | PartitionAnswer:
        """What a client that names its rack gets instead: the name of another broker, or a partition that another one leads."""
        selector, (name, index) = self.broker.placement.selector, key
        offset = position.fetch_offset
        if selector is None or self.terms.version < FIRST_VERSION_WITH_RACK or self.terms.replica_id >= 0:
            return found
        if isinstance(found, Partition):
            node = None if found.condition.fault else selector.preferred(found, offset, reader)
            return found if node is None else _elsewhere(found, node)
        if found != ErrorCode.NOT_LEADER_OR_FOLLOWER or position.last_fetched_epoch != NO_EPOCH:
            return found
        cluster = self.broker.cluster
        topic = cluster.topics.get(name) if isinstance(name, str) else cluster.by_id.get(name)
        committed = self.terms.isolation_level == READ_COMMITTED
        if topic is None:
            return found
        followed = selector.followed(topic, index, offset, reader, committed=committed)
        leader = None if isinstance(followed, Partition) else selector.leader_for(topic, index, offset, reader)
        return followed if leader is None else _back(index, leader)

    def _find(self, key: PartitionKey) -> Partition | ErrorCode:
        """A partition that clients may write to, too, is cached for the next time."""
        name, index = key
        cluster = self.broker.cluster
        if isinstance(name, str):
            topic, unknown = cluster.topics.get(name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            topic, unknown = cluster.by_id.get(name), ErrorCode.UNKNOWN_TOPIC_ID
        if topic is None:
            return unknown
        partition = topic.find(index)
        if isinstance(partition, Partition) and not topic.internal:
            cluster.partition_cache[key] = partition
        return partition

    def check(self) -> bool:
        """Look again, and answer if there is enough now."""
        collected = self.collect()
        if collected.done:
            self._answer(collected)
        else:
            self._note(collected)
        return collected.done

    def expire(self) -> None:
        self._answer(self.collect() if self.is_incremental else self._look(self.positions))

    def _answer(self, collected: FetchResult) -> None:
        if not self.is_incremental and len(collected.found) < len(self.positions):
            collected = self._look(self.positions)
        self.context.reply(self.respond(collected))

    def wait(self, collected: FetchResult) -> bool:
        """Wait for more, unless too many wait already."""
        broker, watch = self.broker, self.watch
        waiting = broker.waiting
        if watch is None:
            watch = FetchWatch(self.positions, waiting, broker.logs.resources.changes, self.terms)
        wait = Wait(self.check, self.expire, watch.leave, len(self.positions))
        if not waiting.has_room_for(wait):
            return False
        self.watch = watch
        watch.enter(wait)
        self._note(collected)
        if not self.is_incremental:
            watch.close()  # when this wait ends
        waiting.add(wait, self.max_wait_ms)
        self.context.on_abandoned = partial(waiting.remove, wait)
        return True

    def _note(self, collected: FetchResult) -> None:
        """The results decide which partitions are looked at again."""
        watch, committed = self.watch, self.terms.isolation_level == READ_COMMITTED
        if watch is None:
            return
        for key, position, answer, partition in collected.found:
            is_told = not self.is_incremental or not _is_news(position, answer)
            is_quiet = is_told and _is_quiet(position, answer, committed)
            watch.note(key, position, partition, is_quiet=is_quiet)

    def respond(self, collected: FetchResult) -> FetchResponse:
        """A client that is over a quota gets an empty response, and asks for the same again."""
        session, told = self.session, collected.found
        if self.throttle is not None and self.throttle.refuses_fetch(collected.size_bytes):
            return self._nothing()
        if session is None:
            return NO_THROTTLING_MS, ErrorCode.NONE, NO_SESSION, _by_topic(told), collected.leaders
        if self.is_incremental:
            told = [each for each in told if _is_news(each[1], each[2])]
        for _, position, answer, _ in told:
            position.told_high_watermark = answer.high_watermark
            position.told_log_start_offset = answer.log_start_offset
        if self.is_incremental:
            self._note(collected)
            session.serve_last([key for key, _, answer, _ in told if answer.records])
        return NO_THROTTLING_MS, ErrorCode.NONE, session.id, _by_topic(told), collected.leaders

    def _nothing(self) -> FetchResponse:
        """The empty response; a new session, which it does not name, is closed."""
        session = self.session
        if session is not None and not self.is_incremental:
            self.broker.fetch_sessions.close(session.id)
            session = None
        return NO_THROTTLING_MS, ErrorCode.NONE, NO_SESSION if session is None else session.id, [], ()


def handle(
    broker: BrokerView, request: FetchRequest, context: RequestContext, kind: type[PendingFetch] = PendingFetch
) -> FetchResponse | None:
    if request[6] not in (READ_UNCOMMITTED, READ_COMMITTED):
        return _refuse_whole(request, context.version)
    planned = _plan(broker, request, context.version)
    if isinstance(planned, ErrorCode):
        return NO_THROTTLING_MS, planned, NO_SESSION, [], ()
    positions, session = planned
    fetch = kind(broker, request, context, positions, session)
    collected = fetch.collect()
    if collected.done or fetch.max_wait_ms <= 0 or not fetch.wait(collected):
        return fetch.respond(collected)
    return None


def _plan(broker: BrokerView, request: FetchRequest, version: int) -> tuple[Positions, FetchSession | None] | ErrorCode:
    """Which partitions to read, in which order, and the session that remembers them."""
    _, _, _, _, _, _, _, session_id, epoch, topics, forgotten, _ = request
    wanted = _positions(topics, version)
    if epoch > FULL_FETCH_EPOCH:
        session = broker.fetch_sessions.resume(session_id, epoch)
        if isinstance(session, ErrorCode):
            return session
        session.apply(wanted, _forgotten(forgotten, version))
        return session.positions, session
    if session_id:
        broker.fetch_sessions.close(session_id)
    if epoch == NO_SESSION_EPOCH or not wanted:
        return wanted, None
    return wanted, broker.fetch_sessions.open(wanted)


def _positions(topics: Iterable[FetchTopic], version: int) -> Positions:
    by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
    positions: Positions = {}
    for name, topic_id, partitions in topics:
        key: TopicKey = topic_id if by_id else name
        for index, leader_epoch, offset, last_epoch, _, max_bytes, _, _ in partitions:
            positions[key, index] = FetchPosition(offset, max_bytes, leader_epoch, last_epoch)
    return positions


def _forgotten(topics: Iterable[ForgottenTopic], version: int) -> Iterable[PartitionKey]:
    by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
    for name, topic_id, partitions in topics:
        for index in partitions:
            yield (topic_id if by_id else name), index


def _read(
    partition: Partition,
    position: FetchPosition,
    max_bytes: int,
    whole: bool,
    terms: Terms,
    allowance: Allowance,
    *,
    may_be_unread: bool,
) -> PartitionAnswer:
    """One partition's answer: its records, or why not."""
    index = partition.index
    version, isolation_level, replica_id = terms
    refusal = _check(partition, position, max_bytes, version, replica_id)
    if refusal is not None:
        return _error(index, refusal)
    offset = position.fetch_offset
    diverging = None
    if position.last_fetched_epoch != NO_EPOCH and version >= FIRST_VERSION_WITH_DIVERGING_EPOCH:
        diverging = _diverging_epoch(partition, position)
        if isinstance(diverging, ErrorCode):
            return _error(index, diverging)
    high_watermark, stable_offset = partition.high_watermark, partition.last_stable_offset
    start_offset = partition.log_start_offset
    records: bytes | Unread | None = b""
    aborted = None
    if diverging is None:
        upto = stable_offset if isolation_level == READ_COMMITTED else high_watermark
        try:
            if version < FIRST_VERSION_WITH_V2:
                max_bytes = min(max_bytes, allowance.room_bytes)
                records = _read_for_old(partition, offset, max_bytes, version, whole=whole, upto=upto)
            elif not may_be_unread or (records := partition.unread(offset, max_bytes, upto)) is None:
                max_bytes = min(max_bytes, allowance.room_bytes)
                upconvert = allowance if partition.config.up_conversion else None
                records = partition.read(
                    offset, max_bytes, at_least_one=whole, cuts_first=False, upto=upto, upconvert=upconvert
                )
            if isolation_level == READ_COMMITTED and (records or offset >= upto):  # null where nothing fits
                aborted = [(one.producer_id, one.first_offset) for one in partition.aborted.overlapping(offset, upto)]
        except (OffsetOutOfRange, ConversionError, StorageFault, DecodeError) as error:
            return _failed(partition, offset, error, version)
    answer = (index, 0, high_watermark, stable_offset, start_offset, diverging, None, None, aborted, HERE, records)
    return _new_tuple(PartitionAnswer, answer)


def _read_for_old(partition: Partition, offset: int, max_bytes: int, version: int, *, whole: bool, upto: int) -> bytes:
    """The slice in the format of older readers; a slice that holds nothing newer stays as it was cut.

    Older readers get no control batches. If a slice holds nothing else, the next one is read: after an empty answer they would
    request the same slice forever.
    """
    magic = 0 if version <= 1 else 1
    cuts_first = version < FIRST_VERSION_WITH_WHOLE_MESSAGE
    while True:
        records = partition.read(offset, max_bytes, at_least_one=whole, cuts_first=cuts_first, upto=upto)
        entries = list(heads_in(records))
        if all(entry.magic <= magic for entry in entries):
            return records
        if not partition.config.down_conversion:
            raise ConversionError(ErrorCode.UNSUPPORTED_VERSION, "message.downconversion.enable is false")
        converted = convert_down(records, magic, offset, max_bytes=max_bytes)
        if converted:
            return converted
        offset = entries[-1].last_offset + 1


def _failed(partition: Partition, offset: int, error: Exception, version: int) -> PartitionAnswer:
    """The answer where a partition could not be read."""
    if isinstance(error, OffsetOutOfRange):
        return _error(partition.index, ErrorCode.OFFSET_OUT_OF_RANGE)
    if isinstance(error, ConversionError):
        return _error(partition.index, error.code, records=None)
    if isinstance(error, NotHere) and not error.has_failed:
        return _on_its_way(partition)
    if isinstance(error, StorageFault):
        return _error(partition.index, storage_error_for(version, FIRST_VERSION_WITH_STORAGE_ERROR))
    log.warning("%s: cannot be converted for a reader from offset %s: %s", partition, offset, error)
    return _error(partition.index, ErrorCode.CORRUPT_MESSAGE)


def _on_its_way(partition: Partition) -> PartitionAnswer:
    """The answer where nothing can be read yet."""
    shown, stable, start = partition.high_watermark, partition.last_stable_offset, partition.log_start_offset
    return PartitionAnswer(partition.index, 0, shown, stable, start, None, None, None, [], HERE, b"")


def _elsewhere(partition: Partition, node: int) -> PartitionAnswer:
    """The answer that sends a reader to another broker."""
    return _on_its_way(partition)._replace(preferred_read_replica=node)


def _back(index: int, leader: int) -> PartitionAnswer:
    """The answer that sends a reader to the leader, whether its client minds the error or the name."""
    return _error(index, ErrorCode.NOT_LEADER_OR_FOLLOWER, aborted=[])._replace(preferred_read_replica=leader)


def _check(
    partition: Partition, position: FetchPosition, max_bytes: int, version: int, replica_id: int
) -> ErrorCode | None:
    """Why this partition may not be read, before its offset is looked at."""
    if replica_id >= 0:
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


def _diverging_epoch(partition: Partition, position: FetchPosition) -> tuple[int, int] | ErrorCode | None:
    """If the client's log has diverged from this one (KIP-595): the last epoch that both may share, and where it ends here."""
    epoch, end_offset = lookups.end_offset_for_epoch(partition, position.last_fetched_epoch)
    if epoch == NO_EPOCH:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if epoch < position.last_fetched_epoch or end_offset < position.fetch_offset:
        return epoch, end_offset
    return None


def _error(
    index: int, code: ErrorCode, *, aborted: list[tuple[int, int]] | None = None, records: bytes | None = b""
) -> PartitionAnswer:
    return PartitionAnswer(index, code, -1, -1, -1, None, None, None, aborted, HERE, records)


def _refuse_whole(request: FetchRequest, version: int) -> FetchResponse:
    """An invalid request gets UNKNOWN_SERVER_ERROR for each of its partitions."""
    found: list[PartitionResult] = [
        (key, position, _error(key[1], ErrorCode.UNKNOWN_SERVER_ERROR, aborted=[]), None)
        for key, position in _positions(request[9], version).items()
    ]
    return NO_THROTTLING_MS, ErrorCode.NONE, NO_SESSION, _by_topic(found), ()


def _is_news(position: FetchPosition, answer: PartitionAnswer) -> bool:
    """Whether an incremental response must mention this partition."""
    return bool(
        answer.records
        or answer.error_code
        or answer.high_watermark != position.told_high_watermark
        or answer.log_start_offset != position.told_log_start_offset
        or answer.diverging_epoch is not None
        or answer.preferred_read_replica != HERE
    )


def _is_quiet(position: FetchPosition, answer: PartitionAnswer, committed: bool) -> bool:
    """Whether there is nothing to read before the partition changes."""
    upto = answer.last_stable_offset if committed else answer.high_watermark
    nothing = not answer.records and not answer.error_code and answer.diverging_epoch is None
    return nothing and position.fetch_offset >= upto


def _by_topic(found: Sequence[PartitionResult]) -> list[TopicAnswer]:
    """Neighbours of one topic share an entry; the order of partitions is kept."""
    topics: list[TopicAnswer] = []
    last: TopicKey | None = None
    for (name, _), _, answer, _ in found:
        if name != last:
            last = name
            topics.append((name, NO_TOPIC_ID, []) if isinstance(name, str) else ("", name, []))
        topics[-1][2].append(answer)
    return topics
