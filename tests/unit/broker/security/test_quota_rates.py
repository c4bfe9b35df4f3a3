"""Kafka's arithmetic of rates, and what a client that waits as it is told gets by it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.security.quota_rates import Rate, TokenBucket, Windows

WINDOWS = Windows(11, 1.0)


def test_a_rate_counts_as_if_all_windows_but_the_last_had_passed():
    rate = Rate(WINDOWS)
    assert (rate.per_second(5.0), rate.wait_s(10.0, 5.0)) == (0.0, 0.0)
    rate.record(100.0, 5.0)
    assert rate.per_second(5.0) == 10.0
    assert rate.per_second(5.5) == pytest.approx(100 / 10.5)
    assert rate.per_second(15.5) == pytest.approx(100 / 10.5)
    assert rate.per_second(16.0) == 0.0


def test_windows_are_forgotten_one_by_one():
    rate = Rate(WINDOWS)
    for second in range(20):
        rate.record(10.0, float(second))
    assert rate.per_second(19.0) == pytest.approx(110 / 10)
    assert repr(rate) == "<Rate of 11 windows>"
    assert not rate.says_nothing(29.9)
    assert rate.says_nothing(30.0)


def test_what_is_over_is_waited_for():
    rate = Rate(WINDOWS)
    rate.record(200.0, 0.0)
    assert rate.wait_s(10.0, 0.0) == pytest.approx(10.0)  # twice the rate in ten seconds
    assert rate.wait_s(20.0, 0.0) == 0.0


def test_one_window_alone_is_never_shorter_than_itself():
    rate = Rate(Windows(1, 2.0))
    rate.record(10.0, 0.0)
    assert rate.per_second(0.5) == 5.0


@given(
    st.floats(1.0, 1e6),
    st.lists(st.tuples(st.floats(0.001, 0.5), st.floats(0.0, 0.2)), min_size=5, max_size=5),
)
def test_who_waits_as_told_goes_as_fast_as_allowed(limit, steps):
    """Over two minutes, whatever the size of a request, in parts of a second's limit, and the time between two."""
    rate, now_s, used = Rate(WINDOWS), 0.0, 0.0
    count = 0
    while now_s < 120.0:
        size, pause_s = steps[count % len(steps)]
        count += 1
        rate.record(size * limit, now_s)
        used += size * limit
        wait_s = rate.wait_s(limit, now_s)
        now_s += max(wait_s, pause_s, 0.001)
    assert used <= 1.1 * limit * (now_s + 11.0)
    offered = sum(size for size, _ in steps) / max(sum(pause for _, pause in steps), 0.001 * len(steps))
    assert used >= 0.9 * min(limit, offered * limit * 0.9) * 120.0 - limit * 11


def test_a_bucket_may_be_emptied_at_once_and_below():
    bucket = TokenBucket(WINDOWS)
    bucket.record(22.0, 2.0, 100.0)
    assert bucket.wait_s(2.0, 100.0) == 0.0
    bucket.record(4.0, 2.0, 100.0)
    assert bucket.wait_s(2.0, 100.0) == pytest.approx(2.0)
    assert bucket.wait_s(2.0, 102.0) == 0.0
    assert not bucket.says_nothing(112.9)
    assert bucket.says_nothing(113.0)
    assert repr(bucket) == "<TokenBucket, 0 taken>"


@given(st.floats(0.1, 50.0), st.lists(st.tuples(st.floats(0.0, 3.0), st.integers(1, 100)), max_size=50))
def test_a_bucket_gives_no_more_than_fills_it_and_flows_in(limit, asked):
    """Beside one request, which may be larger than the rest."""
    bucket, now_s, given_out, largest = TokenBucket(WINDOWS), 0.0, 0.0, 0
    for pause_s, amount in asked:
        now_s += pause_s
        if not bucket.wait_s(limit, now_s):
            bucket.record(amount, limit, now_s)
            given_out += amount
            largest = max(largest, amount)
    assert given_out <= limit * (11 + now_s) + largest + 1e-6
