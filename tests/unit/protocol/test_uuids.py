"""Ids as Kafka writes them, and nothing else taken for one."""

import pytest

from horolog.protocol.uuids import parse_uuid, show_uuid


def test_an_id_is_22_characters_and_comes_back():
    assert show_uuid(bytes(16)) == "A" * 22
    assert parse_uuid("3QwsrJSIRfKzvCSObwhb_Q").hex() == "dd0c2cac948845f2b3bc248e6f085bfd"
    for value in (bytes(range(16)), b"\xff" * 16):
        assert parse_uuid(show_uuid(value)) == value


@pytest.mark.parametrize("text", ["", "AAAA", "A" * 21, "A" * 23, "A" * 44, "!" * 22, "é" * 22])
def test_anything_else_is_no_id(text):
    with pytest.raises(ValueError, match="is not an id"):
        parse_uuid(text)
