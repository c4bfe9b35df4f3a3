"""Share partitions of the partitions that this broker leads: reads them, and has the states of their records persisted.

    closed -> opening (its state is read) -> open -> closed (the last session of its group here has ended, or the state says that another
    leader or another life of the group has begun)

A group without members may have its offsets set or deleted: who comes next reads the state again. Only share partitions that members ask
for are opened. Locks that expire wake one timer for each partition; without locks there is none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol

from horolog.base.clock import Clock
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.commit.waiting import Wait, WaitingRequests
from horolog.broker.coordination.keyed_queue import gather
from horolog.broker.coordination.timers import Timer, Timers
from horolog.broker.coordination.topic_journal import COORDINATOR_IS_AWAY
from horolog.broker.log.partition import Partition, lookups
from horolog.broker.log.storage import NotHere, StorageFault
from horolog.broker.share.partition import SharePartition
from horolog.broker.share.persister import SharePersister
from horolog.broker.share.records import SharePartitionKey
from horolog.broker.share.sessions import SessionKey, ShareSessions
from horolog.broker.share.state import StateRead, StateUpdate
from horolog.broker.share.state_batches import NO_OFFSET, StateBatch
from horolog.broker.share.terms import Acknowledgement, AcknowledgeType, Limits, Refused, StateChange
from horolog.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
MS: Final = 1_000


class ResetTerms(Protocol):
    """Where a group begins in a partition that it has not read yet: `kind` is earliest, latest or by_duration."""

    @property
    def kind(self) -> str: ...
    @property
    def before_ms(self) -> int: ...


class GroupTerms(Protocol):
    """The settings of a share group, as they are in force now."""

    @property
    def record_lock_ms(self) -> int: ...
    @property
    def delivery_count_limit(self) -> int: ...
    @property
    def max_record_locks(self) -> int: ...
    @property
    def read_committed(self) -> bool: ...
    @property
    def reset(self) -> ResetTerms: ...
    @property
    def renews(self) -> bool: ...


def limits_of(terms: GroupTerms) -> Limits:
    return Limits(terms.record_lock_ms / MS, terms.delivery_count_limit, terms.max_record_locks, terms.renews)


class OpenShare:
    """An open share partition, and the requests that wait for it."""

    __slots__ = ("is_left", "key", "leader_epoch", "log", "machine", "state_epoch", "timer", "waits", "writes")

    def __init__(
        self, key: SharePartitionKey, log: Partition, leader_epoch: int, state_epoch: int, machine: SharePartition
    ) -> None:
        self.key = key
        self.log = log
        self.leader_epoch = leader_epoch
        self.state_epoch = state_epoch
        self.machine = machine
        self.timer = Timer(_nothing)
        self.waits: dict[Wait, None] = {}
        self.writes = 0
        """Changes of its state that are not persisted yet."""
        self.is_left = False
        """Whether the last session of its group has ended."""

    def __repr__(self) -> str:
        return f"<OpenShare {self.key.group} {self.log!r} {self.machine!r}>"


Opened = Callable[[OpenShare | ErrorCode], None]


class Persisted(NamedTuple):
    """The outcome of an acknowledgement."""

    code: ErrorCode
    reason: str | None = None


class ShareLeader:
    """All open share partitions, and the sessions of their readers."""

    def __init__(
        self,
        cluster: Cluster,
        persister: SharePersister,
        waiting: WaitingRequests,
        timers: Timers,
        clock: Clock,
        terms_of: Callable[[str], GroupTerms],
    ) -> None:
        self._cluster = cluster
        self._persister = persister
        self._waiting = waiting
        self._timers = timers
        self._clock = clock
        self.terms_of = terms_of
        self.sessions = ShareSessions()
        self._open: dict[SharePartitionKey, OpenShare] = {}
        self._opening: dict[SharePartitionKey, list[Opened]] = {}
        self.acknowledged = dict.fromkeys(AcknowledgeType, 0)
        """How many records were acknowledged in which way."""

    def __repr__(self) -> str:
        return f"<ShareLeader of {len(self._open)} share partitions, {self.sessions!r}>"

    @property
    def in_flight(self) -> int:
        """Records that are acquired, or wait to be delivered again."""
        return sum(one.machine.in_flight for one in self._open.values())

    @property
    def now(self) -> float:
        return self._clock.monotonic()

    # -- open and closed

    def find(self, key: SharePartitionKey) -> OpenShare | ErrorCode:
        """An open share partition; LEADER_NOT_AVAILABLE if it has to be opened."""
        topic = self._cluster.by_id.get(key.topic_id)
        log = ErrorCode.UNKNOWN_TOPIC_ID if topic is None else topic.find(key.partition)
        known = self._open.get(key)
        if known is not None and (known.log is not log or known.leader_epoch != known.log.leader_epoch):
            self._close(known)
            known = None
        if isinstance(log, ErrorCode):
            return log
        if log.condition.fault is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.LEADER_NOT_AVAILABLE if known is None else known

    def open(self, key: SharePartitionKey, done: Opened) -> None:
        """Open a share partition, unless it is open; `done` may be called at once."""
        found = self.find(key)
        if found is not ErrorCode.LEADER_NOT_AVAILABLE:
            done(found)
            return
        if key in self._opening:
            self._opening[key].append(done)
            return
        self._opening[key] = [done]
        log = self._cluster.by_id[key.topic_id].find(key.partition)
        assert isinstance(log, Partition), "it was found above"
        self._persister.read(key, log.leader_epoch, partial(self._read, key, log, log.leader_epoch))

    def _read(self, key: SharePartitionKey, log: Partition, leader_epoch: int, read: StateRead | ErrorCode) -> None:
        waiting = self._opening.pop(key)
        found: OpenShare | ErrorCode
        if isinstance(read, ErrorCode):
            found = _code_for_member(read)
        else:
            try:
                found = self._opened(key, log, leader_epoch, read)
            except StorageFault as fault:
                found = code_of_fault(log, fault)
        for done in waiting:
            done(found)

    def _opened(self, key: SharePartitionKey, log: Partition, leader_epoch: int, read: StateRead) -> OpenShare:
        start = read.start_offset
        if start == NO_OFFSET:
            start = self._first_offset(log, self.terms_of(key.group).reset)
        machine = SharePartition(start, read.batches)
        machine.start_at(log.log_start_offset)
        share = self._open[key] = OpenShare(key, log, leader_epoch, read.state_epoch, machine)
        share.timer.action = partial(self._expire, share)
        return share

    def _first_offset(self, log: Partition, reset: ResetTerms) -> int:
        if reset.kind == EARLIEST:
            return log.log_start_offset
        if reset.kind == LATEST:
            return log.high_watermark
        found = lookups.first_at_or_after(log, self._clock.wall_ms() - reset.before_ms)
        return log.high_watermark if found is None else found.offset

    def _close(self, share: OpenShare) -> None:
        """Its members open it again, here or where it is led now."""
        if self._open.get(share.key) is share:
            del self._open[share.key]
            self._timers.stop(share.timer)
            self._look_again(share)

    # -- states of records

    def acknowledge(
        self,
        key: SharePartitionKey,
        member: str,
        acknowledgements: Sequence[Acknowledgement],
        done: Callable[[Persisted], None],
    ) -> None:
        """`done` is called once the acknowledgements are persisted, or refused."""
        share = self.find(key)
        if isinstance(share, ErrorCode):
            unopened = share is ErrorCode.LEADER_NOT_AVAILABLE
            done(Persisted(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if unopened else share))
            return
        change = share.machine.acknowledge(member, acknowledgements, limits_of(self.terms_of(key.group)), self.now)
        if isinstance(change, Refused):
            done(Persisted(change.code, change.reason))
            return
        self._arm(share)
        for kind, count in change.acknowledged:
            self.acknowledged[kind] += count
        self._persist(share, change, done)

    def _release(self, key: SharePartitionKey, member: str, done: Callable[[Persisted], None]) -> None:
        """Free what a member has acquired: others get it."""
        share = self.find(key)
        if isinstance(share, ErrorCode):
            done(Persisted(share))
            return
        change = share.machine.release(member, limits_of(self.terms_of(key.group)))
        self._persist(share, change, done)

    def close_session(self, key: SessionKey, then: Callable[[], None]) -> None:
        """Close a session if it is open, and go on once what its member had acquired is free."""
        session = self.sessions.close(key)
        group, member = key
        keys = [SharePartitionKey(group, *place) for place in session.places] if session is not None else []

        def released(_: object) -> None:
            self._leave(group)
            then()

        gather([partial(self._release, each, member) for each in keys], released)

    def _leave(self, group: str) -> None:
        """Close the share partitions of a group whose last session has ended, once their changes are persisted."""
        if not self.sessions.has(group):
            for share in [one for one in self._open.values() if one.key.group == group]:
                share.is_left = True
                self._close_if_left(share)

    def _close_if_left(self, share: OpenShare) -> None:
        if share.is_left and not share.writes:
            share.is_left = False
            if not self.sessions.has(share.key.group):
                self._close(share)

    def connection_lost(self, connection: object) -> None:
        for key in self.sessions.of_connection(connection):
            self.close_session(key, _nothing)

    def _persist(self, share: OpenShare, change: StateChange, done: Callable[[Persisted], None]) -> None:
        if not change.batches:
            done(Persisted(ErrorCode.NONE))
            return

        def written(code: ErrorCode) -> None:
            if code:
                share.machine.failed(change)
                self._arm(share)
                self._close_if_fenced(share, code)
                done(Persisted(_code_for_member(code)))
                return
            share.machine.written(change)
            done(Persisted(ErrorCode.NONE))
            self._wake(share)

        self._write(share, change.batches, written)

    def _write(self, share: OpenShare, batches: Sequence[StateBatch], done: Callable[[ErrorCode], None]) -> None:
        machine = share.machine
        written = StateUpdate(share.state_epoch, share.leader_epoch, machine.start, machine.complete_count, batches)
        share.writes += 1

        def finish(code: ErrorCode) -> None:
            share.writes -= 1
            done(code)
            self._close_if_left(share)

        self._persister.write(share.key, written, finish)

    def _close_if_fenced(self, share: OpenShare, code: ErrorCode) -> None:
        if code in _FENCED:
            self._close(share)

    # -- locks, and requests that wait

    def acquired(self, share: OpenShare) -> None:
        """Records were acquired: their locks expire."""
        self._arm(share)

    def _arm(self, share: OpenShare) -> None:
        deadline = share.machine.next_deadline
        if deadline is not None and deadline < share.timer.deadline:
            self._timers.start(share.timer, max(1, round((deadline - self.now) * MS)))

    def _expire(self, share: OpenShare) -> None:
        batches = share.machine.expire(self.now, limits_of(self.terms_of(share.key.group)))
        self._arm(share)
        if batches:
            self._write(share, batches, lambda code: self._close_if_fenced(share, code))
            self._wake(share)

    def _wake(self, share: OpenShare) -> None:
        """Serve the requests that wait, as long as there is something for them."""
        machine, limits = share.machine, limits_of(self.terms_of(share.key.group))
        self._look_again(share, lambda: machine.next_offset < share.log.high_watermark and machine.may_acquire(limits))

    def _look_again(self, share: OpenShare, goes_on: Callable[[], bool] = lambda: True) -> None:
        for wait in list(share.waits):
            if not goes_on():
                return
            if wait.timer is not None and wait.check():
                self._waiting.remove(wait)


_FENCED: Final = frozenset(
    {
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""The state was deleted or begun again, or another leader has read it: this broker knows an older one."""


def _code_for_member(code: ErrorCode) -> ErrorCode:
    """The persister's error as members of the group get it."""
    if code in {ErrorCode.FENCED_STATE_EPOCH, ErrorCode.FENCED_LEADER_EPOCH}:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if code in COORDINATOR_IS_AWAY:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else ErrorCode.UNKNOWN_SERVER_ERROR


def code_of_fault(partition: Partition, fault: StorageFault) -> ErrorCode:
    """The code for a member whose partition cannot be read. Bytes on their way here from a store are no error: the member asks again."""
    if isinstance(fault, NotHere) and not fault.has_failed:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    log.error("%s: cannot be read for a share group: %s", partition, fault)
    return ErrorCode.KAFKA_STORAGE_ERROR


def _nothing() -> None:
    """A timer's action until its share partition is open, and what follows when a connection has ended."""
