"""Writes, for one message and version, the straight-line code that encodes it.

Neighbouring fields of fixed size are packed at once, together with the two or four byte length or count that follows them.
Everything small is joined into one part; large record buffers become parts of their own, uncopied.
"""

from collections.abc import Iterable, Iterator, Sequence
from struct import error as struct_error
from struct import pack
from typing import Any, NamedTuple

from horolog.protocol.errors import EncodeError
from horolog.protocol.primitives import (
    MAX_STRING_BYTES,
    ONE_BYTE_VARINTS,
    add_records,
    encode_unsigned_varint,
    records_size,
    tag_section,
)
from horolog.protocol.source_writer import Sheet, define, layout
from horolog.protocol.wire import NO_UUID, ArrayType, Field, Message, Struct, StructType, WireType, record_set, string

CONSTANTS: dict[str, Any] = {
    "EncodeError": EncodeError,
    "NO_UUID": NO_UUID,
    "add_records": add_records,
    "pack": pack,
    "records_size": records_size,
    "short": ONE_BYTE_VARINTS,
    "struct_error": struct_error,
    "tag_section": tag_section,
    "varint": encode_unsigned_varint,
}


class FailedElement(NamedTuple):
    """Stands for an encoded element that has an error."""

    error_code: int


class Encoded:
    """An array whose elements are encoded already, some at a time; it takes the place of the list.

    Those who look for errors in the list iterate over a `FailedElement` for each that was reported.
    """

    __slots__ = ("_count", "_failed", "parts", "size_bytes")

    def __init__(self) -> None:
        self._count = 0
        self._failed: list[FailedElement] = []
        self.parts: list[bytes] = []
        self.size_bytes = 0

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<Encoded: {self._count} elements of {self.size_bytes} bytes>"

    def __iter__(self) -> Iterator[FailedElement]:
        return iter(self._failed)

    def add(self, count: int, data: bytes, error_codes: Iterable[int] = ()) -> None:
        self._failed.extend(map(FailedElement, error_codes))
        self._count += count
        self.parts.append(data)
        self.size_bytes += len(data)


def write_encoder(cls: type[Message], version: int, *, flat: bool = False) -> Any:
    return _EncoderWriter(cls, version, flat=flat).write()


def write_element_encoder(cls: type[Message], version: int, path: Sequence[str], *, flat: bool) -> Any:
    return _EncoderWriter(cls, version, flat=flat, takes_encoded=True).write_elements(path)


