"""One data folder: its lock, the files that describe it, and the partitions whose folders lie in it.

A data folder holds one folder per partition, named `topic-N`, and these files: `.lock`, `meta.properties`, the offset checkpoints
and, only between a clean stop and the next start, `.kafka_cleanshutdown` (see `identity`, `folder_checkpoints`). They are used
unchanged, whichever broker wrote them. Other names are left alone; `<topic>-N.<id>-delete` is the rest of a deleted partition and
is removed. If one partition cannot be opened, only that one is offline, with the reason.

Everything but the jobs that `checkpoints.job` and `removal_jobs` return belongs to one thread.
"""

import errno
import logging
import re
import uuid
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from horolog.base.clock import Clock
from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.manager.identity import FolderIdentity, FolderUnusable
from horolog.broker.log.manager.share import Share
from horolog.broker.log.partition import Partition, Resources, closing, made
from horolog.broker.log.recovery import (
    Circumstances,
    PartitionFolder,
    create_partition,
    offline_partition,
    open_readable,
)
from horolog.broker.log.storage import (
    DataFolderError,
    FolderInUse,
    Lock,
    Storage,
    StorageFault,
    lock_folder,
    make_folder,
)
from horolog.protocol.topic_partition import TopicPartition

log = logging.getLogger(__name__)

PROBE = ".horolog-probe"
"""Written and removed to test whether a failed folder is writable again."""

DELETED_FOLDER_SUFFIX = "-delete"
NOT_TOPICS = frozenset({"__cluster_metadata"})
"""The log of Kafka's controllers: shaped like a topic, but not one."""

_PARTITION_FOLDER = re.compile(r"([a-zA-Z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})")


class _Unmade(NamedTuple):
    """The stand-in for a partition without a folder, and the id of its topic."""

    partition: Partition
    topic_id: bytes | None


class _DoomedFolder(NamedTuple):
    """A deleted partition's folder, removed after the delay, or when the clock was set back by as much."""

    name: str
    since_ms: int
    delay_ms: int


