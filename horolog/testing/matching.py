"""Decides which records match an expectation, and describes a failure: pure.

A key or value is a text, bytes, None (null) or JSON: an object matches if the record has at least these members and values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from typing import Any, NamedTuple, TypedDict

from horolog.base.readable import counted, format_time
from horolog.commands.tables import layout
from horolog.testing.reading import COMMITTED, Seen

ANY: Any = ...
MOST_SHOWN = 30
WIDTH = 140
LONGEST_SHOWN = 200
MATCHES = "*"


class ExpectationFailed(AssertionError):
    """The expectation, the topic's records as a table, and the closest record; `records` are the matching ones."""

    def __init__(self, text: str, records: Sequence[Seen] = ()) -> None:
        super().__init__(text)
        self.records = list(records)


class Conditions(TypedDict, total=False):
    """What a test says of the records that it expects: the fields of `ExpectedRecord`."""

    key: Any
    value: Any
    headers: Mapping[str, str | bytes | None] | None
    partition: int | None
    where: Callable[[Seen], bool] | None
    committed: bool


class ExpectedRecord(NamedTuple):
    """The conditions of an expectation; `...` stands for anything."""

    key: Any = ANY
    value: Any = ANY
    headers: Mapping[str, str | bytes | None] | None = None
    partition: int | None = None
    where: Callable[[Seen], bool] | None = None
    committed: bool = False
    """Records of open and aborted transactions do not count."""

    def misses(self, record: Seen) -> list[str]:
        """Why a record does not match; empty if it does."""
        found = []
        if self.partition not in (None, record.partition):
            found.append(f"the partition is {record.partition}, not {self.partition}")
        for name, wanted, given in (("key", self.key, record.key), ("value", self.value, record.value)):
            if wanted is not ANY:
                found += _differs(f"the {name}", wanted, given)
        for name, wanted in (self.headers or {}).items():
            found += _header_differs(name, wanted, record)
        if self.committed and record.transaction not in (None, COMMITTED):
            found.append(f"its transaction is {record.transaction}")
        if not found and self.where is not None and not self.where(record):
            found.append("`where` is false for it")
        return found

    def told(self) -> str:
        """The conditions in words, to follow `records`."""
        parts = [f"in partition {self.partition}"] if self.partition is not None else []
        parts += [
            f"with {name} {_shown(wanted)}"
            for name, wanted in (("key", self.key), ("value", self.value))
            if wanted is not ANY
        ]
        parts += [f"with header {name}={_shown(wanted)}" for name, wanted in (self.headers or {}).items()]
        if self.committed:
            parts.append("that are committed")
        if self.where is not None:
            parts.append("that `where` accepts")
        return f" {', '.join(parts)}" if parts else ""


def _differs(what: str, wanted: Any, given: bytes | None) -> list[str]:
    if wanted is None or given is None:
        return [] if wanted is given is None else [f"{what} is {_text(given)}, not {_shown(wanted)}"]
    if isinstance(wanted, str | bytes):
        same = given == (wanted.encode() if isinstance(wanted, str) else wanted)
        return [] if same else [f"{what} is {_text(given)}, not {_shown(wanted)}"]
    try:
        parsed = json.loads(given)
    except ValueError:
        return [f"{what} is {_text(given)}, which is not JSON"]
    return _json_differs(what, wanted, parsed)


def _json_differs(what: str, wanted: Any, given: Any) -> list[str]:
    """How two JSON values differ; extra members of an object do not count."""
    if isinstance(wanted, Mapping) and isinstance(given, Mapping):
        found: list[str] = []
        for name, value in wanted.items():
            inner = f"{what}.{name}" if "'s " in what else f"{what}'s {name}"
            found += _json_differs(inner, value, given[name]) if name in given else [f"{inner} is missing"]
        return found
    if type(wanted) is bool or type(given) is bool:
        same = wanted is given
    else:
        same = wanted == given
    return [] if same else [f"{what} is {json.dumps(given, ensure_ascii=False)}, not {_shown(wanted)}"]


def _header_differs(name: str, wanted: str | bytes | None, record: Seen) -> list[str]:
    given = [value for key, value in record.headers if key == name.encode()]
    if not given:
        return [f"there is no header {name}"]
    differences = [_differs(f"the header {name}", wanted, value) for value in given]
    return [] if [] in differences else differences[0]


def failure(
    topic: str, asked: str, records: Sequence[Seen], wanted: ExpectedRecord, found: Sequence[Seen]
) -> ExpectationFailed:
    """The error: the sentence `asked`, the records, and the one closest to a match."""
    lines = [f"{topic}: {asked}"]
    if not records:
        lines.append("the topic has no records")
    else:
        lines += table(records, found)
    others = [(wanted.misses(one), one) for one in records if one not in found]
    if others:
        why, nearest = min(others, key=lambda one: len(one[0]))
        lines.append(f"nearest: {topic}-{nearest.partition} at offset {nearest.offset}: {'; '.join(why)}")
    return ExpectationFailed("\n".join(lines), found)


def table(records: Sequence[Seen], marked: Sequence[Seen] = ()) -> list[str]:
    """The last records as lines; a star marks those that match."""
    shown = records[-MOST_SHOWN:]
    with_headers = any(one.headers for one in shown)
    with_transactions = any(one.transaction for one in shown)
    headings = ["", "time", "partition", "offset", "key", "value"]
    headings += ["headers"] * with_headers + ["transaction"] * with_transactions
    marks = set(marked)
    rows: list[list[str | int | None]] = []
    for one in shown:
        row: list[str | int | None] = [
            MATCHES if one in marks else "",
            format_time(one.timestamp_ms, UTC) if one.timestamp_ms >= 0 else None,
            one.partition,
            one.offset,
            _text(one.key),
            _text(one.value),
        ]
        if with_headers:
            row.append(", ".join(f"{name.decode(errors='replace')}={_text(value)}" for name, value in one.headers))
        if with_transactions:
            row.append(one.transaction)
        rows.append(row)
    left_out = len(records) - len(shown)
    before = [f"({counted(left_out, 'record')} before these)"] if left_out else []
    return [*before, *(f"  {line}" for line in layout(headings, rows, WIDTH))]


def _text(data: bytes | None) -> str:
    if data is None:
        return "null"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = repr(data)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def _shown(wanted: Any) -> str:
    if wanted is None:
        return "null"
    if isinstance(wanted, bytes):
        return _text(wanted)
    return wanted if isinstance(wanted, str) else json.dumps(wanted, ensure_ascii=False, default=repr)
