"""One segment: a log file, its two indexes, and the largest time and offsets in them; appends are queued and written by `flush`.

`append` takes bytes that are ready to be stored, adds the index entries they are due and changes times and offsets at once;
nothing is written before `flush`, which takes one write for the log and at most one for each index. `roll_back` returns to
the state after the last flush. `size_bytes` is the written size, `end_bytes` the size with queued bytes.

Index entries (one is *due* when more than `index.interval.bytes` were appended since the last one) name, by the format of the data,
what the brokers of its era put there: the first offset for v0 and v1, the last of the batch for v2. A large append of many
messages gets entries inside too, so that a lookup never walks a megabyte.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from horolog.base.readable import time_and_number
from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.indexes import IndexPair
from horolog.broker.log.integrity import (
    NEVER_MODIFIED,
    BeingRescanned,
    BlockSums,
    Contents,
    IndexSum,
    Seal,
    blocks_in,
    fingerprint,
)
from horolog.broker.log.segments.segment_files import LOG_SUFFIX, SegmentFiles
from horolog.broker.log.segments.segment_folder import SegmentFolder
from horolog.broker.log.segments.segment_sync import SegmentSync
from horolog.broker.log.storage import JOIN_BELOW_BYTES, File, StorageFault
from horolog.broker.log.validation import Validated
from horolog.protocol.primitives import Buffer
from horolog.protocol.records.head import BATCH_MAGIC
from horolog.protocol.records.record import MAX_INT64

PROGRESS_BYTES = 8 * 1024 * 1024
"""The growth after which an active segment is sealed again: reading this much takes 10 to 200 ms."""

HAS_PRODUCERS: Final = 0x80
"""In `magics`: some batch carries a producer id, so the segment matters for producers' states."""

RESERVES_FROM_BYTES: Final = 8 * 1024 * 1024
RESERVED_SHARE: Final = 8
MOST_RESERVED_BYTES: Final = 8 * 1024 * 1024
"""A log of this size has disk blocks set aside for what follows: this share of its size, up to this much."""

_numbers: Final = count()


class _Written:
    """The state that `roll_back` restores. One is made for every write, and compiled code makes nothing more quickly."""

    __slots__ = (
        "bytes_since_entry",
        "first_timestamp",
        "magics",
        "max_timestamp",
        "max_timestamp_offset",
        "next_offset",
        "offset_index_bytes",
        "time_index_bytes",
    )

    def __init__(self, segment: "Segment", indexes: IndexPair) -> None:
        self.next_offset = segment.next_offset
        self.max_timestamp = segment.max_timestamp
        self.max_timestamp_offset = segment.max_timestamp_offset
        self.first_timestamp = segment.first_timestamp
        self.bytes_since_entry = segment.bytes_since_entry
        self.magics = segment.magics
        self.offset_index_bytes = len(indexes.offsets.entries)
        self.time_index_bytes = len(indexes.times.entries)

    def __repr__(self) -> str:
        return f"<_Written up to offset {self.next_offset}>"


