"""The broker as a whole: builds every part in one place, starts and stops them in order. Periodic jobs are in `upkeep`.

Start: data folder, topics, listeners, then the line that says that the broker is ready. Stop: no new connections and no more
requests, what was appended is written, synced and answered, peers take their answers and close, the log is closed cleanly.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import platform
import socket
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from horolog.base import interrupts
from horolog.base.clock import Clock, SystemClock
from horolog.broker.base.expiry_clock import ExpiryClock
from horolog.broker.base.malloc import LOOKS_EVERY_MS, FreeMemory, keep_free_memory
from horolog.broker.base.metrics import Metrics
from horolog.broker.base.own_thread import OwnThread
from horolog.broker.base.periodic import Periodic
from horolog.broker.base.topic_names import GROUP_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from horolog.broker.cluster.cluster import Cluster, Created
from horolog.broker.cluster.left_folders import NoRoomToMerge
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.cluster.placement import Placement
from horolog.broker.commit.committer import Committer
from horolog.broker.commit.waiting import WaitingRequests
from horolog.broker.config.divided_settings import divided
from horolog.broker.config.first_topics import parse as parse_first_topics
from horolog.broker.config.listeners import Address, advertised_addresses, http_address, listen_addresses
from horolog.broker.config.settings import Settings
from horolog.broker.coordination.keyed_queue import KeyedQueue, RetryGuard
from horolog.broker.coordination.timers import LoopTimers
from horolog.broker.groups.coordinator import GroupCoordinator
from horolog.broker.groups.share.latest_offsets import LatestOffsets
from horolog.broker.groups.share.share_offsets import ShareOffsets
from horolog.broker.handlers.fetch_sessions import FetchSessions
from horolog.broker.handlers.partition_rows import PartitionRows
from horolog.broker.handlers.transaction_lines import TransactionLines
from horolog.broker.log.integrity import BeingRescanned
from horolog.broker.log.manager import LogManager
from horolog.broker.log.storage import DataFolderError, OverlayStorage, RealStorage, Storage, StorageFault
from horolog.broker.network.descriptors import raise_limit
from horolog.broker.network.dispatch import Dispatcher
from horolog.broker.network.limits import ConnectionLimits
from horolog.broker.network.listener import Listener
from horolog.broker.observability.logs import LogSetup
from horolog.broker.observability.notify import READY, STOPPING, notify
from horolog.broker.observability.phase import Phase
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.cluster_file import ClusterFile
from horolog.broker.security.authorizer import Authorizer, KnownAcls, authorizer_of
from horolog.broker.security.delegation import DelegationTokens
from horolog.broker.security.listener_protection import refuse_what_closes_nothing, sasl_listeners
from horolog.broker.security.quotas import ClientQuotas
from horolog.broker.security.tls_listeners import HTTP, TlsListeners
from horolog.broker.server.hot_path import HOT_PATH
from horolog.broker.server.process import BrokerProcess, sole
from horolog.broker.server.start_notes import notes
from horolog.broker.server.upkeep import Upkeep
from horolog.broker.share.shares import Shares
from horolog.broker.transactions.coordinator import TransactionCoordinator
from horolog.broker.transactions.joining import Joining
from horolog.broker.transactions.other_brokers import OtherBrokers
from horolog.protocol.errors import ErrorCode
from horolog.version import __version__

if TYPE_CHECKING:
    from horolog.broker.base.backup_figures import BackupFigures
    from horolog.broker.base.store_figures import StoreFigures
    from horolog.broker.cluster.membership import Membership
    from horolog.broker.network.conversation import HandshakeFactory
    from horolog.broker.observability.http import MetricsServer
    from horolog.broker.security.audit import AuditTrail
    from horolog.broker.security.sasl.door import SaslDoor
    from horolog.broker.security.sasl.doors import SaslDoors

log = logging.getLogger(__name__)

EXIT_OK, EXIT_CANNOT_START = 0, 1
DISK_WORKERS = 4
CLOSING_WORKERS = 16
"""A sync is nearly all waiting, and the file system takes many in one go."""
MOST_MENDED_AT_START = 1_000
COMPACTION_FILES = 16
STOP_GRACE_S = 10.0
END = object()


class AdvertisedEndpoints:
    """The addresses advertised to clients of each listener; this broker's ports are known once its listeners are bound."""

    def __init__(
        self,
        addresses: dict[str, Address],
        ports: Mapping[str, Mapping[int, int]],
        address_of: Callable[[str, int], tuple[str, int] | None] = lambda _listener, _node: None,
        rack_of: Callable[[int, str | None], str | None] = lambda _node, mine: mine,
    ) -> None:
        """`ports` of each listener by node: brokers on one host have the same address but for it."""
        self._address_of = address_of
        self.rack = rack_of
        self._addresses = addresses
        self._ports = ports

    def bound(self, listener: Listener) -> None:
        """A listener that asked for any free port has one now; an address advertised without a port gets it."""
        told = self._addresses[listener.name]
        if told.port == 0:
            self._addresses[listener.name] = Address(told.name, told.protocol, told.host, listener.port)

    def advertised(self, listener: str, node: int) -> tuple[str, int]:
        if (elsewhere := self._address_of(listener, node)) is not None:
            return elsewhere
        address = self._addresses[listener]
        return address.host, self._ports.get(listener, {}).get(node, address.port)


