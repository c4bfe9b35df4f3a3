"""Bounds a test's processor time, which tells linear work from quadratic work on any machine, and times that are only as good as the machine."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Require the body to take no more processor time of this process: choose work for which the fault would take ten times as much."""
    before = time.process_time()
    yield
    took_s = time.process_time() - before
    assert took_s < seconds, f"it took {took_s:.1f} s of processor time, not below {seconds} s"


@contextmanager
def commands_at_most(seconds: float) -> Iterator[None]:
    """Require the processes that the body starts and waits for to take no more processor time."""
    before = _of_children()
    yield
    took_s = _of_children() - before
    assert took_s < seconds, f"they took {took_s:.1f} s of processor time, not below {seconds} s"


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def quickest(measure: Callable[[], float], below: float, times: int = 10) -> float:
    """The least of so many measurements, no more of them than it takes to come below a bound.

    A machine that is busy with other things makes some of them slow; a fault makes all of them slow.
    """
    least = measure()
    for _ in range(times - 1):
        if least < below:
            break
        least = min(least, measure())
    return least
