"""Which moments of a backup are kept, and which objects may go: those that no kept moment names.

All moments of the last hour are kept, one in ten minutes of the last day, and one an hour before that, up to the history's end. A moment that
cannot be read takes the place of none that can. It stays up to the history's end, and so does all of its age, which it may name.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from enum import Enum

from horolog.broker.backup import moment
from horolog.broker.backup.moment import DATA, MOMENTS, UNFINISHED, Moment
from horolog.broker.bucket.names import number_of
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.stores.object_store import ObjectStore, Stored

log = logging.getLogger(__name__)

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
STEPS = ((HOUR_MS, 0), (DAY_MS, HOUR_MS // 6))
"""Up to this age, the newest moment of each time of that length stays; 0: all do."""
GRACE_MS = HOUR_MS
"""So long an object stays that no moment names: it may belong to a round that has not ended."""


def outdated(made: Iterable[tuple[int, int]], now_ms: int, history_ms: int) -> set[int]:
    """The numbers of moments that may go; of each the number and the time are given. The newest one stays, however old it is."""
    slots: set[tuple[int, int]] = set()
    gone = set()
    for place, (number, made_ms) in enumerate(sorted(made, reverse=True)):
        width = next((width for age_ms, width in STEPS if now_ms - made_ms <= age_ms), HOUR_MS)
        slot = (width, made_ms // width) if width else (0, number)
        if place and (now_ms - made_ms > history_ms or slot in slots):
            gone.add(number)
        slots.add(slot)
    return gone


class Keeper:
    """Removes outdated moments, and objects that only they name; a moment is read once."""

    def __init__(self, store: ObjectStore, history_ms: int) -> None:
        self._store = store
        self._history_ms = history_ms
        self._named: dict[str, frozenset[str]] = {}

    def __repr__(self) -> str:
        return f"<Keeper of {len(self._named)} moments in {self._store!r}>"

    def keep(self, newest: Moment) -> int:
        """Remove what may go now that this moment was made; how many objects of logs that were. Raises StoreError and FormatError."""
        found = {number_in(one): one for one in self._store.list(MOMENTS)}
        now_ms = found[newest.number].last_modified_ms
        unread = self._read(found.values(), newest)
        made = [(number, one.last_modified_ms) for number, one in found.items() if one.key in self._named]
        going = [found[number] for number in outdated(made, now_ms, self._history_ms)]
        going += [one for one in unread if now_ms - one.last_modified_ms > self._history_ms]
        for one in going:
            self._store.delete(one.key)
            self._named.pop(one.key, None)
        for one in self._store.list(UNFINISHED):
            if number_in(one) < newest.number:
                self._store.delete(one.key)
        kept = (one.last_modified_ms for one in unread if one not in going)
        return self._sweep(now_ms, max(kept, default=-1))

    def _read(self, found: Collection[Stored], newest: Moment) -> list[Stored]:
        """Learn what the moments name; returns those that cannot be read."""
        self._named = {one.key: self._named[one.key] for one in found if one.key in self._named}
        self._named[newest.key] = frozenset(newest.objects())
        unread = []
        for one in found:
            if one.key in self._named:
                continue
            made = read_moment(self._store, one.key)
            if isinstance(made, Moment):
                self._named[one.key] = frozenset(made.objects())
            elif made is NoMoment.DAMAGED:
                unread.append(one)
        return unread

    def _sweep(self, now_ms: int, kept_upto_ms: int) -> int:
        """Remove the objects that no moment names and that were written after that time."""
        named = frozenset().union(*self._named.values())
        unnamed = [
            one.key
            for one in self._store.list(DATA)
            if one.key not in named and kept_upto_ms < one.last_modified_ms < now_ms - GRACE_MS
        ]
        for name in unnamed:
            self._store.delete(name)
        return len(unnamed)


class NoMoment(Enum):
    """Why there is no moment to read."""

    GONE = "gone"
    DAMAGED = "damaged"


def read_moment(store: ObjectStore, name: str) -> Moment | NoMoment:
    """A damaged one is logged. Raises StoreError."""
    try:
        return moment.decode(store.get(name))
    except FileNotFoundError:
        return NoMoment.GONE
    except FormatError as error:
        log.error("%s: %s", name, error)
        return NoMoment.DAMAGED


def number_in(one: Stored) -> int:
    """The number of a moment, by its key; raises FormatError."""
    number = number_of(one.key)
    if number is None:
        raise FormatError(f"{one.key} is none of a backup's objects")
    return number
