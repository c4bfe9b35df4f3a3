"""Decides what compaction leaves of one v0 or v1 message, or of the set inside a wrapper, and makes the bytes of it.

A plain message stays as it is or goes. A wrapper that loses some of its messages is made anew from the rest, with the same codec and
version, the offsets and times that they had, and as its own time the largest of theirs. These formats have no place for a
delete horizon: whether tombstones still stay is decided for a whole segment (`clean_plan.tombstone_horizon_ms`).
"""

from horolog.broker.log.compaction.clean_batch import Kept, keeps
from horolog.broker.log.compaction.offset_map import OffsetMap
from horolog.protocol.records.message_set import encode_wrapper, iter_message, read_message


def clean_message(data: memoryview, offsets: OffsetMap, *, keeps_tombstones: bool) -> Kept | None:
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
    return Kept(left, len(kept), first.offset, last.offset, largest, last.offset)
