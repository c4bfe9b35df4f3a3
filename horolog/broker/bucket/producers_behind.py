"""The producers of a partition just behind a segment: remembered when the segment ends, or found out from its batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from horolog.broker.log.integrity import Batch, Contents, scan
from horolog.broker.log.producers import ProducerStates, Remembered, SnapshotEntry, producers_file, snapshot_file
from horolog.broker.log.recovery import producer_batch
from horolog.broker.log.segments import HAS_PRODUCERS

_NO_TIME = 0
_NEVER_MS = 2**62


class ProducersAt(NamedTuple):
    """The known producers just before an offset."""

    offset: int
    entries: Sequence[SnapshotEntry] = ()
    remembered: Sequence[Remembered] = ()

    def snapshot(self) -> bytes:
        return snapshot_file.encode(self.entries)

    def batches(self) -> bytes:
        return producers_file.encode(self.remembered)


def known_at(producers: ProducerStates, offset: int) -> ProducersAt:
    return ProducersAt(offset, producers.snapshot(), producers.remembered())


def behind(before: ProducersAt, base_offset: int, contents: Contents, log: bytes | memoryview) -> ProducersAt:
    """The producers behind a segment, from those before it and its log."""
    if not contents.magics & HAS_PRODUCERS:
        return before._replace(offset=contents.next_offset)
    states = ProducerStates(_NEVER_MS)
    states.restore(before.entries, _NO_TIME)
    states.recall({one.producer_id: one for one in before.remembered})
    view = memoryview(log)
    for span in scan(
        lambda size, position: bytes(view[position : position + size]),
        contents.size_bytes,
        first_offset=base_offset,
        end_offset=contents.next_offset,
    ):
        batch = producer_batch(span) if isinstance(span, Batch) else None
        if batch is not None:
            states.replay(batch, _NO_TIME)
    return known_at(states, contents.next_offset)
