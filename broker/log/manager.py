"""Opens the data folders and keeps what is in them: the partitions of all, where new ones go, and which wait for their disk.

What lies in one folder, and what is written there, is `data_folder`'s.

Everything but the jobs that `checkpoint_job` and `removal_jobs` return belongs to one thread.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random

from broker.clock import Clock
from broker.log import checkpoints
from broker.log.converted_chunks import ConvertedChunks
from broker.log.data_folder import DataFolder, DataFolderError, TopicPartition, new_id, partition_of
from broker.log.opened import Resources
from broker.log.opening import open_readable, open_writable, storage_below
from broker.log.partition import Partition
from broker.log.recovery import Circumstances
from broker.log.revival import Revival
from broker.log.storage import Storage, StorageFault, parent_of
from broker.settings import Settings
from broker.topic_settings import TopicConfig

log = logging.getLogger(__name__)


class LogManager:
    """The data folders of one broker, locked while this object lives."""

    def __init__(self, data_dirs: list[str], storage: Storage, clock: Clock, settings: Settings) -> None:
        self.folders = [DataFolder(path, storage, clock) for path in data_dirs]
        self.partitions: dict[TopicPartition, Partition] = {}
        self._storage = storage
        self._clock = clock
        self.resources = Resources(
            storage,
            settings.producer_id_expiration_ms,
            Random().random,  # noqa: S311 - jitter, no secret
            converted=ConvertedChunks(settings.horolog_fetch_upconversion_cache_bytes),
        )
        self._revival = Revival(clock.monotonic, self.open_again)
        try:
            self.cluster_id = self._claim(settings.node_id)
        except BaseException:
            self._release()
            raise

    def __repr__(self) -> str:
        return f"<LogManager of {self.folders}>"

    # -- opening

    def _claim(self, node_id: int) -> str:
        """Lock every folder and have each say that it belongs to this node and to one cluster: the cluster's id."""
        for folder in self.folders:
            folder.claim(node_id)
        cluster_id = next((folder.cluster_id for folder in self.folders if folder.cluster_id is not None), None)
        cluster_id = cluster_id or new_id()
        for folder in self.folders:
            try:
                folder.complete_meta(node_id, cluster_id)
            except StorageFault as error:
                raise DataFolderError(f"{folder.path} can not be used: {error}") from error
        return cluster_id

    def _release(self) -> None:
        for folder in self.folders:
            folder.release()

    def open(self, config_of: Callable[[str], TopicConfig]) -> None:
        """Open every partition's folder, each with its topic's configuration."""
        for folder in self.folders:
            folder.open(config_of, self.resources)
            self.partitions.update(folder.partitions)

    def create_or_offline(self, topic: str, index: int, config: TopicConfig, topic_id: bytes) -> Partition:
        """A partition that is on record and has no folder: a new one, or one that is offline because none can be made."""
        try:
            return self.create(topic, index, config, topic_id)
        except StorageFault as fault:
            log.error("%s-%s has no folder and none can be made, it is offline: %s", topic, index, fault)
            offline = self._folder_for_new().offline(topic, index, config, str(fault), self.resources)
            self.partitions[topic, index] = offline
            return offline

    def open_again(self, partition: Partition) -> bool:
        """Try to have an offline partition back as its folder is now, or one in memory back on the disk. It takes appends once repaired."""
        key = partition.topic, partition.index
        known = Circumstances(
            was_clean=False,
            log_start_offset=partition.log_start_offset,
            now_ms=self._clock.wall_ms(),
            may_be_unsynced=True,
        )
        partition.close_files()
        in_memory = partition.fault is None and storage_below(partition) is not None
        open_it = open_writable if in_memory else open_readable
        try:
            found = open_it(*key, partition.directory, partition.config, self.resources, known)
        except StorageFault as fault:
            log.warning("%s-%s is still %s: %s", *key, "kept in memory" if in_memory else "offline", fault)
            if not in_memory:
                partition.fault = str(fault)
            return False
        partition.become(found)
        return True

    def partition_in(self, directory: str) -> Partition | None:
        """The partition whose folder this is."""
        key = partition_of(directory.rpartition("/")[2])
        return None if key is None else self.partitions.get(key)

    def expire_producers_after(self, expiration_ms: int) -> None:
        """Another time after which silent producers are forgotten, for partitions that are here and those to come."""
        if expiration_ms != self.resources.producer_expiration_ms:
            self.resources = replace(self.resources, producer_expiration_ms=expiration_ms)
            for partition in self.partitions.values():
                partition.producers().expiration_ms = expiration_ms

    # -- topics come and go

    def create(self, topic: str, index: int, config: TopicConfig, topic_id: bytes | None) -> Partition:
        """A new, empty partition; the caller has on record that it exists. What a failed attempt has left is removed first."""
        partition = self._folder_for_new().create(topic, index, config, topic_id, self.resources)
        self.partitions[topic, index] = partition
        return partition

    def _folder_for_new(self) -> DataFolder:
        """The folder with the fewest partitions; the first of several."""
        return min(self.folders, key=lambda one: len(one.partitions))

    def folder_of(self, partition: Partition) -> DataFolder:
        """The data folder that a partition lies in."""
        path = parent_of(partition.directory)
        return next(folder for folder in self.folders if folder.path == path)

    def identify(self, partition: Partition, topic_id: bytes) -> None:
        """Put the topic's id into a folder that has none: made by an old Kafka, or just before a power cut."""
        checkpoints.save_topic_id(self._storage, partition.directory, topic_id)
        partition.topic_id = topic_id

    def delete(self, partition: Partition) -> None:
        """The partition is gone for good when this returns; its files are removed after `file.delete.delay.ms`."""
        self.folder_of(partition).delete(partition)
        self.partitions.pop((partition.topic, partition.index), None)

    def forget(self, partition: Partition) -> None:
        """Serve the partition no more; its files stay."""
        key = partition.topic, partition.index
        self.folder_of(partition).partitions.pop(key, None)
        self.partitions.pop(key, None)

    # -- work that comes again and again

    def apply_retention(self, now_ms: int) -> list[Partition]:
        """Let every partition expire what is too old or too much; the partitions whose log start has moved."""
        moved = []
        for partition in list(self.partitions.values()):
            if partition.fault is not None:
                continue
            start_offset = partition.log_start_offset
            try:
                partition.apply_retention(now_ms)
            except StorageFault as fault:
                log.error("%r: retention failed: %s", partition, fault)
            if partition.log_start_offset != start_offset:
                moved.append(partition)
        return moved

    def partitions_to_sync(self, now_ms: int) -> list[Partition]:
        """Those for which `flush.ms` has passed, or that have seals or snapshots to write: give each `sync` to a worker."""
        return [one for one in self.partitions.values() if one.takes_appends and one.sync_is_due(now_ms)]

    def revive(self) -> tuple[list[Partition], list[Callable[[], None]]]:
        """Try to have back what a fault of the disk has stopped: partitions that are back online, and jobs for workers."""
        return self._revival.step(self.partitions.values())

    def removal_jobs(self, now_ms: int) -> list[Callable[[], None]]:
        """What removes files that have been out of use for long enough; may run in a worker."""
        jobs: list[Callable[[], None]] = []
        for partition in self.partitions.values():
            jobs += [segment.remove_files for segment in partition.take_doomed(now_ms)]
        for folder in self.folders:
            jobs += folder.removal_jobs(now_ms)
        return jobs

    def checkpoint_job(self) -> Callable[[], None]:
        """What writes the offset checkpoints of every folder as things are now, if they have changed; may run in a worker.

        Active segments that have grown much are sealed with their next sync.
        """
        jobs = [folder.checkpoint_job() for folder in self.folders]

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

    def write_checkpoints(self) -> None:
        self.checkpoint_job()()

    def write_log_starts(self) -> set[TopicPartition]:
        """Make it durable where partitions start; those of the folders for which that failed, which is logged."""
        failed: set[TopicPartition] = set()
        for folder in self.folders:
            try:
                folder.write_log_starts()
            except StorageFault:
                log.exception("%r: new starts of partitions are not on the disk", folder)
                failed.update(folder.partitions)
        return failed

    # -- the end

    def close(self, each: Callable[[Callable[[Partition], bool], list[Partition]], Iterable[bool]] = map) -> None:
        """Complete, sync and seal every partition, write the checkpoints, and last of all say that the stop was clean.

        The disk is waited for in `each`, which may be a pool's map: one after the other, thousands of partitions take minutes.
        """
        everything = list(self.partitions.values())
        closed = [one for one in everything if _tried(one, Partition.complete)]
        settled = list(each(_settle, closed))
        clean = {one for one, done in zip(closed, settled, strict=True) if done and _tried(one, Partition.let_go)}
        for folder in self.folders:
            folder.close(cleanly=all(one in clean and one.takes_appends for one in folder.partitions.values()))

    def abandon(self) -> None:
        """Let go of the folder as it is, as if the process had ended."""
        for partition in self.partitions.values():
            partition.close_files()
        self._release()


def _settle(partition: Partition) -> bool:
    return _tried(partition, Partition.settle)


def _tried(partition: Partition, step: Callable[[Partition], None]) -> bool:
    try:
        step(partition)
    except StorageFault as fault:
        log.error("%r could not be closed cleanly: %s", partition, fault)
        return False
    return True
