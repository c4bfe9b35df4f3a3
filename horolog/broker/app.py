"""The broker as a whole: builds every part in one place, starts and stops them in order.

Start: data folder, topics, listeners, then the line that says we are ready. Stop: no new connections and no more requests, what was
appended is written, synced and answered, peers take their answers and close, the log is closed cleanly.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from horolog.broker import interrupts
from horolog.broker.clock import Clock, SystemClock
from horolog.broker.cluster import Cluster
from horolog.broker.cluster_errors import ClusterError
from horolog.broker.cluster_file import ClusterFile
from horolog.broker.committer import Committer
from horolog.broker.expiry_clock import ExpiryClock
from horolog.broker.first_topics import parse as parse_first_topics
from horolog.broker.groups.coordinator import GroupCoordinator
from horolog.broker.groups.timers import LoopTimers
from horolog.broker.handlers.context import Endpoints
from horolog.broker.handlers.fetch_sessions import FetchSessions
from horolog.broker.listeners import (
    Address,
    advertised_addresses,
    controller_listeners,
    http_address,
    listen_addresses,
    warnings_about_old_names,
)
from horolog.broker.log.cleaner import Cleaned
from horolog.broker.log.compaction import Compactor, Pass
from horolog.broker.log.data_folder import DataFolderError
from horolog.broker.log.manager import LogManager
from horolog.broker.log.mending import Mender, Task
from horolog.broker.log.overlay import OverlayStorage
from horolog.broker.log.presence import Presence
from horolog.broker.log.scrub import Scrub
from horolog.broker.log.seals import Seal
from horolog.broker.log.storage import RealStorage, Storage, StorageFault
from horolog.broker.log.suspects import BeingMended
from horolog.broker.metrics import Metrics
from horolog.broker.network.descriptors import raise_limit
from horolog.broker.network.dispatch import Dispatcher
from horolog.broker.network.listener import ConnectionLimits, Listener
from horolog.broker.observability.logs import LogSetup
from horolog.broker.observability.notify import READY, STOPPING, notify
from horolog.broker.observability.watched import Phase
from horolog.broker.periodic import Periodic
from horolog.broker.settings import Settings
from horolog.broker.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from horolog.broker.transactions.coordinator import TransactionCoordinator
from horolog.broker.waiting import Waiting
from horolog.version import __version__

if TYPE_CHECKING:
    from horolog.broker.observability.http import Watchman

log = logging.getLogger(__name__)

EXIT_OK, EXIT_CANNOT_START = 0, 1
DISK_WORKERS = 4
CLOSING_WORKERS = 16
"""A sync is nearly all waiting, and the file system takes many in one go."""
GC_YOUNG_OBJECTS = 20_000  # requests leave no cycles behind, so looking for them often only costs time
HOUSEKEEPING_MS = 1_000
MOST_MENDED_AT_START = 1_000
REVIVAL_MS = 250
COMPACTION_FILES = 16
LEAST_BACKOFF_MS = 100
STOP_GRACE_S = 10.0
END = object()


class AdvertisedEndpoints:
    """Where clients of each listener are told to find this broker; ports are known once the listeners are bound."""

    def __init__(self, addresses: dict[str, Address]) -> None:
        self._addresses = addresses

    def bound(self, listener: Listener) -> None:
        """A listener that asked for any free port has one now; an address told without a port gets it."""
        told = self._addresses[listener.name]
        if told.port == 0:
            self._addresses[listener.name] = Address(told.name, told.protocol, told.host, listener.port)

    def advertised(self, listener: str) -> tuple[str, int]:
        address = self._addresses[listener]
        return address.host, address.port


class Broker:
    """Every part of a running broker; what handlers see is `handlers.context.BrokerView`."""

    def __init__(
        self, settings: Settings, clock: Clock, storage: Storage, data_dirs: list[str], loop: asyncio.AbstractEventLoop
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.metrics = Metrics()
        self.workers = ThreadPoolExecutor(DISK_WORKERS, thread_name_prefix="disk")
        if settings.horolog_read_only:
            storage = _only_read(storage, data_dirs)
        self.logs = LogManager(data_dirs, storage, clock, settings)
        # A worker must not share descriptors with the loop: see RealStorage.
        own_storage = _of_workers(storage)
        self.compactor = Compactor(storage, own_storage, data_dirs)
        resources = self.logs.resources
        self._mender = Mender(resources.suspects, own_storage, self.logs.partition_in)
        self._presence = Presence()
        self._scrub = Scrub(resources.suspects, resources.counters, own_storage, clock.monotonic)
        file = ClusterFile(storage, data_dirs[0], lambda: [folder.path for folder in self.logs.usable()])
        self.cluster = Cluster(self.logs.cluster_id, settings, self.logs, file)
        self.cluster.on_settings_changed = self._settings_changed
        self.waiting = Waiting(loop)
        self.committer = Committer(loop, self.workers, self.waiting.changed, self.metrics)
        self._expiry_clock = ExpiryClock(clock, lambda: self.settings.horolog_clock_jump_wait_ms)
        self.transactions = TransactionCoordinator(
            self.cluster, self.committer, clock, self._offsets_ended, self._expiry_clock
        )
        self._group_timers = LoopTimers(clock, loop)
        self.groups = GroupCoordinator(self.cluster, self.committer, clock, self._group_timers, self._expiry_clock)
        self.fetch_sessions = FetchSessions(
            settings.max_incremental_fetch_session_cache_slots, clock, settings.horolog_fetch_session_partitions_max
        )
        self._endpoints = AdvertisedEndpoints(advertised_addresses(settings, socket.gethostname()))
        self.limits = ConnectionLimits.of(settings)
        self.listeners: list[Listener] = []
        self.settings_watchers: list[Callable[[Settings], None]] = []
        self.phase = Phase.STARTING
        self.started_ms = clock.wall_ms()
        self.watchman: Watchman | None = None
        self._loop = loop
        self._jobs: list[Periodic] = []
        self._compaction_job: Periodic | None = None
        self._compacting = False
        """A worker compacts or mends: the two keep out of each other's segments."""
        self._scrubbing = False

    def __repr__(self) -> str:
        return f"<Broker {self.settings.node_id} of {self.cluster!r} on {self.listeners}>"

    @property
    def endpoints(self) -> Endpoints:
        return self._endpoints

    async def start(self) -> None:
        await self._start_watchman()
        self.cluster.open(self.clock.wall_ms())
        create_missing(self.cluster, self.settings.horolog_create_topics)
        self._open_transactions()
        self._load_groups(self.groups.load())
        dispatcher = Dispatcher(self)
        for address in listen_addresses(self.settings):
            listener = Listener(address.name, address.host, address.port, dispatcher, self.clock, self.limits)
            await listener.start()
            self._endpoints.bound(listener)
            self.listeners.append(listener)
        self._start_jobs()
        self.phase = Phase.READY

    async def _start_watchman(self) -> None:
        """First of all, so that whoever watches sees the start."""
        address = http_address(self.settings)
        if address is not None:
            from horolog.broker.observability.http import Watchman

            self.watchman = Watchman(self, self._loop)
            await self.watchman.start(*address)

    async def stop(self) -> None:
        self.phase = Phase.STOPPING
        for job in self._jobs:
            job.stop()
        self._group_timers.close()
        self.compactor.stop()
        await self._part_from_peers()
        self.workers.shutdown(wait=True)
        if isinstance(self.logs.resources.storage, RealStorage):
            with ThreadPoolExecutor(CLOSING_WORKERS, thread_name_prefix="close") as pool:
                self.logs.close(pool.map)
        else:
            self.logs.close()
        if self.watchman is not None:
            self.watchman.stop()

    async def _part_from_peers(self) -> None:
        """Everything that was appended is answered, and the answers leave before the connections are closed.

        A producer that does not get them sends again, and one whose batches were appended by halves may not be able to go on.
        """
        for listener in self.listeners:
            await listener.stop_accepting()
            listener.stop_serving()
        try:
            await asyncio.wait_for(self.committer.drain(), STOP_GRACE_S)
        except TimeoutError:
            log.error(
                "the disk did not take everything within %s s; what is unsynced stays unacknowledged", STOP_GRACE_S
            )
        if any(listener.holds_back_answers for listener in self.listeners):
            self.waiting.expire_all()
        await asyncio.gather(*(listener.part() for listener in self.listeners))

    def _open_transactions(self) -> None:
        """What is found damaged on the way is mended at once: nothing else has begun, and nothing may begin without this."""
        for _ in range(MOST_MENDED_AT_START):
            try:
                self.transactions.open()
                return
            except BeingMended as damage:
                log.warning("%s", damage)
                while (task := self._mender.next_task(self.clock.wall_ms())) is not None:
                    seal = self._mender.run(task)
                    if seal is not None:
                        self._mender.finish(task, seal)
        raise DataFolderError(f"{TRANSACTION_STATE} can not be read, and mending it did not help: see the log")

    def _settings_changed(self, settings: Settings) -> None:
        self.settings = settings
        self.limits.admission.allow(settings)
        self.logs.expire_producers_after(settings.producer_id_expiration_ms)
        if self._compaction_job is not None:
            self._compaction_job.set_interval(_compaction_interval_ms(settings))
        for watcher in self.settings_watchers:
            watcher(settings)

    def _offsets_ended(self, producer_id: int, committed: bool) -> None:
        """A transaction's marker is in the log of offsets."""
        self.groups.complete_txn(producer_id, committed)

    def _load_groups(self, steps: Iterator[None]) -> None:
        """Read groups from the log piece by piece, letting everything else run in between."""
        if next(steps, END) is not END:
            self._loop.call_soon(self._load_groups, steps)

    def time_has_moved(self) -> None:
        """The clock was set by hand: what is due by it is done now."""
        self._group_timers.run_due()
        for job in self._jobs:
            job.run_once()

    # -- work that comes again and again

    def _start_jobs(self) -> None:
        settings, loop = self.settings, self._loop
        if settings.horolog_read_only:
            self._jobs = [Periodic(loop, self._look_after, HOUSEKEEPING_MS)]
            return
        first_ms = min(settings.log_initial_task_delay_ms, settings.log_retention_check_interval_ms)
        self._jobs = [
            Periodic(loop, self._apply_retention, settings.log_retention_check_interval_ms, first_ms),
            Periodic(loop, self._sync_and_remove, min(settings.log_flush_scheduler_interval_ms, HOUSEKEEPING_MS)),
            Periodic(loop, self._revive, REVIVAL_MS),
            Periodic(loop, self._look_after, HOUSEKEEPING_MS),
            Periodic(loop, self._look_for_files, HOUSEKEEPING_MS),
            Periodic(loop, self._write_checkpoints, settings.log_flush_offset_checkpoint_interval_ms),
            Periodic(loop, self.groups.expire_offsets, settings.offsets_retention_check_interval_ms),
            Periodic(loop, self.transactions.finish_prepared, HOUSEKEEPING_MS),
            Periodic(
                loop,
                self.transactions.abort_timed_out,
                settings.transaction_abort_timed_out_transaction_cleanup_interval_ms,
            ),
            Periodic(
                loop,
                self.transactions.forget_expired,
                settings.transaction_remove_expired_transaction_cleanup_interval_ms,
            ),
        ]
        if settings.log_cleaner_enable:
            self._compaction_job = Periodic(loop, self._compact, _compaction_interval_ms(settings))
            self._jobs.append(self._compaction_job)

    def _apply_retention(self) -> None:
        self.waiting.changed(self.logs.apply_retention(self._expiry_clock.wall_ms()))

    def _sync_and_remove(self) -> None:
        """What `flush.ms` asks for, what rolls have left to be sealed, and what has been out of use for long enough."""
        now_ms = self.clock.wall_ms()
        self.waiting.changed(self.logs.finish_retention(self._expiry_clock.wall_ms()))
        jobs = [partition.sync for partition in self.logs.partitions_to_sync(now_ms)]
        for job in (*jobs, *self.logs.removal_jobs(now_ms)):
            self._in_background(job)

    def _revive(self) -> None:
        """Partitions that a fault of the disk has stopped come back when it has passed, and what is kept in them is read again."""
        reopened, repairs = self.logs.revive()
        for partition in reopened:
            self.cluster.reopened(partition)
            if partition.topic == GROUP_OFFSETS:
                self.groups.reopened(partition.index)
            self.transactions.reopened(partition)
        self.waiting.changed(reopened)
        for job in repairs:
            self._in_background(job)

    def _write_checkpoints(self) -> None:
        self._in_background(self.logs.checkpoint_job())

    def _compact(self) -> None:
        """Begin a compaction unless one is under way; several due ones follow each other without a pause."""
        if self._compacting:
            return
        memory_bytes = self.settings.log_cleaner_dedupe_buffer_size
        task = self.compactor.next_pass(self.logs.partitions.values(), self._expiry_clock.wall_ms(), memory_bytes)
        if task is not None:
            self._compacting = True
            running = self._loop.run_in_executor(self.workers, self.compactor.run, task)
            running.add_done_callback(partial(self._compacted, task))

    def _compacted(self, task: Pass, done: asyncio.Future[Cleaned | None]) -> None:
        self._compacting = False
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            log.error("compaction of %r failed", task.partition, exc_info=error)
            return
        cleaned = done.result()
        if cleaned is not None and self.compactor.finish(task, cleaned, self.clock.wall_ms()):
            self._in_background(self.compactor.checkpoint_job(self.logs.partitions.values()))
            self._compact()

    def _look_after(self) -> None:
        """Mend what was found damaged, else look for damage."""
        task = None if self._compacting else self._mender.next_task(self.clock.wall_ms())
        if task is not None:
            self._compacting = True
            mending = self._loop.run_in_executor(self.workers, self._mender.run, task)
            mending.add_done_callback(partial(self._mended, task))
        elif not self._scrubbing:
            settings = self.settings
            limits = settings.horolog_scrub_interval_ms, settings.horolog_scrub_bytes_per_second
            job = self._scrub.step(self.logs.partitions.values(), *limits)
            if job is not None:
                self._scrubbing = True
                self._loop.run_in_executor(self.workers, job).add_done_callback(self._scrubbed)

    def _look_for_files(self) -> None:
        self._in_background(self._presence.step(self.logs.partitions.values()))

    def _mended(self, task: Task, done: asyncio.Future[Seal | None]) -> None:
        self._compacting = False
        seal = None if done.cancelled() else done.result()
        if seal is not None and self._mender.finish(task, seal):
            self.waiting.changed([task.partition])
            if task.partition.topic == GROUP_OFFSETS:
                self.groups.mended(task.partition.index)

    def _scrubbed(self, done: asyncio.Future[None]) -> None:
        self._scrubbing = False
        if not done.cancelled() and (error := done.exception()) is not None:
            log.error("the scrub failed", exc_info=error)

    def _in_background(self, job: Callable[[], object]) -> None:
        self.workers.submit(job).add_done_callback(_log_failure)


