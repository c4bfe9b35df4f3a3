"""A backup ships so many bytes a second, and no more."""

from horolog.base.clock import ManualClock
from horolog.broker.backup.pacing import BytePace


def pace(rate):
    clock, slept = ManualClock(0), []

    def sleep(seconds):
        slept.append(seconds)
        clock.advance(int(seconds * 1000))

    return BytePace(rate, clock.monotonic, sleep), clock, slept


def test_each_amount_takes_its_time():
    one, clock, slept = pace(100)
    one.spent(50)
    one.spent(100)
    assert slept == [0.5, 1.0]
    clock.advance(10_000)
    one.spent(100)
    assert slept[-1] == 1.0


def test_slow_stores_are_not_waited_for_twice():
    one, clock, slept = pace(100)
    one.spent(100)
    clock.advance(2_000)
    one.spent(0)
    assert slept == [1.0]


def test_without_a_bound():
    one, _, slept = pace(0)
    one.spent(1 << 40)
    assert (slept, repr(one)) == ([], "<BytePace of 0 bytes a second>")
