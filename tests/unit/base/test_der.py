"""DER is read as far as it goes, and every fault of it is told as one."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.base import der
from horolog.base.der import DerError


def test_elements_stand_one_behind_the_other():
    found = list(der.elements(b"\x02\x01\x05\x30\x02\x05\x00"))
    assert found == [(2, b"\x05", b"\x02\x01\x05"), (0x30, b"\x05\x00", b"\x30\x02\x05\x00")]
    assert list(der.elements(b"")) == []


def test_long_lengths():
    content = bytes(300)
    assert der.first(b"\x04\x82\x01\x2c" + content).content == content


@pytest.mark.parametrize(
    "data",
    [b"", b"\x30", b"\x30\x05\x01", b"\x30\x80", b"\x30\x85\x01\x00\x00\x00\x00", b"\x30\x82\x01"],
)
def test_what_is_no_der(data):
    with pytest.raises(DerError):
        der.first(data)


def test_another_element_than_the_one_looked_for():
    with pytest.raises(DerError, match="0x30 belongs where a 0x2 is"):
        der.first(b"\x02\x01\x05", der.SEQUENCE)


@pytest.mark.parametrize(
    ("content", "number"),
    [
        ("550403", "2.5.4.3"),
        ("0992268993f22c640101", "0.9.2342.19200300.100.1.1"),
        ("2a864886f70d010901", "1.2.840.113549.1.9.1"),
        ("883703", "2.999.3"),
    ],
)
def test_object_identifiers(content, number):
    assert der.dotted(bytes.fromhex(content)) == number


@pytest.mark.parametrize("content", [b"", b"\x55\x84"])
def test_what_is_no_object_identifier(content):
    with pytest.raises(DerError):
        der.dotted(content)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data):
    with contextlib.suppress(DerError):
        assert b"".join(one.encoded for one in der.elements(data)) == data
