"""Items of a segment's two index files, and whether they agree with its log.

Rules for indexes of horolog and Kafka: entries grow; an offset entry names the start of a batch, and an offset in it (for v0
and v1 perhaps one of several inside a wrapper); a time entry is not below the times of the records up to its offset, or lookups
would skip some of them, and not above the times of that batch and those before it, transaction markers included: Kafka counts them, horolog does not.
"""

from collections.abc import Iterator, Sequence
from struct import Struct

from horolog.broker.log.indexes import LARGEST_RELATIVE_OFFSET, offset_index, time_index
from horolog.broker.log.integrity import Batch, scan
from horolog.broker.log.storage import File
from horolog.client.cli.dumping.items import Item
from horolog.protocol.records import batch

ENTRY_OF = {"offset-index": offset_index.ENTRY, "time-index": time_index.ENTRY}


def split(data: bytes, entry: Struct) -> tuple[list[tuple[int, int]], int, int]:
    """The entries, the number of zero bytes after them as room for more, and the number of bytes left over."""
    left_over = len(data) % entry.size
    whole = data[: len(data) - left_over]
    used = len(whole.rstrip(b"\0"))
    used += -used % entry.size
    return [(first, second) for first, second in entry.iter_unpack(whole[:used])], len(whole) - used, left_over


def entry_items(kind: str, entries: Sequence[tuple[int, int]], base_offset: int) -> Iterator[Item]:
    for first, second in entries:
        if kind == "offset-index":
            yield {"type": "entry", "offset": base_offset + first, "position": second}
        else:
            yield {"type": "entry", "timestamp": first, "offset": base_offset + second}


def sanity_items(kind: str, data: bytes) -> Iterator[Item]:
    """The faults of an index in itself."""
    entries, _, left_over = split(data, ENTRY_OF[kind])
    if left_over:
        yield problem(f"{len(data)} bytes are not a whole number of entries: {left_over} are left over")
    names = ("offset", "position") if kind == "offset-index" else ("timestamp", "offset")
    for number, entry in enumerate(entries):
        before = entries[number - 1] if number else None
        for name, value, last in zip(names, entry, before or (None, None), strict=True):
            if name != "timestamp" and value < 0:
                yield problem(f"entry {number}: {name} {value} is negative", number)
            elif (
                last is not None and value <= last and not (kind == "time-index" and name == "offset" and value == last)
            ):
                yield problem(f"entry {number}: {name} {value} does not come after {last}", number)


def problem(text: str, entry: int | None = None) -> Item:
    return {"type": "problem", "entry": entry, "problem": text}


class OffsetsCheck:
    """Checks an offset index against its log, batch by batch."""

    def __init__(self, data: bytes, base_offset: int) -> None:
        self._entries, _, _ = split(data, offset_index.ENTRY)
        self._base_offset = base_offset
        self._before = base_offset - 1
        self._number = 0

    def add(self, found: Batch) -> Iterator[Item]:
        """The wrong entries up to this batch."""
        entries = self._entries
        while self._number < len(entries) and entries[self._number][1] < found.position:
            yield self._astray("")
        if self._number < len(entries) and entries[self._number][1] == found.position:
            offset = self._base_offset + entries[self._number][0]
            if not self._before < offset <= found.last_offset:
                text = f"entry {self._number}: offset {offset} is not in the batch at {found.position}, which ends with {found.last_offset}"
                yield problem(text, self._number)
            self._number += 1
        self._before = found.last_offset

    def end(self, *, is_complete: bool = False) -> Iterator[Item]:  # noqa: ARG002 - the other check needs it
        """The entries left after the last batch."""
        while self._number < len(self._entries):
            yield self._astray(", the log ends before it")

    def _astray(self, more: str) -> Item:
        number = self._number
        self._number += 1
        return problem(f"entry {number}: no batch begins at {self._entries[number][1]}{more}", number)


class TimesCheck:
    """Checks a time index against its log, batch by batch."""

    def __init__(self, data: bytes, base_offset: int) -> None:
        self._entries, _, _ = split(data, time_index.ENTRY)
        self._base_offset = base_offset
        self._number = 0
        self._last_offset = base_offset - 1
        self._latest_record = -1
        self._latest = -1  # transaction markers included
        self._has_untimed = (
            False  # Kafka had times of v0 messages that the log lacks: which entries are too late cannot be known
        )

    def add(self, found: Batch) -> Iterator[Item]:
        before = self._latest_record
        marker = batch.read_header(found.data).max_timestamp if found.is_control else -1
        self._latest_record = max(before, found.max_timestamp)
        self._latest = max(self._latest, found.max_timestamp, marker)
        self._last_offset = found.last_offset
        self._has_untimed = self._has_untimed or found.magic == 0
        while self._number < len(self._entries):
            timestamp, offset = self._entries[self._number][0], self._base_offset + self._entries[self._number][1]
            if offset > found.last_offset:
                break
            needed = self._latest_record if offset == found.last_offset else before
            yield from self._judge(timestamp, offset, needed)
            self._number += 1

    def _judge(self, timestamp: int, offset: int, needed: int) -> Iterator[Item]:
        number = self._number
        if timestamp < needed:
            text = f"entry {number}: the latest time up to offset {offset} is {needed}, not {timestamp}: lookups skip some records"
            yield problem(text, number)
        elif timestamp > self._latest and not self._has_untimed:
            text = f"entry {number}: the latest time up to offset {offset} is {self._latest}, not {timestamp}"
            yield problem(text, number)

    def end(self, *, is_complete: bool = False) -> Iterator[Item]:
        """Also checks, for a complete segment, that the last entry has the latest time, which lookups rely on."""
        told = self._entries[-1][0] if self._entries else -1
        if is_complete and told < self._latest_record:
            yield problem(
                f"its last entry is {told}, not the latest time, {self._latest_record}: lookups skip the segment"
            )
        for number in range(self._number, len(self._entries)):
            offset = self._base_offset + self._entries[number][1]
            yield problem(f"entry {number}: offset {offset} is after the end of the log, {self._last_offset}", number)


CHECK_OF: dict[str, type[OffsetsCheck] | type[TimesCheck]] = {"offset-index": OffsetsCheck, "time-index": TimesCheck}


def verify_items(kind: str, data: bytes, base_offset: int, log: File, log_bytes: int) -> Iterator[Item]:
    """The faults of an index, assuming its log is right."""
    check = CHECK_OF[kind](data, base_offset)
    end_offset = base_offset + LARGEST_RELATIVE_OFFSET + 1
    for span in scan(log.pread, log_bytes, first_offset=base_offset, end_offset=end_offset):
        if isinstance(span, Batch):
            yield from check.add(span)
    yield from check.end()
