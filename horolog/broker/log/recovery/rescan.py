"""Rescans segments that were found damaged while running, in a worker, and applies the findings to their partitions.

An active segment is closed first: the worker then has it to itself, while readers go on. The worker does the same as a start does with
an unsealed log: damage is set aside and skipped, the indexes are rebuilt. Until it is done, reads that meet the damage get a storage
error, which clients retry.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.counters import LogCounters
from horolog.broker.log.indexes import IndexCache
from horolog.broker.log.integrity import BeingRescanned, Contents, FileFacts, RescanQueue, Seal
from horolog.broker.log.partition import Partition
from horolog.broker.log.segments import Segment, SegmentFolder, recover, syncing
from horolog.broker.log.storage import OverlayStorage, Storage, StorageFault

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Task:
    """A closed segment to be read again, and its known offsets."""

    partition: Partition
    segment: Segment
    size_bytes: int
    end_offset: int
    config: TopicConfig


class Rescanner:
    """Takes reported segments, one at a time."""

    def __init__(
        self, rescan_queue: RescanQueue, worker_storage: Storage, partition_in: Callable[[str], Partition | None]
    ) -> None:
        self._rescan_queue = rescan_queue
        self._storage = worker_storage
        self._partition_in = partition_in

    def __repr__(self) -> str:
        return f"<Rescanner of {self._rescan_queue!r}>"

    def answered(self, ask: Callable[[], T], wall_ms: Callable[[], int]) -> T:
        """Call `ask`; a segment found damaged is rescanned in place, and `ask` retried. For callers without a worker."""
        while True:
            try:
                return ask()
            except BeingRescanned:
                task = self.next_task(wall_ms())
                seal = None if task is None else self.run(task)
                if task is None or seal is None or not self.finish(task, seal):
                    raise

    def next_task(self, now_ms: int) -> Task | None:
        """The next task for a worker; None if nothing is reported. Runs in the loop's thread."""
        while (reported := self._rescan_queue.take()) is not None:
            directory, base_offset, reason = reported
            partition = self._partition_in(directory)
            task = None if partition is None else _task(partition, base_offset, now_ms)
            if task is not None:
                log.error("%s: %s; reading it again", task.segment.log.path, reason)
                return task
        return None

    def run(self, task: Task) -> Seal | None:
        """Read the segment again; None if that failed, which is logged. Runs in a worker."""
        counters: LogCounters = task.partition.folder.counters
        storage = task.partition.folder.storage
        storage = storage.over(self._storage) if isinstance(storage, OverlayStorage) else self._storage
        folder = SegmentFolder(storage, task.partition.directory, IndexCache(), counters)
        base_offset = task.segment.base_offset
        fresh = Segment(folder, base_offset, Contents(0, base_offset), task.config, task.segment.created_ms)
        try:
            recover(fresh, task.size_bytes, FileFacts(base_offset, task.end_offset))
            seal = fresh.complete()
            syncing.datasync(fresh)
        except StorageFault as fault:
            log.error("%s cannot be rescanned: %s", fresh.log.path, fault)
            return None
        finally:
            fresh.close()
        counters.indexes_rebuilt.value += 1
        return seal

    def finish(self, task: Task, seal: Seal) -> bool:
        """Apply the findings; False if the segment was removed meanwhile. Runs in the loop's thread."""
        partition = task.partition
        if task.segment not in partition.segments[:-1] or partition.condition.fault is not None:
            return False
        task.segment.take_over(seal)
        partition.segments_changed()
        partition.folder.counters.segments_mended.value += 1
        log.info("%s: segment %s has been rescanned", partition, task.segment.base_offset)
        return True


def set_active_apart(partition: Partition, now_ms: int) -> None:
    """Begin a new segment: the active one, which has records, has to be read again. Raises StorageFault."""
    partition.write_pending()
    new = Segment.create(partition.folder, partition.log_end_offset, partition.config, now_ms)
    partition.sync_state.segment_written(partition.segments[-1])
    partition.begin_segment(new)


def _task(partition: Partition, base_offset: int, now_ms: int) -> Task | None:
    """None if the segment is gone, or if its partition cannot be worked on now: it will be reported again."""
    in_memory = isinstance(partition.folder.storage, OverlayStorage)
    if partition.condition.fault is not None or (partition.condition.stopped is not None and not in_memory):
        return None
    if partition.segments[-1].base_offset == base_offset:
        try:
            set_active_apart(partition, now_ms)
        except StorageFault as fault:
            log.error("%s: its active segment cannot be closed: %s", partition, fault)
            return None
    for segment, following in zip(partition.segments, partition.segments[1:], strict=False):
        if segment.base_offset == base_offset:
            end_offset = min(segment.next_offset, following.base_offset)
            return Task(partition, segment, segment.size_bytes, end_offset, partition.config)
    return None
