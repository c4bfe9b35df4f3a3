"""The rules about time as tables."""

import pytest

from horolog.protocol.records import timestamps as ts

NOW = 1_000_000


@pytest.mark.parametrize(
    ("timestamp", "before", "after", "excess"),
    [
        (NOW, 0, 0, 0),
        (NOW - 1, 0, 0, -1),
        (NOW + 1, 0, 0, 1),
        (NOW - 100, 100, 0, 0),
        (NOW - 101, 100, 0, -1),
        (NOW + 50, 0, 50, 0),
        (NOW + 150, 0, 50, 100),
        (-1, 100, ts.UNBOUNDED_MS, -1 - (NOW - 100)),
        (-(2**63), ts.UNBOUNDED_MS, 0, 0),
        (2**63 - 1, 0, ts.UNBOUNDED_MS, 0),
        (2**63, 0, ts.UNBOUNDED_MS, 1),
    ],
)
def test_excess(timestamp, before, after, excess):
    times = ts.Accepted(NOW, before, after)
    assert ts.excess_ms(timestamp, times) == excess
    if timestamp != -1:
        assert ts.is_accepted_in_batch(timestamp, times) is (excess == 0)
        assert ts.is_accepted_in_set(timestamp, times) is (excess == 0 and timestamp >= -1)
    if excess:
        assert str(abs(excess)) in ts.describe_refusal(timestamp, times)
        assert str(timestamp) in ts.describe_refusal(timestamp, times)


def test_no_time_is_judged_by_the_era():
    bounded = ts.Accepted(NOW, 10, 10)
    unbounded = ts.Accepted(NOW, ts.UNBOUNDED_MS, 10)
    assert ts.is_accepted_in_batch(-1, bounded)
    assert not ts.is_accepted_in_set(-1, bounded)
    assert ts.is_accepted_in_set(-1, unbounded)
    assert ts.is_accepted_in_batch(-5, unbounded)
    assert not ts.is_accepted_in_set(-5, unbounded)
    assert "-5" in ts.describe_refusal(-5, unbounded)


def test_a_refusal_is_found_by_its_name_and_read_by_people():
    day_ms, now_ms = 86_400_000, 1_795_300_000_000
    times = ts.Accepted(now_ms, day_ms, 3_600_000)
    early = ts.describe_refusal(now_ms - 3 * day_ms - 5, times)
    assert early == (
        "TimestampExceededThreshold: timestamp 1795040799995 (2026-11-18T22:26:39.995+00:00)"
        " is 2d (172800005 ms) earlier than the earliest accepted, 1795213600000 (2026-11-20T22:26:40.000+00:00)"
    )
    late = ts.describe_refusal(now_ms * 1000, times)
    assert f"timestamp {now_ms * 1000} (@{now_ms * 1000}) is " in late
    assert late.endswith("later than the latest accepted, 1795303600000 (2026-11-21T23:26:40.000+00:00)")
    assert "-1 (no time)" in ts.describe_refusal(-1, times)


def test_types():
    assert ts.type_of(0x08, 0) == ts.TimestampType.NONE
    assert ts.type_of(0x09, 1) == ts.TimestampType.LOG_APPEND_TIME
    assert ts.type_of(0xF7, 1) == ts.TimestampType.CREATE_TIME
    assert ts.effective_timestamp(5, 9, ts.TimestampType.CREATE_TIME) == 5
    assert ts.effective_timestamp(5, 9, ts.TimestampType.LOG_APPEND_TIME) == 9