def create_missing(cluster: Cluster, text: str) -> None:
    """Create the topics of `horolog.create.topics` that are not there. One that cannot be created is told, and the broker starts without it."""
    for topic in parse_first_topics(text):
        if topic.name in cluster.topics:
            continue
        if topic.copies > 1:
            log.warning("topic %s: one broker keeps one copy, not %s", topic.name, topic.copies)
        policy = {"cleanup.policy": topic.cleanup_policy} if topic.cleanup_policy else {}
        try:
            cluster.create_topic(topic.name, topic.partitions, policy)
        except ClusterError as error:
            log.error("horolog.create.topics: topic %s could not be created: %s", topic.name, error)


def _only_read(storage: Storage, data_dirs: Iterable[str]) -> OverlayStorage:
    """What lies in the folders, with every change kept in memory: recovery goes on there as if it were the disk."""
    log.warning("%s: only read (horolog.read.only): nothing is written there", ", ".join(data_dirs))
    return OverlayStorage(storage)


def _of_workers(storage: Storage) -> Storage:
    """The same disk by descriptors of a worker's own."""
    if isinstance(storage, OverlayStorage):
        return _of_workers(storage.below)
    return RealStorage(COMPACTION_FILES, read_only=storage.read_only) if isinstance(storage, RealStorage) else storage


