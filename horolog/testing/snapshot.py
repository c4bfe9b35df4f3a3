"""Writes a topic as a text file that people can read and compare, and reads it back.

    horolog snapshot 1
    topic: orders
    partitions: 2
    times: since the start

    [0/0] +0.000s
    key: alice
    header trace: 4bf9
    value: {"id": 1}

    [1/0] +90.250s
    key: null
    value: base64:AAEC

A record begins with its partition, offset and time: seconds since the clock's start (`times: since the start`), a time in UTC
(`times: absolute`), or none (`times: left out`). Then come `key`, a `header NAME` for each header in order, and `value`. Each is
- `null`, or
- plain text, if it is UTF-8 without control characters and blanks at its ends, and is none of these forms; or
- other UTF-8 text in quotation marks, as in JSON; or
- `base64:` and the bytes.
Header names have the same forms. With marks a record also has `producer: ID epoch E sequence S` and `transaction: committed`, `aborted` or
`open`; reading back ignores these, and lines that begin with `#`. A line feed ends each line.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import NamedTuple

from horolog.base.readable import format_time
from horolog.protocol.records.record import Header
from horolog.testing.reading import Seen

FIRST_LINE = "horolog snapshot 1"
RELATIVE, ABSOLUTE, NONE = "relative", "absolute", "none"
TIMES = {RELATIVE: "since the start", ABSOLUTE: "absolute", NONE: "left out"}
BASE64 = "base64:"
NULL = "null"
_RECORD = re.compile(r"\[(\d+)/(\d+)\](?: (.+))?")
_FIELD = re.compile(
    r'(key|value|header (?:"(?:[^"\\]|\\.)*"|base64:[A-Za-z0-9+/=]*|[^":][^:]*)|producer|transaction): ?(.*)'
)
_SINCE = re.compile(r"([+-])(\d+\.\d{3})s")


class SnapshotError(ValueError):
    """The text is not a snapshot; the message names the line."""


class Snapshot(NamedTuple):
    """The content of a file; a record's time is None if left out."""

    topic: str
    partitions: int
    records: list[tuple[Seen, int | None]]


def write(
    topic: str,
    partitions: int,
    records: Sequence[Seen],
    *,
    start_ms: int,
    times: str = RELATIVE,
    marks: bool = False,
) -> str:
    """The text of a topic's records."""
    if times not in TIMES:
        raise ValueError(f"times={times!r}: expected one of {', '.join(TIMES)}")
    lines = [FIRST_LINE, f"topic: {topic}", f"partitions: {partitions}", f"times: {TIMES[times]}"]
    for record in records:
        lines.append("")
        lines += _lines(record, _time(record.timestamp_ms, start_ms, times), marks=marks)
    return "".join(f"{line}\n" for line in lines)


def _lines(record: Seen, time: str, *, marks: bool) -> Iterator[str]:
    yield f"[{record.partition}/{record.offset}]{time}"
    yield f"key: {written(record.key)}"
    for name, value in record.headers:
        yield f"header {_written_name(name)}: {written(value)}"
    yield f"value: {written(record.value)}"
    if marks and record.producer is not None:
        yield f"producer: {record.producer.id} epoch {record.producer.epoch} sequence {record.producer.sequence}"
    if marks and record.transaction is not None:
        yield f"transaction: {record.transaction}"


def _time(timestamp_ms: int, start_ms: int, times: str) -> str:
    if times == NONE or timestamp_ms < 0:
        return ""
    if times == ABSOLUTE:
        return f" {format_time(timestamp_ms, UTC)}"
    since_ms = timestamp_ms - start_ms
    seconds, rest_ms = divmod(abs(since_ms), 1000)
    return f" {'-' if since_ms < 0 else '+'}{seconds}.{rest_ms:03d}s"


def written(data: bytes | None) -> str:
    """Bytes in one of the forms that the module's docstring lists."""
    if data is None:
        return NULL
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return BASE64 + base64.b64encode(data).decode()
    is_plain = text.isprintable() and text.strip() == text and text not in {"", NULL}
    if is_plain and not text.startswith(('"', BASE64)):
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _written_name(name: bytes) -> str:
    """A header name, in the same forms; a colon would end it."""
    text = written(name)
    return json.dumps(text) if ":" in text and not text.startswith(('"', BASE64)) else text


