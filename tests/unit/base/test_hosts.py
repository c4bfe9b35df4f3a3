"""Hosts that only this machine reaches, and addresses with their ports."""

import pytest

from horolog.base.hosts import host_and_port, is_loopback


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


@pytest.mark.parametrize(
    ("text", "parts"),
    [("a:1", ("a", 1)), (":0", ("", 0)), ("[::1]:65535", ("::1", 65535)), ("0.0.0.0:80", ("0.0.0.0", 80))],
)
def test_a_host_and_its_port(text, parts):
    assert host_and_port(text) == parts


@pytest.mark.parametrize(
    ("text", "said"),
    [("a", "a port from 0"), ("a:", "a port"), ("a:65536", "a port"), ("a:-1", "a port"), ("::1:80", "brackets")],
)
def test_no_host_with_a_port(text, said):
    with pytest.raises(ValueError, match=said):
        host_and_port(text)
