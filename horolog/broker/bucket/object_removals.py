"""Removes objects that nothing names any more, after a while: readers of what named them finish first.

What waits when the broker ends is left for the sweep.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from horolog.broker.base.answers import run
from horolog.broker.bucket.parallel import in_parallel
from horolog.broker.bucket.store_access import StoreAccess

AT_ONCE = 2
"""Producers wait for the same store."""


class _Due(NamedTuple):
    at_s: float
    key: str


class ObjectRemovals:
    """The objects that wait, in the order in which they are due. `look` is called now and then."""

    def __init__(self, store: StoreAccess, now: Callable[[], float], delay_ms: Callable[[], int]) -> None:
        self._store = store
        self._now = now
        self._delay_ms = delay_ms
        self._waiting: deque[_Due] = deque()
        self._is_removing = False

    def __repr__(self) -> str:
        return f"<ObjectRemovals: {len(self._waiting)} objects wait>"

    def __len__(self) -> int:
        return len(self._waiting)

    def later(self, keys: Iterable[str]) -> None:
        at_s = self._now() + self._delay_ms() / 1000
        self._waiting += (_Due(at_s, key) for key in keys)

    def look(self) -> None:
        due: list[str] = []
        while self._waiting and self._waiting[0].at_s <= self._now() and not self._is_removing:
            due.append(self._waiting.popleft().key)
        if due:
            self._is_removing = True
            run(self._remove(due))

    async def _remove(self, keys: list[str]) -> None:
        await in_parallel([partial(self._store.delete, key) for key in keys], AT_ONCE)
        self._is_removing = False
