"""Fences: each is read as it was written, and damage is refused."""

import dataclasses

import pytest

from horolog.broker.bucket import fence, sealed_lines
from horolog.broker.bucket.fence import Fence
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.sealed_lines import FormatError, Sealed
from tests.support import golden_objects
from tests.support.damage import cuts, flips

FENCE = Fence(Wal(2, 17), 42, 3, bytes(range(16)))


def test_a_fence_is_read_as_it_was_written():
    data = FENCE.encode()
    assert fence.decode(data) == FENCE
    assert data == golden_objects.read("fence-1")
    for hurt in (*cuts(data), *flips(data)):
        with pytest.raises(FormatError):
            fence.decode(hurt)


@pytest.mark.parametrize("changed", [{"wal": "2"}, {"wal": None}, {"number": -1}, {"by": "3"}])
def test_hostile_fences_are_refused(changed):
    fields = {"wal": "2-17", "number": 42, "by": 3} | changed
    with pytest.raises(FormatError):
        fence.decode(sealed_lines.encode(Sealed("fence", FENCE.nonce, fields)))


def test_a_fence_has_no_body():
    with pytest.raises(FormatError, match="no body"):
        fence.decode(sealed_lines.encode(Sealed("fence", FENCE.nonce, {}, b"body")))
    assert dataclasses.replace(FENCE, number=0).encode()
