"""The designs that were not shipped do what their drafts say, so that they lose fairly."""

from bisect import bisect_left
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import designs
from benchmarks.designs import MINUTE_MS, SECOND_MS, Day

START = 1_600_000_020_000


@st.composite
def days(draw):
    delays = draw(st.lists(st.integers(-MINUTE_MS, 5 * MINUTE_MS), min_size=1, max_size=120))
    appended = [START + number * 7000 for number in range(len(delays))]
    created = [time - delay for time, delay in zip(appended, delays, strict=True)]
    cuts = draw(st.sets(st.integers(1, len(delays)), max_size=4))
    return Day(created, appended, sorted({0, *(cut for cut in cuts if cut < len(delays))}), 700)


TARGETS = st.integers(START - 10 * MINUTE_MS, START + 20 * MINUTE_MS)


def right_answer(times, target):
    place = bisect_left(list(accumulate(times, max)), target)
    return place if place < len(times) else None


@given(day=days(), target=TARGETS)
def test_draft_1_never_misses_by_the_time_of_arrival(day, target):
    answer, right = designs.AppendTimeMinutes(day).lookup(target), right_answer(day.appended, target)
    assert right is None or (answer is not None and answer <= right)
    assert answer is None or day.appended[answer] // MINUTE_MS >= target // MINUTE_MS


@given(day=days(), target=TARGETS)
def test_draft_2_answers_the_first_record_of_the_first_unit_that_has_one(day, target):
    answer = designs.CreateTimeMap(day, SECOND_MS).lookup(target)
    later = [created // SECOND_MS for created in day.created if created // SECOND_MS >= target // SECOND_MS]
    assert (answer is None) == (not later)
    assert answer is None or (
        day.created[answer] // SECOND_MS == min(later)
        and answer == [c // SECOND_MS for c in day.created].index(min(later))
    )


@given(day=days(), target=TARGETS)
def test_wide_entries_never_miss_and_are_as_exact_as_the_interval(day, target):
    answer, right = designs.WideOffsetIndex(day).lookup(target), right_answer(day.created, target)
    assert (answer is None) == (right is None)
    assert answer is None or 0 <= right - answer <= designs.INDEX_INTERVAL_BYTES // day.record_bytes + 1


def test_draft_2_misses_what_came_early_from_another_minute():
    # A record of the next minute arrives before the first one of the minute asked for.
    day = Day(
        [START - 60_000, START + 90_000, START + 61_000, START + 45_000],
        [START, START + 1, START + 2, START + 3],
        [0],
        100,
    )
    answer = designs.CreateTimeMap(day, MINUTE_MS).lookup(START + 40_000)
    assert answer == 3
    assert right_answer(day.created, START + 40_000) == 1


@pytest.mark.parametrize("unit_ms", [MINUTE_MS, SECOND_MS])
def test_a_day_takes_as_many_entries_as_it_has_units(unit_ms):
    created = [START + number * unit_ms for number in range(100)]
    day = Day(created, created, [0], 100)
    assert designs.CreateTimeMap(day, unit_ms).disk_bytes() == 100 * designs.NARROW.size
