"""Rolling: each reason at its exact bound, and never an empty segment."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.config.settings import load
from horolog.broker.config.topic_settings import resolve
from horolog.broker.log.partition.rolling import Reason, RollingLimits, draw_jitter_ms, limits_of

T0 = 1_600_000_000_000
CONFIG = replace(
    resolve({}, load(None, {}, {})[0]), segment_bytes=1000, segment_ms=10_000, segment_jitter_ms=0, compact=False
)


@dataclass(frozen=True)
class ActiveSegment:
    base_offset: int
    end_bytes: int
    created_ms: int
    first_timestamp: int
    index_is_full: bool = False


@dataclass(frozen=True)
class Incoming:
    size_bytes: int
    last_offset: int
    max_timestamp: int


SEGMENT = ActiveSegment(base_offset=5, end_bytes=400, created_ms=T0, first_timestamp=T0)
SET = Incoming(size_bytes=100, last_offset=20, max_timestamp=T0)


def should_roll(segment, incoming, config, now_ms, jitter_ms=0):
    limits = RollingLimits(segment.base_offset, config, jitter_ms)
    return limits.exceeded_by(incoming.size_bytes, incoming.last_offset, incoming.max_timestamp, segment, now_ms)


@pytest.mark.parametrize(("size", "reason"), [(600, None), (601, Reason.SIZE)])
def test_a_set_that_does_not_fit_rolls(size, reason):
    assert should_roll(SEGMENT, replace(SET, size_bytes=size), CONFIG, T0) is reason


@pytest.mark.parametrize("now_ms", [0, T0, T0 + 10**12])
@pytest.mark.parametrize(
    ("timestamp", "reason"),
    [
        (T0 + 10_000, None),
        (T0 + 10_001, Reason.TIME),
        (T0 - 10**9, None),
        (-1, None),
        (4_102_444_800_000, Reason.TIME),
    ],
)
def test_times_of_records_decide_and_the_clock_does_not(timestamp, reason, now_ms):
    assert should_roll(SEGMENT, replace(SET, max_timestamp=timestamp), CONFIG, now_ms) is reason


@pytest.mark.parametrize("timestamp", [-1, 0, T0, 4_102_444_800_000])
@pytest.mark.parametrize(("age_ms", "reason"), [(10_000, None), (10_001, Reason.TIME), (-5, None)])
def test_a_first_record_without_a_time_leaves_it_to_the_clock(timestamp, age_ms, reason):
    segment = replace(SEGMENT, first_timestamp=-1)
    assert should_roll(segment, replace(SET, max_timestamp=timestamp), CONFIG, T0 + age_ms) is reason


def test_a_full_index_rolls():
    assert should_roll(replace(SEGMENT, index_is_full=True), SET, CONFIG, T0) is Reason.INDEX_FULL


@pytest.mark.parametrize(("relative", "reason"), [(2**31 - 1, None), (2**31, Reason.OFFSET_RANGE)])
def test_a_relative_offset_beyond_int32_rolls(relative, reason):
    assert should_roll(SEGMENT, replace(SET, last_offset=5 + relative), CONFIG, T0) is reason


def test_jitter_brings_the_roll_forward():
    late = replace(SET, max_timestamp=T0 + 9_001)
    assert should_roll(SEGMENT, late, CONFIG, T0) is None
    assert should_roll(SEGMENT, late, CONFIG, T0, jitter_ms=1_000) is Reason.TIME


@given(st.floats(0, 1, exclude_max=True), st.integers(0, 10**6), st.integers(1, 10**6))
def test_jitter_stays_below_both_its_setting_and_the_segment_time(number, jitter_ms, segment_ms):
    drawn = draw_jitter_ms(replace(CONFIG, segment_jitter_ms=jitter_ms, segment_ms=segment_ms), lambda: number)
    assert 0 <= drawn <= min(jitter_ms, segment_ms)


def test_a_compacted_segment_is_not_kept_from_the_cleaner_for_longer_than_it_may_wait():
    config = replace(CONFIG, compact=True, max_compaction_lag_ms=500)
    assert should_roll(SEGMENT, replace(SET, max_timestamp=T0 + 501), config, T0) is Reason.TIME
    assert should_roll(SEGMENT, replace(SET, max_timestamp=T0 + 501), replace(config, compact=False), T0) is None


def test_an_empty_segment_never_rolls():
    empty = replace(SEGMENT, end_bytes=0, first_timestamp=-1)
    assert should_roll(empty, Incoming(10**9, 2**40, T0 + 10**9), CONFIG, T0 + 10**9) is None


def test_a_segment_rolls_earlier_by_the_jitter_that_was_drawn_for_it():
    config = replace(CONFIG, segment_ms=1000, segment_jitter_ms=400)
    assert repr(limits_of(5, config, lambda: 0.5)) == repr(RollingLimits(5, config, 200))
