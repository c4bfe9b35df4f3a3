"""Converts values that were read with the writer's schema to the reader's schema: Avro's rules of resolution.

Fields are matched by name or alias, fields that the writer lacks get their default, int becomes long, float or double, text and
bytes become each other. Incompatible schemas are a DecodingError when they are compared, except in a union:
there the branch of the record decides.
"""

from typing import Any

from horolog.client.decoding.values import DecodingError, Instant
from horolog.pipeline.typed import fitting
from horolog.pipeline.typed.avro_schema import NO_DEFAULT, Field, Schema, kind_of, number_of_both
from horolog.pipeline.typed.fitting import Fit

_WIDER = {
    "int": {"int", "long", "float", "double"},
    "long": {"long", "float", "double"},
    "float": {"float", "double"},
    "string": {"string", "bytes"},
    "bytes": {"bytes", "string"},
}
_DEEPEST = 100
_NS_OF = {"timestamp-millis": 10**6, "timestamp-micros": 10**3, "timestamp-nanos": 1}


def resolved(writer: Schema, reader: Schema) -> Fit:
    """From a value that `AvroSchema(..., tagged=True)` has read to one that Arrow takes for `kind_of(reader)`."""
    return _Resolving().of(writer, reader)


class _Resolving:
    def __init__(self) -> None:
        self._depth = 0

    def of(self, writer: Schema, reader: Schema) -> Fit:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise DecodingError(f"the schema nests deeper than {_DEEPEST}")
        try:
            if writer.type == "union":
                return self._of_branches(writer, reader)
            return self._present(writer, reader)
        finally:
            self._depth -= 1

    def _of_branches(self, writer: Schema, reader: Schema) -> Fit:
        """The writer's branches, each resolved by itself."""
        by_branch = [self._if_it_comes(one, reader) for one in writer.branches]
        null = next((fit for one, fit in zip(writer.branches, by_branch, strict=True) if one.type == "null"), None)
        if len(writer.others) < 2:
            of_others = [fit for one, fit in zip(writer.branches, by_branch, strict=True) if one.type != "null"]
            other = of_others[0] if of_others else _never
            return lambda value: (null or _never)(value) if value is None else other(value)

        def fit(value: Any) -> Any:
            number, inside = value
            return by_branch[number](inside)

        return fit

    def _if_it_comes(self, writer: Schema, reader: Schema) -> Fit:
        """A branch that the reader lacks is a fault of the records that use it."""
        try:
            return self.of(writer, reader)
        except DecodingError as error:
            return _fails(str(error))

    def _present(self, writer: Schema, reader: Schema) -> Fit:
        """A writer without a choice."""
        if writer.type == "null":
            if not reader.takes_null:
                raise DecodingError("null, which the reader's schema does not have there")
            return _nothing
        if reader.type != "union":
            return self._same(writer, reader)
        joined = number_of_both(reader)
        if joined is not None:
            return self._same(writer, Schema(joined))
        place, branch = self._branch_for(writer, reader)
        fit = self._same(writer, branch)
        if len(reader.others) == 1:
            return fit
        return lambda value: {f"member{place}": fit(value)}

    def _branch_for(self, writer: Schema, reader: Schema) -> tuple[int, Schema]:
        """The first branch of the same type and name, else the first compatible one."""
        candidates = list(enumerate(reader.others))
        same = [(n, one) for n, one in candidates if (one.type, one.name, one.logical) == _look(writer)]
        for place, branch in [*same, *candidates]:
            try:
                self._same(writer, branch)
            except DecodingError:
                continue
            return place, branch
        raise DecodingError(f"{_shown(writer)} is not one of {', '.join(map(_shown, reader.others))}")

    def _same(self, writer: Schema, reader: Schema) -> Fit:
        """Neither is a union."""
        if writer.type == reader.type == "record":
            return self._record(writer, reader)
        if writer.type == reader.type and writer.item is not None and reader.item is not None:
            item = self.of(writer.item, reader.item)
            if writer.type == "array":
                return lambda value: [item(each) for each in value]
            return lambda value: [(key, item(each)) for key, each in value.items()]
        if writer.type == reader.type == "enum":
            return _enum(reader)
        if writer.type == reader.type == "fixed" and writer.size != reader.size:
            raise DecodingError(f"{writer.name} has {writer.size} bytes in one schema and {reader.size} in the other")
        return _scalar(writer, reader)

    def _record(self, writer: Schema, reader: Schema) -> Fit:
        there = {one.name: one for one in writer.fields}
        steps: list[tuple[str, str | None, Any]] = []
        for wanted in reader.fields:
            found = next((there[name] for name in (wanted.name, *wanted.aliases) if name in there), None)
            if found is None:
                steps.append((wanted.name, None, default_of(wanted)))
                continue
            try:
                steps.append((wanted.name, found.name, self.of(found.schema, wanted.schema)))
            except DecodingError as error:
                raise DecodingError(fitting.in_field(wanted.name, error)) from error

        def fit(value: Any) -> Any:
            made = {}
            for name, own, step in steps:
                if own is None:
                    made[name] = step
                    continue
                try:
                    made[name] = step(value[own])
                except DecodingError as error:
                    raise DecodingError(fitting.in_field(name, error)) from error
            return made

        return fit


