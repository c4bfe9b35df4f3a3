"""No record is lost or invented between buckets; pauses are not filled, and borders are round in the zone asked for."""

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.client.charting.buckets import (
    LENGTHS_MS,
    MAX_BUCKETS,
    Stretch,
    Timeline,
    bucket_length,
    fill,
    frame,
    from_lookups,
    future,
    last_until,
    span,
    with_starts,
)

STRETCHES = st.lists(
    st.tuples(st.integers(1, 10_000), st.integers(0, 5000), st.integers(0, 300)).map(
        lambda one: Stretch(one[0] - one[1] - 1, one[0], one[2])
    ),
    min_size=1,
    max_size=20,
)


@given(STRETCHES, st.integers(2, 3000))
def test_every_record_is_in_one_bucket(stretches, bucket_ms):
    first, last = span(stretches)
    timeline = frame(first, last, bucket_ms, UTC)
    fill(timeline, stretches)
    assert sum(timeline.rounded()) == sum(one.records for one in stretches)
    assert all(count >= 0 for count in timeline.rounded())


@given(STRETCHES, st.integers(0, 10_000))
def test_what_lies_outside_is_left_out(stretches, start):
    timeline = Timeline(start, 100, [0.0] * 10)
    fill(timeline, stretches)
    assert 0 <= sum(timeline.rounded()) <= sum(one.records for one in stretches)


@given(st.lists(st.integers(0, 50), min_size=2, max_size=40))
def test_lookups_are_differences(steps):
    offsets = [sum(steps[: n + 1]) for n in range(len(steps))]
    timeline = Timeline(0, 10, [0.0] * (len(offsets) - 1))
    from_lookups(timeline, offsets)
    assert timeline.rounded() == steps[1:]


def test_records_are_spread_over_a_stretch_and_not_over_a_pause():
    steady = [Stretch(n * 100, n * 100 + 100, 10) for n in range(10)]
    timeline = Timeline(1, 50, [0.0] * 20)
    fill(timeline, steady)
    assert timeline.rounded() == [5] * 20
    timeline = Timeline(1, 1000, [0.0] * 11)
    fill(timeline, [*steady, Stretch(1000, 10_001, 10)])
    assert timeline.rounded() == [100, *[0] * 9, 10]
    assert timeline.gaps() == [(1001, 10_001)]


def test_a_beginning_that_nobody_knows_is_as_far_as_records_usually_are():
    stretches = [Stretch(None, 1000, 20), Stretch(1000, 1100, 10), Stretch(1100, 1200, 10)]
    assert with_starts(stretches)[0] == Stretch(809, 1000, 20)
    assert with_starts(stretches[:1]) == stretches[:1]


def test_empty_buckets_that_are_usual_are_no_gaps():
    assert Timeline(0, 10, [1.0, 0.0] * 10).gaps() == []
    assert Timeline(0, 10, [1.0, 0.0, 1.0, *[0.0] * 9, 1.0, 0.0, 1.0]).gaps() == [(30, 120)]
    assert Timeline(0, 10, [0.0, 0.0, 1.0]).gaps() == []


@given(st.integers(1, 10**13), st.integers(1, 500))
def test_a_bucket_length_is_round_and_long_enough(span_ms, wanted):
    length = bucket_length(span_ms, wanted)
    assert length * wanted >= span_ms
    assert length in LENGTHS_MS or length % LENGTHS_MS[-1] == 0


def test_buckets_begin_at_round_local_times():
    tokyo = ZoneInfo("Asia/Tokyo")
    assert frame(1_700_000_000_000, 1_700_000_000_000, 86_400_000, tokyo).start_ms == 1_699_974_000_000
    assert frame(1_700_000_000_000, 1_700_000_000_000, 86_400_000, UTC).start_ms == 1_699_920_000_000


def test_too_many_buckets_are_refused():
    with pytest.raises(ValueError, match="more than the maximum"):
        frame(0, MAX_BUCKETS, 1, UTC)


def test_what_is_of_the_future_is_told_apart():
    stretches = [Stretch(0, 100, 5), Stretch(100, 9000, 2)]
    assert (last_until(stretches, 1000), future(stretches, 1000)) == (100, 2)
    assert last_until(stretches, 10) is None
