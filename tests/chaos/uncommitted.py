"""Compares what readers of all records find at the end with what readers of committed ones find, and with what producers were told.

    lost write            an acknowledged record, of whichever transaction, is not there
    inconsistent offset   a record is not at the offset that was acknowledged, or not where readers of committed records find it
    duplicate             a value of a committed transaction, or of none, lies at two offsets
    unseen                a value lies there that was never written
    hidden                a record of a transaction that was committed, or of none, is not shown to readers of committed records

A batch whose answer was lost may lie there twice, if the transaction was aborted: librdkafka numbers the next batches as if it had not been written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.support.history import History, Outcome, Place, Row, Write


def problems(history: History, final: Mapping[Place, list[Row]], everything: Mapping[Place, list[Row]]) -> list[str]:
    """The faults of the records of all places that `everything` has; `final` has those that are committed."""
    return [one for place in everything for one in _wrong(history, place, final.get(place, []), everything[place])]


def _wrong(history: History, place: Place, final: list[Row], everything: list[Row]) -> Iterator[str]:
    shown, there = set(final), set(everything)
    for offset, value in sorted(shown - there):
        yield f"inconsistent offset: {value!r} at {(place, offset)} is shown to readers of committed records alone"
    offsets: dict[bytes, list[int]] = {}
    for offset, value in everything:
        offsets.setdefault(value, []).append(offset)
    for value, found in offsets.items():
        write = history.writes.get(value)
        if write is None or write.place != place:
            yield f"unseen: {value!r} at {(place, found)}"
            continue
        ends = _outcome_of(history, write)
        if len(found) > 1 and ends is Outcome.COMMITTED:
            yield f"duplicate: {value!r} at {(place, found)}"
        if ends is Outcome.COMMITTED and write.is_acknowledged and not any((one, value) in shown for one in found):
            yield f"hidden: {value!r} at {(place, found)}"
    for value, write in history.writes.items():
        if write.place == place and write.is_acknowledged:
            if value not in offsets:
                yield f"lost write: {value!r}, acknowledged at {(place, write.offset)}"
            elif write.offset is not None and write.offset not in offsets[value]:
                yield f"inconsistent offset: {value!r} was acknowledged at {write.offset}, is at {offsets[value]}"


def _outcome_of(history: History, write: Write) -> Outcome:
    """A record outside of transactions counts as one of a committed transaction."""
    return Outcome.COMMITTED if write.transaction is None else history.outcomes[write.transaction]
