"""Files of rows: what was encoded is decoded, and every damage to it is refused with its reason."""

import struct

import pytest

from horolog.broker.log.producers.row_file import RowFileError, decode, encode

ROW = struct.Struct(">qh")
ROWS = [(1, 2), (-5, 7), (2**40, 0)]
FILE = encode(3, ROW, [ROW.pack(*row) for row in ROWS])


def test_rows_come_back_as_they_were():
    assert list(decode(FILE, 3, ROW)) == ROWS
    assert list(decode(encode(3, ROW, []), 3, ROW)) == []


@pytest.mark.parametrize("size", range(10))
def test_less_than_a_head_is_refused(size):
    with pytest.raises(RowFileError, match="less than a head"):
        decode(FILE[:size], 3, ROW)


def test_another_version_is_refused():
    with pytest.raises(RowFileError, match="version 3 is not 4"):
        decode(FILE, 4, ROW)


@pytest.mark.parametrize("position", range(2, len(FILE)))
def test_a_changed_byte_is_noticed_wherever_it_is(position):
    changed = bytearray(FILE)
    changed[position] ^= 1
    with pytest.raises(RowFileError, match="checksum"):
        decode(bytes(changed), 3, ROW)


def test_rows_of_another_size_are_refused():
    with pytest.raises(RowFileError, match="3 rows do not take"):
        decode(FILE, 3, struct.Struct(">q"))


def test_rows_of_another_size_are_not_written():
    with pytest.raises(AssertionError, match="1 rows take 13 bytes"):
        encode(3, ROW, [b"abc"])