class DataFolder:
    """One data folder, locked from `claim` to `close` or `release`."""

    def __init__(self, path: str, storage: Storage, clock: Clock, share: Share, *, may_make: bool = True) -> None:
        self.path = path
        self._share = share
        self._may_make = may_make
        self.partitions: dict[TopicPartition, Partition] = {}
        self.identity = FolderIdentity(path, storage)
        self.checkpoints = share.checkpoints(path, storage, self.partitions, share)
        self.fault: str | None = None
        """Why it cannot be used, since startup or since a write to it failed."""
        self._storage = storage
        self._clock = clock
        self._lock: Lock | None = None
        self._is_open = False
        self._doomed_folders: list[_DoomedFolder] = []
        self._unmade: dict[TopicPartition, _Unmade] = {}

    def __repr__(self) -> str:
        fault = f", not usable: {self.fault}" if self.fault else ""
        return f"<DataFolder {self.path}: {len(self.partitions)} partitions{fault}>"

    @property
    def is_claimed(self) -> bool:
        """Whether the folder was available at startup, or has become so since."""
        return self._lock is not None

    # -- its owner

    def claim(self, node_id: int) -> None:
        """Create the folder if it is missing, lock it, read its owner. Raises DataFolderError, or FolderUnusable for its disk."""
        if not self._may_make and not self._storage.is_dir(self.path):
            raise FolderUnusable(f"{self.path} does not exist, and with horolog.read.only the broker creates no folder")
        try:
            make_folder(self._storage, self.path)
            self._lock = lock_folder(self._storage, self.path, partial(self._share.lock, self._storage))
        except FolderInUse as error:
            raise DataFolderError(str(error)) from error
        except StorageFault as error:
            raise FolderUnusable(str(error)) from error
        try:
            self.identity.load(node_id)
        except StorageFault as error:
            self.release()
            raise FolderUnusable(f"{self.path} cannot be used: {error}") from error
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Unlock the folder."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def leave(self, reason: str) -> None:
        """Close everything opened in a folder whose disk does not work, and unlock it."""
        self.fault = reason
        for partition in self.partitions.values():
            closing.close_files(partition)
        self.partitions.clear()
        self.release()

    # -- opening

    def open(self, config_of: Callable[[str], TopicConfig], resources: Resources) -> None:
        """Open every partition's folder, each with its topic's configuration."""
        was_clean = self.checkpoints.take_clean_shutdown()
        points = self.checkpoints.load_ends()
        if points.fault is not None:
            log.warning("%s; the ends of its partitions are unknown", points.fault)
            resources.counters.files_rebuilt.value += 1
        starts = self.checkpoints.load_starts()
        if starts.fault is not None:
            log.warning("%s; %s partitions start inside their first segment", starts.fault, len(starts.offsets))
            resources.counters.files_rebuilt.value += 1
        if not was_clean:
            # Folders that the last process made may be in the page cache only, and no partition will request their sync.
            self._storage.sync_dir(self.path)
        now_ms = self._clock.wall_ms()
        self.find_deleted()
        for key in self.keys():
            if self._share.find(*key) is None:
                continue
            start_offset, recovery_point = starts.offsets.get(key, 0), points.offsets.get(key, 0)
            known = Circumstances(was_clean, start_offset, now_ms, recovery_point, may_be_unsynced=not was_clean)
            self.partitions[key] = self._open_partition(key, config_of(key[0]), known, resources)
        self._is_open = True
        if starts.fault is not None:
            self.checkpoints.correct_starts()

    def keys(self) -> list[TopicPartition]:
        """The partitions whose folders lie here. Raises StorageFault."""
        names = sorted(self._storage.list_dir(self.path))
        found = [(name, key) for name in names if (key := partition_of(name)) is not None]
        return [key for name, key in found if self._storage.is_dir(f"{self.path}/{name}")]

    def take_over(
        self, key: TopicPartition, config: TopicConfig, resources: Resources, *, was_clean: bool
    ) -> Partition:
        """Open a partition whose folder lies here, as its last leader left it; it is offline while its start cannot be read."""
        now_ms = self._clock.wall_ms()
        try:
            start_offset = self.checkpoints.start_of(key)
        except StorageFault as fault:
            log.error("%s-%s is offline: where it starts cannot be read: %s", *key, fault)
            partition = offline_partition(place_in(self.path, key), config, resources, str(fault))
        else:
            self.checkpoints.take_over(key)
            known = Circumstances(was_clean, start_offset, now_ms, may_be_unsynced=not was_clean)
            partition = self._open_partition(key, config, known, resources)
        self.partitions[key] = partition
        return partition

    def _open_partition(
        self, key: TopicPartition, config: TopicConfig, known: Circumstances, resources: Resources
    ) -> Partition:
        place = place_in(self.path, key)
        try:
            return made(open_readable(place, config, resources, known))
        except StorageFault as fault:
            log.error("%s-%s cannot be opened and is offline: %s", *key, fault)
            return offline_partition(place, config, resources, str(fault), known.log_start_offset)

    def come_back(self) -> dict[TopicPartition, int]:
        """Use the folder again after it was away; returns the log starts. Deleted folders are removed. Raises StorageFault."""
        self.checkpoints.take_clean_shutdown()
        starts = self.checkpoints.load_starts()
        self._storage.sync_dir(self.path)
        self.find_deleted()
        self.fault, self._is_open = None, True
        return dict(starts.offsets)

    def has_waiting_partitions(self) -> bool:
        return any(not one.condition.takes_appends for one in self.partitions.values())

    def find_deleted(self, delay_ms: int = 0) -> None:
        """Have the folders removed that an earlier process left of deleted partitions, after this time. Raises StorageFault."""
        if not self._share.is_first:
            return
        now_ms = self._clock.wall_ms()
        for name in self._storage.list_dir(self.path):
            if name.endswith(DELETED_FOLDER_SUFFIX) and self._storage.is_dir(f"{self.path}/{name}"):
                self._doomed_folders.append(_DoomedFolder(name, now_ms, delay_ms))

    def holds(self, key: TopicPartition) -> bool:
        """Whether a partition's folder lies in this one."""
        return self._storage.is_dir(place_in(self.path, key).directory)

    def check(self) -> None:
        """Test whether the folder can be written, and set or clear its fault. May run in a worker."""
        number, files = self.checkpoints.contents()
        try:
            probe = self._share.named(PROBE)
            self._storage.write_atomically(f"{self.path}/{probe}", b"")
            self._storage.remove(f"{self.path}/{probe}")
            for name, data in files.items():
                self.checkpoints.write(name, data, number)
        except StorageFault as fault:
            if self.fault is None:
                log.error("%s: the data folder cannot be used: %s", self.path, fault)
            self.fault = str(fault)
            return
        if self.fault is not None:
            log.info("%s: the data folder can be used again", self.path)
        self.fault = None

    # -- partitions come and go

    def create(
        self, topic: str, index: int, config: TopicConfig, topic_id: bytes | None, resources: Resources
    ) -> Partition:
        """Create an empty partition, which the caller has recorded. If that fails, its beginnings are removed."""
        key = topic, index
        place = place_in(self.path, key)
        self.checkpoints.make_room_for(key)
        if self._storage.exists(place.directory):
            self._remove_what_a_deletion_left(key)
        try:
            partition = create_partition(place, topic_id, config, resources, self._clock.wall_ms())
        except StorageFault as fault:
            _forget_folder(self._storage, place.directory)
            self.fault = str(fault)
            raise
        self.partitions[key] = partition
        return partition

    def _remove_what_a_deletion_left(self, key: TopicPartition) -> None:
        """Rename the folder of a deleted partition, which the disk refused before. Raises StorageFault, and keeps a folder that is not ours."""
        directory = place_in(self.path, key).directory
        left = self.partitions.get(key)
        if left is None or not left.condition.is_deleted:
            raise StorageFault(
                f"{directory} already exists, and was not made by this broker: move it elsewhere first",
                path=directory,
                code=errno.EEXIST,
            )
        doom(self._storage, directory)

    def unmade(
        self, topic: str, index: int, config: TopicConfig, topic_id: bytes | None, reason: str, resources: Resources
    ) -> Partition:
        """An offline stand-in for a partition of this folder whose own folder cannot be created now."""
        partition = offline_partition(place_in(self.path, (topic, index)), config, resources, reason)
        self.partitions[topic, index] = partition
        self._unmade[topic, index] = _Unmade(partition, topic_id)
        return partition

    def make_at_last(self, partition: Partition, resources: Resources) -> None:
        """Create the folder of an unmade partition. Raises StorageFault."""
        if self._is_unmade(partition):
            key = partition.topic, partition.index
            closing.close_files(self.create(*key, partition.config, self._unmade[key].topic_id, resources))
            self.partitions[key] = partition
            del self._unmade[key]

    def _is_unmade(self, partition: Partition) -> bool:
        key = partition.topic, partition.index
        unmade = self._unmade.get(key)
        return unmade is not None and unmade.partition is partition and not self.holds(key)

    def delete(self, partition: Partition, *, synced: bool = True) -> None:
        """Delete a partition, for good when this returns, if `synced`; its files are removed after `file.delete.delay.ms`.

        Raises StorageFault. A partition whose folder could be renamed is gone even then, but a power cut may bring its folder back.
        """
        key = partition.topic, partition.index
        if self._is_unmade(partition):
            partition.condition.delete()
            del self.partitions[key], self._unmade[key]
            return
        closing.end(partition)
        self.drop(key, partition.config)
        if synced:
            self._storage.sync_dir(self.path)

    def drop(self, key: TopicPartition, config: TopicConfig) -> None:
        """Rename the folder of a partition that is not open, so that its files are removed later; unsynced. Raises StorageFault."""
        name = _name_of_doomed(f"{key[0]}-{key[1]}")
        self._storage.rename(place_in(self.path, key).directory, f"{self.path}/{name}")
        self.partitions.pop(key, None)
        if config.compact:
            self.checkpoints.forget_cleaned(key)
        self._doomed_folders.append(_DoomedFolder(name, self._clock.wall_ms(), config.file_delete_delay_ms))

    # -- periodic work

    def removal_jobs(self, now_ms: int) -> list[Callable[[], None]]:
        """A job that removes the folders of deleted partitions that are due, if there are any; may run in a worker."""
        due: list[_DoomedFolder] = []
        later: list[_DoomedFolder] = []
        for one in self._doomed_folders:
            (due if abs(now_ms - one.since_ms) >= one.delay_ms else later).append(one)
        self._doomed_folders = later
        paths = [f"{self.path}/{one.name}" for one in due]
        return [partial(_remove_each, self._storage, paths)] if paths else []

    def disk_space(self) -> tuple[int, int]:
        """The total and the available bytes of the folder's file system."""
        return self._storage.disk_space(self.path)

    def close(self, *, cleanly: bool) -> None:
        """Write the checkpoints and, if every partition was closed cleanly, the mark of a clean stop; unlock the folder."""
        if not self._is_open:
            self.release()  # its partitions are unknown
            return
        try:
            self.checkpoints.write_all()
            if cleanly:
                self.checkpoints.mark_clean_shutdown()
        except StorageFault as fault:
            log.error("%s: could not record that the stop was clean: %s", self.path, fault)
        self.release()


