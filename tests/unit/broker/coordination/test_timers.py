"""The heap of timers: everything happens once, at its time, and a timer postponed or stopped costs no memory for long."""

import asyncio
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from horolog.base.clock import ManualClock, SystemClock
from horolog.broker.coordination.timers import LoopTimers, Timer, Timers


def test_due_timers_run_once_in_order():
    clock, said = ManualClock(), []
    timers = Timers(clock)
    for name, after_ms in (("b", 20), ("a", 10), ("c", 30)):
        timers.start(Timer(lambda name=name: said.append(name)), after_ms)
    clock.advance(20)
    timers.run_due()
    timers.run_due()
    assert said == ["a", "b"]
    clock.advance(10)
    timers.run_due()
    assert said == ["a", "b", "c"]
    assert timers.next_due() is None


def test_an_action_may_start_its_own_timer_again():
    clock, said = ManualClock(), []
    timers = Timers(clock)
    timer = Timer(lambda: (said.append(1), timers.start(timer, 0)))
    timers.start(timer, 0)
    for _ in range(3):
        timers.run_due()
    assert len(said) == 3


@given(
    st.lists(st.tuples(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 50)), st.integers(0, 20)), max_size=60)
)
def test_like_a_list_of_deadlines(steps):
    """Start, postpone, bring forward and stop at random: what runs is what a plain list of deadlines says."""
    clock = ManualClock(monotonic=0.0)
    wakes = []
    timers = Timers(clock, wakes.append)
    ran, expected = [], []
    model = [inf] * 5
    made = [Timer(lambda number=number: ran.append(number)) for number in range(5)]
    for number, after_ms, pass_ms in steps:
        if after_ms is None:
            timers.stop(made[number])
            model[number] = inf
        else:
            timers.start(made[number], after_ms)
            model[number] = clock.monotonic() + after_ms / 1000
            assert timers.next_due() <= model[number]
        clock.advance(pass_ms)
        timers.run_due()
        expected += sorted(one for one in range(5) if model[one] <= clock.monotonic())
        model = [inf if deadline <= clock.monotonic() else deadline for deadline in model]
        assert sorted(ran) == sorted(expected)
        assert [timer.running for timer in made] == [deadline != inf for deadline in model]


def test_heartbeats_leave_nothing_behind():
    clock = ManualClock()
    timers = Timers(clock)
    made = [Timer(lambda: None) for _ in range(10)]
    for _ in range(10_000):
        for timer in made:
            timers.start(timer, 45_000)
        clock.advance(3_000)
        timers.run_due()
    assert len(timers._heap) <= 10


def test_stopped_timers_do_not_pile_up():
    timers = Timers(ManualClock())
    for _ in range(10_000):
        timer = Timer(lambda: None)
        timers.start(timer, 1_800_000)
        timers.stop(timer)
    assert len(timers._heap) < 100


def test_it_asks_to_be_woken_for_the_first():
    clock, wakes = ManualClock(monotonic=0.0), []
    timers = Timers(clock, wakes.append)
    timers.start(Timer(lambda: None), 500)
    timers.start(Timer(lambda: None), 900)
    timers.start(Timer(lambda: None), 100)
    assert wakes == [0.5, 0.1]
    clock.advance(100)
    timers.run_due()
    assert wakes[-1] == 0.4


def test_timers_say_what_they_are_about():
    timers, timer = Timers(ManualClock(monotonic=2.0)), Timer(print)
    assert repr(timer).endswith("off>")
    timers.start(timer, 500)
    assert repr(timer).endswith("at 2.500>")
    assert repr(timers) == "<Timers: 1 running, 1 queued>"


def test_a_timer_that_was_brought_forward_is_not_run_at_its_old_time():
    clock, said = ManualClock(), []
    timers, timer = Timers(clock), Timer(lambda: said.append(1))
    timers.start(timer, 20)
    timers.start(timer, 10)
    clock.advance(30)
    timers.run_due()
    timers.run_due()
    assert said == [1]


async def test_an_event_loop_runs_what_is_due():
    done = asyncio.Event()
    timers = LoopTimers(SystemClock(), asyncio.get_running_loop())
    timers.start(Timer(done.set), 60_000)
    timers.start(Timer(done.set), 1)
    async with asyncio.timeout(60):
        await done.wait()
    timers.close()
    timers.close()
