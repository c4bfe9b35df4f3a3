"""The aborted transactions of a partition: each segment with an abort marker has an index, created with its first one.

Segments that lie in a store have theirs there (`elsewhere`). It is read when a reader comes there, and no further than transactions reach.

An abort is put into the index of its marker's segment once the marker is written. If that fails, the next sync retries it with
`flush`, before the recovery point passes the marker.
"""

import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple

from horolog.broker.log.indexes import AbortedTransaction, TransactionIndex, transaction_index
from horolog.broker.log.segments import HAS_PRODUCERS, Segment, segment_for
from horolog.broker.log.storage import Storage, StorageFault

log = logging.getLogger(__name__)


class DecidedHere(NamedTuple):
    """The aborted transactions of a segment in a store, and the first offset that is undecided at its end; None if all is decided."""

    entries: list[AbortedTransaction]
    first_undecided: int | None


class AbortedTransactions:
    """Those of one partition, over its list of segments; `waiting` are those whose markers are not written yet."""

    __slots__ = ("_directory", "_indexes", "_segments", "_storage", "elsewhere", "waiting")

    def __init__(
        self, storage: Storage, directory: str, segments: list[Segment], indexes: dict[int, TransactionIndex]
    ) -> None:
        self._storage = storage
        self._directory = directory
        self._segments = segments
        self._indexes = indexes
        self.waiting: list[AbortedTransaction] = []
        self.elsewhere: dict[int, Callable[[], DecidedHere]] = {}
        """What segments in a store have, by their base offsets; raises StorageFault."""

    def __repr__(self) -> str:
        amount = sum(len(one.entries) for one in self._indexes.values())
        return f"<AbortedTransactions of {self._directory}: {amount}, {len(self.waiting)} waiting>"

    def overlapping(self, from_offset: int, upto: int) -> list[AbortedTransaction]:
        """Those with records from `from_offset` up to `upto`. Of a segment in a store, those with records in this segment."""
        if self.elsewhere:
            return self._overlapping_elsewhere(from_offset, upto)
        if not self._indexes:
            return []
        first = self._segments[segment_for(self._segments, from_offset)].base_offset
        indexes = (self._indexes[base].entries for base in sorted(self._indexes) if base >= first)
        return transaction_index.overlapping(indexes, from_offset, upto)

    def _overlapping_elsewhere(self, from_offset: int, upto: int) -> list[AbortedTransaction]:
        segments = self._segments
        first = segment_for(segments, from_offset)
        if from_offset >= segments[first].next_offset and first + 1 < len(segments):
            first += 1  # there is a gap, behind which readers go on
        if segments[first].base_offset in self.elsewhere:
            upto = min(upto, segments[first].next_offset)
            if not segments[first].magics & HAS_PRODUCERS:
                return []
        found: list[AbortedTransaction] = []
        for segment in segments[first:]:
            known = self._known_of(segment)
            found += transaction_index.overlapping([known.entries], from_offset, upto)
            if known.first_undecided is None or known.first_undecided >= upto:
                break
        return found

    def _known_of(self, segment: Segment) -> DecidedHere:
        base_offset = segment.base_offset
        if base_offset in self.elsewhere and segment.magics & HAS_PRODUCERS:
            return self.elsewhere[base_offset]()
        index = self._indexes.get(base_offset)
        return DecidedHere([] if index is None else index.entries, -1)

    def write(self) -> None:
        """The markers are written: put the waiting aborts into the indexes. A fault is logged, and `flush` retries."""
        waiting, self.waiting = self.waiting, []
        for one in waiting:
            index = self._index(self._segments[segment_for(self._segments, one.last_offset)].base_offset)
            index.append(one)
            try:
                index.flush()
            except StorageFault as fault:
                log.error("%s: %s", self._directory, fault)

    def flush(self) -> None:
        """Retry failed writes. Runs in the worker that syncs; raises StorageFault."""
        for index in tuple(self._indexes.values()):
            index.flush()

    def put(self, base_offset: int, entries: Iterable[AbortedTransaction]) -> None:
        """Add a segment with its index, whose file holds these entries."""
        self._indexes[base_offset] = TransactionIndex(self._storage, self._path(base_offset), base_offset, entries)

    def remove(self, base_offset: int) -> None:
        """Remove the index of a removed segment. Raises StorageFault."""
        path = self._path(base_offset)
        if self._storage.exists(path):
            self._storage.remove(path)
        self._indexes.pop(base_offset, None)
        self.elsewhere.pop(base_offset, None)

    def _index(self, base_offset: int) -> TransactionIndex:
        if base_offset not in self._indexes:
            self.put(base_offset, ())
        return self._indexes[base_offset]

    def _path(self, base_offset: int) -> str:
        return f"{self._directory}/{base_offset:020d}{transaction_index.SUFFIX}"
