"""Several coroutines at a time, where each waits for callbacks (`base.answers`)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from horolog.broker.base.answers import Answer, run

Result = TypeVar("Result")
First = TypeVar("First")
Second = TypeVar("Second")

Task = Callable[[], Coroutine[Answer[Any], Any, Result]]


async def in_parallel(tasks: Sequence[Task[Result]], at_once: int) -> list[Result]:
    """The results of all tasks in their order; so many are under way at a time."""
    results: dict[int, Result] = {}
    waiting = list(enumerate(tasks))[::-1]

    def begin(done: Callable[[None], None]) -> None:
        async def work() -> None:
            while waiting:
                number, task = waiting.pop()
                results[number] = await task()
                if len(results) == len(tasks):
                    done(None)

        for _ in range(min(at_once, len(tasks))):
            run(work())

    if tasks:
        await Answer(begin)
    return [results[number] for number in range(len(tasks))]


async def both(first: Task[First], second: Task[Second]) -> tuple[First, Second]:
    """The results of two tasks that are under way at the same time."""
    firsts: list[First] = []
    seconds: list[Second] = []

    async def do_first() -> None:
        firsts.append(await first())

    async def do_second() -> None:
        seconds.append(await second())

    await in_parallel((do_first, do_second), 2)
    return firsts[0], seconds[0]
