"""Avro schemas as trees, and the Arrow type of each; two are compared if a record was written with another schema than the reader's."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from json import JSONDecodeError, loads
from typing import Any

import pyarrow as pa

from horolog.client.decoding.values import DecodingError
from horolog.pipeline.typed.ddl import LOCAL_TIMESTAMP, TIMESTAMP

NO_DEFAULT = object()
_MOST_DIGITS = 38
_PRIMITIVES = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.string(),
    ("long", "time-micros"): pa.string(),
    ("long", "timestamp-millis"): TIMESTAMP,
    ("long", "timestamp-micros"): TIMESTAMP,
    ("long", "timestamp-nanos"): TIMESTAMP,
    ("long", "local-timestamp-millis"): LOCAL_TIMESTAMP,
    ("long", "local-timestamp-micros"): LOCAL_TIMESTAMP,
    ("long", "local-timestamp-nanos"): LOCAL_TIMESTAMP,
    ("string", "uuid"): pa.string(),
    ("fixed16", "uuid"): pa.string(),
    ("fixed12", "duration"): pa.struct([(name, pa.int64()) for name in ("months", "days", "milliseconds")]),
}
"""By the type and the logical type; others are read as their type, as Avro requires."""


@dataclass(slots=True)
class Schema:
    """One type. A named one is one object wherever it is used."""

    type: str
    name: str = ""
    logical: str = ""
    fields: "list[Field]" = field(default_factory=list)
    item: "Schema | None" = None
    """Of an array or a map."""
    branches: "list[Schema]" = field(default_factory=list)
    symbols: tuple[str, ...] = ()
    default: str | None = None
    """The symbol for one that an enum does not have."""
    digits: tuple[int, int] = (0, 0)
    """Precision and scale of a decimal."""
    size: int = 0

    @property
    def others(self) -> "list[Schema]":
        """The branches of a union that are not null."""
        return [one for one in self.branches if one.type != "null"]

    @property
    def lone(self) -> "Schema":
        """The only type besides null; a union of several is itself."""
        return self.others[0] if self.type == "union" and len(self.others) == 1 else self

    @property
    def takes_null(self) -> bool:
        return self.type == "null" or any(one.type == "null" for one in self.branches)


@dataclass(slots=True)
class Field:
    name: str
    schema: Schema
    aliases: tuple[str, ...] = ()
    default: Any = NO_DEFAULT


def parse(text: str, references: Mapping[str, str] | None = None) -> Schema:
    """The tree of a schema that the decoder has taken already. Raises DecodingError."""
    building = _Building()
    for other in (references or {}).values():
        building.build(_loaded(other), "")
    return building.build(_loaded(text), "")


def _loaded(text: str) -> Any:
    try:
        return loads(text)
    except JSONDecodeError:
        return text.strip()


class _Building:
    def __init__(self) -> None:
        self._named: dict[str, Schema] = {}

    def build(self, given: Any, space: str) -> Schema:
        if isinstance(given, list):
            return Schema("union", branches=[self.build(one, space) for one in given])
        if isinstance(given, str):
            full = _full(given, space)
            known = self._named.get(full) or self._named.get(given)
            return known or Schema(given)
        kind = given["type"]
        if isinstance(kind, (dict, list)):
            return self.build(kind, space)
        if kind in {"record", "error", "enum", "fixed"}:
            return self._of_name(given, kind, space)
        if kind in {"array", "map"}:
            return Schema(kind, item=self.build(given["items" if kind == "array" else "values"], space))
        if kind not in _PRIMITIVES:
            return self.build(kind, space)
        return _with_logical(Schema(kind), given)

    def _of_name(self, given: dict[str, Any], kind: str, space: str) -> Schema:
        own_space = given.get("namespace")
        full = _full(given["name"], own_space if isinstance(own_space, str) else space)
        made = self._named[full] = Schema("record" if kind == "error" else kind, name=full)
        if kind == "enum":
            made.symbols, made.default = tuple(given["symbols"]), given.get("default")
        elif kind == "fixed":
            made.size = given["size"]
            _with_logical(made, given)
        else:
            made.fields = [self._field(one, full.rpartition(".")[0]) for one in given["fields"]]
        return made

    def _field(self, given: dict[str, Any], space: str) -> Field:
        aliases = tuple(one for one in given.get("aliases", ()) if isinstance(one, str))
        return Field(given["name"], self.build(given["type"], space), aliases, given.get("default", NO_DEFAULT))


def _with_logical(made: Schema, given: Mapping[str, Any]) -> Schema:
    logical = given.get("logicalType")
    kind = f"fixed{made.size}" if made.type == "fixed" else made.type
    if logical == "decimal" and made.type in {"bytes", "fixed"}:
        precision, scale = given.get("precision", _MOST_DIGITS), given.get("scale", 0)
        if type(precision) is int and type(scale) is int and 0 <= scale <= precision:
            made.logical, made.digits = "decimal", (precision, scale)
    elif isinstance(logical, str) and (kind, logical) in _LOGICAL:
        made.logical = logical
    return made


def _full(name: str, space: str) -> str:
    return name if "." in name or not space or name in _PRIMITIVES else f"{space}.{name}"


def kind_of(schema: Schema, inside: tuple[str, ...] = ()) -> pa.DataType:
    """The Arrow type of a schema. Raises DecodingError for what Spark has no type for."""
    schema = schema.lone
    if schema.name in inside:
        raise DecodingError(f"the record {schema.name} is recursive, and Spark has no type for that")
    if schema.type == "record":
        if not schema.fields:
            raise DecodingError(f"the record {schema.name} has no field, and Spark has no type for that")
        deeper = (*inside, schema.name)
        return pa.struct([(one.name, kind_of(one.schema, deeper)) for one in schema.fields])
    if schema.item is not None:
        item = kind_of(schema.item, inside)
        return pa.list_(item) if schema.type == "array" else pa.map_(pa.string(), item)
    if schema.type == "union":
        return _of_union(schema, inside)
    if schema.logical == "decimal":
        precision, scale = schema.digits
        if precision > _MOST_DIGITS:
            raise DecodingError(f"a decimal has {precision} digits, and Spark supports at most {_MOST_DIGITS}")
        return pa.decimal128(precision, scale)
    if schema.logical:
        return _LOGICAL[f"fixed{schema.size}" if schema.type == "fixed" else schema.type, schema.logical]
    return {"enum": pa.string(), "fixed": pa.binary()}.get(schema.type) or _PRIMITIVES[schema.type]


def _of_union(schema: Schema, inside: tuple[str, ...]) -> pa.DataType:
    """As `from_avro` does: numbers of two sizes become the larger one, others a struct with a member for each branch."""
    joined = number_of_both(schema)
    if joined is not None:
        return _PRIMITIVES[joined]
    if not schema.others:
        return pa.null()
    return pa.struct([(f"member{n}", kind_of(one, inside)) for n, one in enumerate(schema.others)])


def number_of_both(schema: Schema) -> str | None:
    """`long` or `double` for a union of just two plain numbers of one sort."""
    kinds = {one.type for one in schema.others if not one.logical}
    if len(schema.others) != 2:
        return None
    return {("int", "long"): "long", ("double", "float"): "double"}.get(tuple(sorted(kinds)))  # type: ignore[arg-type]
