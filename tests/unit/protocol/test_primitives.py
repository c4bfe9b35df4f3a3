"""Varints and tag sections, at their edges."""

import re

import pytest

from horolog.protocol.errors import DecodeError, EncodeError
from horolog.protocol.primitives import (
    COPY_BELOW_BYTES,
    MAX_VARLONG_BYTES,
    Buffer,
    Part,
    Unread,
    add_records,
    check_tag_end,
    decode_unsigned_varint,
    decode_varint,
    encode_unsigned_varint,
    encode_varint,
    records_size,
    refusal,
    skip_tags,
    tag_section,
)

UNSIGNED = {
    0: "00",
    1: "01",
    127: "7f",
    128: "8001",
    300: "ac02",
    16383: "ff7f",
    16384: "808001",
    (1 << 32) - 1: "ffffffff0f",
}
SIGNED = {0: "00", -1: "01", 1: "02", -2: "03", 63: "7e", -64: "7f", 64: "8001", -(1 << 31): "ffffffff0f"}


@pytest.mark.parametrize(("value", "encoded"), UNSIGNED.items())
def test_unsigned_varints(value: int, encoded: str) -> None:
    assert encode_unsigned_varint(value).hex() == encoded
    assert decode_unsigned_varint(b"\xff" + bytes.fromhex(encoded) + b"\xff", 1) == (value, 1 + len(encoded) // 2)


@pytest.mark.parametrize(("value", "encoded"), SIGNED.items())
def test_signed_varints_are_zigzagged(value: int, encoded: str) -> None:
    assert encode_varint(value).hex() == encoded
    assert decode_varint(memoryview(bytes.fromhex(encoded)), 0) == (value, len(encoded) // 2)


def test_a_varlong_has_room_for_64_bits() -> None:
    for value in (-(1 << 63), (1 << 63) - 1):
        encoded = encode_varint(value)
        assert decode_varint(encoded, 0, MAX_VARLONG_BYTES) == (value, len(encoded))
        with pytest.raises(DecodeError, match="longer than 5"):
            decode_varint(encoded, 0)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80\x80\x80\x80"])
def test_a_varint_that_ends_too_early_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError, match="end inside"):
        decode_unsigned_varint(data, 0)


@pytest.mark.parametrize("value", [-1, 1 << 64])
def test_values_beyond_64_bits_are_refused(value: int) -> None:
    with pytest.raises(EncodeError):
        encode_unsigned_varint(value)


def test_tags_are_skipped_by_their_sizes() -> None:
    section = tag_section([(0, [b"abc"]), (300, [b"d" * 100, b"e" * 100])])
    data = section + b"rest"
    assert skip_tags(data, 1, data[0], len(data), 1_000) == (len(section), 998)


@pytest.mark.parametrize(
    "section",
    [
        bytes.fromhex("05 00"),  # five tags in one byte
        bytes.fromhex("01 00 7f 00"),  # a tag of 127 bytes, one of which is there
        bytes.fromhex("ffffffff0f 00 00"),  # four thousand million tags
        bytes.fromhex("01 ffffffffffff 00"),  # a tag number that never ends
    ],
)
def test_tag_sections_that_claim_too_much_are_refused(section: bytes) -> None:
    with pytest.raises(DecodeError):
        skip_tags(section, 1, section[0], len(section))


def test_small_records_are_copied_and_large_ones_are_not() -> None:
    small, large = b"s" * (COPY_BELOW_BYTES - 1), [b"l" * COPY_BELOW_BYTES, memoryview(b"m")]
    out: list[Buffer] = [b"head"]
    parts: list[Buffer] = []
    add_records(small, len(small), out, parts)
    assert (out, parts) == ([b"head", small], [])
    add_records(large, records_size(large), out, parts)
    assert out == []
    assert parts == [b"head" + small, *large]
    assert parts[1] is large[0]


def test_unread_records_are_a_part_of_their_own_and_stay_where_they_lie() -> None:
    class Elsewhere(Unread):
        def __len__(self) -> int:
            return 3

    records = Elsewhere()
    parts: list[Part] = []
    out: list[Buffer] = [b"be", b"fore"]
    add_records(records, len(records), out, parts)
    assert (parts, out) == ([b"before", records], [])
    assert records.keep() is False
    records.let_go()
    assert not records.takes_turns()
    for ask in (records.read, lambda: records.send(1), lambda: records.take(1), lambda: len(Unread())):
        with pytest.raises(NotImplementedError):
            ask()


def test_the_size_of_records() -> None:
    assert [records_size(each) for each in (None, b"", b"abc", [b"a", memoryview(b"bc")])] == [0, 0, 3, 3]


def test_a_tag_whose_value_ends_elsewhere_is_refused() -> None:
    check_tag_end("field", 7, 7)
    with pytest.raises(DecodeError, match=r"field: its value ends \+2 bytes from"):
        check_tag_end("field", 5, 7)


@pytest.mark.parametrize(
    ("size", "left", "objects_left", "words"),
    [(5, 9, -1, "5 elements, too many"), (-1, 9, 0, "may not be null"), (50, 9, 0, r"claims 50 .*, 9 bytes are left")],
)
def test_a_length_that_cannot_be_is_refused_with_its_reason(size, left, objects_left, words) -> None:
    assert re.search(words, str(refusal("field", size, left, objects_left)))
