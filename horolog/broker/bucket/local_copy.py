"""Makes the local log of a partition from the runs that the store has of it, and opens it as any other folder.

What lies in the bucket as segments stays there: the local log begins where they end. A log that has to be whole gets them first
(`segment_bringing`).
Whatever lay here before is dropped: it may hold records that were never shipped. The opening builds indexes, the states of producers and
the index of aborted transactions from the batches; the leader epochs are those of the runs, or of the leaders that wrote them before.
"""

from __future__ import annotations

from functools import partial

from horolog.broker.bucket.covered import NOTHING, Covered
from horolog.broker.bucket.remote_front import RemoteFront
from horolog.broker.bucket.seams import Opening
from horolog.broker.bucket.shipped_partition import MOST_BYTES, ShippedPartition
from horolog.broker.bucket.upload_plan import is_whole
from horolog.broker.bucket.wal_index import FoundRun
from horolog.broker.log.files import checkpoints, leader_epochs
from horolog.broker.log.indexes import LARGEST_RELATIVE_OFFSET, transaction_index
from horolog.broker.log.manager import LogManager, made_elsewhere
from horolog.broker.log.producers import producers_file, snapshot_file
from horolog.broker.log.segments import LOG_SUFFIX, segment_path
from horolog.broker.log.storage import File, Storage
from horolog.protocol.records.head import heads_in


class LocalCopy:
    """The log of one partition while it is made; `end_offset` is where the runs end that were added. Methods raise StorageFault."""

    def __init__(self, logs: LogManager, opening: Opening, now_ms: int, covered: Covered = NOTHING) -> None:
        self._logs = logs
        self._opening = opening
        self._now_ms = now_ms
        self._storage: Storage = logs.resources.storage
        self._covered = covered
        self._epochs: list[tuple[int, int]] = list(covered.epochs)
        self._file: File | None = None
        self._has_runs = False
        self._base_offset = self._size_bytes = 0
        self._whole: File | None = None
        self._unread: list[int] = []
        self.is_whole = is_whole(opening.topic, opening.config)
        """Whether all segments are to lie here."""
        self.end_offset = covered.end_offset
        self._place = made_elsewhere.clear(logs, opening.topic, opening.partition, opening.config)
        self._storage.make_dir(self._place.directory)

    def __repr__(self) -> str:
        return f"<LocalCopy of {self._opening.topic}-{self._opening.partition} up to {self.end_offset}>"

    def begin_whole(self, base_offset: int, transactions: bytes) -> None:
        """Begin a segment of the bucket, which comes in pieces; these are its aborted transactions."""
        self.close()
        self._whole = self._storage.create(self._path(base_offset, LOG_SUFFIX))
        if transactions:
            file = self._storage.create(self._path(base_offset, transaction_index.SUFFIX))
            file.pwritev([transactions], 0)
            file.close()

    def write_whole(self, data: bytes, position: int) -> None:
        assert self._whole is not None
        self._whole.pwritev([data], position)

    def leave_out(self, base_offset: int) -> None:
        """A segment cannot be brought here as it was."""
        self.close()
        self._unread.append(base_offset)
        for kind in (LOG_SUFFIX, transaction_index.SUFFIX):
            if self._storage.exists(path := self._path(base_offset, kind)):
                self._storage.remove(path)

    def _path(self, base_offset: int, kind: str) -> str:
        return segment_path(self._place.directory, base_offset, kind)

    def add(self, found: FoundRun, data: bytes | memoryview) -> None:
        """Write the next run, into a new segment if this one is full."""
        run = found.run
        if run.base_offset < self.end_offset:
            return  # a segment in the bucket has it; or it was shipped twice, which no broker does: the first one counts
        epoch = epoch_in(data, run.leader_epoch)
        if not self._epochs or epoch > self._epochs[-1][0]:
            self._epochs.append((epoch, run.base_offset))
        if self._file is None or not self._fits(run.next_offset, len(data)):
            self._begin_segment(run.base_offset)
        assert self._file is not None
        self._file.pwritev([data], self._size_bytes)
        self._size_bytes += len(data)
        self.end_offset = run.next_offset

    def _fits(self, next_offset: int, size_bytes: int) -> bool:
        return (
            self._size_bytes + size_bytes <= min(self._opening.config.segment_bytes, MOST_BYTES)
            and next_offset - self._base_offset <= LARGEST_RELATIVE_OFFSET
        )

    def _begin_segment(self, base_offset: int) -> None:
        self.close()
        self._file = self._storage.create(self._path(base_offset, LOG_SUFFIX))
        self._has_runs = True
        self._base_offset, self._size_bytes = base_offset, 0

    def close(self) -> None:
        for file in (self._file, self._whole):
            if file is not None:
                file.close()
        self._file = self._whole = None

    def open(self, end_offset: int, front: RemoteFront | None = None) -> ShippedPartition:
        """Open the partition, which goes on at this offset even if the runs before it are lost, and lead it.

        `front` has the segments that lie in the bucket.
        """
        self.close()
        opening = self._opening
        small_files = {
            checkpoints.LEADER_EPOCHS: leader_epochs.encode(self._epochs),
            checkpoints.PARTITION_METADATA: checkpoints.encode_partition_metadata(opening.topic_id),
        }
        covered = self._covered
        if covered.producers:
            small_files[snapshot_file.file_name(covered.end_offset)] = covered.producers
        if covered.batches:
            small_files[producers_file.FILE_NAME] = covered.batches
        for name, data in small_files.items():
            file = self._storage.create(f"{self._place.directory}/{name}")
            file.pwritev([data], 0)
            file.close()
        start = covered.log_start_offset
        begin = start if self.is_whole else max(start, covered.end_offset)
        held = made_elsewhere.Held(begin, max(end_offset, covered.end_offset, start))
        if covered.segments and self.is_whole and not self._has_runs:
            self._begin_segment(held.end_offset)  # those of the bucket take no appends
            self.close()
        complete = made_elsewhere.as_it_is if front is None else partial(front.put_before, log_start_offset=start)
        partition = made_elsewhere.open_made(self._logs, self._place, opening.config, held, self._now_ms, complete)
        assert isinstance(partition, ShippedPartition)
        partition.unread_bases = tuple(self._unread)
        if covered.transactions:
            aborted = transaction_index.decode(covered.transactions, covered.segments[-1].base_offset)
            partition.producers.recall_aborted(aborted)
        if front is not None:
            partition.have_front(front)
        partition.lead(opening.epoch)
        return partition


def epoch_in(data: bytes | memoryview, epoch: int) -> int:
    """The epoch of the leader that wrote a run: an import has put runs of earlier ones into the WAL of the epoch that it began in."""
    head = next(heads_in(data), None)
    return epoch if head is None or not 0 <= head.leader_epoch < epoch else head.leader_epoch
