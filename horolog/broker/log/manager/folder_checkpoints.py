"""Reads and writes the checkpoints of one data folder, with the starts and ends of its partitions; no file replaces a newer one.

Everything but the jobs that `job` returns belongs to one thread.
"""

import logging
import threading
from collections.abc import Callable, Mapping

from horolog.broker.log.files import checkpoints, log_starts
from horolog.broker.log.partition import Partition, log_start, note_progress
from horolog.broker.log.storage import Storage, StorageFault
from horolog.protocol.topic_partition import TopicPartition

log = logging.getLogger(__name__)


class FolderCheckpoints:
    """The checkpoints of one folder; `partitions` are its current ones."""

    cleaner_file = checkpoints.CLEANER_OFFSETS

    def __init__(self, path: str, storage: Storage, partitions: Mapping[TopicPartition, Partition]) -> None:
        self._path = path
        self._storage = storage
        self._partitions = partitions
        self._written: dict[str, tuple[int, bytes]] = {}
        self._guard = threading.Lock()
        self._number = 0
        self._named_in_starts: set[TopicPartition] = set()
        self._kafkas_starts_damaged = False
        self.record_number: Callable[[], int] = lambda: 0
        """How often the record of the cluster was written."""

    def __repr__(self) -> str:
        return f"<FolderCheckpoints of {self._path}: written {self._number} times>"

    # -- reading

    def load(self, name: str) -> checkpoints.Loaded:
        try:
            return checkpoints.load_offsets(self._storage, f"{self._path}/{name}")
        except StorageFault as fault:
            return checkpoints.Loaded(fault=str(fault))

    def load_ends(self) -> checkpoints.Loaded:
        """The ends of partitions at the last clean stop, the lower one where the two files differ.

        Neither file has a checksum. A flipped digit would make a log go on behind records that it never had.
        """
        points, ends = self.load(checkpoints.RECOVERY_POINTS), self.load(checkpoints.HIGH_WATERMARKS)
        sure = {one: min(offset, ends.offsets.get(one, offset)) for one, offset in points.offsets.items()}
        return checkpoints.Loaded(sure, points.fault)

    def load_starts(self) -> checkpoints.Loaded:
        """The starts of partitions, from the two files that have them."""
        starts = log_starts.load(self._storage, self._path)
        self._kafkas_starts_damaged = starts.kafkas_is_damaged
        self._named_in_starts.update(starts.offsets)
        return starts

    def start_of(self, key: TopicPartition) -> int:
        """The start of one partition; 0 if it is not recorded."""
        return self.load_starts().offsets.get(key, 0)

    def take_clean_shutdown(self) -> bool:
        """Whether the last stop was clean. A mark that cannot be removed would survive a crash, so it is not believed."""
        try:
            return checkpoints.take_clean_shutdown(self._storage, self._path)
        except StorageFault as fault:
            log.error("%s: the last stop is treated as a crash: %s", self._path, fault)
            return False

    def correct_starts(self) -> None:
        """One of the two files with the starts of partitions was damaged: write both again."""
        try:
            self._write_both_starts()
        except StorageFault as fault:
            log.warning("%s: the start offsets of partitions could not be written; trying again: %s", self._path, fault)

    # -- writing

    def make_room_for(self, key: TopicPartition) -> None:
        """Forget the start of an earlier partition of this name: it would hide records of the new one."""
        if key in self._named_in_starts:
            self.write_starts()
            self._named_in_starts.discard(key)

    def job(self) -> Callable[[], None]:
        """A job that writes the current offset checkpoints, if they have changed; may run in a worker.

        Active segments that have grown much are sealed with their next sync.
        """
        for partition in self._partitions.values():
            note_progress(partition)
        number, files = self.contents()

        def write() -> None:
            for name, data in files.items():
                self.write(name, data, number)

        return write

    def write_all(self) -> None:
        self.job()()

    def write_starts(self) -> None:
        """Make the starts of partitions durable, before DeleteRecords is answered.

        A log must never end before its start: offsets would be given out twice, and the start would hide the new records.
        """
        for partition in self._partitions.values():
            if partition.condition.fault is None and partition.sync_state.recovery_point < partition.log_start_offset:
                partition.sync()
        self._write_both_starts()

    def _write_both_starts(self) -> None:
        number, files = self.contents()
        for name in self._starts_in_order():
            self.write(name, files[name], number)
        self._kafkas_starts_damaged = False

    def _starts_in_order(self) -> tuple[str, str]:
        """Our file first, because only it shows a flipped digit in Kafka's; but if Kafka's is damaged already, that one first."""
        kafkas, ours = checkpoints.LOG_START_OFFSETS, log_starts.LOG_STARTS
        return (kafkas, ours) if self._kafkas_starts_damaged else (ours, kafkas)

    def contents(self) -> tuple[int, dict[str, bytes]]:
        """The current contents of the files, and a number: contents with a lower one are older."""
        self._number += 1
        usable = {key: one for key, one in self._partitions.items() if one.condition.fault is None}
        starts = {
            key: one.log_start_offset for key, one in self._partitions.items() if log_start.is_inside_segment(one)
        }
        self._named_in_starts.update(starts)
        offsets = {
            checkpoints.RECOVERY_POINTS: {key: one.sync_state.recovery_point for key, one in usable.items()},
            checkpoints.HIGH_WATERMARKS: {key: one.high_watermark for key, one in usable.items()},
            checkpoints.LOG_START_OFFSETS: starts,
        }
        files = {name: checkpoints.encode_offsets(each) for name, each in offsets.items()}
        files[log_starts.LOG_STARTS] = log_starts.encode(starts, self.record_number())
        in_order = (checkpoints.RECOVERY_POINTS, checkpoints.HIGH_WATERMARKS, *self._starts_in_order())
        return self._number, {name: files[name] for name in in_order}

    def write(self, name: str, data: bytes, number: int) -> None:
        """Write one file, unless a newer one is written: a late worker must not overwrite offsets that clients may know."""
        with self._guard:
            written_number, written = self._written.get(name, (0, None))
            if number < written_number:
                return
            if written != data:
                self._storage.write_atomically(f"{self._path}/{name}", data)
            self._written[name] = number, data

    def hand_over(self, partition: Partition) -> None:
        """With workers that share the folder: keep the state of a partition in the file when another worker takes the lead."""

    def take_over(self, key: TopicPartition) -> None:
        """The reverse: this worker takes the lead."""

    def mark_clean_shutdown(self) -> None:
        """Record that every partition was closed cleanly: the files hold until the next start. Raises StorageFault."""
        checkpoints.mark_clean_shutdown(self._storage, self._path)

    def forget_cleaned(self, key: TopicPartition) -> None:
        """Forget how far a partition was compacted: the next partition of its name begins again."""
        path = f"{self._path}/{self.cleaner_file}"
        try:
            offsets = dict(checkpoints.load_offsets(self._storage, path).offsets)
            if offsets.pop(key, None) is not None:
                checkpoints.save_offsets(self._storage, path, offsets)
        except StorageFault as fault:
            log.error("%s-%s could not be removed from %s: %s", *key, path, fault)
