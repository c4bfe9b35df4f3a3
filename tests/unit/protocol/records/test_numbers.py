"""Numbers in bytes are read as `struct` reads them, in the way of plain code and in that of compiled code."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.protocol.records import numbers

IS_COMPILED = not numbers.__file__.endswith(".py")


@pytest.fixture(params=[False, True], ids=["plain", "compiled"], scope="module")
def form(request):
    """Compiled code has one way; plain code can take both."""
    if IS_COMPILED:
        if not request.param:
            pytest.skip("the module is compiled")
        yield numbers
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbers, "IS_COMPILED", request.param)
        yield numbers


@given(number=st.integers(-(2**31), 2**31 - 1), front=st.binary(max_size=9))
def test_four_bytes(form, number, front):
    assert form.int32_at(front + struct.pack(">i", number) + b"x", len(front)) == number


@given(number=st.integers(-(2**63), 2**63 - 1), front=st.binary(max_size=9))
def test_eight_bytes(form, number, front):
    assert form.int64_at(front + struct.pack(">q", number) + b"x", len(front)) == number