class Broker:
    """Every part of a running broker; what handlers see is `handlers.context.BrokerView`."""

    share_offsets: ShareOffsets
    metrics_server: MetricsServer | None = None
    phase = Phase.STARTING

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        storage: Storage,
        data_dirs: list[str],
        loop: asyncio.AbstractEventLoop,
        process: BrokerProcess,
    ) -> None:
        self._process = process
        self.settings = divided(settings, process.brokers)
        self.clock = clock
        self.metrics = Metrics()
        self.workers = ThreadPoolExecutor(DISK_WORKERS, thread_name_prefix="disk")
        storage = _only_read(storage, data_dirs) if settings.horolog_read_only else storage
        self.logs = LogManager(data_dirs, storage, clock, self.settings, process.share, process.partitions)
        # A worker must not share descriptors with the loop: see RealStorage.
        own_storage = _of_workers(storage)
        file = ClusterFile(storage, data_dirs[0], lambda: [folder.path for folder in self.logs.folders.usable()])
        membership = process.membership(self.logs, file)
        addresses = advertised_addresses(settings, socket.gethostname())
        self._endpoints = AdvertisedEndpoints(addresses, process.ports, process.address_of, process.rack_of)
        self.cluster = process.new_cluster(self.logs.cluster_id, settings, self.logs, file, membership)
        self.placement = Placement(self.cluster, self._endpoints, membership.members)
        self.partition_rows = PartitionRows(self.cluster, self.placement, self.logs.resources.changes)
        self._follow(membership)
        self.authorizer = authorizer_of(settings)
        if self.authorizer is not None:
            self._go_by_rules(self.authorizer)
        self.waiting = WaitingRequests(loop, lambda: self.settings.horolog_fetch_waiting_max_bytes)
        safety = process.new_safety(loop, self.workers, self.metrics, clock, self.waiting.changed)
        self.committer = Committer(loop, safety, self.waiting.changed, self.metrics, clock.monotonic)
        self.audit = _audit(self, process.labels, loop)
        expiry_clock = ExpiryClock(process.ages(clock), lambda: self.settings.horolog_clock_jump_wait_ms)
        others = OtherBrokers(self.cluster, self.placement, process.peers)
        self.transaction_lines = TransactionLines(self.waiting, loop.call_soon)
        settled = self.transaction_lines.settled
        self.transactions = TransactionCoordinator(
            self.cluster, self.committer, clock, self._offsets_ended, others, expiry_clock, settled=settled
        )
        self.joining = Joining(self.transactions, others, self.cluster, loop.call_soon)
        self._group_timers = LoopTimers(clock, loop)
        self.groups = GroupCoordinator(self.cluster, self.committer, clock, self._group_timers, expiry_clock)
        self.shares = Shares(self, process.peers, self._group_timers, self.groups.share.settings)
        self.fetch_sessions = FetchSessions(
            settings.max_incremental_fetch_session_cache_slots, clock, settings.horolog_fetch_session_partitions_max
        )
        self._loop = loop
        self.hand_overs = process.hand_overs(
            self.cluster, self.placement, process.peers, self.committer, self.workers, loop
        )
        self.turns = KeyedQueue()
        self.sent_back = RetryGuard(clock.monotonic)
        self.quotas = ClientQuotas(settings, clock.monotonic, self.metrics, process.brokers)
        self.cluster.rule_watchers.append(self.quotas.take)
        self.limits = ConnectionLimits.of(self.settings, self.quotas)
        self.delegation_tokens = DelegationTokens(settings.delegation_token_secret_key, clock.wall_ms)
        self.doors = _doors(self, loop)
        self.tls = TlsListeners(settings)
        self.cluster.settings_checks.append(self.tls.check)
        self.listeners: list[Listener] = []
        self._peer_listeners: list[Listener] = []
        self.settings_watchers: list[Callable[[Settings], None]] = []
        self.started_ms = clock.wall_ms()
        self.upkeep = Upkeep(self, expiry_clock, storage, own_storage, loop)
        self.dispatcher = Dispatcher(self, process.handlers)

    def __repr__(self) -> str:
        return f"<Broker {self.settings.node_id} of {self.cluster!r} on {self.listeners}>"

    def store_figures(self) -> StoreFigures | None:
        """What this broker shows of its store; None without one."""
        return self._process.store_figures()

    def backup_figures(self) -> BackupFigures | None:
        """What this broker shows of its backup; None without one."""
        return self._process.backup_figures()

    async def start(self) -> None:
        if self.audit is not None:
            self.audit.open()
        await self._start_metrics_server()
        self.cluster.open(self.clock.wall_ms())
        await _missing_created(self.cluster, self.settings.horolog_create_topics)
        self._open_transactions()
        self.shares.states.open()
        self._serve_share_groups()
        self._load_groups(self.groups.load())
        dispatcher = self.dispatcher
        for address in listen_addresses(self.settings):
            asks = self._handshakes(address.name, dispatcher)
            door = self.tls.door(address.name, None if self.audit is None else self.audit.of_tls(address.name))
            listener = self._process.new_listener(address, dispatcher, self.clock, self.limits, asks, door)
            await listener.start()
            self._endpoints.bound(listener)
            self.listeners.append(listener)
        for listener in self._process.new_peer_listeners(dispatcher, self.clock, self.limits):
            await listener.start()
            self._peer_listeners.append(listener)
        if self.doors is not None:
            self.doors.start()
        self.upkeep.start()
        self.phase = Phase.READY

    async def _start_metrics_server(self) -> None:
        """Comes first, so that monitoring sees the start."""
        address = http_address(self.settings)
        if address is not None:
            from horolog.broker.observability.http import MetricsServer

            self.metrics_server = MetricsServer(self, self._loop)
            self.metrics_server.protect(self.settings.horolog_http_token, self.tls.door(HTTP))
            await self._process.begin_http(self.metrics_server, address)

    @property
    def http_port(self) -> int:
        return 0 if self.metrics_server is None else self.metrics_server.port

    def _handshakes(self, listener: str, dispatcher: Dispatcher) -> HandshakeFactory | None:
        """The handshake that a listener requires of its peers before it serves them."""
        door = None if self.doors is None else self.doors.of(listener)
        return None if door is None else _asking(door, dispatcher)

    async def stop(self) -> None:
        self.phase = Phase.STOPPING
        if self.doors is not None:
            self.doors.stop()
        self.upkeep.stop()
        self._group_timers.close()
        await self._part_from_peers()
        self.workers.shutdown(wait=True)
        self.cluster.changes.check_record()
        self.cluster.changes.close()
        if isinstance(self.logs.resources.storage, RealStorage):
            with ThreadPoolExecutor(CLOSING_WORKERS, thread_name_prefix="close") as pool:
                self.logs.close(pool.map)
        else:
            self.logs.close()
        if self.audit is not None:
            self.audit.close()
        if self.metrics_server is not None:
            self.metrics_server.stop()

    async def _part_from_peers(self) -> None:
        """Answer everything that was appended, and send the responses before the connections are closed.

        A producer without its responses retries, and one whose batches were appended in part may not be able to go on.
        """
        listeners = [*self.listeners, *self._peer_listeners]
        for listener in listeners:
            await listener.stop_accepting()
            listener.stop_serving()
        self._process.peers.close()  # what waits for another broker is refused now; clients retry
        if self.audit is not None:
            self.audit.flush()
        if self._process.drains():
            await self._drain_in_time()
        if any(listener.holds_back_answers for listener in listeners):
            self.waiting.expire_all()
        await asyncio.gather(*(listener.part() for listener in listeners))

    async def _drain_in_time(self) -> None:
        try:
            await asyncio.wait_for(self._drain(), STOP_GRACE_S)
        except TimeoutError:
            log.error(
                "the disk did not sync everything within %s s; unsynced records and changes stay unacknowledged",
                STOP_GRACE_S,
            )

    async def _drain(self) -> None:
        """Wait until the disk has all records and changes that were taken."""
        await self.committer.drain()
        await self.cluster.changes.drain()

    def _open_transactions(self) -> None:
        """Segments found damaged on the way are rescanned at once: nothing else has begun, and nothing may begin without this."""
        for _ in range(MOST_MENDED_AT_START):
            try:
                self.transactions.open()
                return
            except BeingRescanned as damage:
                log.warning("%s", damage)
                self.upkeep.mend_now()
        raise DataFolderError(f"{TRANSACTION_STATE} cannot be read, and rescanning it did not help: see the log")

    def _settings_changed(self, settings: Settings) -> None:
        settings = self.settings = divided(settings, self._process.brokers)
        self.limits.admission.allow(settings)
        self.logs.expire_producers_after(settings.producer_id_expiration_ms)
        self.upkeep.settings_changed(settings)
        self.tls.take(settings)
        for watcher in self.settings_watchers:
            watcher(settings)

    def _follow(self, membership: Membership) -> None:
        """Act on what changes in the cluster."""
        cluster = self.cluster
        cluster.on_settings_changed = self._settings_changed
        cluster.on_led, cluster.on_led_elsewhere = self._led, self._led_elsewhere
        membership.follow_live(self.placement.live_are)

    def _go_by_rules(self, authorizer: Authorizer) -> None:
        """Use the cluster's access list, now and after each change; then fetches check everything that they wait for again."""
        known = KnownAcls()
        self.cluster.rule_watchers.append(lambda rules: authorizer.replace(known.of(rules)))
        authorizer.on_change = self.logs.resources.changes.note

    def _led(self, topic: str, shard: int) -> None:
        """The leader of a partition of an internal topic coordinates what it keeps."""
        if topic == GROUP_OFFSETS:
            self.groups.shards.gained(shard)
        elif topic == TRANSACTION_STATE:
            self.transactions.gained(shard)
            self.transaction_lines.look()
        elif topic == SHARE_GROUP_STATE:
            self.shares.states.gained(shard)

    def _led_elsewhere(self, topic: str, shard: int) -> None:
        if topic == GROUP_OFFSETS:
            self.groups.shards.lost(shard)
        elif topic == TRANSACTION_STATE:
            self.transactions.lost(shard)
            self.transaction_lines.look()
        elif topic == SHARE_GROUP_STATE:
            self.shares.states.lost(shard)

    def _serve_share_groups(self) -> None:
        """The coordinator of share groups works with the persister, which stands above it."""
        self.groups.share.persister = self.shares.persister
        ends = LatestOffsets(self.cluster, self.placement, self._process.peers)
        self.share_offsets = ShareOffsets(self.groups.share, ends)

    def _offsets_ended(self, producer_id: int, committed: bool) -> None:
        """A transaction's marker is in the log of offsets."""
        self.groups.complete_txn(producer_id, committed)

    def _load_groups(self, steps: Iterator[None]) -> None:
        """Read groups from the log piece by piece, letting everything else run in between."""
        if next(steps, END) is not END:
            self._loop.call_soon(self._load_groups, steps)

    def time_has_moved(self, seconds: float = 0.0) -> None:
        """The clock was set by hand: do now everything that is due by it. `seconds` of every wait for a quota are over."""
        for listener in self.listeners:
            listener.hurry(seconds)
        self._group_timers.run_due()
        self.upkeep.run_once()


