"""One flipped bit outside of the checksum is corrected where the neighbours tell, and nothing else is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horolog.broker.log.integrity.corrections import as_batch, corrected, moved, with_epoch
from tests.unit.broker.log.integrity.test_scanning import batch

KINDS = [(2, 0, 3), (2, 4, 3), (1, 0, 1), (1, 1, 3), (0, 0, 1), (0, 1, 3)]
UNCOVERED_BITS = {2: [*range(12 * 8), *range(16 * 8, 17 * 8)], 1: list(range(12 * 8)), 0: list(range(12 * 8))}


def flipped(data, bit):
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@settings(max_examples=300)
@given(st.sampled_from(KINDS), st.data())
def test_any_bit_of_offset_size_and_magic_is_corrected(kind, data):
    magic, codec, count = kind
    good = batch(100, count, magic, codec)
    bad = flipped(good, data.draw(st.sampled_from(UNCOVERED_BITS[magic])))
    assert corrected(bad, 100, 100 + count) == good, "between neighbours"
    assert corrected(bad, 100, None) == good, "at the end of a log without gaps"


@settings(max_examples=200)
@given(st.sampled_from(KINDS), st.data())
def test_what_the_checksum_covers_is_not_corrected(kind, data):
    magic, codec, count = kind
    good = batch(100, count, magic, codec)
    first = 17 * 8 if magic == 2 else 12 * 8
    bad = flipped(good, data.draw(st.integers(first, 8 * len(good) - 1)))
    assert corrected(bad, 100, 100 + count) is None


def test_in_a_log_with_gaps_an_offset_that_fits_stays():
    good = batch(100, 2)
    assert corrected(good, 90, 110) == good


def test_where_the_neighbours_leave_a_choice_nothing_is_corrected():
    bad = flipped(batch(100, 2), 40 + 7)
    assert corrected(bad, 90, 110) is None
    assert corrected(bad, 90, 102) is None, "12 offsets are free, the batch takes 2"


def test_at_the_end_more_than_one_wrong_bit_is_left():
    assert corrected(flipped(flipped(batch(100, 2), 40), 50), 100, None) is None


def test_at_the_end_of_a_log_with_gaps_only_an_offset_that_goes_back_is_wrong():
    ahead, back = flipped(batch(100, 2), 56), flipped(batch(100, 2), 58)
    assert corrected(ahead, 100, None, dense=False) == ahead
    assert corrected(back, 100, None, dense=False) is None


def test_at_the_end_of_a_log_with_gaps_an_offset_that_no_segment_can_hold_is_corrected():
    good, end_offset = batch(100, 2), 2**31
    assert corrected(flipped(good, 3 * 8 + 2), 100, None, dense=False, end_offset=end_offset) == good
    assert corrected(flipped(batch(103, 2), 3 * 8 + 2), 100, None, dense=False, end_offset=end_offset) is None


@pytest.mark.parametrize(("magic", "codec", "count"), KINDS)
def test_a_last_batch_one_bit_too_far_is_moved(magic, codec, count):
    good = batch(100, count, magic, codec)
    far = as_batch(flipped(good, 50), 7)
    if magic == 0 and codec:
        assert far is None, "the offsets inside are whole: it is damage, and corrected as such"
        return
    assert far.position == 7
    assert moved(far, 100) == good
    assert moved(as_batch(good, 0), 95) is None


def test_an_epoch_is_no_part_of_the_checksum():
    changed = as_batch(with_epoch(as_batch(batch(5), 0), 7), 0)
    assert (changed.leader_epoch, changed.base_offset) == (7, 5)


def test_rubbish_is_nothing():
    for data in (b"", b"x", bytes(100), b"\xff" * 61):
        assert corrected(data, 0, None) is None
