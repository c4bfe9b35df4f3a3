"""Opens one partition's folder, whatever was left in it: a clean stop, a crash, a copy, or another broker's work.

What is done, in order:

1. Leftovers go: `.deleted`, `.cleaned`, `.tmp`, index files without a log; an interrupted swap is finished (`swap_files`).
2. Each segment is either vouched for by its seal (`seals`), or scanned from where its seal ends: its indexes are made anew and what
   it holds is learnt from the log itself. A torn tail of the last segment is cut, after it has been set aside; any other damage
   is set aside, stays where it is and is passed over. Empty logs between others are nothing.
   Where the log ended when that was last put on record (seals; after a clean stop also the recovery point) no offset is given out
   again: if the end is damaged, a new segment begins there.
   After a stop that was not clean, what is scanned is written again as it is (`repair.make_dirty`): the first sync has it on the disk
   even if a sync of the last process has failed, and the names in the folder are synced with it.
3. Leader epochs come from their checkpoint, cut to the log. After a stop that was not clean the epoch goes up by one: records that
   clients have seen may be gone, and that is how they can tell.
4. Producers come from the newest usable snapshot, the batches behind it and `producers_file`, aborted transactions from their index files or,
   in a scanned segment, from the markers.

An active segment that is as its seal says is not opened at all: a partition costs a look at its folder.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from horolog.broker.log.files import CheckpointError, LeaderEpochs, checkpoints, leader_epochs
from horolog.broker.log.indexes import (
    LARGEST_RELATIVE_OFFSET,
    AbortedTransaction,
    TransactionIndex,
    TransactionIndexError,
    transaction_index,
)
from horolog.broker.log.integrity import (
    Batch,
    Contents,
    IndexSum,
    Known,
    Seal,
    SealsDamaged,
    fingerprint,
    scan,
    seals,
)
from horolog.broker.log.partition import Opened, Partition, Resources, rewrite
from horolog.broker.log.producers import ProducerStates, RowFileError, SnapshotEntry, producers_file, snapshot_file
from horolog.broker.log.recovery.producer_batches import producer_batch
from horolog.broker.log.segments import (
    HAS_PRODUCERS,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    Segment,
    SegmentFolder,
    reader,
    swap_files,
)
from horolog.broker.log.storage import Storage, StorageFault
from horolog.broker.topic_settings import TopicConfig

log = logging.getLogger(__name__)

OFFSET_DIGITS = 20
STRAY_SUFFIX = ".stray"
"""What a log is called that is a copy of others' records under a wrong name."""
_LEFTOVER_SUFFIXES = (swap_files.DELETED, ".tmp")
_COMPANION_SUFFIXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, transaction_index.SUFFIX)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the data folder knows about a partition before it is opened."""

    was_clean: bool
    log_start_offset: int
    now_ms: int
    recovery_point: int = 0
    """After a clean stop: where the log ended. Otherwise it says nothing about the end."""
    may_be_unsynced: bool = False
    """The last process was killed: bytes behind the last seal may exist only in the page cache."""


def open_partition(
    topic: str, index: int, directory: str, config: TopicConfig, resources: Resources, known: Circumstances
) -> Partition:
    """Open the partition in a folder that is there. Raises StorageFault if its files cannot be read or mended."""
    return Partition(open_log(topic, index, directory, config, resources, known))


def open_log(
    topic: str, index: int, directory: str, config: TopicConfig, resources: Resources, known: Circumstances
) -> Opened:
    """What a partition begins with, as its folder is. Raises StorageFault if its files cannot be read or mended."""
    return _Opening(topic, index, directory, config, resources, known).open()


def create_partition(
    topic: str,
    index: int,
    directory: str,
    topic_id: bytes | None,
    config: TopicConfig,
    resources: Resources,
    now_ms: int,
) -> Partition:
    """Make a new partition's folder. Whoever asks has on record that it exists; it is durable with the first data that is."""
    storage = resources.storage
    storage.make_dir(directory)
    epochs = LeaderEpochs([(0, 0)])
    small_files = {checkpoints.LEADER_EPOCHS: leader_epochs.encode(epochs.entries)}
    if topic_id is not None:
        small_files[checkpoints.PARTITION_METADATA] = checkpoints.encode_partition_metadata(topic_id)
    for name, data in small_files.items():
        file = storage.create(f"{directory}/{name}")
        file.pwritev([data], 0)
        file.close()
    folder = folder_of(directory, resources)
    segment = Segment.create(folder, 0, config, now_ms)
    producers = ProducerStates(resources.producer_expiration_ms)
    new_files = [f"{directory}/{name}" for name in small_files]
    return Partition(
        Opened(
            topic, index, topic_id, config, resources, folder, [segment], producers, epochs, 0, 0, new_files=new_files
        )
    )


