"""How the decoded columns of a table grow: the table's schema and that of new rows are merged, or an error says why not.

Fields are matched by name. New ones come last, those that rows lack stay and are null there, and numbers are widened: whole numbers
to longer ones, float to double, decimals to more digits. Nothing else changes its type.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from horolog.pipeline.tables.table import COLUMNS, TableError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

NONE = pa.schema([])
_MOST_DIGITS = 38
_SHOWN = 80

Leaf = Callable[[pa.DataType], pa.DataType | None]


def merged(has: pa.Schema, brings: pa.Schema) -> pa.Schema:
    """The columns of a table that takes these, too; TableError if a type would have to become another."""
    return pa.schema(_merged_fields("", list(has), list(brings)))


def _merged_fields(path: str, has: list[Any], brings: list[Any]) -> list[Any]:
    new = {one.name: one for one in brings}
    known = {one.name.lower(): one.name for one in has}
    for name in new:
        if known.setdefault(name.lower(), name) != name:
            raise TableError(
                f"the columns {path}{known[name.lower()]} and {path}{name} differ only in case, which tables do not distinguish"
            )
    kept = [
        one.with_type(_merged(f"{path}{one.name}", one.type, new.pop(one.name).type)) if one.name in new else one
        for one in has
    ]
    return kept + [one.with_type(_new(f"{path}{one.name}", one.type)) for one in brings if one.name in new]


def _new(path: str, kind: pa.DataType) -> pa.DataType:
    """A type as it is, with a look at the names inside."""
    if pa.types.is_struct(kind):
        return pa.struct(_merged_fields(f"{path}.", [], list(kind)))
    if pa.types.is_list(kind):
        return pa.list_(_new(f"{path}.element", kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _new(f"{path}.value", kind.item_type))
    return kind


def _merged(path: str, has: pa.DataType, brings: pa.DataType) -> pa.DataType:
    types = pa.types
    if has == brings:
        return has
    if types.is_struct(has) and types.is_struct(brings):
        return pa.struct(_merged_fields(f"{path}.", list(has), list(brings)))
    if types.is_list(has) and types.is_list(brings):
        return pa.list_(_merged(f"{path}.element", has.value_type, brings.value_type))
    if types.is_map(has) and types.is_map(brings) and has.key_type == brings.key_type:
        return pa.map_(has.key_type, _merged(f"{path}.value", has.item_type, brings.item_type))
    for is_one in (types.is_integer, types.is_floating):
        if is_one(has) and is_one(brings):
            return max(has, brings, key=lambda kind: kind.bit_width)
    if types.is_decimal(has) and types.is_decimal(brings) and has.scale == brings.scale:
        return pa.decimal128(max(has.precision, brings.precision), has.scale)
    raise TableError(
        f"the column {path} is {shown(has)} in the table, and {shown(brings)} in the schema: only wider numbers are"
        " accepted, so nothing was written; use the previous schema or another table"
    )


def grown_map(path: str, has: Iterable[Any], now: pa.Schema | pa.DataType) -> str | None:
    """Where the values of a map have other fields than before; None if they have so nowhere. Both have all that was there."""
    for one in has:
        kind, new, at = one.type, now.field(one.name).type, f"{path}{one.name}"
        while pa.types.is_list(kind):
            kind, new, at = kind.value_type, new.value_type, f"{at}.element"
        if pa.types.is_map(kind) and kind.item_type != new.item_type:
            return at
        found = grown_map(f"{at}.", list(kind), new) if pa.types.is_struct(kind) else None
        if found is not None:
            return found
    return None


def shown(kind: pa.DataType) -> str:
    """A type as Spark's SQL has it."""
    from pyspark.sql.pandas.types import from_arrow_type

    text: str = from_arrow_type(kind).simpleString()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def widest(columns: pa.Schema) -> pa.Schema:
    """Numbers in the widest type of their kind, for tables whose readers cannot widen types: then none has to be widened."""
    return _rebuilt(columns, _widest)


def _widest(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    return pa.decimal128(_MOST_DIGITS, kind.scale) if pa.types.is_decimal(kind) else kind


def storable(columns: pa.Schema) -> pa.Schema:
    """Without what has no content, and no type in files: nulls of Avro, messages without fields."""
    return _rebuilt(columns, lambda kind: None if pa.types.is_null(kind) else kind)


def plain(columns: pa.Schema) -> pa.Schema:
    """As rows have them: tables' own libraries may have other types of Arrow for the same, and remarks on fields."""
    return _rebuilt(columns, _plain)


def _plain(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    return kind


def _rebuilt(columns: pa.Schema, leaf: Leaf) -> pa.Schema:
    return pa.schema(_rebuilt_fields(list(columns), leaf))


def _rebuilt_fields(fields: list[Any], leaf: Leaf) -> list[Any]:
    """Without those whose type has become None."""
    made = ((one.name, _rebuilt_type(one.type, leaf)) for one in fields)
    return [pa.field(name, kind) for name, kind in made if kind is not None]


def _rebuilt_type(kind: pa.DataType, leaf: Leaf) -> pa.DataType | None:
    types = pa.types
    if types.is_struct(kind):
        fields = _rebuilt_fields(list(kind), leaf)
        return pa.struct(fields) if fields else None
    if types.is_list(kind) or types.is_large_list(kind):
        item = _rebuilt_type(kind.value_type, leaf)
        return None if item is None else pa.list_(item)
    if types.is_map(kind):
        key, item = leaf(kind.key_type), _rebuilt_type(kind.item_type, leaf)
        return None if key is None or item is None else pa.map_(key, item)
    return leaf(kind)


# -- of rows


def beyond(columns: pa.Schema, names: tuple[str, ...]) -> pa.Schema:
    """Those that are decoded: neither the record's own nor these, which folders have in their names."""
    return plain(pa.schema([one for one in columns if one.name not in {*COLUMNS, *names}]))


def lacking(wanted: pa.Schema, has: Iterable[str]) -> pa.Schema:
    """The record's own columns that a table of an earlier release lacks."""
    names = set(has)
    return pa.schema([one for one in wanted if one.name in COLUMNS and one.name not in names])


def decoded_in(rows: "DataFrame", names: tuple[str, ...]) -> pa.Schema:
    """The decoded columns of rows, in types that files can have."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return storable(beyond(to_arrow_schema(rows.schema, timezone="UTC"), names))


def fitted(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    """The rows with these columns; those that they lack are null."""
    there = set(rows.column_names)
    return pa.table(
        [rows[one.name].cast(one.type) if one.name in there else pa.nulls(rows.num_rows, one.type) for one in columns],
        schema=columns,
    )


def as_spark(columns: pa.Schema) -> "StructType":
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(columns)


def as_json(columns: pa.Schema) -> list[Any]:
    """As Spark writes the fields of a schema."""
    found: list[Any] = as_spark(columns).jsonValue()["fields"]
    return found


def of_json(fields: list[Any]) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    return plain(to_arrow_schema(StructType.fromJson({"type": "struct", "fields": fields}), timezone="UTC"))
