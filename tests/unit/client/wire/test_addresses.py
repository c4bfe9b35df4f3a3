"""Bootstrap addresses as people write them."""

import pytest

from horolog.client.wire.addresses import parse_addresses


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", [("a", 9092)]),
        ("a:1, b:65535 ,", [("a", 1), ("b", 65535)]),
        ("[::1]:9", [("::1", 9)]),
        ("[::1]", [("::1", 9092)]),
        ("fe80::1", [("fe80::1", 9092)]),
        (["x:1", "y:2"], [("x", 1), ("y", 2)]),
    ],
)
def test_read(text, expected):
    assert parse_addresses(text) == expected


@pytest.mark.parametrize("text", ["", " , ", ":9092", "a:0", "a:65536", "a:b", "a:-1", "a:٣"])
def test_refused(text):
    with pytest.raises(ValueError, match=r"address"):
        parse_addresses(text)
