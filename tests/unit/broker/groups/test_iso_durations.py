"""Durations as Java reads them."""

import pytest

from horolog.broker.groups.iso_durations import duration_ms, is_duration


@pytest.mark.parametrize("text", ["P1D", "PT1H", "P1DT2H3M4.5S", "pt0s", "PT90M"])
def test_what_is_one(text):
    assert is_duration(text)


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "P1DT", "1D", "-PT1H", "PT-1H", "P1W", "P1Y", "PT1.S", "P" + "1" * 99 + "D"]
)
def test_what_is_none(text):
    assert not is_duration(text)


@pytest.mark.parametrize(
    ("text", "found_ms"),
    [("P1D", 86_400_000), ("PT1H", 3_600_000), ("pt2m3s", 123_000), ("PT4.5S", 4_500), ("PT0.0009S", 0), ("PT0S", 0)],
)
def test_its_length(text, found_ms):
    assert duration_ms(text) == found_ms
