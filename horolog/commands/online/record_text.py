r"""Writes records for people and programs, and reads them back: text, JSON lines, raw values, templates; pure.

JSON of a record, as `consume -o json` writes it and `produce --format json` reads it:

    {"topic": "t", "partition": 0, "offset": 7, "timestamp": 1700000000000, "timestamp_type": "CreateTime",
     "key": "k", "value": "v", "headers": [{"key": "h", "value": "x"}]}

`key`, `value` and header values are text or null; bytes that are not UTF-8 are in base64 in the member of the same name
with `_base64` instead. A record without a time has a null `timestamp`.

Templates are kcat's: %t topic, %p partition, %o offset, %k key, %s (or %v) value, %T timestamp in milliseconds, %D time in ISO 8601,
%h headers, %K and %S length of key and value in bytes (-1: null), %% a percent sign; \n, \t, \r, \0, \\ and \xNN.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable, Mapping
from json import JSONDecodeError, dumps, loads
from math import isfinite
from typing import Any, NamedTuple, Protocol

from horolog.client.values.types import ConsumerRecord

TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_PIECE = re.compile(r"%(.)|\\x([0-9a-fA-F]{2})|\\(.)|([^%\\]+)|(.)", re.DOTALL)

Writer = Callable[[ConsumerRecord], bytes]
ShowTime = Callable[[int], str]


class TemplateError(ValueError):
    """The template is invalid."""


class RecordTextError(ValueError):
    """The line is not a record; the message says why."""


# -- writing


def json_writer(record: ConsumerRecord) -> bytes:
    return line_of(as_json(record))


def line_of(members: Mapping[str, Any]) -> bytes:
    """A line of JSON; lone surrogates, which JSON may have and UTF-8 may not, are escaped."""
    return dumps(members, ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace") + b"\n"


def as_json(record: ConsumerRecord) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms if record.timestamp_ms >= 0 else None,
        "timestamp_type": TIMESTAMP_TYPES[record.timestamp_type] if record.timestamp_ms >= 0 else None,
        **_member("key", record.key),
        **_member("value", record.value),
        "headers": [{**_member("key", key), **_member("value", value)} for key, value in record.headers],
    }


def _member(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(data).decode()}


def raw_writer(record: ConsumerRecord) -> bytes:
    """Only the value, one a line."""
    return (record.value or b"") + b"\n"


def text_writer(show_time: ShowTime, printable: Callable[[str], str]) -> Writer:
    """A line for people: time, place, key and value; nothing in it can control a terminal."""

    def shown(data: bytes | None) -> str:
        return "-" if data is None else printable(data.decode(errors="replace"))

    def write(record: ConsumerRecord) -> bytes:
        time = show_time(record.timestamp_ms) if record.timestamp_ms >= 0 else "no time"
        place = f"{record.topic}-{record.partition}@{record.offset}"
        return f"{time}  {place}  {shown(record.key)}  {shown(record.value)}\n".encode()

    return write


def template_writer(template: str, show_time: ShowTime) -> Writer:
    """The output of kcat's -f. Raises TemplateError."""
    parts = [_part(match, show_time) for match in _PIECE.finditer(template)]

    def write(record: ConsumerRecord) -> bytes:
        return b"".join(part if isinstance(part, bytes) else part(record) for part in parts)

    return write


def _part(match: re.Match[str], show_time: ShowTime) -> bytes | Writer:
    field, hexadecimal, escape, text, broken = match.groups()
    if text is not None:
        return bytes(text.encode())
    if hexadecimal is not None:
        return bytes.fromhex(hexadecimal)
    if escape is not None:
        if escape not in _ESCAPES:
            raise TemplateError(f"\\{escape} is not an escape of templates; use \\n \\t \\r \\0 \\\\ or \\xNN")
        return _ESCAPES[escape]
    if broken is not None:
        raise TemplateError(f"the template ends with a lone {broken}")
    if field == "%":
        return b"%"
    writer = _fields(show_time).get(field)
    if writer is None:
        raise TemplateError(f"%{field} is not a field of templates; use %t %p %o %k %s %T %D %h %K %S or %%")
    return writer


