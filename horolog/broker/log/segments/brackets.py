"""Brackets the first record at or after a time between two places of a segment, from its two indexes alone.

A time entry is considered at every entry of the offset index and has the largest time up to and with the batch named there (see
`indexes.time_index`). So with (T, O) the first time entry that is not before the target, the record is at O or before it; and the
last offset entry before O, like all before that, names a batch whose records are all earlier. `Bracket` is that as offsets and bytes.
"""

from typing import NamedTuple

from horolog.broker.log.indexes import offset_index, time_index


class Bracket(NamedTuple):
    """The offset of the record, and how many bytes lie before the batch that holds it: from, and at most."""

    from_offset: int
    from_bytes: int
    to_offset: int
    to_bytes: int


def bracket(
    offset_entries: bytes | bytearray, time_entries: bytes | bytearray, timestamp: int, end: tuple[int, int]
) -> Bracket:
    """Relative to the segment's start; `end` is the offset and the position behind its last record."""
    count = offset_index.count(offset_entries)
    reaching = time_index.first_at_or_after(time_entries, timestamp)
    if reaching is None:
        before, following = count - 1, count
    else:
        offset = reaching[2]
        at = offset_index.last_at_or_before(offset_entries, offset, guess=reaching[0])
        before = at - 1
        following = at if at >= 0 and offset_index.offset_of(offset_entries, at) == offset else at + 1
    low = (0, 0) if before < 0 else _place(offset_entries, before)
    high = _place(offset_entries, following) if following < count else end
    return Bracket(min(low[0], end[0]), min(low[1], end[1]), min(high[0], end[0]), min(high[1], end[1]))


def _place(entries: bytes | bytearray, number: int) -> tuple[int, int]:
    return offset_index.offset_of(entries, number), offset_index.position_of(entries, number)