def _audit(broker: Broker, labels: Mapping[str, object], loop: asyncio.AbstractEventLoop) -> AuditTrail | None:
    """None if no audit is configured."""
    settings, clock, cluster, metrics = broker.settings, broker.clock, broker.cluster, broker.metrics
    path, topic = settings.horolog_audit_file, settings.horolog_audit_topic
    if path is None and topic is None:
        return None
    from horolog.broker.coordination.audit_topic import AuditTopic
    from horolog.broker.security.audit import LOST, AuditTrail, Sink
    from horolog.broker.security.audit_file import AuditFile

    sinks: list[Sink] = []
    if path is not None:
        sinks.append(AuditFile(path, metrics.counter(LOST, "file")))
    if topic is not None:
        lost = metrics.counter(LOST, "topic")
        sinks.append(AuditTopic(topic, broker.placement.me, cluster, broker.committer, clock, loop, lost=lost))
    kinds, rate = settings.horolog_audit_events, settings.horolog_audit_rate_max
    return AuditTrail(kinds, sinks, clock, metrics, rate=rate, **labels)


def _doors(broker: Broker, loop: asyncio.AbstractEventLoop) -> SaslDoors | None:
    """The SASL authentication of the listeners, by the present users and tokens; None if no listener uses it. Raises SettingsError."""
    settings, tokens, watchers = broker.settings, broker.delegation_tokens, broker.cluster.rule_watchers
    watchers.append(tokens.take)
    refuse_what_closes_nothing(settings)
    if not sasl_listeners(settings):
        return None
    from horolog.broker.network.background import in_thread
    from horolog.broker.security.sasl.doors import SaslDoors, Surroundings

    around = Surroundings(
        broker.clock,
        broker.metrics,
        loop.call_later,
        lambda work, done: in_thread(loop, work, done),
        broker.audit,
        tokens if tokens.are_served else None,
    )
    doors = SaslDoors(settings, around)
    watchers.append(doors.users.take)
    return doors


