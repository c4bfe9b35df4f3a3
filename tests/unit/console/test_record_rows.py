"""The rows of records: values cut and whole, trees within bounds, marks of late records in their places."""

import shlex

from horolog.client.decoding import Decoded
from horolog.client.values.types import ConsumerRecord
from horolog.console.reading import ShownRecord
from horolog.console.record_rows import (
    VALUE_AT_MOST,
    WrittenMark,
    command_of_record,
    key_dots,
    key_text,
    row_of,
    rows_of,
    tree_parts,
    with_marks,
)


def record(time_ms, offset=0, value=b"v", headers=()):
    return ConsumerRecord("t", 3, offset, time_ms, 0, b"k", value, tuple(headers))


def found(time_ms, late_ms=0, value="v", **more):
    raw = None if value is None else value.encode()
    decoded = Decoded("k", value, "text", "text", None, None, None, None)
    return ShownRecord(record(time_ms, value=raw, **more), decoded, late_ms)


def test_keys_in_addresses():
    assert (key_text(None), key_text(b"a"), key_text(b"\xff\x01")) == (None, "a", "0xff01")


def test_values_are_cut():
    assert row_of(found(1)).whole is None
    long = row_of(found(1, value="x" * 20_000))
    assert (len(long.value), len(long.whole)) == (240, VALUE_AT_MOST)
    assert row_of(found(1, value=None)).value is None
    assert (tree_parts(0), tree_parts(100)) == (1000, 300)


def test_headers_and_names():
    row = row_of(found(1, offset=7, headers=[(b"a", None), (b"\xff", b"b")]))
    assert row.headers == (("a", ""), ("0xff", "b"))
    assert row.id == "r3-7"


def test_marks_stand_where_late_records_were_written():
    rows = rows_of([found(10), found(20, late_ms=5), found(30, late_ms=15), found(40, late_ms=90)], 10, is_after=True)
    before, after = with_marks(rows[:2], rows[2:], 28, 100)
    assert [mark_or_time(line) for line in before] == [10, 20, "mark of 20"]
    assert [mark_or_time(line) for line in after] == [30, 40, "mark of 30"], "one mark is later than the page"


def mark_or_time(line):
    is_mark = isinstance(line, WrittenMark)
    return f"mark of {line.late.record.timestamp_ms}" if is_mark else line.record.timestamp_ms


def test_the_timeline_of_a_key():
    rows = rows_of([found(100), found(300)], 0, is_after=True)
    at, dots = key_dots(rows, 200)
    assert (at, [dot.x for dot in dots]) == (500.0, [20.0, 980.0])
    assert key_dots([], 200) == (20.0, [])


def test_the_command_of_one_record():
    words = shlex.split(command_of_record(record(1, offset=9), "host:9092"))
    assert words[:3] == ["horolog", "consume", "t"]
    assert words[3:9] == ["--partition", "3", "--offset", "9", "-n", "1"]
