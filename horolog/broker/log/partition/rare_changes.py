"""Counts changes of partitions other than appends: moved starts, disk faults, deleted topics, new settings.

Code that caches facts of many partitions need not be notified of each change: it compares this count and looks at all again.
"""

from itertools import count


class RareChanges:
    """`number` changes with each change; any thread may note one."""

    __slots__ = ("_numbers", "number")

    def __init__(self) -> None:
        self._numbers = count(1)
        self.number = 0

    def __repr__(self) -> str:
        return f"<RareChanges: {self.number}>"

    def note(self) -> None:
        self.number = next(self._numbers)
