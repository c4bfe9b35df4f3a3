"""The readers that a broker has sent to another one, and which of them have come back without a record.

One that a leader has sent away may not reach that broker, or not know it yet: it is served by the leader for a while. Without this it would
go to and fro, and read nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from horolog.broker.cluster.placement import Reader
from horolog.broker.on_record.cluster_file import Place

STAYS_S = 30.0
MOST_READERS = 10_000


class _Sent(NamedTuple):
    offset: int
    until_s: float
    stays: bool


class SentAway:
    """See the module's docstring."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._sent: OrderedDict[tuple[Reader, Place], _Sent] = OrderedDict()

    def __repr__(self) -> str:
        return f"<SentAway: {len(self._sent)} readers of partitions>"

    def send(self, reader: Reader, place: Place, offset: int) -> bool:
        """Whether a reader at this offset may be sent away; it is noted then."""
        key, now_s = (reader, place), self._now()
        sent = self._sent.get(key)
        if sent is not None and now_s < sent.until_s:
            if sent.stays:
                return False
            if sent.offset == offset:
                self._note(key, _Sent(offset, now_s + STAYS_S, stays=True))
                return False
        self._note(key, _Sent(offset, now_s + STAYS_S, stays=False))
        return True

    def _note(self, key: tuple[Reader, Place], sent: _Sent) -> None:
        self._sent[key] = sent
        self._sent.move_to_end(key)
        if len(self._sent) > MOST_READERS:
            self._sent.popitem(last=False)
