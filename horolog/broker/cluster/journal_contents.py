"""What a journal says (`file_journal`): its head, the state that it may have, and its entries, as far as they can be read.

Only a line without a newline is torn. A whole line that cannot be read is *damage*. When no worker writes any more it counts as an
entry (`read_entries`). While workers run, one that knows the entry writes it again, so reading stops there (`read_on`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

from horolog.broker.base.own_thread import in_pieces
from horolog.broker.cluster.cluster_state import ClusterState, Entry
from horolog.broker.cluster.entry_lines import DAMAGE, Head, Illegible, decode_entry, encode_head, find_head, illegible
from horolog.broker.on_record import cluster_file
from horolog.broker.on_record.cluster_file import Standing, StateLines, StoredCluster

LINES_AT_ONCE = 50
"""How many lines are decoded until other threads may go on."""


class ReadEntries(NamedTuple):
    """Entries of a journal, each the next after the one before; `end` is where the last of them ends."""

    entries: list[Entry]
    end: int
    damages: list[str]


class FoundJournal(NamedTuple):
    """A journal as it lies on the disk."""

    path: str
    head: Head
    head_lines: bytes
    whole: StoredCluster | None
    """The state that its entries go on from; without one they go on from `horolog-cluster`."""
    read: ReadEntries
    damages: list[str]
    is_lost: bool = False
    """Whether a journal was there of which nothing usable is left."""
    sum: int = 0
    """The checksum of all that was read."""

    @property
    def number(self) -> int:
        """Of the last entry."""
        return number_of(self.head) + len(self.read.entries)


UNKNOWN_BASE = sys.maxsize
"""The base of a journal without a head, which is taken to continue the present record."""


def lost(path: str, damage: str) -> FoundJournal:
    """A journal that is known to have existed, and of which nothing can be read."""
    return FoundJournal(path, Head(UNKNOWN_BASE, ()), b"", None, ReadEntries([], 0, []), [damage], is_lost=True)


def number_of(head: Head) -> int:
    """The last entry in the state that a journal began with; 0 without one."""
    return 0 if head.whole is None else head.whole.number


def start_of(head: Head) -> int:
    """Where the lines of entries begin."""
    return len(encode_head(head)) + (0 if head.whole is None else head.whole.size_bytes)


def whole_lines(data: bytes) -> Iterator[tuple[bytes, int]]:
    """StateLines that a newline ends, each with where the next one begins. Empty lines, left where one was taken back, are skipped."""
    position = 0
    while (line_end := data.find(b"\n", position)) >= 0:
        if line_end > position:
            yield data[position:line_end], line_end + 1
        position = line_end + 1


def read_entries(data: bytes, after: int) -> ReadEntries:
    """The entries after `after`, when no worker writes any more: a line that cannot be read counts as an entry, too."""
    read = ReadEntries([], 0, [])
    end, number, suspects = 0, after, list[Illegible]()
    tail = list(_line_with_a_hurt_end(data))
    for line, line_end in (*whole_lines(data), *tail):
        end = line_end
        try:
            found, entry = decode_entry(line)
        except DAMAGE as damage:
            read.damages.append(f"behind entry {number}: {damage}")
            suspects += illegible(line)
            continue
        if found > number:
            missing = found - number - 1
            read.entries.extend(suspects if len(suspects) == missing else [Illegible()] * missing)
            if missing and not suspects:
                read.damages.append(f"behind entry {number}: entry {found} follows")
            read.entries.append(entry)
            number = found
        suspects.clear()
    read.entries.extend(suspects)
    if tail:
        read.damages.append(f"behind entry {number}: no newline")
    return read._replace(end=end)


def _line_with_a_hurt_end(data: bytes) -> Iterator[tuple[bytes, int]]:
    """The last line, if only its newline is damaged."""
    tail = data[data.rfind(b"\n") + 1 :]
    try:
        decode_entry(tail[:-1])
    except DAMAGE:
        return
    yield tail[:-1], len(data)


def read_on(data: bytes, after: int) -> ReadEntries:
    """The same while workers run: up to a line that cannot be read, which a worker that knows it writes again."""
    entries, end, number = list[Entry](), 0, after
    for line, line_end in whole_lines(data):
        try:
            found, entry = decode_entry(line)
        except DAMAGE as damage:
            return ReadEntries(entries, end, [f"behind entry {number}: {damage}"])
        if found > number + 1:
            return ReadEntries(entries, end, [f"behind entry {number}: entry {found} follows"])
        if found > number:
            entries.append(entry)
            number = found
        end = line_end
    return ReadEntries(entries, end, [])


def parse(path: str, data: bytes) -> FoundJournal:
    """A journal, as far as it can be read. Raises NewerJournal."""
    head = find_head(data)
    if head is None:
        return lost(path, "its head cannot be read")
    head_lines, start = encode_head(head), start_of(head)
    damages = [] if data.startswith(head_lines) else ["in one of its heads; the other counts"]
    whole = None if head.whole is None else cluster_file.parse(data[len(head_lines) : start])
    if whole is not None:
        damages += whole.damages
    read = read_entries(data[start:], number_of(head))
    damages += read.damages
    end = start + read.end
    return FoundJournal(path, head, head_lines, whole, read._replace(end=end), damages, sum=crc32(data[:end]))


def _numbered(data: bytes) -> dict[int, bytes]:
    """The entry lines that can be read, wherever they are, by number."""
    lines: dict[int, bytes] = {}
    for line, _ in in_pieces(whole_lines(data), LINES_AT_ONCE):
        try:
            lines[decode_entry(line)[0]] = line + b"\n"
        except DAMAGE:
            continue
    return lines


def newest_in(data: bytes) -> int:
    """The highest entry number found anywhere in a journal."""
    head = find_head(data)
    return max(_numbered(data), default=0 if head is None else number_of(head))


def lines_behind(data: bytes, after: int, number: int) -> tuple[int, bytes]:
    """The lines of the entries after `after` up to `number`, and the entry that they follow: a later one if a line cannot be read."""
    lines, first = _numbered(data) if after < number else {}, number
    while first > after and first in lines:
        first -= 1
    return first, b"".join(lines[each] for each in range(first + 1, number + 1))


def encode_whole(state: ClusterState, lines: StateLines | None = None) -> bytes:
    """`lines` are those of the state, if they are encoded already."""
    return cluster_file.encode(
        state.lines() if lines is None else lines,
        number=state.number,
        broker_configs=state.broker_configs,
        next_producer_id=state.next_producer_id,
        deleting=state.deleting,
        leads=state.leads,
        epochs=state.epochs,
        lost_rules=state.lost_rules,
        standing=Standing(state.rules_in_doubt),
    )