def _asking(door: SaslDoor, dispatcher: Dispatcher) -> HandshakeFactory:
    from horolog.broker.network.sasl_handshake import SaslHandshake

    return lambda: SaslHandshake(door, dispatcher.dispatch)


async def _missing_created(cluster: Cluster, text: str) -> None:
    """Wait until the topics of `horolog.create.topics` are there."""
    created = asyncio.Event()
    create_missing(cluster, text, created.set)
    if not created.is_set():
        await created.wait()


def create_missing(cluster: Cluster, text: str, created: Callable[[], None]) -> None:
    """Create the topics of `horolog.create.topics` that are not there. One that cannot be created is logged, and skipped."""
    wanted = []
    for topic in parse_first_topics(text):
        if topic.name in cluster.topics:
            continue
        if topic.copies > 1:
            log.warning("topic %s: horolog keeps one replica, not %s", topic.name, topic.copies)
        policy = {"cleanup.policy": topic.cleanup_policy} if topic.cleanup_policy else {}
        wanted.append(NewTopic(topic.name, topic.partitions, overrides=policy))

    def done(results: Created) -> None:
        for new, result in zip(wanted, results, strict=True):
            if isinstance(result, ClusterError) and result.code != ErrorCode.TOPIC_ALREADY_EXISTS:  # a worker was first
                log.error("horolog.create.topics: topic %s could not be created: %s", new.name, result)
        created()

    if wanted:
        cluster.create_topics(wanted, done)
    else:
        created()


