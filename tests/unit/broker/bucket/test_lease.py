"""The lease counts from the sending of its newest proof, on a clock that goes on while a process stands still."""

import time

from horolog.broker.bucket.lease import Lease, boot_seconds


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def lease(clock):
    return Lease(2.0, clock)


def test_there_is_no_lease_before_the_first_proof():
    assert not lease(Clock()).holds()


def test_a_proof_counts_from_its_sending():
    clock = Clock()
    it = lease(clock)
    sent = it.now()
    clock.now += 1.5  # the store was slow
    it.proved(sent)
    assert it.holds()
    assert it.left_s() == 0.5
    clock.now += 0.5
    assert not it.holds()


def test_an_older_proof_that_comes_late_takes_nothing_back():
    clock = Clock()
    it = lease(clock)
    it.proved(100.0)
    it.proved(99.0)
    assert it.left_s() == 2.0


def test_a_process_that_stood_still_finds_itself_late():
    clock = Clock()
    it = lease(clock)
    it.proved(it.now())
    clock.now += 60
    assert not it.holds()
    it.proved(it.now())
    assert it.holds()


def test_nothing_is_proved_after_the_end():
    it = lease(Clock())
    it.end()
    it.proved(100.0)
    assert not it.holds()
    assert it.left_s() == float("-inf")


def test_a_successor_waits_longer_than_the_lease():
    assert lease(Clock()).serves_after_s() > 2.0


def test_the_clock_counts_sleep_where_the_system_does(monkeypatch):
    assert boot_seconds() > 0
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    assert abs(boot_seconds() - time.monotonic()) < 1


def test_it_shows_what_is_left():
    clock = Clock()
    it = lease(clock)
    it.proved(100.0)
    assert repr(it) == "<Lease of 2.0 s, 2.0 s left>"
