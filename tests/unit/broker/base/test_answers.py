"""Coroutines that wait for callbacks: they go on when their answers come, at once or later."""

import pytest

from horolog.broker.base.answers import Answer, run


class Later:
    """Calls back when the test says so."""

    def __init__(self):
        self.callbacks = []

    def begin(self, done):
        self.callbacks.append(done)

    def answer(self, result):
        self.callbacks.pop(0)(result)


def test_each_answer_runs_the_coroutine_on():
    later, seen = Later(), []

    async def steps():
        seen.append(await Answer(later.begin))
        seen.append(await Answer(lambda done: done("at once")))
        seen.append(await Answer(later.begin))

    run(steps())
    assert seen == []
    later.answer(1)
    assert seen == [1, "at once"]
    later.answer(2)
    assert seen == [1, "at once", 2]
    assert later.callbacks == []


def test_answers_that_are_there_at_once_do_not_nest():
    async def steps():
        for number in range(10_000):
            assert await Answer(lambda done, number=number: done(number)) == number
        seen.append("over")

    seen = []
    run(steps())
    assert seen == ["over"]


def test_coroutines_await_each_other():
    later, seen = Later(), []

    async def inner():
        return await Answer(later.begin) + 1

    async def steps():
        seen.append(await inner())

    run(steps())
    later.answer(1)
    assert seen == [2]


def test_what_a_coroutine_raises_comes_to_whatever_ran_it_on():
    later = Later()

    async def steps():
        await Answer(later.begin)
        raise ValueError("wrong")

    run(steps())
    with pytest.raises(ValueError, match="wrong"):
        later.answer(None)
