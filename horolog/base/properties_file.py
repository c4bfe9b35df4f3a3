r"""Reads and writes Kafka's form of a settings file: Java properties.

A line is `key=value`, `key: value` or `key value`; `#` or `!` begins a comment; a backslash at the end of a line joins the next one,
whose leading blanks are dropped; `\t \n \r \f \uXXXX` stand for characters, a backslash before any other character for that
character. Of two lines with one key the last counts. Bytes that are not UTF-8 are read as Latin-1, which Java does with all.
"""

import re
from collections.abc import Iterator

_BLANKS = " \t\f"
_FOUR_DIGITS = re.compile("[0-9A-Fa-f]{4}")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class PropertiesError(ValueError):
    """A text that is not in this form; the message says where."""


def parse(data: bytes) -> dict[str, str]:
    """Keys and values; raises PropertiesError for a broken escape."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return parse_text(text)


def parse_text(text: str, *, salvage: bool = False) -> dict[str, str]:
    """Keys and values. To `salvage` a damaged file, a broken escape stands for the character behind its backslash."""
    pairs = map(_split, _logical_lines(text))
    return {_unescape(key, salvage=salvage): _unescape(value, salvage=salvage) for key, value in pairs}


def _logical_lines(text: str) -> Iterator[str]:
    lines = iter(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    for line in lines:
        whole = line.lstrip(_BLANKS)
        if not whole or whole[0] in "#!":
            continue
        while _goes_on(whole):
            whole = whole[:-1] + next(lines, "").lstrip(_BLANKS)
        yield whole


def _goes_on(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANKS:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in {"=", ":"}:
        rest = rest[1:].lstrip(_BLANKS)
    return line[:end], rest


def _unescape(text: str, *, salvage: bool) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char != "\\":
            out.append(char)
            continue
        escaped = text[position : position + 1]
        position += 1
        digits = _FOUR_DIGITS.match(text, position)
        if escaped != "u":
            out.append(_ESCAPES.get(escaped, escaped))
        elif digits is not None:
            out.append(chr(int(digits[0], 16)))
            position += 4
        elif salvage:
            out.append("u")
        else:
            raise PropertiesError(f"\\u{text[position : position + 4]} is not \\u and four hexadecimal digits")
    return "".join(out)


def escape(text: str) -> str:
    """A key or a value as Java writes it."""
    text = re.sub(r"[\\=:#! ]", lambda found: f"\\{found.group()}", text)
    for letter, character in _ESCAPES.items():
        text = text.replace(character, f"\\{letter}")
    return text


def escape_value(value: str) -> str:
    """A value as it may stand in a file for people, with no more backslashes than it needs."""
    escaped = (
        value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t").replace("\f", "\\f")
    )
    return "\\" + escaped if escaped.startswith(" ") else escaped
