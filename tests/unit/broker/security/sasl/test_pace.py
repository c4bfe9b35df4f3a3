"""An address that fails again and again tries ever slower; others do not notice."""

import pytest

from horolog.broker.security.sasl import pace
from horolog.broker.security.sasl.pace import FREE, LoginPace, counted_as


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def made(first_ms=100, most_ms=1000):
    clock = Clock()
    return clock, LoginPace(clock, lambda: first_ms, lambda: most_ms)


def test_answers_come_later_with_each_failure_up_to_the_longest():
    _, logins = made()
    assert [logins.failed("192.0.2.1") for _ in range(FREE)] == [0.1] * FREE
    assert [logins.failed("192.0.2.1") for _ in range(5)] == [0.2, 0.4, 0.8, 1.0, 1.0]
    assert logins.failed("192.0.2.2") == 0.1
    assert "2 addresses" in repr(logins)


def test_an_address_that_rests_is_as_new():
    clock, logins = made()
    for _ in range(FREE + 5):
        logins.failed("h")
    clock.now += pace.FORGET_S + 1
    assert logins.failed("h") == 0.1


@pytest.mark.parametrize(("first_ms", "most_ms", "waits"), [(0, 1000, 0.0), (100, 0, 0.1), (2000, 1000, 2.0)])
def test_the_first_delay_is_the_least(first_ms, most_ms, waits):
    _, logins = made(first_ms, most_ms)
    assert [logins.failed("h") for _ in range(FREE + 9)] == [waits] * (FREE + 9)


def test_addresses_are_bounded(monkeypatch):
    monkeypatch.setattr(pace, "MOST_ADDRESSES", 2)
    _, logins = made()
    for host in "abc":
        logins.failed(host)
    assert "2 addresses" in repr(logins)


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_what_counts_as_one_address(host, counted):
    assert counted_as(host) == counted
