"""Settings in general: type, bounds, how a text is read and written, and how DescribeConfigs shows it.

Both tables, `broker.config.settings` for the broker and `broker.config.topic_settings` for topics, are made of these.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NoReturn

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
MAX_VALUE_LENGTH = 32_767  # characters of one value: what a client may make us keep for one key

Value = bool | int | float | str | tuple[str, ...] | None


class ConfigType(IntEnum):
    """The types of DescribeConfigs, by their numbers on the wire."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    PASSWORD = 9


class ConfigSource(IntEnum):
    """Where a value comes from, by its number on the wire."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    GROUP = 8


class SettingsError(Exception):
    """An unknown key or a value that is not allowed; the message names it, and the values that are."""

    def __init__(self, key: str, value: str | None, reason: str) -> None:
        self.key = key
        self.value = value
        self.reason = reason
        shown = "" if value is None else f"={value[:200]!r}"
        super().__init__(f"{key}{shown}: {reason}")


@dataclass(frozen=True, slots=True)
class Synonym:
    """One place where a value could have come from, as DescribeConfigs lists them: the first one counts."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One key as DescribeConfigs answers it."""

    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    read_only: bool
    sensitive: bool
    documentation: str
    synonyms: tuple[Synonym, ...]

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT


@dataclass(frozen=True, slots=True)
class Spec:
    """One row of a table of settings."""

    name: str
    type: ConfigType
    default: Value
    sentence: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    dynamic: bool = False
    nullable: bool = False
    also: int | None = None  # one more number that is allowed, outside the range: -1 for "none"
    check: Callable[[str], str | None] | None = None  # the fault of the text, if it has one
    per_listener: bool = False  # it may be given for one listener: broker.listener_keys
    per_mechanism: bool = False  # and for one SASL mechanism of a listener

    def parse(self, text: str) -> Value:
        """The value that a text stands for; raises SettingsError."""
        if len(text) > MAX_VALUE_LENGTH:
            self.refuse(text, f"at most {MAX_VALUE_LENGTH} characters are allowed")
        stripped = text.strip()
        if self.nullable and not stripped:
            return None
        value = _READERS[self.type](self, stripped)
        if self.check is not None and (wrong := self.check(stripped)) is not None:
            self.refuse(text, wrong)
        return value

    def refuse(self, text: str, reason: str) -> NoReturn:
        """A password is not shown, not even one that is refused."""
        raise SettingsError(self.name, None if self.type is ConfigType.PASSWORD else text, reason)

    def allowed(self) -> str:
        """The allowed values, in words."""
        if self.choices:
            few = ", ".join(self.choices)
            return f"a comma-separated list of {few}" if self.type is ConfigType.LIST else f"one of {few}"
        if self.type in _NUMBERS:
            kind = "a number" if self.type is ConfigType.DOUBLE else "a whole number"
            low, high = self.bounds()
            other = f", or {self.also}" if self.also is not None else ""
            return f"{kind} from {render(low)} to {render(high)}{other}"
        return {ConfigType.BOOLEAN: "true or false", ConfigType.LIST: "a comma-separated list"}.get(self.type, "text")

    def bounds(self) -> tuple[float, float]:
        low, high = _NUMBERS[self.type]
        return (low if self.low is None else self.low, high if self.high is None else self.high)


_NUMBERS: dict[ConfigType, tuple[float, float]] = {
    ConfigType.SHORT: (-(2**15), 2**15 - 1),
    ConfigType.INT: (-(2**31), INT32_MAX),
    ConfigType.LONG: (-(2**63), INT64_MAX),
    ConfigType.DOUBLE: (-1.7976931348623157e308, 1.7976931348623157e308),
}


def _read_boolean(spec: Spec, text: str) -> bool:
    lowered = text.lower()
    if lowered not in {"true", "false"}:
        spec.refuse(text, f"expected {spec.allowed()}")
    return lowered == "true"


def _read_number(spec: Spec, text: str) -> int | float:
    low, high = spec.bounds()
    try:
        value = float(text) if spec.type is ConfigType.DOUBLE else _whole(text)
    except ValueError:
        spec.refuse(text, f"expected {spec.allowed()}")
    if not low <= value <= high and value != spec.also:  # a NaN is within no bounds
        spec.refuse(text, f"expected {spec.allowed()}")
    return value


def _whole(text: str) -> int:
    """As Java reads numbers: decimal digits and a sign, no underscores; int() alone would take more."""
    digits = text[1:] if text[:1] in {"-", "+"} else text
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        raise ValueError(text)
    return int(text)


def _read_text(spec: Spec, text: str) -> str:
    if spec.choices and text not in spec.choices:
        spec.refuse(text, f"expected {spec.allowed()}")
    return text


def _read_list(spec: Spec, text: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(",")) if text else ()
    if spec.choices and any(word not in spec.choices for word in words):
        spec.refuse(text, f"expected {spec.allowed()}")
    return words


_READERS: dict[ConfigType, Callable[[Spec, str], Value]] = {
    ConfigType.BOOLEAN: _read_boolean,
    ConfigType.STRING: _read_text,
    ConfigType.INT: _read_number,
    ConfigType.SHORT: _read_number,
    ConfigType.LONG: _read_number,
    ConfigType.DOUBLE: _read_number,
    ConfigType.LIST: _read_list,
    ConfigType.PASSWORD: _read_text,
}


def render(value: Value) -> str:
    """A value as the text that would give it; none is the empty text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return repr(value) if isinstance(value, float) else str(value)


def nearest(key: str, known: Collection[str], likeness: float = 0.6) -> str | None:
    """The known name that a misspelt one was probably meant to be."""
    import difflib

    found = difflib.get_close_matches(key, known, n=1, cutoff=likeness)
    return found[0] if found else None


# The constructors of a table that is a dataclass: the row is kept in the field's metadata, its name is the attribute's.


def boolean(default: bool, sentence: str, **more: Any) -> Any:
    return _row(ConfigType.BOOLEAN, default, sentence, more)


def integer(default: int | None, sentence: str, **more: Any) -> Any:
    return _row(ConfigType.INT, default, sentence, more)


def short(default: int, sentence: str, **more: Any) -> Any:
    return _row(ConfigType.SHORT, default, sentence, more)


def long(default: int | None, sentence: str, **more: Any) -> Any:
    return _row(ConfigType.LONG, default, sentence, more)


def real(default: float, sentence: str, **more: Any) -> Any:
    return _row(ConfigType.DOUBLE, default, sentence, more)


def string(default: str | None, sentence: str, **more: Any) -> Any:
    return _row(ConfigType.STRING, default, sentence, more)


def password(sentence: str, **more: Any) -> Any:
    """A secret: neither DescribeConfigs nor the log shows it."""
    return _row(ConfigType.PASSWORD, None, sentence, {"nullable": True, **more})


def words(default: tuple[str, ...], sentence: str, **more: Any) -> Any:
    return _row(ConfigType.LIST, default, sentence, more)


def _row(kind: ConfigType, default: Value, sentence: str, more: dict[str, Any]) -> Any:
    return field(default=default, metadata={"row": (kind, default, sentence, more)})
