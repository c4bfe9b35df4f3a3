"""One broker among those that share a store: it follows the journal, asks after the others, fences those that are gone, and keeps its lease.

It has no event loop: the store, other brokers and timers call back. Its findings go to `MembersEvents`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

from horolog.base.readable import counted
from horolog.broker.base.answers import Answer, run
from horolog.broker.base.own_thread import Later
from horolog.broker.bucket.balance import heirs
from horolog.broker.bucket.bucket_entries import Suspected, SuspicionEnded, WalEnded
from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.detection import READS_EVERY_S, Detection, FenceOff
from horolog.broker.bucket.lease import Lease
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.wal_fencing import FenceGivenUp, fence
from horolog.broker.cluster.changes import Decide, Done, Outcome
from horolog.broker.cluster.cluster_state import ClusterState, Entry
from horolog.broker.on_record.cluster_errors import ClusterError, not_registered, still_running
from horolog.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

TICK_S = 0.1
PING_EVERY_S = 0.5
CUT_OFF_LEASES = 2
"""After so many leases without the store, others that were without it as long say so."""
CUT_OFF_TICKS = 10
"""A process that stood still has not heard from the store for long, and hears from it in one of so many turns."""
APPLIED_WITHIN_S = 0.5
"""How long a change waits for the other brokers to apply it."""


class Pong(NamedTuple):
    """The answer to a ping, once the journal is applied as far as the sender has read it, or after `APPLIED_WITHIN_S`."""

    wal: Wal
    silent_s: float
    """For how long the sender has not heard from the store."""


class _Reading(NamedTuple):
    """A caller that waits until the journal is applied as it was at a moment."""

    asked_s: float
    done: Callable[[None], None]


class _Readings:
    """Those that wait, each of which is called back once."""

    def __init__(self) -> None:
        self._waiting: list[_Reading] = []

    def add(self, reading: _Reading) -> None:
        self._waiting.append(reading)

    def applied(self, began_s: float) -> None:
        """The journal is applied as it was at that moment."""
        for one in [one for one in self._waiting if one.asked_s <= began_s]:
            self.end(one)

    def end(self, reading: _Reading) -> None:
        if reading in self._waiting:
            self._waiting.remove(reading)
            reading.done(None)


class _LeaseLog:
    """Logs that the lease has ended, and that it holds again."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._refuses: bool | None = None
        """None until the lease holds first."""

    def look(self) -> None:
        refuses = not self._lease.holds()
        if self._refuses is None and refuses:
            return
        if refuses and not self._refuses:
            unheard_s = self._lease.seconds - self._lease.left_s()
            log.warning("clients are refused: this broker has not heard from the store for %.1f s", unheard_s)
        elif self._refuses and not refuses:
            log.warning("clients are served again: the store answers this broker")
        self._refuses = refuses


class Links(Protocol):
    """The way to the other brokers."""

    def ping(self, node: int, number: int, done: Callable[[Pong | None], None]) -> None:
        """Ask after a broker; the journal was read up to this entry. `done` gets None if no answer comes."""
        ...


class MembersEvents(Protocol):
    """How a broker acts on what its watch has found."""

    def members_are(self, nodes: frozenset[int]) -> None:
        """These are the members."""
        ...

    def fenced(self, successor: Wal | None) -> None:
        """The broker is not a member any more; `successor` is another process with its number."""
        ...


class StoreSurroundings(NamedTuple):
    """How a broker reaches the store and the others, and its timer."""

    store: StoreAccess
    links: Links
    later: Later
    new_nonce: Callable[[], bytes]


class ChangingCluster(Protocol):
    """The state of the cluster, and the way to change it: `cluster.change_driver`."""

    @property
    def state(self) -> ClusterState: ...
    def make(self, decide: Decide, done: Done, *, waits: bool = True) -> None: ...
    def catch_up(self) -> None: ...


