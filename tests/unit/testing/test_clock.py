"""The clock of a broker in a test: texts, spans and dates; whoever goes by it is told, and waited for."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from horolog.client.values.times import TimeTextError
from horolog.testing.clock import BrokerClock, Watcher, milliseconds, span_ms

T0 = 1_700_000_000_000


class Told(Watcher):
    def __init__(self):
        self.seen = []

    def moved(self, seconds):
        self.seen.append(seconds)

    async def settle(self):
        self.seen.append("settled")


def test_it_runs_until_it_is_set_and_again_when_let_run():
    clock = BrokerClock()
    assert not clock.is_standing
    assert abs(clock.wall_ms() - time.time() * 1000) < 60_000
    clock.set(T0)
    assert clock.is_standing
    assert clock.wall_ms() == clock.wall_ms() == T0
    before = clock.monotonic()
    clock.advance(timedelta(seconds=5))
    assert clock.wall_ms() == T0 + 5_000
    assert clock.monotonic() - before >= 5
    clock.run()
    clock.run()
    assert T0 + 5_000 <= clock.wall_ms() < T0 + 65_000
    clock.advance(days=1)
    assert clock.wall_ms() >= T0 + 86_405_000
    with pytest.raises(ValueError, match="forward only"):
        clock.advance(seconds=-1)
    with pytest.raises(ValueError, match="time zone"):
        clock.set(datetime(2026, 1, 1))  # noqa: DTZ001 - that it has none is the point


def test_texts_are_those_of_the_command_line():
    clock = BrokerClock("2026-11-17 10:05")
    assert clock.start_ms == clock.wall_ms() == milliseconds(datetime(2026, 11, 17, 10, 5, tzinfo=UTC), 0)
    clock.advance("3 days")
    clock.advance("1h30m")
    assert clock.wall_ms() - clock.start_ms == 3 * 86_400_000 + 5_400_000
    clock.set("now-30m")
    assert clock.wall_ms() - clock.start_ms == 3 * 86_400_000 + 3_600_000
    clock.set("2026-11-17T10:05+01:00")
    assert clock.wall_ms() == clock.start_ms - 3_600_000
    with pytest.raises(TimeTextError, match="a unit"):
        clock.advance("3 parsecs")
    with pytest.raises(TimeTextError):
        clock.set("teatime")


def test_spans():
    assert [span_ms(one) for one in ("2s", 0.25, 3, timedelta(minutes=1))] == [2000, 250, 3000, 60_000]


async def test_whoever_goes_by_it_is_told_and_waited_for():
    clock, told = BrokerClock(T0), Told()
    clock.watchers.append(told)
    clock.advance("2s")
    assert told.seen == [2.0]
    await clock.set(T0)
    await clock.advance(seconds=1)
    assert told.seen == [2.0, 0.0, "settled", 1.0, "settled"]
    assert "standing" in repr(clock)
    assert "running" in repr(BrokerClock())


async def test_a_watcher_says_what_it_does():
    with pytest.raises(NotImplementedError):
        Watcher().moved(1)
    with pytest.raises(NotImplementedError):
        await Watcher().settle()
