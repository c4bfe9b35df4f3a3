"""Three indexes for time that were weighed and not shipped, each small and real: built record by record, asked, and weighed in memory and on disk.

`append_time_minutes`  the first draft's (1): a file per segment, one entry (minute int64, first relative offset int32) per minute of LogAppendTime
`create_time_map`      the first draft's (2): in memory, minute (or second) of CreateTime -> first offset, written to a file as 12-byte entries
`wide_offset_index`    the rejected one: offset index entries of 16 bytes (relative offset, position, largest timestamp so far)
"""

import struct
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

MINUTE_MS, SECOND_MS = 60_000, 1_000
NARROW = struct.Struct(">qi")
WIDE = struct.Struct(">iiq")
INDEX_INTERVAL_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Day:
    """One partition's records: when each was created and when it arrived, and where each segment begins."""

    created: Sequence[int]
    appended: Sequence[int]
    segment_starts: Sequence[int]
    record_bytes: int


class Design(ABC):
    """An index over one partition; `lookup` gives the offset from which a reader begins."""

    title: str

    @abstractmethod
    def lookup(self, timestamp: int) -> int | None: ...

    @abstractmethod
    def disk_bytes(self) -> int: ...


class AppendTimeMinutes(Design):
    """Minutes of arrival, per segment; the search is over the bytes of the file."""

    def __init__(self, day: Day) -> None:
        self.title = "draft 1: LogAppendTime by the minute, a file per segment"
        self.starts = list(day.segment_starts)
        self.files: list[bytes] = []
        for start, end in zip(self.starts, [*self.starts[1:], len(day.appended)], strict=True):
            entries, last = bytearray(), -1
            for offset in range(start, end):
                minute = day.appended[offset] // MINUTE_MS
                if minute > last:
                    entries += NARROW.pack(minute, offset - start)
                    last = minute
            self.files.append(bytes(entries))
        self.ends = [NARROW.unpack_from(entries, len(entries) - NARROW.size)[0] for entries in self.files]

    def lookup(self, timestamp: int) -> int | None:
        minute = timestamp // MINUTE_MS
        number = bisect_left(self.ends, minute)
        if number == len(self.files):
            return None
        entries = self.files[number]
        place = bisect_left(
            range(len(entries) // NARROW.size), minute, key=lambda n: NARROW.unpack_from(entries, n * NARROW.size)[0]
        )
        return self.starts[number] + int(NARROW.unpack_from(entries, place * NARROW.size)[1])

    def disk_bytes(self) -> int:
        return sum(map(len, self.files))


class CreateTimeMap(Design):
    """The first offset of each minute or second in which a record was created; a later unit when that one is empty."""

    def __init__(self, day: Day, unit_ms: int) -> None:
        self.title = f"draft 2: CreateTime map in memory, by the {'minute' if unit_ms == MINUTE_MS else 'second'}"
        self.unit_ms = unit_ms
        self.first: dict[int, int] = {}
        for offset, created in enumerate(day.created):
            self.first.setdefault(created // unit_ms, offset)
        self.last_unit = max(self.first)

    def lookup(self, timestamp: int) -> int | None:
        for unit in range(timestamp // self.unit_ms, self.last_unit + 1):
            found = self.first.get(unit)
            if found is not None:
                return found
        return None

    def disk_bytes(self) -> int:
        return len(self.first) * NARROW.size


class WideOffsetIndex(Design):
    """Every offset index entry says how late the records up to it are; nothing is walked, so it is as exact as the interval."""

    def __init__(self, day: Day) -> None:
        self.title = "rejected: 16-byte offset index entries"
        self.starts = list(day.segment_starts)
        self.files: list[bytes] = []
        self.largest: list[int] = []
        late = -1
        for start, end in zip(self.starts, [*self.starts[1:], len(day.created)], strict=True):
            entries, largest, since = bytearray(), -1, 0
            for offset in range(start, end):
                if since > INDEX_INTERVAL_BYTES:
                    entries += WIDE.pack(offset - start, (offset - start) * day.record_bytes, largest)
                    since = 0
                largest = max(largest, day.created[offset])
                since += day.record_bytes
            late = max(late, largest)
            self.files.append(bytes(entries))
            self.largest.append(late)

    def lookup(self, timestamp: int) -> int | None:
        number = bisect_left(self.largest, timestamp)
        if number == len(self.files):
            return None
        entries = self.files[number]
        # The last entry before which everything is earlier than the target; the segment's start when there is none.
        before = bisect_right(
            range(len(entries) // WIDE.size), timestamp - 1, key=lambda n: WIDE.unpack_from(entries, n * WIDE.size)[2]
        )
        place = before - 1
        return self.starts[number] + (int(WIDE.unpack_from(entries, place * WIDE.size)[0]) if place >= 0 else 0)

    def disk_bytes(self) -> int:
        return sum(map(len, self.files))
