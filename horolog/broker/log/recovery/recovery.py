"""Opens one partition's folder after a clean stop, a crash, a copy, or another broker's work.

The steps, in order:

1. Leftovers go: `.deleted`, `.cleaned`, `.tmp`, index files without a log; an interrupted swap is finished (`swap_files`).
2. Each segment is either vouched for by its seal (`seals`), or scanned from the seal's end on: its indexes are rebuilt, and its
   contents are learnt from the log itself. A torn tail of the last segment is set aside and cut; any other damage is copied
   aside, stays in place and is skipped. Empty logs between others are ignored.
   Offsets before the last recorded end of the log (seals; after a clean stop also the recovery point) are never given out again:
   if the end is damaged, a new segment begins there.
   After an unclean stop, scanned bytes are written again unchanged (`rewrite.make_dirty`), so that the first sync covers them even
   if a sync of the last process has failed; the names in the folder are synced with it.
3. Leader epochs are read from their checkpoint, cut to the log. After an unclean stop the epoch goes up by one: clients can tell
   from it that records that they have seen may be gone.
4. Producers are read from the newest usable snapshot, the batches behind it and `producers_file`, aborted transactions from their index
   files or, in a scanned segment, from the markers.

An active segment that matches its seal is not opened at all: a partition costs one listing of its folder.
"""

import logging
from collections.abc import Callable, Container, Iterable
from functools import partial

from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.files import CheckpointError, LeaderEpochs, checkpoints, leader_epochs
from horolog.broker.log.integrity import (
    Batch,
    Contents,
    FileFacts,
    Seal,
    SealsDamaged,
    fingerprint,
    scan,
    seals,
)
from horolog.broker.log.partition import OpenedPartition, Partition, Resources, made, rewrite
from horolog.broker.log.producers import ProducerStates
from horolog.broker.log.recovery import leftovers
from horolog.broker.log.recovery.epochs_of_batches import epochs_of
from horolog.broker.log.recovery.findings import Circumstances, Findings, PartitionFolder, position_of
from horolog.broker.log.recovery.producer_batches import producer_batch
from horolog.broker.log.recovery.producers_at_start import ProducersAtStart, SealBroken
from horolog.broker.log.segments import (
    LOG_SUFFIX,
    Segment,
    SegmentFolder,
    presuming,
    recover,
    segment_path,
)
from horolog.broker.log.storage import Storage, StorageFault

log = logging.getLogger(__name__)

STRAY_SUFFIX = ".stray"
"""The suffix of a log that is a copy of other segments' records under a wrong name."""


def open_partition(
    place: PartitionFolder, config: TopicConfig, resources: Resources, known: Circumstances
) -> Partition:
    """Open the partition in an existing folder. Raises StorageFault if its files cannot be read or recovered."""
    return made(open_log(place, config, resources, known))


def open_log(
    place: PartitionFolder, config: TopicConfig, resources: Resources, known: Circumstances
) -> OpenedPartition:
    """The initial state of a partition, from its folder. Raises StorageFault if its files cannot be read or recovered."""
    broken: set[int] = set()
    while True:
        try:
            return _Opening(place, config, resources, known, broken).open()
        except SealBroken as damage:
            log.warning("%s: %s; reading it again", place.directory, damage)
            broken.add(damage.base_offset)


def create_partition(
    place: PartitionFolder,
    topic_id: bytes | None,
    config: TopicConfig,
    resources: Resources,
    now_ms: int,
) -> Partition:
    """Create a new partition's folder. The caller has recorded its existence; it becomes durable with its first data."""
    topic, index, directory = place
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
    return made(
        OpenedPartition(
            topic, index, topic_id, config, resources, folder, [segment], producers, epochs, 0, 0, new_files=new_files
        )
    )


