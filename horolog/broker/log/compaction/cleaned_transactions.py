"""For the cleaner: which batches belong to aborted transactions, and which markers are no longer needed.

A marker is needed as long as records of its transaction are in the log. The log is walked in order, so at a marker it is known
whether records came before it. A marker without records is not removed at once: as with tombstones, a reader may be in the
middle of the transaction, so it gets a delete horizon first (see `clean_batch`).
"""

from collections import deque
from collections.abc import Iterable

from horolog.broker.log.indexes import AbortedTransaction


class CleanedTransactions:
    """Follows the transactions of one walk through a partition."""

    __slots__ = ("_aborted", "_committed", "_pending", "_seen")

    def __init__(self, aborted: Iterable[AbortedTransaction] = ()) -> None:
        """`aborted` are the transactions with records or markers in the segments to be walked; others do no harm."""
        self._pending = deque(sorted(aborted, key=lambda one: one.first_offset))
        self._aborted: dict[int, AbortedTransaction] = {}  # by producer, from first record to marker
        self._seen: set[int] = set()  # producers whose open aborted transaction still has batches
        self._committed: set[int] = set()  # the same, committed

    def is_aborted(self, producer_id: int, last_offset: int, *, transactional: bool) -> bool:
        """Whether a data batch belongs to an aborted transaction and so can be removed."""
        self._begin_up_to(last_offset)
        if not transactional:
            return False
        aborted = self._aborted.get(producer_id)
        if aborted is not None and last_offset <= aborted.last_offset:
            self._seen.add(producer_id)
            return True
        self._committed.add(producer_id)
        return False

    def end(self, producer_id: int, last_offset: int, committed: bool | None) -> AbortedTransaction | bool:
        """The walk meets a marker: True if it is not needed; otherwise the aborted transaction to index again, or False.

        `committed` is None for a control batch that was emptied before.
        """
        self._begin_up_to(last_offset)
        if committed:
            had_records = producer_id in self._committed
            self._committed.discard(producer_id)
            return not had_records
        aborted = self._aborted.pop(producer_id, None) if committed is not None else None
        if aborted is None or producer_id not in self._seen:
            return True
        self._seen.discard(producer_id)
        return aborted

    def _begin_up_to(self, offset: int) -> None:
        while self._pending and self._pending[0].first_offset <= offset:
            aborted = self._pending.popleft()
            if aborted.last_offset >= offset:
                self._aborted[aborted.producer_id] = aborted
