"""Finds by time where a group of cluster A continues in a mirrored topic on cluster B, and counts what it will read twice.

Let `c` be the first record that the group has not read on A, and `t` its time. The group continues at B's first record of time
`t - slack` or later. `c` itself has such a time, so that record is `c` or one before it; and as B has A's records in A's order, all
that comes after `c` on A comes after it on B. So nothing is lost, in whatever order times are. The records between are read again: those
that record and `c`: times of the last `slack`, and as much more as times are out of order there.

`c` may have no such time to look for. Then `t` is the time of the last record before `c` that has one, and as that record comes before `c`,
the same holds. If none has, or B was not given it, the group begins where B begins.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from horolog.client.admin.admin import Admin
from horolog.client.values.types import EARLIEST, LATEST, TopicPartition
from horolog.client.wire.offsets import ends, list_offsets
from horolog.commands.errors import CommandError, NotFoundError
from horolog.pipeline.jobs.mirror_copy import FETCH_BYTES, LOOK_BYTES, Link, Progress, visible

if TYPE_CHECKING:
    from horolog.client.wire.client import Client

_FIRST_WINDOW = 64
_WIDER = 8
"""Looking back for a record with a time, each window is so much wider than the one before."""


class CommittedRecord(NamedTuple):
    """A record that a reader of committed records sees."""

    offset: int
    time_ms: int  # -1: none


class Span(NamedTuple):
    """How many such records there are in a range, and of which times."""

    records: int
    first_ms: int | None
    last_ms: int | None


class Log(Protocol):
    """One partition of one cluster, as readers of committed records see it up to `end`."""

    @property
    def first(self) -> int: ...

    @property
    def end(self) -> int: ...

    async def next(self, offset: int) -> CommittedRecord | None:
        """The first record at or after an offset."""
        ...

    async def previous_with_time(self, offset: int) -> CommittedRecord | None:
        """The last record with a time before an offset."""
        ...

    async def at(self, time_ms: int, start: int = 0) -> CommittedRecord | None:
        """The first record of this time or later, at or after an offset."""
        ...

    async def span(self, start: int, end: int) -> Span: ...


@dataclass(frozen=True, slots=True)
class PartitionMove:
    """How a group was moved in one partition."""

    partition: TopicPartition
    offset_from: int
    offset_to: int
    time_ms: int | None
    """`t`; None: no record has a time, so it begins where B begins."""
    again: Span
    """What it has read on A and will read on B."""
    gone: int
    """How many offsets that the group had not read were gone from A."""
    not_mirrored: int
    """How many records that the group has not read precede the first that was mirrored."""

    def as_json(self) -> dict[str, Any]:
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "offset_from": self.offset_from,
            "offset_to": self.offset_to,
            "timestamp": self.time_ms,
            "duplicates": self.again.records,
            "duplicates_since": self.again.first_ms,
            "duplicates_until": self.again.last_ms,
            "gone": self.gone,
            "not_mirrored": self.not_mirrored,
        }


async def move(
    place: TopicPartition, source: Log, target: Log, committed: int, slack_ms: int, progress: Progress
) -> PartitionMove:
    """Where a group that has committed this offset on A continues, B being a mirror from `progress.begun` up to `progress.offset`."""
    unread_at = max(committed, source.first)
    unread = await source.next(unread_at)
    goes_by = unread if unread is not None and unread.time_ms >= 0 else await source.previous_with_time(unread_at)
    since_ms = None if goes_by is None else max(0, goes_by.time_ms - slack_ms)
    if goes_by is None or since_ms is None or not _is_on(target, unread, goes_by, progress):
        offset = target.first
    else:
        offset = await _offset_on(target, unread, since_ms, progress)
    return PartitionMove(
        place,
        committed,
        offset,
        None if goes_by is None else goes_by.time_ms,
        await _read_again(source, target, unread_at, offset, since_ms, progress),
        gone=unread_at - committed,
        not_mirrored=(await source.span(unread_at, progress.begun)).records,
    )


def _is_on(target: Log, unread: CommittedRecord | None, goes_by: CommittedRecord, progress: Progress) -> bool:
    """Whether B was given the record, and has it still if it is needed in place of one without a time."""
    return goes_by.offset >= progress.begun and (unread is None or unread is goes_by or target.first == 0)


async def _offset_on(target: Log, unread: CommittedRecord | None, since_ms: int, progress: Progress) -> int:
    """The first record of that time or later; the end where nothing is that was not read."""
    found = await target.at(since_ms)
    if found is not None:
        return found.offset
    if unread is not None and unread.offset < progress.offset:
        return target.first  # it exists: a broker with a damaged time index may not find it
    return target.end


async def _read_again(
    source: Log, target: Log, unread_at: int, offset: int, since_ms: int | None, progress: Progress
) -> Span:
    """What the group has read on A and will read on B. Where one of them has dropped its first records, A's of that time need not be B's."""
    if offset == target.end:
        return await source.span(max(progress.offset, source.first), unread_at)
    found = None if since_ms is None or offset == target.first else await source.at(since_ms, progress.begun)
    begin = progress.begun if found is None else found.offset
    again = await source.span(begin, unread_at)
    if found is None or target.first > 0 or source.first > progress.begun:
        return again._replace(records=await _by_difference(source, target, offset, unread_at, progress))
    return again


async def _by_difference(source: Log, target: Log, offset: int, unread_at: int, progress: Progress) -> int:
    """The records to be read on B less those unread on A: B's last records are A's last ones, whatever was dropped before them."""
    coming = (await target.span(offset, target.end)).records
    unread_there = (await source.span(max(unread_at, progress.begun), progress.offset)).records
    not_there_yet = (await source.span(progress.offset, unread_at)).records
    return max(0, coming - unread_there) + not_there_yet


class BrokerLog:
    """A partition on a broker; its end is that of the first look."""

    def __init__(self, client: "Client", place: TopicPartition, first: int, end: int) -> None:
        self._client = client
        self._place = place
        self.first = first
        self.end = end

    @classmethod
    async def open(cls, client: "Client", place: TopicPartition) -> "BrokerLog":
        end = (await ends(client, {place: LATEST}, 1))[place]
        return cls(client, place, (await ends(client, {place: EARLIEST}, 1))[place], end)

    async def next(self, offset: int) -> CommittedRecord | None:
        return await self._next(offset, -1)

    async def _next(self, offset: int, least_ms: int) -> CommittedRecord | None:
        async for records, _ in visible(self._client, self._place, max(offset, self.first), self.end, LOOK_BYTES):
            for record in records:
                if record.timestamp_ms >= least_ms:
                    return CommittedRecord(record.offset, record.timestamp_ms)
        return None

    async def previous_with_time(self, offset: int) -> CommittedRecord | None:
        high, width = min(offset, self.end), _FIRST_WINDOW
        while high > self.first:
            low = max(self.first, high - width)
            last = None
            async for records, _ in visible(self._client, self._place, low, high, FETCH_BYTES):
                timed = [record for record in records if record.timestamp_ms >= 0]
                last = CommittedRecord(timed[-1].offset, timed[-1].timestamp_ms) if timed else last
            if last is not None:
                return last
            high, width = low, width * _WIDER
        return None

    async def at(self, time_ms: int, start: int = 0) -> CommittedRecord | None:
        """A lookup may find a record of an aborted transaction; from there on the first that is seen and late enough counts."""
        found = (await list_offsets(self._client, {self._place: time_ms}, isolation=1))[self._place]
        return None if found is None else await self._next(max(found.offset, start), time_ms)

    async def span(self, start: int, end: int) -> Span:
        records, times = 0, []
        async for some, _ in visible(
            self._client, self._place, max(start, self.first), min(end, self.end), FETCH_BYTES
        ):
            records += len(some)
            timed = [record.timestamp_ms for record in some if record.timestamp_ms >= 0]
            times += [min(timed), max(timed)] if timed else []
        return Span(records, min(times, default=None), max(times, default=None))


# -- groups


class GroupTaken(CommandError):
    """The group already commits on B; setting its offsets would move it back."""


async def check_groups(source: Admin, target: Admin, groups: list[str], topic: str) -> list[str]:
    """The groups that still have members on A; raises if one has read nothing there, or has members on B."""
    described = await source.describe_groups(groups)
    for group in groups:
        if not any(place.topic == topic for place in await source.group_offsets(group)):
            raise NotFoundError(
                f"group {group!r} has no committed offsets for {topic}", "list the groups with `horolog groups list`"
            )
        await _check_free(target, group, None)
    return [group for group in groups if described[group].members]


async def _check_free(target: Admin, group: str, expected: dict[TopicPartition, int] | None) -> None:
    if (await target.describe_groups([group]))[group].members:
        raise GroupTaken(
            f"group {group!r} has members on cluster B",
            "stop them first, because what they read now would be overwritten",
        )
    if expected is None:
        return
    found = await target.group_offsets(group, expected)
    if any(each is not None and each.offset != expected[place] for place, each in found.items()):
        raise GroupTaken(f"group {group!r} has committed on cluster B since it was moved", "its offsets there are kept")


async def move_group(
    source: Admin,
    target: Admin,
    link: Link,
    group: str,
    topic: str,
    *,
    slack_ms: int,
    moved_before: Sequence[PartitionMove] | None = None,
) -> list[PartitionMove]:
    """Set where the group continues on B, in every partition of which it has read something on A.

    GroupTaken if it has members on B, or has committed something there since it was last moved.
    """
    expected = None if moved_before is None else {each.partition: each.offset_to for each in moved_before}
    await _check_free(target, group, expected)
    committed = {
        place: each.offset
        for place, each in (await source.group_offsets(group)).items()
        if each is not None and place.topic == topic
    }
    noted = await target.group_offsets(link.group, committed, stable=True)
    moved = []
    for place, offset in sorted(committed.items()):
        have = noted.get(place)
        if have is None:
            raise CommandError(f"{place} is not mirrored, so group {group!r} cannot continue there")
        here, there = await BrokerLog.open(source.client, place), await BrokerLog.open(target.client, place)
        moved.append(await move(place, here, there, offset, slack_ms, Progress.of(have)))
    await target.alter_group_offsets(group, {each.partition: each.offset_to for each in moved})
    return moved
