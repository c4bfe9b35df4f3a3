"""Items of both index files of a segment, and whether they agree with its log.

What must hold, whoever wrote the index: entries grow; an offset entry names the start of a batch, and an offset in it (for v0
and v1 perhaps one of several inside a wrapper); a time entry is not below the times of the records up to its offset, or look-ups
would skip some of them, and not above the times of that batch and those before it, transaction markers included: Kafka counts them, horolog does not.
"""

from collections.abc import Iterator, Sequence
from struct import Struct

from broker.log import offset_index, time_index
from broker.log.scan import LARGEST_RELATIVE_OFFSET, Batch, scan
from broker.log.storage import File
from client.cli.dumping.items import Item
from protocol.records import batch

ENTRY_OF = {"offset-index": offset_index.ENTRY, "time-index": time_index.ENTRY}


def split(data: bytes, entry: Struct) -> tuple[list[tuple[int, int]], int, int]:
    """The entries, how many bytes of zeros follow as room for more, and how many bytes are left over."""
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
    """What is wrong with an index in itself."""
    entries, _, left_over = split(data, ENTRY_OF[kind])
    if left_over:
        yield problem(f"{len(data)} bytes are no whole number of entries: {left_over} are left over")
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


def verify_items(kind: str, data: bytes, base_offset: int, log: File, log_bytes: int) -> Iterator[Item]:
    """What is wrong with an index if its log is right."""
    entries, _, _ = split(data, ENTRY_OF[kind])
    batches = (
        span
        for span in scan(
            log.pread, log_bytes, first_offset=base_offset, end_offset=base_offset + LARGEST_RELATIVE_OFFSET + 1
        )
        if isinstance(span, Batch)
    )
    if kind == "offset-index":
        yield from _verify_offsets(entries, base_offset, batches)
    else:
        yield from _verify_times(entries, base_offset, batches)


def _verify_offsets(entries: Sequence[tuple[int, int]], base_offset: int, batches: Iterator[Batch]) -> Iterator[Item]:
    number = 0
    before = base_offset - 1
    for found in batches:
        while number < len(entries) and entries[number][1] < found.position:
            yield problem(f"entry {number}: no batch begins at {entries[number][1]}", number)
            number += 1
        if number < len(entries) and entries[number][1] == found.position:
            offset = base_offset + entries[number][0]
            if not before < offset <= found.last_offset:
                there = (
                    f"{before + 1} to {found.last_offset}"
                    if found.magic < 2
                    else f"{found.base_offset} to {found.last_offset}"
                )
                yield problem(
                    f"entry {number}: offset {offset} is not in the batch at {found.position}, {there}", number
                )
            number += 1
        before = found.last_offset
    for left in range(number, len(entries)):
        yield problem(f"entry {left}: no batch begins at {entries[left][1]}, the log ends before", left)


def _verify_times(entries: Sequence[tuple[int, int]], base_offset: int, batches: Iterator[Batch]) -> Iterator[Item]:
    number = 0
    latest_record = latest = -1  # of records, and of markers too, up to and including a batch
    latest_before = -1  # of records in the batches before
    last_offset = base_offset - 1
    has_untimed = False  # of v0 messages Kafka knew times that are not in the log: nobody can say what is too late
    for found in batches:
        has_untimed = has_untimed or found.magic == 0
        latest_before = latest_record
        latest_record = max(latest_record, found.timestamp)
        latest = max(latest, found.timestamp, batch.read_header(found.data).max_timestamp if found.is_control else -1)
        last_offset = found.last_offset
        while number < len(entries) and base_offset + entries[number][1] <= last_offset:
            timestamp, offset = entries[number][0], base_offset + entries[number][1]
            needed = latest_record if offset == last_offset else latest_before
            if timestamp < needed:
                yield problem(
                    f"entry {number}: records up to offset {offset} are as late as {needed}, not {timestamp}: look-ups skip some",
                    number,
                )
            elif timestamp > latest and not has_untimed:
                yield problem(
                    f"entry {number}: no record up to offset {offset} is as late as {timestamp}, the latest is {latest}",
                    number,
                )
            number += 1
    for left in range(number, len(entries)):
        offset = base_offset + entries[left][1]
        yield problem(f"entry {left}: offset {offset} is behind the end of the log, {last_offset}", left)
