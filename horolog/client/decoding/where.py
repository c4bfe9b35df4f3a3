r"""The language of `--where`: selects records by their fields; pure, and never run as Python.

    expression := all ("or" all)*
    all        := one ("and" one)*
    one        := "not" one | "(" expression ")" | "exists" path | test
    test       := operand [("=" | "==" | "!=" | "<" | "<=" | ">" | ">=") operand | ["not"] "in" (list | path) | ("~" | "!~") text]
    operand    := path | text | number | "true" | "false" | "null"
    list       := ("(" | "[") literal ("," literal)* (")" | "]")
    path       := root ("." name | "[" whole number "]" | "[" text "]")*
    root       := "key" | "value" | "headers" | "topic" | "partition" | "offset" | "timestamp"
    name       := a letter, a digit or _, then letters, digits, _ and -
    text       := '...' or "...", with \' \" \\ \n \t \r \uNNNN
    number     := 17, -3, 2.50, 1e9

`value.items[0].price > 9.99 and headers.trace ~ '^7f'`. Keywords are in lower case. [-1] is the last item.

- A path that leads nowhere makes its test false, with != and !~ too; `not` inverts that. `exists` tests whether it leads somewhere; a
null field exists. A path alone is true if it leads to true.
- Numbers are compared with numbers, texts with texts, booleans with booleans; different types are neither equal nor
ordered. A key, a value or a header that is plain text has no type: compared with a number it is read as one. Bytes that
are not text count as their hexadecimal digits.
- `timestamp`, and times in values, are compared with texts as `horolog.client.values.times` reads them: timestamp >= 'today 10:05'.
  Compared with a number they are milliseconds since 1970.
- `in` with a path looks in a list, among the names of an object, or for a substring of a text.
- `~` looks for a regular expression (`horolog.base.patterns`) in a text, a number, or an object as JSON.
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from decimal import Decimal
from typing import Any, Final, NamedTuple, Protocol

from horolog.base.patterns import PatternError, compile_pattern
from horolog.client.decoding.values import Instant, plain_text, readable_bytes
from horolog.client.values.times import TimeTextError, parse_time
from horolog.client.values.types import ConsumerRecord

LONGEST_TEXT: Final = 10_000
DEEPEST: Final = 100
EXAMPLE: Final = "value.customer.id = 7 and headers.trace ~ '^7f'"

ROOTS: Final = ("key", "value", "headers", "topic", "partition", "offset", "timestamp")
KEYWORDS: Final = ("and", "or", "not", "in", "exists", "true", "false", "null")
ORDERS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
EQUALITIES: Final = ("=", "==", "!=")
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?(?![\w.]))
    | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<name>[^\W\d][\w-]*)
    | (?P<sign>==|!=|!~|<=|>=|[=<>~()\[\],.])
    | (?P<end>$)
    )""",
    re.VERBOSE | re.DOTALL,
)
_NAME = re.compile(r"\w[\w-]*")
_INDEX = re.compile(r"\s*(-?[0-9]{1,9})\s*")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "'": "'", '"': '"', "\\": "\\"}


class WhereError(ValueError):
    """The text is not an expression; the message says where it went wrong and what would be valid."""


class Contents(Protocol):
    """Decoded keys and values; `horolog.client.decoding.Decoded` is one."""

    @property
    def key(self) -> Any: ...
    @property
    def value(self) -> Any: ...


Test = Callable[[ConsumerRecord, Contents | None], bool]


class _Missing:
    """Where a path leads nowhere."""


class Untyped(str):
    """A text without a type, which may stand for a number."""

    __slots__ = ()


MISSING: Final = _Missing()


@dataclass(frozen=True, slots=True)
class Where:
    """Whether a record is wanted; decoded keys and values are used only if `needs_decoding` is set."""

    text: str
    needs_decoding: bool
    test: Test

    def __call__(self, record: ConsumerRecord, decoded: Contents | None = None) -> bool:
        return self.test(record, decoded)


def compile_where(text: str, now_ms: int, zone: tzinfo) -> Where:
    """The expression as a test. Raises WhereError. Times are evaluated once: `now-1h` does not move while records are read."""
    source = _Source(text, now_ms, zone)
    test = source.expression()
    if source.token.kind != "end":
        raise source.error("expected `and`, `or` or the end")
    return Where(text, source.needs_decoding, test)


# -- reading the expression


class _Token(NamedTuple):
    kind: str
    text: str
    began: int
    ended: int


