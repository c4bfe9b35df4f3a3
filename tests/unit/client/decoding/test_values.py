"""Times, decimals and bytes are written so that people and JSON can read them, whatever they are."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.client.decoding.values import Instant, as_json, clock, day, deeper_than, plain, plain_text, readable_bytes


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_123_000_000, "2023-11-14T22:13:20.123Z"),
        (1_700_000_000_123_456_000, "2023-11-14T22:13:20.123456Z"),
        (1_700_000_000_123_456_789, "2023-11-14T22:13:20.123456789Z"),
        (-1, "1969-12-31T23:59:59.999999999Z"),
        (2**70, f"@{2**70}ns"),
        (-(2**80), f"@{-(2**80)}ns"),
    ],
)
def test_instants(ns, text):
    assert str(Instant(ns)) == text
    assert Instant.of_ms(5) == Instant(5_000_000)


def test_days_and_times_of_day():
    assert day(0) == "1970-01-01"
    assert day(-1) == "1969-12-31"
    assert day(10**9) == 10**9
    assert clock(3_723_004_000_000) == "01:02:03.004"
    assert clock(-1) == -1
    assert clock(86_400_000_000_000) == 86_400_000_000_000


@pytest.mark.parametrize("sign", ["\x1b[31m", "\u202e", "\x00", "\x9b", "\u200b", "\ue000", "\u2028"])
def test_one_sign_that_cannot_be_shown_leaves_a_text_a_text(sign):
    text = f"failed: {sign} after 3 s"
    assert readable_bytes(text.encode()) == text


def test_bytes_are_text_or_digits():
    assert readable_bytes(b"a b\n") == "a b\n"
    assert readable_bytes("ä".encode()) == "ä"
    assert readable_bytes(b"a\x00") == "6100"
    assert readable_bytes(b"\x00\x00\x00\x07") == "00000007"
    assert readable_bytes(b"\xff") == "ff"


def test_all_values_become_json():
    value = {
        "d": Decimal("1.50"),
        "big": Decimal("1E+3"),
        "t": Instant(0),
        "b": [b"\xff", b"x"],
        "n": float("nan"),
        "f": 1.5,
        False: True,
        None: 3,
        b"\xfe": "k",
    }
    assert plain(value) == {
        "d": "1.50",
        "big": "1000",
        "t": "1970-01-01T00:00:00.000Z",
        "b": ["ff", "x"],
        "n": "nan",
        "f": 1.5,
        "false": True,
        "null": 3,
        "fe": "k",
    }


def test_texts():
    assert plain_text("a") == "a"
    assert plain_text(7) == "7"
    assert plain_text({"a": 1}) == '{"a":1}'
    assert plain_text(None) == "null"
    assert plain_text(True) == "true"
    assert plain_text(Decimal("1.50")) == "1.50"
    assert plain_text(Instant(0)) == "1970-01-01T00:00:00.000Z"


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text()
        | st.binary()
        | st.builds(Instant, st.integers()),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.binary(), inner),
        max_leaves=10,
    )
)
def test_whatever_it_is_a_reader_of_json_reads_it(value):
    json.loads(as_json(value), parse_constant=pytest.fail)


@pytest.mark.parametrize(("value", "depth"), [(1, 0), ([], 1), ([[1], {"a": [2]}], 3), ({"a": {"b": {}}}, 3)])
def test_how_deep_a_value_nests(value, depth):
    assert not deeper_than(value, depth)
    if depth > 1:
        assert deeper_than(value, depth - 2)


def test_a_value_without_end_is_deeper_than_any_limit():
    value = []
    for _ in range(100_000):
        value = [value]
    assert deeper_than(value, 99_000)
    while value:  # piece by piece: Python takes it apart recursively
        value = value.pop()
