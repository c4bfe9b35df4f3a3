"""Reads DER, the encoding of certificates: as much of it as names and times need. Every fault is a DerError."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

SEQUENCE: Final = 0x30
SET: Final = 0x31
OBJECT_IDENTIFIER: Final = 0x06
UTC_TIME: Final = 0x17
GENERALIZED_TIME: Final = 0x18

LONG_FORM: Final = 0x80
MOST_LENGTH_BYTES: Final = 4


class DerError(ValueError):
    """The bytes are not DER, or not of the expected form."""


class Element(NamedTuple):
    """One value with its tag; `encoded` is both, with the length between."""

    tag: int
    content: bytes
    encoded: bytes


def first(data: bytes, tag: int | None = None) -> Element:
    """The element that the bytes begin with."""
    found = next(elements(data), None)
    if found is None:
        raise DerError("it ends early")
    if tag is not None and found.tag != tag:
        raise DerError(f"a {tag:#x} belongs where a {found.tag:#x} is")
    return found


def elements(data: bytes) -> Iterator[Element]:
    """The elements one after the other."""
    at = 0
    while at < len(data):
        start, size = _extent(data, at)
        end = start + size
        if end > len(data):
            raise DerError("it ends early")
        yield Element(data[at], data[start:end], data[at:end])
        at = end


def _extent(data: bytes, at: int) -> tuple[int, int]:
    """Where the content of the element at an index begins, and its length."""
    if at + 2 > len(data):
        raise DerError("it ends early")
    size = data[at + 1]
    if size < LONG_FORM:
        return at + 2, size
    count = size - LONG_FORM
    start = at + 2 + count
    if not 1 <= count <= MOST_LENGTH_BYTES or start > len(data):
        raise DerError("an invalid length")
    return start, int.from_bytes(data[at + 2 : start], "big")


def dotted(content: bytes) -> str:
    """An object identifier in dotted notation."""
    if not content or content[-1] & LONG_FORM:
        raise DerError("an invalid object identifier")
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & LONG_FORM:
            numbers.append(number)
            number = 0
    top = min(numbers[0] // 40, 2)
    return ".".join(map(str, (top, numbers[0] - 40 * top, *numbers[1:])))
