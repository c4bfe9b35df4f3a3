"""Lines with a checksum and a body: any cut, flipped bit or added byte is refused."""

import json

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.bucket import sealed_lines
from horolog.broker.bucket.sealed_lines import FormatError, NewerFormat, Sealed, number_in, parse_nonce, topic_id_in
from tests.support.damage import cuts, flips

NONCE = bytes(range(16))
VALUES = st.one_of(st.integers(0, 2**63 - 1), st.text(max_size=8), st.lists(st.integers(0, 9), max_size=3))


@given(
    st.binary(min_size=16, max_size=16),
    st.dictionaries(st.sampled_from(["a", "number", "wal"]), VALUES),
    st.binary(max_size=40),
)
def test_what_is_written_is_read(nonce, fields, body):
    sealed = Sealed("mark", nonce, fields, body)
    assert sealed_lines.decode(sealed_lines.encode(sealed), "mark") == sealed


@pytest.mark.parametrize("body", [b"", b"body\nof two lines"])
def test_damage_is_refused(body):
    data = sealed_lines.encode(Sealed("mark", NONCE, {"number": 5}, body))
    for hurt in (*cuts(data), *flips(data), data + b"x", b"x" + data):
        with pytest.raises(FormatError):
            sealed_lines.decode(hurt, "mark")


def line(text):
    return b"%08x %s\n" % (crc32c(text), text)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\n", line(b"[1]"), line(b"{"), line(b"[" * 100_000), line(b'{"format": 1, "kind": "entry", "nonce": "00"}'),
        line(b'{"format": 1, "kind": "mark"}'), line(b'{"format": 1, "kind": "mark", "nonce": 7}'),
        line(b'{"format": 1, "kind": "mark", "nonce": "%s", "bytes": 3}' % (b"0" * 32)),
        line(b'{"format": 1, "kind": "mark", "nonce": "%s"}' % (b"A" * 32)),
        line(b'{"format": 1, "kind": "mark", "nonce": "%s"}' % (b"x" * 32)),
        line(b" " * sealed_lines.MAX_LINE_BYTES + b"{}"),
    ],
)  # fmt: skip
def test_hostile_lines_are_refused(data):
    with pytest.raises(FormatError):
        sealed_lines.decode(data, "mark")


def test_a_later_format_is_told_apart():
    data = line(json.dumps({"format": 2, "kind": "mark", "nonce": NONCE.hex()}).encode())
    with pytest.raises(NewerFormat, match="format 2; this release knows 1"):
        sealed_lines.decode(data, "mark")
    assert sealed_lines.decode(data, "mark", 2).format == 2


def test_what_cannot_be_written():
    with pytest.raises(ValueError, match="a nonce has 16 bytes, not 1"):
        sealed_lines.encode(Sealed("mark", b"1", {}))
    with pytest.raises(ValueError, match="too long"):
        sealed_lines.encode(Sealed("mark", NONCE, {"a": "x" * sealed_lines.MAX_LINE_BYTES}))


def test_fields():
    assert parse_nonce(NONCE.hex()) == NONCE
    assert number_in({"n": 2**63 - 1}, "n") == 2**63 - 1
    for value in (-1, 2**63, True, "1", None, 1.0):
        with pytest.raises(FormatError, match="is not a number"):
            number_in({"n": value}, "n")
    assert topic_id_in({"topic": "0f" * 16}) == b"\x0f" * 16
    for shown in (None, 5, "0f", "0F" * 16, "x" * 32):
        with pytest.raises(FormatError, match="is not a topic id"):
            topic_id_in({"topic": shown})