class _EncoderWriter:
    """Writes one encoder; `run` holds the fixed fields that wait to be packed together as (expression, struct code).

    A flat encoder takes a tuple of a struct's fields instead of an object. `takes_encoded`: any array may be `Encoded`, else those that
    are declared so.
    """

    def __init__(self, cls: type[Message], version: int, *, flat: bool, takes_encoded: bool = False) -> None:
        self.cls = cls
        self.flat = flat
        self.takes_encoded = self.may_be_encoded = takes_encoded
        self.version = version
        self.flexible = version in cls.FLEXIBLE
        self.sheet = Sheet({**CONSTANTS, "Encoded": Encoded})
        self.run: list[tuple[str, str]] = []
        self.path: list[str] = []
        self.tag_writers: list[tuple[str, list[tuple[Field, str]], list[str]]] = []

    def write(self) -> Any:
        label = f"{self.cls.__name__} v{self.version}"
        line = self.sheet.line
        with self.sheet.block("def encode(m0, parts):"):
            with self.sheet.block("try:"):
                line("out = []")
                line("add = out.append")
                self._struct(self.cls, "m0", 0)
                self._flush()
                line("parts.append(b''.join(out))")
            self._errors(label)
        return self._defined(label)

    def write_elements(self, path: Sequence[str]) -> Any:
        """The encoder of an array's elements, or with an empty path of whole messages."""
        struct: type[Struct] = self.cls
        for name in path:
            declared = struct.FIELDS[name]
            assert isinstance(declared.type, ArrayType)
            assert isinstance(declared.type.element, StructType)
            struct = declared.type.element.struct
        label = ".".join((f"{self.cls.__name__} v{self.version}", *path))
        line = self.sheet.line
        self.path = list(path)
        with self.sheet.block("def encode(elements):"):
            with self.sheet.block("try:"):
                line("out = []")
                line("add = out.append")
                with self.sheet.block("for m0 in elements:"):
                    self._struct(struct, "m0", 0)
                    self._flush()
                    line("pass")  # a struct may have no field in this version
                line("return b''.join(out)")
            self._errors(label)
        return self._defined(label)

    def _errors(self, label: str) -> None:
        line = self.sheet.line
        with self.sheet.block("except EncodeError as error:"):
            line(f"raise EncodeError(f'{label}: {{error}}') from None")
        with self.sheet.block("except (struct_error, AttributeError, TypeError, ValueError) as error:"):
            line(f"raise EncodeError(f'{label}: {{error}}') from error")

    def _defined(self, label: str) -> Any:
        for name, fields, path in self.tag_writers:  # grows while it is walked: tagged structs have tags of their own
            self.path = path
            self._tag_writer(name, fields)
        filename = f"<{'flat ' if self.flat else ''}encoder of {label}>"
        return define(self.sheet.text(), "encode", filename, self.sheet.constants)

    # -- fixed runs

    def _pack(self, expression: str, code: str) -> None:
        self.run.append((expression, code))

    def _pack_zero(self) -> None:
        self.run.append(("", "x"))

    def _packed_run(self) -> str:
        """The expression for the bytes of the run, which is empty afterwards."""
        codes = "".join(code for _, code in self.run)
        values = ", ".join(expression for expression, _ in self.run if expression)
        self.run.clear()
        if not values:
            return repr(bytes(len(codes)))
        packer = self.sheet.constant(f"pack_{codes.replace('?', 'o')}", layout(codes).pack)
        return f"{packer}({values})"

    def _flush(self) -> None:
        if self.run:
            self.sheet.line(f"add({self._packed_run()})")

    def _add_varint(self, expression: str) -> None:
        """Add a length that usually fits one byte, which is then packed together with the run before it."""
        self.sheet.line(f"n = {expression}")
        if not self.run:
            self.sheet.line("add(short[n] if n < 128 else varint(n))")
            return
        run = list(self.run)
        self._pack("n", "B")
        together = self._packed_run()
        self.run = run
        self.sheet.line(f"add({together} if n < 128 else {self._packed_run()} + varint(n))")

    # -- structs

    def _struct(self, struct: type[Struct], source: str, depth: int) -> None:
        fields = [(each, self._place(index, each)) for index, each in enumerate(struct.FIELDS.values())]
        self._check_absent(
            [(f, place) for f, place in fields if self.version not in f.versions and not f.ignorable], source
        )
        present = [(f, place) for f, place in fields if self.version in f.versions]
        for declared, place in present:
            if declared.tag is None:
                self.path.append(declared.name)
                self._field(declared, source + place, depth)
                self.path.pop()
        if self.flexible:
            self._tags([(f, place) for f, place in present if f.tag is not None], source)

    def _place(self, index: int, declared: Field) -> str:
        """Where a field stands in its struct."""
        return f"[{index}]" if self.flat else f".{declared.name}"

    def _differs(self, declared: Field, expression: str) -> str:
        """The condition under which a field is not at its default."""
        default = declared.default
        if default is None:
            return f"{expression} is not None"
        if declared.fresh and not isinstance(declared.type, ArrayType):
            return f"{expression} != {self.sheet.constant(f'empty_{declared.name}', declared.make_default())}"
        if declared.fresh or not default:
            return expression
        return f"{expression} != {'NO_UUID' if default == NO_UUID else repr(default)}"

    def _check_absent(self, absent: list[tuple[Field, str]], source: str) -> None:
        if not absent:
            return
        conditions = " or ".join(self._differs(f, source + place) for f, place in absent)
        names = ", ".join(".".join((*self.path, f.name)) for f, _ in absent)
        with self.sheet.block(f"if {conditions}:"):
            self.sheet.line(f"raise EncodeError('this version has no field for ' + {names!r})")

    def _tags(self, tagged: list[tuple[Field, str]], source: str) -> None:
        if not tagged:
            self._pack_zero()
            return
        tagged.sort(key=lambda each: each[0].tag or 0)
        self._flush()
        writer = f"tags_{len(self.tag_writers)}"
        self.tag_writers.append((writer, tagged, list(self.path)))
        conditions = " or ".join(self._differs(f, source + place) for f, place in tagged)
        self.sheet.line(f"add({writer}({source}) if {conditions} else short[0])")

    def _tag_writer(self, name: str, tagged: list[tuple[Field, str]]) -> None:
        line = self.sheet.line
        with self.sheet.block(f"def {name}(m0):"):
            line("tags = []")
            for declared, place in tagged:
                self.path.append(declared.name)
                source = f"m0{place}"
                with self.sheet.block(f"if {self._differs(declared, source)}:"):
                    line("out = []")
                    line("add = out.append")
                    self._field(declared, source, 0)
                    self._flush()
                    line(f"tags.append(({declared.tag}, out))")
                self.path.pop()
            line("return tag_section(tags)")

    # -- fields

    def _field(self, declared: Field, source: str, depth: int) -> None:
        wire_type = declared.type
        nullable = self.version in declared.nullable
        flexible = self.flexible and declared.flexible
        if wire_type.size:
            self._pack(source, wire_type.code)
        elif isinstance(wire_type, ArrayType):
            self.may_be_encoded = self.takes_encoded or declared.may_be_encoded
            self._array(wire_type.element, source, depth, nullable=nullable, flexible=flexible)
        elif isinstance(wire_type, StructType):
            self._inner_struct(wire_type.struct, source, depth, nullable=nullable)
        elif wire_type is record_set:
            self._records(source, nullable=nullable, flexible=flexible)
        else:
            self._bytes(wire_type, source, nullable=nullable, flexible=flexible)

    def _inner_struct(self, struct: type[Struct], source: str, depth: int, *, nullable: bool) -> None:
        inner = f"m{depth + 1}"
        self.sheet.line(f"{inner} = {source}")
        if not nullable:
            self._struct(struct, inner, depth + 1)
            return
        self._flush()
        with self.sheet.block(f"if {inner} is None:"):
            self.sheet.line(r"add(b'\xff')")
        with self.sheet.block("else:"):
            self.sheet.line("add(short[1])")
            self._struct(struct, inner, depth + 1)
            self._flush()

    def _length(self, value: str, code: str, *, nullable: bool, flexible: bool) -> None:
        """The length or count of `value`, in the form of this version."""
        if flexible:
            self._add_varint(f"0 if {value} is None else len({value}) + 1" if nullable else f"len({value}) + 1")
            return
        self._pack(f"-1 if {value} is None else len({value})" if nullable else f"len({value})", code)
        self._flush()

    def _bytes(self, wire_type: WireType[Any], source: str, *, nullable: bool, flexible: bool) -> None:
        line = self.sheet.line
        if wire_type is not string:
            line(f"raw = {source}")
        elif nullable:
            line(f"raw = {source}")
            with self.sheet.block("if raw is not None:"):
                line("raw = raw.encode()")
        else:
            line(f"raw = {source}.encode()")
        self._length("raw", "h" if wire_type is string else "i", nullable=nullable, flexible=flexible)
        if flexible and wire_type is string:
            with self.sheet.block(f"if n > {MAX_STRING_BYTES + 1}:"):
                line(f"raise EncodeError({'.'.join(self.path)!r} + f' has {{n - 1}} bytes')")
        if nullable:
            with self.sheet.block("if raw:"):
                line("add(raw)")
        else:
            line("add(raw)")

    def _records(self, source: str, *, nullable: bool, flexible: bool) -> None:
        line = self.sheet.line
        line(f"raw = {source}")
        if not nullable:
            with self.sheet.block("if raw is None:"):
                line(f"raise EncodeError({'.'.join(self.path)!r} + ' may not be null')")
        line("size = records_size(raw)")
        if flexible:
            self._add_varint("0 if raw is None else size + 1")
        else:
            self._pack("-1 if raw is None else size", "i")
            self._flush()
        with self.sheet.block("if size:"):
            line("add_records(raw, size, out, parts)")

    def _array(self, element: WireType[Any], source: str, depth: int, *, nullable: bool, flexible: bool) -> None:
        line = self.sheet.line
        items = f"items{depth}"
        line(f"{items} = {source}")
        self._length(items, "i", nullable=nullable, flexible=flexible)
        if element.size:
            with self.sheet.block(f"if {items}:"):
                if element.code == "16s":
                    line(f"add(b''.join({items}))")
                else:
                    line(f"add(pack(f'>{{len({items})}}{element.code}', *{items}))")
            return
        if self.may_be_encoded:
            self._flush()
            with self.sheet.block(f"if {items}.__class__ is Encoded:"):
                line(f"out += {items}.parts")
                line(f"{items} = ()")
        with self.sheet.block(f"for m{depth + 1} in {items}{' or ()' if nullable else ''}:"):
            if isinstance(element, StructType):
                self._struct(element.struct, f"m{depth + 1}", depth + 1)
            else:
                self._bytes(element, f"m{depth + 1}", nullable=False, flexible=flexible)
            self._flush()
