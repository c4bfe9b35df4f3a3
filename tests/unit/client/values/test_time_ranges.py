"""Two times that make a range: the meaning of each form, and the refusal of others."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from horolog.client.values.time_ranges import TimeRange, parse_named, parse_range
from horolog.client.values.times import EARLIEST, LATEST, TimeTextError

BERLIN = ZoneInfo("Europe/Berlin")
TOKYO = ZoneInfo("Asia/Tokyo")
NOW_MS = 1_795_008_605_250  # Wednesday 2026-11-18, 14:30:05.250 in Berlin
MINUTE_MS = 60_000


def ms(*parts, zone=BERLIN):
    return int(datetime(*parts, tzinfo=zone).timestamp() * 1000)


def both(since, until=None, **settings):
    found = parse_range(since, until, now_ms=NOW_MS, zone=BERLIN, **settings)
    return found.since_ms, found.until_ms


def named(text, **settings):
    options = {"length_ms": None, "around_ms": None, "until": None} | settings
    found = parse_named(text, now_ms=NOW_MS, zone=BERLIN, **options)
    return found.since_ms, found.until_ms


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (None, None, (None, None)),
        ("10:05", None, (ms(2026, 11, 18, 10, 5), None)),
        (None, "10:05", (None, ms(2026, 11, 18, 10, 5))),
        ("10:05", "10:10", (ms(2026, 11, 18, 10, 5), ms(2026, 11, 18, 10, 10))),
        ("monday 10:05", "10:10", (ms(2026, 11, 16, 10, 5), ms(2026, 11, 16, 10, 10))),
        ("2026-11-17", "10:10", (ms(2026, 11, 17), ms(2026, 11, 17, 10, 10))),
        ("monday 10:05", "+5m", (ms(2026, 11, 16, 10, 5), ms(2026, 11, 16, 10, 10))),
        ("monday 10:05", "tuesday", (ms(2026, 11, 16, 10, 5), ms(2026, 11, 17))),
        ("3d", "15:00", (NOW_MS - 3 * 86_400_000, ms(2026, 11, 15, 15))),
        ("monday 03:00 Asia/Tokyo", "04:00", (ms(2026, 11, 16, 3, zone=TOKYO), ms(2026, 11, 16, 4, zone=TOKYO))),
        (
            "2026-11-17T23:30+09:00",
            "23:40",
            (ms(2026, 11, 17, 23, 30, zone=TOKYO), ms(2026, 11, 17, 23, 40, zone=TOKYO)),
        ),
        ("10:05..10:10", None, (ms(2026, 11, 18, 10, 5), ms(2026, 11, 18, 10, 10))),
        ("monday 10:05 .. +5m", None, (ms(2026, 11, 16, 10, 5), ms(2026, 11, 16, 10, 10))),
        ("yesterday..today", None, (ms(2026, 11, 17), ms(2026, 11, 18))),
        ("1h", "now", (NOW_MS - 60 * MINUTE_MS, NOW_MS)),
        ("yesterday 22:00", "midnight", (ms(2026, 11, 17, 22), ms(2026, 11, 18))),
        ("yesterday", "at midnight", (ms(2026, 11, 17), ms(2026, 11, 18))),
        (None, "midnight", (None, ms(2026, 11, 18))),
    ],
)
def test_ranges(since, until, expected):
    assert both(since, until) == expected


def test_the_ends_of_a_partition_bound_nothing():
    assert both("earliest", "latest", ends=True) == (None, None)
    assert both("earliest", "10:05", ends=True) == (None, ms(2026, 11, 18, 10, 5))
    assert parse_range("earliest", None, now_ms=NOW_MS, zone=UTC, ends=True).since.ms == EARLIEST
    assert parse_range("latest", None, now_ms=NOW_MS, zone=UTC, ends=True).since.ms == LATEST
    assert both("earliest..latest") == (None, None)
    assert named("earliest..10:05") == (None, ms(2026, 11, 18, 10, 5))
    assert TimeRange(None, None).until_ms is None


def test_a_length_says_where_the_end_is():
    assert both("10:05", length_ms=MINUTE_MS) == (ms(2026, 11, 18, 10, 5), ms(2026, 11, 18, 10, 6))


def test_what_was_understood_has_date_and_zone():
    found = parse_range("monday 10:05", "10:10", now_ms=NOW_MS, zone=BERLIN)
    assert [each.understood for each in found] == ["2026-11-16T10:05:00.000+01:00", "2026-11-16T10:10:00.000+01:00"]
    abroad = parse_range("monday 10:05 Asia/Tokyo", "+1m", now_ms=NOW_MS, zone=BERLIN)
    assert [each.understood for each in abroad] == ["2026-11-16T02:05:00.000+01:00", "2026-11-16T02:06:00.000+01:00"]


@pytest.mark.parametrize(
    ("since", "until", "settings", "said"),
    [
        ("10:05", "10:05", {}, "is not after the start"),
        ("23:55", "00:05", {}, "the end, 2026-11-18T00:05:00.000+01:00, is not after the start, 2026-11-18T23:55"),
        ("1h", "2h", {}, "is not after the start"),
        (None, "+5m", {}, "'+5m' counts from the start of the range: give a time as the start"),
        ("earliest", "+5m", {"ends": True}, "counts from the start"),
        (None, None, {"length_ms": 5}, "a length counts from the start"),
        ("10:05", "10:10", {"length_ms": 5}, "give only one of them"),
        ("10:05..10:10", "10:10", {}, "sets the end"),
        ("10:05..", None, {}, "expected a time on both sides of .."),
        ("..10:05", None, {}, "expected a time on both sides of .."),
        ("10:05", "+5x", {}, "a unit"),
        ("10:05", "25:00", {}, "a time of day from 00:00 to 23:59:59"),
        ("10:05", "earliest", {}, "there is nothing before the start"),
        ("latest", None, {}, "there is nothing after the end"),
        ("10:05", "10:10..10:15", {}, "is a range of times; expected a single time"),
    ],
)
def test_what_is_no_range(since, until, settings, said):
    with pytest.raises(TimeTextError) as refused:
        both(since, until, **settings)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "settings", "expected"),
    [
        ("10:05", {}, (ms(2026, 11, 18, 10, 5), ms(2026, 11, 18, 10, 6))),
        ("monday", {}, (ms(2026, 11, 16), ms(2026, 11, 17))),
        ("last week", {}, (ms(2026, 11, 9), ms(2026, 11, 16))),
        ("now-1h", {}, (NOW_MS - 60 * MINUTE_MS, NOW_MS - 59 * MINUTE_MS)),
        ("10:05", {"length_ms": 5 * MINUTE_MS}, (ms(2026, 11, 18, 10, 5), ms(2026, 11, 18, 10, 10))),
        ("10:05", {"around_ms": 5 * MINUTE_MS}, (ms(2026, 11, 18, 10), ms(2026, 11, 18, 10, 10))),
        ("10:05", {"until": "10:07"}, (ms(2026, 11, 18, 10, 5), ms(2026, 11, 18, 10, 7))),
        ("10:05..+2m", {}, (ms(2026, 11, 18, 10, 5), ms(2026, 11, 18, 10, 7))),
    ],
)
def test_one_text_names_a_range(text, settings, expected):
    assert named(text, **settings) == expected


def test_around_has_no_other_end():
    with pytest.raises(TimeTextError, match="cannot have another end"):
        named("10:05..10:10", around_ms=5)
