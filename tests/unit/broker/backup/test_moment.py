"""A moment is read back as it was written, and anything else is refused."""

import pytest

from horolog.broker.backup import moment
from horolog.broker.backup.moment import KeptPartition, KeptPiece, KeptSegment, Moment
from horolog.broker.bucket import sealed_lines
from horolog.broker.bucket.sealed_lines import FormatError, Sealed

SEGMENTS = (
    KeptSegment(5, 1_000, (KeptPiece(10, 77, "a" * 32, 0), KeptPiece(20, 78, "b" * 32, 30))),
    KeptSegment(9, 2_000, (KeptPiece(3, 79, "a" * 32, 10),)),
)
PARTITION = KeptPartition("t", 3, b"i" * 16, 6, 12, {"partition.metadata": b"\x00\xff"}, SEGMENTS)
MADE = Moment(7, 1_234, "c1", 2, b"record", [PARTITION, KeptPartition("u", 0, b"j" * 16, 0, 0, {}, ())], is_exact=False)


def test_a_moment_is_read_back():
    assert moment.decode(moment.encode(MADE)) == MADE


def test_what_it_names():
    assert (MADE.key, MADE.size_bytes) == ("moment/00000000000000000007", 33)
    assert MADE.objects() == {f"data/{'a' * 32}", f"data/{'b' * 32}"}
    assert MADE.by_place()["t", 3] is PARTITION
    assert Moment(1, 2, "c", 1, b"", [], is_whole=False).key == "unfinished/00000000000000000001"


@pytest.mark.parametrize("body", [b"no zlib", b"x\x9c+NM\xce\xcfKQ\xc8I-K\xcd\x01\x00"])
def test_a_body_that_is_none(body):
    fields = {"number": 1, "time": 2, "cluster": "c", "node": 1, "whole": True, "exact": True}
    with pytest.raises(FormatError, match="cannot be read"):
        moment.decode(sealed_lines.encode(Sealed("moment", bytes(16), fields, body)))


def test_damage_is_noticed():
    data = bytearray(moment.encode(MADE))
    data[-3] ^= 1
    with pytest.raises(FormatError):
        moment.decode(bytes(data))
