"""A segment that lies in the bucket: its log is read in blocks, and everything else of it comes with its `.meta` when it is first needed.

Until then its seal says what the manifest says: the contents of the log. Its sums and those of its indexes are not known, so nothing of
the log is believed either: `RemoteLog` has the `.meta` brought first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Protocol

from horolog.broker.bucket.block_fetcher import BlockFetcher, Wake, Wanted
from horolog.broker.bucket.block_ledger import WHOLE, Block
from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.remote_log import RemoteLog
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.unread_pages import is_unread
from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.indexes import offset_index, transaction_index
from horolog.broker.log.integrity import BLOCK_BYTES, BlockSums, IndexSum, Seal, blocks_in
from horolog.broker.log.partition import DecidedHere
from horolog.broker.log.producers import snapshot_file
from horolog.broker.log.segments import Segment, SegmentFolder
from horolog.broker.log.storage import StorageFault
from horolog.stores.object_store import Bytes

NOT_KNOWN = IndexSum(1 << 62, 0)
"""No index file fits this."""


class Parts(Protocol):
    """What a `.meta` object has."""

    @property
    def seal(self) -> Seal: ...
    @property
    def offset_index(self) -> bytes: ...
    @property
    def time_index(self) -> bytes: ...
    @property
    def transaction_index(self) -> bytes: ...
    @property
    def producers(self) -> bytes: ...


class MetaReader:
    """Reads `.meta` objects that are here; the one that was read last stays decoded."""

    def __init__(self, fetcher: BlockFetcher, decode: Callable[[bytes], Parts]) -> None:
        """`decode` raises FormatError."""
        self.fetcher = fetcher
        self.decode = decode
        self._last: tuple[str, Parts] | None = None

    def __repr__(self) -> str:
        return f"<MetaReader of {self.fetcher!r}>"

    def read(self, key: str) -> Parts | None:
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        data = self.fetcher.files.read_whole(Block(key, WHOLE))
        if data is None:
            return None
        parts = self.decode(data)
        self._last = key, parts
        return parts


class RemoteSegment:
    """See the module's docstring."""

    __slots__ = ("_metas", "_wake", "described", "log", "segment")

    def __init__(self, described: BucketSegment, path: str, metas: MetaReader, wake: Wake) -> None:
        self.described = described
        self._metas = metas
        self._wake = wake
        size_bytes = described.contents.size_bytes
        self.log = RemoteLog(path, described.log_key, size_bytes, metas.fetcher, wake, self._sums)
        self.log.around, self.log.records = self._around, self._records
        self.segment: Segment | None = None

    def __repr__(self) -> str:
        return f"<RemoteSegment {self.described.log_key}>"

    def open(self, folder: SegmentFolder, config: TopicConfig) -> Segment:
        """The segment of a log; `folder` finds its files here."""
        base_offset, contents, created_ms, _, _ = self.described
        sums = bytes(4 * blocks_in(contents.size_bytes))
        seal = Seal(base_offset, contents, 0, 0, created_ms, NOT_KNOWN, NOT_KNOWN, block_sums=sums)
        segment = self.segment = Segment(folder, base_offset, contents, config, created_ms, seal=seal)
        segment.unverified = None  # each block is verified when it comes
        parts = self._metas.read(self.described.meta_key)
        if parts is not None:
            self._believe(parts)
        return segment

    def parts(self) -> Parts:
        """Everything but the log. Raises NotHere; StorageFault if the page that names the segment cannot be read."""
        key = self.described.meta_key
        if is_unread(self.described):
            raise StorageFault(f"{key}, which names the segments that have these offsets, cannot be read", path=key)
        parts = self._metas.read(key)
        if parts is not None and self.log.sums is None:  # another opening of the segment has asked for it
            self._believe(parts)
            parts = None  # the caller may hold the seal that was not known
        if parts is None:
            raise self._metas.fetcher.want(Wanted(key, WHOLE, WHOLE, 0, self._is_right, self._records), self._wake)
        return parts

    def unreadable(self) -> Iterator[tuple[str, str]]:
        """The keys of its objects that are lost, each with what cannot be read, and why. None once the log has removed it."""
        if self.segment is not None and self.segment.removed:
            return
        if is_unread(self.described):
            key = self.described.meta_key
            yield key, f"{self._records()} cannot be read: {key}, which names their segments, is lost or damaged"
        for key in (self.described.meta_key, self.described.log_key):
            line = self._metas.fetcher.lost.line_of(key)
            if line is not None:
                yield key, line

    def _records(self) -> str:
        partition = PurePosixPath(self.log.path).parent.name
        return f"{partition}: offsets {self.described.base_offset} up to {self.described.next_offset}"

    def _sums(self) -> BlockSums:
        """The sums of the log. Raises NotHere."""
        return self.parts().seal.sums()

    def _believe(self, parts: Parts) -> None:
        self.log.sums = parts.seal.sums()
        if self.segment is not None:
            self.segment.seal, self.segment.sums = parts.seal, self.log.sums
            self.segment.holes = parts.seal.contents.holes

    def _is_right(self, _number: int, data: Bytes) -> bool:
        try:
            parts = self._metas.decode(bytes(data))
        except FormatError:
            return False
        base_offset, known, _, _, _ = self.described
        found = parts.seal.base_offset, parts.seal.contents.size_bytes, parts.seal.contents.next_offset
        if found != (base_offset, known.size_bytes, known.next_offset):
            return False
        self._believe(parts)
        return True

    def decided(self) -> DecidedHere:
        """Its aborted transactions. Raises NotHere."""
        parts = self.parts()
        entries = transaction_index.decode(parts.transaction_index, self.described.base_offset)
        open_ones = [one.current_txn_first_offset for one in snapshot_file.decode(parts.producers)]
        return DecidedHere(entries, min((one for one in open_ones if one >= 0), default=None))

    def _around(self, position: int) -> tuple[int, int]:
        """From the index entry before a position up to the second one behind it."""
        indexes = None if self.segment is None else self.segment.indexes
        if indexes is None:
            return position, position + 1
        entries = indexes.offsets.entries
        count = len(entries) // offset_index.ENTRY.size
        following = bisect_right(range(count), position, key=lambda number: offset_index.position_of(entries, number))
        end = offset_index.position_of(entries, following + 1) if following + 1 < count else position + BLOCK_BYTES
        return offset_index.position_of(entries, following - 2), end