def _compaction_interval_ms(settings: Settings) -> int:
    return max(settings.log_cleaner_backoff_ms, LEAST_BACKOFF_MS)


def _log_failure(done: Future[object]) -> None:
    error = done.exception()
    if error is not None:
        log.error("background work on the disk failed: %s", error)


def run(settings: Settings, warnings: Iterable[str]) -> int:
    """Run a broker until SIGTERM or SIGINT; the exit code. While it starts these end it at once, as a kill would: see `interrupts`."""
    logs = LogSetup(settings, sys.stderr)
    for warning in (*warnings, *warnings_about_old_names(settings)):
        log.warning("%s", warning)
    for listener in controller_listeners(settings):
        log.info("listener %s is not opened: there is no controller here", listener)
    raise_limit()
    loop = new_event_loop()
    try:
        return loop.run_until_complete(_serve(settings, loop, logs))
    except (DataFolderError, StorageFault, OSError) as error:
        print(f"horolog: {error}", file=sys.stderr)  # noqa: T201 - what a command line does
        return EXIT_CANNOT_START
    finally:
        loop.close()
        interrupts.ignore()
        logs.close()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's, or Python's own where there is none (Windows)."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _serve(settings: Settings, loop: asyncio.AbstractEventLoop, logs: LogSetup) -> int:
    stopped = asyncio.Event()
    data_dirs = [os.path.realpath(folder) for folder in settings.data_folders]  # noqa: ASYNC240 - once, before anything runs
    storage = RealStorage(read_only=settings.horolog_read_only)
    broker = Broker(settings, SystemClock(), storage, data_dirs, loop)
    broker.settings_watchers.append(logs.apply)
    try:
        await broker.start()
        # What exists now lives as long as the broker: the collector need not look at it again.
        gc.collect()
        gc.freeze()
        gc.set_threshold(GC_YOUNG_OBJECTS, 20, 100)
        for number in interrupts.SIGNALS:
            if not interrupts.is_ignored(number):
                loop.add_signal_handler(number, stopped.set)
        addresses = ", ".join(f"{one.name} {one.host}:{one.port}" for one in broker.listeners)
        print(f"horolog {__version__} ready on {addresses}, data in {', '.join(data_dirs)}", flush=True)  # noqa: T201
        notify(os.environ, READY, f"ready on {addresses}")
        await stopped.wait()
        notify(os.environ, STOPPING, "stopping")
        log.info("stopping")
    finally:
        await broker.stop()
    log.info("stopped")
    return EXIT_OK
