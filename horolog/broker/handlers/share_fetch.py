"""ShareFetch, versions 1 to 2: gives a member of a share group records that no other member has.

- Acknowledgements that come along are persisted first; then the request waits for records as Fetch does.
- The first request opens a session (epoch 0), which belongs to the connection; the last one closes it (epoch -1). In between a response
  has only partitions with records, errors or outcomes of acknowledgements.
- v2+: with `share_acquire_mode` 1 a response never has more than `max_records`; else the last batch of the log is whole. A request that
  renews locks fetches nothing.
- Partitions of a session take turns. A response has whole batches of the log; `acquired_records` says which of the records are the
  member's. With `share.isolation.level=read_committed` no member gets those of aborted transactions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple

from horolog.broker.cluster.placement import Endpoint
from horolog.broker.commit.waiting import Wait
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.next_leaders import MISPLACED
from horolog.broker.handlers.share_acknowledge import (
    ShareMember,
    acknowledge_all,
    acknowledged_in,
    leader_of,
    nodes_of,
    refusal_of,
)
from horolog.broker.log.partition import Partition, WantedBatches, whole_batches
from horolog.broker.log.storage import StorageFault
from horolog.broker.share.leader import OpenShare, Persisted, code_of_fault, limits_of
from horolog.broker.share.records import SharePartitionKey
from horolog.broker.share.sessions import CLOSE_EPOCH, OPEN_EPOCH, Place, ShareSession
from horolog.broker.share.terms import Acquired, Fetched, Wish
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.share_fetch import (
    AcquiredRecords,
    ShareFetchableTopic,
    ShareFetchRequest,
    ShareFetchResponse,
    SharePartitionData,
)
from horolog.protocol.primitives import Unread
from horolog.protocol.records.head import TRANSACTIONAL_BIT, Head

STRICT: Final = 1
"""The acquire mode that never exceeds the number of records."""
MOST_READS: Final = 20
"""Reads of one partition for one request that find nothing to deliver."""

_SILENT: Final = frozenset({ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.COORDINATOR_NOT_AVAILABLE})
"""The partition is not open yet: the member gets nothing of it, and asks again."""


def fetch(broker: BrokerView, request: ShareFetchRequest, context: RequestContext) -> ShareFetchResponse | None:
    acknowledgements = acknowledged_in(request.topics)
    code = _fault_of(request, has_acknowledgements=bool(acknowledgements))
    session = code or _session(broker, request, context)
    if isinstance(session, ErrorCode):
        return ShareFetchResponse(error_code=session)
    group, member_id = session.key
    member = ShareMember(group, member_id, request.is_renew_ack)
    fetching = ShareFetching(broker, request, context, session)
    acknowledge_all(broker, context, member, acknowledgements, fetching.acknowledged)
    return None


def _fault_of(request: ShareFetchRequest, *, has_acknowledgements: bool) -> ErrorCode:
    """What makes no sense in a request as a whole."""
    fetches = request.max_bytes or request.max_records or request.min_bytes or request.max_wait_ms
    if (
        request.group_id is None
        or not request.member_id
        or (request.is_renew_ack and fetches)
        or (has_acknowledgements and request.share_session_epoch == OPEN_EPOCH)
    ):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _session(broker: BrokerView, request: ShareFetchRequest, context: RequestContext) -> ShareSession | ErrorCode:
    leader, epoch = broker.shares.leader, request.share_session_epoch
    key = request.group_id or "", request.member_id or ""
    asked = [(topic.topic_id, one.partition_index) for topic in request.topics for one in topic.partitions]
    if epoch != OPEN_EPOCH:
        session = leader.sessions.resume(key, epoch)
        if isinstance(session, ShareSession) and epoch != CLOSE_EPOCH:
            forgotten = [
                (topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions
            ]
            session.apply(asked, forgotten)
        return session
    leader.close_session(key, _nothing)
    connection = context.connection
    opened = leader.sessions.open(key, asked, connection, broker.settings.group_share_max_share_sessions)
    if isinstance(opened, ShareSession):
        connection.on_lost = partial(leader.connection_lost, connection)
    return opened


class _Watch:
    """Notifies one request of new data in one partition."""

    __slots__ = ("wait",)

    def __init__(self, wait: Wait) -> None:
        self.wait = wait

    def __repr__(self) -> str:
        return f"<_Watch for {self.wait!r}>"

    def changed(self) -> Iterable[Wait]:
        return (self.wait,)


class _Found(NamedTuple):
    """What a member gets of one partition."""

    records: bytes | Unread
    acquired: Sequence[Acquired]


class ShareFetching:
    """One request, from its acknowledgements to its response."""

    __slots__ = (
        "_acknowledged",
        "_broker",
        "_codes",
        "_context",
        "_is_answered",
        "_max_bytes",
        "_request",
        "_session",
        "_shares",
        "_unopened",
        "_watches",
    )

    def __init__(
        self, broker: BrokerView, request: ShareFetchRequest, context: RequestContext, session: ShareSession
    ) -> None:
        self._broker = broker
        self._request = request
        self._context = context
        self._session = session
        self._acknowledged: dict[Place, Persisted] = {}
        self._codes: dict[Place, ErrorCode] = {}
        self._shares: dict[Place, OpenShare] = {}
        self._watches: list[tuple[OpenShare, _Watch]] = []
        self._unopened = 0
        self._is_answered = False
        max_bytes = min(request.max_bytes, broker.settings.fetch_max_bytes)
        if context.throttle is not None:
            max_bytes = int(min(max_bytes, context.throttle.most_fetched_bytes))
        self._max_bytes = max_bytes

    def __repr__(self) -> str:
        return f"<ShareFetching by {self._session!r}>"

    def acknowledged(self, results: dict[Place, Persisted]) -> None:
        self._acknowledged = results
        request, session = self._request, self._session
        if request.share_session_epoch == CLOSE_EPOCH:
            self._broker.shares.leader.close_session(session.key, partial(self._reply, {}))
            return
        if request.is_renew_ack:
            self._reply({})
            return
        self._find_all()

    def _find_all(self) -> None:
        leader, unopened = self._broker.shares.leader, {}
        for place in self._session.places:
            key = SharePartitionKey(self._session.key[0], *place)
            found = refusal_of(self._broker, self._context, place) or leader.find(key)
            if found is ErrorCode.LEADER_NOT_AVAILABLE:
                unopened[place] = key
            else:
                self._take(place, found)
        self._unopened = len(unopened)
        self._go_on()
        for place, key in unopened.items():
            leader.open(key, partial(self._opened, place))

    def _take(self, place: Place, found: OpenShare | ErrorCode) -> None:
        if isinstance(found, OpenShare):
            self._shares[place] = found
        elif found not in _SILENT:
            self._codes[place] = found

    def _opened(self, place: Place, found: OpenShare | ErrorCode) -> None:
        self._unopened -= 1
        self._take(place, found)
        self._go_on()

    def _go_on(self) -> None:
        """As in Kafka, the first partitions that open with records are answered: the states of others may take longer to read."""
        if self._is_answered or self.check():
            return
        if not self._unopened and (self._request.max_wait_ms <= 0 or not self._wait()):
            self.expire()

    # -- records

    def check(self) -> bool:
        """Answer if there is enough to deliver."""
        if not self._codes and not self._has_enough():
            return False
        found = self._collect()
        if not found and not self._codes:
            return False
        self._reply(found)
        return True

    def expire(self) -> None:
        self._reply(self._collect())

    def _has_enough(self) -> bool:
        """Whether `min_bytes` lie ahead; less is not acquired before the wait is over."""
        missing = min(self._request.min_bytes, self._max_bytes)
        for share in self._shares.values():
            if missing <= 1:
                break
            try:
                missing -= share.log.bytes_ahead(share.machine.next_offset, self._upto(share.log))
            except StorageFault:  # the read reports it
                return True
        return missing <= 1

    def _upto(self, log: Partition) -> int:
        is_committed = self._broker.shares.leader.terms_of(self._session.key[0]).read_committed
        return log.last_stable_offset if is_committed else log.high_watermark

    def _collect(self) -> dict[Place, _Found]:
        """Acquire records for the member, unless it is gone."""
        found: dict[Place, _Found] = {}
        if not self._broker.shares.leader.sessions.is_open(self._session):
            return found
        bytes_left, records_left = self._max_bytes, self._request.max_records
        for place, share in self._shares.items():
            if bytes_left <= 0 or records_left <= 0:
                break
            one = self._read(place, share, bytes_left, records_left, is_first=not found)
            if one is not None:
                found[place] = one
                bytes_left -= len(one.records)
                records_left -= sum(each.size for each in one.acquired)
        return found

    def _read(
        self, place: Place, share: OpenShare, most_bytes: int, most_records: int, *, is_first: bool
    ) -> _Found | None:
        leader = self._broker.shares.leader
        found = leader.find(share.key)
        if found is not share:
            if isinstance(found, ErrorCode) and found not in _SILENT:
                self._codes[place] = found
            return None
        try:
            return self._acquire(share, most_bytes, most_records, is_first=is_first)
        except StorageFault as fault:
            code = code_of_fault(share.log, fault)
            if code not in _SILENT:
                self._codes[place] = code
            return None

    def _acquire(self, share: OpenShare, most_bytes: int, most_records: int, *, is_first: bool) -> _Found | None:
        request, leader, machine = self._request, self._broker.shares.leader, share.machine
        terms = leader.terms_of(self._session.key[0])
        limits = limits_of(terms)
        wish = Wish(most_records, request.batch_size, request.share_acquire_mode == STRICT)
        machine.start_at(share.log.log_start_offset)
        may_be_unread = self._context.takes_unread
        for _ in range(MOST_READS):
            offset, upto = machine.next_offset, self._upto(share.log)
            if offset >= upto or not machine.may_acquire(limits):
                return None
            wanted = WantedBatches(offset, machine.reach(most_records), most_bytes, upto, is_first)
            batches = whole_batches.read(share.log, wanted, may_be_unread=may_be_unread)
            heads = batches.heads
            if not heads:
                return None
            aborted = _aborted(share.log, heads, offset, upto) if terms.read_committed else ()
            fetched = Fetched(offset, [(one.base_offset, one.last_offset) for one in heads], aborted)
            acquired = machine.acquire(self._session.key[1], fetched, wish, limits, leader.now)
            if acquired:
                leader.acquired(share)
                return _Found(batches.part(acquired[0].first, acquired[-1].last), acquired)
            if machine.next_offset == offset:
                return None
        return None

    # -- waiting

    def _wait(self) -> bool:
        """Wait for more, unless too many requests wait already."""
        broker = self._broker
        waiting = broker.waiting
        wait = Wait(self.check, self.expire, self._left, len(self._session.places))
        if not waiting.has_room_for(wait):
            return False
        for share in self._shares.values():
            watch = _Watch(wait)
            share.waits[wait] = None
            waiting.watch(share.log, watch)
            self._watches.append((share, watch))
        waiting.add(wait, self._request.max_wait_ms)
        self._context.on_abandoned = lambda: waiting.remove(wait)
        return True

    def _left(self, wait: Wait) -> None:
        for share, watch in self._watches:
            share.waits.pop(wait, None)
            self._broker.waiting.unwatch(share.log, watch)
        self._watches.clear()

    # -- the response

    def _reply(self, found: dict[Place, _Found]) -> None:
        request, session, context = self._request, self._session, self._context
        self._is_answered = True
        session.serve_last(found)
        is_opening = request.share_session_epoch == OPEN_EPOCH
        places = dict.fromkeys((*(session.places if is_opening else ()), *self._acknowledged, *self._codes, *found))
        topics: dict[bytes, ShareFetchableTopic] = {}
        endpoints: list[Endpoint] = []
        for place in places:
            part = self._part(place, found.get(place))
            topics.setdefault(place[0], ShareFetchableTopic(topic_id=place[0])).partitions.append(part)
            if {part.error_code, part.acknowledge_error_code} & MISPLACED:
                part.current_leader = leader_of(self._broker, context, place, endpoints)
        if context.throttle is not None:
            context.throttle.charge_fetch(sum(len(one.records) for one in found.values()))
        context.reply(
            ShareFetchResponse(
                acquisition_lock_timeout_ms=self._broker.shares.leader.terms_of(session.key[0]).record_lock_ms,
                responses=list(topics.values()),
                node_endpoints=nodes_of(endpoints),
            )
        )

    def _part(self, place: Place, found: _Found | None) -> SharePartitionData:
        code = self._codes.get(place, ErrorCode.NONE)
        told = self._acknowledged.get(place, _NOTHING)
        acquired = found.acquired if found is not None else ()
        return SharePartitionData(
            partition_index=place[1],
            error_code=code,
            acknowledge_error_code=told.code,
            acknowledge_error_message=told.reason,
            records=found.records if found is not None else b"",
            acquired_records=[
                AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
                for first, last, count in acquired
            ],
        )


_NOTHING: Final = Persisted(ErrorCode.NONE)


def _nothing() -> None:
    """What the member had acquired is released meanwhile."""


def _aborted(log: Partition, heads: Sequence[Head], offset: int, upto: int) -> list[tuple[int, int]]:
    """The batches that belong to aborted transactions."""
    ended = log.aborted.overlapping(offset, upto)
    return [
        (head.base_offset, head.last_offset)
        for head in heads
        if head.attributes & TRANSACTIONAL_BIT
        and not head.is_control
        and any(
            one.producer_id == head.producer_id and one.first_offset <= head.base_offset <= one.last_offset
            for one in ended
        )
    ]