class _Operand(NamedTuple):
    """One side of a test: how to get it, and all that is known before a record is read."""

    get: Callable[[ConsumerRecord, Contents | None], Any]
    root: str
    """Empty for a literal."""
    literal: Any = None


class _Source:
    """An expression, read from left to right."""

    def __init__(self, text: str, now_ms: int, zone: tzinfo) -> None:
        if len(text) > LONGEST_TEXT:
            raise WhereError(f"an expression has at most {LONGEST_TEXT} characters")
        self.text = text
        self.now_ms = now_ms
        self.zone = zone
        self.depth = 0
        self.needs_decoding = False
        self.token = self.token_at(0)

    def token_at(self, position: int) -> _Token:
        match = _TOKEN.match(self.text, position)
        if match is None or match.lastgroup is None:
            began = position + len(self.text[position:]) - len(self.text[position:].lstrip())
            return _Token("unknown", self.text[began : began + 20], began, began)
        return _Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup), match.end())

    def error(self, sentence: str, token: _Token | None = None) -> WhereError:
        at = token or self.token
        found = "but the text ends" if at.kind == "end" else f"found {at.text!r}"
        if at.kind == "unknown" and at.text[:1] in "'\"":
            found += ", a text without a closing quote"
        return WhereError(f"at {at.began + 1}: {sentence}, {found}; example: {EXAMPLE}")

    def advance(self) -> _Token:
        passed = self.token
        self.token = self.token_at(passed.ended)
        return passed

    def take(self, *texts: str) -> str | None:
        """The next word or sign if it is one of these."""
        if self.token.kind in {"name", "sign"} and self.token.text in texts:
            return self.advance().text
        return None

    def expression(self) -> Test:
        tests = [self.all_of()]
        while self.take("or"):
            tests.append(self.all_of())
        return tests[0] if len(tests) == 1 else _any_of(tests)

    def all_of(self) -> Test:
        tests = [self.one()]
        while self.take("and"):
            tests.append(self.one())
        return tests[0] if len(tests) == 1 else _all_of(tests)

    def one(self) -> Test:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error(f"expected at most {DEEPEST} levels of ( ) and not")
        try:
            if self.take("not"):
                return _not(self.one())
            if self.take("("):
                test = self.expression()
                if not self.take(")"):
                    raise self.error("expected )")
                return test
            if self.take("exists"):
                get = self.path().get
                return lambda record, decoded: get(record, decoded) is not MISSING
            return self.test()
        finally:
            self.depth -= 1

    def test(self) -> Test:
        left = self.operand()
        sign = self.take(*EQUALITIES, *ORDERS)
        if sign is not None:
            right = self.operand()
            return _compared(self.timed(left, right), sign, self.timed(right, left))
        sign = self.take("~", "!~")
        if sign is not None:
            return _matched(left.get, self.pattern(), wanted=sign == "~")
        negated = self.take("not") is not None
        if self.take("in"):
            return self.contained(left, negated=negated)
        if negated:
            raise self.error("expected `in`")
        if not left.root:
            raise self.error("expected =, !=, <, <=, >, >=, ~ or `in`")
        return lambda record, decoded: left.get(record, decoded) is True

    def operand(self) -> _Operand:
        if self.token.kind == "name" and self.token.text not in {"true", "false", "null"}:
            return self.path()
        return self.literal()

    def literal(self) -> _Operand:
        token = self.token
        value: Any
        if token.kind == "number":
            value = _number(token.text)
        elif token.kind == "text":
            value = self.unescaped(token)
        elif token.text in {"true", "false", "null"}:
            value = {"true": True, "false": False, "null": None}[token.text]
        else:
            raise self.error("expected a path such as value.id, a text in quotes, a number, true, false or null")
        self.advance()
        return _Operand(lambda _, __: value, "", value)

    def unescaped(self, token: _Token) -> str:
        def meant(match: re.Match[str]) -> str:
            if match[1] is not None:
                return chr(int(match[1], 16))
            if match[2] not in _ESCAPES:
                raise self.error("expected \\' \\\" \\\\ \\n \\t \\r or \\uNNNN as an escape", token)
            return _ESCAPES[match[2]]

        return _ESCAPE.sub(meant, token.text[1:-1])

    def path(self) -> _Operand:
        token = self.token
        if token.kind != "name" or token.text not in ROOTS:
            advice = " (put text in quotes)" if token.kind == "name" and token.text not in KEYWORDS else ""
            raise self.error(f"expected a path that begins with {', '.join(ROOTS[:-1])} or {ROOTS[-1]}{advice}")
        root = self.advance().text
        steps: list[str | int] = []
        while self.token.kind == "sign" and self.token.text in {".", "["}:
            steps.append(self.step())
        if steps and root not in {"key", "value", "headers"}:
            raise self.error(f"{root} has no fields: expected a comparison", token)
        self.needs_decoding = self.needs_decoding or root in {"key", "value"}
        return _Operand(_getter(root, steps), root)

    def step(self) -> str | int:
        sign = self.advance()
        if sign.text == ".":
            name = _NAME.match(self.text, sign.ended)
            if name is None:
                raise self.error("expected the name of a field")
            self.token = self.token_at(name.end())
            return name[0]
        index = _INDEX.match(self.text, sign.ended)
        step: str | int
        if index is not None:
            self.token = self.token_at(index.end())
            step = int(index[1])
        elif self.token.kind == "text":
            step = self.unescaped(self.advance())
        else:
            raise self.error("expected a whole number or a name in quotes")
        if not self.take("]"):
            raise self.error("expected ]")
        return step

    def pattern(self) -> Callable[[str], bool]:
        token = self.token
        if token.kind != "text":
            raise self.error("expected a regular expression in quotes")
        # A backslash is the pattern's own here: '\d+' needs no second one.
        text = re.sub(r"\\(['\"])", r"\1", token.text[1:-1])
        self.advance()
        try:
            return compile_pattern(text)
        except PatternError as error:
            raise WhereError(f"at {token.began + 1}: the regular expression {text!r}: {error}") from error

    def contained(self, left: _Operand, *, negated: bool) -> Test:
        closing = {"(": ")", "[": "]"}.get(self.take("(", "[") or "")
        if closing is None:
            if self.token.kind != "name":
                raise self.error("expected a list such as ('a', 'b') or a path")
            return _inside(left.get, self.path().get, wanted=not negated)
        items = [self.literal()]
        while self.take(","):
            items.append(self.literal())
        if not self.take(closing):
            raise self.error(f"expected , or {closing}")
        return _among(left.get, [self.timed(item, left).get for item in items], wanted=not negated)

    def timed(self, operand: _Operand, other: _Operand) -> _Operand:
        """A text for a comparison: with a timestamp it must be a time, with a field it may be one."""
        if operand.root or not isinstance(operand.literal, str) or not other.root:
            return operand
        try:
            moment = parse_time(operand.literal, now_ms=self.now_ms, zone=self.zone)
        except TimeTextError as error:
            if other.root == "timestamp":
                raise WhereError(f"timestamp is compared with a time: {error}") from error
            return operand
        value = _TextOrTime(operand.literal)
        value.ns = moment.ms * 1_000_000
        return operand._replace(get=lambda _, __: value, literal=value)


