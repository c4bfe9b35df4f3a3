"""Writes, for one message and version, the straight-line code that decodes it.

Neighbouring fields of fixed size are read at once, together with the length or count that follows them: a two or four byte
integer, or the first byte of a varint, which is usually all of it. Before anything is made, what a peer claims is checked against the
bytes that are left, and its lists and tags against bounds for the whole message, `left` and `tags`. Any other read past the end shows
as an IndexError or struct.error, and leaves as DecodeError.

A decoder in steps is a generator: it yields now and then inside long lists, so that the thread can do other work meanwhile.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from struct import error as struct_error
from struct import unpack_from
from typing import Any

from horolog.protocol.errors import DecodeError
from horolog.protocol.primitives import (
    MAX_STRING_BYTES,
    MAX_TAGS,
    check_tag_count,
    check_tag_end,
    read_tag,
    refusal,
    rest_of_varint,
    skip_tags,
)
from horolog.protocol.source_writer import Sheet, define, layout
from horolog.protocol.wire import ArrayType, Field, Message, Struct, StructType, WireType, binary, record_set, string

# A frame below this size is copied first: slices of bytes are cheaper than those of a memoryview.
COPY_WHOLE_BELOW_BYTES = 4096
MAX_OBJECTS = 250_000  # structs and strings in the lists of one message: a hundred bytes of memory each
FIXED_PER_OBJECT = 8  # this many numbers in lists weigh as much as one of those
STEP = 256  # elements of a list between two yields: a power of two
CONSTANTS = {
    "DecodeError": DecodeError,
    "check_tag_count": check_tag_count,
    "check_tag_end": check_tag_end,
    "read_tag": read_tag,
    "refusal": refusal,
    "rest_of_varint": rest_of_varint,
    "skip_tags": skip_tags,
    "struct_error": struct_error,
    "unpack_from": unpack_from,
}


def write_decoder(cls: type[Message], version: int, *, flat: bool = False, in_steps: bool = False) -> Any:
    return _DecoderWriter(cls, version, flat=flat, in_steps=in_steps).write()


def has_records(cls: type[Struct], version: int) -> bool:
    return any(
        version in declared.versions and _holds_records(declared.type, version) for declared in cls.FIELDS.values()
    )


def _holds_records(wire_type: WireType[Any], version: int) -> bool:
    if isinstance(wire_type, ArrayType):
        return _holds_records(wire_type.element, version)
    if isinstance(wire_type, StructType):
        return has_records(wire_type.struct, version)
    return wire_type is record_set


def minimum_size(wire_type: WireType[Any], version: int, *, flexible: bool, nullable: bool = False) -> int:
    """The fewest bytes that a value of this type takes."""
    if wire_type.size:
        return wire_type.size
    if not isinstance(wire_type, StructType):
        return 1 if flexible else 2 if wire_type is string else 4
    if nullable:
        return 1
    present = [f for f in wire_type.struct.FIELDS.values() if version in f.versions and (f.tag is None or not flexible)]
    return flexible + sum(
        minimum_size(f.type, version, flexible=flexible and f.flexible, nullable=version in f.nullable) for f in present
    )


class _DecoderWriter:
    """Writes one decoder; `run` holds the fixed fields that wait to be read together as (where to, struct code, size).

    A flat decoder makes a tuple of a struct's fields instead of an object.
    """

    def __init__(self, cls: type[Message], version: int, *, flat: bool, in_steps: bool) -> None:
        self.cls = cls
        self.flat = flat
        self.in_steps = in_steps
        self.kind = "decoder in steps" if in_steps else "decoder"
        self.version = version
        self.flexible = version in cls.FLEXIBLE
        self.records = has_records(cls, version)
        self.sheet = Sheet(dict(CONSTANTS))
        self.run: list[tuple[str, str, int]] = []
        self.path: list[str] = []
        self.tag_readers: list[tuple[str, list[Field], list[str]]] = []

    def write(self) -> Any:
        label = f"{self.cls.__name__} v{self.version}"
        line = self.sheet.line
        with self.sheet.block(f"def decode(data, pos=0, left={MAX_OBJECTS}, tags={MAX_TAGS}):"):
            line("limit = len(data)")
            self._choose_buffer()
            if self.in_steps:
                line("yield")
            with self.sheet.block("try:"):
                self._struct(self.cls, "m0", 0)
                line("return m0, pos")
            self._errors(label)
        self.in_steps = False  # tags hold little
        for name, fields, path in self.tag_readers:  # grows while it is walked: tagged structs have tags of their own
            self.path = path
            self._tag_reader(name, fields)
        filename = f"<{'flat ' if self.flat else ''}{self.kind} of {label}>"
        return define(self.sheet.text(), "decode", filename, self.sheet.constants)

    def _choose_buffer(self) -> None:
        line = self.sheet.line
        if not self.records:
            with self.sheet.block("if type(data) is memoryview:"):
                line("data = data.tobytes()")
            return
        line("view = data if type(data) is memoryview else memoryview(data)")
        with self.sheet.block(f"if view is data and limit < {COPY_WHOLE_BELOW_BYTES}:"):
            line("data = view.tobytes()")

    def _errors(self, label: str) -> None:
        with self.sheet.block("except DecodeError as error:"):
            self.sheet.line(f"raise DecodeError(f'{label}: {{error}}') from None")
        with self.sheet.block("except (IndexError, struct_error):"):
            self.sheet.line(f"raise DecodeError(f'{label}: the bytes end too early, after {{limit}}') from None")
        with self.sheet.block("except UnicodeDecodeError as error:"):
            self.sheet.line(f"raise DecodeError(f'{label}: a string is not UTF-8: {{error}}') from None")

    # -- fixed runs

    def _read(self, target: str, code: str, size: int) -> None:
        self.run.append((target, code, size))

    def _flush(self) -> None:
        if not self.run:
            return
        targets = ", ".join(target for target, _, _ in self.run)
        codes = "".join(code for _, code, _ in self.run)
        if codes == "B":
            self.sheet.line(f"{targets} = data[pos]")
        else:
            reader = self.sheet.constant(f"read_{codes.replace('?', 'o')}", layout(codes).unpack_from)
            self.sheet.line(f"{targets}{',' if len(self.run) == 1 else ''} = {reader}(data, pos)")
        self.sheet.line(f"pos += {sum(size for _, _, size in self.run)}")
        self.run.clear()

    def _read_varint(self, target: str) -> None:
        self._read(target, "B", 1)
        self._flush()
        with self.sheet.block(f"if {target} > 127:"):
            self.sheet.line("second = data[pos]")
            with self.sheet.block("if second < 128:"):  # a length of a few hundred or thousand bytes
                self.sheet.line(f"{target} += second - 1 << 7")
                self.sheet.line("pos += 1")
            with self.sheet.block("else:"):
                self.sheet.line(f"{target}, pos = rest_of_varint(data, pos)")

    def _read_length(self, code: str, size: int, *, flexible: bool) -> None:
        """Read a length or count into `n`; in compact form it is one too high."""
        if flexible:
            self._read_varint("n")
        else:
            self._read("n", code, size)
            self._flush()

    # -- structs

    def _struct(self, struct: type[Struct], target: str, depth: int) -> None:
        if not self.flat:
            name = self.sheet.constant(struct.__name__, struct)
            new = self.sheet.constant(f"new_{name}", struct.__new__)
            self.sheet.line(f"{target} = {new}({name})")
        tagged, places = [], []
        for declared in struct.FIELDS.values():
            self.path.append(declared.name)
            place = self._place(target, declared)
            places.append(place)
            present = self.version in declared.versions
            if present and declared.tag is None:
                self._field(declared, place, depth)
            else:
                self._set_default(declared, place)
                if present:
                    tagged.append(declared)
            self.path.pop()
        if self.flexible:
            self._tags(tagged, target)
        self._flush()
        if self.flat:
            self.sheet.line(f"{target} = ({', '.join(places)},)")

    def _place(self, target: str, declared: Field) -> str:
        """Where the value of a field goes: into the object, or into a variable until the tuple is made."""
        return f"{target}_{declared.name}" if self.flat else f"{target}.{declared.name}"

    def _set_default(self, declared: Field, target: str) -> None:
        if declared.fresh:
            value = "[]"
            if isinstance(declared.type, StructType):
                value = self.sheet.constant(declared.type.name, declared.type.struct) + "()"
            self.sheet.line(f"{target} = {value}")
        else:
            self.sheet.line(f"{target} = {declared.default!r}")

    def _tags(self, tagged: list[Field], target: str) -> None:
        self._read("n", "B", 1)
        self._flush()
        with self.sheet.block("if n:"):
            if tagged:
                reader = f"read_tags_{len(self.tag_readers)}"
                self.tag_readers.append((reader, tagged, list(self.path)))
                places = ", ".join(self._place(target, declared) for declared in tagged)
                view = ", view" if self.records else ""
                self.sheet.line(f"{places}, pos, tags = {reader}({places}, data, pos, n, limit, left, tags{view})")
            else:
                self.sheet.line("pos, tags = skip_tags(data, pos, n, limit, tags)")

    def _tag_reader(self, name: str, tagged: list[Field]) -> None:
        """Write a function that takes the values of the tagged fields so far, and returns their values after the tags, the position, and
        how many tags are left. Its lists have bounds of their own: no schema has lists in the tags of a list's elements.
        """
        line = self.sheet.line
        view = ", view" if self.records else ""
        values = ", ".join(f"tagged_{declared.name}" for declared in tagged)
        with self.sheet.block(f"def {name}({values}, data, pos, count, limit, left, tags{view}):"):
            with self.sheet.block("if count > 127:"):
                line("count, pos = rest_of_varint(data, pos)")
            line("tags = check_tag_count(count, limit - pos, tags)")
            with self.sheet.block("for _ in range(count):"):
                line("number, pos, stop = read_tag(data, pos, limit)")
                keyword = "if"
                for declared in tagged:
                    self.path.append(declared.name)
                    with self.sheet.block(f"{keyword} number == {declared.tag}:"):
                        self._field(declared, f"tagged_{declared.name}", 0)
                        self._flush()
                        line(f"check_tag_end({self._name()}, pos, stop)")
                    self.path.pop()
                    keyword = "elif"
                with self.sheet.block("else:"):
                    line("pos = stop")
            line(f"return {values}, pos, tags")

    # -- fields

    def _name(self) -> str:
        return repr(".".join(self.path))

    def _field(self, declared: Field, target: str, depth: int) -> None:
        wire_type = declared.type
        nullable = self.version in declared.nullable
        flexible = self.flexible and declared.flexible
        store = target + " = {}"
        if wire_type.size:
            self._read(target, wire_type.code, wire_type.size)
        elif isinstance(wire_type, ArrayType):
            self._array(wire_type.element, target, depth, nullable=nullable, flexible=flexible)
        elif isinstance(wire_type, StructType):
            self._inner_struct(wire_type.struct, target, depth, nullable=nullable)
        else:
            self._bytes(wire_type, store, nullable=nullable, flexible=flexible)

    def _inner_struct(self, struct: type[Struct], target: str, depth: int, *, nullable: bool) -> None:
        inner = f"m{depth + 1}"
        if not nullable:
            self._flush()
            self._struct(struct, inner, depth + 1)
            self.sheet.line(f"{target} = {inner}")
            return
        self._read("n", "b", 1)  # a nullable struct is led by -1 for null or 1
        self._flush()
        with self.sheet.block("if n < 0:"):
            self.sheet.line(f"{target} = None")
        with self.sheet.block("else:"):
            self._struct(struct, inner, depth + 1)
            self.sheet.line(f"{target} = {inner}")

    @contextmanager
    def _unless_null(self, store: str, *, nullable: bool, flexible: bool) -> Iterator[None]:
        if not nullable:
            yield
            return
        with self.sheet.block("if n == 0:" if flexible else "if n < 0:"):
            self.sheet.line(store.format("None"))
        with self.sheet.block("else:"):
            yield

    def _bytes(self, wire_type: WireType[Any], store: str, *, nullable: bool, flexible: bool) -> None:
        """A string, bytes or records: a length and that many bytes."""
        self._read_length(*(("h", 2) if wire_type is string else ("i", 4)), flexible=flexible)
        line = self.sheet.line
        with self._unless_null(store, nullable=nullable, flexible=flexible):
            line("end = pos + n - 1" if flexible else "end = pos + n")
            too_long = f" or n > {MAX_STRING_BYTES + 1}" if flexible and wire_type is string else ""
            with self.sheet.block(f"if not pos <= end <= limit{too_long}:"):
                line(f"raise refusal({self._name()}, end - pos, limit - pos)")
            line(store.format(self._slice(wire_type)))
            line("pos = end")

    def _slice(self, wire_type: WireType[Any]) -> str:
        if wire_type is record_set:
            return "view[pos:end]"
        if wire_type is binary:
            return "bytes(data[pos:end])"
        return "str(data[pos:end], 'utf-8')" if self.records else "data[pos:end].decode()"

    def _array(self, element: WireType[Any], target: str, depth: int, *, nullable: bool, flexible: bool) -> None:
        self._read_length("i", 4, flexible=flexible)
        line = self.sheet.line
        with self._unless_null(target + " = {}", nullable=nullable, flexible=flexible):
            if flexible:
                line("n -= 1")
            size = max(1, minimum_size(element, self.version, flexible=flexible))
            weight = f"n // {FIXED_PER_OBJECT}" if element.size else "n"
            with self.sheet.block(f"if n < 0 or n * {size} > limit - pos or (left := left - {weight}) < 0:"):
                line(f"raise refusal({self._name()}, n, limit - pos, left)")
            if element.size:
                self._fixed_array(element, target)
                return
            items = f"items{depth}"
            line(f"{items} = {target} = []")
            with self.sheet.block(f"for at{depth} in range(n):" if self.in_steps else "for _ in range(n):"):
                if self.in_steps:
                    with self.sheet.block(f"if at{depth} & {STEP - 1} == {STEP - 1}:"):
                        line("yield")
                self._element(element, items, depth, flexible=flexible)

    def _fixed_array(self, element: WireType[Any], target: str) -> None:
        if element.code == "16s":
            self.sheet.line(f"{target} = [bytes(data[at:at + 16]) for at in range(pos, pos + n * 16, 16)]")
        else:
            self.sheet.line(f"{target} = list(unpack_from(f'>{{n}}{element.code}', data, pos))")
        self.sheet.line(f"pos += n * {element.size}")

    def _element(self, element: WireType[Any], items: str, depth: int, *, flexible: bool) -> None:
        if isinstance(element, StructType):
            inner = f"m{depth + 1}"
            self._struct(element.struct, inner, depth + 1)
            self.sheet.line(f"{items}.append({inner})")
        else:
            self._bytes(element, items + ".append({})", nullable=False, flexible=flexible)
