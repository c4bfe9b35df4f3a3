"""Checks the responses to clients against what readers saw, by rules that hold whatever happened in between.

    lost write            an acknowledged write, committed or outside of transactions, is not read
    duplicate             a value is read at two offsets
    inconsistent offset   a value is not at the acknowledged offset, or an offset shows two values
    aborted read          a value of an aborted transaction was shown to a read_committed reader
    half a transaction    some acknowledged values of a transaction are read and others are not
    unseen                a value is read that was never written
    non-monotonic poll    a reader got an offset a second time, or went back
    unread                a reader skipped a committed value on its way
    out of order          a sender's values are not in the order in which it sent them, although it required that
    fatal error           a producer could not continue: its program failed, whatever is in the log

Values are unique. A transaction with an unknown outcome may have ended either way, but as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise

Place = tuple[str, int]
Row = tuple[int, bytes]
"""An offset and the value there."""


class Outcome(Enum):
    """How a transaction ended, as far as its producer knows."""

    UNKNOWN = "unknown"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True)
class Write:
    place: Place
    transaction: str | None
    offset: int | None = None
    """None: not acknowledged, or the client does not know where."""
    is_acknowledged: bool = False
    sender: str | None = None
    """The sender that required its values to be in order."""
    number: int = 0


@dataclass(slots=True)
class History:
    """Filled while clients run; `problems` is called at the end."""

    writes: dict[bytes, Write] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    polls: dict[tuple[str, Place], list[list[Row]]] = field(default_factory=dict)
    deaths: list[tuple[str, str]] = field(default_factory=list)

    def attempt(
        self, value: bytes, place: Place, transaction: str | None = None, *, in_order_of: str | None = None
    ) -> None:
        """Note a record about to be written; `in_order_of` names its sender if that sender's records have to stay in order."""
        assert value not in self.writes, "values must be unique"
        self.writes[value] = Write(place, transaction, sender=in_order_of, number=len(self.writes))
        if transaction is not None:
            self.outcomes.setdefault(transaction, Outcome.UNKNOWN)

    def acknowledge(self, value: bytes, offset: int | None) -> None:
        """The client reports the record as written; it has no offset if only the acknowledgement of a later batch says so."""
        write = self.writes[value]
        write.offset, write.is_acknowledged = offset, True

    def end(self, transaction: str, outcome: Outcome) -> None:
        self.outcomes[transaction] = outcome

    def died(self, producer: str, error: object) -> None:
        """Note that the producer's client reported a fatal error."""
        self.deaths.append((producer, str(error)))

    def poll(self, consumer: str, place: Place, rows: Iterable[Row]) -> None:
        """Note what a read_committed reader was shown next."""
        self.polls.setdefault((consumer, place), [[]])[-1].extend(rows)

    def seek(self, consumer: str, place: Place) -> None:
        """Note that the reader moves: its records from now on are a sequence of their own."""
        self.polls.setdefault((consumer, place), []).append([])

    def problems(self, final: Mapping[Place, list[Row]]) -> list[str]:
        """The faults, given all records that a read_committed reader finds at the end."""
        return [
            *self._unlike_what_was_told(final),
            *self._missing(final),
            *self._halves(final),
            *self._wrong_polls(final),
            *self._out_of_order(final),
            *(f"fatal error: {producer}: {error}" for producer, error in self.deaths),
        ]

    def _unlike_what_was_told(self, final: Mapping[Place, list[Row]]) -> Iterator[str]:
        seen: dict[bytes, tuple[Place, int]] = {}
        for place, rows in final.items():
            if [offset for offset, _ in rows] != sorted({offset for offset, _ in rows}):
                yield f"inconsistent offset: {place} is not read in order"
            for offset, value in rows:
                write = self.writes.get(value)
                if value in seen:
                    yield f"duplicate: {value!r} at {seen[value]} and {(place, offset)}"
                seen[value] = (place, offset)
                if write is None or write.place != place:
                    yield f"unseen: {value!r} at {(place, offset)}"
                elif write.offset not in (None, offset):
                    yield f"inconsistent offset: {value!r} was acknowledged at {write.offset}, is at {offset}"
                elif write.transaction and self.outcomes[write.transaction] == Outcome.ABORTED:
                    yield f"aborted read: {value!r} of {write.transaction}"

    def _missing(self, final: Mapping[Place, list[Row]]) -> Iterator[str]:
        found = {value for rows in final.values() for _, value in rows}
        for value, write in self.writes.items():
            committed = write.transaction is None or self.outcomes[write.transaction] == Outcome.COMMITTED
            if committed and write.is_acknowledged and value not in found:
                yield f"lost write: {value!r}, acknowledged at {write.place} {write.offset}"

    def _halves(self, final: Mapping[Place, list[Row]]) -> Iterator[str]:
        found = {value for rows in final.values() for _, value in rows}
        by_transaction: dict[str, set[bool]] = {}
        for value, write in self.writes.items():
            if write.transaction is not None and write.is_acknowledged:
                by_transaction.setdefault(write.transaction, set()).add(value in found)
        for transaction, answers in by_transaction.items():
            if len(answers) > 1:
                yield f"half a transaction: {transaction}"

    def _wrong_polls(self, final: Mapping[Place, list[Row]]) -> Iterator[str]:
        for (consumer, place), sequences in self.polls.items():
            truth = dict(final.get(place, []))
            for rows in sequences:
                offsets = [offset for offset, _ in rows]
                if any(after <= before for before, after in pairwise(offsets)):
                    yield f"non-monotonic poll: {consumer} of {place}: {offsets}"
                for offset, value in rows:
                    if truth.get(offset) != value:
                        yield f"aborted read: {consumer} was shown {value!r} at {(place, offset)}, which is not there"
                shown = set(offsets)
                passed = [one for one in truth if offsets and offsets[0] < one < offsets[-1] and one not in shown]
                if passed:
                    yield f"unread: {consumer} passed over {place} {passed}"

    def _out_of_order(self, final: Mapping[Place, list[Row]]) -> Iterator[str]:
        for place, rows in final.items():
            latest: dict[str, int] = {}
            for offset, value in rows:
                write = self.writes.get(value)
                if write is None or write.sender is None:
                    continue
                if write.number < latest.get(write.sender, -1):
                    yield f"out of order: {value!r} of {write.sender} at {(place, offset)}"
                latest[write.sender] = write.number
