"""Keeps compacted partitions compacted: picks the one that needs it most, cleans it, and puts the result in place.

One pass at a time. `next_pass` and `finish` run in the loop's thread, `run` in a worker, with a storage of its own. The clean end of
each partition is kept in `cleaner-offset-checkpoint` of its data folder (see `checkpoints`): a missing or damaged file costs only
a pass over everything. A partition whose contents prevent cleaning is left alone until the next start; after a disk fault
cleaning is retried.
"""

import itertools
import logging
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from horolog.broker.log.compaction import clean_plan
from horolog.broker.log.compaction.clean_plan import CleanPlan, SegmentFacts
from horolog.broker.log.compaction.cleaner import Cleaned, CleaningRefused, CleaningStopped, Inputs, clean
from horolog.broker.log.files import checkpoints
from horolog.broker.log.indexes import IndexCache
from horolog.broker.log.partition import Partition, replace_segments
from horolog.broker.log.recovery import storage_below
from horolog.broker.log.segments import Segment, SegmentFolder
from horolog.broker.log.storage import Storage, StorageFault, parent_of
from horolog.protocol.errors import ProtocolError

log = logging.getLogger(__name__)

UNKNOWN_ID = b""
"""The topic's id of entries from the checkpoint, until the partition has been seen."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One partition to be cleaned, and the facts that this needs."""

    partition: Partition
    inputs: Inputs


