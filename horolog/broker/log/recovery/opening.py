"""Opens a partition for reading that cannot be written: its disk is full, or its files are read only.

Opening a partition after a crash writes: indexes, set-aside damage, a shorter log. If the folder cannot be written, these changes are
kept in memory (`overlay`), so that everything is served; the partition takes no appends until its folder can be written to and has been
opened again (`retries`). Changes that only free space (retention, leftovers) are still made on the disk.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.partition import OpenedPartition, Partition, Resources, rewrite
from horolog.broker.log.recovery.findings import Circumstances, PartitionFolder
from horolog.broker.log.recovery.recovery import open_log
from horolog.broker.log.segments import Segment
from horolog.broker.log.storage import CANNOT_WRITE, OverlayStorage, Storage, StorageFault

log = logging.getLogger(__name__)


def open_readable(
    place: PartitionFolder, config: TopicConfig, resources: Resources, known: Circumstances
) -> OpenedPartition:
    """Open the partition in an existing folder. Raises StorageFault if its files cannot be read."""
    try:
        return open_writable(place, config, resources, known)
    except StorageFault as fault:
        if fault.code not in CANNOT_WRITE:
            raise
        reason = str(fault)
    in_memory = replace(resources, storage=OverlayStorage(resources.storage, frees=True))
    opened = open_log(place, config, in_memory, known)
    _check_readable(resources.storage, opened.segments)
    return replace(opened, stopped=f"nothing can be written: {reason}")


def open_writable(
    place: PartitionFolder, config: TopicConfig, resources: Resources, known: Circumstances
) -> OpenedPartition:
    """Open a partition for appends. Raises StorageFault if its folder or its active log cannot be written."""
    opened = open_log(place, config, resources, known)
    try:
        _check_writable(resources.storage, place.directory, opened.segments)
    except StorageFault:
        opened.close_files()
        raise
    return opened


def storage_below(partition: Partition) -> Storage | None:
    """The disk of a partition whose changes are kept in memory, None for one that writes to it."""
    storage = partition.folder.storage
    return storage.below if isinstance(storage, OverlayStorage) else None


def probe_below(partition: Partition, below: Storage) -> None:
    """Raises StorageFault unless the partition's folder and active log can be written again."""
    rewrite.probe(below, partition.directory)
    _check_writable(below, partition.directory, partition.segments)


def _check_readable(storage: Storage, segments: Iterable[Segment]) -> None:
    """Raises StorageFault if a log cannot even be read: a sealed one is otherwise not opened before its first read."""
    for segment in segments:
        if segment.size_bytes:
            file = storage.open(segment.log.path)
            try:
                file.pread(1, 0)
            finally:
                file.close()


def _check_writable(storage: Storage, directory: str, segments: Sequence[Segment]) -> None:
    storage.check_writable(directory)
    active = segments[-1].log.path
    if storage.exists(active):
        storage.check_writable(active)
