"""Rows of a data frame as records to be written: which columns count, and what they may hold."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    IntegerType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from horolog.pipeline.arrow.columns import MICROSECONDS
from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.base.varints import Array
from horolog.pipeline.writing.outgoing import Outgoing
from horolog.protocol.records.record import Header

_TEXT_OR_BYTES = (StringType, BinaryType)
_COLUMNS: dict[str, tuple[tuple[type[DataType], ...], str]] = {
    "key": (_TEXT_OR_BYTES, "string or binary"),
    "value": (_TEXT_OR_BYTES, "string or binary"),
    "topic": ((StringType,), "string"),
    "partition": ((IntegerType, ShortType, ByteType), "int"),
    "timestamp": ((TimestampType,), "timestamp"),
}


class Rows(NamedTuple):
    """The rows of one topic, and the partition of each: below 0 where none is named."""

    topic: str
    records: Outgoing
    partitions: Array


def check_columns(schema: StructType, topic: str | None) -> None:
    """Check that the columns can be written; as in Spark's own connector `value` is required, and other columns are ignored."""
    types = {field.name: field.dataType for field in schema.fields}
    if "value" not in types:
        raise OptionError(f"the column `value` is missing, which writing needs; the columns are {', '.join(types)}")
    if topic is None and "topic" not in types:
        raise OptionError("set the option `topic` or add a column `topic`, to choose where to write")
    for name, (kinds, said) in _COLUMNS.items():
        if name in types and not isinstance(types[name], kinds):
            raise OptionError(f"the column `{name}` is {types[name].simpleString()}; expected {said}")
    if "headers" in types and not _are_headers(types["headers"]):
        raise OptionError(
            f"the column `headers` is {types['headers'].simpleString()};"
            " expected array<struct<key:string,value:binary>>"
        )


def _are_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = kind.elementType.fields
    return (
        [one.name for one in fields] == ["key", "value"]
        and isinstance(fields[0].dataType, StringType)
        and isinstance(fields[1].dataType, BinaryType)
    )


def rows_of(batch: pa.RecordBatch, topic: str | None, now_ms: int) -> list[Rows]:
    """The rows of an Arrow batch by topic; the option `topic` overrides the column. Rows without a time get the present one."""
    columns = {name: batch.column(name) for name in batch.schema.names}
    count = batch.num_rows
    partitions = _partitions(columns["partition"]) if "partition" in columns else anywhere(count)
    key, value = (_bytes(columns, name, count) for name in ("key", "value"))
    records = Outgoing(key, value, _times(columns, count, now_ms), _headers(columns))
    if topic is not None or not count:
        return [Rows(topic or "", records, partitions)] if count else []
    topics = columns["topic"]
    if topics.null_count:
        raise OptionError("a row has no topic: the column `topic` is null and there is no option `topic`")
    found = []
    for name in topics.unique().to_pylist():
        places = np.flatnonzero(np.array(pc.equal(topics, name)))
        found.append(Rows(name, records.take(places), partitions[places]))
    return found


def anywhere(count: int) -> Array:
    """The partitions of this many rows, none of which names one."""
    return np.full(count, -1, np.int64)


def _partitions(column: pa.Array) -> Array:
    return np.array(column.cast(pa.int64()).fill_null(-1))


def _bytes(columns: dict[str, Any], name: str, count: int) -> pa.Array:
    return columns[name].cast(pa.binary()) if name in columns else pa.nulls(count, pa.binary())


def _times(columns: dict[str, Any], count: int, now_ms: int) -> Array:
    if "timestamp" not in columns:
        return np.full(count, now_ms, np.int64)
    micros = columns["timestamp"].cast(pa.timestamp("us", tz="UTC")).view(pa.int64())
    return np.array(micros.fill_null(now_ms * MICROSECONDS), np.int64) // MICROSECONDS


def _headers(columns: dict[str, Any]) -> list[tuple[Header, ...]] | None:
    if "headers" not in columns or not len(columns["headers"].flatten()):
        return None
    return [
        tuple((_name(header["key"]), header["value"]) for header in headers or ())
        for headers in columns["headers"].to_pylist()
    ]


def _name(name: str | None) -> bytes:
    if name is None:
        raise OptionError("a header has no key")
    return name.encode()
