"""The one head and the walks over heads: they agree with each other, wherever the pieces that are read end."""

import struct

import pytest

from horolog.protocol.errors import DecodeError
from horolog.protocol.records.head import (
    HEADER_BYTES,
    LENGTH_ENDS_AT,
    SMALLEST_BYTES,
    CutShortError,
    Head,
    contradiction,
    heads,
    heads_in,
    read_head,
    seek,
    size_of_entry,
    whole_bytes,
)
from tests.unit.protocol.records.test_entries import LOG

EVERY = list(heads_in(LOG))
ENDS = [one.end for one in EVERY]


def read(size, position):
    assert 0 <= position <= len(LOG) - size
    return LOG[position : position + size]


@pytest.mark.parametrize("piece_bytes", [HEADER_BYTES, HEADER_BYTES + 1, 100, 200, 8192])
def test_the_walk_gives_the_same_heads_however_much_is_read_at_once(piece_bytes):
    assert list(heads(read, 0, len(LOG), piece_bytes)) == EVERY
    for start, one in zip([0, *ENDS], EVERY, strict=False):
        assert next(heads(read, start, len(LOG), piece_bytes)) == one


def test_a_head_says_where_its_entry_lies_and_what_is_in_it():
    for one in EVERY:
        assert read_head(LOG, one.position, one.position, Head) == one
        assert size_of_entry(LOG[one.position :]) == one.size_bytes
        assert one.size_bytes >= SMALLEST_BYTES[one.magic]
    assert [one.is_control for one in EVERY].count(True) == 1
    assert [one.is_compressed for one in EVERY] == [False, False, True, True, True, False, False]
    assert [one.count for one in EVERY] == [1, 1, 1, 1, 2, 1, 1]
    assert [one.producer_id for one in EVERY] == [-1, -1, -1, -1, -1, 4, -1]
    assert [one.leader_epoch for one in EVERY] == [-1, -1, -1, -1, 5, 2, -1]


@pytest.mark.parametrize("left_out", [1, 10, 40])
def test_an_entry_that_goes_on_behind_the_end_is_told_by_the_walk_over_a_file(left_out):
    with pytest.raises(CutShortError):
        list(heads(read, 0, len(LOG) - left_out))
    assert list(heads_in(LOG[: len(LOG) - left_out])) == EVERY[:-1]


@pytest.mark.parametrize("length", [-1, 0, 5, 13])
def test_a_size_that_no_entry_has_is_told_by_every_walk(length):
    broken = bytearray(LOG)
    broken[ENDS[0] + 8 : ENDS[0] + LENGTH_ENDS_AT] = length.to_bytes(4, "big", signed=True)
    data = bytes(broken)
    with pytest.raises(DecodeError, match=f"at {ENDS[0]}"):
        list(heads_in(data))
    with pytest.raises(DecodeError, match=f"at {ENDS[0]}"):
        seek(lambda size, at: data[at : at + size], 0, len(data), offset=8)


def test_a_magic_that_does_not_exist_is_told():
    with pytest.raises(DecodeError, match="magic 3"):
        list(heads_in(LOG[:16] + b"\3" + LOG[17:]))


def test_seek_stops_where_the_walk_meets_the_same():
    for offset in range(EVERY[-1].last_offset + 2):
        expected = next((one.position for one in EVERY if one.last_offset >= offset), None)
        found = seek(read, 0, len(LOG), offset=offset)
        assert (None if found is None else found[0]) == expected
    for limit in range(len(LOG)):
        expected = next(one for one in EVERY if one.end > limit)
        position, offset = seek(read, 0, len(LOG), limit=limit)
        assert position == expected.position
        assert max(0, expected.base_offset) <= offset <= expected.last_offset
    assert seek(read, 0, len(LOG), limit=len(LOG)) is None


def test_whole_bytes_end_with_the_last_whole_entry():
    for cut in range(len(LOG) + 1):
        assert whole_bytes(LOG[:cut]) == max((end for end in ENDS if end <= cut), default=0)


@pytest.mark.parametrize(("delta", "count"), [(-1, 0), (0, -1)])
def test_a_head_that_no_batch_has_is_told(delta, count):
    assert contradiction(0, 1) is None
    assert contradiction(delta, count) == f"last offset delta {delta}, {count} records"


@pytest.mark.parametrize(("magic", "size_bytes"), [(0, 25), (1, 33), (2, 60)])
def test_a_log_that_ends_in_a_head_of_a_size_that_none_has_is_damaged_and_not_cut_short(magic, size_bytes):
    last = struct.pack(">qiibx", 9, size_bytes - LENGTH_ENDS_AT, 0, magic)
    data = LOG + last
    with pytest.raises(DecodeError, match=f"magic {magic}, {size_bytes} bytes") as told:
        list(heads(lambda size, at: data[at : at + size], 0, len(data)))
    assert not isinstance(told.value, CutShortError)
