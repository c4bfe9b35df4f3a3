"""Counts what changes partitions beside appends: a start that moves, a disk that fails, a topic that goes, other settings.

Whoever remembers something of many partitions need not hear of each such change: it compares this count and looks at all again.
"""

from itertools import count


class RareChanges:
    """`number` differs from what it was before each change; any thread may note one."""

    __slots__ = ("_numbers", "number")

    def __init__(self) -> None:
        self._numbers = count(1)
        self.number = 0

    def __repr__(self) -> str:
        return f"<RareChanges: {self.number}>"

    def note(self) -> None:
        self.number = next(self._numbers)
