"""Reads what time indexes say about a partition's records; logs are not read.

An entry (timestamp, offset) says that no record up to that offset is later. So if times are in order, the records between two
entries are from the time between them. What no index covers is counted separately: records after the last segment's last entry.
"""

import re
from dataclasses import dataclass, field

from horolog.broker.log.indexes import time_index
from horolog.broker.log.integrity import Seal, SealsDamaged, seals
from horolog.broker.log.storage import FileMissing, Storage
from horolog.client.charting.buckets import Disorder, Stretch, with_starts
from horolog.client.cli.dumping.indexes import split

_LOG = re.compile(r"([0-9]{20})\.log")


def folders_of(storage: Storage, data_folder: str, topic: str) -> list[tuple[int, str]]:
    """The partitions of a topic and their folders, in order."""
    pattern = re.compile(re.escape(topic) + r"-(0|[1-9][0-9]{0,9})")
    found = map(pattern.fullmatch, storage.list_dir(data_folder))
    folders = [(int(one[1]), f"{data_folder}/{one[0]}") for one in found if one is not None]
    return sorted(one for one in folders if storage.is_dir(one[1]))


@dataclass(slots=True)
class PartitionTimes:
    """The known times of one partition."""

    name: str
    stretches: list[Stretch] = field(default_factory=list)
    disorder: list[Disorder] = field(default_factory=list)
    behind_latest: int = 0
    """Records after the latest one of their segment: they are late, or of the same time."""
    untold: int = 0
    """Records that no index covers."""
    latest: int = -1
    """The largest time of all."""
    before: int = -1
    """The largest time of the segment read last."""
    segments: int = 0


def read_partition(storage: Storage, name: str, directory: str, end_offset: int | None) -> PartitionTimes:
    """The times of one folder's indexes; `end_offset` is the end by the checkpoints, if they have one."""
    times = PartitionTimes(name)
    sealed = _seals(storage, directory)
    bases = sorted(int(found[1]) for found in map(_LOG.fullmatch, storage.list_dir(directory)) if found is not None)
    times.segments = len(bases)
    for base_offset, following in zip(bases, [*bases[1:], None], strict=True):
        seal = sealed.get(base_offset)
        end = following if following is not None else _end(seal, end_offset)
        is_complete = following is not None or (seal is not None and seal.contents.next_offset == end)
        path = f"{directory}/{base_offset:020d}.timeindex"
        _read_segment(storage, path, base_offset, end, seal if is_complete else None, times, is_complete=is_complete)
    times.stretches = with_starts(times.stretches)
    return times


def _seals(storage: Storage, directory: str) -> dict[int, Seal]:
    try:
        return seals.load(storage, directory)
    except (SealsDamaged, ValueError):
        return {}


def _end(seal: Seal | None, checkpoint: int | None) -> int | None:
    """The end of the last segment, as far as it is recorded."""
    known = [one for one in (checkpoint, None if seal is None else seal.contents.next_offset) if one is not None]
    return max(known, default=None)


def _read_segment(
    storage: Storage,
    path: str,
    base_offset: int,
    end: int | None,
    seal: Seal | None,
    times: PartitionTimes,
    *,
    is_complete: bool,
) -> None:
    try:
        entries, _, _ = split(storage.read_all(path), time_index.ENTRY)
    except FileMissing:
        entries = []
    if seal is not None and seal.contents.max_timestamp >= 0:
        entries = _with_seal(entries, seal)
    if not entries:
        times.untold += max((end or base_offset) - base_offset, 0)
        return
    first_timestamp = entries[0][0]
    if first_timestamp < times.before:
        times.disorder.append(Disorder(times.name, base_offset, first_timestamp, times.before - first_timestamp))
    started = seal.contents.first_timestamp if seal is not None else times.before
    before_ms, before_offset = (started if 0 <= started <= first_timestamp else None), -1
    for timestamp, relative_offset in entries:
        if relative_offset > before_offset:
            times.stretches.append(Stretch(before_ms, timestamp, relative_offset - before_offset))
        before_ms, before_offset = timestamp, max(relative_offset, before_offset)
    _left_over(times, entries[-1][0], base_offset + before_offset + 1, end, is_complete=is_complete)
    times.before = entries[-1][0]
    times.latest = max(times.latest, times.before)


def _with_seal(entries: list[tuple[int, int]], seal: Seal) -> list[tuple[int, int]]:
    """The entries, with the closing one that a small segment may lack."""
    latest, offset = seal.contents.max_timestamp, seal.contents.max_timestamp_offset - seal.base_offset
    return entries if entries and entries[-1][0] >= latest else [*entries, (latest, offset)]


def _left_over(times: PartitionTimes, latest: int, told_to: int, end: int | None, *, is_complete: bool) -> None:
    """Records after the last entry: no later than it in a complete segment, of any time in the last one."""
    count = max((end or told_to) - told_to, 0)
    if is_complete:
        times.behind_latest += count
        if count:
            times.stretches.append(Stretch(latest, latest, count))
    else:
        times.untold += count
