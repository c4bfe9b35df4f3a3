"""Rewrites a partition that a failed write or sync has stopped, so that it can take appends again.

After a failed sync the kernel marks the pages that it could not write as clean: the next sync succeeds without having written
them, and reads may show bytes that never reached the disk. So bytes behind the last successful sync count as unsynced, now and
at the next start, which rewrites them (`make_dirty`). Once a probe file can be written and synced in the folder, every such
byte is read from the cache, written to its place again (which makes its page dirty) and synced; and every batch is
verified. Then the whole log is on the disk, whatever the producers' responses were: batches acknowledged with
`acks=1` are kept, refused ones are there too, and a producer that retries them gets their offsets, if it numbers its batches.

If the cache has dropped bytes that the disk never had, `UnreadableBytes` is raised: the folder has to be opened again as after a crash.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from horolog.broker.log.indexes import LARGEST_RELATIVE_OFFSET
from horolog.broker.log.integrity import CHUNK_BYTES, Damage, scan
from horolog.broker.log.segments import Segment
from horolog.broker.log.storage import File, FileMissing, Storage, StorageFault

if TYPE_CHECKING:
    from horolog.broker.log.partition.partition import Partition

log = logging.getLogger(__name__)

PROBE = "horolog-probe.tmp"
"""Removed at the next start should it be left over, as everything is that ends so."""
PROBE_BYTES = 4096
PAGE_BYTES = 4096


class UnreadableBytes(Exception):
    """Written but unsynced bytes cannot be read again."""


def job(partition: Partition) -> Callable[[], None]:
    """A job that lets a stopped partition take appends again once its disk works; raises StorageFault; may run in a worker."""
    with suppress(StorageFault):  # the next flush reports it; the job cuts off what was queued and is not written now
        partition.write_pending()
    write_all = partition.durability.rewrite_job(partition.segments, partition.segments[-1], partition.written_end)

    def rewrite_log() -> None:
        try:
            write_all()
        except UnreadableBytes as damage:
            partition.condition.go_offline(f"records that were written but not synced are lost: {damage}")
            log.error("%s-%s is offline: %s", partition.topic, partition.index, partition.condition.fault)
        else:
            partition.condition.resume()

    return rewrite_log


def probe(storage: Storage, directory: str) -> None:
    """Raises StorageFault unless a file can be made, written, synced and removed here."""
    path = f"{directory}/{PROBE}"
    storage.write_atomically(path, bytes(PROBE_BYTES))
    storage.remove(path)


def write_again(storage: Storage, segment: Segment, size_bytes: int, *, is_active: bool) -> None:
    """Rewrite and sync the first `size_bytes` of a segment's log. Raises StorageFault or Unreadable."""
    try:
        file = storage.open_apart(segment.log.path)
    except FileMissing:
        if segment.removed:
            return
        raise
    try:
        if is_active:
            file.truncate(size_bytes)  # a failed write may have left a part, if the roll-back failed too
        _write_batches(file, segment, size_bytes)
        file.datasync()
    finally:
        file.close()
    segment.sync.reached(size_bytes)


def _write_batches(file: File, segment: Segment, size_bytes: int) -> None:
    start = segment.sync.synced_bytes
    if start >= size_bytes:
        return
    page = start - start % PAGE_BYTES
    if page < start:
        file.pwritev([file.pread(start - page, page)], page)

    def read_and_write(size: int, position: int) -> bytes:
        data = file.pread(size, start + position)
        file.pwritev([data], start + position)
        return data

    first_offset = segment.base_offset
    end_offset = first_offset + LARGEST_RELATIVE_OFFSET + 1
    for span in scan(read_and_write, size_bytes - start, first_offset=first_offset, end_offset=end_offset):
        if isinstance(span, Damage) and not _is_known(segment, start + span.position, start + span.end):
            raise UnreadableBytes(f"{segment.log.path}: {span.reason} at {start + span.position}")


def _is_known(segment: Segment, start: int, end: int) -> bool:
    """Whether this damage was known when the segment was opened."""
    return any(first <= start and end <= last for first, last in segment.holes)


def sound(data: bytes, end_offset: int) -> bytes:
    """The good batches at the start of a slice of a stopped partition: the cache may have dropped bytes that the disk never had."""
    good_bytes = 0
    for span in scan(lambda size, at: data[at : at + size], len(data), first_offset=0, end_offset=end_offset):
        if isinstance(span, Damage):
            break
        good_bytes = span.end
    return data[:good_bytes]


def make_dirty(file: File, start: int, end: int) -> None:
    """Write the bytes again, unchanged, so that the next sync covers them even if the last one failed.

    For a start after a killed process: one of its syncs may have failed, and the pages that it left count as clean.
    """
    position = start - start % PAGE_BYTES
    while start < end and position < end:
        data = file.pread(min(CHUNK_BYTES, end - position), position)
        file.pwritev([data], position)
        position += len(data)


def write_small_files(storage: Storage, paths: Iterable[str]) -> None:
    """Rewrite small files of a new folder that are not synced yet."""
    for path in paths:
        storage.write_atomically(path, storage.read_all(path))
