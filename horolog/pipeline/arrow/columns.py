"""The columns in which Spark gets records, as Arrow arrays, and how they are built.

The columns are those of Spark's own Kafka connector: `key, value, topic, partition, offset, timestamp, timestampType` and, when asked
for, `headers` (null if a record has none). Spark's reads have `topic_id` after them, in the form that Kafka's tools show, which
distinguishes a topic from a later one of the same name (null if the broker is too old for ids). Keys and values are not copied one by one:
all places where they begin and end, in the order of the data, make one Arrow array over the raw data, and Arrow picks every fourth.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from horolog.pipeline.base.varints import Array
from horolog.protocol.records.record import Record
from horolog.protocol.records.timestamps import TimestampType

MICROSECONDS = 1000  # in a millisecond
_LARGEST_MS = (2**63 - 1) // MICROSECONDS
"""Later times become this one (in the year 294247): a single such record must not make a topic unreadable."""

TIMESTAMP = pa.timestamp("us", tz="UTC")
HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
_FIELDS = [
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", TIMESTAMP),
    pa.field("timestampType", pa.int32()),
]
SCHEMA = pa.schema(_FIELDS)
SCHEMA_WITH_HEADERS = pa.schema([*_FIELDS, pa.field("headers", HEADERS)])
TOPIC_ID = pa.field("topic_id", pa.string())


class Spans(NamedTuple):
    """Where keys and values lie in the data: starts and ends ascend from record to record."""

    key_start: Array
    key_end: Array
    key_is_null: Array
    value_start: Array
    value_end: Array
    value_is_null: Array


class HeaderSpans(NamedTuple):
    """Where headers lie in the data, record by record; `counts` has one entry per record."""

    counts: Array
    spans: Spans


@dataclass(slots=True)
class Columns:
    """Records as arrays. `timestamps` are in milliseconds."""

    data: Any
    offsets: Array
    timestamps: Array
    timestamp_types: Array
    spans: Spans
    headers: HeaderSpans | None = None


class Source(NamedTuple):
    """Which partition records are of, whether their headers are wanted, and whether they are read from files."""

    topic: str
    partition: int
    include_headers: bool = False
    from_files: bool = False
    topic_id: str | None = None
    include_topic_id: bool = False

    @property
    def schema(self) -> pa.Schema:
        return schema_of(include_headers=self.include_headers, include_topic_id=self.include_topic_id)


def schema_of(*, include_headers: bool, include_topic_id: bool) -> pa.Schema:
    own = SCHEMA_WITH_HEADERS if include_headers else SCHEMA
    return own.append(TOPIC_ID) if include_topic_id else own


def to_batch(columns: Columns, source: Source) -> pa.RecordBatch:
    keys, values = _picked(columns.data, columns.spans)
    arrays = [keys, values, *_rest(source, columns.offsets, columns.timestamps, columns.timestamp_types)]
    if source.include_headers:
        arrays.append(_headers(columns))
    return _batch(arrays, source, len(columns.offsets))


def _batch(arrays: list[pa.Array], source: Source, count: int) -> pa.RecordBatch:
    if source.include_topic_id:
        arrays.append(pa.repeat(pa.scalar(source.topic_id, pa.string()), count))
    return pa.RecordBatch.from_arrays(arrays, schema=source.schema)


def _rest(source: Source, offsets: Array, timestamps: Array, timestamp_types: Array) -> list[pa.Array]:
    count = len(offsets)
    micros = np.clip(timestamps, -_LARGEST_MS, _LARGEST_MS) * MICROSECONDS
    return [
        pa.repeat(pa.scalar(source.topic, pa.string()), count),
        pa.repeat(pa.scalar(source.partition, pa.int32()), count),
        pa.array(offsets, pa.int64()),
        pa.array(micros, pa.int64()).view(TIMESTAMP),
        pa.array(_as_answered(timestamp_types) if source.from_files else timestamp_types, pa.int32()),
    ]


def _as_answered(timestamp_types: Array) -> Array:
    """Format v0 has no type. A broker returns v2, which cannot express that: there such records have the producer's time."""
    types: Array = np.maximum(timestamp_types, TimestampType.CREATE_TIME)
    return types


def _picked(data: Any, spans: Spans, kind: pa.DataType | None = None) -> tuple[pa.Array, pa.Array]:
    """Keys and values from an array in which key, gap, value, gap follow each other through the data."""
    count = len(spans.key_start)
    borders: Array = np.empty((count, 4), np.int32)
    borders[:, 0] = spans.key_start
    borders[:, 1] = spans.key_end
    borders[:, 2] = spans.value_start
    borders[:, 3] = spans.value_end
    pieces = max(0, 4 * count - 1)
    everything = pa.Array.from_buffers(kind or pa.binary(), pieces, [None, pa.py_buffer(borders), pa.py_buffer(data)])
    places: Array = np.arange(0, 4 * count, 4, dtype=np.int32)
    return (
        everything.take(pa.array(places, mask=_or_none(spans.key_is_null))),
        everything.take(pa.array(places + 2, mask=_or_none(spans.value_is_null))),
    )


def _or_none(mask: Array) -> Array | None:
    return mask if mask.any() else None


def _headers(columns: Columns) -> pa.Array:
    headers = columns.headers
    if headers is None:
        return pa.nulls(len(columns.offsets), HEADERS)
    names, values = _picked(columns.data, headers.spans)
    borders: Array = np.zeros(len(headers.counts) + 1, np.int32)
    np.cumsum(headers.counts, out=borders[1:])
    entries = pa.StructArray.from_arrays([_text(names), values], fields=list(HEADERS.value_type))
    missing = pa.array(headers.counts == 0)
    return pa.ListArray.from_arrays(pa.array(borders), entries, type=HEADERS, mask=missing)


def _text(names: pa.Array) -> pa.Array:
    """Header names as text; invalid bytes become replacement characters, as in the Java reader."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([name.as_py().decode(errors="replace") for name in names], pa.string())


def plain_batch(records: Sequence[Record], source: Source) -> pa.RecordBatch:
    """The same from records one by one: what the plain decoder has read."""
    arrays = [
        pa.array([record.key for record in records], pa.binary()),
        pa.array([record.value for record in records], pa.binary()),
        *_rest(
            source,
            np.array([record.offset for record in records], np.int64),
            np.array([record.timestamp for record in records], np.int64),
            np.array([record.timestamp_type for record in records], np.int32),
        ),
    ]
    if source.include_headers:
        rows = [
            [{"key": key.decode(errors="replace"), "value": value} for key, value in record.headers] or None
            for record in records
        ]
        arrays.append(pa.array(rows, HEADERS))
    return _batch(arrays, source, len(records))
