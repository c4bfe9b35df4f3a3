"""Keeps segments that are out of use: their files are named `.deleted`, and are removed after `file.delete.delay.ms`."""

from collections import deque
from typing import NamedTuple

from horolog.broker.log.segments import Segment


class _Waiting(NamedTuple):
    due_ms: int
    segment: Segment


class Doomed:
    """Those of one partition, the oldest first."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[_Waiting] = deque()

    def __repr__(self) -> str:
        return f"<Doomed: {len(self._waiting)} segments>"

    def add(self, segment: Segment, due_ms: int) -> None:
        """Add a segment whose files have been renamed; they are due for removal at `due_ms`."""
        self._waiting.append(_Waiting(due_ms, segment))

    def take(self, now_ms: int, delay_ms: int) -> list[Segment]:
        """The segments whose files are due for removal. None waits longer because the clock was set back."""
        taken = []
        while self._waiting and not now_ms < self._waiting[0].due_ms <= now_ms + delay_ms:
            taken.append(self._waiting.popleft().segment)
        return taken

    def remove_all(self) -> None:
        """Remove the files of all segments now. Raises StorageFault."""
        for one in self._waiting:
            one.segment.files.remove()
        self.forget()

    def forget(self) -> None:
        """Forget all: their folder is removed with them."""
        self._waiting.clear()
