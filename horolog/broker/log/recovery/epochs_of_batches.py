"""The leader epochs that the batches of a log carry: all that is left of them where the file of the epochs is damaged.

Without them a partition would lead in an epoch that it had long left. Clients that have heard of the newer one would ask in vain, and
other partitions would refuse the markers of a coordinator.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from horolog.broker.log.segments import Segment, reader
from horolog.broker.log.storage import StorageFault
from horolog.protocol.records.head import Head

log = logging.getLogger(__name__)


def epochs_of(segments: Sequence[Segment]) -> Iterator[tuple[int, int]]:
    """Epochs and where they begin. Of a segment that begins in the same epoch as the next one, the first batch is read and no more."""
    begun = [(segment, first) for segment in segments if (first := next(_heads(segment), None)) is not None]
    following = (*(first.leader_epoch for _, first in begun[1:]), None)
    newest = -1
    for (segment, first), following_epoch in zip(begun, following, strict=False):
        for head in [first] if first.leader_epoch == following_epoch else _heads(segment):
            if head.leader_epoch > newest:
                newest = head.leader_epoch
                yield newest, head.base_offset


def _heads(segment: Segment) -> Iterator[Head]:
    """Those in front of damage that nobody has found yet."""
    try:
        yield from reader.heads_from(segment, 0)
    except StorageFault as fault:
        log.warning("%s: its leader epochs are not known to the end: %s", segment.log.path, fault)
