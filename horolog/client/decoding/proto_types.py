"""Resolves messages and enums of one or more .proto files by their names, for the reader of bytes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from horolog.client.decoding import proto_known, proto_text
from horolog.client.decoding.values import DecodingError

MOST_FILES: Final = 500
LOOSE: Final = {"float": 0.0, "double": 0.0, "bool": False, "string": "", "bytes": b""}


@dataclass(slots=True)
class Field:
    number: int
    name: str
    kind: str
    """A scalar type, `enum`, `message` or `group`."""
    repeated: bool
    oneof: int
    """-1: of none."""
    fills: bool
    """Whether an absent field has its default, since the two look alike."""
    message: "Message | None" = None
    names: Mapping[int, str] = field(default_factory=dict)
    """Of the values of an enum."""
    required: bool = False

    @property
    def is_map(self) -> bool:
        return self.repeated and self.message is not None and self.message.is_entry

    def default(self) -> Any:
        if self.repeated:
            return {} if self.is_map else []
        if self.kind == "enum":
            return self.names.get(0, 0)
        return LOOSE.get(self.kind, 0)


@dataclass(slots=True)
class Message:
    name: str
    is_entry: bool = False
    fields: dict[int, Field] = field(default_factory=dict)
    nested: "list[Message]" = field(default_factory=list)
    """Those that were written inside, in their order; entries of maps are not."""


class Types:
    """The messages of one file and all its imports. Raises DecodingError."""

    def __init__(self, main: dict[str, Any], imported: Callable[[str], dict[str, Any] | None]) -> None:
        self.file = str(main.get("name") or "the schema")
        self.by_name: dict[str, Message] = {}
        self._enums: dict[str, dict[int, str]] = {}
        self._missing: list[str] = []
        self._open: list[tuple[Message, dict[str, Any], dict[str, Any]]] = []
        self.top: list[Message] = []
        files = list(self._with_imports(main, imported))
        for one in files:
            top = [self._declare(each, one.get("package") or "", one) for each in one.get("message_type", ())]
            if one is main:
                self.top = top
            self._declare_enums(one, one.get("package") or "")
        for message, given, one in self._open:
            for each in given.get("field", ()):
                self._add_field(message, each, one)

    def _with_imports(
        self, main: dict[str, Any], imported: Callable[[str], dict[str, Any] | None]
    ) -> Iterator[dict[str, Any]]:
        """Each file once; missing files matter only if something of them is used."""
        seen: set[str] = set()
        waiting = [main]
        while waiting:
            one = waiting.pop()
            yield one
            for name in one.get("dependency", ()):
                if name in seen:
                    continue
                seen.add(name)
                if len(seen) > MOST_FILES:
                    raise DecodingError(f"the schema imports more than {MOST_FILES} files")
                found = known_file(name) or imported(name)
                if found is None:
                    self._missing.append(name)
                else:
                    waiting.append(found)

    def _declare(self, given: dict[str, Any], scope: str, file: dict[str, Any]) -> Message:
        name = f"{scope}.{given.get('name', '')}".lstrip(".")
        is_entry = bool((given.get("options") or {}).get("map_entry"))
        message = self.by_name[name] = Message(name, is_entry)
        self._open.append((message, given, file))
        inside = [self._declare(each, name, file) for each in given.get("nested_type", ())]
        message.nested = [each for each in inside if not each.is_entry]
        self._declare_enums(given, name)
        return message

    def _declare_enums(self, given: dict[str, Any], scope: str) -> None:
        for one in given.get("enum_type", ()):
            names = {value.get("number", 0): value.get("name", "") for value in reversed(one.get("value", ()))}
            self._enums[f"{scope}.{one.get('name', '')}".lstrip(".")] = names

    def _add_field(self, message: Message, given: dict[str, Any], file: dict[str, Any]) -> None:
        repeated = given.get("label") == "LABEL_REPEATED"
        features = ((file.get("options") or {}).get("features") or {}) | (
            (given.get("options") or {}).get("features") or {}
        )
        kind = str(given.get("type", "")).removeprefix("TYPE_").lower()
        made = Field(
            given.get("number", 0), given.get("name", ""), kind, repeated, given.get("oneof_index", -1), fills=repeated
        )
        made.required = given.get("label") == "LABEL_REQUIRED" or features.get("field_presence") == "LEGACY_REQUIRED"
        if "type_name" in given:
            found = self._resolved(given["type_name"], message.name)
            if isinstance(found, Message):
                delimited = features.get("message_encoding") == "DELIMITED"
                made.message, made.kind = found, "group" if kind == "group" or delimited else "message"
            else:
                made.names, made.kind = found, "enum"
        if made.message is None and not repeated and made.oneof < 0 and not given.get("explicit"):
            implicit = features.get("field_presence") == "IMPLICIT"
            made.fills = message.is_entry or file.get("syntax") == "proto3" or implicit
        message.fields[made.number] = made

    def _resolved(self, name: str, scope: str) -> Message | dict[int, str]:
        """Resolve a name by Protobuf's rules: the innermost scope that has it wins."""
        candidates: Iterable[str] = [name[1:]]
        if not name.startswith("."):
            parts = scope.split(".")
            candidates = [".".join([*parts[:count], name]) for count in range(len(parts), -1, -1)]
        for full in candidates:
            if full in self.by_name:
                return self.by_name[full]
            if full in self._enums:
                return self._enums[full]
        missing = f"; {', '.join(self._missing[:3])} could not be found" if self._missing else ""
        raise DecodingError(f"{self.file}: {scope} has a field of the type {name}, which is not defined{missing}")

    def find(self, name: str) -> Message:
        """The message of a full name, or of an unambiguous end of one."""
        if name in self.by_name:
            return self.by_name[name]
        known = [each for each in self.by_name.values() if not each.is_entry]
        close = [each for each in known if each.name.endswith(f".{name}")]
        if len(close) == 1:
            return close[0]
        names = ", ".join(sorted(each.name for each in close or known if not each.name.startswith("google."))[:10])
        what = f"has more than one message {name}" if close else f"has no message {name}"
        raise DecodingError(f"{self.file} {what}; it has {names}" if names else f"{self.file} {what}")

    def only(self) -> Message:
        """The message of a file that has just one."""
        if len(self.top) != 1:
            names = ", ".join(each.name for each in self.top[:10])
            raise DecodingError(
                f"{self.file} has several messages ({names}); choose one" if self.top else f"{self.file} has no message"
            )
        return self.top[0]

    def at(self, path: list[int]) -> Message:
        """The message at a path of indexes: say, the second of the file, the first inside it."""
        level, found = self.top, None
        for index in path:
            if not 0 <= index < len(level):
                raise DecodingError(f"{self.file} has no message at {path}")
            found = level[index]
            level = found.nested
        if found is None:
            raise DecodingError(f"{self.file}: the position of the message is empty")
        return found


def known_file(name: str) -> dict[str, Any] | None:
    """A file that comes with Protobuf."""
    text = proto_known.FILES.get(name)
    return None if text is None else proto_text.parse(text, name)