def offline_partition(
    place: PartitionFolder,
    config: TopicConfig,
    resources: Resources,
    reason: str,
    log_start_offset: int = 0,
) -> Partition:
    """A stand-in for a partition that cannot be opened: it has the reason, and touches no file."""
    topic, index, directory = place
    folder = folder_of(directory, resources)
    segment = Segment(folder, 0, Contents(0, 0), config, 0)
    producers = ProducerStates(resources.producer_expiration_ms)
    topic_id = _topic_id_if_readable(resources.storage, directory)
    epochs = LeaderEpochs()
    partition = made(
        OpenedPartition(
            topic, index, topic_id, config, resources, folder, [segment], producers, epochs, 0, log_start_offset
        )
    )
    partition.condition.go_offline(reason)
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
    """The steps of opening one partition, and their findings so far."""

    def __init__(
        self,
        place: PartitionFolder,
        config: TopicConfig,
        resources: Resources,
        known: Circumstances,
        broken: Container[int],
    ) -> None:
        """`broken`: the base offsets of segments that do not match their seals."""
        self.topic, self.index, self.directory = place
        self.broken = broken
        self.name = f"{self.topic}-{self.index}"
        self.config = config
        self.resources = resources
        self.storage: Storage = resources.storage
        self.known = known
        self.folder = folder_of(self.directory, resources)
        self.epochs_seen: list[tuple[int, int]] = []
        self.found = Findings()
        self.recorded_epochs: LeaderEpochs | None = None
        self.epochs_are_lost = self.epochs_are_damaged = False
        self.synced_up_to = 0
        self.seals_found = False

    def open(self) -> OpenedPartition:
        names = leftovers.tidy(self.storage, self.directory)
        sealed = self._load_seals(names)
        self.seals_found = bool(sealed)
        known_end = max((seal.contents.next_offset for seal in sealed.values()), default=0)
        sealed = {
            base: seal for base, seal in sealed.items() if base not in self.broken and self._is_set_aside(seal, names)
        }
        self.recorded_epochs = self._load_epochs(names)
        bases = sorted(leftovers.base_of(name) for name in names if leftovers.is_segment_file(name, LOG_SUFFIX))
        if self.known.was_clean:
            known_end = max(known_end, self.known.recovery_point)
        if seals.SEALS not in names:  # a folder that Kafka wrote: there is no other source
            self.synced_up_to = self.known.recovery_point
        segments = self._open_segments(bases, sealed, known_end)
        start_offset = max(segments[0].base_offset, min(self.known.log_start_offset, segments[-1].next_offset))
        epochs = self._epochs(segments)
        told = ProducersAtStart(self.directory, self.resources, self.known, self.found)
        aborted = {} if self.known.records_only else told.find_aborted(names, segments)
        if not self.known.records_only:
            told.restore(names, segments, aborted)
        return OpenedPartition(
            self.topic,
            self.index,
            _topic_id_in(self.storage, self.directory),
            self.config,
            self.resources,
            self.folder,
            segments,
            told.producers,
            epochs,
            self._leader_epoch(epochs, segments),
            start_offset,
            aborted,
            unsealed=bool(self.found.scanned) and not self.known.is_made,
            names_unsynced=self.known.may_be_unsynced,
            recovery_point=min(self.found.scanned, default=None),
            snapshot_offset=told.snapshot_offset,
            new_files=self._unsynced_files(sealed.values(), names),
        )

    def _unsynced_files(self, sealed: Iterable[Seal], names: set[str]) -> list[str]:
        """Small files that may be in the page cache alone: only a seal of data proves a sync."""
        if self.known.is_made or any(seal.contents.size_bytes for seal in sealed):
            return []
        small_files = (checkpoints.LEADER_EPOCHS, checkpoints.PARTITION_METADATA)
        paths = [f"{self.directory}/{name}" for name in small_files if name in names]
        if self.known.may_be_unsynced:
            for path in paths:
                file = self.storage.open(path)
                rewrite.make_dirty(file, 0, self.storage.stat(path)[0])
                file.close()
        return paths

    # -- step 2

    def _load_seals(self, names: set[str]) -> dict[int, Seal]:
        if seals.SEALS not in names:
            return {}
        try:
            return seals.load(self.storage, self.directory)
        except SealsDamaged as damage:
            log.warning("%s: %s: %s; reading its segments again", self.name, seals.SEALS, damage)
            self.resources.counters.files_rebuilt.value += 1
            return {}

    def _open_segments(self, bases: list[int], sealed: dict[int, Seal], known_end: int) -> list[Segment]:
        segments: list[Segment] = []
        for number, named in enumerate(bases):
            base_offset: int | None = named
            if segments and named < segments[-1].next_offset:
                if not self.storage.stat(self._path(named))[0]:
                    log.warning("%s: %s is empty and is ignored", self.name, self._path(named))
                    continue
                base_offset = self._goes_on(named, segments[-1].next_offset, bases)
            if base_offset is not None:
                following = self._following(bases, number)
                strays = partial(self._is_stray, following or 0, bases)
                segments.append(self._open_segment(base_offset, following, sealed.get(base_offset), known_end, strays))
        found_end = segments[-1].next_offset if segments else max(0, self.known.log_start_offset)
        if not segments or found_end < known_end:
            if found_end < known_end:
                log.error(
                    "%s: offsets %s to %s are missing; the log continues after them",
                    self.name,
                    found_end,
                    known_end - 1,
                )
            segments.append(self._new_segment(max(found_end, known_end)))
        return segments

    def _goes_on(self, named: int, end_offset: int, bases: list[int]) -> int | None:
        """The new base offset of a log whose name lies inside of the previous log, which is served up to `end_offset`.

        If it has records behind that and before the next log, it is renamed to that offset. Otherwise all its records are served
        already: it is a copy under a wrong name, and set aside whole.
        """
        following = min((base for base in bases if base >= end_offset), default=leftovers.last_possible(end_offset))
        goes_on = following > end_offset and self._first_in(named, end_offset, following) is not None
        old = self._path(named)
        new = self._path(end_offset) if goes_on else f"{old}{STRAY_SUFFIX}"
        log.error("%s: %s overlaps the log before it and is renamed to %s", self.name, old, new)
        self.storage.rename(old, new)
        for suffix in leftovers.COMPANION_SUFFIXES:
            if self.storage.exists(segment_path(self.directory, named, suffix)):
                leftovers.remove(self.storage, self.directory, f"{named:020d}{suffix}", "its log has another name")
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
        """Whether a log file does not begin at the offset of its name, or has no batch at all."""
        after = min((base for base in bases if base > base_offset), default=leftovers.last_possible(base_offset))
        first = self._first_in(base_offset, 0, leftovers.last_possible(base_offset))
        if first is None:
            return True
        return first != base_offset and not (self.config.compact and base_offset <= first < after)

    def _following(self, bases: list[int], number: int) -> int | None:
        """The start of the next segment that counts: an empty one between others may be left from a failed copy."""
        for base_offset in bases[number + 1 : -1]:
            if self.storage.stat(self._path(base_offset))[0]:
                return base_offset
        return bases[-1] if number + 1 < len(bases) else None

    def _new_segment(self, base_offset: int) -> Segment:
        segment = Segment.create(self.folder, base_offset, self.config, self.known.now_ms)
        self.found.scanned.add(base_offset)
        return segment

    def _path(self, base_offset: int) -> str:
        return segment_path(self.directory, base_offset, LOG_SUFFIX)

    def _open_segment(
        self,
        base_offset: int,
        following: int | None,
        seal: Seal | None,
        known_end: int,
        stray_follows: Callable[[], bool],
    ) -> Segment:
        size_bytes, modified_ns = self.storage.stat(self._path(base_offset))
        end_offset = leftovers.last_possible(base_offset)
        fits = seal is not None and (following is None or seal.contents.next_offset <= following or stray_follows())
        if seal is not None and fits and self._is_sealed(seal, size_bytes, modified_ns, following):
            self.found.vouching[base_offset] = seal
            return Segment(self.folder, base_offset, seal.contents, self.config, seal.created_ms, seal=seal)
        if self.known.believes_indexes and (presumed := self._presumed(base_offset, following, size_bytes, known_end)):
            return presumed
        prefix = seal if seal is not None and fits and self._begins_as_sealed(seal, size_bytes) else None
        if prefix is not None:
            self.found.vouching[base_offset] = prefix
        created_ms = self.known.now_ms if seal is None else seal.created_ms
        segment = Segment(self.folder, base_offset, Contents(0, base_offset), self.config, created_ms)
        self.found.scanned.add(base_offset)
        is_last = following is None
        epochs = self.recorded_epochs
        known = FileFacts(
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
        recover(segment, size_bytes, known, cut_tail=is_last, prefix=prefix, observe=self._observe)
        if self.known.may_be_unsynced:
            rewrite.make_dirty(segment.log, self._synced_bytes(segment), segment.size_bytes)
        segment.complete()
        self.resources.counters.segments_scanned.value += 1
        if following is not None and segment.next_offset < following and not self.config.compact:
            message = "%s: %s: offsets %s to %s are missing"
            log.error(message, self.name, segment.log.path, segment.next_offset, following - 1)
        return segment

    def _presumed(self, base_offset: int, following: int | None, size_bytes: int, known_end: int) -> Segment | None:
        """A segment as its index files describe it, None if they do not tell."""
        segment = Segment(self.folder, base_offset, Contents(0, base_offset), self.config, self.known.now_ms)
        known = presuming.LogFacts(size_bytes, following, known_end)
        if not presuming.presume(segment, known):
            segment.close()
            return None
        self.found.scanned.add(base_offset)
        return segment

    def _synced_bytes(self, segment: Segment) -> int:
        """How much of a scanned segment is known to be on the disk."""
        if segment.next_offset <= self.synced_up_to:
            return segment.size_bytes
        return max(segment.sync.synced_bytes, position_of(segment, self.synced_up_to))

    def _begins_as_named(self, seal: Seal | None, *, is_last: bool) -> bool:
        """Whether a file was made for appends and never cleaned; if seals are lost or Kafka wrote it, this is not known of every file."""
        if is_last:
            return self.seals_found or not self.config.compact
        return self.seals_found and seal is None and not self.config.compact

    def _is_set_aside(self, seal: Seal, names: set[str]) -> bool:
        """Whether every hole has its file: a range without one, for lack of space, has to be scanned again."""
        starts = [f"{seal.base_offset:020d}{LOG_SUFFIX}.{start}." for start, _ in seal.contents.holes]
        return all(any(name.startswith(start) for name in names) for start in starts)

    def _is_sealed(self, seal: Seal, size_bytes: int, modified_ns: int, following: int | None) -> bool:
        """Whether the log is the sealed one. A matching mtime only saves reading the log's ends.

        For a partial look at a copy the indexes are checked instead, which takes less reading than the ends of the log.
        A seal made while the log grew never matches, even if the log ends there: its index files are not complete.
        """
        if seal.contents.size_bytes != size_bytes or seal.modified_ns == seals.NEVER_MODIFIED:
            return False
        if seal.modified_ns == modified_ns:
            return True
        if self.known.presumes_copies and following is not None and not seal.contents.holes:
            known = presuming.LogFacts(size_bytes, following)
            segment = Segment(
                self.folder, seal.base_offset, Contents(0, seal.base_offset), self.config, seal.created_ms
            )
            is_whole = presuming.presume(segment, known) and segment.next_offset == seal.contents.next_offset
            segment.close()
            if is_whole:
                return True
        return self._begins_as_sealed(seal, size_bytes)

    def _begins_as_sealed(self, seal: Seal, size_bytes: int) -> bool:
        """Whether the log begins with the sealed bytes, judged by the ends of that part."""
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
                self.found.abort_markers.append(batch.last_offset)
        if batch.leader_epoch >= 0 and (not self.epochs_seen or batch.leader_epoch > self.epochs_seen[-1][0]):
            self.epochs_seen.append((batch.leader_epoch, batch.base_offset))

    # -- step 3

    def _load_epochs(self, names: set[str]) -> LeaderEpochs | None:
        """The recorded epochs; None if none are readable."""
        if checkpoints.LEADER_EPOCHS not in names:
            self.epochs_are_lost = self.seals_found  # else only an old Kafka version was here, and all is read anyway
            return None
        try:
            epochs = LeaderEpochs.load(self.storage, self.directory)
        except CheckpointError as damage:
            log.warning("%s: %s: %s; rebuilding it from the batches", self.name, checkpoints.LEADER_EPOCHS, damage)
            self.resources.counters.files_rebuilt.value += 1
            self.epochs_are_lost = self.epochs_are_damaged = True
            return None
        return epochs if epochs.entries else None

    def _epochs(self, segments: list[Segment]) -> LeaderEpochs:
        """The recorded epochs, completed from scanned batches; without a record, from all batches."""
        epochs = self.recorded_epochs or LeaderEpochs()
        epochs.truncate_from_end(segments[-1].next_offset)
        reads = self.epochs_are_lost and not self.known.records_only
        for epoch, start_offset in epochs_of(segments) if reads else self.epochs_seen:
            if epoch > epochs.latest:
                epochs.append(epoch, start_offset)
        if self.epochs_are_damaged and reads:
            epochs.save(self.storage, self.directory)
        return epochs

    def _leader_epoch(self, epochs: LeaderEpochs, segments: Iterable[Segment]) -> int:
        """The epoch to go on with; the first append records it."""
        latest = max(epochs.latest, 0)
        wrote_something = any(segment.size_bytes for segment in segments)
        return latest + 1 if wrote_something and not self.known.was_clean else latest

    # -- step 4


def _topic_id_in(storage: Storage, directory: str) -> bytes | None:
    """The topic's id in a partition's folder; None if there is none, or a damaged one. Raises StorageFault."""
    try:
        return checkpoints.load_topic_id(storage, directory)
    except CheckpointError as damage:
        log.warning("%s/%s: %s", directory, checkpoints.PARTITION_METADATA, damage)
        return None


def _topic_id_if_readable(storage: Storage, directory: str) -> bytes | None:
    """The same for a folder that may not be readable: then None."""
    try:
        return _topic_id_in(storage, directory)
    except StorageFault:
        return None
