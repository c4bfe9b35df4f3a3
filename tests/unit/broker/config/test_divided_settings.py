"""Of what all workers share each has its part."""

import pytest

from horolog.broker.config.divided_settings import DIVIDED, divided
from horolog.broker.config.setting_types import INT32_MAX
from horolog.broker.config.settings import load


def settings(**given):
    return load(None, {}, {key.replace("_", "."): value for key, value in given.items()})[0]


def test_one_process_has_all():
    whole = settings()
    assert divided(whole, 1) is whole


@pytest.mark.parametrize("key", DIVIDED)
def test_parts_together_are_the_whole(key):
    whole = settings(**{key: str(96 * 2**20)})
    assert divided(whole, 3).value(key) == 32 * 2**20


def test_parts_are_rounded_up_and_none_is_nothing():
    part = divided(settings(max_connections="10", max_connections_per_ip="1"), 4)
    assert (part.max_connections, part.max_connections_per_ip) == (3, 1)


def test_bounds_that_are_none_stay_none():
    part = divided(settings(queued_max_request_bytes="-1", horolog_fetch_waiting_max_bytes="0"), 4)
    assert (part.queued_max_request_bytes, part.horolog_fetch_waiting_max_bytes) == (-1, 0)
    assert part.max_connections == -(-INT32_MAX // 4)


def test_a_part_is_never_less_than_what_works():
    assert divided(settings(log_cleaner_dedupe_buffer_size=str(2**21)), 4).log_cleaner_dedupe_buffer_size == 2**20
    small = divided(settings(horolog_store_cache_bytes=str(2**24), horolog_store_unsafe_bytes=str(2**16)), 4)
    assert (small.horolog_store_cache_bytes, small.horolog_store_unsafe_bytes) == (2**24, 2**16)


def test_bounds_of_single_addresses_are_divided_too():
    given = settings(max_connections_per_ip_overrides="10.0.0.1:9,::1:4,nonsense")
    assert divided(given, 4).max_connections_per_ip_overrides == ("10.0.0.1:3", "::1:1", "nonsense")


def test_what_clients_are_told_stays_whole():
    assert divided(settings(max_connections="10"), 2).entry("max.connections").synonyms[0].value == "10"
