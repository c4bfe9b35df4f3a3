"""Tasks that wait for callbacks run a few at a time, and their results keep their order."""

from functools import partial

from horolog.broker.base.answers import Answer, run
from horolog.broker.bucket.parallel import both, in_parallel
from tests.support.shipping import in_full


async def at_once(value):
    return value


def test_no_tasks_have_no_results():
    assert in_full(in_parallel([], 4)) == []


def test_results_that_are_there_at_once_keep_their_order():
    assert in_full(in_parallel([partial(at_once, n) for n in range(9)], 4)) == list(range(9))


def test_so_many_are_under_way_and_each_makes_room_for_one_more():
    waiting, results = {}, []

    async def later(name):
        return await Answer(partial(waiting.__setitem__, name))

    async def work():
        results.extend(await in_parallel([partial(later, name) for name in "abc"], 2))

    run(work())
    assert sorted(waiting) == ["a", "b"]
    waiting.pop("b")(2)
    assert sorted(waiting) == ["a", "c"]
    waiting.pop("c")(3)
    assert results == []
    waiting.pop("a")(1)
    assert results == [1, 2, 3]


def test_two_tasks_are_under_way_at_the_same_time():
    waiting, results = {}, []

    async def later(name):
        return await Answer(partial(waiting.__setitem__, name))

    async def work():
        results.extend(await both(partial(later, "first"), partial(later, "second")))

    run(work())
    waiting["second"](2)
    assert results == []
    waiting["first"](1)
    assert results == [1, 2]
