"""Reads the leader epochs from the batches of a log, for when the file of the epochs is damaged.

Without them a partition would lead in an old epoch. Requests of clients that know a newer one would fail, and other partitions would
refuse a coordinator's markers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from horolog.broker.log.segments import Segment, reader
from horolog.broker.log.storage import StorageFault
from horolog.protocol.records.head import Head

log = logging.getLogger(__name__)


def epochs_of(segments: Sequence[Segment]) -> Iterator[tuple[int, int]]:
    """Epochs and their start offsets. If a segment begins in the same epoch as the next one, only its first batch is read."""
    begun = [(segment, first) for segment in segments if (first := next(_heads(segment), None)) is not None]
    following = (*(first.leader_epoch for _, first in begun[1:]), None)
    newest = -1
    for (segment, first), following_epoch in zip(begun, following, strict=False):
        for head in [first] if first.leader_epoch == following_epoch else _heads(segment):
            if head.leader_epoch > newest:
                newest = head.leader_epoch
                yield newest, head.base_offset


def _heads(segment: Segment) -> Iterator[Head]:
    """The heads in front of damage that is not known yet."""
    try:
        yield from reader.heads_from(segment, 0)
    except StorageFault as fault:
        log.warning("%s: its leader epochs are unknown at the end: %s", segment.log.path, fault)
