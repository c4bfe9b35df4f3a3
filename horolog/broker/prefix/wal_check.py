"""Checks the objects of one WAL: numbers that partitions need, merged objects, marks, and leftovers of a broker that has ended.

Brokers may be running. An object that is gone while its WAL is read has been merged, and a newer mark says so: the WAL is read again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from horolog.broker.bucket import mark, wal_object
from horolog.broker.bucket.fence import Fence
from horolog.broker.bucket.mark import WalMark
from horolog.broker.bucket.names import Wal, key
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.wal_numbers import identify
from horolog.broker.bucket.wal_object import Footer
from horolog.broker.bucket.wal_writer import MAX_UNSAFE
from horolog.broker.on_record.cluster_file import Place
from horolog.broker.prefix.findings import Finding, damaged, is_fault, left_over, missing
from horolog.broker.prefix.prefix_reader import PrefixReader

READ_AGAIN = 5
"""So often a WAL is read again whose mark moves during the reading."""
FENCE_BYTES = 4096
"""A larger object is no fence."""
RESTORES = "a restore may read them until brokers remove them, after horolog.store.history.ms"

Stretches = Mapping[tuple[Place, int], int | None]
"""The partitions and epochs whose records lie in a WAL, and where each ends; None while it is written."""


class Extent(NamedTuple):
    """Offsets of a partition that lie one behind the other in a WAL."""

    base_offset: int
    next_offset: int


class WalUse(NamedTuple):
    """A WAL, and the use that the cluster has for it."""

    wal: Wal
    stretches: Stretches
    is_member: bool
    """Whether its broker may be writing it."""

    @property
    def needed_end(self) -> int:
        """Numbers below it are needed, because their records were acknowledged."""
        return max((end for end in self.stretches.values() if end is not None), default=0)


@dataclass(slots=True)
class CheckedWal:
    """`extents` has the offsets of each partition and epoch, in order."""

    findings: list[Finding] = field(default_factory=list)
    extents: dict[tuple[Place, int], list[Extent]] = field(default_factory=dict)


def check_wal(reader: PrefixReader, use: WalUse) -> CheckedWal:
    """Read it until its mark is the same before and after, or nothing is missing."""
    for _ in range(READ_AGAIN):
        before = _newest_number(reader, use.wal)
        found = _Check(reader, use).run()
        if not any(map(is_fault, found.findings)) or _newest_number(reader, use.wal) == before:
            break
    return found


def _newest_number(reader: PrefixReader, wal: Wal) -> int:
    return max(reader.numbers(wal.marks), default=-1)


def _add(extents: list[Extent], new: Extent) -> None:
    """Behind the last one, or as a part of it."""
    if extents and extents[-1].next_offset == new.base_offset:
        extents[-1] = extents[-1]._replace(next_offset=new.next_offset)
    else:
        extents.append(new)


def _joined(extents: list[Extent]) -> list[Extent]:
    """In order of their offsets."""
    joined: list[Extent] = []
    for one in sorted(extents):
        _add(joined, one)
    return joined


class _Check:
    """One reading of a WAL."""

    def __init__(self, reader: PrefixReader, use: WalUse) -> None:
        self._reader = reader
        self._wal, self._stretches, self._is_member = use
        self._needed_end = use.needed_end
        self._found = CheckedWal()

    def run(self) -> CheckedWal:
        newest = self._newest_mark()
        numbers = self._reader.numbers(self._wal.folder)
        merged = self._reader.listed(self._wal.merged_folder)
        if newest is None:
            upto, wanted = min(numbers, default=0), list(merged)
        else:
            upto, wanted = newest.upto, [self._wal.merged(nonce) for nonce in newest.merged]
        needed = range(upto, self._end(upto, numbers))
        for one in self._reader.each(partial(self._number, numbers), needed):
            self._take(one)
        for one in self._reader.each(self._merged, wanted):
            self._take(one)
        if not self._is_member:
            self._note_left_over(numbers, needed, {name: merged[name] for name in merged.keys() - set(wanted)})
        self._found.extents = {part: _joined(extents) for part, extents in self._found.extents.items()}
        return self._found

    def _newest_mark(self) -> WalMark | None:
        """None if the newest one cannot be read: numbers from the first one on that is there count."""
        number = _newest_number(self._reader, self._wal)
        if number < 0:
            return WalMark(self._wal, -1, 0, (), b"")
        name = key(self._wal.marks, number)
        data = self._reader.get(name)
        try:
            found = mark.decode(data or b"")
        except FormatError as error:
            self._found.findings.append(damaged(name, error))
            return None
        if (found.wal, found.number) != (self._wal, number):
            self._found.findings.append(damaged(name, f"mark {found.number} of {found.wal} under this key"))
            return None
        return found

    def _end(self, upto: int, numbers: Mapping[int, int]) -> int:
        """Up to where numbers are looked at: of a WAL that is written, as far as they follow one another, a few may be under way."""
        if not self._is_member and None not in self._stretches.values():
            return max(upto, self._needed_end)
        top = max(numbers, default=-1) + 1
        first_free = next((one for one in range(upto, top) if one not in numbers), top)
        return max(upto, self._needed_end, first_free if top - first_free <= MAX_UNSAFE else top)

    def _number(self, numbers: Mapping[int, int], number: int) -> Footer | Finding | None:
        name = key(self._wal.folder, number)
        data = self._reader.get(name) if number in numbers else None
        if data is None:
            return missing(name, "records that were acknowledged lay there")
        try:
            if isinstance(identify(data, self._wal, number), Fence):
                lost = number < self._needed_end
                return missing(name, "a fence lies there, where records have to be") if lost else None
            return wal_object.decode(data)
        except FormatError as error:
            return damaged(name, error)

    def _merged(self, name: str) -> Footer | Finding | None:
        data = self._reader.get(name)
        if data is None:
            return missing(name, "the newest mark names it: records that were acknowledged lay there")
        try:
            footer = wal_object.decode(data)
        except FormatError as error:
            return damaged(name, error)
        if footer.identity.wal != self._wal or not footer.identity.is_merged:
            return damaged(name, f"an object of {footer.identity.wal}, number {footer.identity.first}")
        return footer

    def _take(self, one: Footer | Finding | None) -> None:
        if isinstance(one, Finding):
            self._found.findings.append(one)
            return
        for run in () if one is None else one.runs:
            part = (run.topic_id, run.partition), run.leader_epoch
            end = self._stretches.get(part, 0)
            if end is not None and run.number >= end:
                continue
            _add(self._found.extents.setdefault(part, []), Extent(run.base_offset, run.next_offset))

    def _note_left_over(self, numbers: Mapping[int, int], needed: range, merged: Mapping[str, int]) -> None:
        beside = {number: size for number, size in numbers.items() if number not in needed}
        small = [number for number, size in beside.items() if size <= FENCE_BYTES]
        fences = {
            number for number, is_fence in zip(small, self._reader.each(self._is_fence, small), strict=True) if is_fence
        }
        gone = {key(self._wal.folder, number): size for number, size in beside.items() if number not in fences}
        reason = f"its broker has ended, and no partition needs them; {RESTORES}"
        self._found.findings += left_over(self._wal.folder, gone, reason)
        self._found.findings += left_over(self._wal.merged_folder, merged, f"no mark names them; {RESTORES}")

    def _is_fence(self, number: int) -> bool:
        data = self._reader.get(key(self._wal.folder, number))
        try:
            return data is None or isinstance(identify(data, self._wal, number), Fence)
        except FormatError:
            return False
