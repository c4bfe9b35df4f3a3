"""Pauses between tries."""

import pytest

from horolog.client.wire.retry import UNKNOWN_TOPIC_ATTEMPTS, RetryPolicy
from horolog.protocol.errors import ErrorCode


def test_pauses_double_up_to_the_bound():
    policy = RetryPolicy(backoff_ms=100, backoff_max_ms=1000)
    assert [policy.delay_ms(attempt, lambda: 0.5) for attempt in (1, 2, 3, 4, 5, 1000)] == [
        100,
        200,
        400,
        800,
        1000,
        1000,
    ]


@pytest.mark.parametrize(("drawn", "factor"), [(0.0, 0.8), (0.5, 1.0), (1.0, 1.2)])
def test_pauses_are_spread(drawn, factor):
    assert RetryPolicy(backoff_ms=100).delay_ms(1, lambda: drawn) == pytest.approx(100 * factor)


def test_it_gives_up_when_time_is_up_and_sooner_for_topics_that_do_not_exist():
    policy = RetryPolicy(timeout_ms=1000)
    assert not policy.gives_up(ErrorCode.NOT_LEADER_OR_FOLLOWER, 50, 999)
    assert policy.gives_up(ErrorCode.NOT_LEADER_OR_FOLLOWER, 1, 1000)
    assert policy.gives_up(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ATTEMPTS, 0)
