"""Decodes record batches, fetched or from a segment, to Arrow record batches.

The entries of a chunk are checked one by one, and skipped if they hold nothing to show (transaction markers, entries
outside the wanted offsets, aborted transactions if only committed records are read). The others form *stretches* of
entries of one format in one buffer, the chunk itself or decompressed data, and a stretch is decoded column by column.

Entries that the columnar decoders find irregular are read again by the plain one, `protocol.records`, record by record: it
knows everything that is allowed, and names the fault of the rest.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from horolog.pipeline.arrow.columns import Columns, Source, plain_batch, to_batch
from horolog.pipeline.arrow.message_columns import SetPlace, decode_messages
from horolog.pipeline.arrow.record_columns import BatchPlace, decode_records
from horolog.pipeline.base.varints import Irregular
from horolog.protocol.errors import DecodeError
from horolog.protocol.primitives import Buffer
from horolog.protocol.records import batch as v2
from horolog.protocol.records import head, message_set
from horolog.protocol.records.aborted import AbortedProducers
from horolog.protocol.records.compression import codec_of, decompress
from horolog.protocol.records.entries import check_crc, records_of_entry
from horolog.protocol.records.head import Head, heads_in
from horolog.protocol.records.record import Record

log = logging.getLogger(__name__)

STRETCH_BYTES = 1 << 20
"""About this much decompressed data, and arrays of this many records, are decoded at a time: as much as a core's caches hold."""

MAX_OFFSET = 2**63 - 1


class OffsetBounds(NamedTuple):
    """The offsets that are wanted: from `start` up to but not including `end`."""

    start: int = 0
    end: int = MAX_OFFSET


@dataclass(slots=True)
class _Stretch:
    """Entries of one magic whose content lies in one buffer."""

    magic: int
    compressed: bool
    places: list[BatchPlace | SetPlace] = field(default_factory=list)
    parts: list[bytes] = field(default_factory=list)
    entries: list[Head] = field(default_factory=list)
    size_bytes: int = 0


def decode(
    data: Buffer,
    source: Source,
    bounds: OffsetBounds,
    *,
    aborted: AbortedProducers | None = None,
    where: str = "",
) -> Iterator[pa.RecordBatch]:
    """The wanted records of a chunk that begins with a whole entry; an incomplete last entry is ignored.

    Raises DecodeError, with `where` in its text, for an entry that does not match its checksum or cannot be read.
    """
    chunk = data if isinstance(data, bytes) else bytes(data)
    try:
        for stretch in _stretches(chunk, bounds, aborted):
            found = _decode_stretch(chunk, stretch, source, bounds)
            if found.num_rows:
                yield found
    except DecodeError as error:
        raise DecodeError(f"{source.topic}-{source.partition}{where}: {error}") from error


def _stretches(chunk: bytes, bounds: OffsetBounds, aborted: AbortedProducers | None) -> Iterator[_Stretch]:
    stretch = _Stretch(2, compressed=False)
    for entry in heads_in(chunk):
        if entry.last_offset < bounds.start and aborted is None:
            continue
        if entry.base_offset >= max(0, bounds.end):
            break
        if not check_crc(chunk, entry.position, entry.size_bytes, entry.magic):
            raise DecodeError(f"the checksum of the batch at offset {entry.last_offset} is wrong")
        if entry.magic == 2 and _is_hidden(chunk, entry, aborted):
            continue
        if entry.last_offset < bounds.start:
            continue
        compressed = entry.is_compressed
        if (entry.magic, compressed) != (stretch.magic, stretch.compressed) or stretch.size_bytes > STRETCH_BYTES:
            if stretch.places:
                yield stretch
            stretch = _Stretch(entry.magic, compressed=compressed)
        _add(stretch, chunk, entry)
    if stretch.places:
        yield stretch


def _is_hidden(chunk: bytes, entry: Head, aborted: AbortedProducers | None) -> bool:
    hidden = aborted is not None and aborted.hides(chunk, entry)
    return hidden or entry.is_control


def _add(stretch: _Stretch, chunk: bytes, entry: Head) -> None:
    """Add an entry's content to a stretch."""
    place = _batch_place(stretch, chunk, entry) if entry.magic == 2 else _set_place(stretch, chunk, entry)
    if place is not None:
        stretch.places.append(place)
        stretch.entries.append(entry)


def _batch_place(stretch: _Stretch, chunk: bytes, entry: Head) -> BatchPlace | None:
    header = v2.read_header(chunk, entry.position)
    if header.count == 0:
        return None
    start = entry.position + head.HEADER_BYTES
    end = entry.position + entry.size_bytes
    if stretch.compressed:
        records = decompress(header.codec, memoryview(chunk)[start:end])
        start, end = _take_in(stretch, records)
    else:
        stretch.size_bytes += end - start
    v2.check_count(header.count, end - start)
    times = header.base_timestamp, header.max_timestamp
    return BatchPlace(start, end, header.count, header.base_offset, *times, header.attributes)


def _set_place(stretch: _Stretch, chunk: bytes, entry: Head) -> SetPlace:
    if not stretch.compressed:
        stretch.size_bytes += entry.size_bytes
        return SetPlace(entry.position, entry.position + entry.size_bytes, None, 0, 0)
    wrapper = message_set.read_message(chunk, entry.position)
    if wrapper.value is None:
        raise DecodeError("a wrapper without a value")
    content = decompress(codec_of(wrapper.attributes, wrapper.magic), wrapper.value, magic=wrapper.magic)
    start, end = _take_in(stretch, content)
    return SetPlace(start, end, wrapper.offset, wrapper.attributes, wrapper.timestamp)


def _take_in(stretch: _Stretch, content: bytes) -> tuple[int, int]:
    start = stretch.size_bytes
    stretch.parts.append(content)
    stretch.size_bytes += len(content)
    return start, stretch.size_bytes


def _decode_stretch(chunk: bytes, stretch: _Stretch, source: Source, bounds: OffsetBounds) -> pa.RecordBatch:
    data = b"".join(stretch.parts) if stretch.compressed else chunk
    try:
        columns = _columns(data, stretch)
    except Irregular as reason:
        log.debug("%s-%s: read record by record: %s", source.topic, source.partition, reason)
        return plain_batch(list(_plain_records(chunk, stretch.entries, bounds)), source)
    found = to_batch(columns, source)
    wanted = (columns.offsets >= bounds.start) & (columns.offsets < bounds.end)
    return found if wanted.all() else found.filter(pa.array(wanted))


def _columns(data: bytes, stretch: _Stretch) -> Columns:
    if stretch.magic == 2:
        return decode_records(data, [place for place in stretch.places if isinstance(place, BatchPlace)])
    return decode_messages(data, [place for place in stretch.places if isinstance(place, SetPlace)], stretch.magic)


def _plain_records(chunk: bytes, entries: Iterable[Head], bounds: OffsetBounds) -> Iterator[Record]:
    for entry in entries:
        for record in records_of_entry(chunk, entry):
            if bounds.start <= record.offset < bounds.end:
                yield record


def decode_plain(
    data: Buffer, source: Source, bounds: OffsetBounds, *, aborted: AbortedProducers | None = None
) -> pa.RecordBatch:
    """The result of `decode`, record by record with only the protocol's own readers; tests compare the two."""
    chunk = bytes(data)
    entries = [one for stretch in _stretches(chunk, bounds, aborted) for one in stretch.entries]
    return plain_batch(list(_plain_records(chunk, entries, bounds)), source)
