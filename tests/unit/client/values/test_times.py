"""One grammar of times: what every form means, in which zone, and the words about texts that are none."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from horolog.client.values.times import (
    EARLIEST,
    LATEST,
    TimeTextError,
    format_duration,
    format_time,
    is_clock,
    parse_time,
)

BERLIN = ZoneInfo("Europe/Berlin")
TOKYO = ZoneInfo("Asia/Tokyo")
NOW = datetime(2026, 11, 18, 14, 30, 5, 250_000, tzinfo=BERLIN)  # a Wednesday
NOW_MS = 1_795_008_605_250
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def at(text, zone=BERLIN, **settings):
    return parse_time(text, now_ms=NOW_MS, zone=zone, **settings).ms


def ms(*parts, zone=BERLIN):
    return int(datetime(*parts, tzinfo=zone).timestamp() * 1000)


def test_the_clock_of_these_tests():
    assert int(NOW.timestamp() * 1000) == NOW_MS
    assert NOW.strftime("%A") == "Wednesday"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW_MS),
        ("NOW", NOW_MS),
        ("  now  ", NOW_MS),
        ("now-1h", NOW_MS - HOUR_MS),
        ("now - 1h30m", NOW_MS - HOUR_MS * 3 // 2),
        ("now+2d", NOW_MS + 2 * DAY_MS),
        ("3d", NOW_MS - 3 * DAY_MS),
        ("-48h", NOW_MS - 2 * DAY_MS),
        ("90s", NOW_MS - 90_000),
        ("2h30m", NOW_MS - 9_000_000),
        ("30m-ago", NOW_MS - 1_800_000),
        ("30m ago", NOW_MS - 1_800_000),
        ("6 hours ago", NOW_MS - 6 * HOUR_MS),
        ("1 day 2 hours ago", NOW_MS - 26 * HOUR_MS),
        ("today", ms(2026, 11, 18)),
        ("today 10:05", ms(2026, 11, 18, 10, 5)),
        ("today+10h", ms(2026, 11, 18, 10)),
        ("yesterday", ms(2026, 11, 17)),
        ("yesterday 23:59:59.999", ms(2026, 11, 17, 23, 59, 59, 999_000)),
        ("tomorrow", ms(2026, 11, 19)),
        ("10:05", ms(2026, 11, 18, 10, 5)),
        ("23:00", ms(2026, 11, 18, 23)),
        ("monday", ms(2026, 11, 16)),
        ("mon", ms(2026, 11, 16)),
        ("last monday", ms(2026, 11, 16)),
        ("monday 10:05", ms(2026, 11, 16, 10, 5)),
        ("Thursday", ms(2026, 11, 12)),
        ("wednesday", ms(2026, 11, 18)),
        ("wednesday 14:30", ms(2026, 11, 18, 14, 30)),
        ("wednesday 14:31", ms(2026, 11, 11, 14, 31)),
        ("last wednesday", ms(2026, 11, 11)),
        ("last wednesday 14:31", ms(2026, 11, 11, 14, 31)),
        ("2026-11-17", ms(2026, 11, 17)),
        ("2026-11-17 10:00", ms(2026, 11, 17, 10)),
        ("2026-11-17T10:00", ms(2026, 11, 17, 10)),
        ("2026-11-17T10:00:05.5", ms(2026, 11, 17, 10, 0, 5, 500_000)),
        ("2026-11-17T10:00+02:00", ms(2026, 11, 17, 8, zone=UTC)),
        ("2026-11-17T10:00+0200", ms(2026, 11, 17, 8, zone=UTC)),
        ("2026-11-17 10:00 -05", ms(2026, 11, 17, 15, zone=UTC)),
        ("2026-11-17T10:00Z", ms(2026, 11, 17, 10, zone=UTC)),
        ("2026-11-17T10:00:00.123456789Z", ms(2026, 11, 17, 10, 0, 0, 123_000, zone=UTC)),
        ("2024-02-29", ms(2024, 2, 29)),
        ("0001-01-01T00:00Z", -62_135_596_800_000),
        ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
    ],
)
def test_what_a_time_means(text, expected):
    assert at(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("17 Nov", ms(2026, 11, 17)),
        ("17nov 10:05", ms(2026, 11, 17, 10, 5)),
        ("Nov 17 10:05", ms(2026, 11, 17, 10, 5)),
        ("november 17 2025", ms(2025, 11, 17)),
        ("17 Nov 2025 10:05:30", ms(2025, 11, 17, 10, 5, 30)),
        ("18 Nov 14:30", ms(2026, 11, 18, 14, 30)),
        ("18 Nov 14:31", ms(2025, 11, 18, 14, 31)),
        ("1 Dec", ms(2025, 12, 1)),
        ("3 may", ms(2026, 5, 3)),
        ("3 mar 07:00", ms(2026, 3, 3, 7)),
        ("29 Feb", ms(2024, 2, 29)),
        ("17 Nov 10:05 UTC", ms(2026, 11, 17, 10, 5, zone=UTC)),
        ("this week", ms(2026, 11, 16)),
        ("last week", ms(2026, 11, 9)),
        ("last week + 2d", ms(2026, 11, 11)),
        ("this month", ms(2026, 11, 1)),
        ("last month", ms(2026, 10, 1)),
        ("this year", ms(2026, 1, 1)),
        ("last year", ms(2025, 1, 1)),
        ("10:05 Asia/Tokyo", ms(2026, 11, 18, 10, 5, zone=TOKYO)),
        ("23:30 America/Los_Angeles", ms(2026, 11, 18, 23, 30, zone=ZoneInfo("America/Los_Angeles"))),
        ("today America/Los_Angeles", ms(2026, 11, 18, zone=ZoneInfo("America/Los_Angeles"))),
        ("monday 10:05 Asia/Tokyo", ms(2026, 11, 16, 10, 5, zone=TOKYO)),
        ("monday 10:05 Asia/Tokyo - 5m", ms(2026, 11, 16, 10, 0, zone=TOKYO)),
        ("monday 10:05 +09:00", ms(2026, 11, 16, 10, 5, zone=TOKYO)),
        ("2026-11-17 10:05 Etc/GMT-9", ms(2026, 11, 17, 10, 5, zone=TOKYO)),
        ("10:05 utc", ms(2026, 11, 18, 10, 5, zone=UTC)),
        ("10:05Z", ms(2026, 11, 18, 10, 5, zone=UTC)),
        ("yesterday GMT", ms(2026, 11, 17, zone=UTC)),
        ("today 10:05 + 5m", ms(2026, 11, 18, 10, 10)),
        ("today 10:05 +05m", ms(2026, 11, 18, 10, 10)),
    ],
)
def test_what_a_named_day_a_period_and_a_zone_mean(text, expected):
    assert at(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("17/Nov/2026:10:05:00 +0000", ms(2026, 11, 17, 10, 5, zone=UTC)),  # web servers' logs
        ("[17/Nov/2026:10:05:00 +0100]", ms(2026, 11, 17, 10, 5)),
        ("17-Nov-2026 10:05:00", ms(2026, 11, 17, 10, 5)),
        ("Tue Nov 17 10:05:00 UTC 2026", ms(2026, 11, 17, 10, 5, zone=UTC)),  # date, Java
        ("Tue Nov 17 10:05:00 AM UTC 2026", ms(2026, 11, 17, 10, 5, zone=UTC)),
        ("Tue 17 Nov 2026 10:05:00 PM UTC", ms(2026, 11, 17, 22, 5, zone=UTC)),
        ("Tue Nov  3 10:05:00 2026", ms(2026, 11, 3, 10, 5)),  # ctime
        ("Tue Nov 17 10:05:00 2026 +0900", ms(2026, 11, 17, 10, 5, zone=TOKYO)),  # Git
        ("Tue Nov 17 10:05:00 +0900 2026", ms(2026, 11, 17, 10, 5, zone=TOKYO)),
        ("Tue, 17 Nov 2026 10:05:00 GMT", ms(2026, 11, 17, 10, 5, zone=UTC)),  # HTTP
        ("Tue, 17 Nov 2026 10:05:00 +0100 (CET)", ms(2026, 11, 17, 10, 5)),  # mail
        ("Tue Nov 17 2026 10:05:00 GMT+0100 (Central European Standard Time)", ms(2026, 11, 17, 10, 5)),  # JavaScript
        ("2026-11-17 10:05:00 +0000 UTC", ms(2026, 11, 17, 10, 5, zone=UTC)),  # Go
        ("2026-11-17 10:05:00.123456789 +0100 CET m=+0.000012345", ms(2026, 11, 17, 10, 5, 0, 123_000)),
        ("2026-11-17T10:05:00+01:00[Europe/Berlin]", ms(2026, 11, 17, 10, 5)),  # Java
        ("2026-11-17 10:05:00,123", ms(2026, 11, 17, 10, 5, 0, 123_000)),  # Log4j
        ("20261117T100500Z", ms(2026, 11, 17, 10, 5, zone=UTC)),
        ("20261117T1005", ms(2026, 11, 17, 10, 5)),
        ("20261117T100500.25+0900", ms(2026, 11, 17, 10, 5, 0, 250_000, zone=TOKYO)),
        ("2026/11/17 10:05:00", ms(2026, 11, 17, 10, 5)),  # nginx
        ("2026/11/17", ms(2026, 11, 17)),
        ("November 17, 2026", ms(2026, 11, 17)),
        ("Nov 17, 2026, 10:05 PM", ms(2026, 11, 17, 22, 5)),
        ("17th November", ms(2026, 11, 17)),
        ("Tue 17 Nov 10:05", ms(2026, 11, 17, 10, 5)),
        ("tuesday 2026-11-17 10:05", ms(2026, 11, 17, 10, 5)),
        ("Mon 17 Nov", ms(2025, 11, 17)),
        ("Sat 29 Feb", ms(2020, 2, 29)),
    ],
)
def test_times_are_read_as_programs_write_them(text, expected):
    assert at(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("last tuesday at 10:05", ms(2026, 11, 17, 10, 5)),
        ("yesterday at 10:05", ms(2026, 11, 17, 10, 5)),
        ("yesterday, 10:05", ms(2026, 11, 17, 10, 5)),
        ("17 Nov at 10:05", ms(2026, 11, 17, 10, 5)),
        ("at 10:05", ms(2026, 11, 18, 10, 5)),
        ("10am", ms(2026, 11, 18, 10)),
        ("10 PM", ms(2026, 11, 18, 22)),
        ("10:05 AM", ms(2026, 11, 18, 10, 5)),
        ("10:05:30 p.m.", ms(2026, 11, 18, 22, 5, 30)),
        ("12am", ms(2026, 11, 18)),
        ("12:30 am", ms(2026, 11, 18, 0, 30)),
        ("12 pm", ms(2026, 11, 18, 12)),
        ("monday 10am UTC", ms(2026, 11, 16, 10, zone=UTC)),
        ("today 10 am + 5m", ms(2026, 11, 18, 10, 5)),
        ("noon", ms(2026, 11, 18, 12)),
        ("midnight", ms(2026, 11, 18)),
        ("yesterday noon", ms(2026, 11, 17, 12)),
        ("last friday at midnight", ms(2026, 11, 13)),
        ("last hour", ms(2026, 11, 18, 13)),
        ("this hour", ms(2026, 11, 18, 14)),
        ("last minute", ms(2026, 11, 18, 14, 29)),
        ("last day", ms(2026, 11, 17)),
        ("this day", ms(2026, 11, 18)),
        ("P3D", NOW_MS - 3 * DAY_MS),
        ("-PT90M", NOW_MS - 3 * HOUR_MS // 2),
        ("p1dt12h ago", NOW_MS - 36 * HOUR_MS),
        ("now-PT1H", NOW_MS - HOUR_MS),
    ],
)
def test_times_are_read_as_people_say_them(text, expected):
    assert at(text) == expected


def test_an_hour_is_that_of_the_zone():
    kathmandu = ZoneInfo("Asia/Kathmandu")  # 5:45 ahead: 19:15 there
    assert at("last hour Asia/Kathmandu") == ms(2026, 11, 18, 18, zone=kathmandu)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("17.11.2026", "which number is the month?"),
        ("11/17/2026 10:05", "which number is the month?"),
        ("Mon 17 Nov 2026", "2026-11-17 is a Tuesday"),
        ("2026-11-17 10:05 +0200 UTC", "UTC+02:00 is not the offset of UTC at that time"),
        ("2026-07-17 10:05 +0100 Europe/Berlin", "is not the offset of Europe/Berlin at that time"),
        ("13pm", "expected an hour from 1 to 12 before am or pm"),
        ("0:30 am", "expected an hour from 1 to 12 before am or pm"),
        ("Tue Nov 17 10:05:00 CET 2026", "CET is an ambiguous abbreviation of a time zone"),
        ("P1M", "expected a unit of fixed length (w, d, h, m, s, ms), found 'M'"),
        ("P1H", "expected a unit (W, D), found 'H'"),
        ("PT1D", "expected a unit (H, M, S), found 'D'"),
        ("P1D2W", "expected a smaller unit than the one before, found '2W'"),
        ("20261117T250000Z", "expected a time of day from 00:00 to 23:59:59"),
        ("20261117", "a bare number may be anything"),
        ("noonish", "expected a time of day (HH:MM)"),
        (":10:05", "expected a time"),
        ("17/Now/2026:10:05:00", "expected a unit (w, d, h, m, s, ms)"),
    ],
)
def test_texts_that_are_nearly_a_time_get_their_reason(text, reason):
    with pytest.raises(TimeTextError) as refused:
        at(text)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("10:05", 60_000),
        ("10:05:30", 1000),
        ("10:05:30.250", 1),
        ("monday 10:05", 60_000),
        ("17 Nov 10:05", 60_000),
        ("today", DAY_MS),
        ("25 Oct", DAY_MS + HOUR_MS),
        ("2026-03-29", DAY_MS - HOUR_MS),
        ("last week", 7 * DAY_MS),
        ("this month", 30 * DAY_MS),
        ("last month", 31 * DAY_MS + HOUR_MS),
        ("last year", 365 * DAY_MS),
        ("this year", 365 * DAY_MS),
        ("10am", 60_000),
        ("noon", 60_000),
        ("20261117T100500Z", 1000),
        ("last hour", HOUR_MS),
        ("this minute", 60_000),
        ("last day", DAY_MS),
        ("now", None),
        ("today+10h", None),
        ("3d", None),
        ("@1700000000000", None),
        ("9999-12-31", None),
    ],
)
def test_what_is_named_has_an_end(text, length):
    moment = parse_time(text, now_ms=NOW_MS, zone=BERLIN)
    assert (None if moment.until_ms is None else moment.until_ms - moment.ms) == length


def test_months_and_years_at_their_edges():
    january = ms(2027, 1, 31, 12)
    assert parse_time("last month", now_ms=january, zone=BERLIN).ms == ms(2026, 12, 1)
    assert parse_time("this month", now_ms=january, zone=BERLIN).until_ms == ms(2027, 2, 1)
    assert parse_time("31 Dec", now_ms=january, zone=BERLIN).ms == ms(2026, 12, 31)


@pytest.mark.parametrize("text", ["10:05 CET", "monday 10:05 est", "2026-11-17 10:05 IST", "17 Nov 10:05 BST"])
def test_abbreviations_of_zones_are_refused_with_what_would_do(text):
    with pytest.raises(TimeTextError, match=r"is an ambiguous abbreviation of a time zone; write \w+/"):
        at(text)


def test_a_zone_that_is_spelled_wrong_is_told_the_one_that_is_like_it():
    with pytest.raises(TimeTextError, match=r"do you mean Europe/Berlin\?"):
        at("10:05 Europe/Berln")


def test_a_time_of_day_alone_is_told_from_others():
    for text in (" 10:05 ", "10am", "noon", "at 10:05", "10:05 PM"):
        assert is_clock(text)
    for text in ("10:05 UTC", "25:00", "now", "", "17 Nov 10:05", "1" * 200):
        assert not is_clock(text)


@pytest.mark.parametrize(
    ("text", "expected", "said"),
    [
        ("@1700000000000", 1_700_000_000_000, None),
        ("@1700000000", 1_700_000_000_000, "seconds"),
        ("@1700000000123456", 1_700_000_000_123, "microseconds"),
        ("@1700000000123456789", 1_700_000_000_123, "nanoseconds"),
        ("@0", 0, "seconds"),
        ("@5000ms", 5000, None),
        ("@1700000000000s", 1_700_000_000_000_000, None),
        ("@1500us", 1, None),
        ("@-1", -1000, "seconds"),
        ("@-1us", -1, None),
    ],
)
def test_epochs_are_recognised_by_magnitude_and_that_is_said(text, expected, said):
    moment = parse_time(text, now_ms=NOW_MS, zone=UTC)
    assert moment.ms == expected
    assert f"is read as {said}" in moment.understood if said else "read as" not in moment.understood


def test_how_it_was_understood_is_the_time_in_the_zone_asked_for():
    assert parse_time("2026-11-17T10:00Z", now_ms=NOW_MS, zone=BERLIN).understood == "2026-11-17T11:00:00.000+01:00"
    assert parse_time("3d", now_ms=NOW_MS, zone=UTC).understood == "2026-11-15T13:30:05.250+00:00"


def test_the_ends_of_the_log_only_where_they_are_allowed():
    assert (at("earliest", ends=True), at("latest", ends=True)) == (EARLIEST, LATEST)
    assert (at("beginning", ends=True), at("end", ends=True)) == (EARLIEST, LATEST)
    with pytest.raises(TimeTextError, match="expected a time"):
        at("earliest")
    with pytest.raises(TimeTextError, match="expected nothing more"):
        at("latest-1h", ends=True)


@pytest.mark.parametrize(
    ("text", "offset_hours", "said"),
    [
        ("2026-03-29 01:59", 1, None),
        ("2026-03-29 02:30", 1, "2026-03-29T03:30:00.000+02:00: the clocks go forward over 2026-03-29 02:30:00"),
        ("2026-03-29 03:00", 2, None),
        ("2026-10-25 01:59", 2, None),
        ("2026-10-25 02:30", 2, "occurs twice, 2026-10-25T02:30:00.000+01:00 would be the second"),
        ("2026-10-25 03:00", 1, None),
    ],
)
def test_hours_that_are_missing_or_come_twice(text, offset_hours, said):
    moment = parse_time(text, now_ms=NOW_MS, zone=BERLIN)
    naive = datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=timezone(timedelta(hours=offset_hours)))
    assert moment.ms == naive.timestamp() * 1000
    assert said in moment.understood if said else ":" in moment.understood and "clocks" not in moment.understood


def test_a_day_whose_midnight_does_not_exist_begins_an_hour_later():
    zone = ZoneInfo("America/Sao_Paulo")
    assert format_time(at("2018-11-04", zone), zone) == "2018-11-04T01:00:00.000-02:00"


def test_days_are_those_of_the_zone():
    late = int(datetime(2026, 11, 17, 23, 30, tzinfo=UTC).timestamp() * 1000)
    tokyo = ZoneInfo("Asia/Tokyo")
    assert format_time(parse_time("today", now_ms=late, zone=tokyo).ms, tokyo) == "2026-11-18T00:00:00.000+09:00"
    assert format_time(parse_time("today", now_ms=late, zone=UTC).ms, UTC) == "2026-11-17T00:00:00.000+00:00"


def test_a_day_ago_is_24_hours_also_when_clocks_change():
    now_ms = ms(2026, 10, 25, 12)
    assert parse_time("1d", now_ms=now_ms, zone=BERLIN).ms == now_ms - DAY_MS
    assert parse_time("yesterday 12:00", now_ms=now_ms, zone=BERLIN).ms == now_ms - 25 * HOUR_MS


@pytest.mark.parametrize(
    ("text", "stopped"),
    [
        ("", "expected a time, but the text ends"),
        ("3", "after '3', expected a unit (w, d, h, m, s, ms), but the text ends"),
        ("3x", "after '3', expected a unit (w, d, h, m, s, ms), found 'x'"),
        ("3d ahead", "after '3d', expected nothing more, found 'ahead'"),
        ("1m2h", "after '1m', expected a smaller unit than the one before, found '2h'"),
        ("2 months ago", "after '2', expected a unit of fixed length (w, d, h, m, s, ms), found 'months ago'"),
        ("tommorow", "expected a time"),
        ("now 5", "after 'now', expected nothing more, found '5'"),
        ("now-", "after 'now-', expected a number, but the text ends"),
        (
            "last decade",
            "after 'last', expected a weekday, day, week, month, year, minute or hour, found 'decade'",
        ),
        ("this monday", "after 'this', expected day, week, month, year, minute or hour, found 'monday'"),
        ("30 Feb", "expected a day of the calendar"),
        ("29 Feb 2025", "expected a day of the calendar"),
        ("Nov", "after 'Nov', expected a day of the month, but the text ends"),
        ("Nov 10:05", "after 'Nov', expected a day of the month, found '10:05'"),
        ("17 Nov 25:00", "after '17 Nov', expected a time of day from 00:00 to 23:59:59, found '25:00'"),
        ("17 Now", "after '17', expected a unit (w, d, h, m, s, ms), found 'Now'"),
        ("10:05 sharp", "after '10:05', expected nothing more, found 'sharp'"),
        ("3d Europe/Berlin", "expected a date or a time of day before the zone, found '3d'"),
        ("10:05 Europe/Berlin sharp", "after '10:05 Europe/Berlin', expected nothing more, found 'sharp'"),
        ("2026-13-01", "expected a day of the calendar"),
        ("2026-02-29", "expected a day of the calendar"),
        ("2026-11-17T25:00", "after '2026-11-17T', expected a time of day from 00:00 to 23:59:59, found '25:00'"),
        ("2026-11-17T", "after '2026-11-17T', expected a time of day (HH:MM), but the text ends"),
        (
            "2026-11-17T10:00+25:00",
            "after '2026-11-17T10:00', expected an offset from UTC below 24 hours, found '+25:00'",
        ),
        ("@", "after '@', expected a number of milliseconds since 1970, but the text ends"),
        ("@12x", "after '@12', expected nothing more, found 'x'"),
    ],
)
def test_a_text_that_is_no_time_is_told_where_it_stopped(text, stopped):
    with pytest.raises(TimeTextError) as refused:
        at(text)
    assert str(refused.value).startswith(f"{text!r}: {stopped}; ")
    assert "2026-11-17T10:00+02:00" in str(refused.value)


def test_a_bare_number_is_told_how_to_be_a_time():
    with pytest.raises(TimeTextError, match="@1700000000000ms is 2023-11-14T23:13:20"):
        at("1700000000000")


@pytest.mark.parametrize(
    "text", ["@" + "9" * 40, "@9223372036854775808ms", "99999999999999w", "now+9223372036854775807ms"]
)
def test_times_that_no_record_can_have(text):
    with pytest.raises(TimeTextError):
        at(text)


def test_texts_without_end_are_not_read():
    with pytest.raises(TimeTextError, match="too long"):
        at("1" * 1000)


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (0, "0s"),
        (5, "5ms"),
        (1500, "1s500ms"),
        (3_661_000, "1h1m"),
        (DAY_MS, "1d"),
        (8 * DAY_MS + 1, "1w1d"),
        (-90_000, "-1m30s"),
    ],
)
def test_durations_are_shown_with_two_units(duration_ms, text):
    assert format_duration(duration_ms) == text


def test_times_beyond_the_calendar_are_shown_as_numbers():
    assert format_time(2**63 - 1, UTC) == "@9223372036854775807"
    assert format_time(-(10**17), UTC) == "@-100000000000000000"
