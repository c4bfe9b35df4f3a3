"""Sorts newly arrived records by time, by holding each for a moment; pure."""

from collections import deque
from collections.abc import Iterable

from horolog.client.moments.sorting import Hold, Placed, Sorter
from horolog.client.values.types import ConsumerRecord


class Window:
    """A record is released once it was held for the window's length, or for lack of room; earlier ones go before it."""

    def __init__(self, length_ms: float, hold: Hold | None = None) -> None:
        self._length_ms = length_ms
        self._sorter = Sorter(hold or Hold())
        self._arrivals: deque[tuple[float, int]] = deque()  # (when, time of the record)

    def __repr__(self) -> str:
        return f"<Window of {len(self._sorter)} records>"

    @property
    def out_of_place(self) -> int:
        """How many records arrived after a record with a later time was released."""
        return self._sorter.out_of_place

    def poll_ms(self, otherwise: float) -> float:
        """How long to wait for more records before `take` is called again."""
        return min(otherwise, max(self._length_ms, 1)) if self._arrivals else otherwise

    def put(self, records: Iterable[ConsumerRecord], now_ms: float) -> None:
        for record in records:
            self._sorter.put(Placed(record))
            self._arrivals.append((now_ms, record.timestamp_ms))

    def take(self, now_ms: float) -> list[ConsumerRecord]:
        """The records held long enough, and all earlier ones."""
        due_ms = None
        while self._arrivals and self._arrivals[0][0] <= now_ms - self._length_ms:
            _, time_ms = self._arrivals.popleft()
            due_ms = time_ms if due_ms is None else max(due_ms, time_ms)
        taken = []
        while self._sorter and (self._sorter.is_full or (due_ms is not None and self._is_up_to(due_ms))):
            taken.append(self._sorter.take().record)
        return taken

    def rest(self) -> list[ConsumerRecord]:
        """All held records."""
        self._arrivals.clear()
        return [self._sorter.take().record for _ in range(len(self._sorter))]

    def _is_up_to(self, time_ms: int) -> bool:
        earliest_ms = self._sorter.earliest_ms
        return earliest_ms is not None and earliest_ms <= time_ms
