"""Items of a log file: every batch, every stretch of damage, and a summary; uses the scan of recovery."""

from collections.abc import Iterator
from dataclasses import dataclass

from horolog.broker.log.indexes import LARGEST_RELATIVE_OFFSET
from horolog.broker.log.integrity import Batch, Damage, scan
from horolog.broker.log.storage import File
from horolog.client.cli.dumping import records
from horolog.client.cli.dumping.items import Item
from horolog.protocol.errors import DecodeError

LARGEST_OFFSET = 2**63 - 1
ZEROS_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """Which parts of a log to show."""

    deep: bool = False
    with_data: bool = False
    decode: records.Decode | None = None
    max_batch_bytes: int | None = None
    """Batches larger than this are a problem."""
    max_bytes: int | None = None
    """Stop after the batch that ends at or after this many bytes."""


@dataclass(slots=True)
class Summary:
    """A log's figures, gathered during the scan."""

    batches: int = 0
    records: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    earliest: int | None = None
    latest: int | None = None
    damaged_bytes: int = 0

    def add(self, found: Batch) -> None:
        self.batches += 1
        if self.first_offset is None:
            self.first_offset = found.base_offset
        self.last_offset = found.last_offset
        if found.max_timestamp >= 0:
            self.earliest = found.max_timestamp if self.earliest is None else min(self.earliest, found.max_timestamp)
            self.latest = found.max_timestamp if self.latest is None else max(self.latest, found.max_timestamp)

    def item(self, *, deep: bool) -> Item:
        return {
            "type": "summary",
            "batches": self.batches,
            "records": self.records if deep else None,
            "first_offset": self.first_offset,
            "last_offset": self.last_offset,
            "smallest_batch_timestamp": self.earliest,
            "largest_timestamp": self.latest,
            "damaged_bytes": self.damaged_bytes,
        }


def dump_log(file: File, size_bytes: int, base_offset: int | None, asked: DumpOptions) -> Iterator[Item]:
    """The items of a log; `base_offset` is the one in the file's name, None for other names."""
    summary = Summary()
    first = base_offset or 0
    end_offset = LARGEST_OFFSET if base_offset is None else base_offset + LARGEST_RELATIVE_OFFSET + 1
    for span in scan(file.pread, size_bytes, first_offset=first, end_offset=end_offset):
        if isinstance(span, Batch):
            summary.add(span)
            yield from _batch_items(span, asked, summary)
        elif span.end == size_bytes and all_zeros(file, span.position, size_bytes):
            yield {"type": "padding", "position": span.position, "size_bytes": size_bytes - span.position}
        else:
            summary.damaged_bytes += span.end - span.position
            yield _damage(span, summary, size_bytes)
        if asked.max_bytes is not None and span.end >= asked.max_bytes:
            break
    yield summary.item(deep=asked.deep)


def _batch_items(found: Batch, asked: DumpOptions, summary: Summary) -> Iterator[Item]:
    yield records.header_item(found)
    if asked.max_batch_bytes is not None and found.size_bytes > asked.max_batch_bytes:
        problem = f"{found.size_bytes} bytes are more than the maximum of {asked.max_batch_bytes} for a batch"
        yield {"type": "problem", "position": found.position, "offset": found.base_offset, "problem": problem}
    if not asked.deep:
        return
    try:
        for item in records.record_items(found, asked.decode, with_data=asked.with_data):
            summary.records += 1
            yield item
    except DecodeError as error:
        problem = f"the checksum is right, but the records cannot be read: {error}"
        yield {"type": "problem", "position": found.position, "offset": found.base_offset, "problem": problem}


def _damage(span: Damage, summary: Summary, size_bytes: int) -> Item:
    return {
        "type": "damage",
        "position": span.position,
        "size_bytes": span.end - span.position,
        "after_offset": summary.last_offset,
        "place": "tail" if span.end == size_bytes else "inside",
        "problem": span.reason,
    }


def all_zeros(file: File, start: int, end: int) -> bool:
    """Whether a stretch of a file is all zeros, as preallocated room is."""
    while start < end:
        data = file.pread(min(ZEROS_BYTES, end - start), start)
        if any(data):
            return False
        start += len(data)
    return True
