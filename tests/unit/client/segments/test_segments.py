"""A page of segments is read as the broker wrote it, and refused if anybody else did; bytes before a time never fall."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.client.segments.segments import Bracket, bytes_before, bytes_between, parse

SEGMENT = {
    "base_offset": 0,
    "next_offset": 5,
    "bytes": 500,
    "first_ms": 10,
    "largest_ms": 20,
    "largest_offset": 3,
    "created_ms": 1,
    "modified_ms": None,
    "future": False,
    "late": False,
}


def page(*segments, at=None, **changes):
    partition = {"partition": 0, "log_start_offset": 0, "high_watermark": 9, "segments": list(segments)}
    if at is not None:
        partition["at"] = at
    whole = {"topic": "t", "id": "i", "now_ms": 7, "partitions": [partition, {"partition": 1, "error": "offline"}]}
    return json.dumps({**whole, **changes}).encode()


def test_a_page():
    later = {**SEGMENT, "base_offset": 5, "first_ms": -1, "largest_ms": -1, "modified_ms": 4, "late": True}
    found = parse(page(SEGMENT, later, at=[[0, 0, 5, 500]]), 1)
    assert (found.topic, found.id, found.now_ms, list(found.partitions)) == ("t", "i", 7, [0])
    one = found.partitions[0]
    assert (one.size_bytes, one.largest.base_offset, one.at) == (1000, 0, (Bracket(0, 0, 5, 500),))
    assert (one.segments[1].first_ms, one.segments[1].modified_ms, one.segments[1].late) == (None, 4, True)
    assert (found.covers([0]), found.covers([0, 1])) == (True, False)
    assert parse(page(later), 0).partitions[0].largest is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"partitions": 3}',
        b"[" * 100_000,
        page(),
        page(SEGMENT, at=[[0, 0, 5, 500]]),
        page({**SEGMENT, "bytes": "5"}),
        page({**SEGMENT, "bytes": True}),
        page({**SEGMENT, "bytes": 2**70}),
        page({**SEGMENT, "bytes": 1.5}),
        page(SEGMENT, now_ms=None),
        page(SEGMENT, partitions=[3]),
        page(3),
    ],
)
def test_whatever_is_no_page_is_refused(body):
    with pytest.raises(ValueError, match=r"."):
        parse(body, 0)


def test_bytes_by_the_offset_between_two_places():
    brackets = [Bracket(0, 0, 10, 1000), Bracket(8, 800, 10, 1000), Bracket(10, 1000, 10, 1000)]
    assert bytes_before(brackets, [5, 9, 10]) == [500.0, 900.0, 1000.0]
    assert bytes_between(brackets, [5, 9, 10]) == [400.0, 100.0]
    assert bytes_before(brackets[:1], [-3]) == [0.0]
    assert bytes_before(brackets[:1], [99]) == [1000.0]


@given(st.lists(st.tuples(*[st.integers(0, 100)] * 5), min_size=1))
def test_bytes_never_fall_whatever_is_told(rows):
    found = bytes_before([Bracket(*row[:4]) for row in rows], [row[4] for row in rows])
    assert found == sorted(found)
