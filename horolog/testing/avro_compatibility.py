"""Whether a reader with one Avro schema can read what was written by another: the resolution rules of Avro's specification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

PROMOTIONS = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}
"""What a reader may have instead of the writer's type."""
NAMED = ("record", "error", "enum", "fixed")


class AvroTypes:
    """A parsed schema with its named types, by their full names."""

    def __init__(self, schema: Any, referenced: tuple[Any, ...] = ()) -> None:
        self.named: dict[str, Any] = {}
        for one in (*referenced, schema):
            self._collect(one, "")
        self.root = self.of(schema, "")

    def _collect(self, schema: Any, space: str) -> None:
        if isinstance(schema, list):
            for branch in schema:
                self._collect(branch, space)
        if not isinstance(schema, dict):
            return
        if schema.get("type") in NAMED:
            full = full_name(schema, space)
            self.named[full] = schema
            space = full.rpartition(".")[0]
        for part in (schema.get("type"), schema.get("items"), schema.get("values")):
            self._collect(part, space)
        for field in schema.get("fields") or ():
            self._collect(field.get("type"), space)

    def of(self, schema: Any, space: str) -> tuple[Any, str]:
        """A type as an object or a list, and the namespace that holds in it."""
        while isinstance(schema, dict) and isinstance(schema.get("type"), (dict, list)):
            schema = schema["type"]
        if isinstance(schema, str):
            full = f"{space}.{schema}" if space and "." not in schema and f"{space}.{schema}" in self.named else schema
            if full not in self.named:
                return {"type": schema}, space
            return self.named[full], full.rpartition(".")[0]
        if isinstance(schema, dict) and schema.get("type") in NAMED:
            return schema, full_name(schema, space).rpartition(".")[0]
        return schema, space


def full_name(schema: Mapping[str, Any], space: str) -> str:
    name = str(schema["name"])
    own = schema.get("namespace", space)
    return name if "." in name or not own else f"{own}.{name}"


def incompatibilities(reader: AvroTypes, writer: AvroTypes) -> list[str]:
    """Why the reader cannot read the writer's data; none if it can."""
    return list(_Comparison(reader, writer).faults(reader.root, writer.root, ""))


class _Comparison:
    def __init__(self, reader: AvroTypes, writer: AvroTypes) -> None:
        self._reader = reader
        self._writer = writer
        self._compared: set[tuple[str, str]] = set()
        """Records that are compared already: they may contain themselves."""

    def faults(self, reader: tuple[Any, str], writer: tuple[Any, str], where: str) -> Iterator[str]:
        (read, read_space), (written, written_space) = reader, writer
        if isinstance(written, list):
            for branch in written:
                yield from self.faults(reader, self._writer.of(branch, written_space), where)
        elif isinstance(read, list):
            branches = [self._reader.of(branch, read_space) for branch in read]
            if not any(self._fits(branch, writer) for branch in branches):
                yield f"{where or '/'}: the reader's union has no branch for {written['type']}"
        elif read["type"] != written["type"]:
            if read["type"] not in PROMOTIONS.get(written["type"], ()):
                yield f"{where or '/'}: the reader expects {read['type']}, and the writer has {written['type']}"
        else:
            yield from self._within(reader, writer, where)

    def _fits(self, reader: tuple[Any, str], writer: tuple[Any, str]) -> bool:
        before = set(self._compared)
        fits = not list(self.faults(reader, writer, ""))
        if not fits:
            self._compared = before
        return fits

    def _within(self, reader: tuple[Any, str], writer: tuple[Any, str], where: str) -> Iterator[str]:
        """Faults inside two types of one kind."""
        (read, read_space), (written, written_space) = reader, writer
        kind = read["type"]
        if kind in NAMED and not _same_name(read, written):
            yield f"{where or '/'}: the reader expects {read['name']}, and the writer has {written['name']}"
        elif kind in ("record", "error"):
            yield from self._records(reader, writer, where)
        elif kind == "enum" and "default" not in read:
            missing = [symbol for symbol in written["symbols"] if symbol not in read["symbols"]]
            if missing:
                yield f"{where or '/'}: the reader's enum {read['name']} has no symbol {missing[0]}"
        elif kind == "fixed" and read["size"] != written["size"]:
            yield f"{where or '/'}: the reader's fixed {read['name']} has another size"
        elif kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            below = self._reader.of(read[part], read_space), self._writer.of(written[part], written_space)
            yield from self.faults(*below, f"{where}/{part}")

    def _records(self, reader: tuple[Any, str], writer: tuple[Any, str], where: str) -> Iterator[str]:
        (read, read_space), (written, written_space) = reader, writer
        pair = full_name(read, read_space), full_name(written, written_space)
        if pair in self._compared:
            return
        self._compared.add(pair)
        given = {field["name"]: field for field in written["fields"]}
        for field in read["fields"]:
            found = next((given[name] for name in (field["name"], *field.get("aliases", ())) if name in given), None)
            if found is not None:
                types = self._reader.of(field["type"], read_space), self._writer.of(found["type"], written_space)
                yield from self.faults(*types, f"{where}/{field['name']}")
            elif "default" not in field:
                yield f"{where}/{field['name']}: the writer has no such field, and the reader has no default for it"


def _same_name(read: Mapping[str, Any], written: Mapping[str, Any]) -> bool:
    """By the names without namespaces, as the specification has it, or by an alias of the reader's."""
    names = {str(name).rpartition(".")[2] for name in (read["name"], *read.get("aliases", ()))}
    return str(written["name"]).rpartition(".")[2] in names