class MembersWatch:
    """The other brokers as one of them knows them."""

    def __init__(
        self,
        me: Wal,
        around: StoreSurroundings,
        lease: Lease,
        peers_timeout_s: float,
    ) -> None:
        self.me = me
        self.lease = lease
        self._store, self._links, self._later, self._new_nonce = around
        self._detection = Detection(me, peers_timeout_s)
        self._cluster: ChangingCluster
        self._events: MembersEvents
        self._is_over = False
        self._members: frozenset[int] = frozenset()
        self._lease_log = _LeaseLog(lease)
        self._cut_off_ticks = 0
        self._read_s = self._pinged_s = self._followed_s = float("-inf")
        self._readings = _Readings()
        self._under_way: set[Entry | FenceOff] = set()
        self._unanswered: set[int] = set()

    def __repr__(self) -> str:
        return f"<MembersWatch of {self.me}: {sorted(self._members)}{', over' if self._is_over else ''}>"

    @property
    def state(self) -> BucketState:
        state = self._cluster.state
        assert isinstance(state, BucketState)
        return state

    @property
    def silent_s(self) -> float:
        """For how long the store has not answered a reading of the journal."""
        return max(0.0, self.lease.now() - self._read_s - self._follow_every_s)

    @property
    def is_cut_off(self) -> bool:
        """Whether the store answers others, and has not answered this broker for so long that they have taken its partitions, or are about to."""
        now = self.lease.now()
        return self.silent_s >= CUT_OFF_LEASES * self.lease.seconds and self._detection.hears_of_store(now)

    @property
    def _follow_every_s(self) -> float:
        return self.lease.seconds / 3

    def begin(self, cluster: ChangingCluster, events: MembersEvents) -> None:
        """Go on from the entry that has registered this broker, which is the newest that the state has."""
        self._cluster, self._events = cluster, events
        self._read_s = self.lease.now()
        self.applied()
        self._tick()

    def end(self) -> None:
        """Ask nothing more, and answer no client as a leader."""
        self._is_over = True
        self.lease.end()

    def journal_read(self, began_s: float) -> None:
        """All entries that there were at that moment are applied: they do not fence this broker, or `applied` has ended its lease."""
        self._read_s = self.lease.now()
        self.lease.proved(began_s)
        self._readings.applied(began_s)

    def wal_ended(self) -> None:
        """The WAL of this broker has a fence, or gets one when the broker registers again: the journal may not say so yet."""
        if not self._is_over:
            self.end()
            self._events.fenced(None)

    def refused(self, node: int) -> None:
        """The port of another broker refuses connections."""
        self._detection.refused(node)

    def pinged(self, number: int, done: Callable[[Pong], None]) -> None:
        """Another broker asks after this one."""
        if number > self.state.number and not self._is_over:
            self._cluster.catch_up()
        self._answer(done, number, self.lease.now() + APPLIED_WITHIN_S)

    def _answer(self, done: Callable[[Pong], None], number: int, latest_s: float) -> None:
        if number <= self.state.number or self.lease.now() >= latest_s:
            done(Pong(self.me, self.silent_s))
        else:
            self._later(TICK_S / 10, partial(self._answer, done, number, latest_s))

    def announce(self, number: int, done: Callable[[], None]) -> None:
        """The journal is written up to this entry: `done` is called once the others that answer have applied it."""
        self.applied()
        asked = [node for node in self._members if node != self.me.node and node not in self._unanswered]
        left = set(asked)

        def answered(node: int, pong: Pong | None) -> None:
            self._heard(node, pong)
            left.discard(node)
            if not left:
                done()

        for node in asked:
            self._links.ping(node, number, partial(answered, node))
        if not asked:
            done()

    def applied(self) -> None:
        """The journal is applied up to the present state. A broker that has left still names the others to its clients."""
        state = self.state
        if (members := frozenset(state.members)) != self._members:
            _log_changes(self._members, members, self.me.node)
            self._members = members
            self._events.members_are(members)
        if self._is_over:
            return
        self._detection.state_is(state, self.lease.now())
        if not state.is_member(self.me):
            self.end()
            self._events.fenced(state.wal_of(self.me.node))

    async def unregister(self, node: int) -> ClusterError | None:
        """Fence a member that an operator reports as gone, and that does not answer now; the error if it stays.

        One that has stopped or was fenced is no member any more, which is what the operator wants.
        """
        wal = self.state.wal_of(node)
        if wal is None:
            await Answer[None](self._read_anew)  # a broker that has just joined may be known to itself alone
            wal = self.state.wal_of(node)
        if wal is None:
            return None if self.state.was_member(node) else not_registered(node)
        if node == self.me.node or await Answer[Pong | None](partial(self._links.ping, node, self.state.number)):
            return still_running(node)
        await self._fence(wal, is_wanted=lambda: True)
        if self.state.is_member(wal):
            return ClusterError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the WAL of broker {node} cannot be fenced")
        return None

    def _read_anew(self, done: Callable[[None], None]) -> None:
        """Read the journal as far as it goes by now, if the store answers in time."""
        reading = _Reading(self.lease.now(), done)
        self._readings.add(reading)
        self._later(APPLIED_WITHIN_S, partial(self._readings.end, reading))
        self._cluster.catch_up()

    # -- in turns

    def _tick(self) -> None:
        if self._is_over:
            return
        now = self.lease.now()
        self._lease_log.look()
        self._cut_off_ticks = self._cut_off_ticks + 1 if self.is_cut_off else 0
        if self._cut_off_ticks >= CUT_OFF_TICKS:
            # Its Metadata is old, and producers whose requests time out ask no other broker.
            log.error("the store answers other brokers and not this one, which leaves its clients to them")
            self.wal_ended()
            return
        every_s = READS_EVERY_S if self._detection.waits_for_answer else self._follow_every_s
        if now - self._followed_s >= min(every_s, self._follow_every_s):
            self._followed_s = now
            self._cluster.catch_up()
        if now - self._pinged_s >= PING_EVERY_S:
            self._pinged_s = now
            self._ping_all()
        if self.silent_s <= 0:  # else nothing can be written
            for act in self._detection.due(now):
                self._do(act)
        self._later(TICK_S, self._tick)

    def _ping_all(self) -> None:
        for node in sorted(self._members - {self.me.node}):
            self._links.ping(node, self.state.number, partial(self._heard, node))

    def _heard(self, node: int, pong: Pong | None) -> None:
        if pong is None:
            self._unanswered.add(node)
        elif self.state.is_member(pong.wal):
            self._unanswered.discard(node)
            self._detection.heard(node, pong.silent_s, self.lease.now())

    def _do(self, act: Suspected | SuspicionEnded | FenceOff) -> None:
        """One act is under way once."""
        if act in self._under_way:
            return
        self._under_way.add(act)
        if isinstance(act, FenceOff):
            run(self._fence_off(act))
        else:
            log.warning("%s", _message_of(act))
            self._cluster.make(partial(self._decided, act), lambda _: self._under_way.discard(act), waits=False)

    def _decided(self, entry: Suspected | SuspicionEnded, state: ClusterState) -> Entry | None:
        """The entry, unless the journal has moved on so that it says nothing."""
        assert isinstance(state, BucketState)
        after = entry.applied(state)
        return entry if isinstance(after, BucketState) and after.suspicions != state.suspicions else None

    async def _fence_off(self, act: FenceOff) -> None:
        if await self._fence(act.wal, partial(self._detection.is_against, act.wal)):
            self._under_way.discard(act)

    async def _fence(self, wal: Wal, is_wanted: Callable[[], bool]) -> bool:
        """Whether it may be tried again."""
        log.warning("broker %s is gone: fencing its WAL %s", wal.node, wal)
        try:
            end = await fence(self._store, wal, self.me.node, self._new_nonce(), is_wanted)
        except FenceGivenUp as reason:
            if self.state.is_member(wal):  # else another broker has fenced it first
                log.warning("broker %s is not gone: %s", wal.node, reason)
            return True
        except FormatError as error:
            log.error("the WAL %s cannot be fenced: %s", wal, error)
            return False
        await Answer[Outcome](partial(self._cluster.make, partial(self._ended, wal, end), waits=False))
        return True

    def _ended(self, wal: Wal, end: int, state: ClusterState) -> WalEnded | None:
        assert isinstance(state, BucketState)
        if not (state.is_member(wal) and state.is_member(self.me)):
            return None
        leads = heirs(state, state.led_by(wal.node), wal.node)
        log.warning(
            "broker %s is fenced at number %s of its WAL; moving %s",
            wal.node,
            end,
            counted(len(leads), "partition"),
        )
        return WalEnded(wal, end, leads)


def _log_changes(before: frozenset[int], members: frozenset[int], me: int) -> None:
    """How the other members have changed, unless they were not known before."""
    if before:
        for node in sorted(members - before - {me}):
            log.info("broker %s has joined", node)
        for node in sorted(before - members - {me}):
            log.info("broker %s is no longer a member", node)


def _message_of(act: Suspected | SuspicionEnded) -> str:
    if isinstance(act, SuspicionEnded):
        return f"broker {act.node} is no longer suspected"
    return (
        "other brokers suspect that this broker has failed"
        if act.node == act.by
        else f"broker {act.node} is suspected to have failed"
    )
