"""Retention: by time, by size, by start offset, always from the front, and what a record from the future does."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.config.settings import load
from horolog.broker.config.topic_settings import resolve
from horolog.broker.log.partition.retention import (
    Cause,
    Expired,
    RetentionDecision,
    SegmentAge,
    decide,
)
from horolog.protocol.records.timestamps import FUTURE_TOLERANCE_MS
from tests.support.golden import Case

NOW = 1_700_000_000_000
CONFIG = replace(
    resolve({}, load(None, {}, {})[0]), delete=True, retention_ms=1000, retention_bytes=-1, future_timestamp_max_ms=-1
)


def segments(*timestamps, size=100):
    return [SegmentAge(10 * n, 10 * n + 10, size, timestamp) for n, timestamp in enumerate(timestamps)]


def run(some, config=CONFIG, *, start=0, up_to=10**9, modified=lambda base: NOW) -> RetentionDecision:
    return decide(some, config, NOW, log_start_offset=start, deletable_up_to=up_to, modified_ms=modified)


def bases(decision):
    return [one.base_offset for one in decision.expired]


def never(base):
    raise AssertionError(f"the file time of {base} was asked for, and timestamps decide")


@pytest.mark.parametrize(("age_ms", "gone"), [(1000, []), (1001, [0])])
def test_older_than_retention_goes_strictly(age_ms, gone):
    assert bases(run(segments(NOW - age_ms, NOW), modified=never)) == gone


def test_stops_at_the_first_survivor():
    assert bases(run(segments(NOW - 5000, NOW, NOW - 5000, NOW), modified=never)) == [0]


def test_without_timestamps_the_file_decides():
    times = {0: NOW - 1001, 10: NOW - 1000, 20: NOW - 9000}
    assert bases(run(segments(-1, -1, -1), modified=times.__getitem__)) == [0]


def test_everything_goes_the_active_segment_too_unless_it_is_empty():
    old = segments(NOW - 5000, NOW - 4000)
    assert bases(run(old)) == [0, 10]
    assert bases(run([*old[:1], SegmentAge(10, 10, 0, -1)], modified=lambda base: 0)) == [0]


def test_by_size_what_remains_is_never_less_than_asked_for():
    config = replace(CONFIG, retention_ms=-1, retention_bytes=250)
    decision = run(segments(*[NOW] * 5), config)
    assert decision.expired == (Expired(0, Cause.SIZE), Expired(10, Cause.SIZE))
    assert bases(run(segments(*[NOW] * 5), replace(config, retention_bytes=0))) == [0, 10, 20, 30, 40]
    assert bases(run(segments(*[NOW] * 5), replace(config, retention_bytes=500))) == []


def test_by_start_offset_whatever_the_policy():
    config = replace(CONFIG, delete=False, compact=True)
    assert run(segments(0, 0, 0), config, start=19).expired == (Expired(0, Cause.START_OFFSET),)
    assert bases(run(segments(0, 0, 0), config, start=20)) == [0, 10]


def test_nothing_behind_the_high_watermark_goes():
    assert bases(run(segments(0, 0, 0), up_to=19)) == [0]


def test_limits_of_minus_one_are_none():
    assert bases(run(segments(0, 0), replace(CONFIG, retention_ms=-1))) == []


FUTURE = 4_102_444_800_000


def test_a_record_from_the_future_blocks_and_is_named():
    some = segments(NOW - 5000, FUTURE, NOW - 5000)
    decision = run(some)
    assert bases(decision) == [0]
    assert decision.blocked_by_future == some[1]


@pytest.mark.parametrize(("ahead_ms", "named"), [(FUTURE_TOLERANCE_MS, False), (FUTURE_TOLERANCE_MS + 1, True)])
def test_a_fast_clock_is_no_future(ahead_ms, named):
    assert (run(segments(NOW + ahead_ms)).blocked_by_future is not None) is named


def test_with_a_cap_the_file_decides_about_a_segment_from_the_future():
    config = replace(CONFIG, future_timestamp_max_ms=60_000)
    some = segments(NOW + 60_001, FUTURE, NOW)
    written = {0: NOW - 2000, 10: NOW - 500}
    decision = run(some, config, modified=written.__getitem__)
    assert bases(decision) == [0]
    assert decision.blocked_by_future is None
    assert bases(run(segments(NOW + 60_000), config, modified=never)) == []


@given(
    st.lists(st.tuples(st.integers(NOW - 3000, NOW), st.integers(0, 200)), min_size=1, max_size=8), st.integers(-1, 800)
)
def test_a_prefix_goes_and_its_successor_stays(rows, retention_bytes):
    some = [SegmentAge(n, n + 1, size, timestamp) for n, (timestamp, size) in enumerate(rows)]
    config = replace(CONFIG, retention_bytes=retention_bytes)
    gone = bases(run(some, config))
    assert gone == list(range(len(gone)))
    rest = some[len(gone) :]
    if rest and not (len(rest) == 1 and rest[0].size_bytes == 0):
        assert NOW - rest[0].largest_timestamp <= config.retention_ms
        if retention_bytes >= 0:
            assert sum(one.size_bytes for one in rest[1:]) < retention_bytes or not rest[0].size_bytes


def _ages(case, stage):
    """The segments of a stage, told from file names, sizes and the last entries of time indexes."""
    files = case.files(stage)
    starts = sorted(int(name[:20]) for name in files if name.endswith(".log"))
    ages = []
    for base, following in zip(starts, [*starts[1:], 10**9], strict=True):
        times = files[f"{base:020d}.timeindex"]
        largest = int.from_bytes(times[-12:-4], "big") if times else -1
        ages.append(SegmentAge(base, following, len(files[f"{base:020d}.log"]), largest))
    return ages


HOUR = 3_600_000


@pytest.mark.parametrize(
    ("name", "settings", "start"),
    [
        ("v1-retention-time", {"retention_ms": HOUR}, 0),
        ("v1-retention-size", {"retention_ms": -1, "retention_bytes": 2000}, 0),
        ("v2-retention-time", {"retention_ms": HOUR}, 0),
        ("v2-retention-blocked", {"retention_ms": HOUR}, 0),
        ("v0-retention-fresh", {"retention_ms": HOUR}, 0),
        ("v0-retention-mtime-mid", {"retention_ms": HOUR}, 0),
        ("v2-delete-records", {"retention_ms": -1}, 20),
    ],
)
def test_decides_as_real_brokers_did(golden_root, name, settings, start):
    case = Case(name, golden_root)
    before, after = _ages(case, "before"), _ages(case, "active")
    mtimes = case.mtimes_ms("before")
    now_ms = max(mtimes.values())
    decision = decide(
        before,
        replace(CONFIG, **settings),
        now_ms,
        log_start_offset=start,
        deletable_up_to=10**9,
        modified_ms=lambda base: mtimes[f"{base:020d}.log"],
    )
    gone = len(decision.expired)
    assert [one.base_offset for one in before[gone:]] == [one.base_offset for one in after]
    blocking = decision.blocked_by_future
    assert (blocking is not None) == (after[0].largest_timestamp > now_ms)