class Segment:
    """See the module's docstring. `seal` is None while the segment takes appends or has not been completed."""

    __slots__ = (
        "_has_new_entries",
        "_reserved_bytes",
        "_written",
        "base_offset",
        "bytes_since_entry",
        "config",
        "created_ms",
        "end_bytes",
        "files",
        "first_timestamp",
        "folder",
        "holes",
        "index_interval_bytes",
        "index_is_full",
        "indexes",
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
        self.folder = folder
        self.number = next(_numbers)
        self.base_offset = base_offset
        self.files = SegmentFiles(folder, base_offset, suffix)
        self.log: File = folder.storage.open(self.files.path(LOG_SUFFIX))
        self.indexes: IndexPair | None = None
        """An active segment's indexes are in memory; `index_loading` loads those of others."""
        self.config = config
        """As it was when the segment was opened."""
        self.index_interval_bytes = config.index_interval_bytes
        self.created_ms = created_ms
        self.seal = seal
        self.progress: Seal | None = None
        """While appends go on: the seal of the part that `note_progress` sealed last."""
        self.pending: list[Buffer] = []
        self.index_is_full = self._has_new_entries = False
        self.removed = False
        self._written: _Written | None = None
        self._reserved_bytes = RESERVES_FROM_BYTES
        self.sync = SegmentSync(contents.size_bytes)
        self.hold(contents, BlockSums() if seal is None else seal.sums(), is_verified=seal is None)

    def hold(self, contents: Contents, sums: BlockSums, *, is_verified: bool = True) -> None:
        """Set the log's contents, all of them on the disk, and their sums."""
        self.size_bytes = self.end_bytes = contents.size_bytes
        self.next_offset = contents.next_offset
        self.max_timestamp = contents.max_timestamp
        self.max_timestamp_offset = contents.max_timestamp_offset
        self.first_timestamp = contents.first_timestamp
        self.magics = contents.magics
        self.holes = contents.holes
        self.sums = sums
        self.unverified = None if is_verified else bytearray(b"\1") * blocks_in(contents.size_bytes) or None
        """One byte per block of the log, 1 for those not verified against their sums since the segment was opened."""
        self.bytes_since_entry = 0
        self.sync.begin_with(contents.size_bytes)

    def __repr__(self) -> str:
        pending = f" + {self.end_bytes - self.size_bytes} pending" if self.pending else ""
        state = "sealed" if self.seal else "open"
        return (
            f"<Segment {self.files.path('')}: offsets {self.base_offset} to {self.next_offset}, {self.size_bytes} bytes{pending},"
            f" largest timestamp {time_and_number(self.max_timestamp) if self.max_timestamp >= 0 else 'none'}, {state}>"
        )

    @classmethod
    def create(
        cls, folder: SegmentFolder, base_offset: int, config: TopicConfig, now_ms: int, *, suffix: str = ""
    ) -> "Segment":
        """A new, empty segment and its three files. Their names are durable once the folder has been synced."""
        segment = cls(folder, base_offset, Contents(0, base_offset), config, now_ms, suffix=suffix)
        segment.log = folder.storage.create(segment.files.path(LOG_SUFFIX))
        if config.preallocate:
            segment.log.allocate(config.segment_bytes)
        segment.indexes = IndexPair.at(folder.storage, segment.files.index_paths, config.segment_index_bytes)
        segment.indexes.create()
        return segment

    # -- appending

    def prepare_to_append(self, indexes: IndexPair) -> None:
        """Make a segment that was opened from disk the active one: its indexes, which have been loaded, grow again."""
        self.indexes = indexes
        indexes.preallocate()
        self.folder.indexes.forget(self)
        self.index_is_full = indexes.is_full
        self.progress = self.seal
        self.seal = None

    @property
    def _growing(self) -> IndexPair:
        """The indexes of a segment without a seal: they are in memory."""
        assert self.indexes is not None, f"{self!r} has no indexes"
        return self.indexes

    def append(self, appended: Validated) -> None:
        """Queue bytes at the segment's end."""
        data, size_bytes, first, last, _, highest, highest_at, first_timestamp, _, marks, batches, magic = appended
        assert self.next_offset <= first <= last, f"{self!r} got offsets {first} to {last}"
        if self._written is None:
            indexes = self.indexes
            assert indexes is not None
            self._written = _Written(self, indexes)
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
        """Account for bytes at `position`: the largest timestamp, and index entries if they are due."""
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
            self.max_timestamp_offset = timestamp_offset
        if self.bytes_since_entry > self.index_interval_bytes:
            indexes, base = self.indexes, self.base_offset
            assert indexes is not None
            indexes.append(offset - base, position, self.max_timestamp, self.max_timestamp_offset - base)
            self.bytes_since_entry = 0
            self.index_is_full = indexes.is_full
            self._has_new_entries = True
        self.bytes_since_entry += size_bytes

    def flush(self) -> None:
        """Write the queued bytes and index entries."""
        if len(self.pending) > 1 and self.end_bytes - self.size_bytes <= JOIN_BELOW_BYTES:
            self.pending = [b"".join(self.pending)]
        if self.end_bytes > self._reserved_bytes:
            self._reserve()
        self.log.pwritev(self.pending, self.size_bytes)
        if self._has_new_entries:
            self._growing.flush()
            self._has_new_entries = False
        extend = self.sums.extend_with
        for buffer in self.pending:
            extend(buffer)
        self.size_bytes = self.end_bytes
        self.pending = []
        self._written = None

    def _reserve(self) -> None:
        """Set disk blocks aside for the queued bytes and those that follow, which makes their writes cheaper."""
        ahead_bytes = min(self.end_bytes // RESERVED_SHARE, MOST_RESERVED_BYTES)
        upto = max(min(self.end_bytes + ahead_bytes, self.config.segment_bytes), self.end_bytes)
        is_done = self.log.reserve(self.size_bytes, upto - self.size_bytes)
        self._reserved_bytes = upto if is_done else MAX_INT64

    def roll_back(self) -> None:
        """Drop everything appended since the last flush, in the file too."""
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
            indexes = self._growing
            indexes.cut_back(written.offset_index_bytes, written.time_index_bytes)
            self.index_is_full = indexes.is_full
        self.log.truncate(self.size_bytes)

    # -- completing

    def complete(self) -> Seal:
        """End appends: add the closing time entry, cut all files to size, and make the seal.

        The seal may be saved once the files have been synced.
        """
        indexes = self._growing
        assert not self.pending, f"{self!r} ends before all is written"
        if self.max_timestamp >= 0:
            indexes.times.append(self.max_timestamp, self.max_timestamp_offset - self.base_offset)
        last = indexes.times.last_timestamp
        assert last == max(self.max_timestamp, -1), f"{self!r}: its time index ends with {last}"
        indexes.trim()
        if self.log.size() != self.size_bytes or self.size_bytes > RESERVES_FROM_BYTES:
            self.log.truncate(self.size_bytes)  # gives back what was reserved, by an earlier process too
        self.seal = self._make_seal(self.files.modified_ns())
        self.progress = None
        return self.seal

    def note_progress(self) -> bool:
        """Seal the written part if it is much more than the sealed one. The seal may be saved once the files have been synced."""
        sealed_bytes = self.progress.contents.size_bytes if self.progress is not None else 0
        if self.seal is not None or self.pending or self.size_bytes - sealed_bytes < PROGRESS_BYTES:
            return False
        self.sync.ask_for_indexes()
        self.progress = self._make_seal(NEVER_MODIFIED)
        return True

    def _make_seal(self, modified_ns: int) -> Seal:
        offsets, times = self._growing
        assert self.sums.size_bytes == self.size_bytes, f"{self!r}: {self.sums!r}"
        return Seal(
            self.base_offset,
            self.contents,
            modified_ns,
            fingerprint(self.log, self.size_bytes),
            self.created_ms,
            IndexSum.of(offsets.entries),
            IndexSum.of(times.entries),
            self.files.sum_of_transactions() if self.seal is None else self.seal.transaction_index,
            self.sums.encode(),
        )

    def take_over(self, seal: Seal) -> None:
        """Take over the seal that another reader of the log made, complete and synced."""
        if self.seal is not None:
            seal = replace(seal, transaction_index=self.seal.transaction_index)
        self.seal, self.progress = seal, None
        self._forget()
        self.number = next(_numbers)  # invalidates everything cached of the old contents
        self.hold(seal.contents, seal.sums())

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

    # -- in use and out of use

    def suspected(self, reason: str) -> BeingRescanned:
        """Report the segment for a rescan by a worker; returns the exception to raise meanwhile."""
        self.folder.rescan_queue.report(self.folder.directory, self.base_offset, reason)
        return BeingRescanned(f"{self.log.path}: {reason}; it is read again in the background", path=self.log.path)

    @property
    def index_bytes(self) -> int:
        """The memory of the loaded indexes."""
        return 0 if self.indexes is None else self.indexes.size_bytes

    def drop_indexes(self) -> None:
        """Free a complete segment's indexes, which are loaded again when needed; for others only close the descriptors."""
        if self.indexes is not None:
            self.indexes.close()
            if self.seal is not None:
                self.indexes = None

    def _forget(self) -> None:
        """Drop everything cached from the files."""
        self.drop_indexes()
        self.folder.indexes.forget(self)
        self.folder.converted.forget(self.number)

    def close(self) -> None:
        self.log.close()
        self._forget()

    def retire(self, suffix: str) -> None:
        """Take the segment out of use under another name; workers that look for its files see this at once."""
        self.removed = True
        self.close()
        try:
            self.files.rename(suffix)
        except StorageFault:
            self.removed = False
            raise


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
