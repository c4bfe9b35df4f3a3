"""Manages all partitions of a broker: opens them from the data folders, creates, deletes, and reopens them once their disk works.

`data_folder` has one folder and its files. Some of several folders may be away, because their disk does not work. Their partitions
are offline until it does; the others are served. The folder of each partition is recorded by the folder's id (`places_of`).

Everything but the jobs that `checkpoint_job` and `removal_jobs` return belongs to one thread.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random

from horolog.base.clock import Clock
from horolog.broker.config.settings import Settings
from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.files import checkpoints
from horolog.broker.log.manager.data_folder import DataFolder, partition_of, place_in
from horolog.broker.log.manager.data_folders import DataFolders
from horolog.broker.log.manager.share import Share, whole
from horolog.broker.log.partition import Partition, Resources, closing, log_start
from horolog.broker.log.recovery import (
    Circumstances,
    PartitionFolder,
    Retries,
    offline_partition,
    open_readable,
    open_writable,
    storage_below,
)
from horolog.broker.log.segments import ConvertedChunks
from horolog.broker.log.storage import Storage, StorageFault
from horolog.protocol.topic_partition import TopicPartition

log = logging.getLogger(__name__)


class LogManager:
    """One process's share of the data folders, without one all of them, locked while this object lives."""

    def __init__(
        self,
        data_dirs: list[str],
        storage: Storage,
        clock: Clock,
        settings: Settings,
        share: Share | None = None,
        kind: type[Partition] = Partition,
    ) -> None:
        """`kind` is the class of partitions."""
        may_make = not settings.horolog_read_only
        self.share = share or whole(settings.node_id)
        self.folders = DataFolders(data_dirs, storage, clock, self.share.owner, self.share, may_make=may_make)
        self.partitions: dict[TopicPartition, Partition] = {}
        self.record_number: Callable[[], int] = lambda: 0
        """How often the record of the cluster was written."""
        for folder in self.folders:
            folder.checkpoints.record_number = lambda: self.record_number()  # noqa: PLW0108 - its writer sets it later
        self._storage = storage
        self._clock = clock
        self._away: dict[TopicPartition, str | None] = {}
        """Partitions of folders that are away, with the folder's id if known."""
        self.resources = Resources(
            storage,
            settings.producer_id_expiration_ms,
            Random().random,  # noqa: S311 - jitter, no secret
            converted=ConvertedChunks(settings.horolog_fetch_upconversion_cache_bytes),
            kind=kind,
        )
        self._retries = Retries(clock.monotonic, self.open_again)
        try:
            self.cluster_id = self.folders.claim()
        except BaseException:
            self.folders.release()
            raise

    def __repr__(self) -> str:
        return f"<LogManager of {self.folders}>"

    # -- opening

    def open(self, config_of: Callable[[str], TopicConfig]) -> None:
        """Open every partition's folder, each with its topic's configuration."""
        for folder in self.folders.usable():
            self.folders.unless_unusable(folder, lambda one: one.open(config_of, self.resources))
            self.partitions.update(folder.partitions)

    def create_or_offline(
        self, topic: str, index: int, config: TopicConfig, topic_id: bytes | None, place: str | None = None
    ) -> Partition:
        """Create a recorded partition without a folder, or an offline stand-in until its folder can be created.

        A partition that lies in a folder that is away, or may do so, is not created again: `place` is its folder's id, if known.
        """
        if self.folders.may_lack([] if place is None else [place]) and not self.folders.has(place):
            return self._put_away(topic, index, config, place)
        try:
            return self.create(topic, index, config, topic_id, place)
        except StorageFault as fault:
            log.error("%s-%s is offline: it has no folder, and none can be created: %s", topic, index, fault)
            offline = self.folders.for_new(place).unmade(topic, index, config, topic_id, str(fault), self.resources)
            self.partitions[topic, index] = offline
            return offline

    def _put_away(self, topic: str, index: int, config: TopicConfig, place: str | None) -> Partition:
        folder = next((one for one in self.folders if not one.is_claimed), self.folders[0])
        reason = f"its data folder (directory.id={place or 'unknown'}) is unavailable: {folder.fault or 'log.dirs does not name it'}"
        log.error("%s-%s is offline: %s", topic, index, reason)
        partition = offline_partition(place_in(folder.path, (topic, index)), config, self.resources, reason)
        self._away[topic, index] = place
        self.partitions[topic, index] = partition
        return partition

    def open_again(self, partition: Partition) -> bool:
        """Try to reopen an offline partition, or one kept in memory on the disk. It takes appends once rewritten."""
        key = partition.topic, partition.index
        if key in self._away:
            return False
        folder = self.folders.of(partition)
        closing.close_files(partition)
        for segment in partition.segments:
            segment.log.withdraw()  # an opening cuts off a torn tail, and other records are written there
        in_memory = partition.condition.fault is None and storage_below(partition) is not None
        open_it = open_writable if in_memory else open_readable
        try:
            folder.make_at_last(partition, self.resources)
            known = Circumstances(
                was_clean=False,
                log_start_offset=max(partition.log_start_offset, folder.checkpoints.start_of(key)),
                now_ms=self._clock.wall_ms(),
                may_be_unsynced=True,
            )
            found = open_it(PartitionFolder(*key, partition.directory), partition.config, self.resources, known)
        except StorageFault as fault:
            log.warning("%s-%s is still %s: %s", *key, "kept in memory" if in_memory else "offline", fault)
            if not in_memory:
                partition.condition.go_offline(str(fault))
            return False
        folder.checkpoints.take_over(key)
        partition.replace_log(found)
        return True

    def partition_in(self, directory: str) -> Partition | None:
        """The partition whose folder this is."""
        key = partition_of(directory.rpartition("/")[2])
        return None if key is None else self.partitions.get(key)

    def expire_producers_after(self, expiration_ms: int) -> None:
        """Change the time after which idle producers are forgotten, for present and future partitions."""
        if expiration_ms != self.resources.producer_expiration_ms:
            self.resources = replace(self.resources, producer_expiration_ms=expiration_ms)
            for partition in self.partitions.values():
                partition.producers.expiration_ms = expiration_ms

    # -- topics are created and deleted

    def create(
        self, topic: str, index: int, config: TopicConfig, topic_id: bytes | None, place: str | None = None
    ) -> Partition:
        """Create an empty partition, which the caller has recorded."""
        partition = self.folders.for_new(place).create(topic, index, config, topic_id, self.resources)
        self.partitions[topic, index] = partition
        return partition

    def places_of(self, partitions: Iterable[Partition]) -> dict[str, list[int]]:
        """The indexes of partitions by the id of their folder; empty if there is only one folder and none away."""
        places: dict[str, list[int]] = {}
        for partition in partitions if len(self.folders) > 1 or self._away else ():
            key = partition.topic, partition.index
            place = self._away[key] if key in self._away else self.folders.of(partition).identity.directory_id
            if place is not None:
                places.setdefault(place, []).append(partition.index)
        return places

    def identify(self, partition: Partition, topic_id: bytes) -> None:
        """Write the topic's id into a folder without it or with another: made by an old Kafka version, or before a power cut."""
        try:
            checkpoints.save_topic_id(self._storage, partition.directory, topic_id)
        except StorageFault:
            partition.durability.topic_id_due = topic_id
            raise
        partition.topic_id = topic_id

    def delete(self, partition: Partition) -> None:
        """Delete a partition, for good when this returns; its files are removed after `file.delete.delay.ms`."""
        key = partition.topic, partition.index
        if key in self._away:
            self.forget(partition)
            raise StorageFault(f"{partition}: its data folder is unavailable", path=partition.directory)
        folder = self.folders.of(partition)
        try:
            folder.delete(partition)
        finally:
            if key not in folder.partitions:
                self.partitions.pop(key, None)

    def forget(self, partition: Partition) -> None:
        """Stop serving the partition; its files stay, and another worker that shares them may open it."""
        key = partition.topic, partition.index
        folder = self.folders.of(partition)
        if folder.partitions.pop(key, None) is not None:
            folder.checkpoints.hand_over(partition)
        self.partitions.pop(key, None)
        self._away.pop(key, None)

    def take_over(
        self, topic: str, index: int, config: TopicConfig, topic_id: bytes, place: str | None, *, was_clean: bool
    ) -> Partition:
        """Open a partition that another worker or this one has led; without a folder it is created, or offline."""
        folder = next((one for one in self.folders.usable() if one.holds((topic, index))), None)
        if folder is None:
            return self.create_or_offline(topic, index, config, topic_id, place)
        partition = folder.take_over((topic, index), config, self.resources, was_clean=was_clean)
        self.partitions[topic, index] = partition
        return partition

    # -- periodic work

    def apply_retention(self, now_ms: int) -> list[Partition]:
        """Expire segments of every partition by time and size; returns the partitions whose log start has moved."""
        return self._expire(self.partitions.values(), log_start.apply_retention, now_ms)

    def finish_retention(self, now_ms: int) -> list[Partition]:
        """Do the same for partitions whose expired segments waited for a sync that is done now."""
        due = [one for one in self.partitions.values() if one.expiry.is_due]
        return self._expire(due, log_start.finish_retention, now_ms) if due else []

    @staticmethod
    def _expire(
        partitions: Iterable[Partition], expire: Callable[[Partition, int], object], now_ms: int
    ) -> list[Partition]:
        moved = []
        for partition in partitions:
            if partition.condition.fault is not None:
                continue
            start_offset = partition.log_start_offset
            try:
                expire(partition, now_ms)
            except StorageFault as fault:
                log.error("%s: retention failed: %s", partition, fault)
            if partition.log_start_offset != start_offset:
                moved.append(partition)
        return moved

    def partitions_to_sync(self, now_ms: int) -> list[Partition]:
        """Partitions whose `flush.ms` has passed, or with seals or snapshots to write: their `sync` runs in a worker."""
        serving = [one for one in self.partitions.values() if one.condition.takes_appends]
        return [one for one in serving if one.durability.is_due(now_ms, one.config.flush_ms)]

    def retry_stopped(self) -> tuple[list[Partition], list[Callable[[], None]]]:
        """Retry what a disk fault has stopped; returns partitions that are back online, and jobs for workers."""
        reopened, jobs = self._retries.step(self.partitions.values())
        return reopened, jobs + self.folders.due_checks(self._have_back)

    def _have_back(self, folder: DataFolder) -> None:
        """Retry a folder that is away; once it is back, its partitions are opened one after the other."""
        starts = self.folders.claim_again(folder, self.cluster_id)
        for key, place in list(self._away.items()) if starts is not None else ():
            if place in (None, folder.identity.directory_id) and folder.holds(key):
                partition = self.partitions[key]
                partition.directory = place_in(folder.path, key).directory
                partition.log_start_offset = (starts or {}).get(key, 0)
                folder.partitions[key] = partition
                del self._away[key]

    def removal_jobs(self, now_ms: int) -> list[Callable[[], None]]:
        """Jobs that remove files of deleted segments and partitions that are due; may run in a worker."""
        jobs: list[Callable[[], None]] = []
        for partition in self.partitions.values():
            jobs += [
                segment.files.remove for segment in partition.doomed.take(now_ms, partition.config.file_delete_delay_ms)
            ]
        for folder in self.folders.usable():
            jobs += folder.removal_jobs(now_ms)
        return jobs

    def checkpoint_job(self) -> Callable[[], None]:
        """A job that writes the current offset checkpoints of every folder, if they have changed; may run in a worker.

        Active segments that have grown much are sealed with their next sync.
        """
        jobs = [folder.checkpoints.job() for folder in self.folders.usable()]

        def write() -> None:
            faults: list[StorageFault] = []
            for job in jobs:
                try:
                    job()
                except StorageFault as fault:
                    faults.append(fault)
            if faults:
                raise faults[0]

        return write

    def write_log_starts(self) -> set[TopicPartition]:
        """Make the starts of partitions durable; a failure is logged, and the folder's partitions are returned."""
        failed: set[TopicPartition] = set()
        for folder in self.folders.usable():
            try:
                folder.checkpoints.write_starts()
            except StorageFault as fault:
                log.error("%s: new start offsets of partitions could not be written: %s", folder.path, fault)
                failed.update(folder.partitions)
        return failed

    # -- the end

    def close(self, each: Callable[[Callable[[Partition], bool], list[Partition]], Iterable[bool]] = map) -> None:
        """Complete, sync and seal every partition, write the checkpoints, and last of all the mark of a clean stop.

        `each` waits for the disk; it may be a pool's map, because thousands of partitions in sequence take minutes.
        """
        everything = list(self.partitions.values())
        closed = [one for one in everything if _tried(one, closing.complete)]
        settled = list(each(_settle, closed))
        clean = {one for one, done in zip(closed, settled, strict=True) if done and _tried(one, closing.let_go)}
        for folder in self.folders.usable():
            folder.close(
                cleanly=all(one in clean and one.condition.takes_appends for one in folder.partitions.values())
            )

    def abandon(self) -> None:
        """Close and unlock the folders without writing, as if the process had ended."""
        for partition in self.partitions.values():
            closing.close_files(partition)
        self.folders.release()


def _settle(partition: Partition) -> bool:
    return _tried(partition, closing.settle)


def _tried(partition: Partition, step: Callable[[Partition], None]) -> bool:
    try:
        step(partition)
    except StorageFault as fault:
        log.error("%s could not be closed cleanly: %s", partition, fault)
        return False
    return True
