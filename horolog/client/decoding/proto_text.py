"""Parses the text of a .proto file into its descriptor, with the names of descriptor.proto; pure.

    {"name", "package", "syntax", "dependency", "message_type": [{"name", "field", "nested_type", "enum_type", "oneof_decl"}], "enum_type"}

proto2, proto3 and editions. What does not affect the bytes is skipped: services, extensions, and options except those of editions
for field presence and for the encoding of nested messages.
"""

import re
from typing import Any, Final

from horolog.client.decoding.values import DEEPEST, DecodingError

SCALARS: Final = [
    "double",
    "float",
    "int32",
    "int64",
    "uint32",
    "uint64",
    "sint32",
    "sint64",
    "fixed32",
    "fixed64",
    "sfixed32",
    "sfixed64",
    "bool",
    "string",
    "bytes",
]
LABELS: Final = ("optional", "required", "repeated")
FEATURES: Final = ("features.field_presence", "features.message_encoding")
_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<word>\.?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)
    |(?P<number>[0-9][\w.]*(?:(?<=[eE])[+-][0-9]+)?|\.[0-9][\w.]*)
    |(?P<sign>[-+={}()\[\]<>;,:./])""",
    re.VERBOSE | re.DOTALL,
)
_PAIRS: Final = {"{": "}", "[": "]", "(": ")", "<": ">"}


def parse(text: str, name: str) -> dict[str, Any]:
    """The file as a descriptor. Raises DecodingError, with the line and the words expected there."""
    return _Source(text, name).file()


class _Source:
    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.text = text
        self.tokens: list[tuple[str, int]] = []
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise DecodingError(f"{name}:{self.line(at)}: unexpected {text[at : at + 10]!r}")
            if match.lastgroup is not None:
                self.tokens.append((match[0], at))
            at = match.end()
        self.position = 0
        self.depth = 0

    def line(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1

    @property
    def next(self) -> str:
        return self.tokens[self.position][0] if self.position < len(self.tokens) else ""

    def error(self, expected: str) -> DecodingError:
        at = self.tokens[self.position][1] if self.position < len(self.tokens) else len(self.text)
        found = f", found {self.next!r}" if self.next else ", but the text ends"
        return DecodingError(f"{self.name}:{self.line(at)}: expected {expected}{found}")

    def advance(self) -> str:
        token = self.next
        if not token:
            raise self.error("more")
        self.position += 1
        return token

    def take(self, *texts: str) -> str | None:
        return self.advance() if self.next in texts and self.next else None

    def expect(self, text: str) -> None:
        if not self.take(text):
            raise self.error(repr(text))

    def word(self, expected: str) -> str:
        if not re.match(r"[.A-Za-z_]", self.next):
            raise self.error(expected)
        return self.advance()

    def string(self) -> str:
        if self.next[:1] not in {'"', "'"}:
            raise self.error("a text in quotes")
        found = self.advance()[1:-1]
        while self.next[:1] in {'"', "'"}:
            found += self.advance()[1:-1]
        return found

    def number(self) -> int:
        sign = -1 if self.take("-") else 1
        try:
            found = int(self.next, 8 if re.fullmatch("0[0-7]+", self.next) else 0)
        except ValueError as error:
            raise self.error("a whole number") from error
        self.position += 1
        return sign * found

    def skip_to(self, end: str) -> None:
        """Skip past this sign, and nested brackets before it."""
        closing = [end]
        while closing:
            token = self.advance()
            if token == closing[-1]:
                closing.pop()
            elif token in {"{", "[", "("}:
                closing.append(_PAIRS[token])

    # -- the file

    def file(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "name": self.name,
            "syntax": "proto2",
            "package": "",
            "dependency": [],
            "message_type": [],
            "enum_type": [],
            "options": {},
        }
        while self.next:
            self._statement(found)
        return found

    def _statement(self, found: dict[str, Any]) -> None:
        word = self.word("a statement such as `message`")
        if word in {"syntax", "edition"}:
            self.expect("=")
            text = self.string()
            found["syntax"] = text if word == "syntax" else "editions"
            self.expect(";")
        elif word == "package":
            found["package"] = self.word("a package")
            self.expect(";")
        elif word == "import":
            self.take("public", "weak", "option")
            found["dependency"].append(self.string())
            self.expect(";")
        elif word == "message":
            found["message_type"].append(self.message())
        elif word == "enum":
            found["enum_type"].append(self.enum())
        elif word == "option":
            self._option(found["options"], ";")
        elif word in {"service", "extend"}:
            self._skip_block()
        else:
            self.position -= 1
            raise self.error("syntax, package, import, option, message, enum, service or extend")
        while self.take(";"):
            pass

    def _skip_block(self) -> None:
        while self.advance() != "{":
            pass
        self.skip_to("}")

    def _option(self, options: dict[str, Any], end: str) -> None:
        """One option up to and including `end`; only features are kept."""
        if self.next in FEATURES:
            feature = self.advance().rpartition(".")[2]
            self.expect("=")
            options.setdefault("features", {})[feature] = self.word("a feature")
        self.skip_to(end)

    def _field_options(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.take("["):
            start = self.position
            self.skip_to("]")
            words = [token for token, _ in self.tokens[start : self.position]]
            for feature in FEATURES:
                if feature in words:
                    name = feature.rpartition(".")[2]
                    found.setdefault("features", {})[name] = words[words.index(feature) + 2 :][:1][0]
        return found

    # -- messages

    def message(self, name: str = "") -> dict[str, Any]:
        found: dict[str, Any] = {
            "name": name or self.word("the name of a message"),
            "field": [],
            "nested_type": [],
            "enum_type": [],
            "oneof_decl": [],
        }
        self.depth += 1
        if self.depth > DEEPEST // 2:
            raise self.error("a shallower nesting")
        self.expect("{")
        while not self.take("}"):
            self._member(found)
        self.depth -= 1
        return found

    def _member(self, message: dict[str, Any]) -> None:
        first = self.next
        following = self.tokens[self.position + 1][0] if self.position + 1 < len(self.tokens) else ""
        if first == ";":
            self.advance()
        elif first == "message" and following != "=":
            self.advance()
            message["nested_type"].append(self.message())
        elif first == "enum":
            self.advance()
            message["enum_type"].append(self.enum())
        elif first == "oneof":
            self._oneof(message)
        elif first in {"option", "reserved", "extensions"}:
            self.skip_to(";")
        elif first == "extend":
            self._skip_block()
        else:
            self.field(message)

    def _oneof(self, message: dict[str, Any]) -> None:
        self.advance()
        message["oneof_decl"].append({"name": self.word("the name of a oneof")})
        self.expect("{")
        while not self.take("}"):
            if self.take("option"):
                self.skip_to(";")
            elif not self.take(";"):
                self.field(message, len(message["oneof_decl"]) - 1)

    def field(self, message: dict[str, Any], oneof: int | None = None) -> None:
        label = self.take(*LABELS) if oneof is None else None
        found: dict[str, Any] = {"label": f"LABEL_{(label or 'optional').upper()}"}
        if self.next == "map" and self.tokens[self.position + 1][0] == "<":
            found |= self._map(message)
        elif self.take("group"):
            self._group(message, found, oneof)
            return
        else:
            found |= _type(self.word("the type of a field"))
            found["name"] = self.word("the name of a field")
            self.expect("=")
            found["number"] = self.number()
        found["options"] = self._field_options()
        self.expect(";")
        _place(message, found, oneof, explicit=label == "optional")

    def _map(self, message: dict[str, Any]) -> dict[str, Any]:
        self.advance()
        self.expect("<")
        key = _type(self.word("the type of a key"))
        self.expect(",")
        value = _type(self.word("the type of a value"))
        self.expect(">")
        name = self.word("the name of a field")
        self.expect("=")
        number = self.number()
        entry = "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Entry"
        message["nested_type"].append(
            {
                "name": entry,
                "options": {"map_entry": True},
                "nested_type": [],
                "enum_type": [],
                "oneof_decl": [],
                "field": [
                    {"name": "key", "number": 1, "label": "LABEL_OPTIONAL", "options": {}, **key},
                    {"name": "value", "number": 2, "label": "LABEL_OPTIONAL", "options": {}, **value},
                ],
            }
        )
        return {"name": name, "number": number, "label": "LABEL_REPEATED", "type": "TYPE_MESSAGE", "type_name": entry}

    def _group(self, message: dict[str, Any], found: dict[str, Any], oneof: int | None) -> None:
        """A group: a message and its field in one."""
        name = self.word("the name of a group")
        self.expect("=")
        number = self.number()
        found |= {"name": name.lower(), "number": number, "type": "TYPE_GROUP", "type_name": name}
        found["options"] = self._field_options()
        message["nested_type"].append(self.message(name))
        _place(message, found, oneof, explicit=False)

    def enum(self) -> dict[str, Any]:
        found: dict[str, Any] = {"name": self.word("the name of an enum"), "value": []}
        self.expect("{")
        while not self.take("}"):
            if self.next in {"option", "reserved"} and self.tokens[self.position + 1 :][:1] != []:
                following = self.tokens[self.position + 1][0]
                if following != "=":
                    self.skip_to(";")
                    continue
            if self.take(";"):
                continue
            name = self.word("the name of a value")
            self.expect("=")
            found["value"].append({"name": name, "number": self.number()})
            self._field_options()
            self.expect(";")
        return found


def _type(word: str) -> dict[str, Any]:
    """A scalar type, or the name of a message or an enum: which of the two is resolved once all is read."""
    return {"type": f"TYPE_{word.upper()}"} if word in SCALARS else {"type_name": word}


def _place(message: dict[str, Any], field: dict[str, Any], oneof: int | None, *, explicit: bool) -> None:
    if oneof is not None:
        field["oneof_index"] = oneof
    field["explicit"] = explicit
    message["field"].append(field)
