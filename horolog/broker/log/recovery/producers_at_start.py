"""Restores producers and transactions when a partition's log is opened.

Producers are read from the newest usable snapshot, the batches behind it and `producers_file`; aborted transactions from their index
files or, in a scanned segment, from the markers.
"""

import logging
from collections.abc import Iterable
from dataclasses import replace

from horolog.broker.log.indexes import AbortedTransaction, TransactionIndex, TransactionIndexError, transaction_index
from horolog.broker.log.integrity import Batch, Damage, IndexSum, scan
from horolog.broker.log.partition import Resources
from horolog.broker.log.producers import ProducerStates, RowFileError, SnapshotEntry, producers_file, snapshot_file
from horolog.broker.log.recovery import leftovers
from horolog.broker.log.recovery.findings import Circumstances, Findings, position_of
from horolog.broker.log.recovery.producer_batches import producer_batch
from horolog.broker.log.segments import HAS_PRODUCERS, Segment
from horolog.broker.log.storage import StorageFault

log = logging.getLogger(__name__)


class SealBroken(Exception):
    """A sealed segment is damaged: its producers are known only once it has been scanned."""

    def __init__(self, base_offset: int) -> None:
        super().__init__(f"the segment {base_offset} is not what was sealed")
        self.base_offset = base_offset


