"""Coroutines that wait for callbacks, without an event loop: whatever calls back runs the coroutine on from there.

    async def of_several_steps() -> None:
        written = await Answer(journal.write)         # journal.write(done)
        ...

    run(of_several_steps())

Use it where work waits more than once. Read again behind an `await` what you have read before it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")

Begin = Callable[[Callable[[Result], None]], object]
"""Begins something, and calls back once with its result, maybe at once."""


class Answer(Generic[Result]):
    """The result of something that calls back."""

    def __init__(self, begin: Begin[Result]) -> None:
        self.begin = begin

    def __await__(self) -> Generator[Answer[Result], Result, Result]:
        return (yield self)


Steps = Coroutine[Answer[Any], Any, object]


class _Run:
    """One coroutine on its way."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._results: list[Any] = [None]
        """The result that the coroutine goes on with, once it is there."""
        self._is_going = False

    def go_on(self) -> None:
        """Answers that are there at once do not nest."""
        self._is_going = True
        try:
            while self._results:
                answer = self._steps.send(self._results.pop())
                answer.begin(self._called)
        except StopIteration:
            return
        finally:
            self._is_going = False

    def _called(self, result: Any) -> None:
        self._results.append(result)
        if not self._is_going:
            self.go_on()


def run(steps: Steps) -> None:
    """Run a coroutine as far as its answers are there; each later answer runs it on."""
    _Run(steps).go_on()
