"""The checkpoints of one data folder as one worker of several has them: a file of its own, and at a start the contents of all.

A partition that was handed over stays in the former leader's file, for the new leader may not have written its own yet.
"""

import logging
from collections.abc import Mapping

from horolog.broker.cluster import worker_checkpoints
from horolog.broker.cluster.worker_checkpoints import (
    NO_ID,
    UNKNOWN,
    JournalPlace,
    PartitionRow,
    WorkerCheckpoint,
    united_rows,
)
from horolog.broker.log.files import checkpoints, log_starts
from horolog.broker.log.manager import FolderCheckpoints, Share, held_by_parent
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import Storage, StorageFault
from horolog.protocol.topic_partition import TopicPartition

log = logging.getLogger(__name__)


class WorkerFolderCheckpoints(FolderCheckpoints):
    """Reads those of all workers, and writes one."""

    def __init__(
        self, path: str, storage: Storage, partitions: Mapping[TopicPartition, Partition], share: Share
    ) -> None:
        super().__init__(path, storage, partitions)
        self._share = share
        self._name = worker_checkpoints.name_of(share.node)
        self.cleaner_file = share.named(checkpoints.CLEANER_OFFSETS)
        self._has_stopped = False
        self._handed_over: dict[TopicPartition, PartitionRow] = {}

    # -- reading

    def load_ends(self) -> checkpoints.Loaded:
        kafkas = super().load_ends()
        rows = self._united().items()
        newer = {key: row.recovery_point for key, row in rows if row.recovery_point != UNKNOWN}
        return checkpoints.Loaded({**self._settled(kafkas.offsets), **newer}, kafkas.fault)

    def load_starts(self) -> log_starts.LoadedStarts:
        """The settling of the folder has reported damage, and only the next merge writes Kafka's files again."""
        offsets = self._settled(log_starts.load(self._storage, self._path).offsets)
        for key, row in self._united().items():
            if row.log_start:
                offsets[key] = max(row.log_start, offsets.get(key, 0))
        return log_starts.LoadedStarts(offsets)

    def _settled(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The contents of Kafka's files, for partitions that were there when they were written."""
        found = {key: (self._share.find(*key), offset) for key, offset in offsets.items()}
        return {key: offset for key, (mine, offset) in found.items() if mine is not None and mine.is_settled}

    def _united(self) -> dict[TopicPartition, PartitionRow]:
        loaded = worker_checkpoints.load_all(self._storage, self._path)
        for each in loaded.faults:
            log.warning("%s; its content is ignored", each)
        return worker_checkpoints.united(loaded.found.values(), self._id_of)

    def _id_of(self, key: TopicPartition) -> bytes | None:
        mine = self._share.find(*key)
        return None if mine is None else mine.topic_id

    def take_clean_shutdown(self) -> bool:
        """Settling left a mark for each worker; a worker that was restarted alone has its own file.

        The file stays, for it says where logs start. Its rows of partitions that were handed over stay in the next ones, too.
        Raises StorageFault if it cannot be read.
        """
        own = self._load_own()
        self._handed_over = {key: row for key, row in own.rows.items() if self._share.find(*key) is None}
        try:
            return self._take_marks(own)
        except StorageFault as fault:
            log.error("%s: the last stop is treated as a crash: %s", self._path, fault)
            return False

    def _load_own(self) -> WorkerCheckpoint:
        try:
            own = worker_checkpoints.load(self._storage, f"{self._path}/{self._name}")
        except ValueError as damage:
            log.error("%s/%s: %s", self._path, self._name, damage)
            worker_checkpoints.keep_damaged(self._storage, self._path, [self._share.node])
            own = None
        return own or WorkerCheckpoint({}, has_stopped=False)

    def _take_marks(self, own: WorkerCheckpoint) -> bool:
        """Whether the last stop was clean; the marks are removed before anything is written."""
        if own.has_stopped:
            running = worker_checkpoints.encode(own._replace(has_stopped=False))
            self._storage.write_atomically(f"{self._path}/{self._name}", running)
        mark = f"{self._path}/{self._share.named(checkpoints.CLEAN_SHUTDOWN)}"
        was_marked = self._storage.exists(mark)
        if was_marked:
            self._storage.remove(mark)
        if own.has_stopped or was_marked:
            self._storage.sync_dir(self._path)
        return own.has_stopped or was_marked

    # -- writing

    def make_room_for(self, key: TopicPartition) -> None:
        """Lines have their topic's id: those of an older topic of this name say nothing of the new one."""

    def hand_over(self, partition: Partition) -> None:
        self._handed_over[partition.topic, partition.index] = _row(partition)

    def take_over(self, key: TopicPartition) -> None:
        self._handed_over.pop(key, None)

    def _write_both_starts(self) -> None:
        number, files = self.contents()
        for name, data in files.items():
            self.write(name, data, number)

    def contents(self) -> tuple[int, dict[str, bytes]]:
        self._number += 1
        rows = {key: _row(one) for key, one in self._partitions.items()}
        for key, row in self._handed_over.items():
            # A partition that is led here again, and whose start could not be read, reports less than is known.
            rows[key] = united_rows(row, rows[key]) if key in rows else row
        data = worker_checkpoints.encode(
            WorkerCheckpoint(rows, self._has_stopped, JournalPlace(*self._share.journal_at()))
        )
        return self._number, {self._name: data}

    def mark_clean_shutdown(self) -> None:
        self._has_stopped = True
        self._write_both_starts()


def _row(partition: Partition) -> PartitionRow:
    is_usable = partition.condition.fault is None
    return PartitionRow(
        partition.topic_id or NO_ID,
        partition.sync_state.recovery_point if is_usable else UNKNOWN,
        partition.high_watermark if is_usable else 0,
        partition.log_start_offset,
    )


def share_of(node: int, owner: int, *, is_first: bool) -> Share:
    """The share of one worker in folders that belong to the node `owner`."""
    return Share(node, owner, is_first, WorkerFolderCheckpoints, held_by_parent, f".{node}")
