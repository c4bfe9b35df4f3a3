"""A broker that shares a store with others: it registers, then it is built of the parts that go with a store.

    OverStore.register -> Broker(..., process) -> OverStore.attach(broker) -> broker.start() -> ... -> OverStore.leave() -> broker.stop()

`store_run` does so, again for a broker that is fenced.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from horolog.base.readable import counted
from horolog.broker.base.answers import Answer, run
from horolog.broker.bucket.balance import surplus
from horolog.broker.bucket.bucket_entries import BrokerRegistered, TailsCovered
from horolog.broker.bucket.bucket_membership import BucketMembership
from horolog.broker.bucket.bucket_state import ClusterMember, MemberListener
from horolog.broker.bucket.followed_partitions import FollowedPartitions, FollowingMeans
from horolog.broker.bucket.handing import Handing
from horolog.broker.bucket.lease import Lease
from horolog.broker.bucket.led_segments import DAY_MS, HOUR_MS, SegmentCare
from horolog.broker.bucket.log_side import CACHE_BYTES, Around, BucketLog
from horolog.broker.bucket.manifest_reader import StoredManifests
from horolog.broker.bucket.members_watch import MembersWatch, StoreSurroundings
from horolog.broker.bucket.metered_requests import MeteredRequests
from horolog.broker.bucket.names import NONCE_SIZE, Wal
from horolog.broker.bucket.rack_aware_selector import RackAwareSelector
from horolog.broker.bucket.registration import Joined, Registration, at_one_address
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.shipped_safety import ShippedSafety, ShippingLimits
from horolog.broker.bucket.store_access import Pause, StoreAccess
from horolog.broker.bucket.store_clock import StoreClock
from horolog.broker.bucket.store_cluster import StoreCluster
from horolog.broker.bucket.store_hand_overs import StoreHandOvers
from horolog.broker.bucket.store_journal import StoreJournal
from horolog.broker.bucket.store_upkeep import LetGo
from horolog.broker.bucket.tcp_peers import PeerLinks, TcpPeers
from horolog.broker.config.listeners import advertised_addresses
from horolog.broker.config.store_settings import RACK_AWARE_SELECTOR
from horolog.broker.handlers import HANDLERS, broker_heartbeat, held_produce, unregister_broker
from horolog.broker.handlers.answered_in_time import answered_in_time
from horolog.broker.handlers.held_fetch import holding
from horolog.broker.handlers.leased import leased
from horolog.broker.log.manager import whole
from horolog.broker.security.peer_access import peer_access
from horolog.broker.server.process import BrokerProcess, new_listener
from horolog.broker.server.store_report import Reported, StoreReport
from horolog.protocol.apis import ApiKey

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from horolog.base.clock import Clock
    from horolog.broker.base.metrics import Metrics
    from horolog.broker.bucket.bucket_state import BucketState
    from horolog.broker.bucket.fence import Fence
    from horolog.broker.bucket.seams import Lineage
    from horolog.broker.cluster.cluster_state import Lead
    from horolog.broker.cluster.membership import Membership
    from horolog.broker.config.settings import Settings
    from horolog.broker.handlers import HandlerFunction
    from horolog.broker.log.manager import LogManager
    from horolog.broker.log.partition import Partition
    from horolog.broker.observability.http import MetricsServer
    from horolog.broker.on_record.cluster_file import ClusterFile, Place
    from horolog.broker.server import app
    from horolog.stores.requests import StoreRequests

log = logging.getLogger(__name__)


NO_PORTS: Mapping[str, int] = MappingProxyType({})
BALANCES_EVERY_S = 5.0
MOVES_AT_ONCE = 50
MERGES_WITHIN_S = 5.0
"""How long partitions wait for their move until small objects are merged and removed, which the next leader would read while clients wait."""
HISTORY_MARGIN_MS = 300_000
"""A restore reads marks and manifests that were made some minutes before its moment."""
TAILS_WITHIN_S = 2.0
"""How long partitions wait for their move until segments cover what the next leader would copy while clients wait."""
PARTING_S = 0.2
"""How long a broker that has left still says who leads now: producers that waited for that ask it for Metadata."""
SEGMENT_READERS = 2
REMOVES_WITHIN_S = 2.0
"""How long a broker that has left removes the small objects that it has merged."""
ONE_ADDRESS = (
    "broker %s advertises %s, too: requests for one of the two reach the other, unless that broker has ended; set advertised.listeners"
    " of each to an address of its own"
)


class StoreUse(NamedTuple):
    """How a broker uses its store."""

    shipping: ShippingLimits = ShippingLimits(250, 4 * 1024 * 1024, 64 * 1024 * 1024)
    lease_ms: int = 2_000
    peers_timeout_ms: int = 2_000
    cache_bytes: int = CACHE_BYTES
    segment_ms: int = HOUR_MS
    delete_delay_ms: int = HOUR_MS
    history_ms: int = DAY_MS
    clock: StoreClock | None = None
    """The clock for ages, if the store's is known; without one the broker's own counts."""
    balances: bool = True
    """Whether partitions move to brokers that lead fewer."""


def kept_ms(history_ms: int) -> int:
    """How long objects stay in the bucket so that a restore can go back so far."""
    return history_ms + HISTORY_MARGIN_MS if history_ms else 0


def shipping_of(settings: Settings) -> ShippingLimits:
    return ShippingLimits(
        settings.horolog_store_flush_ms, settings.horolog_store_flush_bytes, settings.horolog_store_unsafe_bytes
    )


def use_of(settings: Settings) -> StoreUse:
    """How a broker with these settings uses its store."""
    return StoreUse(
        shipping_of(settings),
        settings.horolog_store_lease_ms,
        settings.horolog_peers_timeout_ms,
        settings.horolog_store_cache_bytes,
        settings.horolog_store_segment_ms,
        settings.horolog_store_delete_delay_ms,
        settings.horolog_store_history_ms,
    )


class StoppedEarly(Exception):
    """The broker is to end before it serves."""


class OverStore:
    """One broker over a store, from its registration to its end. `ended` is set when it is fenced, or is to stop."""

    def __init__(
        self,
        settings: Settings,
        store: StoreRequests,
        of_store: StoreUse,
        loop: asyncio.AbstractEventLoop,
        ports: Mapping[str, int] = NO_PORTS,
    ) -> None:
        """`ports` are the advertised ones of listeners whose ports the settings do not say."""
        self.ended = asyncio.Event()
        self.is_registering = False
        self.is_fenced = False
        self._has_left = False
        self.successor: ClusterMember | None = None
        """Another process that has registered with this broker's number, which has fenced this one."""
        self._settings = settings
        self._ports = ports
        self._of_store = of_store
        self._loop = loop
        self._lease = Lease(of_store.lease_ms / 1000)
        self._requests = MeteredRequests(store, self._lease.now)
        self._access = StoreAccess(self._requests, _pause_of(self._loop))
        self.report = StoreReport(
            self._requests, self._access, self._lease, lambda: 0 if of_store.clock is None else of_store.clock.offset_ms
        )
        self._journal = StoreJournal(self._access, new_nonce, self._lease.now)
        self._access_to_peers = peer_access(settings)
        self._peers = TcpPeers(self._address, loop, self._access_to_peers)
        self._safety: ShippedSafety
        self._cluster: StoreCluster
        self._joined: Joined
        self._watch: MembersWatch
        self._log_side: BucketLog
        self._handing: Handing
        self._held: held_produce.HeldProduce
        self._balancing: asyncio.TimerHandle
        self._segment_readers = ThreadPoolExecutor(SEGMENT_READERS, "segments")
        """Apart from the threads in which the broker syncs: a sync may take seconds."""

    def __repr__(self) -> str:
        return f"<OverStore of {self._settings.node_id}, {self._access!r}>"

    @property
    def wal(self) -> Wal:
        """The WAL of this broker, once it has registered."""
        return self._joined.wal

    async def register(
        self, known_dead: Wal | None = None, check: Callable[[str], None] = lambda _: None
    ) -> BrokerProcess:
        """Become a member, unless `check` refuses the id of the cluster by an exception.

        Raises TwoOfOneNumber, FormatError, and StoppedEarly if `ended` is set meanwhile: then it is no member.
        """
        registration = Registration(self._access, self._journal, new_nonce, self._probe)
        cluster_id = await _awaited(partial(registration.found, _new_cluster_id()))
        check(cluster_id)
        entry = BrokerRegistered(
            self._settings.node_id,
            socket.gethostname(),
            _listeners(self._settings, self._ports),
            self._settings.broker_rack,
        )
        self.is_registering = True
        joined = await _awaited(partial(registration.register, entry, known_dead, lambda: not self.ended.is_set()))
        self.is_registering = False
        if joined is None:
            raise StoppedEarly
        self._joined = joined

        def wal_of(node: int) -> Wal | None:
            return self._state.wal_of(node)

        around = StoreSurroundings(self._access, PeerLinks(self._peers, wal_of), self._loop.call_later, new_nonce)
        timeout_s = self._of_store.peers_timeout_ms / 1000
        self._watch = MembersWatch(self._joined.wal, around, self._lease, timeout_s)
        self._journal.read = self.report.reading(self._watch.journal_read)
        self._peers.refused = self._watch.refused
        log.info("broker %s has joined cluster %s: its WAL is %s", entry.node, cluster_id, self._joined.wal)
        for other, address in at_one_address(self._joined.state, entry.node):
            log.warning(ONE_ADDRESS, other, address)
        return self._process(cluster_id)

    def _process(self, cluster_id: str) -> BrokerProcess:
        async def begin_http(server: MetricsServer, address: tuple[str, int]) -> None:
            await server.start(*address)

        return BrokerProcess(
            whole(self._settings.node_id),
            1,
            partial(self._membership, cluster_id),
            self._peers,
            new_listener,
            lambda *_: (),
            begin_http,
            new_safety=self._new_safety,
            partitions=ShippedPartition,
            hand_overs=StoreHandOvers,
            new_cluster=partial(self._new_cluster, cluster_id),
            handlers={
                **HANDLERS,
                ApiKey.BROKER_HEARTBEAT: broker_heartbeat.handler_of(self._watch),
                ApiKey.UNREGISTER_BROKER: unregister_broker.handler_of(self._watch),
            },
            address_of=self._advertised,
            rack_of=self._rack,
            drains=lambda: self._has_left,
            ages=lambda clock: self._of_store.clock or clock,
            store_figures=self.report.figures,
        )

    def _membership(self, cluster_id: str, _logs: LogManager, _file: ClusterFile) -> BucketMembership:
        return BucketMembership(
            cluster_id, self._joined, self._journal, self._watch, self._loop.call_later, self._fenced
        )

    def _new_cluster(
        self,
        cluster_id: str,
        _of_folder: str,
        settings: Settings,
        logs: LogManager,
        file: ClusterFile,
        membership: Membership,
    ) -> StoreCluster:
        assert isinstance(membership, BucketMembership)
        self._cluster = StoreCluster(cluster_id, settings, logs, file, membership)
        return self._cluster

    def _new_safety(
        self,
        loop: asyncio.AbstractEventLoop,
        _disk: Executor,
        _metrics: Metrics,
        _clock: Clock,
        shown: Callable[[Iterable[Partition]], None],
    ) -> ShippedSafety:
        self._safety = ShippedSafety(loop, lambda: self._of_store.shipping, shown, self._lease.now)
        return self._safety

    def attach(self, broker: app.Broker) -> None:
        """Give a broker that is built, and not started, the parts that stand between its own."""
        care = SegmentCare(
            lambda: self._of_store.segment_ms,
            lambda: self._of_store.delete_delay_ms,
            partial(_off_loop, self._loop, self._segment_readers),
            lambda: kept_ms(self._of_store.history_ms),
        )
        around = Around(self._loop, broker.clock, new_nonce, lambda: self._of_store.cache_bytes, care, self._let_go())
        self._log_side = BucketLog(around, self._access, broker.logs, self._safety, self)
        self._log_side.begin(self._joined.wal)
        self._cluster.lead_by(self._log_side, self._lease, self._loop.call_later, self.report.all_served)
        self.report.begin(Reported(lambda: broker.settings, self._safety, self._cluster, self._log_side))
        broker.settings_watchers.append(self._take)
        if broker.settings.replica_selector_class == RACK_AWARE_SELECTOR:
            broker.placement.selector = self._selector(broker)
        passing = self._cluster.passing
        self._handing = Handing(self._joined.wal, self._cluster.changes, self._log_side, self._cluster, passing)
        assert isinstance(broker.hand_overs, StoreHandOvers)
        broker.hand_overs.handing = self._handing
        self._balancing = self._loop.call_later(BALANCES_EVERY_S, self._balance)
        most_bytes = broker.limits.memory.requests.limit_bytes * held_produce.SHARE_OF_MEMORY
        self._held = held_produce.HeldProduce(passing.places, most_bytes)
        passing.changed = self._held.look
        allowed = broker.dispatcher.gate

        def timed(key: ApiKey, handle: HandlerFunction) -> HandlerFunction:
            return allowed(key, answered_in_time(key, handle))

        gate = self._held.gate(holding(self._cluster.is_opening, timed))
        broker.dispatcher.go_by(leased(self._lease, gate))

    def _selector(self, broker: app.Broker) -> RackAwareSelector:
        means = FollowingMeans(
            StoredManifests(self._access),
            self._log_side.metas,
            broker.logs.resources,
            broker.waiting.changed,
            self._lease.now,
        )
        followed = self.report.followed = FollowedPartitions(means)
        newest = self._log_side.of_bucket.manifests.newest
        node, rack = self._joined.wal.node, self._settings.broker_rack
        return RackAwareSelector(node, rack, lambda: self._state, newest, followed, self._lease.now)

    def _take(self, settings: Settings) -> None:
        """Use limits that were changed while running."""
        now = use_of(settings)
        self._of_store = self._of_store._replace(
            shipping=now.shipping,
            cache_bytes=now.cache_bytes,
            segment_ms=now.segment_ms,
            delete_delay_ms=now.delete_delay_ms,
            history_ms=now.history_ms,
        )

    def _balance(self) -> None:
        """Give away partitions beyond this broker's share, while all is quiet."""
        self._balancing = self._loop.call_later(BALANCES_EVERY_S, self._balance)
        state = self._state
        stays = state.suspicions or self._handing.moves or not self._of_store.balances
        leads = {} if stays else surplus(state, self._joined.wal.node, MOVES_AT_ONCE)
        if leads:
            log.info("moving %s to brokers that lead fewer", counted(len(leads), "partition"))
            run(self._give(leads))

    async def _give(self, leads: Mapping[Place, Lead]) -> None:
        await self._log_side.tails.shorten(leads, TAILS_WITHIN_S)
        await _merged(self._log_side)
        error = await self._handing.give(leads)
        if error is not None:
            log.warning("partitions could not be moved to other brokers: %s", error.message)

    async def leave(self) -> None:
        """Give all partitions to others; before the broker stops. Without that, as when it is fenced, nothing more becomes safe here."""
        self._balancing.cancel()
        try:
            if not (self.is_fenced or self._access.fault):
                mine = self._state.led_by(self._joined.wal.node)
                await _awaited(partial(self._log_side.tails.shorten, mine, TAILS_WITHIN_S))
                await _awaited(partial(_merged, self._log_side))
            self._watch.end()
            if not self.is_fenced:
                await _awaited(self._handing.leave)
                self._has_left = True
                parting_s = PARTING_S if self._held.has_held else 0.0
                await asyncio.gather(_awaited(partial(_removed, self._log_side)), asyncio.sleep(parting_s))
        finally:
            self._log_side.stop(is_fenced=self.is_fenced)
            self._segment_readers.shutdown(cancel_futures=True)

    async def withdraw(self) -> None:
        """Be no member any more after a start that has failed; the broker, if one was built, has stopped. Raises FormatError."""
        self._watch.end()
        access = StoreAccess(self._requests, _pause_of(self._loop))  # that of the broker may be closed
        registration = Registration(access, StoreJournal(access, new_nonce), new_nonce, self._probe)
        await _awaited(partial(registration.withdraw, self._joined))

    # -- what the log's half reports

    def fenced(self, fence: Fence | None) -> None:  # noqa: ARG002 - the journal names its author
        self._watch.wal_ended()

    def proof_of_life(self, sent_s: float) -> None:
        self._lease.proved(sent_s)

    def lineages(self) -> Mapping[Place, Lineage]:
        return self._state.lineages

    def _let_go(self) -> LetGo:
        """How the log's half has the cluster let go of objects."""
        me = self._joined.wal.node
        return LetGo(
            lambda epochs: self._cluster.changes.make(lambda _: TailsCovered(epochs), lambda _: None),
            lambda wals: self._state.spent(wals) if self._state.is_first(me) else (),
            lambda topic_ids: self._state.gone(topic_ids) if self._state.is_first(me) else (),
        )

    # -- the others

    @property
    def _state(self) -> BucketState:
        return self._joined.state if self._cluster.state.number < self._joined.state.number else self._watch.state

    def _fenced(self, successor: Wal | None) -> None:
        self.is_fenced = True
        self.report.fenced()
        self.successor = None if successor is None else self._state.members.get(successor.node)
        self.ended.set()

    def _address(self, node: int) -> tuple[str, int] | None:
        """Where a member listens for other brokers."""
        member = self._state.members.get(node)
        return None if member is None else _address_between(member, self._access_to_peers.listener)

    def _advertised(self, listener: str, node: int) -> tuple[str, int] | None:
        member = None if node == self._settings.node_id else self._state.members.get(node)
        found = () if member is None else [one for one in member.listeners if one.name == listener]
        return next(((one.host, one.port) for one in found), None)

    def _rack(self, node: int, mine: str | None) -> str | None:
        member = self._state.members.get(node)
        return mine if member is None else member.rack

    def _probe(self, member: ClusterMember, done: Callable[[bool], None]) -> None:
        """Whether that incarnation of this broker answers at its address."""
        wal = Wal(self._settings.node_id, member.incarnation)
        peers = TcpPeers(
            lambda _: _address_between(member, self._access_to_peers.listener), self._loop, self._access_to_peers
        )

        def answered(pong: object) -> None:
            self._loop.call_soon(peers.close)
            done(pong is not None)

        PeerLinks(peers, lambda _: wal).ping(wal.node, 0, answered)


