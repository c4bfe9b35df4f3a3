"""The assignors of groups whose assignments the broker makes: `uniform` and `range`, as pure functions.

`uniform` gives all members as nearly as possible the same number of partitions, and moves only what has to move for that. `range`
gives each member a run of adjacent partitions of every topic, so that equal partitions of topics of equal size stay together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heapreplace
from typing import NamedTuple

from horolog.protocol.topic_partition import by_topic

Assignment = dict[bytes, frozenset[int]]
"""Partitions by topic id; topics without partitions are left out."""

NOTHING: Assignment = {}


class Subscriber(NamedTuple):
    """A member as assignors see it: the topics that it wants, its partitions, and its instance id if it is static."""

    topics: frozenset[bytes]
    current: Assignment = NOTHING
    instance_id: str | None = None


MAX_PASSES = 8
"""Rounds of balancing when members want different topics; one or two nearly always suffice."""

Members = Mapping[str, Subscriber]
Topics = Mapping[bytes, int]
"""Partition counts by topic id."""

Assignor = Callable[[Members, Topics], dict[str, Assignment]]


def assign_range(members: Members, topics: Topics) -> dict[str, Assignment]:
    given: dict[str, Assignment] = {member_id: {} for member_id in members}
    ordered = sorted(members, key=lambda member_id: (members[member_id].instance_id or member_id, member_id))
    for topic_id, count in topics.items():
        readers = [member_id for member_id in ordered if topic_id in members[member_id].topics]
        if not readers:
            continue
        share, extra = divmod(count, len(readers))
        start = 0
        for place, member_id in enumerate(readers):
            end = start + share + (place < extra)
            if end > start:
                given[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return given


def assign_uniform(members: Members, topics: Topics) -> dict[str, Assignment]:
    if not members:
        return {}
    kept = _keep(members, topics)
    wanted = next(iter(members.values())).topics
    all_alike = all(subscriber.topics == wanted for subscriber in members.values())
    if all_alike:
        _give_back_surplus(kept, sum(topics.get(topic_id, 0) for topic_id in wanted))
    loads = {member_id: len(partitions) for member_id, partitions in kept.items()}
    taken = {partition for partitions in kept.values() for partition in partitions}
    free = [
        (topic_id, index)
        for topic_id, count in topics.items()
        for index in range(count)
        if (topic_id, index) not in taken
    ]
    if all_alike:
        _hand_out_alike(kept, loads, free, wanted)
    else:
        _hand_out(members, kept, loads, free)
        _even_out(members, kept, loads)
    return {member_id: _by_topic(partitions) for member_id, partitions in kept.items()}


Place = tuple[bytes, int]


def _keep(members: Members, topics: Topics) -> dict[str, set[Place]]:
    """The partitions that every member may keep; one that two members have stays with the first."""
    kept: dict[str, set[Place]] = {}
    taken: set[Place] = set()
    for member_id, subscriber in members.items():
        mine = {
            (topic_id, index)
            for topic_id, indexes in subscriber.current.items()
            if topic_id in subscriber.topics
            for index in indexes
            if index < topics.get(topic_id, 0) and (topic_id, index) not in taken
        }
        taken |= mine
        kept[member_id] = mine
    return kept


def _give_back_surplus(kept: dict[str, set[Place]], partition_count: int) -> None:
    """All members want the same topics: each keeps at most an equal share, some one more if it does not divide evenly."""
    share, extra = divmod(partition_count, len(kept))
    for place, partitions in enumerate(sorted(kept.values(), key=len, reverse=True)):
        surplus = len(partitions) - share - (place < extra)
        if surplus > 0:
            partitions.difference_update(sorted(partitions)[-surplus:])


def _hand_out_alike(
    kept: dict[str, set[Place]], loads: dict[str, int], free: Sequence[Place], wanted: frozenset[bytes]
) -> None:
    """All members want the same topics: each free partition goes to the member with the fewest."""
    heap = [(load, place, member_id) for place, (member_id, load) in enumerate(loads.items())]
    heapify(heap)
    for partition in free:
        if partition[0] in wanted:
            load, place, member_id = heap[0]
            kept[member_id].add(partition)
            loads[member_id] = load + 1
            heapreplace(heap, (load + 1, place, member_id))


def _hand_out(members: Members, kept: dict[str, set[Place]], loads: dict[str, int], free: Sequence[Place]) -> None:
    """Each free partition goes to the least loaded member that wants it; partitions that few members want go first."""
    readers: dict[bytes, list[str]] = {}
    for member_id, subscriber in members.items():
        for topic_id in subscriber.topics:
            readers.setdefault(topic_id, []).append(member_id)
    for partition in sorted(free, key=lambda one: (len(readers.get(one[0], ())), one)):
        candidates = readers.get(partition[0])
        if candidates:
            member_id = min(candidates, key=lambda one: loads[one])
            kept[member_id].add(partition)
            loads[member_id] += 1


def _even_out(members: Members, kept: dict[str, set[Place]], loads: dict[str, int]) -> None:
    """Move partitions from the most to the least loaded members, as long as that evens the two out."""
    for _ in range(MAX_PASSES):
        by_load = sorted(members, key=lambda one: loads[one])
        moves = [_take(taker, by_load, members[taker].topics, kept, loads) for taker in by_load]
        if not any(moves):
            return


def _take(
    taker: str, by_load: Sequence[str], wanted: frozenset[bytes], kept: dict[str, set[Place]], loads: dict[str, int]
) -> int:
    """One member takes its share from members that had more when they were sorted; returns how much it took."""
    before = loads[taker]
    for giver in reversed(by_load):
        if giver == taker:
            break
        surplus = (loads[giver] - loads[taker]) // 2
        if surplus > 0:
            moved = sorted(partition for partition in kept[giver] if partition[0] in wanted)[-surplus:]
            kept[giver].difference_update(moved)
            kept[taker].update(moved)
            loads[giver] -= len(moved)
            loads[taker] += len(moved)
    return loads[taker] - before


def _by_topic(partitions: set[Place]) -> Assignment:
    return {topic_id: frozenset(indexes) for topic_id, indexes in by_topic(partitions).items()}


ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
"""By the names that clients request; the first is the default."""

DEFAULT_ASSIGNOR = next(iter(ASSIGNORS))