class Compactor:
    """The compaction of the partitions of all data folders."""

    def __init__(
        self,
        storage: Storage,
        worker_storage: Storage,
        data_dirs: list[str],
        file_name: str = checkpoints.CLEANER_OFFSETS,
    ) -> None:
        """Each of several processes on one folder writes its own file; Kafka's file has the state from before."""
        self._storage = storage
        self._worker_storage = worker_storage
        self._data_dirs = data_dirs
        self._file_name = file_name
        self._stopping = False
        self._refused: set[tuple[str, int]] = set()
        self._known: dict[tuple[str, int], tuple[bytes | None, int]] | None = None
        """The clean end of partitions, and the topic's id: the entry of an older topic of the same name does not count."""

    def __repr__(self) -> str:
        return f"<Compactor of {len(self._known or ())} partitions, {len(self._refused)} refused>"

    def _clean_up_to(self, partition: Partition) -> int | None:
        """The clean end of a partition. The file is read on first use: partitions deleted before are no longer in it."""
        name = _name(partition)
        if self._known is None:
            self._known = {one: (UNKNOWN_ID, offset) for one, offset in self._load().items()}
        topic_id, offset = self._known.get(name, (None, None))
        if topic_id == UNKNOWN_ID and offset is not None:
            self._known[name] = partition.topic_id, offset
        elif topic_id != partition.topic_id:
            return None
        return offset

    def _load(self) -> dict[tuple[str, int], int]:
        offsets: dict[tuple[str, int], int] = {}
        names = dict.fromkeys((checkpoints.CLEANER_OFFSETS, self._file_name))
        for data_dir, name in itertools.product(self._data_dirs, names):
            try:
                loaded = checkpoints.load_offsets(self._storage, f"{data_dir}/{name}")
            except StorageFault as fault:
                if len(self._data_dirs) == 1:
                    raise
                loaded = checkpoints.Loaded(fault=str(fault))
            if loaded.fault is not None:
                log.warning("%s; all of the log counts as not compacted", loaded.fault)
            offsets |= loaded.offsets
        return offsets

    def next_pass(self, partitions: Iterable[Partition], now_ms: int, memory_bytes: int) -> Pass | None:
        """The partition to clean next: one that has waited too long, else the dirtiest; None if none is due."""
        best: tuple[CleanPlan, Partition] | None = None
        for partition in partitions:
            if (
                not partition.config.compact
                or partition.condition.fault is not None
                or _name(partition) in self._refused
            ):
                continue
            if storage_below(partition) is not None or not _lies_here(partition):
                continue
            plan = self._plan(partition, now_ms)
            if plan is not None and (best is None or _need(plan) > _need(best[0])):
                best = plan, partition
        if best is None:
            return None
        plan, partition = best
        first, end = plan.segments[0].base_offset, plan.end_offset
        inputs = Inputs(
            plan,
            partition.config,
            dict(partition.producers.last_records()),
            partition.aborted.overlapping(first, end),
            now_ms,
            memory_bytes,
        )
        return Pass(partition, inputs)

    def _plan(self, partition: Partition, now_ms: int) -> CleanPlan | None:
        try:
            return clean_plan.plan(
                segment_facts(partition),
                partition.config,
                checkpoint=self._clean_up_to(partition),
                log_start_offset=partition.log_start_offset,
                last_stable_offset=partition.last_stable_offset,
                now_ms=now_ms,
            )
        except StorageFault as fault:
            log.error("%s: %s", partition, fault)
            return None

    def run(self, task: Pass) -> Cleaned | None:
        """Clean; None if that failed, which is logged. Runs in a worker."""
        partition = task.partition
        counters = partition.folder.counters
        folder = SegmentFolder(self._worker_storage, partition.directory, IndexCache(), counters)
        try:
            return clean(task.inputs, folder, lambda: self._gives_way_or_stops(partition))
        except CleaningStopped:
            log.info("%s: compaction was stopped", partition)
        except (CleaningRefused, ProtocolError) as refusal:
            self._refused.add(_name(partition))
            log.error("%s is not compacted until the next start: %s", partition, refusal)
        except StorageFault as fault:
            log.error("%s could not be compacted: %s", partition, fault)
        return None

    def _gives_way_or_stops(self, partition: Partition) -> bool:
        """Called between two batches: yields the interpreter's lock to waiting threads; whether to stop."""
        time.sleep(0)
        return self._stopping or partition.condition.fault is not None

    def finish(self, task: Pass, cleaned: Cleaned, now_ms: int) -> bool:
        """Put the new segments in place; False if the partition was changed or removed meanwhile."""
        partition = task.partition
        if self._stopping or partition.condition.fault is not None:
            return False
        try:
            replaced = replace_segments(partition, cleaned.segments, now_ms)
        except StorageFault as fault:
            partition.condition.go_offline(f"compacted segments could not be put in place: {fault}")
            log.error("%s %s", partition, partition.condition)
            return False
        if not replaced:
            log.info("%s: segments expired while they were compacted", partition)
            return False
        log.info(
            "%s-%s: compacted up to offset %s: %s keys, %s bytes became %s",
            partition.topic,
            partition.index,
            cleaned.first_dirty_offset,
            cleaned.keys,
            cleaned.bytes_before,
            cleaned.bytes_after,
        )
        known = self._known = self._known or {}
        known[_name(partition)] = partition.topic_id, cleaned.first_dirty_offset
        return True

    def checkpoint_job(self, partitions: Collection[Partition]) -> Callable[[], None]:
        """A job that writes the current checkpoints, without removed partitions; may run in a worker."""
        there = {_name(one): parent_of(one.directory) for one in partitions}
        online = {parent_of(one.directory) for one in partitions if one.condition.fault is None}
        self._known = {name: known for name, known in (self._known or {}).items() if name in there}
        offsets: dict[str, dict[tuple[str, int], int]] = {data_dir: {} for data_dir in online}
        for name, (_, offset) in self._known.items():
            offsets.setdefault(there[name], {})[name] = offset

        def write() -> None:
            for data_dir, known in offsets.items():
                checkpoints.save_offsets(self._storage, f"{data_dir}/{self._file_name}", known)

        return write

    def stop(self) -> None:
        """End a pass soon, without a result; nothing is put in place any more."""
        self._stopping = True


def _lies_here(partition: Partition) -> bool:
    """Whether all segments lie in the folder: a tombstone must not go while what it deletes lies elsewhere."""
    return all(one.folder.storage is partition.folder.storage for one in partition.segments)


def segment_facts(partition: Partition) -> list[SegmentFacts]:
    """The facts about a partition's segments that cleaning needs, the active one last."""
    following = [one.base_offset for one in partition.segments[1:]] + [partition.log_end_offset]
    return [_facts(one, next_offset) for one, next_offset in zip(partition.segments, following, strict=True)]


def _facts(segment: Segment, next_offset: int) -> SegmentFacts:
    seal = segment.seal
    return SegmentFacts(
        segment.base_offset,
        next_offset,
        segment.size_bytes,
        seal.offset_index.size_bytes if seal is not None else 0,
        seal.time_index.size_bytes if seal is not None else 0,
        segment.first_timestamp,
        segment.max_timestamp,
        segment.files.modified_ms(),
    )


def _need(plan: CleanPlan) -> tuple[bool, float]:
    return plan.overdue, plan.dirty_ratio


def _name(partition: Partition) -> tuple[str, int]:
    return partition.topic, partition.index
