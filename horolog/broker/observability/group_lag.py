"""How far behind groups are: in records, and in seconds since the first record that they have not read was made.

The time is that of the batch in which this record lies, read from the batch's head alone and remembered while the
group stays where it is: a scrape costs one small read per partition whose group has moved.
"""

from __future__ import annotations

from struct import Struct

from horolog.broker.log.partition import OffsetOutOfRange, Partition
from horolog.broker.log.storage import StorageFault

HEAD_BYTES = 43
"""The head of a batch or message up to its times: magic at 16, v1 time at 18, v2 attributes at 21 and times at 27 and 35."""

_TIME = Struct(">q")
_ATTRIBUTES = Struct(">h")
_MAGIC_AT, _V1_TIME_AT, _V2_ATTRIBUTES_AT, _V2_BASE_TIME_AT, _V2_MAX_TIME_AT = 16, 18, 21, 27, 35
_LOG_APPEND_TIME = 0x08

NO_TIME = -1


def lag_records(partition: Partition, committed: int) -> int:
    """Offsets between what was committed and the end; what retention has taken away is not counted."""
    return max(0, partition.high_watermark - max(committed, partition.log_start_offset))


class FirstUnread:
    """The times of the first unread records, each read once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._times: dict[tuple[Partition, int], int] = {}
        self._next: dict[tuple[Partition, int], int] = {}

    def begin(self) -> None:
        """A new round: what is not asked for in it is forgotten after it."""
        self._times, self._next = self._next, {}

    def lag_seconds(self, partition: Partition, committed: int, now_ms: int) -> float | None:
        """Zero when everything is read; None when the record has no time or cannot be read."""
        if not lag_records(partition, committed):
            return 0.0
        offset = max(committed, partition.log_start_offset)
        key = (partition, offset)
        time_ms = self._times.get(key)
        if time_ms is None:
            time_ms = _time_at(partition, offset)
        if len(self._next) < self._limit:
            self._next[key] = time_ms
        return None if time_ms < 0 else max(0, now_ms - time_ms) / 1000


def _time_at(partition: Partition, offset: int) -> int:
    try:
        head = partition.read(offset, HEAD_BYTES, at_least_one=False)
    except (OffsetOutOfRange, StorageFault):
        return NO_TIME
    return batch_time(head)


def batch_time(head: bytes) -> int:
    """The time of the first record of a batch, or that of a message; -1 for none."""
    magic = head[_MAGIC_AT] if len(head) > _MAGIC_AT else 0
    if magic == 1 and len(head) >= _V1_TIME_AT + _TIME.size:
        time_ms: int = _TIME.unpack_from(head, _V1_TIME_AT)[0]
        return time_ms
    if magic < 2 or len(head) < HEAD_BYTES:
        return NO_TIME
    appended = _ATTRIBUTES.unpack_from(head, _V2_ATTRIBUTES_AT)[0] & _LOG_APPEND_TIME
    batch_ms: int = _TIME.unpack_from(head, _V2_MAX_TIME_AT if appended else _V2_BASE_TIME_AT)[0]
    return batch_ms