def partition_of(folder_name: str) -> TopicPartition | None:
    """The partition that a folder name denotes, None for other names."""
    match = _PARTITION_FOLDER.fullmatch(folder_name)
    if match is None or match[1] in NOT_TOPICS or match[1] in {".", ".."}:
        return None
    return match[1], int(match[2])


def place_in(data_folder: str, key: TopicPartition) -> PartitionFolder:
    """The place of a partition in a data folder."""
    return PartitionFolder(*key, f"{data_folder}/{key[0]}-{key[1]}")


def _name_of_doomed(name: str) -> str:
    return f"{name}.{uuid.uuid4().hex}{DELETED_FOLDER_SUFFIX}"


def _forget_folder(storage: Storage, directory: str) -> None:
    """Remove the beginnings of a partition."""
    try:
        if storage.is_dir(directory):
            remove_folder(storage, directory)
    except StorageFault as fault:
        log.error("%s was not created, and its files cannot be removed: %s", directory, fault)


def doom(storage: Storage, directory: str, *, synced: bool = True) -> None:
    """Delete a partition that is not open: rename its folder, for good if `synced`; a start removes its files. Raises StorageFault."""
    folder, _, name = directory.rpartition("/")
    storage.rename(directory, f"{folder}/{_name_of_doomed(name)}")
    if synced:
        storage.sync_dir(folder)


def _remove_each(storage: Storage, paths: Iterable[str]) -> None:
    """One after the other: there may be thousands, and other work on the disk goes on beside. A start removes those that stay."""
    for path in paths:
        try:
            remove_folder(storage, path)
        except StorageFault as fault:
            log.error("%s is deleted, but its files cannot be removed: %s", path, fault)


def remove_folder(storage: Storage, path: str) -> None:
    """Remove a folder of files, if it exists."""
    if not storage.is_dir(path):
        return
    for name in storage.list_dir(path):
        storage.remove(f"{path}/{name}")
    storage.remove_dir(path)
