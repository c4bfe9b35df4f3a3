"""How many descriptors connections may use, by what the system gives the process."""

import resource

import pytest

from horolog.broker.log.storage import default_max_open_files
from horolog.broker.network import descriptors


@pytest.fixture
def limit(monkeypatch):
    """The limits of the process, as two numbers that a test sets."""
    pair = [1024, 4096]
    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(pair))
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: pair.__setitem__(slice(None), wanted))
    return pair


def test_the_process_takes_all_that_the_system_lets_it_have(limit):
    descriptors.raise_limit()
    assert limit == [4096, 4096]
    descriptors.raise_limit()
    assert limit == [4096, 4096]


def test_connections_get_what_the_log_and_the_rest_do_not_need(limit):
    limit[:] = [100_000, 100_000]
    left = 100_000 - default_max_open_files() - descriptors.OWN_DESCRIPTORS
    assert descriptors.left_for_connections() == left > 0


def test_a_few_connections_are_always_let_in(limit):
    limit[:] = [20, 20]
    assert descriptors.left_for_connections() == descriptors.LEAST_CONNECTIONS


def test_where_there_is_no_limit_there_is_none_for_connections(limit):
    limit[:] = [resource.RLIM_INFINITY, resource.RLIM_INFINITY]
    assert descriptors.left_for_connections() == 2**31 - 1
