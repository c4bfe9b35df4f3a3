"""Ships what a partition has got since the last moment: the bytes behind the pieces that are there, in as few pieces as pay.

What lies in a log is never changed, but a log may be rewritten by compaction, or lose its end with the machine. So a known segment is
continued only while its last piece is still what the file has there; else the whole segment is shipped again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from crc32c import crc32c

from horolog.broker.backup.looking import FoldersChanged, SeenPartition, SeenSegment
from horolog.broker.backup.moment import KeptPartition, KeptPiece, KeptSegment
from horolog.broker.backup.objects import OBJECT_BYTES, PieceWriter
from horolog.broker.log.files import checkpoints
from horolog.broker.log.producers import producers_file, snapshot_file
from horolog.broker.log.segments import LOG_SUFFIX, segment_path
from horolog.broker.log.storage import File, FileMissing, Storage, StorageFault
from horolog.protocol.errors import DecodeError
from horolog.protocol.records.head import heads_in
from horolog.stores.object_store import Bytes

READ_BYTES = OBJECT_BYTES
LARGEST_READ_BYTES = 16 * READ_BYTES
"""More than the longest batch."""
SMALL_FILES = (checkpoints.PARTITION_METADATA, checkpoints.LEADER_EPOCHS, producers_file.FILE_NAME)


class _Whole(NamedTuple):
    """How many bytes of a log are whole batches, the offset behind them, and whether the next one is cut short."""

    size_bytes: int
    next_offset: int
    is_cut: bool


class Shipper(NamedTuple):
    """Ships partitions one after the other."""

    new_storage: Callable[[], Storage]
    writer: PieceWriter
    checks_all: bool
    """Whether the pieces of the open segment are all compared with the file: what was there at the last moment may have been lost since."""
    reached: Callable[[KeptPartition], None]
    """Called after each closed segment with the shipped part of the partition."""

    def ship(self, seen: SeenPartition, known: KeptPartition | None) -> KeptPartition:
        """The partition as it was seen. Raises FoldersChanged if it is not there any more, StorageFault and StoreError."""
        if known is not None and known.topic_id != seen.topic_id:
            known = None
        if known is not None and _is_same(seen, known):
            return replace(known, start_offset=seen.start_offset)
        before = {one.base_offset: one for one in known.segments} if known else {}
        open_before = known.segments[-1].base_offset if known and known.segments else -1
        storage = self.new_storage()
        last = seen.segments[-1]
        kept: list[KeptSegment] = []
        for one, following in pairwise(seen.segments):
            kept.append(self._segment(storage, seen, one, before.get(one.base_offset), open_before)[0])
            self.reached(_partly(seen, (*kept, *_behind(known, one)), following.base_offset))
        known_tail = before.get(last.base_offset) if last.base_offset == open_before else None
        tail, end_offset = self._segment(storage, seen, last, known_tail, open_before, is_open=True)
        if end_offset < 0:
            assert known is not None, seen
            end_offset = known.end_offset
        files = _small_files(storage, seen, end_offset)
        end_offset = max(end_offset, seen.start_offset)
        return KeptPartition(seen.topic, seen.index, seen.topic_id, seen.start_offset, end_offset, files, (*kept, tail))

    def _segment(
        self,
        storage: Storage,
        seen: SeenPartition,
        one: SeenSegment,
        known: KeptSegment | None,
        open_before: int,
        *,
        is_open: bool = False,
    ) -> tuple[KeptSegment, int]:
        """The segment and the offset behind it, which is known of an open one that has grown; else -1."""
        path = segment_path(seen.directory, one.base_offset, LOG_SUFFIX)
        try:
            file = storage.open_apart(path)
            try:
                kept, end_offset = self._shipped(file, one, known, open_before, is_open=is_open)
            finally:
                file.close()
            if not is_open and kept.pieces != (known.pieces if known else ()):
                _check_is_there(self.new_storage(), path, one)
        except FileMissing as error:
            raise FoldersChanged(str(error)) from error
        return kept, end_offset

    def _shipped(
        self, file: File, one: SeenSegment, known: KeptSegment | None, open_before: int, *, is_open: bool
    ) -> tuple[KeptSegment, int]:
        pieces = self._still_there(file, one, known, was_open=one.base_offset == open_before)
        there, end_offset = sum(piece.size_bytes for piece in pieces), -1
        if there == one.size_bytes:
            end_offset = -1 if pieces else one.base_offset
        else:
            first = first_to_replace([piece.size_bytes for piece in pieces], one.size_bytes - there)
            pieces, end_offset = self._added(file, one, pieces[:first], is_open=is_open)
        return KeptSegment(one.base_offset, one.modified_ms, pieces), end_offset

    def _still_there(
        self, file: File, one: SeenSegment, known: KeptSegment | None, *, was_open: bool
    ) -> tuple[KeptPiece, ...]:
        """The pieces that the file still has; none if it was rewritten."""
        if known is None or known.size_bytes > one.size_bytes or not known.pieces:
            return ()
        if known.size_bytes == one.size_bytes and not was_open:
            return known.pieces
        at = known.size_bytes
        for piece in reversed(known.pieces):
            at -= piece.size_bytes
            if crc32c(_read(file, piece.size_bytes, at)) != piece.crc:
                return ()
            if not self.checks_all:
                break
        return known.pieces

    def _added(
        self, file: File, one: SeenSegment, pieces: Sequence[KeptPiece], *, is_open: bool
    ) -> tuple[tuple[KeptPiece, ...], int]:
        """The pieces, and those behind them up to the end; an open segment ends behind its last whole batch."""
        found, position, end_offset = list(pieces), sum(piece.size_bytes for piece in pieces), -1
        if is_open and not position:
            end_offset = one.base_offset
        size_bytes = READ_BYTES
        while position < one.size_bytes:
            data: Bytes = _read(file, min(size_bytes, one.size_bytes - position), position)
            if is_open:
                whole = _whole(data)
                if not whole.size_bytes and whole.is_cut and len(data) == size_bytes < LARGEST_READ_BYTES:
                    size_bytes *= 2
                    continue
                if not whole.size_bytes:
                    break
                # a copy would cost a tenth of the round
                data, end_offset = memoryview(data)[: whole.size_bytes], whole.next_offset
            found.append(self.writer.add(data))
            position += len(data)
            size_bytes = READ_BYTES
        return tuple(found), end_offset


def first_to_replace(sizes: Sequence[int], added_bytes: int) -> int:
    """The first piece that is shipped again together with the new bytes: those that are not longer than what follows them.

    So there are few pieces, and each byte is shipped again a few times only, each time in a piece of twice the size.
    """
    first = len(sizes)
    while first and sizes[first - 1] <= added_bytes <= OBJECT_BYTES - sizes[first - 1]:
        first -= 1
        added_bytes += sizes[first]
    return first


def _partly(seen: SeenPartition, segments: tuple[KeptSegment, ...], end_offset: int) -> KeptPartition:
    """A partition without its small files."""
    return KeptPartition(seen.topic, seen.index, seen.topic_id, seen.start_offset, end_offset, {}, segments)


def _behind(known: KeptPartition | None, one: SeenSegment) -> Iterator[KeptSegment]:
    return (each for each in (known.segments if known else ()) if each.base_offset > one.base_offset)


def _is_same(seen: SeenPartition, known: KeptPartition) -> bool:
    return [(one.base_offset, one.size_bytes, one.modified_ms) for one in seen.segments] == [
        (one.base_offset, one.size_bytes, one.modified_ms) for one in known.segments
    ]


def _whole(data: Bytes) -> _Whole:
    """The whole batches that the bytes begin with."""
    end, next_offset = 0, -1
    try:
        for head in heads_in(data):
            end, next_offset = head.end, head.last_offset + 1
    except DecodeError:
        return _Whole(end, next_offset, is_cut=False)
    return _Whole(end, next_offset, is_cut=end < len(data))


def _read(file: File, size_bytes: int, position: int) -> bytes:
    try:
        return file.pread(size_bytes, position)
    except StorageFault as error:
        if error.code:
            raise
        raise FoldersChanged(str(error)) from error  # it has become shorter


def _check_is_there(storage: Storage, path: str, one: SeenSegment) -> None:
    """A closed log that was rewritten meanwhile may lack records that are gone for the sake of later ones."""
    size_bytes, modified_ns = storage.stat(path)
    if (size_bytes, modified_ns // 1_000_000) != one[1:]:
        raise FoldersChanged(f"{path} was rewritten")


def _small_files(storage: Storage, seen: SeenPartition, end_offset: int) -> Mapping[str, bytes]:
    """With the newest snapshot of the producers before the end."""
    snapshots = [one for one in snapshot_file.offsets_in(storage, seen.directory) if one <= end_offset]
    newest = [snapshot_file.file_name(max(snapshots))] if snapshots else []
    found = {}
    for name in (*SMALL_FILES, *newest):
        with suppress(FileMissing):
            found[name] = bytes(storage.read_all(f"{seen.directory}/{name}"))
    return found
