"""Time zones: names and offsets that are read, and what stands instead of an abbreviation."""

import zoneinfo
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path

import pytest

from horolog.client.values.time_text import TimeText, TimeTextError
from horolog.client.values.zones import ZONE_NAME, local_zone, parse_zone, take_offset, zone_instead_of


@pytest.mark.parametrize(("text", "hours"), [("UTC", 0), ("z", 0), ("+02:00", 2), ("-0530", -5.5), ("Etc/GMT-3", 3)])
def test_zones(text, hours):
    assert datetime(2026, 1, 1, tzinfo=parse_zone(text)).utcoffset() == timedelta(hours=hours)


@pytest.mark.parametrize(
    "text", ["Mars/Olympus", "../../etc/passwd", "", "+99:00", "/etc/localtime", "Europe/Berlin\0"]
)
def test_names_that_are_no_zone(text):
    with pytest.raises(TimeTextError):
        parse_zone(text)


def berlin():
    """The file of a zone, of the system's or of the package that takes its place."""
    for folder in map(Path, zoneinfo.TZPATH):
        if (folder / "Europe/Berlin").exists():
            return (folder / "Europe/Berlin").read_bytes()
    return files("tzdata").joinpath("zoneinfo/Europe/Berlin").read_bytes()


def test_the_machines_zone_is_what_TZ_says_or_its_file_or_utc(tmp_path):
    assert datetime(2026, 7, 1, tzinfo=local_zone({"TZ": ":Asia/Tokyo"})).utcoffset() == timedelta(hours=9)
    assert local_zone({}, str(tmp_path / "missing")) is UTC
    (tmp_path / "own").write_bytes(berlin())
    assert datetime(2026, 7, 1, tzinfo=local_zone({}, str(tmp_path / "own"))).utcoffset() == timedelta(hours=2)
    (tmp_path / "broken").write_bytes(b"no zone")
    assert local_zone({}, str(tmp_path / "broken")) is UTC


def test_local_is_the_zone_of_the_environment(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert datetime(2026, 7, 1, tzinfo=parse_zone("local")).utcoffset() == timedelta(hours=9)


def test_a_name_that_is_nearly_right_is_answered_with_the_right_one():
    with pytest.raises(TimeTextError, match="do you mean Europe/Berlin"):
        parse_zone("Europe/Berlim")
    with pytest.raises(TimeTextError, match="examples: Europe/Berlin, UTC, \\+02:00"):
        parse_zone("Mars/Olympus")


@pytest.mark.parametrize(
    ("text", "hours", "rest"),
    [
        ("+02:00", 2, ""),
        ("-0530 then", -5.5, " then"),
        ("UTC+3", None, "UTC+3"),
        ("GMT-03", -3, ""),
        ("Z", 0, ""),
        ("Zulu", None, "Zulu"),
        ("+05m", None, "+05m"),
        ("+05.5h", None, "+05.5h"),
    ],
)
def test_an_offset_may_follow_a_time_but_is_no_duration(text, hours, rest):
    source = TimeText(text, "UTC")
    offset = take_offset(source)
    found = None if offset is None else offset.utcoffset(None)
    assert found == (None if hours is None else timedelta(hours=hours))
    assert text[source.position :] == rest


@pytest.mark.parametrize("text", ["+24:00", "-10:60"])
def test_offsets_end_below_a_day(text):
    with pytest.raises(TimeTextError, match="an offset from UTC below 24 hours"):
        take_offset(TimeText(text, "UTC"))


def test_abbreviations_are_answered_with_zones():
    assert zone_instead_of("CEST") == "Europe/Berlin or +01:00"
    assert zone_instead_of("xyz") is None


@pytest.mark.parametrize(
    ("text", "name"), [("10:05 Europe/Berlin", "Europe/Berlin"), ("10:05 utc", "utc"), ("10:05 UTC+05m", "UTC")]
)
def test_a_zone_is_found_behind_a_time(text, name):
    assert ZONE_NAME.search(text)[1] == name


def test_a_name_at_the_start_is_no_zone():
    assert ZONE_NAME.search("Europe/Berlin") is None
