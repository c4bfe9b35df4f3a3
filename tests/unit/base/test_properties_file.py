"""Kafka's form of a settings file is read as Java reads it."""

import pytest

from horolog.base.properties_file import PropertiesError, escape, escape_value, parse, parse_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"a=1\nb: 2\nc 3\nd\te\n", {"a": "1", "b": "2", "c": "3", "d": "e"}),
        (b"# no\n  ! no\n\n \t\n", {}),
        (b"a = b = c", {"a": "b = c"}),
        (b"a", {"a": ""}),
        (b"a=1\na=2", {"a": "2"}),
        (b"a=one,\\\n   two,\\\r\n\ttwo more", {"a": "one,two,two more"}),
        (b"a=ends in one backslash\\\\\nb=1", {"a": "ends in one backslash\\", "b": "1"}),
        (b"a=at the end\\", {"a": "at the end"}),
        (b"a\\ b\\=c\\:=1", {"a b=c:": "1"}),
        (b"a=\\t\\n\\r\\f\\u0041\\q\\\\", {"a": "\t\n\r\fAq\\"}),
        (b"a=trailing blanks stay  ", {"a": "trailing blanks stay  "}),
        (b"\xef\xbb\xbfa=\xc3\xa9", {"a": "\xe9"}),
        (b"a=\xe9", {"a": "\xe9"}),
        (b"a=1\\\n# joined", {"a": "1# joined"}),
    ],
)
def test_forms(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize("text", [b"a=\\u12", b"a=\\uzzzz", b"a=\\u"])
def test_broken_escapes_are_refused(text):
    with pytest.raises(PropertiesError, match="hexadecimal"):
        parse(text)


@pytest.mark.parametrize("value", ["", " a", "a\\b", "a\tb\nc\r\f", "#", "=", "\\u0041"])
def test_what_is_written_reads_the_same(value):
    assert parse(f"key={escape_value(value)}".encode()) == {"key": value}


def test_a_damaged_file_is_salvaged():
    assert parse_text("a=\\u00\nb=\\u0041c", salvage=True) == {"a": "u00", "b": "Ac"}
    assert parse_text("a=\\\\u(\\u(", salvage=True) == {"a": "\\u(u("}


@pytest.mark.parametrize("digits", ["", "00", "0x41", "+041", "1_23", " 041", "004g"])
def test_what_is_no_four_digits_is_refused(digits):
    with pytest.raises(PropertiesError, match="four hexadecimal digits"):
        parse_text(f"a=\\u{digits}")
    with pytest.raises(PropertiesError):
        parse_text("a=\\u00")


@pytest.mark.parametrize("text", ["a b", "=:#!", " \t\n\r\f", "\\u0041", "plain"])
def test_what_java_writes_is_read_again(text):
    assert parse_text(f"{escape(text)}={escape(text)}") == {text: text}