def _only_read(storage: Storage, data_dirs: Iterable[str]) -> OverlayStorage:
    """The content of the folders, with every change kept in memory: recovery goes on there as if it were the disk."""
    log.warning("%s: read-only (horolog.read.only): the broker writes nothing there", ", ".join(data_dirs))
    return OverlayStorage(storage)


def _of_workers(storage: Storage) -> Storage:
    """The same disk, through a worker thread's own descriptors."""
    if isinstance(storage, OverlayStorage):
        return _of_workers(storage.below)
    return RealStorage(COMPACTION_FILES, read_only=storage.read_only) if isinstance(storage, RealStorage) else storage


def run(settings: Settings, warnings: Iterable[str]) -> int:
    """Run a broker until SIGTERM or SIGINT; the exit code. Raises NoRoomToMerge.

    During the start the signals end it at once, as a kill would: see `interrupts`.
    """
    logs = LogSetup(settings, sys.stderr)
    log.info("horolog %s on Python %s, the hot path is %s", __version__, platform.python_version(), HOT_PATH)
    for level, text in notes(settings, warnings):
        log.log(level, "%s", text)
    raise_limit()
    loop = new_event_loop()
    is_over = True
    try:
        return loop.run_until_complete(_serve(settings, loop, logs))
    except NoRoomToMerge:
        is_over = False  # the caller serves the folders with a worker
        raise
    except (DataFolderError, StorageFault, OSError) as error:
        print(f"horolog: {error}", file=sys.stderr)  # noqa: T201 - what a command line does
        return EXIT_CANNOT_START
    finally:
        loop.close()
        if is_over:
            interrupts.ignore()
        logs.close()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's, or Python's own where there is none (Windows)."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class Teller(Protocol):
    """Receives a broker's progress."""

    def ready(self, broker: Broker) -> None: ...
    def stopping(self) -> None: ...