class ProducersAtStart:
    """Call `find_aborted` first, then `restore`."""

    def __init__(self, directory: str, resources: Resources, known: Circumstances, found: Findings) -> None:
        self._name = directory.rpartition("/")[2]
        self._directory = directory
        self._resources = resources
        self._storage = resources.storage
        self._known = known
        self._found = found
        self._transactions_lost = False
        self.producers = ProducerStates(resources.producer_expiration_ms)
        self.snapshot_offset = -1

    def find_aborted(self, names: set[str], segments: Iterable[Segment]) -> dict[int, TransactionIndex]:
        """The recorded aborted transactions; `restore` finds those behind the newest snapshot."""
        aborted: dict[int, TransactionIndex] = {}
        for segment in segments:
            name = f"{segment.base_offset:020d}{transaction_index.SUFFIX}"
            if self._known.is_made and name not in names:
                continue
            path = f"{self._directory}/{name}"
            data = self._storage.read_all(path) if name in names else b""
            index = TransactionIndex(self._storage, path, segment.base_offset)
            try:
                index = TransactionIndex(self._storage, path, segment.base_offset, self._checked(segment, data))
                index.truncate(segment.next_offset)  # a marker lost with a torn tail has ended nothing
            except TransactionIndexError as damage:
                if name in names or not self._known.has_logs_only:
                    log.warning("%s: %s: %s; rebuilding it", self._name, path, damage)
                    self._resources.counters.indexes_rebuilt.value += 1
                index.reset()
                self._transactions_lost = True
                self._found.scanned.add(segment.base_offset)
            if index.entries or name in names:
                aborted[segment.base_offset] = index
        return aborted

    def _checked(self, segment: Segment, data: bytes) -> list[AbortedTransaction]:
        """The entries of a transaction index if it is the sealed one, or fits the log's markers."""
        seal = self._found.vouching.get(segment.base_offset)
        if seal is not None:
            expected = seal.transaction_index
            grown = segment.base_offset in self._found.scanned
            if IndexSum.of(data[: expected.size_bytes]) != expected or not (grown or len(data) == expected.size_bytes):
                raise TransactionIndexError("it is not the one that was sealed")
            return transaction_index.decode(
                data[: len(data) - len(data) % transaction_index.ENTRY_BYTES], segment.base_offset
            )
        entries = transaction_index.decode(data, segment.base_offset)
        markers = {
            offset for offset in self._found.abort_markers if segment.base_offset <= offset < segment.next_offset
        }
        if {one.last_offset for one in entries} != markers:
            raise TransactionIndexError("its entries are not those of the log's abort markers")
        return entries

    def restore(self, names: set[str], segments: list[Segment], aborted: dict[int, TransactionIndex]) -> None:
        """Begin with the newest snapshot and replay the batches behind it. Raises SealBroken.

        Without a snapshot all batches are replayed, also those before the log's start: records hidden by DeleteRecords still count
        for producers. The same is done if aborted transactions have to be found again: then the snapshot is used only for producers
        whose records are gone.
        """
        end_offset = segments[-1].next_offset
        has_snapshots = any(name.endswith(snapshot_file.SUFFIX) for name in names)
        from_offset = segments[0].base_offset
        gone: list[SnapshotEntry] = []
        if has_snapshots:
            found = snapshot_file.load_newest(
                self._storage, self._directory, not_before=segments[0].base_offset, not_after=end_offset
            )
            for fault in found.faults:
                log.warning("%s: %s", self._name, fault)
                self._resources.counters.files_rebuilt.value += 1
            if self._transactions_lost:
                gone = found.entries
            elif found.offset >= 0:
                self.producers.restore(found.entries, self._known.now_ms)
                from_offset = found.offset
                self.snapshot_offset = found.offset if self._has_synced_names() else -1
                bases = {segment.base_offset for segment in segments}
                snapshot_file.remove_superseded(self._storage, self._directory, found.offset, bases)
            snapshot_file.remove_outside(
                self._storage, self._directory, not_before=segments[0].base_offset, not_after=end_offset
            )
        for segment in segments:
            if segment.magics & HAS_PRODUCERS and segment.next_offset > from_offset:
                self._replay(segment, from_offset, aborted)
        self.producers.restore_missing(gone, self._known.now_ms)
        if producers_file.FILE_NAME in names:
            self._recall_batches()
        for index in aborted.values():
            self.producers.recall_aborted(index.entries)
        for segment in segments:
            if segment.base_offset in self._found.scanned and segment.seal is not None:
                segment.seal = replace(segment.seal, transaction_index=segment.files.sum_of_transactions())

    def _has_synced_names(self) -> bool:
        """Whether the folder's names would survive a power cut."""
        try:
            if self._known.may_be_unsynced:
                self._storage.sync_dir(self._directory)
        except StorageFault:
            return False
        return True

    def _recall_batches(self) -> None:
        """Recall the batches that snapshots have no room for."""
        try:
            self.producers.recall(producers_file.load(self._storage, self._directory))
        except RowFileError as damage:
            leftovers.remove(self._storage, self._directory, producers_file.FILE_NAME, str(damage))
            self._resources.counters.files_rebuilt.value += 1

    def _replay(self, segment: Segment, from_offset: int, aborted: dict[int, TransactionIndex]) -> None:
        found: list[AbortedTransaction] = []
        end_offset = segment.next_offset
        for span in scan(
            segment.log.pread,
            segment.size_bytes,
            first_offset=segment.base_offset,
            end_offset=end_offset,
            position=position_of(segment, from_offset),
        ):
            if isinstance(span, Damage) and self._is_news(segment, span):
                raise SealBroken(segment.base_offset)
            if not isinstance(span, Batch) or span.producer_id < 0 or span.base_offset < from_offset:
                continue
            batch = producer_batch(span)
            completed = self.producers.replay(batch, self._known.now_ms) if batch is not None else None
            if completed is not None and completed.aborted:
                found.append(completed.index_entry())
        self._agree(segment, from_offset, found, aborted)

    def _agree(
        self, segment: Segment, from_offset: int, found: list[AbortedTransaction], aborted: dict[int, TransactionIndex]
    ) -> None:
        """Make the index agree with the log; an index without a seal was not verified before."""
        index = aborted.get(segment.base_offset)
        if index is None and not found:
            return
        index = self._index_of(segment, aborted)
        if self._is_wrong(segment, [one for one in index.entries if one.last_offset >= from_offset], found):
            log.warning("%s: %s does not match its log; rebuilding it", self._name, index.path)
            self._resources.counters.indexes_rebuilt.value += 1
            kept = [one for one in index.entries if one.last_offset < from_offset]
            index.reset()
            for one in kept:
                index.append(one)
        known_up_to = index.entries[-1].last_offset if index.entries else -1
        for one in found:
            if one.last_offset > known_up_to:
                index.append(one)
        index.flush()

    def _is_wrong(self, segment: Segment, known: list[AbortedTransaction], found: list[AbortedTransaction]) -> bool:
        """Whether entries name other transactions than the log has. One with a damaged marker is known from the index alone."""
        is_sealed = segment.base_offset in self._found.vouching and segment.base_offset not in self._found.scanned
        if is_sealed or segment.holes:
            return False
        return list(map(_named, known)) != list(map(_named, found[: len(known)]))

    def _is_news(self, segment: Segment, damage: Damage) -> bool:
        """Whether the segment's seal does not have this damage: a scan may find batches that only their heads hide."""
        is_known = any(start <= damage.position and damage.end <= end for start, end in segment.holes)
        return segment.base_offset in self._found.vouching and not is_known

    def _index_of(self, segment: Segment, aborted: dict[int, TransactionIndex]) -> TransactionIndex:
        if segment.base_offset not in aborted:
            path = segment.files.path(transaction_index.SUFFIX)
            aborted[segment.base_offset] = TransactionIndex(self._storage, path, segment.base_offset)
        return aborted[segment.base_offset]


def _named(one: AbortedTransaction) -> tuple[int, int, int]:
    return one.producer_id, one.first_offset, one.last_offset
