"""Settles transactions that are open in partitions but not on record: they are recorded again, or aborted if their producer is unknown.

The records of a transaction's partitions are written but not synced: a power cut may lose them. This module is for a single broker; with
several brokers these records are synced, and `unclaimed` is about transactions without a record even so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from horolog.broker.transactions.journal import TransactionJournal
from horolog.broker.transactions.marking import Marking
from horolog.broker.transactions.open_transaction import OpenTransaction
from horolog.broker.transactions.states import Producer
from horolog.protocol.errors import ErrorCode
from horolog.protocol.topic_partition import TopicPartition

Join = Callable[[OpenTransaction, Producer, list[TopicPartition], int], ErrorCode]


class Strays:
    """Producers with a transaction that is open in some partition and not on record, and that could not be settled yet."""

    def __init__(
        self, entries: Mapping[str, OpenTransaction], journal: TransactionJournal, marking: Marking, join: Join
    ) -> None:
        self._entries = entries
        self._journal = journal
        self._marking = marking
        self._join = join
        self._unrecorded: set[int] = set()

    def __repr__(self) -> str:
        return f"<Strays of {len(self._unrecorded)} producers>"

    def __contains__(self, producer_id: int) -> bool:
        return producer_id in self._unrecorded

    def try_again(self) -> None:
        """Retry what failed before."""
        if self._unrecorded:
            self.settle()

    def settle(self) -> None:
        """Record partitions again whose records were lost in a power cut; abort transactions of unknown producers.

        The records of ids and decisions are synced, so no client was answered for a commit that is missing here.
        """
        self._unrecorded = set()
        by_producer = {entry.transaction.producer_id: entry for entry in self._entries.values()}
        for producer, partition in list(self._marking.open_places()):
            place = (partition.topic, partition.index)
            entry = by_producer.get(producer.id)
            if entry is not None and (entry.busy or (entry.transaction.state.is_prepared and place in entry.unmarked)):
                continue
            if entry is not None:
                code = self._join(entry, producer, [place], entry.transaction.client_version)
                if code == ErrorCode.COORDINATOR_NOT_AVAILABLE:
                    self._unrecorded.add(producer.id)
                if code in (ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                    continue
            if not self._journal.leads_all:
                continue  # another coordinator may know it
            self._marking.abort_stray(producer, partition, partial(self._unrecorded.add, producer.id))

    def is_off_record(self, entry: OpenTransaction) -> bool:
        """Whether some partitions of this producer's transaction cannot be recorded again yet: until then it stays as it is.

        Its next request would otherwise miss those records, or take them into the wrong transaction.
        """
        if entry.transaction.producer_id in self._unrecorded:
            self.settle()
        return entry.transaction.producer_id in self._unrecorded
