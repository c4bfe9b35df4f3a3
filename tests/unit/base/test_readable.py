"""Times and durations as people read them."""

from datetime import timedelta, timezone

import pytest

from horolog.base.readable import (
    counted,
    exact_time,
    format_distance,
    format_duration,
    format_time,
    ranges,
    setting_text,
    spoken_time,
    time_and_number,
)


@pytest.mark.parametrize(
    ("timestamp_ms", "shown"),
    [
        (0, "1970-01-01T00:00:00.000+00:00"),
        (-1, "1969-12-31T23:59:59.999+00:00"),
        (1_795_300_000_001, "2026-11-21T22:26:40.001+00:00"),
        (1_795_300_000_001_000, "@1795300000001000"),
        (-(2**63), f"@{-(2**63)}"),
    ],
)
def test_times(timestamp_ms: int, shown: str) -> None:
    assert format_time(timestamp_ms) == shown
    assert time_and_number(timestamp_ms) == f"{timestamp_ms} ({shown})"


def test_a_zone_is_shown_with_the_time() -> None:
    assert format_time(0, timezone(timedelta(hours=2))) == "1970-01-01T02:00:00.000+02:00"


@pytest.mark.parametrize(("duration_ms", "shown"), [(0, "0s"), (90_061_001, "1d1h"), (-61_000, "-1m1s"), (5, "5ms")])
def test_durations(duration_ms: int, shown: str) -> None:
    assert format_duration(duration_ms) == shown


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("retention.ms", "1209600000", "14 days"),
        ("segment.ms", "90061001", "1 day 1 hour 1 minute 1 second 1 millisecond"),
        ("flush.ms", "9223372036854775807", "no limit"),
        ("message.timestamp.after.max.ms", str(2**62), "146,138,512 years"),
        ("retention.ms", "-1", "-1"),
        ("delete.retention.ms", "0", "0 milliseconds"),
        ("retention.bytes", "1209600000", "1209600000"),
        ("cleanup.policy", "delete", "delete"),
    ],
)
def test_settings_are_durations_where_they_are_milliseconds(key: str, value: str, shown: str) -> None:
    assert setting_text(key, value) == shown


def test_a_noun_follows_its_number() -> None:
    shown = [counted(count, "partition") for count in (0, 1, 2, 1024)]
    assert shown == ["0 partitions", "1 partition", "2 partitions", "1,024 partitions"]


def test_what_is_far_off_is_years() -> None:
    assert format_distance(400 * 86_400_000) == "57w1d"
    assert format_distance(1_793_928_946_309_000) == "56,847 years"
    assert format_distance(-1_793_928_946_309_000) == "-56,847 years"
    assert spoken_time(1_793_928_946_309_000) == "about the year 58,817"
    assert spoken_time(0) == "1970-01-01T00:00:00.000+00:00"


def test_exact_times_leave_out_digits_that_say_nothing() -> None:
    assert exact_time(1_700_000_000_000) == "2023-11-14T22:13:20Z"
    assert exact_time(1_700_000_000_123, timezone(timedelta(hours=2))) == "2023-11-15T00:13:20.123+02:00"
    assert exact_time(10**18) == f"@{10**18}ms"


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([3], "3"), ([1, 2], "1, 2"), ([0, 1, 2, 3, 5, 8, 9], "0-3, 5, 8, 9")]
)
def test_ranges(numbers, text):
    assert ranges(numbers) == text
