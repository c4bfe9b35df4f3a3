"""The facts of `horolog topics describe` from a data folder: partitions as their broker would open them, with nothing written."""

from datetime import tzinfo
from typing import TYPE_CHECKING, NamedTuple

from horolog.broker.log.partition import Inventory, Partition, Resources, lookups
from horolog.broker.log.recovery import Circumstances, PartitionFolder, open_partition
from horolog.broker.log.storage import OverlayStorage, ReadOnlyStorage
from horolog.client.cli.charting.index_points import folders_of
from horolog.client.cli.examining import segment_ages
from horolog.client.segments.day_sizes import DAYS_AT_MOST, Days, days_in, midnights, parts_of, span_of
from horolog.client.segments.retention import PartitionFacts
from horolog.client.segments.segments import Bracket, PartitionSegments, Segment

if TYPE_CHECKING:
    from horolog.broker.log.partition import HeldSegment


class DayQuery(NamedTuple):
    zone: tzinfo
    now_ms: int
    days: int


class Described(NamedTuple):
    facts: list[PartitionFacts]
    days: Days


def describe(folder: str, topic: str, asked: DayQuery) -> Described:
    """The topics' facts; missing topics are left out. Raises NewerClusterFile, StorageFault."""
    opened = _open(folder, topic, asked.now_ms)
    facts = [_facts(one) for one in opened]
    span = span_of(facts, asked.now_ms)
    if span is None or not asked.days:
        return Described(facts, Days((), None))
    borders = midnights(*span, asked.zone, min(asked.days, DAYS_AT_MOST))
    parts = []
    for partition, each in zip(opened, facts, strict=True):
        found = [lookups.first_at_or_after(partition, border) for border in borders]
        offsets = [partition.high_watermark if one is None else one.offset for one in found]
        parts.append(parts_of(each, offsets, _told(partition, borders, asked.now_ms)))
    return Described(facts, Days(tuple(days_in(borders, parts)), None))


def _open(folder: str, topic: str, now_ms: int) -> list[Partition]:
    files = ReadOnlyStorage()
    config, _, _ = segment_ages.settings_of(files, folder, topic, {})
    start_of = segment_ages.log_start_in(files, folder)
    found = []
    for index, directory in folders_of(files, folder, topic):
        start = start_of(topic, index)
        known = Circumstances(was_clean=True, log_start_offset=start, now_ms=now_ms, records_only=True)
        resources = Resources(OverlayStorage(files))
        found.append(open_partition(PartitionFolder(topic, index, directory), config, resources, known))
    return found


def _facts(partition: Partition) -> PartitionFacts:
    first, largest = lookups.first_at_or_after(partition, 0), lookups.largest_timestamp(partition)
    return PartitionFacts(
        partition.index,
        partition.log_start_offset,
        partition.high_watermark,
        partition.size_bytes,
        None if first is None else first.timestamp,
        None if largest is None else largest.timestamp,
        None if largest is None else largest.offset,
    )


def _told(partition: Partition, times: list[int], now_ms: int) -> PartitionSegments:
    inventory = Inventory(partition)
    segments = tuple(_segment(one) for one in inventory.segments(now_ms))
    brackets = tuple(Bracket(*inventory.before(one)) for one in times)
    return PartitionSegments(partition.index, inventory.log_start_offset, inventory.high_watermark, segments, brackets)


def _segment(held: "HeldSegment") -> Segment:
    first, largest = (None if one < 0 else one for one in (held.first_ms, held.largest_ms))
    base_offset, next_offset, size_bytes, _, _, largest_offset, created_ms, modified_ms, future, late = held
    return Segment(
        base_offset, next_offset, size_bytes, first, largest, largest_offset, created_ms, modified_ms, future, late
    )
