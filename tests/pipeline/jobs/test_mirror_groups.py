"""Where a group goes on in a mirrored topic: it loses nothing, and what it reads again is counted."""

import asyncio
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from horolog.client.values.types import EARLIEST, Committed, TopicPartition
from horolog.commands.errors import CommandError, NotFoundError
from horolog.pipeline.jobs import mirror_groups
from horolog.pipeline.jobs.mirror_copy import Link, Progress
from horolog.pipeline.jobs.mirror_groups import CommittedRecord, Span, move

PLACE = TopicPartition("t", 0)


class MemoryLog:
    """(time, or None for what readers do not see) by offset."""

    def __init__(self, slots, first=0):
        self.first, self.end = first, len(slots)
        self.records = [CommittedRecord(n, ms) for n, ms in enumerate(slots) if ms is not None and n >= first]

    async def next(self, offset):
        return next((each for each in self.records if each.offset >= offset), None)

    async def previous_with_time(self, offset):
        return next((each for each in reversed(self.records) if each.offset < offset and each.time_ms >= 0), None)

    async def at(self, time_ms, start=0):
        return next((each for each in self.records if each.time_ms >= time_ms and each.offset >= start), None)

    async def span(self, start, end):
        some = [each for each in self.records if start <= each.offset < end]
        times = [each.time_ms for each in some if each.time_ms >= 0]
        return Span(len(some), min(times, default=None), max(times, default=None))


@st.composite
def moves(draw):
    """A log, what of it was mirrored and how B's looks, where a group is, and a slack."""
    slots = draw(st.lists(st.one_of(st.none(), st.just(-1), st.integers(0, 60)), max_size=25))
    begun = draw(st.integers(0, len(slots)))
    upto = draw(st.integers(begun, len(slots)))
    first = draw(st.integers(0, begun))
    there, numbers = [], []
    for number in range(begun, upto):
        for _ in range(draw(st.integers(0, 2)) if draw(st.booleans()) else 0):  # of transactions that were aborted
            there.append(None)
            numbers.append(None)
        if slots[number] is not None:
            there.append(slots[number])
            numbers.append(number)
    return slots, first, begun, upto, there, numbers, draw(st.integers(0, len(slots))), draw(st.integers(0, 30))


@example(([0, -1, 0], 0, 1, 3, [-1, 0], [1, 2], 1, 0))  # the time to go by is of a record that B was not given
@example(([0, -1, 0], 0, 1, 3, [-1, 0], [1, 2], 2, 0))
@given(moves())
def test_a_moved_group_reads_all_that_it_has_not_read_and_again_only_what_is_counted(given_move):
    slots, first, begun, upto, there, numbers, at, slack = given_move
    source, target = MemoryLog(slots, first), MemoryLog(there)
    moved = asyncio.run(move(PLACE, source, target, at, slack, Progress(upto, begun)))
    coming = [number for number in numbers[moved.offset_to :] if number is not None]
    later = [n for n in range(upto, len(slots)) if slots[n] is not None]
    reads = coming + later
    unread = [n for n in range(max(at, begun), len(slots)) if slots[n] is not None]
    assert set(unread) <= set(reads)
    assert moved.again.records == len([n for n in reads if n < at])
    assert reads == sorted(set(reads))
    times = [slots[n] for n in range(max(at, first), len(slots)) if slots[n] is not None]
    if moved.time_ms is not None and times and times[0] >= 0 and coming and moved.offset_to > 0:
        assert slots[coming[0]] >= moved.time_ms - slack


@example(([0, -1, 0], 0, 0, 3, [0, -1, 0], [0, 1, 2], 1, 0), 0, 1)  # or that B has dropped
@example(([-1, 0, -1, 0], 0, 0, 2, [-1, 0], [0, 1], 3, 0), 2, 0)  # A has dropped the record with which B begins
@given(moves(), st.integers(0, 25), st.integers(0, 25))
def test_what_is_read_again_is_counted_where_one_of_the_two_has_dropped_its_first_records(given_move, cut, target_cut):
    slots, first, begun, upto, there, numbers, at, slack = given_move
    source = MemoryLog(slots, min(max(first, cut), len(slots)))
    position = next((n for n, number in enumerate(numbers) if number is not None and number >= at), len(there))
    target = MemoryLog(there, min(target_cut, position))
    moved = asyncio.run(move(PLACE, source, target, at, slack, Progress(upto, begun)))
    unread_at = max(at, source.first)
    reads = [number for number in numbers[moved.offset_to :] if number is not None]
    reads += [n for n in range(max(upto, source.first), len(slots)) if slots[n] is not None]
    assert {n for n in range(max(unread_at, begun), len(slots)) if slots[n] is not None} <= set(reads)
    assert moved.again.records == len([n for n in reads if n < unread_at])


