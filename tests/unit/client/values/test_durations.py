"""Durations: every form that is read, and errors that say where a text went wrong."""

import re

import pytest

from horolog.client.values.durations import MAX_TIMESTAMP_MS, parse_duration, take_duration
from horolog.client.values.time_text import TimeText, TimeTextError

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5m", 300_000),
        ("1h30m", 5_400_000),
        ("250ms", 250),
        ("2w", 14 * DAY_MS),
        ("1.5h", 5_400_000),
        ("0s", 0),
        ("1w2d3h4m5s6ms", 7 * DAY_MS + 2 * DAY_MS + 3 * HOUR_MS + 4 * 60_000 + 5006),
        ("10 minutes", 600_000),
        ("5M", 300_000),
        ("P3D", 3 * DAY_MS),
        ("PT1H30M", HOUR_MS * 3 // 2),
        ("P1W", 7 * DAY_MS),
        ("pt0.25s", 250),
    ],
)
def test_durations(text, expected):
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "5", "m", "-5m", "5m ago", "5mm", "1s1s", "1ms1s", "0.5ms", "1y", "5 m x", "²s"])
def test_texts_that_are_no_duration(text):
    with pytest.raises(TimeTextError):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a number, but the text ends; examples: 90s, 5m"),
        ("5", "after '5', expected a unit (w, d, h, m, s, ms), but the text ends"),
        ("5 parsecs", "expected a unit (w, d, h, m, s, ms), found 'parsecs'"),
        ("2 months", "expected a unit of fixed length (w, d, h, m, s, ms)"),
        ("5m 1h", "expected a smaller unit than the one before, found '1h'"),
        ("5m later", "expected nothing more, found 'later'"),
        ("0.5ms", "'0.5ms' is not a whole number of milliseconds"),
        ("1e9w", "expected a unit"),
        ("20000000000w", f"is too long: the maximum is {MAX_TIMESTAMP_MS} ms"),
        ("P1Y", "a unit of fixed length"),
        ("P2M", "a unit of fixed length"),
        ("PT5D", "expected a unit (H, M, S)"),
        ("P5H", "expected a unit (W, D)"),
        ("P1", "expected a unit (W, D), but the text ends"),
        ("P1DT", "expected nothing more, found 'T'"),
        ("PT1S1M", "a smaller unit than the one before"),
    ],
)
def test_errors_say_what_is_expected(text, said):
    with pytest.raises(TimeTextError, match=re.escape(said)):
        parse_duration(text)


@pytest.mark.parametrize(("text", "ms"), [("P1DT1H", DAY_MS + HOUR_MS), ("p2w3d", 17 * DAY_MS), ("1h 30m", 5_400_000)])
def test_dates_and_times_of_day_make_one_duration(text, ms):
    assert parse_duration(text) == ms


def test_a_duration_ends_before_what_follows():
    source = TimeText("1h30m ago", "5m")
    assert take_duration(source) == 5_400_000
    assert source.text[source.position :] == " ago"
