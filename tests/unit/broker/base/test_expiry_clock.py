"""Leaps of the wall clock and deletions by them: nothing, before it has stayed there for a while."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.base.clock import ManualClock
from horolog.broker.base.expiry_clock import TOLERANCE_MS, ExpiryClock

HOUR_MS = 3_600_000
YEAR_MS = 365 * 24 * HOUR_MS
LOOK_MS = 60_000


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def expiry(clock):
    return ExpiryClock(clock, lambda: HOUR_MS)


def leap(clock, by_ms):
    clock.set_wall_ms(clock.wall_ms() + by_ms)


def test_without_leaps_it_is_the_wall_clock(clock, expiry):
    for step_ms in (0, 1, LOOK_MS, 7 * HOUR_MS, YEAR_MS):
        clock.advance(step_ms)
        assert expiry.wall_ms() == clock.wall_ms()


@pytest.mark.parametrize("by_ms", [2 * TOLERANCE_MS, YEAR_MS, 50 * YEAR_MS])
def test_a_leap_ahead_is_believed_when_it_has_lasted(clock, expiry, caplog, by_ms):
    began_ms = clock.wall_ms()
    leap(clock, by_ms)
    passed_ms = 0
    while passed_ms < HOUR_MS:
        assert expiry.wall_ms() == began_ms + passed_ms
        clock.advance(LOOK_MS)
        passed_ms += LOOK_MS
    assert expiry.wall_ms() == clock.wall_ms()
    assert len(caplog.records) == 2, "told once when it leapt, once when it is believed"


def test_a_clock_that_comes_back_has_done_nothing(clock, expiry, caplog):
    caplog.set_level(logging.WARNING)
    leap(clock, YEAR_MS)
    expiry.wall_ms()
    clock.advance(LOOK_MS)
    leap(clock, -YEAR_MS)
    assert expiry.wall_ms() == clock.wall_ms()
    assert "is right again" in caplog.text
    clock.advance(2 * HOUR_MS)
    assert expiry.wall_ms() == clock.wall_ms()


def test_a_clock_that_is_set_back_is_believed_at_once(clock, expiry, caplog):
    leap(clock, -YEAR_MS)
    assert expiry.wall_ms() == clock.wall_ms()
    assert "set back" in caplog.text


def test_waiting_can_be_turned_off(clock):
    expiry = ExpiryClock(clock, lambda: 0)
    leap(clock, YEAR_MS)
    assert expiry.wall_ms() == clock.wall_ms()


@given(st.lists(st.tuples(st.integers(0, HOUR_MS // 2), st.integers(-3 * YEAR_MS, 3 * YEAR_MS)), max_size=20))
def test_nothing_expires_before_time_has_passed_or_a_leap_has_lasted(steps):
    """It is never ahead of the wall clock by more than it was set back, and never ahead of what has really passed within the wait."""
    clock = ManualClock()
    expiry = ExpiryClock(clock, lambda: HOUR_MS)
    before_ms, before = expiry.wall_ms(), clock.monotonic()
    waited_ms = 0
    for passed_ms, leap_ms in steps:
        clock.advance(passed_ms)
        leap(clock, leap_ms)
        now_ms = expiry.wall_ms()
        really_ms = round((clock.monotonic() - before) * 1000)
        waited_ms += passed_ms
        if now_ms > before_ms + really_ms + TOLERANCE_MS:
            assert waited_ms >= HOUR_MS, "believed too soon"
            waited_ms = 0
        before_ms, before = now_ms, clock.monotonic()
