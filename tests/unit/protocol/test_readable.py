"""Times and durations as people read them."""

from datetime import timedelta, timezone

import pytest

from horolog.protocol.readable import format_duration, format_time, time_and_number


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
