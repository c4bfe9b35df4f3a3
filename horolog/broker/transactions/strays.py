"""Transactions that are open in partitions and on no record: put back there, or aborted where nobody knows their producer.

The records of what belongs to a transaction are written and not synced: a power cut may take them. This is for a broker alone; among
several brokers these records are synced, and `unclaimed` is about what nobody knows all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from horolog.broker.transactions.entries import Entry
from horolog.broker.transactions.journal import Journal
from horolog.broker.transactions.marking import Marking
from horolog.broker.transactions.states import Producer, TopicPartition
from horolog.protocol.errors import ErrorCode

Join = Callable[[Entry, Producer, list[TopicPartition], int], ErrorCode]


class Strays:
    """Producers with a transaction that is open in some partition and on no record, which the disk did not let us change yet."""

    def __init__(self, entries: Mapping[str, Entry], journal: Journal, marking: Marking, join: Join) -> None:
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
        """Put back what could not be before."""
        if self._unrecorded:
            self.settle()

    def settle(self) -> None:
        """Partitions of open transactions whose record went with the power join them again; what nobody knows is aborted.

        The records of ids and of decisions are on the disk, so nobody was told of a commit that is missing here.
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

    def is_off_record(self, entry: Entry) -> bool:
        """Whether part of what this producer has written cannot be put back on record: its transaction stays as it is until then.

        Whatever it did next would go without those records, or take them into the wrong transaction.
        """
        if entry.transaction.producer_id in self._unrecorded:
            self.settle()
        return entry.transaction.producer_id in self._unrecorded
