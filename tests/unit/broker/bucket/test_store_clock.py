"""Ages by the store's clock: a wall clock that is wrong, at the start or later, deletes nothing too early."""

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.bucket.store_clock import StoreClock

NOW_MS = 1_700_000_000_000
YEARS_MS = 10 * 365 * 86_400_000


class Machine:
    """Its wall clock is ahead of the store's by so much."""

    def __init__(self, ahead_ms=0):
        self.wall = ManualClock(NOW_MS + ahead_ms)
        self.clock = StoreClock(self.wall, -ahead_ms, self.wall.monotonic)


def test_clocks_that_agree(caplog):
    machine = Machine(ahead_ms=30_000)
    machine.wall.advance(5_000)
    assert machine.clock.wall_ms() == NOW_MS + 35_000
    assert (machine.clock.monotonic(), machine.clock.offset_ms, machine.clock.is_off) == (5.0, -30_000, False)
    assert not caplog.records


def test_a_clock_that_is_ahead_at_the_start_counts_as_the_stores(caplog):
    machine = Machine(YEARS_MS)
    for _ in range(3):
        machine.wall.advance(1_000)
        machine.clock.wall_ms()
    assert machine.clock.wall_ms() == NOW_MS + 3_000
    (line,) = caplog.messages
    assert "ahead of the store's: ages count by the earlier of the two" in line
    machine.wall.set_wall_ms(NOW_MS + 3_000)
    assert machine.clock.wall_ms() == NOW_MS + 3_000
    assert caplog.messages[1:] == ["this machine's clock agrees with the store's again"]


@pytest.mark.parametrize(("by_ms", "found_ms"), [(YEARS_MS, 1_000), (-YEARS_MS, 1_000 - YEARS_MS), (59_000, 60_000)])
def test_a_clock_that_leaps_later(by_ms, found_ms):
    machine = Machine()
    machine.wall.advance(1_000)
    machine.wall.set_wall_ms(NOW_MS + 1_000 + by_ms)
    assert machine.clock.wall_ms() - NOW_MS == found_ms
    assert machine.clock.offset_ms == -by_ms
    assert str(machine.clock.offset_ms) in repr(machine.clock)
