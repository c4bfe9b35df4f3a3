"""Rows of a data frame as records to be written: which columns count, and what they may hold."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
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

from pipeline.columns import MICROSECONDS
from pipeline.positions import OptionError
from protocol.records.record import Header

_TEXT_OR_BYTES = (StringType, BinaryType)
_COLUMNS: dict[str, tuple[tuple[type[DataType], ...], str]] = {
    "key": (_TEXT_OR_BYTES, "string or binary"),
    "value": (_TEXT_OR_BYTES, "string or binary"),
    "topic": ((StringType,), "string"),
    "partition": ((IntegerType, ShortType, ByteType), "int"),
    "timestamp": ((TimestampType,), "timestamp"),
}


class Row(NamedTuple):
    """One record to be written."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    timestamp_ms: int | None  # None: now
    partition: int | None  # None: by the key


def check_columns(schema: StructType, topic: str | None) -> None:
    """Whether the columns can be written; as in Spark's own connector `value` must be there, and other columns are ignored."""
    types = {field.name: field.dataType for field in schema.fields}
    if "value" not in types:
        raise OptionError(f"a column `value` is needed to write; there are {', '.join(types)}")
    if topic is None and "topic" not in types:
        raise OptionError("the option `topic` or a column `topic` says where to write to")
    for name, (kinds, said) in _COLUMNS.items():
        if name in types and not isinstance(types[name], kinds):
            raise OptionError(f"the column `{name}` is {types[name].simpleString()}; it has to be {said}")
    if "headers" in types and not _are_headers(types["headers"]):
        raise OptionError(
            f"the column `headers` is {types['headers'].simpleString()};"
            " it has to be array<struct<key:string,value:binary>>"
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


def rows_of(batch: pa.RecordBatch, topic: str | None) -> Iterator[Row]:
    """The rows of an Arrow batch; `topic` beats the column."""
    count = batch.num_rows
    nothing = [None] * count
    columns = {name: batch.column(name) for name in batch.schema.names}
    topics = [topic] * count if topic is not None else _values(columns, "topic", nothing)
    if None in topics:
        raise OptionError("a row has no topic: the column `topic` is null and there is no option `topic`")
    rows = zip(
        topics,
        _bytes(columns, "key", nothing),
        _bytes(columns, "value", nothing),
        _headers(columns, count),
        _times(columns, nothing),
        _values(columns, "partition", nothing),
        strict=True,
    )
    return (Row(*row) for row in rows)


def _values(columns: dict[str, Any], name: str, nothing: list[None]) -> list[Any]:
    return columns[name].to_pylist() if name in columns else nothing


def _bytes(columns: dict[str, Any], name: str, nothing: list[None]) -> list[Any]:
    if name not in columns:
        return nothing
    column = columns[name]
    return (column if pa.types.is_binary(column.type) else column.cast(pa.binary())).to_pylist()


def _times(columns: dict[str, Any], nothing: list[None]) -> list[Any]:
    if "timestamp" not in columns:
        return nothing
    micros = columns["timestamp"].cast(pa.timestamp("us", tz="UTC")).view(pa.int64()).to_pylist()
    return [None if one is None else one // MICROSECONDS for one in micros]


def _headers(columns: dict[str, Any], count: int) -> list[tuple[Header, ...]]:
    if "headers" not in columns:
        return [()] * count
    return [
        tuple((_name(header["key"]), header["value"]) for header in headers or ())
        for headers in columns["headers"].to_pylist()
    ]


def _name(name: str | None) -> bytes:
    if name is None:
        raise OptionError("a header has no key")
    return name.encode()