class Announcer:
    """Reports the progress on standard output, to systemd and in the log."""

    def __init__(self, data_dirs: list[str]) -> None:
        self._folders = ", ".join(data_dirs)
        self.then: Callable[[], object] = lambda: None
        """Called once the broker serves."""

    def ready(self, broker: Broker) -> None:
        addresses = ", ".join(f"{one.name} {one.host}:{one.port}" for one in broker.listeners)
        print(f"horolog {__version__} ready on {addresses}, data in {self._folders}", flush=True)  # noqa: T201
        notify(os.environ, READY, f"ready on {addresses}")
        self.then()

    def stopping(self) -> None:
        notify(os.environ, STOPPING, "stopping")
        log.info("stopping")


async def _serve(settings: Settings, loop: asyncio.AbstractEventLoop, logs: LogSetup) -> int:
    data_dirs = [os.path.realpath(folder) for folder in settings.data_folders]  # noqa: ASYNC240 - once, before anything runs
    storage = RealStorage(read_only=settings.horolog_read_only)
    process = sole(settings, OwnThread(loop, "journal"))
    announcer, part = Announcer(data_dirs), nothing
    if settings.horolog_backup_store is not None:
        from horolog.broker.server.backup_child import BackupChild, ends_of, orders_of

        backup = BackupChild(
            orders_of(settings, data_dirs), SystemClock(), lambda answer: answer(ends_of(broker.logs.partitions))
        )
        process = replace(process, backup_figures=backup.figures)
        announcer.then, part = backup.begin, backup.stop
    broker = Broker(settings, SystemClock(), storage, data_dirs, loop, process)
    await serve(broker, logs, announcer, asyncio.Event(), part)
    log.info("stopped")
    return EXIT_OK


async def nothing() -> None:
    """Part from nothing before the stop."""


async def serve(
    broker: Broker,
    logs: LogSetup,
    teller: Teller,
    stopped: asyncio.Event,
    part: Callable[[], Awaitable[None]] = nothing,
) -> None:
    """Start a broker and run it until `stopped` is set, by a signal or by others; then `part`, and stop it."""
    loop = asyncio.get_running_loop()
    broker.settings_watchers.append(logs.apply)
    try:
        await broker.start()
        # What exists now lives as long as the broker: the collector need not look at it again.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*interrupts.COLLECTIONS_OF_A_SERVER)
        # Not before: what the start has freed goes back to the system.
        keep_free_memory(broker.settings.horolog_malloc_keep_bytes)
        giving_back = Periodic(loop, FreeMemory().look, LOOKS_EVERY_MS)
        for number in interrupts.SIGNALS:
            if not interrupts.is_ignored(number):
                loop.add_signal_handler(number, stopped.set)
        teller.ready(broker)
        await stopped.wait()
        giving_back.stop()
        teller.stopping()
        await part()
    finally:
        await broker.stop()
