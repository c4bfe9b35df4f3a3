"""JSON is read as it is written down; anything else is refused in a sentence."""

import contextlib
import json
import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.client.decoding import json_text
from horolog.client.decoding.values import DecodingError


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_documents(value):
    assert json_text.read(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not JSON: Expecting value at character 1"),
        (b"{", "not JSON"),
        (b"1 2", "Extra data at character 3"),
        (b"NaN", "NaN is not JSON"),
        (b'"\xff"', "byte 2 is not"),
        (b"[" * 100_000, "nests deeper"),
        (b"[" * 300 + b"]" * 300, "nests deeper than 200"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "nests deeper than 200"),
        (b"9" * 5000, "too many digits"),
    ],
)
def test_what_is_none(data, said):
    with pytest.raises(DecodingError, match=said):
        json_text.read(data)


def test_wide_is_not_deep():
    assert json_text.read(b"[" + b"[]," * 300 + b"{}]") == [[]] * 300 + [{}]


@given(st.binary())
def test_any_bytes_end(data):
    with contextlib.suppress(DecodingError):
        json_text.read(data)


def test_the_look_of_it():
    assert json_text.looks_like_it(b' \n{"a":1}')
    assert json_text.looks_like_it(b"[")
    assert not json_text.looks_like_it(b"42")
    began = time.process_time()
    assert not json_text.looks_like_it(b" " * 1_000_000)
    assert time.process_time() - began < 1


def test_exact_numbers_keep_their_digits():
    data = b'{"a": 0.1000000000000000000001, "b": 1, "c": 1e2}'
    found = json_text.read(data, exact=True)
    assert (str(found["a"]), found["b"], found["c"]) == ("0.1000000000000000000001", 1, Decimal(100))
    with pytest.raises(DecodingError, match="NaN is not JSON"):
        json_text.read(b"NaN", exact=True)
