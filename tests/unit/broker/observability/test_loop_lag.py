"""The lag of the loop: a call on time counts as nothing, a late one by how late it was."""

from types import SimpleNamespace

from horolog.broker.base.metrics import Metrics
from horolog.broker.observability.loop_lag import LOOP_LAG, LoopLag


class Loop:
    """Time passes as the test says; the one timer is called by hand."""

    def __init__(self):
        self.now_s = 100.0
        self.timer = None

    def time(self):
        return self.now_s

    def call_at(self, when_s, callback):
        self.timer = SimpleNamespace(when_s=when_s, callback=callback, cancel=lambda: setattr(self, "timer", None))
        return self.timer

    def call(self, late_s):
        self.now_s = self.timer.when_s + late_s
        self.timer.callback()


def test_a_timer_that_is_called_late_is_lag():
    loop, metrics = Loop(), Metrics()
    LoopLag(loop, metrics, 0.5)
    for late_s in (0.0, 0.25, 1.0):
        loop.call(late_s)
    ((_, histogram),) = metrics.samples(LOOP_LAG)
    assert (sum(histogram.counts), histogram.sum) == (3, 1.25)
    assert loop.timer.when_s == loop.now_s + 0.5


def test_nothing_is_looked_at_after_the_stop():
    loop = Loop()
    LoopLag(loop, Metrics()).stop()
    assert loop.timer is None
