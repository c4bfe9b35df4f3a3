"""Counters and warnings for records whose time surprises retention, when they are appended."""

import logging

import pytest

from horolog.base.clock import ManualClock
from horolog.base.readable import format_time
from horolog.broker.log.counters import LogCounters
from horolog.broker.log.partition.time_watch import FAR_AHEAD_MS, SILENCE_MS, TimeWatch, kept_ms
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import MAX_INT64, Record
from tests.support.log_model import NEW, NOW_MS, Model, encode, small_config

DAY_MS = 86_400_000


@pytest.fixture(autouse=True)
def _warnings(caplog):
    caplog.set_level(logging.WARNING, "horolog.broker.log")


def append(model, *timestamps, now_ms=NOW_MS):
    model.partition.append(encode(2, 0, list(timestamps), [b"v"] * len(timestamps)), now_ms, produce_version=NEW)


def counted(model):
    counters: LogCounters = model.partition.resources.counters
    return (
        counters.appends_from_future.value,
        counters.appends_far_ahead.value,
        counters.appends_behind_retention.value,
    )


@pytest.mark.parametrize(
    ("timestamps", "expected"),
    [
        ([NOW_MS], (0, 0, 0)),
        ([NOW_MS - DAY_MS], (0, 0, 0)),
        ([NOW_MS - DAY_MS - 1], (0, 0, 1)),
        ([NOW_MS - 9 * DAY_MS, NOW_MS], (0, 0, 0)),
        ([NOW_MS + 1], (1, 0, 0)),
        ([NOW_MS + FAR_AHEAD_MS], (1, 0, 0)),
        ([NOW_MS, NOW_MS + FAR_AHEAD_MS + 1], (1, 1, 0)),
        ([-1], (0, 0, 0)),
        ([0], (0, 0, 1)),
    ],
)
def test_what_is_counted(timestamps, expected, caplog):
    model = Model(small_config(retention_ms=DAY_MS))
    append(model, *timestamps)
    assert counted(model) == expected
    assert len(caplog.messages) == expected[1] + expected[2]


@pytest.mark.parametrize("changes", [{"retention_ms": -1}, {"retention_ms": 5, "delete": False, "compact": True}])
def test_where_time_deletes_nothing_no_time_is_too_old(changes):
    config = small_config(**changes)
    assert kept_ms(config) == MAX_INT64
    model = Model(config)
    keyed = encode_batch([Record(0, 1, 0, b"k", b"v")])
    model.partition.append(bytes(keyed), NOW_MS, produce_version=NEW)
    assert counted(model) == (0, 0, 0)


def test_a_setting_that_changes_counts_at_once():
    model = Model(small_config(retention_ms=-1))
    append(model, 1)
    model.partition.configure(small_config(retention_ms=DAY_MS))
    append(model, 1)
    assert counted(model) == (0, 0, 1)


def test_times_are_told_as_people_read_them(caplog):
    model = Model(small_config(retention_ms=7 * DAY_MS))
    append(model, 1_600_000_000_000, now_ms=1_795_300_000_000)
    append(model, 2_051_222_400_000, now_ms=1_795_300_000_000)
    behind, ahead = caplog.messages
    for part in ("topic t: partition 0", "2020-09-13T12:26:40.000+00:00", "(1w)", "2026-11-14T22:26:40.000+00:00"):
        assert part in behind
    for part in ("topic t: partition 0", "2035-01-01T00:00:00.000+00:00", "423w", "2026-11-21T22:26:40.000+00:00"):
        assert part in ahead


@pytest.mark.parametrize(("number", "unit"), [(1_795_300_000, "seconds"), (1_795_300_000_000_000, "microseconds")])
def test_another_unit_taken_for_milliseconds_is_named(number, unit, caplog):
    model = Model(small_config(retention_ms=DAY_MS))
    append(model, number, now_ms=1_795_300_100_000)
    assert f"(if {number} are {unit}: of 2026-11-21T22:26:40.000+00:00)" in caplog.text


def test_a_topic_is_told_of_once_an_hour_and_others_for_themselves(caplog):
    watch, counters = TimeWatch(), LogCounters()

    def note(topic, now_ms, largest=5):
        place = Model(small_config(retention_ms=DAY_MS)).partition
        place.topic = topic
        watch.note(place, counters, largest, now_ms)
        told = len(caplog.messages)
        caplog.clear()
        return told

    assert [note("a", NOW_MS), note("a", NOW_MS + SILENCE_MS - 1), note("b", NOW_MS + 1)] == [1, 0, 1]
    assert note("a", NOW_MS + 1, largest=NOW_MS * 2) == 1, "the other trap is another message"
    assert [note("a", NOW_MS + SILENCE_MS), note("b", NOW_MS + SILENCE_MS)] == [1, 0]
    assert note("a", NOW_MS - 5 * SILENCE_MS) == 1, "a clock that was set back silences nobody"
    assert counters.appends_behind_retention.value == 6
    note("c", NOW_MS + 10 * SILENCE_MS)
    assert len(watch._told) == 1, "nothing is remembered for longer than it matters"


@pytest.mark.parametrize("ahead_days", [0, 1, 30])
def test_a_record_that_the_clock_of_retention_keeps_is_not_too_old(ahead_days, caplog):
    """The broker's own clock is ahead of the store's, or has just jumped."""
    model = Model(small_config(retention_ms=DAY_MS))
    model.partition.resources.watch.clock = ManualClock(NOW_MS)
    now_ms = NOW_MS + ahead_days * DAY_MS
    append(model, NOW_MS - DAY_MS, now_ms=now_ms)
    assert (counted(model), caplog.messages) == ((0, 0, 0), [])
    append(model, NOW_MS - DAY_MS - 1, now_ms=now_ms)
    assert counted(model) == (0, 0, 1)
    (line,) = caplog.messages
    assert f"it reaches back to {format_time(NOW_MS - DAY_MS)}" in line
