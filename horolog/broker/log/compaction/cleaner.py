"""Compacts the closed segments of a partition: the last record of every key is copied to new segments under the old offsets.

`clean` runs in a worker thread. It reads segments that no longer change and writes new files next to them, named `.cleaned`
and synced at the end; the partition is not touched. The result says which segments the new ones replace; `partition.exchange`
puts them in place on the loop's thread, if the old ones still exist then.

Two walks: over the dirty part to learn the last offset of each key (`OffsetMap`, bounded; when it is full, the pass ends
there and the rest stays dirty), then over everything from the start to copy the remaining records. A worker has its own storage,
because a shared one may close a file's descriptor between two calls.

A partition with a damaged segment in the pass is not cleaned: `CleaningRefused`. The contents of a damaged batch are unknown,
and a key that is only there would lose its last value.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.compaction.clean_batch import CleanedBatch, CleanPass, clean_batch, clean_message
from horolog.broker.log.compaction.clean_plan import CleanPlan, SegmentFacts, group, segment_time, tombstone_horizon_ms
from horolog.broker.log.compaction.cleaned_transactions import CleanedTransactions
from horolog.broker.log.compaction.offset_map import OffsetMap
from horolog.broker.log.indexes import AbortedTransaction, TransactionIndex, transaction_index
from horolog.broker.log.integrity import Batch, Damage, IndexSum, Seal, scan
from horolog.broker.log.segments import (
    HAS_PRODUCERS,
    LOG_SUFFIX,
    CleanedSegment,
    Segment,
    SegmentFolder,
    segment_path,
    swap_files,
    syncing,
)
from horolog.protocol.records.batch import iter_batch, read_header
from horolog.protocol.records.message_set import iter_message, read_message

FLUSH_BYTES = 1 << 20


class CleaningRefused(Exception):
    """The partition cannot be cleaned; the message says why."""


class CleaningStopped(Exception):
    """The worker has to stop."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of a pass from the partition, taken on the loop's thread."""

    plan: CleanPlan
    config: TopicConfig
    last_records: dict[int, tuple[int, int]]  # see ProducerStates.last_records
    aborted: Sequence[AbortedTransaction]  # with records in the plan's segments
    now_ms: int
    memory_bytes: int  # for keys: log.cleaner.dedupe.buffer.size


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The result of a pass. Up to `first_dirty_offset`, which goes into the checkpoint, the partition is clean."""

    segments: tuple[CleanedSegment, ...]
    first_dirty_offset: int
    keys: int
    bytes_before: int
    bytes_after: int


def clean(inputs: Inputs, folder: SegmentFolder, stop: Callable[[], bool] = lambda: False) -> Cleaned:
    """One pass. Raises CleaningRefused, CleaningStopped or StorageFault, and then leaves no files behind."""
    offsets = learn_offsets(inputs, folder, stop)
    plan = inputs.plan
    segments = [one for one in plan.segments if one.base_offset <= offsets.latest_offset]
    groups = group(segments, inputs.config.segment_bytes, inputs.config.segment_index_bytes, offsets.latest_offset + 1)
    run = _Pass(inputs, folder, offsets, stop)
    try:
        cleaned = [run.clean_group(members) for members in groups]
        folder.storage.sync_dir(folder.directory)
    except BaseException:
        swap_files.discard(folder.storage, folder.directory, [members[0].base_offset for members in groups])
        raise
    return Cleaned(
        tuple(cleaned),
        offsets.latest_offset + 1,
        len(offsets),
        sum(one.size_bytes for one in segments),
        sum(one.seal.contents.size_bytes for one in cleaned),
    )


def learn_offsets(inputs: Inputs, folder: SegmentFolder, stop: Callable[[], bool]) -> OffsetMap:
    """The last offset of each key in the dirty part, or in as much of it as memory allows."""
    plan = inputs.plan
    offsets = OffsetMap(inputs.memory_bytes)
    offsets.latest_offset = plan.first_dirty_offset - 1
    transactions = CleanedTransactions(inputs.aborted)
    for segment in plan.segments:
        if segment.next_offset <= plan.first_dirty_offset:
            continue
        for batch in _batches(folder, segment, stop):
            if not _learn_batch(batch, plan.first_dirty_offset, offsets, transactions):
                return _checked_for_progress(offsets, plan)
    offsets.latest_offset = plan.end_offset - 1
    return offsets


def _checked_for_progress(offsets: OffsetMap, plan: CleanPlan) -> OffsetMap:
    if offsets.latest_offset < plan.first_dirty_offset:
        raise CleaningRefused(
            f"no room for a single batch's keys from offset {plan.first_dirty_offset}: log.cleaner.dedupe.buffer.size is too small"
        )
    return offsets


def _learn_batch(batch: Batch, first_dirty: int, offsets: OffsetMap, transactions: CleanedTransactions) -> bool:
    """False when the map is full."""
    if not batch.is_control and not _belongs_to_aborted(batch, transactions):
        records = iter_batch(batch.data) if batch.magic >= 2 else iter_message(read_message(batch.data))
        for record in records:
            if record.key is not None and record.offset >= first_dirty and not offsets.put(record.key, record.offset):
                offsets.latest_offset = max(offsets.latest_offset, record.offset - 1)
                return False
    offsets.latest_offset = max(offsets.latest_offset, batch.last_offset)
    return True


def _belongs_to_aborted(batch: Batch, transactions: CleanedTransactions) -> bool:
    if batch.magic < 2:
        return False
    header = read_header(batch.data)
    return transactions.is_aborted(header.producer_id, header.last_offset, transactional=header.is_transactional)


def _batches(folder: SegmentFolder, segment: SegmentFacts, stop: Callable[[], bool]) -> Iterator[Batch]:
    """The batches of a closed segment; every checksum is checked."""
    file = folder.storage.open(segment_path(folder.directory, segment.base_offset, LOG_SUFFIX))
    try:
        spans = scan(file.pread, segment.size_bytes, first_offset=segment.base_offset, end_offset=segment.next_offset)
        for span in spans:
            if stop():
                raise CleaningStopped
            if isinstance(span, Damage):
                raise CleaningRefused(f"{file.path} is damaged at {span.position} to {span.end}: {span.reason}")
            yield span
    finally:
        file.close()


class _Pass:
    """The second walk: its inputs, and the transactions that it has met."""

    __slots__ = ("_folder", "_horizon_ms", "_inputs", "_rules", "_stop", "_transactions")

    def __init__(self, inputs: Inputs, folder: SegmentFolder, offsets: OffsetMap, stop: Callable[[], bool]) -> None:
        config = inputs.config
        self._inputs = inputs
        self._folder = folder
        self._stop = stop
        self._rules = CleanPass(offsets, inputs.now_ms, config.delete_retention_ms, inputs.last_records)
        self._horizon_ms = tombstone_horizon_ms(inputs.plan, config, inputs.now_ms)
        self._transactions = CleanedTransactions(inputs.aborted)

    def clean_group(self, members: Sequence[SegmentFacts]) -> CleanedSegment:
        """Write the remaining records of some segments into a new one."""
        base_offset = members[0].base_offset
        target = Segment.create(
            self._folder, base_offset, self._inputs.config, self._inputs.now_ms, suffix=swap_files.CLEANED
        )
        reindex: list[AbortedTransaction] = []
        try:
            for segment in members:
                self._copy(segment, target, reindex)
            seal = self._complete(target, members[-1].modified_ms)
            assert seal.contents.next_offset <= members[-1].next_offset, f"{seal} in place of {members}"
        finally:
            target.close()
        self._save_transactions(base_offset, reindex)
        seal = replace(seal, transaction_index=IndexSum.of(transaction_index.encode(reindex)))
        return CleanedSegment(base_offset, tuple(one.base_offset for one in members), seal, tuple(reindex))

    def _copy(self, segment: SegmentFacts, target: Segment, reindex: list[AbortedTransaction]) -> None:
        keeps_tombstones = segment_time(segment) > self._horizon_ms
        for batch in _batches(self._folder, segment, self._stop):
            kept = self._clean(batch, reindex, keeps_tombstones=keeps_tombstones)
            if kept is not None:
                _append(target, kept, batch)

    def _clean(self, batch: Batch, reindex: list[AbortedTransaction], *, keeps_tombstones: bool) -> CleanedBatch | None:
        if batch.magic >= 2:
            return clean_batch(batch.data, self._rules, self._transactions, reindex)
        return clean_message(batch.data, self._rules.offsets, keeps_tombstones=keeps_tombstones)

    def _complete(self, target: Segment, modified_ms: int) -> Seal:
        """Close the segment. It gets the file time of the last one that it replaces, which is its age if no record has a time."""
        if target.pending:
            target.flush()
        seal = target.complete()
        syncing.datasync(target)
        path = target.files.path(LOG_SUFFIX)
        self._folder.storage.set_mtime_ms(path, modified_ms)
        return replace(seal, modified_ns=self._folder.storage.stat(path)[1])

    def _save_transactions(self, base_offset: int, reindex: Sequence[AbortedTransaction]) -> None:
        path = segment_path(self._folder.directory, base_offset, transaction_index.SUFFIX) + swap_files.CLEANED
        index = TransactionIndex(self._folder.storage, path, base_offset)
        for aborted in reindex:
            index.append(aborted)
        index.flush()


def _append(target: Segment, kept: CleanedBatch, batch: Batch) -> None:
    """Add the remains of a batch to the new segment, with the index entries that are due."""
    assert target.next_offset <= kept.first_offset <= kept.last_offset <= batch.last_offset, f"{target!r} got {kept}"
    if not target.end_bytes:
        target.first_timestamp = kept.max_timestamp
    offset = kept.last_offset if batch.magic >= 2 else kept.first_offset
    target.note(target.end_bytes, len(kept.data), offset, kept.max_timestamp, kept.max_timestamp_offset)
    # The scan's buffer is used again for the next batch.
    target.pending.append(bytes(kept.data))
    target.end_bytes += len(kept.data)
    target.next_offset = kept.last_offset + 1
    target.magics |= 1 << batch.magic | (HAS_PRODUCERS if batch.producer_id >= 0 else 0)
    if target.end_bytes - target.size_bytes >= FLUSH_BYTES:
        target.flush()
