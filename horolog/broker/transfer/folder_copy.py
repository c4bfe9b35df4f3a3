"""Writes the folder of a partition, as Kafka has it, from what a prefix holds, and has recovery read all of it and build the rest.

Recovery checks every batch, builds indexes, the states of producers and the index of aborted transactions, and seals what it has read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from horolog.broker.bucket.covered import Covered
from horolog.broker.bucket.local_copy import epoch_in
from horolog.broker.bucket.wal_index import FoundRun
from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.files import checkpoints, leader_epochs
from horolog.broker.log.indexes import LARGEST_RELATIVE_OFFSET
from horolog.broker.log.partition import Resources, closing
from horolog.broker.log.producers import producers_file, snapshot_file
from horolog.broker.log.recovery import Circumstances, PartitionFolder, open_partition
from horolog.broker.log.segments import LOG_SUFFIX, segment_path
from horolog.broker.log.storage import File, Storage


class Copied(NamedTuple):
    """A partition that lies in its folder."""

    start_offset: int
    end_offset: int
    size_bytes: int
    damaged_bytes: int


class FolderCopy:
    """One partition on its way into a folder. Methods raise StorageFault."""

    def __init__(
        self, storage: Storage, place: PartitionFolder, topic_id: bytes, config: TopicConfig, covered: Covered
    ) -> None:
        self._storage = storage
        self._place = place
        self._topic_id = topic_id
        self._config = config
        self._covered = covered
        self._epochs: list[tuple[int, int]] = list(covered.epochs)
        self._file: File | None = None
        self._base_offset = self._size_bytes = 0
        self.end_offset = max(covered.end_offset, covered.log_start_offset)
        """Where the runs have to go on."""
        self.gaps: list[range] = []
        """Offsets that no run has."""
        self._clear()

    def __repr__(self) -> str:
        return f"<FolderCopy {self._place.directory} up to {self.end_offset}>"

    def _clear(self) -> None:
        """Begin anew: an earlier attempt may have left a part."""
        directory = self._place.directory
        if self._storage.is_dir(directory):
            for name in self._storage.list_dir(directory):
                self._storage.remove(f"{directory}/{name}")
        else:
            self._storage.make_dir(directory)

    def begin_segment(self, base_offset: int) -> None:
        self.close()
        self._file = self._storage.create(segment_path(self._place.directory, base_offset, LOG_SUFFIX))
        self._base_offset, self._size_bytes = base_offset, 0

    def write(self, data: bytes | memoryview) -> None:
        """Add bytes to the segment."""
        assert self._file is not None, self
        self._file.pwritev([data], self._size_bytes)
        self._size_bytes += len(data)

    def end_segments(self) -> None:
        """Runs of WALs follow, in segments of their own."""
        self.close()

    def add(self, found: FoundRun, data: bytes | memoryview) -> None:
        """Write the next run; one that is there already is left out."""
        run = found.run
        if run.base_offset < self.end_offset and run.next_offset <= self.end_offset:
            return
        if run.base_offset > self.end_offset:
            self.gaps.append(range(self.end_offset, run.base_offset))
        epoch = epoch_in(data, run.leader_epoch)
        if not self._epochs or epoch > self._epochs[-1][0]:
            self._epochs.append((epoch, run.base_offset))
        if self._file is None or not self._fits(run.next_offset, len(data)):
            self.begin_segment(run.base_offset)
        self.write(data)
        self.end_offset = run.next_offset

    def _fits(self, next_offset: int, size_bytes: int) -> bool:
        return (
            self._size_bytes + size_bytes <= self._config.segment_bytes
            and next_offset - self._base_offset <= LARGEST_RELATIVE_OFFSET
        )

    def close(self) -> None:
        if self._file is not None:
            self._file.datasync()
            self._file.close()
            self._file = None

    def finish(self, end_offset: int, now_ms: int) -> Copied:
        """Have recovery open it; the log ends there even if the last runs are lost."""
        self.close()
        if end_offset > self.end_offset:
            self.gaps.append(range(self.end_offset, end_offset))
        self._write_small_files()
        start, end = self._covered.log_start_offset, max(end_offset, self.end_offset)
        known = Circumstances(was_clean=True, log_start_offset=start, now_ms=now_ms, recovery_point=end)
        return recovered(self._storage, self._place, self._config, known)

    def _write_small_files(self) -> None:
        covered = self._covered
        small_files = {
            checkpoints.LEADER_EPOCHS: leader_epochs.encode(self._epochs),
            checkpoints.PARTITION_METADATA: checkpoints.encode_partition_metadata(self._topic_id),
        }
        if covered.producers:
            small_files[snapshot_file.file_name(covered.end_offset)] = covered.producers
        if covered.batches:
            small_files[producers_file.FILE_NAME] = covered.batches
        for name, data in small_files.items():
            self._storage.write_atomically(f"{self._place.directory}/{name}", data)


def recovered(storage: Storage, place: PartitionFolder, config: TopicConfig, known: Circumstances) -> Copied:
    """Have recovery open a folder that has no index files yet: it reads all of it. Raises StorageFault."""
    partition = open_partition(place, config, Resources(storage), replace(known, has_logs_only=True))
    holes = sum(stop - begin for one in partition.segments for begin, stop in one.holes)
    size_bytes = sum(one.size_bytes for one in partition.segments)
    copied = Copied(partition.log_start_offset, partition.log_end_offset, size_bytes, holes)
    closing.close(partition)
    return copied
