"""Callers that do not wait for ever are answered once."""

from types import SimpleNamespace

from horolog.broker.base.late_answers import ANSWERED_WITHIN_S, InTime
from horolog.broker.base.own_thread import AtOnce


class Timers:
    def __init__(self):
        self.set = []
        self.cancelled = 0

    def later(self, seconds, callback):
        self.set.append((seconds, callback))
        return SimpleNamespace(cancel=self.cancel)

    def cancel(self):
        self.cancelled += 1


def test_an_outcome_in_time_is_told_and_ends_the_timer():
    timers, told = Timers(), []
    answer = InTime(told.append, "late", timers.later)
    answer("outcome")
    ((seconds, too_late),) = timers.set
    too_late()
    assert (told, seconds, timers.cancelled) == (["outcome"], ANSWERED_WITHIN_S, 1)


def test_an_outcome_that_comes_too_late_is_dropped():
    timers, told = Timers(), []
    answer = InTime(told.append, "late", timers.later)
    timers.set[0][1]()
    answer("outcome")
    assert told == ["late"]


def test_without_a_timer_a_caller_waits():
    told = []
    answer = InTime(told.append, "late", AtOnce.later)
    answer("outcome")
    answer("another")
    assert told == ["outcome"]
