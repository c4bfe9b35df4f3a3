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
    newest = -1
    firsts = [next(_heads(segment), None) for segment in segments]
    for number, (segment, first) in enumerate(zip(segments, firsts, strict=True)):
        if first is None:
            continue
        following = next((one.leader_epoch for one in firsts[number + 1 :] if one is not None), None)
        heads = [first] if first.leader_epoch == following else _heads(segment)
        for head in heads:
            if head.leader_epoch > newest:
                newest = head.leader_epoch
                yield newest, head.base_offset


def _heads(segment: Segment) -> Iterator[Head]:
    """Those in front of damage that nobody has found yet."""
    try:
        yield from reader.heads_from(segment, 0)
    except StorageFault as fault:
        log.warning("%s: its leader epochs are not known to the end: %s", segment.log.path, fault)
