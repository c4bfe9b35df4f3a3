"""Durations as Java reads them."""

import pytest

from horolog.broker.groups.iso_durations import is_duration


@pytest.mark.parametrize("text", ["P1D", "PT1H", "P1DT2H3M4.5S", "pt0s", "PT90M"])
def test_what_is_one(text):
    assert is_duration(text)


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "P1DT", "1D", "-PT1H", "PT-1H", "P1W", "P1Y", "PT1.S", "P" + "1" * 99 + "D"]
)
def test_what_is_none(text):
    assert not is_duration(text)
