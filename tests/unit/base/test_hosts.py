"""Hosts that only this machine reaches."""

import pytest

from horolog.base.hosts import is_loopback


@pytest.mark.parametrize(
    ("host", "is_it"),
    [
        ("localhost", True),
        ("LocalHost", True),
        ("127.0.0.1", True),
        ("127.9.8.7", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.1.2.3", False),
        ("broker", False),
        ("", False),
    ],
)
def test_only_this_machine_reaches_a_loopback(host, is_it):
    assert is_loopback(host) is is_it