class _TextOrTime(str):
    """A text of the expression that is also a time."""

    __slots__ = ("ns",)
    ns: int


def _number(text: str) -> int | float | Decimal:
    """2.50 is an exact decimal; 1e9 is a float."""
    if text.lstrip("-").isdecimal():
        return int(text)
    return float(text) if "e" in text.lower() else Decimal(text)


# -- getting at fields


def _getter(root: str, steps: list[str | int]) -> Callable[[ConsumerRecord, Contents | None], Any]:
    start = _STARTS[root]
    if not steps:
        return start

    def get(record: ConsumerRecord, decoded: Contents | None) -> Any:
        found = start(record, decoded)
        for step in steps:
            found = _field(found, step)
        return found

    return get


def _field(value: Any, step: str | int) -> Any:
    if isinstance(value, dict):
        found = value.get(step, MISSING)
        return value.get(str(step), MISSING) if found is MISSING and isinstance(step, int) else found
    if isinstance(value, list):
        if isinstance(step, str):
            if not (step.isascii() and step.isdecimal() and len(step) < 10):
                return MISSING
            step = int(step)
        return value[step] if -len(value) <= step < len(value) else MISSING
    return MISSING


def _headers(record: ConsumerRecord, _: Contents | None) -> dict[str, Any]:
    """The headers by name; the last one of each name counts."""
    return {_shown(key): None if value is None else Untyped(_shown(value)) for key, value in record.headers}


def _shown(data: bytes) -> str:
    return readable_bytes(data)


def _contents(name: str) -> Callable[[ConsumerRecord, Contents | None], Any]:
    def get(_: ConsumerRecord, decoded: Contents | None) -> Any:
        if decoded is None:
            return MISSING
        value = getattr(decoded, name)
        if type(value) is str:
            return Untyped(value)
        return value

    return get