def _pause_of(loop: asyncio.AbstractEventLoop) -> Pause:
    return lambda seconds, done: loop.call_later(seconds, done, None)


async def _merged(log_side: BucketLog) -> None:
    await Answer[None](partial(log_side.merge_rest, MERGES_WITHIN_S))


async def _removed(log_side: BucketLog) -> None:
    await Answer[None](partial(log_side.remove_rest, REMOVES_WITHIN_S))


def _off_loop(
    loop: asyncio.AbstractEventLoop, threads: Executor, job: Callable[[], Any], done: Callable[[Any], None]
) -> None:
    """Do work on the disk in another thread."""
    running = loop.run_in_executor(threads, job)
    running.add_done_callback(lambda ended: None if ended.cancelled() else done(ended.result()))


def new_nonce() -> bytes:
    return os.urandom(NONCE_SIZE)


def _new_cluster_id() -> str:
    return uuid.uuid4().hex[:22]


def _listeners(settings: Settings, ports: Mapping[str, int]) -> tuple[MemberListener, ...]:
    addresses = advertised_addresses(settings, socket.gethostname())
    return tuple(
        MemberListener(one.name, one.protocol, one.host, ports.get(one.name, one.port)) for one in addresses.values()
    )


def _address_between(member: ClusterMember, listener: str) -> tuple[str, int]:
    """The address of the listener between brokers; the first one's if the member calls it otherwise."""
    found = next((one for one in member.listeners if one.name == listener), member.listeners[0])
    return found.host, found.port


async def _awaited(begin: Callable[[], Any]) -> Any:
    """The result of steps that wait for callbacks, for the event loop."""
    outcome = asyncio.get_running_loop().create_future()

    async def steps() -> None:
        try:
            result = await begin()
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets it
            if not outcome.done():
                outcome.set_exception(error)
        else:
            if not outcome.done():  # the caller may have given up waiting
                outcome.set_result(result)

    run(steps())
    return await outcome
