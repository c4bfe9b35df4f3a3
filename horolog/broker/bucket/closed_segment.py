"""A closed segment of a local log as it goes into the bucket: Kafka's own bytes, held against their seal, and what goes into its `.meta`.

`found` looks at the partition in its own thread. `read` reads the files in any thread.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from crc32c import crc32c

from horolog.broker.bucket import producers_behind
from horolog.broker.bucket.producers_behind import ProducersAt
from horolog.broker.bucket.segment_meta import SegmentMeta
from horolog.broker.bucket.upload_plan import Due
from horolog.broker.log.files import leader_epochs
from horolog.broker.log.indexes import transaction_index
from horolog.broker.log.integrity import Seal, blocks_in
from horolog.broker.log.partition import Partition
from horolog.broker.log.segments import LOG_SUFFIX, indexes_of
from horolog.broker.log.storage import Storage, StorageFault
from horolog.broker.on_record.cluster_file import Place


class ClosedSegment(NamedTuple):
    """The facts about a segment that are known without reading its files."""

    place: Place
    seal: Seal
    offset_index: bytes
    time_index: bytes
    epochs: bytes
    producers: ProducersAt | None
    """None if they have to be found out from the batches."""
    storage: Storage
    path: str
    transactions_path: str

    @property
    def base_offset(self) -> int:
        return self.seal.base_offset


class Content(NamedTuple):
    """The bytes of the objects of a segment, and the producers behind it."""

    log: bytes
    meta: bytes
    producers: ProducersAt


def found(partition: Partition, due: Due, producers: ProducersAt | None) -> ClosedSegment:
    """A segment of a partition, and the producers behind it if they are known. Raises StorageFault if its indexes are not here now."""
    segment = due.segment
    indexes, seal = indexes_of(segment), segment.seal
    assert seal is not None, f"{segment!r} takes appends"
    assert partition.topic_id is not None, partition
    if seal.contents.next_offset != due.end_offset:  # its last records were compacted away
        seal = replace(seal, contents=replace(seal.contents, next_offset=due.end_offset))
    epochs = [one for one in partition.epochs.entries if one[1] < seal.contents.next_offset]
    return ClosedSegment(
        (partition.topic_id, partition.index),
        seal,
        bytes(indexes.offsets.entries),
        bytes(indexes.times.entries),
        leader_epochs.encode(epochs),
        producers,
        partition.folder.storage,
        segment.files.path(LOG_SUFFIX),
        segment.files.path(transaction_index.SUFFIX),
    )


def read(closed: ClosedSegment, before: ProducersAt, nonce: bytes) -> Content:
    """Read a segment's files; `before` has the producers where it begins. Raises StorageFault if they are not what was sealed."""
    log = _log_of(closed)
    producers = closed.producers
    if producers is None:
        producers = producers_behind.behind(before, closed.base_offset, closed.seal.contents, log)
    transactions = (
        closed.storage.read_all(closed.transactions_path) if closed.seal.transaction_index.size_bytes else b""
    )
    meta = SegmentMeta(
        closed.place,
        nonce,
        closed.seal,
        closed.offset_index,
        closed.time_index,
        transactions,
        producers.snapshot(),
        producers.batches(),
        closed.epochs,
    )
    return Content(log, meta.encode(), producers)


def _log_of(closed: ClosedSegment) -> bytes:
    file = closed.storage.open_apart(closed.path)
    try:
        log = file.pread(closed.seal.contents.size_bytes, 0)
    finally:
        file.close()
    sums, view = closed.seal.sums(), memoryview(log)
    for block in range(blocks_in(len(log))):
        start, end = sums.span_of(block)
        if crc32c(view[start:end]) != sums.sum_of(block):
            raise StorageFault(f"read {closed.path}: bytes {start} up to {end} are not those that were written")
    return log
