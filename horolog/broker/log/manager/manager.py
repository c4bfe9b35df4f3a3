"""All partitions of a broker: opened from the data folders, created, deleted, and opened again once their disk works.

One folder and its files are `data_folder`'s. Of several folders some may be away: their disk does not work. The
partitions that lie there are offline until it does; the others are served. Who lies where is on record by the folders' ids (`places_of`).

Everything but the jobs that `checkpoint_job` and `removal_jobs` return belongs to one thread.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random

from horolog.broker.clock import Clock
from horolog.broker.log.files import checkpoints
from horolog.broker.log.manager.data_folder import DataFolder, partition_of, place_in
from horolog.broker.log.manager.data_folders import DataFolders
from horolog.broker.log.manager.folder_checkpoints import TopicPartition
from horolog.broker.log.manager.share import Share
from horolog.broker.log.partition import Partition, Resources, closing, log_start
from horolog.broker.log.recovery import (
    Circumstances,
    Place,
    Retries,
    offline_partition,
    open_readable,
    open_writable,
    storage_below,
)
from horolog.broker.log.segments import ConvertedChunks
from horolog.broker.log.storage import Storage, StorageFault
from horolog.broker.settings import Settings
from horolog.broker.topic_settings import TopicConfig

log = logging.getLogger(__name__)


class LogManager:
    """The data folders of one broker, locked while this object lives; or the `share` of them that one worker of several has."""

    def __init__(
        self, data_dirs: list[str], storage: Storage, clock: Clock, settings: Settings, share: Share | None = None
    ) -> None:
        may_make = not settings.horolog_read_only
        self.share = share
        node_id = settings.node_id if share is None else share.owner
        self.folders = DataFolders(data_dirs, storage, clock, node_id, share, may_make=may_make)
        self.partitions: dict[TopicPartition, Partition] = {}
        self.record_number: Callable[[], int] = lambda: 0
        """How often the record of the cluster was written."""
        for folder in self.folders:
            folder.checkpoints.record_number = lambda: self.record_number()  # noqa: PLW0108 - whoever writes it sets it later
        self._storage = storage
        self._clock = clock
        self._away: dict[TopicPartition, str | None] = {}
        """Partitions of folders that are away, with the id of theirs if it is known."""
        self.resources = Resources(
            storage,
            settings.producer_id_expiration_ms,
            Random().random,  # noqa: S311 - jitter, no secret
            converted=ConvertedChunks(settings.horolog_fetch_upconversion_cache_bytes),
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
        """A partition that is on record and has no folder: a new one, or one that is offline until one can be made.

        One that lies in a folder that is away, or may do so, is not made anew: `place` is the id of its folder, where that is known.
        """
        if self.folders.may_lack([] if place is None else [place]) and not self.folders.has(place):
            return self._put_away(topic, index, config, place)
        try:
            return self.create(topic, index, config, topic_id, place)
        except StorageFault as fault:
            log.error("%s-%s has no folder and none can be made, it is offline: %s", topic, index, fault)
            offline = self.folders.for_new(place).unmade(topic, index, config, topic_id, str(fault), self.resources)
            self.partitions[topic, index] = offline
            return offline

    def _put_away(self, topic: str, index: int, config: TopicConfig, place: str | None) -> Partition:
        folder = next((one for one in self.folders if not one.is_claimed), self.folders[0])
        reason = f"its data folder (directory.id={place or 'unknown'}) is away: {folder.fault or 'log.dirs does not name it'}"
        log.error("%s-%s is offline: %s", topic, index, reason)
        partition = offline_partition(place_in(folder.path, (topic, index)), config, self.resources, reason)
        self._away[topic, index] = place
        self.partitions[topic, index] = partition
        return partition

    def open_again(self, partition: Partition) -> bool:
        """Try to have an offline partition back as its folder is now, or one in memory back on the disk. It takes appends once rewritten."""
        key = partition.topic, partition.index
        if key in self._away:
            return False
        folder = self.folders.of(partition)
        closing.close_files(partition)
        for segment in partition.segments:
            segment.log.withdraw()  # an opening cuts off what it finds torn, and other records come there
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
            found = open_it(Place(*key, partition.directory), partition.config, self.resources, known)
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
        """Another time after which silent producers are forgotten, for partitions that are here and those to come."""
        if expiration_ms != self.resources.producer_expiration_ms:
            self.resources = replace(self.resources, producer_expiration_ms=expiration_ms)
            for partition in self.partitions.values():
                partition.producers.expiration_ms = expiration_ms

    # -- topics come and go

    def create(
        self, topic: str, index: int, config: TopicConfig, topic_id: bytes | None, place: str | None = None
    ) -> Partition:
        """A new, empty partition; the caller has on record that it exists. What a failed attempt has left is removed first."""
        partition = self.folders.for_new(place).create(topic, index, config, topic_id, self.resources)
        self.partitions[topic, index] = partition
        return partition

    def places_of(self, partitions: Iterable[Partition]) -> dict[str, list[int]]:
        """In which folders partitions lie, by the folders' ids; nothing where there is one folder and none away."""
        places: dict[str, list[int]] = {}
        for partition in partitions if len(self.folders) > 1 or self._away else ():
            key = partition.topic, partition.index
            place = self._away[key] if key in self._away else self.folders.of(partition).identity.directory_id
            if place is not None:
                places.setdefault(place, []).append(partition.index)
        return places

    def identify(self, partition: Partition, topic_id: bytes) -> None:
        """Put the topic's id into a folder that has none or another: made by an old Kafka, or just before a power cut."""
        try:
            checkpoints.save_topic_id(self._storage, partition.directory, topic_id)
        except StorageFault:
            partition.durability.topic_id_due = topic_id
            raise
        partition.topic_id = topic_id

    def delete(self, partition: Partition) -> None:
        """The partition is gone for good when this returns; its files are removed after `file.delete.delay.ms`."""
        key = partition.topic, partition.index
        if key in self._away:
            self.forget(partition)
            raise StorageFault(f"{partition!r}: its data folder is away", path=partition.directory)
        self.folders.of(partition).delete(partition)
        self.partitions.pop(key, None)

    def forget(self, partition: Partition) -> None:
        """Serve the partition no more; its files stay. Where workers share them another one may open it."""
        key = partition.topic, partition.index
        folder = self.folders.of(partition)
        if folder.partitions.pop(key, None) is not None:
            folder.checkpoints.hand_over(partition)
        self.partitions.pop(key, None)
        self._away.pop(key, None)

    def take_over(
        self, topic: str, index: int, config: TopicConfig, topic_id: bytes, place: str | None, *, was_clean: bool
    ) -> Partition:
        """Open a partition that another worker has led, or this one until now; one without a folder is made, or offline."""
        folder = next((one for one in self.folders.usable() if one.holds((topic, index))), None)
        if folder is None:
            return self.create_or_offline(topic, index, config, topic_id, place)
        partition = folder.take_over((topic, index), config, self.resources, was_clean=was_clean)
        self.partitions[topic, index] = partition
        return partition

    # -- work that comes again and again

    def apply_retention(self, now_ms: int) -> list[Partition]:
        """Let every partition expire segments by time and size; the partitions whose log start has moved."""
        return self._expire(self.partitions.values(), log_start.apply_retention, now_ms)

    def finish_retention(self, now_ms: int) -> list[Partition]:
        """Do the same for partitions whose expired segments waited for a sync that has been made."""
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
                log.error("%r: retention failed: %s", partition, fault)
            if partition.log_start_offset != start_offset:
                moved.append(partition)
        return moved

    def partitions_to_sync(self, now_ms: int) -> list[Partition]:
        """Those for which `flush.ms` has passed, or that have seals or snapshots to write: give each `sync` to a worker."""
        serving = [one for one in self.partitions.values() if one.condition.takes_appends]
        return [one for one in serving if one.durability.is_due(now_ms, one.config.flush_ms)]

    def retry_stopped(self) -> tuple[list[Partition], list[Callable[[], None]]]:
        """Try to have back what a fault of the disk has stopped: partitions that are back online, and jobs for workers."""
        reopened, jobs = self._retries.step(self.partitions.values())
        return reopened, jobs + self.folders.due_checks(self._have_back)

    def _have_back(self, folder: DataFolder) -> None:
        """A folder that was away: its partitions are opened one after the other once it is there."""
        starts = self.folders.claim_again(folder, self.cluster_id)
        for key, place in list(self._away.items()) if starts is not None else ():
            if place in (None, folder.identity.directory_id) and folder.holds(key):
                partition = self.partitions[key]
                partition.directory = place_in(folder.path, key).directory
                partition.log_start_offset = (starts or {}).get(key, 0)
                folder.partitions[key] = partition
                del self._away[key]

    def removal_jobs(self, now_ms: int) -> list[Callable[[], None]]:
        """What removes files that have been out of use for long enough; may run in a worker."""
        jobs: list[Callable[[], None]] = []
        for partition in self.partitions.values():
            jobs += [
                segment.files.remove for segment in partition.doomed.take(now_ms, partition.config.file_delete_delay_ms)
            ]
        for folder in self.folders.usable():
            jobs += folder.removal_jobs(now_ms)
        return jobs

    def checkpoint_job(self) -> Callable[[], None]:
        """What writes the offset checkpoints of every folder as things are now, if they have changed; may run in a worker.

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
        """Make it durable where partitions start; those of the folders for which that failed, which is logged."""
        failed: set[TopicPartition] = set()
        for folder in self.folders.usable():
            try:
                folder.checkpoints.write_starts()
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
        closed = [one for one in everything if _tried(one, closing.complete)]
        settled = list(each(_settle, closed))
        clean = {one for one, done in zip(closed, settled, strict=True) if done and _tried(one, closing.let_go)}
        for folder in self.folders.usable():
            folder.close(
                cleanly=all(one in clean and one.condition.takes_appends for one in folder.partitions.values())
            )

    def abandon(self) -> None:
        """Let go of the folder as it is, as if the process had ended."""
        for partition in self.partitions.values():
            closing.close_files(partition)
        self.folders.release()


def _settle(partition: Partition) -> bool:
    return _tried(partition, closing.settle)


def _tried(partition: Partition, step: Callable[[Partition], None]) -> bool:
    try:
        step(partition)
    except StorageFault as fault:
        log.error("%r could not be closed cleanly: %s", partition, fault)
        return False
    return True
