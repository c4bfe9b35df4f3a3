"""The aborted transactions of a partition: each segment with an abort marker has an index, created with its first one.

An abort is put into the index of its marker's segment once the marker is written. If that fails, the next sync retries it with
`flush`, before the recovery point passes the marker.
"""

import logging
from collections.abc import Iterable

from horolog.broker.log.indexes import AbortedTransaction, TransactionIndex, transaction_index
from horolog.broker.log.segments import Segment, segment_for
from horolog.broker.log.storage import Storage, StorageFault

log = logging.getLogger(__name__)


class AbortedTransactions:
    """Those of one partition, over its list of segments; `waiting` are those whose markers are not written yet."""

    __slots__ = ("_directory", "_indexes", "_segments", "_storage", "waiting")

    def __init__(
        self, storage: Storage, directory: str, segments: list[Segment], indexes: dict[int, TransactionIndex]
    ) -> None:
        self._storage = storage
        self._directory = directory
        self._segments = segments
        self._indexes = indexes
        self.waiting: list[AbortedTransaction] = []

    def __repr__(self) -> str:
        amount = sum(len(one.entries) for one in self._indexes.values())
        return f"<AbortedTransactions of {self._directory}: {amount}, {len(self.waiting)} waiting>"

    def overlapping(self, from_offset: int, upto: int) -> list[AbortedTransaction]:
        """Those with records from `from_offset` up to `upto`."""
        if not self._indexes:
            return []
        first = self._segments[segment_for(self._segments, from_offset)].base_offset
        indexes = (self._indexes[base].entries for base in sorted(self._indexes) if base >= first)
        return transaction_index.overlapping(indexes, from_offset, upto)

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

    def _index(self, base_offset: int) -> TransactionIndex:
        if base_offset not in self._indexes:
            self.put(base_offset, ())
        return self._indexes[base_offset]

    def _path(self, base_offset: int) -> str:
        return f"{self._directory}/{base_offset:020d}{transaction_index.SUFFIX}"
