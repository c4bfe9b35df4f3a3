"""One segment: a log file, its two indexes, and the largest time and offsets in them; appends are queued and written by `flush`.

Files, named by the offset of the first record that the segment may hold, in 20 digits: `.log` holds batches and messages as
they travel, one after the other and nothing else; `.index` and `.timeindex` are specified in `offset_index` and `time_index`.

`append` takes bytes that are ready to be stored, adds the index entries they are due and changes times and offsets at once;
nothing is written before `flush`, which takes one write for the log and at most one for each index. `roll_back` returns to
what the last flush left. `size_bytes` is what has been written, `end_bytes` what it will be.

Index entries (one is *due* when more than `index.interval.bytes` were appended since the last one) name, by the format of the data,
what the brokers of its era put there: the first offset for v0 and v1, the last of the batch for v2. A large append of many
messages gets entries inside too, so that a look-up never walks a megabyte.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import NamedTuple

from crc32c import crc32c

from horolog.broker.log.counters import LogCounters
from horolog.broker.log.indexes import IndexCache, OffsetIndex, TimeIndex, offset_index, time_index, transaction_index
from horolog.broker.log.integrity import (
    BLOCK_BYTES,
    NEVER_MODIFIED,
    Batch,
    BeingRescanned,
    BlockSums,
    Contents,
    IndexSum,
    Known,
    RescanQueue,
    Seal,
    Survey,
    blocks_in,
    extend_from,
    fingerprint,
    losses,
    survey,
)
from horolog.broker.log.segments.converted_chunks import ConvertedChunks
from horolog.broker.log.segments.segment_sync import SegmentSync
from horolog.broker.log.storage import (
    CANNOT_WRITE,
    JOIN_BELOW_BYTES,
    Buffer,
    File,
    FileMissing,
    OverlayStorage,
    Storage,
    StorageFault,
)
from horolog.broker.log.validation import Validated
from horolog.broker.topic_settings import TopicConfig
from horolog.protocol.readable import time_and_number
from horolog.protocol.records.head import BATCH_MAGIC

log = logging.getLogger(__name__)

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
FILE_SUFFIXES = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)


PROGRESS_BYTES = 8 * 1024 * 1024
"""An active segment is sealed again when it has grown by so much: reading this takes 10 to 200 ms."""

REBUILD_AT_ONCE_BYTES = 4 * 1024 * 1024
"""The largest log that is read to make its indexes anew while someone waits; a larger one is left to a worker."""

HAS_PRODUCERS = 0x80
"""In `magics`: some batch carries a producer id, so the segment tells something about producers."""

_numbers = count()
_new_tuple = tuple.__new__  # a third of the cost of a named tuple's own constructor


class _Written(NamedTuple):
    """What `roll_back` returns to."""

    next_offset: int
    max_timestamp: int
    max_timestamp_offset: int
    first_timestamp: int
    bytes_since_entry: int
    magics: int
    offset_index_bytes: int
    time_index_bytes: int


@dataclass(frozen=True, slots=True)
class SegmentFolder:
    """Where segments live and what they share."""

    storage: Storage
    directory: str
    indexes: IndexCache
    counters: LogCounters
    rescan_queue: RescanQueue = field(default_factory=RescanQueue)
    converted: ConvertedChunks = field(default_factory=ConvertedChunks)


class Segment:
    """See the module's docstring. `seal` is None while the segment takes appends or has not been completed."""

    __slots__ = (
        "_folder",
        "_has_new_entries",
        "_offsets",
        "_suffix",
        "_times",
        "_written",
        "base_offset",
        "bytes_since_entry",
        "created_ms",
        "end_bytes",
        "first_timestamp",
        "holes",
        "index_interval_bytes",
        "index_is_full",
        "index_max_bytes",
        "log",
        "magics",
        "max_timestamp",
        "max_timestamp_offset",
        "next_offset",
        "number",
        "pending",
        "progress",
        "removed",
        "seal",
        "size_bytes",
        "sums",
        "sync",
        "unverified",
    )

    def __init__(
        self,
        folder: SegmentFolder,
        base_offset: int,
        contents: Contents,
        config: TopicConfig,
        created_ms: int,
        *,
        seal: Seal | None = None,
        suffix: str = "",
    ) -> None:
        self._folder = folder
        self._suffix = suffix
        self.number = next(_numbers)
        self.base_offset = base_offset
        self.log: File = folder.storage.open(self.path(LOG_SUFFIX))
        self._offsets: OffsetIndex | None = None
        self._times: TimeIndex | None = None
        self.index_interval_bytes = config.index_interval_bytes
        self.index_max_bytes = config.segment_index_bytes
        self.created_ms = created_ms
        self.seal = seal
        self.progress: Seal | None = None
        """While appends go on: the seal of what was there when that was last asked for."""
        self.pending: list[Buffer] = []
        self.bytes_since_entry = 0
        self.index_is_full = self._has_new_entries = False
        self.removed = False
        self._written: _Written | None = None
        self.sums = sealed_sums(seal)
        self.unverified: bytearray | None = None
        """One byte per block of the log, 1 for those that nobody has held against their sum since it was opened."""
        if seal is not None and contents.size_bytes:
            self.unverified = bytearray(b"\1") * blocks_in(contents.size_bytes)
        self._adopt(contents)
        self.sync = SegmentSync(contents.size_bytes)

    def _adopt(self, contents: Contents) -> None:
        self.size_bytes = self.end_bytes = contents.size_bytes
        self.next_offset = contents.next_offset
        self.max_timestamp = contents.max_timestamp
        self.max_timestamp_offset = contents.max_timestamp_offset
        self.first_timestamp = contents.first_timestamp
        self.magics = contents.magics
        self.holes = contents.holes

    def __repr__(self) -> str:
        pending = f" + {self.end_bytes - self.size_bytes} pending" if self.pending else ""
        state = "sealed" if self.seal else "open"
        return (
            f"<Segment {self.path('')}: offsets {self.base_offset} to {self.next_offset}, {self.size_bytes} bytes{pending},"
            f" largest timestamp {time_and_number(self.max_timestamp) if self.max_timestamp >= 0 else 'none'}, {state}>"
        )

    @property
    def converted(self) -> ConvertedChunks:
        """Where pieces of this log are remembered that were converted for readers."""
        return self._folder.converted

    def path(self, kind: str) -> str:
        return f"{self._folder.directory}/{self.base_offset:020d}{kind}{self._suffix}"

    @classmethod
    def create(
        cls, folder: SegmentFolder, base_offset: int, config: TopicConfig, now_ms: int, *, suffix: str = ""
    ) -> "Segment":
        """A new, empty segment and its three files. Their names are durable once the folder has been synced."""
        segment = cls(folder, base_offset, Contents(0, base_offset), config, now_ms, suffix=suffix)
        segment.log = folder.storage.create(segment.path(LOG_SUFFIX))
        if config.preallocate:
            segment.log.allocate(config.segment_bytes)
        segment._offsets = OffsetIndex(folder.storage, segment.path(OFFSET_INDEX_SUFFIX), segment.index_max_bytes)
        segment._times = TimeIndex(folder.storage, segment.path(TIME_INDEX_SUFFIX), segment.index_max_bytes)
        segment._offsets.create()
        segment._times.create()
        return segment

    # -- appending

    def prepare_to_append(self) -> None:
        """Make a segment that was opened from disk the active one: its indexes are loaded and grow again."""
        offsets, times = self.indexes()
        offsets.max_bytes = self.index_max_bytes - self.index_max_bytes % offset_index.ENTRY.size
        times.max_bytes = self.index_max_bytes - self.index_max_bytes % time_index.ENTRY.size
        offsets.preallocate()
        times.preallocate()
        self._folder.indexes.forget(self)
        self.index_is_full = offsets.is_full or times.is_full
        self.progress = self.seal
        self.seal = None

    def append(self, appended: Validated) -> None:
        """Queue bytes that follow what the segment holds."""
        assert appended.first_offset >= self.next_offset, f"{self!r} got offset {appended.first_offset}"
        data, size_bytes, first, last, _, highest, highest_at, first_timestamp, _, marks, batches, magic = appended
        if self._written is None:
            self._remember()
        end_bytes = self.end_bytes
        if not end_bytes:
            self.first_timestamp = first_timestamp
        if marks:
            self._note_marks(appended)
        else:
            self.note(end_bytes, size_bytes, last if magic >= BATCH_MAGIC else first, highest, highest_at)
        self.pending.append(data)
        self.end_bytes = end_bytes + size_bytes
        self.next_offset = last + 1
        self.magics |= (1 << magic) | HAS_PRODUCERS if batches else 1 << magic

    def _note_marks(self, appended: Validated) -> None:
        marks = appended.marks
        for mark, following in zip(marks, [*marks[1:], None], strict=True):
            end = appended.size_bytes if following is None else following.position
            offset = mark.last_offset if appended.stored_magic >= 2 else mark.first_offset
            position = self.end_bytes + mark.position
            self.note(position, end - mark.position, offset, mark.max_timestamp, mark.max_timestamp_offset)

    def note(self, position: int, size_bytes: int, offset: int, timestamp: int, timestamp_offset: int) -> None:
        """Take notice of bytes at `position`: the largest timestamp, and index entries if they are due."""
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
            self.max_timestamp_offset = timestamp_offset
        if self.bytes_since_entry > self.index_interval_bytes:
            offsets, times = self.indexes()
            offsets.append(offset - self.base_offset, position)
            if self.max_timestamp >= 0:
                times.append(self.max_timestamp, self.max_timestamp_offset - self.base_offset)
            self.bytes_since_entry = 0
            self.index_is_full = offsets.is_full or times.is_full
            self._has_new_entries = True
        self.bytes_since_entry += size_bytes

    def _remember(self) -> None:
        offsets, times = self.indexes()
        self._written = _new_tuple(
            _Written,
            (
                self.next_offset,
                self.max_timestamp,
                self.max_timestamp_offset,
                self.first_timestamp,
                self.bytes_since_entry,
                self.magics,
                len(offsets.entries),
                len(times.entries),
            ),
        )

    def flush(self) -> None:
        """Write the queued bytes and index entries."""
        if len(self.pending) > 1 and self.end_bytes - self.size_bytes <= JOIN_BELOW_BYTES:
            self.pending = [b"".join(self.pending)]
        self.log.pwritev(self.pending, self.size_bytes)
        if self._has_new_entries:
            offsets, times = self.indexes()
            offsets.flush()
            times.flush()
            self._has_new_entries = False
        extend = self.sums.extend
        for buffer in self.pending:
            extend(buffer)
        self.size_bytes = self.end_bytes
        self.pending = []
        self._written = None

    def roll_back(self) -> None:
        """Forget what was appended since the last flush, in the file too."""
        written, self._written = self._written, None
        self.pending = []
        self.end_bytes = self.size_bytes
        if written is not None:
            self.next_offset = written.next_offset
            self.max_timestamp = written.max_timestamp
            self.max_timestamp_offset = written.max_timestamp_offset
            self.first_timestamp = written.first_timestamp
            self.bytes_since_entry = written.bytes_since_entry
            self.magics = written.magics
            offsets, times = self.indexes()
            offsets.cut_back(written.offset_index_bytes)
            times.cut_back(written.time_index_bytes)
            self.index_is_full = offsets.is_full or times.is_full
        self.log.truncate(self.size_bytes)

    # -- completing

    def complete(self) -> Seal:
        """No more appends: the closing time entry, all files cut to size, and the seal.

        The seal may be saved once the files have been synced.
        """
        offsets, times = self.indexes()
        if self.max_timestamp >= 0:
            times.append(self.max_timestamp, self.max_timestamp_offset - self.base_offset)
        offsets.trim()
        times.trim()
        if self.log.size() != self.size_bytes:
            self.log.truncate(self.size_bytes)
        _, modified_ns = self._folder.storage.stat(self.path(LOG_SUFFIX))
        self.seal = self._make_seal(offsets, times, modified_ns)
        self.progress = None
        return self.seal

    def note_progress(self) -> bool:
        """Seal what has been written so far, if that is much more than is sealed. To be saved when the files have been synced."""
        sealed_bytes = self.progress.contents.size_bytes if self.progress is not None else 0
        if self.seal is not None or self.pending or self.size_bytes - sealed_bytes < PROGRESS_BYTES:
            return False
        self.sync.ask_for_indexes()
        self.progress = self._make_seal(*self.indexes(), NEVER_MODIFIED)
        return True

    def _make_seal(self, offsets: OffsetIndex, times: TimeIndex, modified_ns: int) -> Seal:
        return Seal(
            self.base_offset,
            self.contents,
            modified_ns,
            fingerprint(self.log, self.size_bytes),
            self.created_ms,
            IndexSum.of(offsets.entries),
            IndexSum.of(times.entries),
            self.sum_of_transactions() if self.seal is None else self.seal.transaction_index,
            self.sums.encode(),
        )

    def sum_of_transactions(self) -> IndexSum:
        """Of the file as it is: it is synced with every entry."""
        path = self.path(transaction_index.SUFFIX)
        return IndexSum.of(self._folder.storage.read_all(path) if self._folder.storage.exists(path) else b"")

    def take_over(self, seal: Seal) -> None:
        """Go on with what someone else has found in the log, complete and synced."""
        if self.seal is not None:
            seal = replace(seal, transaction_index=self.seal.transaction_index)
        self._folder.indexes.forget(self)
        self._folder.converted.forget(self.number)
        self.drop_indexes()
        self.number = next(_numbers)  # nothing that is remembered of the old contents counts
        self._adopt(seal.contents)
        self.sums = sealed_sums(seal)
        self.sync.begin_with(seal.contents.size_bytes)
        self.seal, self.progress, self.unverified = seal, None, None

    @property
    def contents(self) -> Contents:
        return Contents(
            self.size_bytes,
            self.next_offset,
            self.max_timestamp,
            self.max_timestamp_offset,
            self.first_timestamp,
            self.magics,
            self.holes,
        )

    # -- indexes

    def indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        """Both indexes, loaded and verified."""
        offsets, times = self._offsets, self._times
        if offsets is None or times is None:
            offsets, times = self._load_indexes()
        if self.seal is not None:
            self._folder.indexes.touch(self)
        return offsets, times

    def _load_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        """Read the index files if they are what the seal says, else make them anew from the log, or have that done."""
        loaded = self._load_sealed(self.seal) if self.seal is not None else None
        if loaded is not None:
            self._cut_to_entries(loaded)
            return loaded
        if self.size_bytes > REBUILD_AT_ONCE_BYTES:
            raise self.suspected("its index files are not those of this log")
        log.warning("%s: its index files are not those of this log and are made anew", self.log.path)
        self._folder.counters.indexes_rebuilt.value += 1
        try:
            return self.rebuild_indexes()
        except StorageFault as fault:
            if fault.code not in CANNOT_WRITE:
                raise
            log.warning("%s: they are kept in memory: %s", self.log.path, fault)
        folder = self._folder
        self._folder = replace(folder, storage=OverlayStorage(folder.storage))
        try:
            return self.rebuild_indexes()
        finally:
            self._folder = folder

    def _load_sealed(self, seal: Seal) -> tuple[OffsetIndex, TimeIndex] | None:
        """The index entries that were sealed, None if the files do not begin with them. What follows is left out."""
        storage = self._folder.storage
        paths = self.path(OFFSET_INDEX_SUFFIX), self.path(TIME_INDEX_SUFFIX)
        sums = seal.offset_index, seal.time_index
        entries: list[bytes] = []
        for path, expected in zip(paths, sums, strict=True):
            sealed = self._start_of(path, expected.size_bytes)
            if sealed is None or IndexSum.of(sealed) != expected:
                return None
            entries.append(sealed)
        if not offset_index.ends_in_order(entries[0]):
            return None
        self._offsets = OffsetIndex(storage, paths[0], self.index_max_bytes, entries[0])
        self._times = TimeIndex(storage, paths[1], self.index_max_bytes, entries[1])
        return self._offsets, self._times

    def _cut_to_entries(self, indexes: Iterable[OffsetIndex | TimeIndex]) -> None:
        """Take back the room that was made for appends which never came. A file that cannot be cut is no reason not to read."""
        for index in indexes:
            try:
                if self._folder.storage.stat(index.path)[0] > len(index.entries):
                    index.trim()
            except StorageFault as fault:
                log.warning("%s is longer than what was sealed of it and cannot be cut: %s", index.path, fault)

    def _start_of(self, path: str, size_bytes: int) -> bytes | None:
        """So much of a file, None if it is not as large; and no more, for the rest of an active segment's index is megabytes of zeros."""
        storage = self._folder.storage
        if not storage.exists(path):
            return None
        there_bytes, _ = storage.stat(path)
        if there_bytes < size_bytes:
            return None
        file = storage.open(path)
        try:
            return file.pread(size_bytes, 0) if size_bytes else b""
        finally:
            file.close()

    def suspected(self, reason: str) -> BeingRescanned:
        """Report the segment, to be read again by a worker; what to raise meanwhile."""
        self._folder.rescan_queue.report(self._folder.directory, self.base_offset, reason)
        return BeingRescanned(f"{self.log.path}: {reason}; it is read again in the background", path=self.log.path)

    def rebuild_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        """Read the log of a complete segment again, make both index files anew, and seal it again."""
        self.recover(self.size_bytes, Known(self.base_offset, self.next_offset))
        self.complete()
        offsets, times = self._offsets, self._times
        assert offsets is not None
        assert times is not None
        return offsets, times

    # -- holding the log against its sums

    def verify(self, position: int, end: int) -> None:
        """Hold the blocks that a range lies in against their sums, each once since the segment was opened. Raises BeingRescanned."""
        unverified = self.unverified
        if unverified is None:
            return
        for block in range(position // BLOCK_BYTES, min(blocks_in(end), len(unverified))):
            if unverified[block]:
                self._verify_block(block)
                unverified[block] = 0
        if 1 not in unverified:
            self.unverified = None

    def _verify_block(self, block: int) -> None:
        start, end = self.sums.span_of(block)
        if crc32c(self.log.pread(end - start, start)) != self.sums.sum_of(block):
            raise self.suspected(f"bytes {start} to {end} are not what was written")

    # -- learning from the log

    def recover(
        self,
        file_bytes: int,
        known: Known,
        *,
        cut_tail: bool = False,
        prefix: Seal | None = None,
        observe: Callable[[Batch], None] | None = None,
    ) -> Survey:
        """Learn from the log itself what the segment holds; the indexes are made anew, in memory and in their files.

        Skips the part that `prefix` seals, provided its index entries load. `observe` is shown every good batch that is read.
        Faults outside of checksums are corrected in the file, damage is set aside. Bytes behind the last good batch are a torn
        tail and cut off, unless more is known to have been there: then they are damage.
        """
        counters, folder = self._folder.counters, self._folder
        self.unverified = None
        known = self._begin_recovery(known, prefix)

        def absorb(batch: Batch) -> None:
            self._absorb(batch)
            if observe is not None:
                observe(batch)

        found = survey(self._read_and_sum, file_bytes, known, absorb)
        if found.corrections:
            losses.correct(self.log, found.corrections, counters)
        found.is_short = known.next_offset is not None and self.next_offset < known.next_offset
        cuts = cut_tail and found.torn_bytes > 0 and not found.is_short
        kept = [one for one in found.losses if not (cuts and one.end == file_bytes)]
        losses.keep_damage(folder.storage, folder.directory, self.log, self.base_offset, kept, counters)
        if cuts:
            losses.keep_torn(folder.storage, folder.directory, self.log, self.base_offset, found.losses[-1], counters)
            self.log.truncate(found.good_bytes)
        self.size_bytes = self.end_bytes = found.good_bytes if cuts else file_bytes
        self.holes = (*self.holes, *(found.holes if cuts else found.holes_to(file_bytes)))
        if found.corrections or self.sums.size_bytes > self.size_bytes:
            self.sums = sealed_sums(prefix) if known.start else BlockSums()
        extend_from(self.sums, self.log, self.size_bytes)
        offsets, times = self.indexes()
        if not known.start:  # else the files have what was sealed, and the rest follows when the segment is completed
            offsets.rewrite()
            times.rewrite()
        return found

    def _read_and_sum(self, size_bytes: int, position: int) -> bytes:
        """Read while scanning: bytes that are read for the first time go into the sums."""
        data = self.log.pread(size_bytes, position)
        at = self.sums.size_bytes - position
        if 0 <= at < size_bytes:
            self.sums.extend(memoryview(data)[at:])
        return data

    def _begin_recovery(self, known: Known, prefix: Seal | None) -> Known:
        """Begin with nothing, or with what the prefix vouches for."""
        storage = self._folder.storage
        if prefix is not None and self._load_sealed(prefix) is not None:
            self._adopt(prefix.contents)
            self.sync.begin_with(self.size_bytes)
            self.sums = sealed_sums(prefix)
            if self.size_bytes:
                self.unverified = bytearray(b"\1") * blocks_in(self.size_bytes)
            entries = self.indexes()[0].entries
            last_entry = offset_index.position_of(entries, len(entries) // offset_index.ENTRY.size - 1)
            self.bytes_since_entry = self.size_bytes - last_entry
            return replace(known, first_offset=self.next_offset, start=self.size_bytes)
        self._adopt(Contents(0, self.base_offset))
        self.sync.begin_with(0)
        self.bytes_since_entry = 0
        self.sums = BlockSums()
        self._offsets = OffsetIndex(storage, self.path(OFFSET_INDEX_SUFFIX), self.index_max_bytes)
        self._times = TimeIndex(storage, self.path(TIME_INDEX_SUFFIX), self.index_max_bytes)
        return known

    def _absorb(self, batch: Batch) -> None:
        if not self.magics:
            self.first_timestamp = batch.max_timestamp
        offset = batch.last_offset
        if batch.magic < 2 and self.bytes_since_entry > self.index_interval_bytes:
            offset = batch.base_offset
        self.note(batch.position, batch.size_bytes, offset, batch.max_timestamp, batch.last_offset)
        self.next_offset = batch.last_offset + 1
        self.magics |= 1 << batch.magic
        if batch.producer_id >= 0:
            self.magics |= HAS_PRODUCERS

    @property
    def index_bytes(self) -> int:
        """What the loaded indexes take in memory."""
        offsets, times = self._offsets, self._times
        return (len(offsets.entries) if offsets else 0) + (len(times.entries) if times else 0)

    def drop_indexes(self) -> None:
        """Free the memory of a complete segment's indexes; they are loaded again when needed."""
        for index in (self._offsets, self._times):
            if index is not None:
                index.close()
        self._offsets = self._times = None

    # -- files

    def datasync(self) -> None:
        """Have what has been written on the disk; safe in a worker thread.

        Of a segment that takes appends only the log: its indexes can be made anew from it, and syncing them would make
        every acknowledgement wait for three files. Unless they have been sealed as they are.
        """
        with_indexes = self.sync.take_up_indexes()
        try:
            self.log.datasync()
            self.check_in_place()  # else what was synced has no name, and goes with this process
            for index in (self._offsets, self._times) if with_indexes or self.seal is not None else ():
                if index is not None:
                    index.datasync()
        except FileMissing:
            if not self.removed:
                raise
        except StorageFault:
            self.sync.give_back_indexes(are_due=with_indexes)
            raise

    def check_in_place(self) -> None:
        """Raises FileMissing if the log has been removed, or replaced by another file; safe in a worker thread."""
        try:
            self.log.check_in_place()
        except FileMissing as missing:
            if not self.removed:
                advice = "put the very file back, or start the broker again to go on without it"
                raise FileMissing(f"{missing}; {advice}", path=missing.path) from missing

    def close(self) -> None:
        self.log.close()
        self.drop_indexes()
        self._folder.indexes.forget(self)
        self._folder.converted.forget(self.number)

    def rename(self, suffix: str) -> None:
        """Close the segment and give its files another suffix, such as `.deleted`. If the log keeps its name all do, and that is raised.

        An index that keeps its name without its log is removed at the next start.
        """
        self.close()
        storage, before = self._folder.storage, self._suffix
        old_paths = [self.path(kind) for kind in FILE_SUFFIXES]
        self._suffix = suffix
        for kind, old in zip(FILE_SUFFIXES, old_paths, strict=True):
            try:
                if storage.exists(old):
                    storage.rename(old, self.path(kind))
            except StorageFault as fault:
                if kind == LOG_SUFFIX:
                    self._suffix = before
                    raise
                log.warning("%s keeps its name for now: %s", old, fault)

    def retire(self, suffix: str) -> None:
        """Take the segment out of use under another name, of which workers that look for its files know at once."""
        self.removed = True
        try:
            self.rename(suffix)
        except StorageFault:
            self.removed = False
            raise

    def remove_files(self) -> None:
        """Delete the files of a segment that has been closed; safe in a worker thread."""
        for kind in FILE_SUFFIXES:
            if self._folder.storage.exists(self.path(kind)):
                self._folder.storage.remove(self.path(kind))

    def modified_ms(self) -> int:
        """When the log file was last written: what tells the age of a segment without any timestamps."""
        return self._folder.storage.stat(self.path(LOG_SUFFIX))[1] // 1_000_000


def sealed_sums(seal: Seal | None) -> BlockSums:
    return BlockSums() if seal is None else BlockSums(seal.contents.size_bytes, seal.block_sums)


def segment_for(segments: Sequence[Segment], offset: int) -> int:
    """The number of the last segment that begins at or before an offset; 0 if all begin behind it."""
    low, high = 0, len(segments)
    while low < high:
        middle = (low + high) // 2
        if segments[middle].base_offset <= offset:
            low = middle + 1
        else:
            high = middle
    return max(0, low - 1)
