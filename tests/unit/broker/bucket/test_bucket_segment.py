"""Lines about segments are read as they were written, and anything else is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.bucket.bucket_segment import are_in_order, decode_lines, described, encode_lines
from horolog.broker.bucket.names import SegmentName
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.log.integrity import Contents

FOLDER = "data/t/3"
NONCE = bytes(range(16))
NUMBERS = st.integers(-1, 2**63 - 1)


def segment(base, next_offset, **contents):
    return described(FOLDER, SegmentName(4, base, NONCE), Contents(9, next_offset, **contents), 7)


@given(st.integers(0, 2**62), st.integers(1, 2**20), NUMBERS, NUMBERS, NUMBERS, st.integers(0, 255))
def test_a_line_is_read_as_it_was_written(base, count, largest, largest_at, first, magics):
    one = segment(
        base,
        base + count,
        max_timestamp=largest,
        max_timestamp_offset=largest_at,
        first_timestamp=first,
        magics=magics,
        holes=((0, 3),),
    )
    assert decode_lines(encode_lines([one]), FOLDER) == (one,)
    assert one.contents.holes == ()
    assert one.next_offset == base + count


def test_a_line_that_people_may_look_at():
    one = segment(5, 9, max_timestamp=77, max_timestamp_offset=6, first_timestamp=70, magics=4)
    line = b'["4-00000000000000000005-%s",9,9,70,77,6,4,7]\n' % NONCE.hex().encode()
    assert encode_lines([one]) == line
    assert one.log_key == f"{FOLDER}/4-00000000000000000005-{NONCE.hex()}.log"
    assert one.meta_key == one.log_key.removesuffix("log") + "meta"


@pytest.mark.parametrize(
    "change",
    [{0: "x"}, {0: None}, {1: 5}, {1: True}, {1: "9"}, {2: 0}, {3: -2}, {4: 2**63}, {7: 1.0}, {8: 1}],
)
def test_hostile_lines_are_refused(change):
    line = json.loads(encode_lines([segment(5, 9)]))
    for at, value in change.items():
        line[at:] = [value] if at == 8 else [value, *line[at + 1 :]]
    with pytest.raises(FormatError):
        decode_lines(json.dumps(line).encode() + b"\n", FOLDER)


@pytest.mark.parametrize("data", [b"[]\n", b"{}\n", b"\n", b"[" * 100_000 + b"\n", b'["a"]'])
def test_lines_of_something_else_are_refused(data):
    with pytest.raises(FormatError):
        decode_lines(data, FOLDER)


def test_segments_are_in_the_order_of_their_offsets():
    first, second, later = segment(0, 5), segment(5, 9), segment(12, 20)
    assert are_in_order([first, second, later])
    assert not are_in_order([first, segment(4, 9)])
    with pytest.raises(FormatError, match="order"):
        decode_lines(encode_lines([second, first]), FOLDER)
