"""Opens a data folder and keeps what is in it: partitions, the files that describe them, and what is to be removed later.

A data folder holds one folder per partition, named `topic-N`, and these files: `.lock`, `meta.properties`, the offset
checkpoints and, only between a clean stop and the next start, `.kafka_cleanshutdown` (see `checkpoints`, `meta_properties`). Whoever
wrote the folders, they are taken over as they are. Names that are nothing of this are left alone; `<topic>-N.<id>-delete` is
what is left of a deleted partition and removed. A partition that can not be opened is offline, alone, with the reason.

Everything but the jobs that `checkpoint_job` and `removal_jobs` return belongs to one thread.
"""

import logging
import re
import threading
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from random import Random
from typing import NamedTuple

from broker.clock import Clock
from broker.log import checkpoints, log_starts, meta_properties
from broker.log.checkpoints import CheckpointError
from broker.log.meta_properties import MetaDamaged, MetaProperties
from broker.log.opened import Resources
from broker.log.partition import Partition
from broker.log.recovery import Circumstances, create_partition, offline_partition, open_partition
from broker.log.revival import Revival
from broker.log.storage import FolderInUse, Storage, StorageFault, parent_of
from broker.settings import Settings
from broker.topic_settings import TopicConfig

log = logging.getLogger(__name__)

LOCK_FILE = ".lock"
DELETED_FOLDER_SUFFIX = "-delete"
NOT_TOPICS = frozenset({"__cluster_metadata"})
"""Kafka's own log of its controllers: shaped like a topic, but none."""

_PARTITION_FOLDER = re.compile(r"([a-zA-Z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})")

TopicPartition = tuple[str, int]


class DataFolderError(Exception):
    """The data folder can not be used as it is; the message says why and what to do."""


class _DoomedFolder(NamedTuple):
    """A deleted partition's folder, to be removed when the delay is over, or the clock was set back by as much."""

    name: str
    since_ms: int
    delay_ms: int