def test_a_broker_that_finds_nothing_where_something_is_makes_no_group_lose_anything():
    class Blind(MemoryLog):
        async def at(self, time_ms, start=0):
            return None

    source, target = MemoryLog([1, 2, 3, 4]), Blind([1, 2, 3, 4])
    moved = asyncio.run(move(PLACE, source, target, 2, 0, Progress(4, 0)))
    assert (moved.offset_to, moved.again.records) == (0, 2)


class Groups:
    """An admin client of a cluster with one group."""

    def __init__(self, members=(), committed=None):
        self.members = members
        self.committed = committed or {}
        self.set_to = {}

    async def describe_groups(self, groups):
        return {group: SimpleNamespace(members=list(self.members)) for group in groups}

    async def group_offsets(self, group, places=None, *, stable=False):
        return {place: Committed(offset, "") for place, offset in self.committed.items()}

    async def alter_group_offsets(self, group, offsets):
        self.set_to = offsets


def test_a_group_has_read_something_on_a_and_has_no_members_on_b():
    read = Groups(["member"], {PLACE: 5})
    assert asyncio.run(mirror_groups.check_groups(read, Groups(), ["g"], "t")) == ["g"]
    assert asyncio.run(mirror_groups.check_groups(Groups((), {PLACE: 5}), Groups(), ["g"], "t")) == []
    with pytest.raises(NotFoundError, match="group 'g' has no committed offsets for t"):
        asyncio.run(mirror_groups.check_groups(Groups(), Groups(), ["g"], "t"))
    with pytest.raises(mirror_groups.GroupTaken, match="has members on cluster B"):
        asyncio.run(mirror_groups.check_groups(read, Groups(["member"]), ["g"], "t"))


def test_a_group_that_has_gone_on_is_left_alone():
    moved = [mirror_groups.PartitionMove(PLACE, 5, 3, None, Span(0, None, None), 0, 0)]
    target, link = Groups((), {PLACE: 4}), Link("a:1", "b:1", "m")
    with pytest.raises(mirror_groups.GroupTaken, match="has committed on cluster B"):
        asyncio.run(mirror_groups.move_group(Groups(), target, link, "g", "t", slack_ms=0, moved_before=moved))


def test_a_partition_that_is_not_mirrored_cannot_be_gone_on_with():
    source, link = Groups((), {PLACE: 5, TopicPartition("other", 0): 1}), Link("a:1", "b:1", "m")
    with pytest.raises(CommandError, match="t-0 is not mirrored, so group 'g' cannot continue there"):
        asyncio.run(mirror_groups.move_group(source, Groups(), link, "g", "t", slack_ms=0))


def test_a_partition_on_a_broker_is_seen_as_its_readers_see_it(monkeypatch):
    """Times of the records at offsets 0 to 3; -1 is none."""
    times = [10, -1, 30, -1]

    async def visible(client, place, start, end, size):
        yield [SimpleNamespace(offset=at, timestamp_ms=times[at]) for at in range(start, min(end, 2))], 2
        yield [SimpleNamespace(offset=at, timestamp_ms=times[at]) for at in range(max(start, 2), end)], end

    async def list_offsets(client, places, isolation):
        return {place: SimpleNamespace(offset=0) if ms <= 30 else None for place, ms in places.items()}

    async def ends(client, places, isolation):
        return {place: 0 if which == EARLIEST else 4 for place, which in places.items()}

    monkeypatch.setattr(mirror_groups, "visible", visible)
    monkeypatch.setattr(mirror_groups, "list_offsets", list_offsets)
    monkeypatch.setattr(mirror_groups, "ends", ends)
    monkeypatch.setattr(mirror_groups, "_FIRST_WINDOW", 1)

    async def look():
        log = await mirror_groups.BrokerLog.open(None, PLACE)
        return (
            (log.first, log.end),
            [await log.next(1), await log.next(4)],
            [await log.previous_with_time(offset) for offset in (4, 2, 0)],
            [await log.at(20), await log.at(99), await log.at(10, 1)],
            await log.span(0, 9),
            await log.span(1, 2),
        )

    ends_of, following, before, late, whole, part = asyncio.run(look())
    assert ends_of == (0, 4)
    assert following == [CommittedRecord(1, -1), None]
    assert before == [CommittedRecord(2, 30), CommittedRecord(0, 10), None]
    assert late == [CommittedRecord(2, 30), None, CommittedRecord(2, 30)]
    assert (whole, part) == (Span(4, 10, 30), Span(1, None, None))
