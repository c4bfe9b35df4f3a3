"""Work beside an event loop is done in its order, off the loop's thread, and its results come back on it."""

import asyncio
import threading

import pytest

from horolog.broker.base import own_thread
from horolog.broker.base.own_thread import AtOnce, OwnThread, in_pieces


async def test_work_is_done_in_order_in_another_thread_and_told_in_this_one():
    beside, told = OwnThread(asyncio.get_running_loop(), "test"), []
    all_told = asyncio.Event()

    def done(thread):
        told.append((thread, threading.current_thread()))
        if len(told) == 2:
            all_told.set()

    for _ in range(2):
        beside.run(threading.current_thread, done)
    assert told == []
    await asyncio.wait_for(all_told.wait(), 60)
    beside.close()
    (first, here), (second, _) = told
    assert first is second
    assert here is threading.current_thread() is not first
    assert first.name.startswith("test")
    assert repr(beside).startswith("<OwnThread beside ")


async def test_what_the_work_raises_is_the_loops_to_log():
    loop, seen, told = asyncio.get_running_loop(), asyncio.Event(), []
    loop.set_exception_handler(lambda _, context: (told.append(context["exception"]), seen.set()))
    beside = OwnThread(loop, "test")
    beside.run(lambda: 1 // 0, told.append)
    await asyncio.wait_for(seen.wait(), 60)
    beside.close()
    assert [type(one) for one in told] == [ZeroDivisionError]


async def test_a_close_waits_for_what_was_given():
    beside, done = OwnThread(asyncio.get_running_loop(), "test"), []
    for number in range(50):
        beside.run(lambda number=number: done.append(number), lambda _: None)
    beside.close()
    assert done == list(range(50))


def test_in_the_same_thread_the_result_is_there_at_once():
    beside, told = AtOnce(), []
    beside.run(lambda: 5, told.append)
    beside.later(0, lambda: told.append("late")).cancel()
    beside.close()
    assert told == [5]


def test_a_result_that_comes_after_the_loop_has_given_up_is_dropped():
    class Loop:
        call_later = None

        def run_in_executor(self, _executor, _work):
            return self

        def add_done_callback(self, callback):
            callback(self)

        def cancelled(self):
            return True

    told = []
    beside = OwnThread(Loop(), "test")
    beside.run(lambda: 5, told.append)
    beside.close()
    assert told == []


@pytest.mark.parametrize(("count", "pauses"), [(0, 0), (1, 0), (3, 0), (4, 1), (7, 2)])
def test_others_may_go_on_between_pieces(monkeypatch, count, pauses):
    seen = []
    monkeypatch.setattr(own_thread.time, "sleep", seen.append)
    assert list(in_pieces(range(count), 3)) == list(range(count))
    assert seen == [own_thread.PAUSE_S] * pauses