def offline_partition(
    topic: str,
    index: int,
    directory: str,
    config: TopicConfig,
    resources: Resources,
    reason: str,
    log_start_offset: int = 0,
) -> Partition:
    """What stands for a partition that cannot be opened: it says why, and nothing of it is touched."""
    folder = folder_of(directory, resources)
    segment = Segment(folder, 0, Contents(0, 0), config, 0)
    producers = ProducerStates(resources.producer_expiration_ms)
    topic_id = _topic_id_if_readable(resources.storage, directory)
    epochs = LeaderEpochs()
    partition = Partition(
        Opened(topic, index, topic_id, config, resources, folder, [segment], producers, epochs, 0, log_start_offset)
    )
    partition.go_offline(reason)
    return partition


def folder_of(directory: str, resources: Resources) -> SegmentFolder:
    return SegmentFolder(
        resources.storage,
        directory,
        resources.indexes,
        resources.counters,
        resources.rescan_queue,
        resources.converted,
    )


class _Opening:
    """The steps of opening one partition, and what they have found so far."""

    def __init__(
        self, topic: str, index: int, directory: str, config: TopicConfig, resources: Resources, known: Circumstances
    ) -> None:
        self.name = f"{topic}-{index}"
        self.topic = topic
        self.index = index
        self.directory = directory
        self.config = config
        self.resources = resources
        self.storage: Storage = resources.storage
        self.known = known
        self.folder = folder_of(directory, resources)
        self.producers = ProducerStates(resources.producer_expiration_ms)
        self.epochs_seen: list[tuple[int, int]] = []
        self.scanned: set[int] = set()
        self.recorded_epochs: LeaderEpochs | None = None
        self.vouching: dict[int, Seal] = {}
        self.abort_markers: list[int] = []
        self.transactions_lost = False
        self.synced_up_to = 0
        self.snapshot_offset = -1
        self.seals_found = False

    def open(self) -> Opened:
        names = self._tidy(self.storage.list_dir(self.directory))
        sealed = self._load_seals(names)
        self.seals_found = bool(sealed)
        known_end = max((seal.contents.next_offset for seal in sealed.values()), default=0)
        sealed = {base: seal for base, seal in sealed.items() if self._is_set_aside(seal, names)}
        self.recorded_epochs = self._load_epochs(names)
        bases = sorted(_base_of(name) for name in names if is_segment_file(name, LOG_SUFFIX))
        if self.known.was_clean:
            known_end = max(known_end, self.known.recovery_point)
        if seals.SEALS not in names:  # the folder of a Kafka, whose word is all there is
            self.synced_up_to = self.known.recovery_point
        segments = self._open_segments(bases, sealed, known_end)
        start_offset = max(segments[0].base_offset, min(self.known.log_start_offset, segments[-1].next_offset))
        epochs = self._epochs(segments[-1].next_offset)
        aborted = self._transactions(names, segments)
        self._producers(names, segments, aborted)
        return Opened(
            self.topic,
            self.index,
            _topic_id_in(self.storage, self.directory),
            self.config,
            self.resources,
            self.folder,
            segments,
            self.producers,
            epochs,
            self._leader_epoch(epochs, segments),
            start_offset,
            aborted,
            unsealed=bool(self.scanned),
            names_unsynced=self.known.may_be_unsynced,
            recovery_point=min(self.scanned, default=None),
            snapshot_offset=self.snapshot_offset,
            new_files=self._unsynced_files(sealed.values(), names),
        )

    def _unsynced_files(self, sealed: Iterable[Seal], names: set[str]) -> list[str]:
        """Only a seal of data proves a sync. Until the first one the small files may be in the page cache alone."""
        if any(seal.contents.size_bytes for seal in sealed):
            return []
        small_files = (checkpoints.LEADER_EPOCHS, checkpoints.PARTITION_METADATA)
        paths = [f"{self.directory}/{name}" for name in small_files if name in names]
        if self.known.may_be_unsynced:
            for path in paths:
                rewrite.make_dirty(self.storage.open(path), 0, self.storage.stat(path)[0])
        return paths

    # -- step 1

    def _tidy(self, names: list[str]) -> set[str]:
        """Remove what earlier runs have left, and finish what they began; the names that remain."""
        if any(name.endswith((swap_files.CLEANED, swap_files.SWAP)) for name in names):
            report = swap_files.recover(self.storage, self.directory, self._next_offset_of)
            log.info("%s: leftovers of the cleaner: %s", self.name, report)
            names = self.storage.list_dir(self.directory)
        logs = {name[:OFFSET_DIGITS] for name in names if is_segment_file(name, LOG_SUFFIX)}
        kept = set()
        for name in names:
            orphan = name[:OFFSET_DIGITS] not in logs and any(is_segment_file(name, one) for one in _COMPANION_SUFFIXES)
            if orphan or name.endswith(_LEFTOVER_SUFFIXES):
                self._remove(name, "its log is missing" if orphan else "left over")
            else:
                kept.add(name)
        return kept

    def _remove(self, name: str, why: str) -> None:
        """What cannot be removed does no harm: it is not looked at."""
        try:
            self.storage.remove(f"{self.directory}/{name}")
            log.info("%s: %s is removed: %s", self.name, name, why)
        except StorageFault as fault:
            log.warning("%s: %s cannot be removed: %s", self.name, name, fault)

    def _next_offset_of(self, path: str) -> int:
        """The offset behind the last good batch of a log file that is not in place yet."""
        file = self.storage.open(path)
        base_offset = _base_of(path.rpartition("/")[2])
        spans = scan(file.pread, file.size(), first_offset=base_offset, end_offset=_last_possible(base_offset))
        next_offset = -1
        for span in spans:
            if isinstance(span, Batch):
                next_offset = span.last_offset + 1
        file.close()
        return next_offset

    # -- step 2

    def _load_seals(self, names: set[str]) -> dict[int, Seal]:
        if seals.SEALS not in names:
            return {}
        try:
            return seals.load(self.storage, self.directory)
        except SealsDamaged as damage:
            log.warning("%s: %s: %s; its segments are read again", self.name, seals.SEALS, damage)
            return {}

    def _open_segments(self, bases: list[int], sealed: dict[int, Seal], known_end: int) -> list[Segment]:
        segments: list[Segment] = []
        for number, named in enumerate(bases):
            base_offset: int | None = named
            if segments and named < segments[-1].next_offset:
                if not self.storage.stat(self._path(named))[0]:
                    log.warning("%s: %s is empty and passed over", self.name, self._path(named))
                    continue
                base_offset = self._goes_on(named, segments[-1].next_offset, bases)
            if base_offset is not None:
                following = self._following(bases, number)
                strays = partial(self._is_stray, following or 0, bases)
                segments.append(self._open_segment(base_offset, following, sealed.get(base_offset), known_end, strays))
        found_end = segments[-1].next_offset if segments else max(0, self.known.log_start_offset)
        if not segments or found_end < known_end:
            if found_end < known_end:
                log.error("%s: offsets %s to %s are gone; it goes on behind them", self.name, found_end, known_end - 1)
            segments.append(self._new_segment(max(found_end, known_end)))
        return segments

    def _goes_on(self, named: int, end_offset: int, bases: list[int]) -> int | None:
        """What becomes of a log whose name lies inside of the one before it, which is served up to `end_offset`.

        If it has records behind that, and before the next log, it gets the name that they ask for: the new base offset.
        Otherwise all that it could serve is there already: it is a copy under a wrong name, and set aside whole.
        """
        following = min((base for base in bases if base >= end_offset), default=_last_possible(end_offset))
        goes_on = following > end_offset and self._first_in(named, end_offset, following) is not None
        old = self._path(named)
        new = self._path(end_offset) if goes_on else f"{old}{STRAY_SUFFIX}"
        log.error("%s: %s repeats what is in the log before it and becomes %s", self.name, old, new)
        self.storage.rename(old, new)
        for suffix in _COMPANION_SUFFIXES:
            if self.storage.exists(f"{self.directory}/{named:020d}{suffix}"):
                self._remove(f"{named:020d}{suffix}", "its log has another name")
        return end_offset if goes_on else None

    def _first_in(self, named: int, from_offset: int, end_offset: int) -> int | None:
        """The first offset of a log file in a range, if it has any."""
        file = self.storage.open(self._path(named))
        try:
            spans = scan(file.pread, file.size(), first_offset=from_offset, end_offset=end_offset)
            return next((one.base_offset for one in spans if isinstance(one, Batch)), None)
        finally:
            file.close()

    def _is_stray(self, base_offset: int, bases: list[int]) -> bool:
        """Whether a log file does not begin as its name says."""
        after = min((base for base in bases if base > base_offset), default=_last_possible(base_offset))
        first = self._first_in(base_offset, 0, _last_possible(base_offset))
        if first is None:
            return False
        return first != base_offset and not (self.config.compact and base_offset <= first < after)

    def _following(self, bases: list[int], number: int) -> int | None:
        """Where the next segment begins that counts: an empty one between others may be the trace of a copy that went wrong."""
        for base_offset in bases[number + 1 : -1]:
            if self.storage.stat(self._path(base_offset))[0]:
                return base_offset
        return bases[-1] if number + 1 < len(bases) else None

    def _new_segment(self, base_offset: int) -> Segment:
        segment = Segment.create(self.folder, base_offset, self.config, self.known.now_ms)
        self.scanned.add(base_offset)
        return segment

    def _path(self, base_offset: int) -> str:
        return f"{self.directory}/{base_offset:020d}{LOG_SUFFIX}"

    def _open_segment(
        self,
        base_offset: int,
        following: int | None,
        seal: Seal | None,
        known_end: int,
        stray_follows: Callable[[], bool],
    ) -> Segment:
        size_bytes, modified_ns = self.storage.stat(self._path(base_offset))
        end_offset = _last_possible(base_offset)
        fits = seal is not None and (following is None or seal.contents.next_offset <= following or stray_follows())
        if seal is not None and fits and self._is_sealed(seal, size_bytes, modified_ns):
            self.vouching[base_offset] = seal
            return Segment(self.folder, base_offset, seal.contents, self.config, seal.created_ms, seal=seal)
        prefix = seal if seal is not None and fits and self._begins_as_sealed(seal, size_bytes) else None
        if prefix is not None:
            self.vouching[base_offset] = prefix
        created_ms = self.known.now_ms if seal is None else seal.created_ms
        segment = Segment(self.folder, base_offset, Contents(0, base_offset), self.config, created_ms)
        self.scanned.add(base_offset)
        is_last = following is None
        epochs = self.recorded_epochs
        known = Known(
            base_offset,
            end_offset,
            border=following,
            stray_follows=stray_follows,
            is_last=is_last,
            dense=is_last and not self.config.compact,
            begins_as_named=self._begins_as_named(seal, is_last=is_last),
            next_offset=max(known_end, 0) if is_last else None if seal is None else seal.contents.next_offset,
            newest_epoch=epochs.latest if is_last and epochs is not None else None,
        )
        segment.recover(size_bytes, known, cut_tail=is_last, prefix=prefix, observe=self._observe)
        if self.known.may_be_unsynced:
            rewrite.make_dirty(segment.log, self._synced_bytes(segment), segment.size_bytes)
        segment.complete()
        self.resources.counters.segments_scanned.value += 1
        if following is not None and segment.next_offset < following and not self.config.compact:
            message = "%s: %s: nothing is there for offsets %s to %s"
            log.error(message, self.name, segment.log.path, segment.next_offset, following - 1)
        return segment

    def _synced_bytes(self, segment: Segment) -> int:
        """How much of a scanned segment is known to be on the disk."""
        if segment.next_offset <= self.synced_up_to:
            return segment.size_bytes
        return max(segment.sync.synced_bytes, self._position_of(segment, self.synced_up_to))

    def _begins_as_named(self, seal: Seal | None, *, is_last: bool) -> bool:
        """Whether a file was made for appends and never cleaned; where seals are lost or a Kafka wrote it, that is not known of all."""
        if is_last:
            return self.seals_found or not self.config.compact
        return self.seals_found and seal is None and not self.config.compact

    def _is_set_aside(self, seal: Seal, names: set[str]) -> bool:
        """Whether every hole has its file: if there was no room for one the range is to be looked at again."""
        starts = [f"{seal.base_offset:020d}{LOG_SUFFIX}.{start}." for start, _ in seal.contents.holes]
        return all(any(name.startswith(start) for name in names) for start in starts)

    def _is_sealed(self, seal: Seal, size_bytes: int, modified_ns: int) -> bool:
        """Whether the log is the one that was sealed. The mtime only spares a look; it decides nothing by itself.

        A seal that was made while the log grew says nothing of its end, though that may be where it ends: its index files are not complete.
        """
        if seal.contents.size_bytes != size_bytes or seal.modified_ns == seals.NEVER_MODIFIED:
            return False
        if seal.modified_ns == modified_ns:
            return True
        return self._begins_as_sealed(seal, size_bytes)

    def _begins_as_sealed(self, seal: Seal, size_bytes: int) -> bool:
        """Whether what was sealed is what the log begins with, as far as its ends tell."""
        sealed_bytes = seal.contents.size_bytes
        if sealed_bytes > size_bytes:
            return False
        file = self.storage.open(self._path(seal.base_offset))
        ends = fingerprint(file, sealed_bytes)
        file.close()
        return ends == seal.fingerprint

    def _observe(self, batch: Batch) -> None:
        if batch.is_control:
            marker = producer_batch(batch)
            if marker is not None and marker.marker is not None and not marker.marker.committed:
                self.abort_markers.append(batch.last_offset)
        if batch.leader_epoch >= 0 and (not self.epochs_seen or batch.leader_epoch > self.epochs_seen[-1][0]):
            self.epochs_seen.append((batch.leader_epoch, batch.base_offset))

    # -- step 3

    def _load_epochs(self, names: set[str]) -> LeaderEpochs | None:
        """The epochs on record; None if nothing readable is."""
        if checkpoints.LEADER_EPOCHS not in names:
            return None
        try:
            epochs = LeaderEpochs.load(self.storage, self.directory)
        except CheckpointError as damage:
            log.warning("%s: %s: %s; taken from the batches", self.name, checkpoints.LEADER_EPOCHS, damage)
            return None
        return epochs if epochs.entries else None

    def _epochs(self, end_offset: int) -> LeaderEpochs:
        """The epochs on record, completed by those that scanned batches carry."""
        epochs = self.recorded_epochs or LeaderEpochs()
        epochs.truncate_from_end(end_offset)
        for epoch, start_offset in self.epochs_seen:
            if epoch > epochs.latest:
                epochs.append(epoch, start_offset)
        return epochs

    def _leader_epoch(self, epochs: LeaderEpochs, segments: Iterable[Segment]) -> int:
        """The epoch to go on with; it goes on record with the first append."""
        latest = max(epochs.latest, 0)
        wrote_something = any(segment.size_bytes for segment in segments)
        return latest + 1 if wrote_something and not self.known.was_clean else latest

    # -- step 4

    def _transactions(self, names: set[str], segments: Iterable[Segment]) -> dict[int, TransactionIndex]:
        """The aborted transactions that are on record; those behind the newest snapshot are about to be found."""
        aborted: dict[int, TransactionIndex] = {}
        for segment in segments:
            name = f"{segment.base_offset:020d}{transaction_index.SUFFIX}"
            path = f"{self.directory}/{name}"
            data = self.storage.read_all(path) if name in names else b""
            index = TransactionIndex(self.storage, path, segment.base_offset)
            try:
                index = TransactionIndex(self.storage, path, segment.base_offset, self._checked(segment, data))
                index.truncate(segment.next_offset)  # a marker that went with a torn tail has ended nothing
            except TransactionIndexError as damage:
                log.warning("%s: %s: %s; made anew", self.name, path, damage)
                self.resources.counters.indexes_rebuilt.value += 1
                index.reset()
                self.transactions_lost = True
                self.scanned.add(segment.base_offset)
            if index.entries or name in names:
                aborted[segment.base_offset] = index
        return aborted

    def _checked(self, segment: Segment, data: bytes) -> list[AbortedTransaction]:
        """The entries of a transaction index if it is the one that was sealed, or fits the markers that the log has."""
        seal = self.vouching.get(segment.base_offset)
        if seal is not None:
            expected = seal.transaction_index
            grown = segment.base_offset in self.scanned
            if IndexSum.of(data[: expected.size_bytes]) != expected or not (grown or len(data) == expected.size_bytes):
                raise TransactionIndexError("it is not the one that was sealed")
            return transaction_index.decode(
                data[: len(data) - len(data) % transaction_index.ENTRY_BYTES], segment.base_offset
            )
        entries = transaction_index.decode(data, segment.base_offset)
        markers = {offset for offset in self.abort_markers if segment.base_offset <= offset < segment.next_offset}
        if {one.last_offset for one in entries} != markers:
            raise TransactionIndexError("its entries are not those of the log's abort markers")
        return entries

    def _producers(self, names: set[str], segments: list[Segment], aborted: dict[int, TransactionIndex]) -> None:
        """Begin with the newest snapshot and go through the batches behind it.

        Without one, through all that is there, also before the log's start: what DeleteRecords hides tells of producers as before.
        Where aborted transactions have to be found again, too: then the snapshot tells only of those producers whose records are gone.
        """
        end_offset = segments[-1].next_offset
        has_snapshots = any(name.endswith(snapshot_file.SUFFIX) for name in names)
        from_offset = segments[0].base_offset
        gone: list[SnapshotEntry] = []
        if has_snapshots:
            found = snapshot_file.load_newest(
                self.storage, self.directory, not_before=segments[0].base_offset, not_after=end_offset
            )
            for fault in found.faults:
                log.warning("%s: %s", self.name, fault)
            if self.transactions_lost:
                gone = found.entries
            elif found.offset >= 0:
                self.producers.restore(found.entries, self.known.now_ms)
                from_offset = found.offset
                self.snapshot_offset = found.offset if self._has_synced_names() else -1
                bases = {segment.base_offset for segment in segments}
                snapshot_file.remove_superseded(self.storage, self.directory, found.offset, bases)
            snapshot_file.remove_outside(
                self.storage, self.directory, not_before=segments[0].base_offset, not_after=end_offset
            )
        for segment in segments:
            if segment.magics & HAS_PRODUCERS and segment.next_offset > from_offset:
                self._replay(segment, from_offset, aborted)
        self.producers.restore_missing(gone, self.known.now_ms)
        if producers_file.FILE_NAME in names:
            self._recall_batches()
        for segment in segments:
            if segment.base_offset in self.scanned and segment.seal is not None:
                segment.seal = replace(segment.seal, transaction_index=segment.sum_of_transactions())

    def _has_synced_names(self) -> bool:
        """Whether what lies in the folder would be there after a power cut."""
        try:
            if self.known.may_be_unsynced:
                self.storage.sync_dir(self.directory)
        except StorageFault:
            return False
        return True

    def _recall_batches(self) -> None:
        """What snapshots have no room for."""
        try:
            self.producers.recall(producers_file.load(self.storage, self.directory))
        except RowFileError as damage:
            self._remove(producers_file.FILE_NAME, str(damage))

    def _replay(self, segment: Segment, from_offset: int, aborted: dict[int, TransactionIndex]) -> None:
        index = aborted.get(segment.base_offset)
        known_up_to = index.entries[-1].last_offset if index is not None and index.entries else -1
        end_offset = segment.next_offset
        for span in scan(
            segment.log.pread,
            segment.size_bytes,
            first_offset=segment.base_offset,
            end_offset=end_offset,
            position=self._position_of(segment, from_offset),
        ):
            if not isinstance(span, Batch) or span.producer_id < 0 or span.base_offset < from_offset:
                continue
            batch = producer_batch(span)
            completed = self.producers.replay(batch, self.known.now_ms) if batch is not None else None
            if completed is not None and completed.aborted and completed.last_offset > known_up_to:
                index = self._index_of(segment, aborted)
                index.append(completed.index_entry())
        if index is not None:
            index.flush()

    def _position_of(self, segment: Segment, offset: int) -> int:
        """Where to begin with an offset; the segment's begin if its indexes do not tell."""
        if offset <= segment.base_offset:
            return 0
        try:
            return reader.find(segment, offset) or 0
        except StorageFault:
            return 0

    def _index_of(self, segment: Segment, aborted: dict[int, TransactionIndex]) -> TransactionIndex:
        if segment.base_offset not in aborted:
            path = f"{self.directory}/{segment.base_offset:020d}{transaction_index.SUFFIX}"
            aborted[segment.base_offset] = TransactionIndex(self.storage, path, segment.base_offset)
        return aborted[segment.base_offset]


def _topic_id_in(storage: Storage, directory: str) -> bytes | None:
    """The topic's id in a partition's folder; None if there is none, or a damaged one. Raises StorageFault."""
    try:
        return checkpoints.load_topic_id(storage, directory)
    except CheckpointError as damage:
        log.warning("%s/%s: %s", directory, checkpoints.PARTITION_METADATA, damage)
        return None


def _topic_id_if_readable(storage: Storage, directory: str) -> bytes | None:
    """Likewise of a folder that something is wrong with."""
    try:
        return _topic_id_in(storage, directory)
    except StorageFault:
        return None


def is_segment_file(name: str, suffix: str) -> bool:
    """Whether a file name is a base offset of 20 digits and this suffix."""
    digits = name[:OFFSET_DIGITS]
    return name[OFFSET_DIGITS:] == suffix and digits.isascii() and digits.isdigit() and len(digits) == OFFSET_DIGITS


def _base_of(name: str) -> int:
    return int(name[:OFFSET_DIGITS])


def _last_possible(base_offset: int) -> int:
    """The first offset that a segment cannot hold, for want of a number that its indexes could hold."""
    return base_offset + LARGEST_RELATIVE_OFFSET + 1
