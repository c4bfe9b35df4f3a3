"""Marks: each is read as it was written, and damage is refused."""

import pytest

from horolog.broker.bucket import mark, sealed_lines
from horolog.broker.bucket.mark import WalMark
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.sealed_lines import FormatError, Sealed
from tests.support import golden_objects
from tests.support.damage import cuts, flips

MARK = WalMark(Wal(2, 17), 1, 500, (bytes(16), b"\xff" * 16), bytes(range(16)))


def test_a_mark_is_read_as_it_was_written():
    data = MARK.encode()
    assert mark.decode(data) == MARK
    assert data == golden_objects.read("mark-1")
    for hurt in (*cuts(data), *flips(data)):
        with pytest.raises(FormatError):
            mark.decode(hurt)


@pytest.mark.parametrize(
    "changed", [{"wal": "2"}, {"number": -1}, {"upto": "3"}, {"merged": None}, {"merged": ["00"]}, {"merged": [1]}]
)
def test_hostile_marks_are_refused(changed):
    fields = {"wal": "2-17", "number": 1, "upto": 3, "merged": []} | changed
    with pytest.raises(FormatError):
        mark.decode(sealed_lines.encode(Sealed("mark", MARK.nonce, fields)))


def test_a_mark_has_no_body():
    with pytest.raises(FormatError, match="no body"):
        mark.decode(sealed_lines.encode(Sealed("mark", MARK.nonce, {"merged": []}, b"body")))
