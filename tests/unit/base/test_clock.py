"""Clocks tell the time, and the manual one only when told to."""

import time

import pytest

from horolog.base.clock import ManualClock, SystemClock


def test_system_clock_follows_the_machine():
    clock = SystemClock()
    before = time.time() * 1000 - 1
    assert before <= clock.wall_ms() <= time.time() * 1000 + 1
    assert clock.monotonic() <= clock.monotonic()


def test_manual_clock_stands_still_until_told():
    clock = ManualClock(wall_ms=1_000, monotonic=5.0)
    assert (clock.wall_ms(), clock.monotonic()) == (clock.wall_ms(), clock.monotonic()) == (1_000, 5.0)
    clock.advance(1_500)
    assert (clock.wall_ms(), clock.monotonic()) == (2_500, 6.5)


def test_setting_the_wall_clock_leaves_monotonic_time_alone():
    clock = ManualClock()
    clock.set_wall_ms(7)
    assert (clock.wall_ms(), clock.monotonic()) == (7, 0.0)


def test_time_does_not_pass_backwards():
    with pytest.raises(ValueError, match="set_wall_ms"):
        ManualClock().advance(-1)