_STARTS: Final[Mapping[str, Callable[[ConsumerRecord, Contents | None], Any]]] = {
    "key": _contents("key"),
    "value": _contents("value"),
    "headers": _headers,
    "topic": lambda record, _: record.topic,
    "partition": lambda record, _: record.partition,
    "offset": lambda record, _: record.offset,
    "timestamp": lambda record, _: Instant.of_ms(record.timestamp_ms) if record.timestamp_ms >= 0 else MISSING,
}


# -- comparing


def _any_of(tests: list[Test]) -> Test:
    return lambda record, decoded: any(test(record, decoded) for test in tests)


def _all_of(tests: list[Test]) -> Test:
    return lambda record, decoded: all(test(record, decoded) for test in tests)


def _not(test: Test) -> Test:
    return lambda record, decoded: not test(record, decoded)


def _compared(left: _Operand, sign: str, right: _Operand) -> Test:
    get_left, get_right = left.get, right.get
    wanted = sign != "!="
    order = ORDERS.get(sign)

    def test(record: ConsumerRecord, decoded: Contents | None) -> bool:
        one, other = get_left(record, decoded), get_right(record, decoded)
        if one is MISSING or other is MISSING:
            return False
        pair = comparable(one, other)
        if order is None:
            return (pair is not None and bool(pair[0] == pair[1])) is wanted
        return pair is not None and _in_order(order, *pair)

    return test


def _in_order(order: Callable[[Any, Any], Any], one: Any, other: Any) -> bool:
    if one is None or isinstance(one, (bool, dict, list)):
        return False
    return bool(order(one, other))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def comparable(one: Any, other: Any) -> tuple[Any, Any] | None:
    """Two values of the same kind, such as numbers; None if their kinds differ."""
    one, other = _beside(one, other), _beside(other, one)
    if _is_number(one) and _is_number(other):
        # A NaN decimal has no order, and comparing it raises an error.
        return None if any(isinstance(each, Decimal) and each.is_nan() for each in (one, other)) else (one, other)
    if isinstance(one, str) and isinstance(other, str):
        return str(one), str(other)
    return (one, other) if type(one) is type(other) else None


def _beside(value: Any, other: Any) -> Any:
    """A value for a comparison with another: times become numbers next to times, untyped texts next to numbers."""
    if isinstance(value, bytes):
        return readable_bytes(value) if not isinstance(other, bytes) else value
    if isinstance(value, (Instant, _TextOrTime)):
        if isinstance(other, Instant) or (isinstance(value, Instant) and isinstance(other, _TextOrTime)):
            return value.ns
        if isinstance(value, Instant) and _is_number(other):
            return Decimal(value.ns) / 1_000_000 if value.ns % 1_000_000 else value.ns // 1_000_000
        return value
    if isinstance(value, Untyped) and _is_number(other):
        return _read_number(value)
    return value


_UNTYPED_NUMBER = re.compile(r"\s*(-?[0-9]{1,300}(?:\.[0-9]{1,300})?(?:[eE][+-]?[0-9]{1,3})?)\s*")


def _read_number(text: str) -> Any:
    match = _UNTYPED_NUMBER.fullmatch(text)
    return text if match is None else _number(match[1])


def _among(get: Callable[..., Any], items: list[Callable[..., Any]], *, wanted: bool) -> Test:
    values = [item(None, None) for item in items]

    def test(record: ConsumerRecord, decoded: Contents | None) -> bool:
        one = get(record, decoded)
        return one is not MISSING and any(_equal(one, value) for value in values) is wanted

    return test


def _equal(one: Any, other: Any) -> bool:
    pair = comparable(one, other)
    return pair is not None and bool(pair[0] == pair[1])


def _inside(get: Callable[..., Any], get_whole: Callable[..., Any], *, wanted: bool) -> Test:
    def test(record: ConsumerRecord, decoded: Contents | None) -> bool:
        one, whole = get(record, decoded), get_whole(record, decoded)
        if one is MISSING or not isinstance(whole, (list, dict, str)):
            return False
        if isinstance(whole, str):
            return (isinstance(one, str) and one in whole) is wanted
        return any(_equal(one, each) for each in whole) is wanted

    return test


def _matched(get: Callable[..., Any], matches: Callable[[str], bool], *, wanted: bool) -> Test:
    def test(record: ConsumerRecord, decoded: Contents | None) -> bool:
        one = get(record, decoded)
        return one is not MISSING and one is not None and matches(plain_text(one)) is wanted

    return test
