"""Whole batches of a partition, for readers that count records: no more of them than are wanted, unread where the file can be sent."""

from __future__ import annotations

from typing import NamedTuple

from horolog.broker.log.partition.partition import Partition
from horolog.protocol.primitives import Unread
from horolog.protocol.records.head import Head


class WantedBatches(NamedTuple):
    """Batches from the one that holds `offset` on, to the one that holds `last`, in at most `most_bytes`; all of them end before `upto`."""

    offset: int
    last: int
    most_bytes: int
    upto: int
    at_least_one: bool
    """Whether a first batch that is larger is read whole."""


class WholeBatches(NamedTuple):
    """The heads of consecutive batches, and their bytes."""

    heads: list[Head]
    records: bytes | Unread

    def part(self, first: int, last: int) -> bytes | Unread:
        """The batches that hold any of these offsets, and those between them."""
        inside = [head for head in self.heads if head.last_offset >= first and head.base_offset <= last]
        if len(inside) == len(self.heads):
            return self.records
        records = self.records.read() if isinstance(self.records, Unread) else self.records
        start = self.heads[0].position
        return records[inside[0].position - start : inside[-1].end - start]


def read(partition: Partition, wanted: WantedBatches, *, may_be_unread: bool) -> WholeBatches:
    offset, last, most_bytes, upto, at_least_one = wanted
    heads = partition.reader.heads(offset, upto, last, most_bytes, at_least_one=at_least_one)
    if not heads:
        return WholeBatches([], b"")
    start, end, upto = heads[0].position, heads[-1].end, heads[-1].last_offset + 1
    if may_be_unread and (unread := partition.unread(offset, end - start, upto)) is not None:
        return WholeBatches(heads, unread)
    records = partition.read(offset, end - start, at_least_one=at_least_one, cuts_first=False, upto=upto)
    if len(records) < end - start:  # the rest is not known to be on the disk
        heads = [head for head in heads if head.end - start <= len(records)]
    return WholeBatches(heads, records)