def _look(schema: Schema) -> tuple[str, str, str]:
    return schema.type, schema.name, schema.logical


def _shown(schema: Schema) -> str:
    return schema.logical or schema.name or schema.type


def _nothing(_: Any) -> Any:
    return None


def _never(_: Any) -> Any:
    raise DecodingError("null, which the reader's schema does not have there")


def _fails(why: str) -> Fit:
    def fail(_: Any) -> Any:
        raise DecodingError(why)

    return fail


def default_of(field: Field) -> Any:
    """The default of a field that the writer lacks; in JSON bytes are characters with their numbers."""
    if field.default is NO_DEFAULT:
        raise DecodingError(
            f"field {field.name}: it is not in the schema that the record was written with, and has no default"
        )
    schema = field.schema
    if schema.type == "union":  # the default is of the first branch, or of any
        if field.default is None:
            return None
        if len(schema.others) > 1 and number_of_both(schema) is None:
            raise DecodingError(f"field {field.name}: a default of a union of several types is not supported")
    try:
        return _default(schema.lone, field.default)
    except (AttributeError, UnicodeEncodeError, TypeError) as error:
        raise DecodingError(f"field {field.name}: its default does not have its type") from error


def _default(schema: Schema, given: Any) -> Any:
    if schema.type == "record":
        return {
            one.name: _default(one.schema.lone, given[one.name]) if one.name in given else default_of(one)
            for one in schema.fields
        }
    if schema.item is not None:
        item = schema.item.lone
        if schema.type == "array":
            return [_default(item, each) for each in given]
        return [(key, _default(item, each)) for key, each in given.items()]
    if given is None:
        return None
    if schema.logical in _NS_OF:
        return given * _NS_OF[schema.logical] // 1000
    if schema.logical:
        raise DecodingError(f"a default of {schema.logical} is not supported")
    if schema.type in {"bytes", "fixed"}:
        return given.encode("latin-1")
    return fitting.fitter(kind_of(schema))(given)


def _enum(reader: Schema) -> Fit:
    known = set(reader.symbols)

    def fit(value: Any) -> Any:
        if value in known:
            return value
        if reader.default is not None:
            return reader.default
        raise DecodingError(f"{value!r} is not a symbol of {reader.name}")

    return fit


def _scalar(writer: Schema, reader: Schema) -> Fit:
    """Numbers, text, bytes and what they stand for."""
    same = writer.type == reader.type
    if writer.logical == reader.logical and (same or not writer.logical):
        if not same and reader.type not in _WIDER.get(writer.type, ()):
            raise DecodingError(f"{_shown(writer)} is no {_shown(reader)}")
        if writer.digits[1] != reader.digits[1]:
            raise DecodingError(f"a decimal has {writer.digits[1]} digits after the point, and {reader.digits[1]} here")
        return _of_bytes(writer, reader) or fitting.fitter(kind_of(reader))
    return _of_logical(writer, reader)


def _of_bytes(writer: Schema, reader: Schema) -> Fit | None:
    if (writer.type, reader.type) == ("string", "bytes"):
        return lambda value: value.encode()
    if (writer.type, reader.type) == ("bytes", "string"):
        return _utf8
    return None


def _utf8(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise DecodingError("expected text, found bytes that are not UTF-8") from error


def _of_logical(writer: Schema, reader: Schema) -> Fit:
    """Where one of the two, or each in its own way, says what the value stands for."""
    if writer.logical in _NS_OF and reader.logical in _NS_OF:
        return fitting.instant
    if writer.logical in _NS_OF and reader.type == "long" and not reader.logical:
        ns = _NS_OF[writer.logical]
        return lambda value: value.ns // ns
    if writer.type in {"int", "long"} and not writer.logical and reader.logical in _NS_OF:
        ns = _NS_OF[reader.logical]
        return lambda value: fitting.instant(Instant(value * ns))
    if "uuid" in {writer.logical, reader.logical} and writer.type == reader.type == "string":
        return fitting.fitter(kind_of(reader))
    raise DecodingError(f"{_shown(writer)} is no {_shown(reader)}")
