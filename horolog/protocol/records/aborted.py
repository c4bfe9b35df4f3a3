"""Leaves out what aborted transactions have written, for clients that read only committed records."""

from collections.abc import Iterable

from horolog.protocol.primitives import Buffer
from horolog.protocol.records.control import ControlType, control_type
from horolog.protocol.records.entries import records_of_entry
from horolog.protocol.records.head import BATCH_MAGIC, TRANSACTIONAL_BIT, Head


class AbortedProducers:
    """The producers whose transactional batches are aborted at a point of the log: the broker says from where, markers end it."""

    def __init__(self, transactions: Iterable[tuple[int, int]]) -> None:
        """Producer id and first offset of each aborted transaction."""
        self._coming = sorted(transactions, key=lambda one: one[1], reverse=True)
        self._now: set[int] = set()

    def __repr__(self) -> str:
        return f"<AbortedProducers: {len(self._now)} now, {len(self._coming)} transactions to come>"

    def hides(self, data: Buffer, head: Head) -> bool:
        """Whether the entry belongs to an aborted transaction or ends one; entries have to be passed in their order."""
        while self._coming and self._coming[-1][1] <= head.last_offset:
            self._now.add(self._coming.pop()[0])
        if head.magic != BATCH_MAGIC or not head.attributes & TRANSACTIONAL_BIT or head.producer_id not in self._now:
            return False
        if head.is_control and _is_abort(data, head):
            self._now.discard(head.producer_id)
        return True


def _is_abort(data: Buffer, head: Head) -> bool:
    marker = next(records_of_entry(data, head), None)
    return marker is not None and control_type(marker.key) == ControlType.ABORT
