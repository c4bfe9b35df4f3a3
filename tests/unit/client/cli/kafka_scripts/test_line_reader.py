"""A line of the console producer as a record."""

import pytest

from horolog.client.cli.kafka_scripts.line_reader import LineReader
from horolog.commands.errors import UsageError
from horolog.commands.online.record_text import Line, RecordTextError

KEYED = {"parse.key": "true"}


@pytest.mark.parametrize(
    ("given", "line", "record"),
    [
        ({}, b"a\tb", Line(b"a\tb")),
        (KEYED, b"k\tv\tw", Line(b"v\tw", b"k")),
        ({**KEYED, "key.separator": "::"}, b"k::v", Line(b"v", b"k")),
        ({**KEYED, "null.marker": "NULL"}, b"k\tNULL", Line(None, b"k")),
        ({**KEYED, "null.marker": "NULL"}, b"NULL\tv", Line(b"v")),
        ({"parse.headers": "true"}, b"h:1,i:2\tv", Line(b"v", None, ((b"h", b"1"), (b"i", b"2")))),
        ({**KEYED, "parse.headers": "true"}, b"h:\tk\tv", Line(b"v", b"k", ((b"h", b""),))),
        ({"parse.headers": "true"}, b"\tv", Line(b"v")),
        ({"parse.headers": "true", "null.marker": "-"}, b"-\tv", Line(b"v")),
        ({**KEYED, "ignore.error": "true"}, b"alone", Line(b"alone")),
    ],
)
def test_lines_are_read(given, line, record):
    assert LineReader(given).read(line) == record


@pytest.mark.parametrize(("given", "line"), [(KEYED, b"alone"), ({"parse.headers": "true"}, b"h\tv")])
def test_a_line_without_its_separator_is_refused(given, line):
    with pytest.raises(RecordTextError):
        LineReader(given).read(line)


def test_a_misspelt_property_is_refused():
    with pytest.raises(UsageError, match=r"parse\.keys"):
        LineReader({"parse.keys": "true"})
