"""Tries brokers in turn until one answers: the next has its turn once one has failed, or has been silent for a while."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from horolog.client.values.errors import ConnectionFailed, KafkaError

T = TypeVar("T")


async def any_of(
    attempts: Mapping[str, Callable[[], Coroutine[Any, Any, T]]], patience_s: float, silent: Callable[[str], None]
) -> T:
    """The first result; `silent` gets the name of each attempt that others did not wait for. Raises what no retry helps against."""
    running: dict[asyncio.Task[T], str] = {}
    failures: list[str] = []
    left = list(attempts.items())
    try:
        while left or running:
            if left:
                name, attempt = left.pop(0)
                running[asyncio.create_task(attempt())] = name
            done, _ = await asyncio.wait(
                running, timeout=patience_s if left else None, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                silent(name)
            for task in done:
                del running[task]
                if (failure := _failure_of(task)) is None:
                    return task.result()
                failures.append(failure)
        raise ConnectionFailed("; ".join(dict.fromkeys(failures)))
    finally:
        for task in running:
            task.cancel()


def _failure_of(task: asyncio.Task[T]) -> str | None:
    """Why an attempt failed, if others may succeed."""
    error = task.exception()
    if error is None:
        return None
    if isinstance(error, KafkaError) and error.retriable:
        return error.message
    raise error
