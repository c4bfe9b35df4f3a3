"""The bounds of connections are those of the settings."""

import math

from tests.support.conversations import limits


def test_bounds_are_those_of_the_settings():
    found = limits(connections_max_idle_ms=7, queued_max_requests=3, socket_request_max_bytes=1000)
    assert (found.max_idle_ms, found.max_unanswered_requests, found.max_request_bytes) == (7, 3, 1000)


def test_the_memory_of_requests_is_bounded_only_where_a_bound_is_set():
    assert limits(queued_max_request_bytes=-1).memory.requests.limit_bytes == math.inf
    assert limits(queued_max_request_bytes=5000).memory.requests.limit_bytes == 5000
