"""Records as text: everything written can be read back, and text that cannot be a record is said to be none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.client.values.types import ConsumerRecord
from horolog.commands.online.record_text import (
    Line,
    RecordTextError,
    TemplateError,
    json_writer,
    read_json,
    read_plain,
    template_writer,
    text_writer,
)
from horolog.commands.online.units import Timestamps

DATA = st.none() | st.binary(max_size=20) | st.text(max_size=10).map(lambda text: text.encode(errors="replace"))
RECORDS = st.builds(
    ConsumerRecord,
    topic=st.just("t"),
    partition=st.integers(0, 9),
    offset=st.integers(0, 2**63 - 1),
    timestamp_ms=st.integers(-1, 2**53),
    timestamp_type=st.integers(0, 1),
    key=DATA,
    value=DATA,
    headers=st.lists(st.tuples(st.binary(max_size=5), DATA), max_size=3).map(tuple),
)


def no_time(text):
    raise AssertionError(text)


@given(RECORDS)
def test_json_is_read_back_as_the_same_record(record):
    line = read_json(json_writer(record), Timestamps("ms", no_time, str))
    time_ms = record.timestamp_ms if record.timestamp_ms >= 0 else None
    assert line == Line(record.value, record.key, record.headers, time_ms, record.partition)


@given(RECORDS)
def test_json_is_one_line_of_plain_text(record):
    written = json_writer(record)
    assert written.endswith(b"\n")
    assert written.count(b"\n") == 1
    written.decode()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"value": 1}', b"1"),
        ('{"value": true}', b"true"),
        ('{"value": [1, "x"]}', b'[1,"x"]'),
        ("{}", None),
        ('{"value": ""}', b""),
    ],
)
def test_values_that_are_no_text_are_sent_as_json(text, value):
    assert read_json(text.encode(), Timestamps(None, no_time, str)).value == value


def test_headers_and_times_have_short_forms():
    line = read_json(b'{"headers": {"a": "1", "b": null}, "timestamp": "1h-ago"}', Timestamps(None, len, str))
    assert (line.headers, line.timestamp_ms) == (((b"a", b"1"), (b"b", None)), 6)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("[1]", "not an object"),
        ('{"valeu": "x"}', "'valeu'"),
        ('{"value_base64": "?"}', "not base64"),
        ('{"value_base64": 7}', "not base64"),
        ('{"headers": 7}', "headers: expected"),
        ('{"headers": [{"value": "x"}]}', "headers: expected"),
        ('{"timestamp": true}', "timestamp: expected"),
        ('{"timestamp": 1.5}', "timestamp 1.5 is not a whole number"),
        ('{"timestamp": 1e999}', "timestamp: expected"),
        ('{"partition": -1}', "partition: expected"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_record_is_said_to_be_none(text, said):
    with pytest.raises(RecordTextError, match=said):
        read_json(text.encode(), Timestamps(None, no_time, str))


def test_lines_with_keys():
    assert read_plain(b"k=v=w", b"=") == Line(b"v=w", b"k")
    assert read_plain(b"k=v", None) == Line(b"k=v")
    with pytest.raises(RecordTextError, match="'='"):
        read_plain(b"kv", b"=")


RECORD = ConsumerRecord("t", 3, 7, 1000, 0, b"k", None, ((b"h", b"1"), (b"g", None)))


def test_templates():
    def written(template):
        return template_writer(template, str)(RECORD)

    assert written("%t %p %o %k %s %v %T %D %h %K %S %%") == b"t 3 7 k   1000 1000 h=1,g= 1 -1 %"
    assert written("\\n\\t\\r\\0\\\\\\x41\u00e4") == "\n\t\r\0\\A\u00e4".encode()


@pytest.mark.parametrize("template", ["%q", "%", "\\", "\\q", "\\x4", "%s%"])
def test_templates_that_mean_nothing_are_refused(template):
    with pytest.raises(TemplateError):
        template_writer(template, str)


def test_text_cannot_drive_a_terminal():
    write = text_writer(str, lambda text: text.encode("unicode_escape").decode())
    assert write(RECORD._replace(value=b"\x1b[2J\n")) == b"1000  t-3@7  k  \\x1b[2J\\n\n"
    assert write(RECORD._replace(timestamp_ms=-1)).startswith(b"no time  ")