def _fields(show_time: ShowTime) -> Mapping[str, Writer]:
    return {
        "t": lambda record: record.topic.encode(),
        "p": lambda record: b"%d" % record.partition,
        "o": lambda record: b"%d" % record.offset,
        "k": lambda record: record.key or b"",
        "s": lambda record: record.value or b"",
        "v": lambda record: record.value or b"",
        "T": lambda record: b"%d" % record.timestamp_ms,
        "D": lambda record: show_time(record.timestamp_ms).encode() if record.timestamp_ms >= 0 else b"",
        "h": lambda record: b",".join(key + b"=" + (value or b"") for key, value in record.headers),
        "K": lambda record: b"%d" % (-1 if record.key is None else len(record.key)),
        "S": lambda record: b"%d" % (-1 if record.value is None else len(record.value)),
    }


# -- reading


class Line(NamedTuple):
    """A record from a line of input; a place or time that is None comes from the command."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    timestamp_ms: int | None = None
    partition: int | None = None


def read_plain(line: bytes, key_separator: bytes | None) -> Line:
    """The line is the value, or key and value around the first separator."""
    if key_separator is None:
        return Line(line)
    key, found, value = line.partition(key_separator)
    if not found:
        raise RecordTextError(f"it has no {key_separator.decode(errors='replace')!r} between key and value")
    return Line(value, key)


class ReadTimes(Protocol):
    """The readers of records' times; both raise RecordTextError, or an error of the command line."""

    def text(self, text: str) -> int: ...

    def number(self, number: float) -> int: ...


def read_json(line: bytes, times: ReadTimes) -> Line:
    """A record as JSON; `value` may also be an object, array, number or boolean, which is sent as JSON."""
    try:
        found = loads(line)
    except (JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordTextError(f"it is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise RecordTextError("it is JSON, but not an object with key, value, headers and timestamp")
    unknown = found.keys() - _MEMBERS
    if unknown:
        raise RecordTextError(f"it has the unknown member {min(unknown)!r}")
    return Line(
        _data(found, "value"),
        _data(found, "key"),
        tuple(_headers(found.get("headers"))),
        _timestamp(found.get("timestamp"), times),
        _partition(found.get("partition")),
    )


_MEMBERS = {
    *("key", "key_base64", "value", "value_base64", "headers", "timestamp", "partition"),
    *("topic", "offset", "timestamp_type"),  # of a consumed record: where it was
    *(f"{part}_{what}" for part in ("key", "value") for what in ("format", "schema", "problem")),  # how it was read
}


def _data(found: Mapping[str, Any], name: str) -> bytes | None:
    encoded = found.get(f"{name}_base64")
    if encoded is not None:
        try:
            return b64decode(encoded, validate=True)
        except (Base64Error, ValueError, TypeError) as error:
            raise RecordTextError(f"{name}_base64 is not base64") from error
    data = found.get(name)
    if data is None:
        return None
    text = data if isinstance(data, str) else dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="surrogatepass")


def _headers(found: Any) -> Iterable[tuple[bytes, bytes | None]]:
    """A list of objects with key and value, or one object from names to values."""
    if isinstance(found, dict):
        found = [{"key": key, "value": value} for key, value in found.items()]
    if not isinstance(found, list | None):
        raise RecordTextError("headers: expected a list of objects with key and value, or one object")
    for header in found or ():
        key = _data(header, "key") if isinstance(header, dict) else None
        if key is None:
            raise RecordTextError("headers: expected objects with key and value")
        yield key, _data(header, "value")


def _timestamp(found: Any, times: ReadTimes) -> int | None:
    if isinstance(found, str):
        return times.text(found)
    if isinstance(found, int | float) and not isinstance(found, bool) and isfinite(found):
        return times.number(found)
    if found is None:
        return None
    raise RecordTextError("timestamp: expected milliseconds, a time, or null")


def _partition(found: Any) -> int | None:
    if found is None or (isinstance(found, int) and not isinstance(found, bool) and found >= 0):
        return found
    raise RecordTextError("partition: expected a number of 0 or more")
