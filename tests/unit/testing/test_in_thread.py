"""Something asynchronous lives in a thread of its own: its methods are called from others, and its errors are theirs."""

import threading
from concurrent.futures import Future
from contextlib import asynccontextmanager

import pytest

from horolog.testing.in_thread import InThread, awaited, called, in_thread, run_until_over


class Counter:
    def __init__(self):
        self.count = 0

    def add(self, by):
        """Add, and return the thread."""
        self.count += by
        return threading.current_thread().name

    async def later(self, *, within=0):
        self.count += 1
        return within


class ThreadedCounter(InThread[Counter]):
    add = called(Counter.add)
    later = awaited(Counter.later)


@asynccontextmanager
async def counting(made, error=None):
    if error is not None:
        raise error
    yield made


def test_methods_run_in_the_other_thread():
    made = Counter()
    with in_thread(counting(made), ThreadedCounter) as counter:
        assert counter.add(2) == "horolog"
        assert counter.later(within="1s") == "1s"
        assert counter.later() == 0
    assert (made.count, ThreadedCounter.add.__doc__) == (4, Counter.add.__doc__)
    assert not [one for one in threading.enumerate() if one.name == "horolog"]


def test_an_error_before_the_start_is_the_starters():
    with pytest.raises(OSError, match="taken"), in_thread(counting(Counter(), OSError("taken")), ThreadedCounter):
        pass


def test_a_fault_behind_the_start_is_not_hidden():
    started = Future()
    started.set_result(None)

    async def serve():
        raise OSError("the loop's own")

    with pytest.raises(OSError, match="the loop's own"):
        run_until_over(serve(), started)
