"""Decides what compaction keeps of one v0 or v1 message, or of the set inside a wrapper, and makes the resulting bytes.

A plain message stays unchanged or is removed. A wrapper that loses some of its messages is rebuilt from the rest, with the same codec
and version, their old offsets and times, and the largest of these times as its own. These formats have no field for a delete
horizon: whether tombstones stay is decided for a whole segment (`clean_plan.tombstone_horizon_ms`).
"""

from horolog.broker.log.compaction.clean_batch import CleanedBatch, keeps
from horolog.broker.log.compaction.offset_map import OffsetMap
from horolog.protocol.records.message_set import encode_wrapper, iter_message, read_message


def clean_message(data: memoryview, offsets: OffsetMap, *, keeps_tombstones: bool) -> CleanedBatch | None:
    """The remains of the message that is all of `data`."""
    message = read_message(data)
    records = list(iter_message(message))
    kept = [
        one
        for one in records
        if keeps(one.offset, one.key, offsets)
        and (one.value is not None or keeps_tombstones or one.offset > offsets.latest_offset)
    ]
    if not kept:
        return None
    left: bytes | memoryview = data
    if len(kept) < len(records):
        left = encode_wrapper(kept, message.magic, message.codec)
    first, last = kept[0], kept[-1]
    largest = max(one.timestamp for one in kept)
    return CleanedBatch(left, len(kept), first.offset, last.offset, largest, last.offset)