class LogManager:
    """One data folder, locked while this object lives."""

    def __init__(self, data_dir: str, storage: Storage, clock: Clock, settings: Settings) -> None:
        self.data_dir = data_dir
        self.partitions: dict[TopicPartition, Partition] = {}
        self._storage = storage
        self._clock = clock
        self.resources = Resources(storage, settings.producer_id_expiration_ms, Random().random)  # noqa: S311 - jitter, no secret
        self._revival = Revival(clock.monotonic, self.open_again)
        self._doomed_folders: list[_DoomedFolder] = []
        self._written_checkpoints: dict[str, tuple[int, bytes]] = {}
        self._checkpoint_guard = threading.Lock()
        self._checkpoint_number = 0
        self._named_in_starts: set[TopicPartition] = set()
        self._make_folder()
        try:
            self._lock = storage.lock(f"{data_dir}/{LOCK_FILE}")
        except FolderInUse as error:
            raise DataFolderError(f"{data_dir} is in use by another broker: {error}") from error
        except StorageFault as error:
            raise DataFolderError(f"{data_dir} can not be used: {error}") from error
        try:
            self._meta = self._load_meta(settings)
        except StorageFault as error:
            self._lock.release()
            raise DataFolderError(f"{data_dir} can not be used: {error}") from error
        except BaseException:
            self._lock.release()
            raise

    def __repr__(self) -> str:
        return f"<LogManager {self.data_dir}: {len(self.partitions)} partitions>"

    @property
    def cluster_id(self) -> str:
        assert self._meta.cluster_id is not None
        return self._meta.cluster_id

    # -- opening

    def _make_folder(self) -> None:
        """Make the data folder, with those above it, durably."""
        missing = []
        path = self.data_dir
        while not self._storage.is_dir(path):
            missing.append(path)
            path = parent_of(path)
        try:
            for path in reversed(missing):
                self._storage.make_dir(path)
                self._storage.sync_dir(parent_of(path))
        except StorageFault as error:
            raise DataFolderError(f"the data folder can not be made: {error}") from error

    def _load_meta(self, settings: Settings) -> MetaProperties:
        """What the folder says about itself, completed and written if something was missing."""
        path = f"{self.data_dir}/{meta_properties.FILE_NAME}"
        damaged = False
        try:
            meta = meta_properties.load(self._storage, self.data_dir)
        except MetaDamaged as damage:
            meta, damaged = self._salvage_meta(path, damage), True
        except CheckpointError as damage:
            raise DataFolderError(f"{path}: {damage}; mend it, or remove it to have a new one written") from damage
        if meta is None:
            meta = MetaProperties(1, settings.node_id, _new_id(), _new_id())
        elif meta.node_id is not None and meta.node_id != settings.node_id:
            raise DataFolderError(
                f"{path} belongs to node.id={meta.node_id}, but this broker has node.id={settings.node_id}:"
                f" set node.id={meta.node_id}, or use another data folder"
            )
        elif meta.node_id is not None and meta.cluster_id is not None and not damaged:
            return meta
        else:
            meta = MetaProperties(
                meta.version, settings.node_id, meta.cluster_id or _new_id(), meta.directory_id, meta.others
            )
        meta_properties.save(self._storage, self.data_dir, meta, self._clock.wall_ms())
        return meta

    def _salvage_meta(self, path: str, damage: MetaDamaged) -> MetaProperties:
        data = self._storage.read_all(path)
        self._storage.write_atomically(path + meta_properties.DAMAGED_SUFFIX, data)
        meta = meta_properties.salvage(data)
        message = "%s is damaged (%s) and kept as %s; node.id=%s, cluster.id=%s could be read, the rest is new"
        log.error(message, path, damage, meta_properties.DAMAGED_SUFFIX, meta.node_id, meta.cluster_id)
        return meta

    def open(self, config_of: Callable[[str], TopicConfig]) -> None:
        """Open every partition's folder, each with its topic's configuration."""
        was_clean = self._take_clean_shutdown()
        points = self._load_checkpoint(checkpoints.RECOVERY_POINTS)
        if points.fault is not None:
            log.warning("%s; where partitions ended is not known from there", points.fault)
        starts = log_starts.load(self._storage, self.data_dir)
        if starts.fault is not None:
            log.warning("%s; %s partitions start inside of their first segment", starts.fault, len(starts.offsets))
        self._named_in_starts.update(starts.offsets)
        if not was_clean:
            # Folders that the last process has made may be known to the page cache only, and no partition asks for it again.
            self._storage.sync_dir(self.data_dir)
        now_ms = self._clock.wall_ms()
        for name in sorted(self._storage.list_dir(self.data_dir)):
            if name.endswith(DELETED_FOLDER_SUFFIX) and self._storage.is_dir(f"{self.data_dir}/{name}"):
                self._doomed_folders.append(_DoomedFolder(name, now_ms, 0))
                continue
            key = partition_of(name)
            if key is None or not self._storage.is_dir(f"{self.data_dir}/{name}"):
                continue
            start_offset, recovery_point = starts.offsets.get(key, 0), points.offsets.get(key, 0)
            known = Circumstances(was_clean, start_offset, now_ms, recovery_point, may_be_unsynced=not was_clean)
            self.partitions[key] = self._open_partition(key, name, config_of(key[0]), known)

    def _take_clean_shutdown(self) -> bool:
        """A mark that can not be removed would still be there after a crash: it is not believed."""
        try:
            return checkpoints.take_clean_shutdown(self._storage, self.data_dir)
        except StorageFault as fault:
            log.error("%s: the stop counts as a crash: %s", self.data_dir, fault)
            return False

    def _load_checkpoint(self, name: str) -> checkpoints.Loaded:
        try:
            return checkpoints.load_offsets(self._storage, f"{self.data_dir}/{name}")
        except StorageFault as fault:
            return checkpoints.Loaded(fault=str(fault))

    def _open_partition(self, key: TopicPartition, name: str, config: TopicConfig, known: Circumstances) -> Partition:
        directory = f"{self.data_dir}/{name}"
        try:
            return open_partition(*key, directory, config, self.resources, known)
        except StorageFault as fault:
            log.error("%s can not be opened and is offline: %s", name, fault)
            offline = offline_partition(*key, directory, config, self.resources, str(fault))
            offline.log_start_offset = known.log_start_offset
            return offline

    def create_or_offline(self, topic: str, index: int, config: TopicConfig, topic_id: bytes) -> Partition:
        """A partition that is on record and has no folder: a new one, or one that is offline because none can be made."""
        try:
            return self.create(topic, index, config, topic_id)
        except StorageFault as fault:
            log.error("%s-%s has no folder and none can be made, it is offline: %s", topic, index, fault)
            directory = f"{self.data_dir}/{topic}-{index}"
            offline = offline_partition(topic, index, directory, config, self.resources, str(fault))
            self.partitions[topic, index] = offline
            return offline

    def open_again(self, partition: Partition) -> bool:
        """Try to have an offline partition back as its folder is now. It takes appends once it is repaired."""
        key = partition.topic, partition.index
        known = Circumstances(
            was_clean=False,
            log_start_offset=partition.log_start_offset,
            now_ms=self._clock.wall_ms(),
            may_be_unsynced=True,
        )
        partition.close_files()
        try:
            found = open_partition(*key, partition.directory, partition.config, self.resources, known)
        except StorageFault as fault:
            log.warning("%s-%s is still offline: %s", *key, fault)
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
        directory = f"{self.data_dir}/{topic}-{index}"
        if (topic, index) in self._named_in_starts:
            self.write_log_starts()  # of a partition that had this name before: it would hide what comes into this one
            self._named_in_starts.discard((topic, index))
        try:
            partition = create_partition(
                topic, index, directory, topic_id, config, self.resources, self._clock.wall_ms()
            )
        except StorageFault:
            self._forget_folder(directory)
            raise
        self.partitions[topic, index] = partition
        return partition

    def identify(self, partition: Partition, topic_id: bytes) -> None:
        """Put the topic's id into a folder that has none: made by an old Kafka, or just before a power cut."""
        checkpoints.save_topic_id(self._storage, partition.directory, topic_id)
        partition.topic_id = topic_id

    def _forget_folder(self, directory: str) -> None:
        """Get the beginnings of a partition out of the way."""
        try:
            if self._storage.is_dir(directory):
                remove_folder(self._storage, directory)
        except StorageFault as fault:
            log.error("%s was not made, and what there is of it can not be removed: %s", directory, fault)

    def delete(self, partition: Partition) -> None:
        """The partition is gone for good when this returns; its files are removed after `file.delete.delay.ms`."""
        name = f"{partition.topic}-{partition.index}.{uuid.uuid4().hex}{DELETED_FOLDER_SUFFIX}"
        partition.delete(f"{self.data_dir}/{name}")
        self.partitions.pop((partition.topic, partition.index), None)
        if partition.config.compact:
            self._forget_cleaned(partition)
        delay_ms = partition.config.file_delete_delay_ms
        self._doomed_folders.append(_DoomedFolder(name, self._clock.wall_ms(), delay_ms))

    def _forget_cleaned(self, partition: Partition) -> None:
        """How far it was compacted says nothing of the next partition of its name."""
        path = f"{self.data_dir}/{checkpoints.CLEANER_OFFSETS}"
        try:
            offsets = dict(checkpoints.load_offsets(self._storage, path).offsets)
            if offsets.pop((partition.topic, partition.index), None) is not None:
                checkpoints.save_offsets(self._storage, path, offsets)
        except StorageFault as fault:
            log.error("%s still names %r: %s", path, partition, fault)

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
        due = [one for one in self._doomed_folders if abs(now_ms - one.since_ms) >= one.delay_ms]
        self._doomed_folders = [one for one in self._doomed_folders if one not in due]
        jobs += [partial(remove_folder, self._storage, f"{self.data_dir}/{one.name}") for one in due]
        return jobs

    def checkpoint_job(self) -> Callable[[], None]:
        """What writes the offset checkpoints as things are now, if they have changed; may run in a worker.

        Active segments that have grown much are sealed with their next sync.
        """
        for partition in self.partitions.values():
            partition.note_progress()
        number, files = self._checkpoints()

        def write() -> None:
            for name, data in files.items():
                self._write_checkpoint(name, data, number)

        return write

    def write_checkpoints(self) -> None:
        self.checkpoint_job()()

    def write_log_starts(self) -> None:
        """Make it durable where partitions start: DeleteRecords is not answered before.

        A log must never end before its start: offsets would be given out twice, and the start hide what comes there.
        """
        for partition in self.partitions.values():
            if partition.fault is None and partition.recovery_point < partition.log_start_offset:
                partition.sync()
        number, files = self._checkpoints()
        for name in (checkpoints.LOG_START_OFFSETS, log_starts.LOG_STARTS):
            self._write_checkpoint(name, files[name], number)

    def _checkpoints(self) -> tuple[int, dict[str, bytes]]:
        """What the files are to say now, and a number: what has a lower one is older."""
        self._checkpoint_number += 1
        usable = {key: one for key, one in self.partitions.items() if one.fault is None}
        starts = {key: one.log_start_offset for key, one in self.partitions.items() if one.starts_inside_segment}
        self._named_in_starts.update(starts)
        return self._checkpoint_number, {
            checkpoints.RECOVERY_POINTS: checkpoints.encode_offsets(
                {key: one.recovery_point for key, one in usable.items()}
            ),
            checkpoints.HIGH_WATERMARKS: checkpoints.encode_offsets(
                {key: one.high_watermark for key, one in usable.items()}
            ),
            checkpoints.LOG_START_OFFSETS: checkpoints.encode_offsets(starts),
            log_starts.LOG_STARTS: log_starts.encode(starts),
        }

    def _write_checkpoint(self, name: str, data: bytes, number: int) -> None:
        """A worker that comes late must not put what is older over what has been answered for."""
        with self._checkpoint_guard:
            written_number, written = self._written_checkpoints.get(name, (0, None))
            if number < written_number:
                return
            if written != data:
                self._storage.write_atomically(f"{self.data_dir}/{name}", data)
            self._written_checkpoints[name] = number, data

    def disk_space(self) -> tuple[int, int]:
        """Bytes of the file system that the data folder is on: all, and those still to be had."""
        return self._storage.disk_space(self.data_dir)

    # -- the end

    def close(self, each: Callable[[Callable[[Partition], bool], list[Partition]], Iterable[bool]] = map) -> None:
        """Complete, sync and seal every partition, write the checkpoints, and last of all say that the stop was clean.

        The disk is waited for in `each`, which may be a pool's map: one after the other, thousands of partitions take minutes.
        """
        everything = list(self.partitions.values())
        closed = [one for one in everything if _tried(one, Partition.complete)]
        settled = list(each(_settle, closed))
        closed = [one for one, done in zip(closed, settled, strict=True) if done and _tried(one, Partition.let_go)]
        failed = len(closed) < len(everything) or not all(one.takes_appends for one in everything)
        try:
            self.write_checkpoints()
            if not failed:
                checkpoints.mark_clean_shutdown(self._storage, self.data_dir)
        except StorageFault as fault:
            log.error("%s: the stop is not on record as clean: %s", self.data_dir, fault)
        self._lock.release()

    def abandon(self) -> None:
        """Let go of the folder as it is, as if the process had ended."""
        for partition in self.partitions.values():
            partition.close_files()
        self._lock.release()


def _settle(partition: Partition) -> bool:
    return _tried(partition, Partition.settle)


def _tried(partition: Partition, step: Callable[[Partition], None]) -> bool:
    try:
        step(partition)
    except StorageFault as fault:
        log.error("%r could not be closed cleanly: %s", partition, fault)
        return False
    return True


def partition_of(folder_name: str) -> TopicPartition | None:
    """The partition that a folder name stands for, None for foreign names."""
    match = _PARTITION_FOLDER.fullmatch(folder_name)
    if match is None or match[1] in NOT_TOPICS or match[1] in {".", ".."}:
        return None
    return match[1], int(match[2])


def remove_folder(storage: Storage, path: str) -> None:
    """Remove a folder of files; one that is gone already is fine."""
    if not storage.is_dir(path):
        return
    for name in storage.list_dir(path):
        storage.remove(f"{path}/{name}")
    storage.remove_dir(path)


def _new_id() -> str:
    """A random id as Kafka writes them: never one that begins with a dash, which command lines would take for an option."""
    text = "-"
    while text.startswith("-"):
        text = checkpoints.encode_uuid(uuid.uuid4().bytes)
    return text
