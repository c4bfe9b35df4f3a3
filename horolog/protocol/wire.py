"""The language in which messages are declared: one class per struct, one line per field, for all versions at once.

    class Endpoint(Struct):
        host: str = field(string)
        rack: str | None = field(string, "3+", nullable="3+")

    class ExampleRequest(Message, versions="0-5", flexible="4+"):
        endpoints: list[Endpoint] = field(array(Endpoint))
        timeout_ms: int = field(int32, "1-3", default=1000, ignorable=True)
        label: str = field(string, "4+", tag=0)

A field's versions are those in which it is on the wire. In the others a decoder leaves the default, and an encoder
refuses any other value, unless the field is ignorable. From the flexible versions on, lengths are varints and every
struct ends in tagged fields; a field with a tag is written only when it differs from its default.

Defaults are those of Kafka's schemas (zero, false, empty) with two exceptions: strings and bytes that are nullable in all
versions are None unless declared otherwise, and a tagged struct is None when it was not sent.

The classes have slots and a keyword constructor, compare by value, and print what differs from the defaults.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Generic, TypeVar, cast, dataclass_transform, overload

from horolog.protocol.primitives import Buffer, Records
from horolog.protocol.source_writer import define

T = TypeVar("T")
S = TypeVar("S", bound="Struct")

NO_UUID: Final = bytes(16)
NO_THROTTLING_MS: Final = 0
"""The `throttle_time_ms` of an answer that is made as a tuple."""
SHOWN_BYTES: Final = 24  # of a bytes value, in a repr


class _Unset:
    """Stands for "no default was declared", and in generated constructors for "make an empty one"."""

    def __repr__(self) -> str:
        return "unset"


UNSET: Final = _Unset()


class Versions:
    """A closed range of versions; empty when `first` is above `last`."""

    __slots__ = ("first", "last")

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Versions) and (self.first, self.last) == (other.first, other.last)

    def __hash__(self) -> int:
        return hash((self.first, self.last))

    def __repr__(self) -> str:
        return f"Versions({self.first}, {self.last})"


NEWEST: Final = 32767
ALL: Final = Versions(0, NEWEST)
NONE: Final = Versions(0, -1)


def versions_of(text: str) -> Versions:
    """'3' is one version, '3-5' a closed range, '3+' that and everything newer, 'none' nothing."""
    if text == "none":
        return NONE
    if text.endswith("+"):
        return ALL if text == "0+" else Versions(int(text[:-1]), NEWEST)
    first, _, last = text.partition("-")
    return Versions(int(first), int(last or first))


class WireType(Generic[T]):
    """A primitive: `code` is its letter in a struct format when its size is fixed, else empty."""

    __slots__ = ("code", "name", "size", "zero")

    def __init__(self, name: str, code: str, size: int, zero: T) -> None:
        self.name = name
        self.code = code
        self.size = size
        self.zero = zero

    def __repr__(self) -> str:
        return self.name


class ArrayType(WireType[list[T]]):
    __slots__ = ("element",)

    def __init__(self, element: "WireType[T]") -> None:
        super().__init__(f"[]{element.name}", "", 0, [])
        self.element = element


class StructType(WireType[S]):
    __slots__ = ("struct",)

    def __init__(self, struct: type[S]) -> None:
        super().__init__(struct.__name__, "", 0, cast("S", UNSET))
        self.struct = struct


boolean: Final = WireType("bool", "?", 1, False)
int8: Final = WireType("int8", "b", 1, 0)
int16: Final = WireType("int16", "h", 2, 0)
uint16: Final = WireType("uint16", "H", 2, 0)
int32: Final = WireType("int32", "i", 4, 0)
uint32: Final = WireType("uint32", "I", 4, 0)
int64: Final = WireType("int64", "q", 8, 0)
float64: Final = WireType("float64", "d", 8, 0.0)
uuid: Final = WireType("uuid", "16s", 16, NO_UUID)
string: Final = WireType("string", "", 0, "")
binary: Final = WireType("bytes", "", 0, b"")
record_set: Final[WireType[Records]] = WireType("records", "", 0, None)


@overload
def array(element: WireType[T]) -> ArrayType[T]: ...
@overload
def array(element: type[S]) -> ArrayType[S]: ...
def array(element: Any) -> ArrayType[Any]:
    return ArrayType(_wire_type(element))


def _wire_type(given: Any) -> WireType[Any]:
    return given if isinstance(given, WireType) else StructType(given)


class Field:
    """One declared field; `name` is set when the class around it is made."""

    __slots__ = ("default", "flexible", "ignorable", "may_be_encoded", "name", "nullable", "tag", "type", "versions")

    def __init__(
        self,
        type_: WireType[Any],
        versions: Versions,
        nullable: Versions,
        default: Any,
        tag: int | None,
        *,
        ignorable: bool,
        flexible: bool,
        may_be_encoded: bool,
    ) -> None:
        self.name = ""
        self.type = type_
        self.versions = versions
        self.nullable = nullable
        self.default = default
        self.tag = tag
        self.ignorable = ignorable
        self.flexible = flexible
        self.may_be_encoded = may_be_encoded

    @property
    def fresh(self) -> bool:
        """Whether the default is a new object for each owner: an empty list or an empty struct."""
        return self.default is UNSET

    def make_default(self) -> Any:
        if self.default is not UNSET:
            return self.default
        return self.type.struct() if isinstance(self.type, StructType) else []

    def __repr__(self) -> str:
        return f"Field({self.name}: {self.type}, {self.versions}, tag={self.tag})"


def _default_of(type_: WireType[Any], versions: Versions, nullable: Versions, tag: int | None) -> Any:
    if isinstance(type_, ArrayType):
        return UNSET
    if isinstance(type_, StructType):
        return UNSET if tag is None else None
    always_nullable = nullable.first <= versions.first and versions.last <= nullable.last
    return None if always_nullable and not type_.size else type_.zero


@overload
def field(
    type_: WireType[T],
    versions: str = ...,
    *,
    nullable: str = ...,
    default: T | None = ...,
    tag: int | None = ...,
    ignorable: bool = ...,
    flexible: bool = ...,
    may_be_encoded: bool = ...,
) -> T: ...
@overload
def field(
    type_: type[S],
    versions: str = ...,
    *,
    nullable: str = ...,
    default: S | None = ...,
    tag: int | None = ...,
    ignorable: bool = ...,
    flexible: bool = ...,
    may_be_encoded: bool = ...,
) -> S: ...
def field(
    type_: Any,
    versions: str = "0+",
    *,
    nullable: str = "none",
    default: Any = UNSET,
    tag: int | None = None,
    ignorable: bool = False,
    flexible: bool = True,
    may_be_encoded: bool = False,
) -> Any:
    """Declare a field. `flexible=False` keeps its length a fixed one in flexible versions (client_id in a header).

    `may_be_encoded`: encoders take `Encoded` in place of the list.
    """
    wire_type, present, null = _wire_type(type_), versions_of(versions), versions_of(nullable)
    if default is UNSET:
        default = _default_of(wire_type, present, null, tag)
    return Field(
        wire_type, present, null, default, tag, ignorable=ignorable, flexible=flexible, may_be_encoded=may_be_encoded
    )


@dataclass_transform(kw_only_default=True)
class StructMeta(type):
    """Turns the `field(...)` lines of a class body into slots and into the table `FIELDS`, after the fields of its base class."""

    def __new__(
        cls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        versions: str = "none",
        flexible: str = "none",
    ) -> "StructMeta":
        fields = {key: value for key, value in namespace.items() if isinstance(value, Field)}
        for key, declared in fields.items():
            declared.name = key
            del namespace[key]
        namespace["__slots__"] = tuple(fields)
        inherited = {key: value for base in bases for key, value in getattr(base, "FIELDS", {}).items()}
        if inherited:  # else the base's own constructor, once it has one, would build this class too
            namespace["__init__"] = Struct.__init__
        namespace["FIELDS"] = {**inherited, **fields}
        if versions != "none":
            namespace["VERSIONS"] = versions_of(versions)
            namespace["FLEXIBLE"] = versions_of(flexible)
        return super().__new__(cls, name, bases, namespace)

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_: str) -> None:
        super().__init__(name, bases, namespace)


class Struct(metaclass=StructMeta):
    """A run of fields inside a message."""

    FIELDS: ClassVar[Mapping[str, Field]]

    def __init__(self, **values: object) -> None:
        # Writing a constructor for each class at import would slow the start; the first use of a class pays for its own.
        cls = type(self)
        cls.__init__ = constructor = make_constructor(cls)  # type: ignore[method-assign]
        constructor(self, **values)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.FIELDS)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = [
            f"{name}={_short(getattr(self, name))}"
            for name, declared in self.FIELDS.items()
            if getattr(self, name) != declared.make_default()
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


class Message(Struct):
    """A struct that stands on its own: it knows its versions and from which on it is flexible."""

    VERSIONS: ClassVar[Versions] = NONE
    FLEXIBLE: ClassVar[Versions] = NONE


def _short(value: object) -> str:
    if isinstance(value, Buffer):
        dots = "..." if len(value) > SHOWN_BYTES else ""
        return f"{bytes(value[:SHOWN_BYTES])!r}{dots}"
    return repr(value)


def make_constructor(cls: type[Struct]) -> Any:
    """A constructor with one keyword argument per field, written out as straight code."""
    constants: dict[str, Any] = {"unset": UNSET}
    arguments, lines = [], []
    for name, declared in cls.FIELDS.items():
        if not declared.fresh:
            constants[f"default_{name}"] = declared.default
            arguments.append(f"{name}=default_{name}")
            lines.append(f"    self.{name} = {name}")
            continue
        fresh = "[]"
        if isinstance(declared.type, StructType):
            fresh = f"{declared.type.name}()"
            constants[declared.type.name] = declared.type.struct
        arguments.append(f"{name}=unset")
        lines.append(f"    self.{name} = {fresh} if {name} is unset else {name}")
    star = "*, " if arguments else ""
    source = "\n".join((f"def __init__(self, {star}{', '.join(arguments)}):", *(lines or ["    pass"]), ""))
    return define(source, "__init__", f"<constructor of {cls.__name__}>", constants)
