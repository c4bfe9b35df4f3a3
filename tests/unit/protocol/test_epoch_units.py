"""Numbers since 1970 by magnitude: the same moment in four units is told apart, and plausible milliseconds are left alone."""

import pytest

from horolog.protocol.epoch_units import misread_as_ms, to_ms, unit_by_magnitude

NOW_MS = 1_795_300_000_000
MOMENTS_MS = [102_000_000_000, 946_684_800_000, NOW_MS, 4_102_444_800_000, 99_000_000_000_000]  # 1973 to 5107


@pytest.mark.parametrize("ms", MOMENTS_MS)
def test_a_moment_in_each_unit(ms):
    numbers = {"s": ms // 1000, "ms": ms, "us": ms * 1000, "ns": ms * 1_000_000}
    for unit, number in numbers.items():
        assert unit_by_magnitude(number) == unit
        assert misread_as_ms(number) == (None if unit == "ms" else unit)
        assert to_ms(number, unit) == ms
        assert unit_by_magnitude(-number) == unit


@pytest.mark.parametrize("number", [0, 1, -1, 1000, 86_399_999, 99_999_999, 10**11, 10**14 - 1])
def test_plausible_milliseconds_are_asked_nothing(number):
    assert misread_as_ms(number) is None


@pytest.mark.parametrize(
    ("number", "unit", "ms"), [(1.5, "s", 1500), (1_795_300_000.123, "s", 1_795_300_000_123), (-1, "us", -1)]
)
def test_fractions(number, unit, ms):
    assert to_ms(number, unit) == ms
