"""Whatever is written as a time is read as that time; whatever is not a time is refused with a message, never with a crash."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import assume, given
from hypothesis import strategies as st

from horolog.client.values.times import TimeTextError, format_duration, format_time, parse_duration, parse_time

ZONES = st.sampled_from(
    [
        UTC,
        *map(ZoneInfo, ["Europe/Berlin", "America/Sao_Paulo", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia"]),
    ]
)
TIMESTAMPS = st.integers(-2_000_000_000_000, 10_000_000_000_000)
UNITS_MS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}


@given(TIMESTAMPS, ZONES)
def test_a_time_that_was_shown_is_read_as_the_same_time(timestamp, zone):
    offset = datetime.fromtimestamp(timestamp / 1000, zone).utcoffset()
    assume(offset.seconds % 60 == 0)  # before standard time offsets had seconds, which ISO 8601 has no room for
    assert parse_time(format_time(timestamp, zone), now_ms=0, zone=UTC).ms == timestamp


PROGRAMS = st.sampled_from(
    [
        "%d/%b/%Y:%H:%M:%S %z",
        "[%d/%b/%Y:%H:%M:%S %z]",
        "%a %b %e %H:%M:%S %Y %z",
        "%a %b %d %H:%M:%S %z %Y",
        "%a %d %b %Y %I:%M:%S %p %z",
        "%a, %d %b %Y %H:%M:%S %z",
        "%a %b %d %Y %H:%M:%S GMT%z (Somewhere Time)",
        "%Y-%m-%d %H:%M:%S %z CEST",
        "%Y%m%dT%H%M%S%z",
        "%Y/%m/%d %H:%M:%S %z",
        "%A, %d-%b-%Y %H:%M:%S %z",
        "%B %d, %Y, %I:%M:%S %p %z",
    ]
)


@given(st.integers(0, 10_000_000_000), ZONES, PROGRAMS)
def test_a_time_that_a_program_wrote_is_read_as_the_same_time(seconds, zone, form):
    written = datetime.fromtimestamp(seconds, zone)
    assume(written.utcoffset().seconds % 60 == 0)
    assert parse_time(written.strftime(form), now_ms=0, zone=ZoneInfo("Asia/Tokyo")).ms == seconds * 1000


@given(st.integers(10**11, 10**14 - 1))
def test_milliseconds_are_taken_as_they_are(timestamp):
    assert parse_time(f"@{timestamp}", now_ms=0, zone=UTC).ms == timestamp


@given(st.integers(10**9, 9 * 10**9), st.sampled_from([0, 3, 6, 9]))
def test_every_unit_of_an_epoch_is_the_same_time(seconds, digits):
    assert parse_time(f"@{seconds * 10**digits}", now_ms=0, zone=UTC).ms == seconds * 1000


@given(st.lists(st.integers(0, 999), min_size=6, max_size=6), TIMESTAMPS)
def test_durations_add_up_and_ago_subtracts_them(counts, now_ms):
    assume(any(counts))
    text = "".join(f"{count}{unit}" for count, unit in zip(counts, UNITS_MS, strict=True) if count)
    expected = sum(count * unit for count, unit in zip(counts, UNITS_MS.values(), strict=True))
    assert parse_duration(text) == expected
    for form in (text, f"-{text}", f"{text}-ago", f"{text} ago", f"now-{text}"):
        assert parse_time(form, now_ms=now_ms, zone=UTC).ms == now_ms - expected


@given(st.integers(0, 10**15))
def test_what_is_shown_of_a_duration_is_near_it_and_never_more(duration_ms):
    shown = parse_duration(format_duration(duration_ms))
    assert shown <= duration_ms
    assert duration_ms - shown <= duration_ms / 6


@given(st.text(alphabet="0123456789:-+.@TZ wdhmsnoadylagupPvVeUC/,[]()\u00b2", max_size=24), ZONES)
def test_any_text_is_a_time_or_refused_with_its_reason(text, zone):
    assert understood(text, zone)


def understood(text, zone):
    try:
        return parse_time(text, now_ms=1_700_000_000_000, zone=zone, ends=True).understood
    except TimeTextError as refused:
        return repr(text[:20])[:-1] in str(refused)


@given(
    TIMESTAMPS,
    ZONES,
    st.sampled_from(["monday", "tue", "wednesday", "last friday", "sunday 02:30", "last sat 23:59:59"]),
)
def test_a_weekday_is_the_latest_that_is_not_after_now(now_ms, zone, text):
    moment = parse_time(text, now_ms=now_ms, zone=zone)
    assert moment.ms <= now_ms
    assert now_ms - moment.ms <= 15 * UNITS_MS["d"]
    day = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=moment.ms)
    assert f"{day.astimezone(zone):%A}".lower().startswith(text.removeprefix("last ")[:3])


@given(TIMESTAMPS, ZONES)
def test_today_has_begun_and_tomorrow_has_not(now_ms, zone):
    def at(text):
        return parse_time(text, now_ms=now_ms, zone=zone).ms

    assert at("yesterday") < at("today") <= now_ms < at("tomorrow")