def read_back(text: str) -> bytes | None:
    """The bytes that `written` wrote; raises ValueError."""
    if text == NULL:
        return None
    if text.startswith(BASE64):
        return base64.b64decode(text[len(BASE64) :], validate=True)
    if text.startswith('"'):
        found = json.loads(text)
        if not isinstance(found, str):
            raise ValueError("expected a text in quotation marks")
        return found.encode()
    return text.encode()


def parse(text: str, *, start_ms: int = 0) -> Snapshot:
    """The content of a file; raises SnapshotError."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if not line.startswith("#")]
    if not lines or lines[0][1] != FIRST_LINE:
        raise SnapshotError(f"line 1: expected {FIRST_LINE!r}")
    head, rest = _head(lines[1:])
    records: list[tuple[Seen, int | None]] = []
    block: list[tuple[int, str]] = []
    for number, line in [*rest, (0, "")]:
        if line:
            block.append((number, line))
        elif block:
            records.append(_record(block, head, start_ms))
            block = []
    return Snapshot(head["topic"], int(head["partitions"]), records)


def _head(lines: Sequence[tuple[int, str]]) -> tuple[dict[str, str], Sequence[tuple[int, str]]]:
    head: dict[str, str] = {}
    rest: Sequence[tuple[int, str]] = ()
    for place, (number, line) in enumerate(lines):
        name, separator, value = line.partition(": ")
        if not line:
            rest = lines[place:]
            break
        if not separator or name not in {"topic", "partitions", "times"}:
            raise SnapshotError(f"line {number}: {line!r} is not a line of the head")
        head[name] = value
    missing = {"topic", "partitions", "times"} - head.keys()
    if missing:
        raise SnapshotError(f"the head has no line {min(missing)!r}")
    if not head["partitions"].isdigit() or head["times"] not in TIMES.values():
        kinds = ", ".join(TIMES.values())
        raise SnapshotError(f"the head's `partitions` is not a number, or its `times` is not one of {kinds}")
    return head, rest


def _record(block: Sequence[tuple[int, str]], head: dict[str, str], start_ms: int) -> tuple[Seen, int | None]:
    number, first = block[0]
    found = _RECORD.fullmatch(first)
    if found is None:
        raise SnapshotError(f"line {number}: {first!r} does not begin a record, such as [0/7] +1.000s")
    partition, offset, time = int(found[1]), int(found[2]), found[3]
    if partition >= int(head["partitions"]):
        raise SnapshotError(f"line {number}: the topic has {head['partitions']} partitions, numbered from 0")
    key: bytes | None = None
    value: bytes | None = None
    headers: list[Header] = []
    for number, line in block[1:]:
        field = _FIELD.fullmatch(line)
        if field is None:
            raise SnapshotError(f"line {number}: {line!r} does not belong to a record")
        try:
            if field[1] == "key":
                key = read_back(field[2])
            elif field[1] == "value":
                value = read_back(field[2])
            elif field[1].startswith("header "):
                headers.append((_name(field[1][len("header ") :]), read_back(field[2])))
        except ValueError as error:
            raise SnapshotError(f"line {number}: {error}") from error
    try:
        timestamp_ms = None if time is None else _time_of(time, start_ms)
    except ValueError as error:
        raise SnapshotError(f"line {block[0][0]}: {error}") from error
    return Seen(head["topic"], partition, offset, -1, key, value, tuple(headers)), timestamp_ms


def _name(text: str) -> bytes:
    name = read_back(text)
    if name is None:
        raise ValueError("the name of a header is null")
    return name


def _time_of(text: str, start_ms: int) -> int:
    since = _SINCE.fullmatch(text)
    if since is not None:
        return start_ms + int(Fraction(since[2]) * 1000) * (-1 if since[1] == "-" else 1)
    if re.fullmatch(r"@-?\d+", text):
        return int(text[1:])
    return round(datetime.fromisoformat(text).timestamp() * 1000)
