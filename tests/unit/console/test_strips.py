"""The strip of segments has each of them in its place, tells which are late, ahead and due, and stays small."""

from hypothesis import given
from hypothesis import strategies as st

from horolog.client.segments.segments import PartitionSegments, Segment, TopicSegments
from horolog.console.strips import LISTED_AT_MOST, NARROWEST, ROWS_AT_MOST, WIDTH, StripPiece, strip_of


def segment(first, largest, base=0, *, late=False, future=False):
    return Segment(base, base + 5, 100, first, largest, base, 1, None, future, late)


def told(*partitions):
    return TopicSegments(
        "t", "i", 0, {n: PartitionSegments(n, 0, 9, tuple(segments), ()) for n, segments in enumerate(partitions)}
    )


def test_places_and_kinds():
    found = strip_of(told([segment(0, 99), segment(100, 499), segment(500, 999)]), 0, 1000, 100)
    (row,) = found.rows
    assert row.pieces == (StripPiece(0, 100, "due"), StripPiece(100, 400, "held"), StripPiece(500, 500, "active"))
    assert (found.shown, found.due_count, found.late, found.ahead) == (3, 1, (), ())
    assert found.said == "3 segments in 1 partition, 1 older than retention"
    assert [one.segment.largest_ms for one in found.listed] == [999, 499, 99]
    assert (found.listed[0].active, found.listed[2].due) == (True, True)


def test_late_ones_and_those_ahead():
    segments = [segment(0, 600), segment(200, 300, 5, late=True), segment(700, 900, 10, future=True)]
    found = strip_of(told(segments), 0, 1000, None)
    assert (found.late_count, found.latest_ms, found.ahead_count, found.due_count) == (1, 400, 1, 0)
    assert found.late == (StripPiece(198, NARROWEST, "late"),)
    assert found.ahead == (StripPiece(900, NARROWEST, "ahead"),)
    assert "1 late" in found.said
    assert "1 with records ahead of now" in found.said
    without_first = strip_of(told([segment(5, 600), segment(None, 300, late=True)]), 0, 1000, None)
    assert without_first.latest_ms == 300


def test_only_what_lies_in_the_shown_times():
    segments = [segment(0, 10), segment(20, 30), segment(40, 50), segment(None, None)]
    found = strip_of(told(segments), 15, 35, None)
    assert [one.segment.largest_ms for one in found.listed] == [30]
    beyond = strip_of(told([segment(0, 100)]), 40, 60, None)
    assert beyond.rows[0].pieces == (StripPiece(0, WIDTH, "active"),)


def test_many_are_drawn_as_few():
    segments = [segment(n, n + 1, n) for n in range(10_000)]
    found = strip_of(told(*[segments] * (ROWS_AT_MOST + 2)), 0, 10_000, None)
    assert (len(found.rows), found.rows_left_out) == (ROWS_AT_MOST, 2)
    assert all(len(row.pieces) <= WIDTH // NARROWEST + 2 for row in found.rows)
    assert sum(one.segments for one in found.rows[0].pieces) == 10_000
    assert (len(found.listed), found.not_listed) == (LISTED_AT_MOST, 100_000 - LISTED_AT_MOST)


times = st.one_of(st.none(), st.integers(0, 2000))


@given(
    st.lists(st.lists(st.tuples(times, times, st.booleans(), st.booleans()), min_size=1, max_size=20), max_size=4),
    st.integers(0, 1000),
    st.integers(1, 1000),
)
def test_nothing_is_drawn_outside(partitions, since, length):
    rows = [[segment(one, other, late=late, future=future) for one, other, late, future in row] for row in partitions]
    found = strip_of(told(*rows), since, since + length, since)
    pieces = [*found.late, *found.ahead, *(one for row in found.rows for one in row.pieces)]
    assert all(one.x >= 0 and one.width >= NARROWEST and one.x + one.width <= WIDTH for one in pieces)
    assert sum(one.segments for row in found.rows for one in row.pieces) == found.shown
