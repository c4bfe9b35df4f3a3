"""The rows of a moment's page: each record on one line, folded open to its whole content, and the places where late records were written; pure.

A late record stands at its own time. An ordinary consumer reads it after a record of a later time: there a mark stands for it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from horolog.client.values.types import ConsumerRecord
from horolog.console.changes import command_line
from horolog.console.reading import ShownRecord
from horolog.console.rendering import short
from horolog.console.trees import tree_of

if TYPE_CHECKING:
    from markupsafe import Markup

VALUE_SHOWN = 240
VALUE_AT_MOST = 16 << 10
VALUE_PARTS = 1000
PAGE_PARTS = 30_000
"""Parts of values to fold open: fields and items."""


class RecordRow(NamedTuple):
    """A row of the page: one record."""

    record: ConsumerRecord
    key: str | None
    value: str | None
    whole: str | None
    """The whole value if `value` is only a part of it."""
    headers: tuple[tuple[str, str], ...]
    problem: str
    late_ms: int
    is_after: bool
    tree: "Markup | None" = None
    """The value, to be folded open."""
    mark: str = "r"
    """Where its name on the page begins."""

    @property
    def id(self) -> str:
        """Its name on the page, for links to it."""
        return f"{self.mark}{self.record.partition}-{self.record.offset}"


class WrittenMark(NamedTuple):
    """The place in time where a late record was written."""

    late: RecordRow

    @property
    def at_ms(self) -> int:
        return self.late.record.timestamp_ms + self.late.late_ms


class KeyDot(NamedTuple):
    """A record of the timeline of a key, in thousandths of its width."""

    x: float
    row: RecordRow


def key_text(key: bytes | None) -> str | None:
    """A key in addresses: as text, or as hexadecimal digits."""
    if key is None:
        return None
    try:
        return key.decode()
    except UnicodeDecodeError:
        return f"0x{key.hex()}"


def tree_parts(rows: int) -> int:
    """How many parts of each value are shown: there is a limit for the page, and one for a value."""
    return min(VALUE_PARTS, PAGE_PARTS // max(rows, 1))


def rows_of(found: Sequence[ShownRecord], parts: int, *, is_after: bool) -> list[RecordRow]:
    return [row_of(one, parts, is_after=is_after) for one in found]


def row_of(one: ShownRecord, parts: int = 0, *, is_after: bool = True) -> RecordRow:
    record, decoded = one.record, one.decoded
    value = None if record.value is None else decoded.value_text
    whole = None
    if value is not None and len(value) > VALUE_SHOWN:
        whole, value = short(value, VALUE_AT_MOST), short(value, VALUE_SHOWN)
    problems = [problem for problem in (decoded.key_problem, decoded.value_problem) if problem]
    headers = tuple((key_text(name) or "", key_text(content) or "") for name, content in record.headers)
    key = None if record.key is None else decoded.key_text
    tree = tree_of(decoded.value, parts) if parts else None
    return RecordRow(record, key, value, whole, headers, "; ".join(problems), one.late_ms, is_after, tree)


def with_marks(
    earlier: Sequence[RecordRow], later: Sequence[RecordRow], at_ms: int, until_ms: int
) -> tuple[list[RecordRow | WrittenMark], list[RecordRow | WrittenMark]]:
    """Both sides of a moment with the marks of their late records; those beyond the page are left out."""
    marks = [WrittenMark(row) for row in (*earlier, *later) if row.late_ms]
    before = [mark for mark in marks if mark.at_ms < at_ms]
    after = [mark for mark in marks if at_ms <= mark.at_ms <= until_ms]
    return sorted([*earlier, *before], key=_place), sorted([*later, *after], key=_place)


def _place(line: RecordRow | WrittenMark) -> tuple[int, bool]:
    """By time; a mark after the records of its time, of which one came before it."""
    return (line.at_ms, True) if isinstance(line, WrittenMark) else (line.record.timestamp_ms, False)


def key_dots(rows: Sequence[RecordRow], at_ms: int) -> tuple[float, list[KeyDot]]:
    """The timeline of a key: the place of the moment, and of each record; the ends are 20 off the borders."""
    times = [row.record.timestamp_ms for row in rows]
    low, high = min([at_ms, *times]), max([at_ms, *times])

    def place(time_ms: int) -> float:
        return round(20 + 960 * (time_ms - low) / max(high - low, 1), 1)

    return place(at_ms), [KeyDot(place(row.record.timestamp_ms), row) for row in rows]


def command_of_record(record: ConsumerRecord, bootstrap: str) -> str:
    """The command line that shows one record."""
    words = ["consume", record.topic, "--partition", str(record.partition), "--offset", str(record.offset)]
    return command_line(bootstrap, *words, "-n", "1", "-o", "json")
