"""What all encoders share: refusals with a place, bytes, and times."""

from decimal import Decimal

import pytest

from horolog.client.encoding.fitting import EncodingError, as_bytes, instant_ns, no_fit, within


def test_a_refusal_shows_the_value_and_its_place():
    error = no_fit("x" * 100, "a number")
    assert str(error) == f"'{'x' * 59} is not a number"
    assert str(no_fit(Decimal("1.50"), "a whole number")) == "1.50 is not a whole number"
    assert str(within("a", within("b", EncodingError("odd")))) == "field a.b: odd"


def test_bytes_are_text_or_objects():
    assert [as_bytes(one) for one in ("ä", {"hex": "00ff"}, {"base64": "AP8="})] == [b"\xc3\xa4", b"\0\xff", b"\0\xff"]
    for value in ({"hex": "0"}, {"hex": 7}, {"base64": "?"}):
        with pytest.raises(EncodingError, match="is not hexadecimal digits or base64"):
            as_bytes(value)
    for value in (7, None, {}, {"hex": "00", "base64": ""}):
        with pytest.raises(EncodingError, match="is not bytes"):
            as_bytes(value)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1970-01-01T00:00:00.000000007Z", 7),
        ("1970-01-01T00:00:01.5", 1_500_000_000),
        ("1970-01-01T01:00:00.25+01:00", 250_000_000),
        ("1969-12-31T23:59:59.9999999999Z", -1),
    ],
)
def test_a_time_keeps_its_nanoseconds(text, ns):
    assert instant_ns(text) == ns


def test_a_local_time_has_no_offset():
    assert instant_ns("1970-01-01T01:00:00+01:00", is_local=True) == 3_600_000_000_000
    with pytest.raises(ValueError, match="noon"):
        instant_ns("noon")
