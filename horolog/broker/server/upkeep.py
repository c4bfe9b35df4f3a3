"""The broker's periodic jobs: retention, syncs, compaction, retries, rescans and scrubs, expiry and checkpoints.

Jobs run by monotonic time. Long work on the disk runs in a worker thread; only one at a time compacts or rescans segments.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Protocol

from horolog.base.clock import Clock
from horolog.broker.base.expiry_clock import ExpiryClock
from horolog.broker.base.periodic import Periodic
from horolog.broker.base.topic_names import GROUP_OFFSETS, SHARE_GROUP_STATE
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.cluster_state import RulesChanged
from horolog.broker.cluster.placement import Placement
from horolog.broker.commit.waiting import WaitingRequests
from horolog.broker.config.settings import Settings
from horolog.broker.groups.coordinator import GroupCoordinator
from horolog.broker.log.compaction import Cleaned, Compactor, Pass
from horolog.broker.log.integrity import Seal
from horolog.broker.log.manager import LogManager
from horolog.broker.log.recovery import Presence, Rescanner, Scrub, Task
from horolog.broker.log.storage import Storage
from horolog.broker.observability.disk_room import LOOKS_EVERY_MS, RoomWatch
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.stored_rules import Rules
from horolog.broker.security.delegation import DelegationTokens, expired_in
from horolog.broker.security.tls_listeners import TlsListeners
from horolog.broker.share.shares import Shares
from horolog.broker.transactions.coordinator import TransactionCoordinator

log = logging.getLogger(__name__)

HOUSEKEEPING_MS = 1_000
REVIVAL_MS = 250
LEAST_BACKOFF_MS = 100
EXPIRY_WARNING_MS = 24 * 3_600_000
CATCH_UP_MS = 500
CHECK_RECORD_MS = 5000
"""For workers that share a journal: they also notify each other."""


class UpkeepHost(Protocol):
    """The parts of a broker that need upkeep; its settings may be replaced."""

    settings: Settings
    clock: Clock
    logs: LogManager
    cluster: Cluster
    waiting: WaitingRequests
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    shares: Shares
    tls: TlsListeners
    placement: Placement
    delegation_tokens: DelegationTokens

    @property
    def workers(self) -> Executor: ...


class Upkeep:
    """Every job of a running broker."""

    def __init__(
        self,
        broker: UpkeepHost,
        expiry_clock: ExpiryClock,
        storage: Storage,
        own_storage: Storage,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """`own_storage` is the same disk, through the worker threads' own descriptors."""
        self._broker = broker
        self._expiry_clock = broker.logs.resources.watch.clock = expiry_clock
        self._loop = loop
        resources = broker.logs.resources
        folders = broker.logs.folders
        cleaner_file = folders[0].checkpoints.cleaner_file
        self._compactor = Compactor(storage, own_storage, [folder.path for folder in folders], cleaner_file)
        self._rescanner = Rescanner(resources.rescan_queue, own_storage, broker.logs.partition_in)
        self._presence = Presence()
        self._scrub = Scrub(resources.rescan_queue, resources.counters, own_storage, broker.clock.monotonic)
        self._jobs: list[Periodic] = []
        self._compaction_job: Periodic | None = None
        self._segments_busy = False
        """A worker thread compacts or rescans: the two keep out of each other's segments."""
        self._scrubbing = False

    def __repr__(self) -> str:
        return f"<Upkeep: {len(self._jobs)} jobs{', segments busy' if self._segments_busy else ''}>"

    def start(self) -> None:
        settings, loop = self._broker.settings, self._loop
        if settings.horolog_read_only:
            self._jobs = [*self._looks_at_certificates(), Periodic(loop, self._look_after, HOUSEKEEPING_MS)]
            return
        first_ms = min(settings.log_initial_task_delay_ms, settings.log_retention_check_interval_ms)
        self._jobs = [
            *self._looks_at_certificates(),
            Periodic(loop, self.apply_retention, settings.log_retention_check_interval_ms, first_ms),
            Periodic(loop, self.sync_and_remove, min(settings.log_flush_scheduler_interval_ms, HOUSEKEEPING_MS)),
            Periodic(loop, self._retry_stopped, REVIVAL_MS),
            Periodic(loop, self._look_after, HOUSEKEEPING_MS),
            Periodic(loop, self._look_for_files, HOUSEKEEPING_MS),
            Periodic(loop, RoomWatch(self._broker).look, LOOKS_EVERY_MS, HOUSEKEEPING_MS),
            Periodic(loop, self._write_checkpoints, settings.log_flush_offset_checkpoint_interval_ms),
            Periodic(loop, self._broker.groups.expire_offsets, settings.offsets_retention_check_interval_ms),
            Periodic(loop, self._expire_producers, settings.producer_id_expiration_check_interval_ms),
            Periodic(loop, self.expire_tokens, settings.delegation_token_expiry_check_interval_ms),
            Periodic(loop, self._broker.transactions.finish_prepared, HOUSEKEEPING_MS),
            Periodic(
                loop,
                self._broker.transactions.abort_timed_out,
                settings.transaction_abort_timed_out_transaction_cleanup_interval_ms,
            ),
            Periodic(
                loop,
                self._broker.transactions.forget_expired,
                settings.transaction_remove_expired_transaction_cleanup_interval_ms,
            ),
        ]
        if self._broker.cluster.wants_upkeep:
            self._jobs.append(Periodic(loop, self._broker.cluster.changes.catch_up, CATCH_UP_MS))
            self._jobs.append(Periodic(loop, self._broker.cluster.changes.check_record, CHECK_RECORD_MS))
        if settings.log_cleaner_enable:
            self._compaction_job = Periodic(loop, self.compact, _compaction_interval_ms(settings))
            self._jobs.append(self._compaction_job)

    def expire_tokens(self) -> None:
        """Remove the delegation tokens whose time is over; the controller does so for all brokers."""
        broker, now_ms = self._broker, self._broker.clock.wall_ms()
        if broker.placement.controller() != broker.placement.me:
            return
        if any(one.has_expired(now_ms) for one in broker.delegation_tokens.by_id.values()):
            broker.cluster.change_rules(partial(_without_expired, now_ms), _note_tokens_left)

    def _looks_at_certificates(self) -> list[Periodic]:
        settings, tls = self._broker.settings, self._broker.tls
        if not tls.by_name:
            return []
        return [
            Periodic(self._loop, partial(self._in_background, tls.look), settings.horolog_ssl_files_check_interval_ms),
            Periodic(self._loop, self._warn_of_certificates, EXPIRY_WARNING_MS, HOUSEKEEPING_MS),
        ]

    def _warn_of_certificates(self) -> None:
        for warning in self._broker.tls.warnings(self._broker.clock.wall_ms() / 1000):
            log.warning("%s", warning)

    def stop(self) -> None:
        for job in self._jobs:
            job.stop()
        self._compactor.stop()

    @property
    def is_busy(self) -> bool:
        """Whether a worker thread compacts, rescans or scrubs."""
        return self._segments_busy or self._scrubbing

    def run_once(self) -> None:
        """Run every job now; their schedules do not change."""
        for job in self._jobs:
            job.run_once()

    def settings_changed(self, settings: Settings) -> None:
        if self._compaction_job is not None:
            self._compaction_job.set_interval(_compaction_interval_ms(settings))

    def mend_now(self) -> None:
        """Rescan all that was found damaged, at a start, before any worker thread is there."""
        while (task := self._rescanner.next_task(self._broker.clock.wall_ms())) is not None:
            seal = self._rescanner.run(task)
            if seal is not None:
                self._rescanner.finish(task, seal)

    def apply_retention(self) -> None:
        self._broker.waiting.changed(self._broker.logs.apply_retention(self._expiry_clock.wall_ms()))

    def _expire_producers(self) -> None:
        """Let every partition forget the producers that have been silent for too long."""
        now_ms = self._expiry_clock.wall_ms()
        for partition in self._broker.logs.partitions.values():
            partition.producers.expire(now_ms)

    def sync_and_remove(self) -> None:
        """Sync what `flush.ms` asks for and what rolls have left to be sealed; remove what has been out of use for long enough."""
        now_ms = self._broker.clock.wall_ms()
        self._broker.waiting.changed(self._broker.logs.finish_retention(self._expiry_clock.wall_ms()))
        jobs = [partition.sync for partition in self._broker.logs.partitions_to_sync(now_ms)]
        for job in (*jobs, *self._broker.logs.removal_jobs(now_ms)):
            self._in_background(job)

    def _retry_stopped(self) -> None:
        """Reopen partitions that a fault of the disk has stopped once it has passed; state kept in them is read again."""
        reopened, jobs = self._broker.logs.retry_stopped()
        for partition in reopened:
            self._broker.cluster.reopened(partition)
            if partition.topic == GROUP_OFFSETS:
                self._broker.groups.shards.reopened(partition.index)
            elif partition.topic == SHARE_GROUP_STATE:
                self._broker.shares.states.retry_unread(partition.index)
            self._broker.transactions.reopened(partition)
        self._broker.waiting.changed(reopened)
        for job in jobs:
            self._in_background(job)

    def _write_checkpoints(self) -> None:
        self._in_background(self._broker.logs.checkpoint_job())

    def compact(self) -> None:
        """Begin a compaction unless one is under way; several due ones follow each other without a pause."""
        if self._segments_busy:
            return
        memory_bytes = self._broker.settings.log_cleaner_dedupe_buffer_size
        task = self._compactor.next_pass(
            self._broker.logs.partitions.values(), self._expiry_clock.wall_ms(), memory_bytes
        )
        if task is not None:
            self._segments_busy = True
            running = self._loop.run_in_executor(self._broker.workers, self._compactor.run, task)
            running.add_done_callback(partial(self._compacted, task))

    def _compacted(self, task: Pass, done: asyncio.Future[Cleaned | None]) -> None:
        self._segments_busy = False
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            log.error("compaction of %s failed", task.partition, exc_info=error)
            return
        cleaned = done.result()
        if cleaned is not None and self._compactor.finish(task, cleaned, self._broker.clock.wall_ms()):
            self._in_background(self._compactor.checkpoint_job(self._broker.logs.partitions.values()))
            self.compact()

    def _look_after(self) -> None:
        """Rescan what was found damaged, else look for damage."""
        task = None if self._segments_busy else self._rescanner.next_task(self._broker.clock.wall_ms())
        if task is not None:
            self._segments_busy = True
            rescanning = self._loop.run_in_executor(self._broker.workers, self._rescanner.run, task)
            rescanning.add_done_callback(partial(self._rescanned, task))
        elif not self._scrubbing:
            settings = self._broker.settings
            limits = settings.horolog_scrub_interval_ms, settings.horolog_scrub_bytes_per_second
            job = self._scrub.step(self._broker.logs.partitions.values(), *limits)
            if job is not None:
                self._scrubbing = True
                self._loop.run_in_executor(self._broker.workers, job).add_done_callback(self._scrubbed)

    def _look_for_files(self) -> None:
        self._in_background(self._presence.step(self._broker.logs.partitions.values()))

    def _rescanned(self, task: Task, done: asyncio.Future[Seal | None]) -> None:
        self._segments_busy = False
        seal = None if done.cancelled() else done.result()
        if seal is not None and self._rescanner.finish(task, seal):
            self._broker.waiting.changed([task.partition])
            if task.partition.topic == GROUP_OFFSETS:
                self._broker.groups.shards.rescanned(task.partition.index)
            elif task.partition.topic == SHARE_GROUP_STATE:
                self._broker.shares.states.retry_unread(task.partition.index)

    def _scrubbed(self, done: asyncio.Future[None]) -> None:
        self._scrubbing = False
        if not done.cancelled() and (error := done.exception()) is not None:
            log.error("the scrub failed", exc_info=error)

    def _in_background(self, job: Callable[[], object]) -> None:
        self._broker.workers.submit(job).add_done_callback(_log_failure)


def _compaction_interval_ms(settings: Settings) -> int:
    return max(settings.log_cleaner_backoff_ms, LEAST_BACKOFF_MS)


def _log_failure(done: Future[object]) -> None:
    error = done.exception()
    if error is not None:
        log.error("background work on the disk failed: %s", error)


def _without_expired(now_ms: int, rules: Rules) -> RulesChanged | None:
    gone = expired_in(rules, now_ms)
    return RulesChanged(removed=gone) if gone else None


def _note_tokens_left(error: ClusterError | None) -> None:
    if error is not None:
        log.warning("expired delegation tokens could not be removed: %s", error)
