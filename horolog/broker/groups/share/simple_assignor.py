"""The assignor of share groups, `simple`, as a pure function: it balances, and moves only what has to move for that.

A partition has several members if there are more members than partitions. Members that want the same topics share out all
partitions together; if they want different topics, each topic is shared out among its readers by itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from horolog.broker.groups.assignors import Assignment, Subscriber

NAME = "simple"

Place = tuple[bytes, int]


def assign_simple(members: Mapping[str, Subscriber], partitions: Assignment) -> dict[str, Assignment]:
    """The target of every member. `partitions` are those that may be assigned: the initialized ones of existing topics."""
    held = {
        member_id: {(topic_id, index) for topic_id, indexes in one.current.items() for index in indexes}
        for member_id, one in members.items()
    }
    given: dict[str, set[Place]] = {member_id: set() for member_id in members}
    for topic_ids, readers in _pools(members):
        places = [(one, index) for one in topic_ids for index in sorted(partitions.get(one, ()))]
        for member_id, mine in _share_out(places, readers, held).items():
            given[member_id] |= mine
    return {member_id: _by_topic(mine) for member_id, mine in given.items()}


def _pools(members: Mapping[str, Subscriber]) -> list[tuple[list[bytes], list[str]]]:
    """Topics that are shared out together, and the members among which they are."""
    wanted = {one.topics for one in members.values()}
    if len(wanted) == 1:
        return [(sorted(next(iter(wanted))), sorted(members))]
    readers: dict[bytes, list[str]] = {}
    for member_id in sorted(members):
        for topic_id in members[member_id].topics:
            readers.setdefault(topic_id, []).append(member_id)
    return [([topic_id], readers[topic_id]) for topic_id in sorted(readers)]


def _share_out(
    places: Sequence[Place], readers: Sequence[str], held: Mapping[str, set[Place]]
) -> dict[str, set[Place]]:
    """Each place gets the same number of readers, and the readers nearly the same number of places."""
    if not places:
        return {}
    sharing = -(-len(readers) // len(places))
    room = _rooms(sharing * len(places), readers)
    kept, holders = _keep(places, room, held, sharing)
    unfilled = deque(one for one in readers if len(kept[one]) < room[one])
    for place in places:
        for _ in range(sharing - holders[place]):
            taker = _next_without(place, unfilled, kept)
            if taker is None:
                break
            kept[taker].add(place)
            if len(kept[taker]) < room[taker]:
                unfilled.append(taker)
    return kept


def _rooms(total: int, readers: Sequence[str]) -> dict[str, int]:
    """How many of all assignments each reader gets; the rounding differs by one at the most."""
    count = len(readers)
    ends = [-(-total * place // count) for place in range(count + 1)]
    return {reader: ends[place + 1] - ends[place] for place, reader in enumerate(readers)}


def _keep(
    places: Sequence[Place], room: Mapping[str, int], held: Mapping[str, set[Place]], sharing: int
) -> tuple[dict[str, set[Place]], dict[Place, int]]:
    """What each reader keeps of what it has, and how many readers keep each place."""
    kept: dict[str, set[Place]] = {reader: set() for reader in room}
    holders = dict.fromkeys(places, 0)
    for reader, most in room.items():
        for place in places:
            if place in held[reader] and len(kept[reader]) < most and holders[place] < sharing:
                kept[reader].add(place)
                holders[place] += 1
    return kept, holders


def _next_without(place: Place, unfilled: deque[str], kept: Mapping[str, set[Place]]) -> str | None:
    """Take out the first reader that has room and not yet the place; those that have it wait in their order."""
    for number, reader in enumerate(unfilled):
        if place not in kept[reader]:
            del unfilled[number]
            return reader
    return None


def _by_topic(places: set[Place]) -> Assignment:
    topics: dict[bytes, set[int]] = {}
    for topic_id, index in places:
        topics.setdefault(topic_id, set()).add(index)
    return {topic_id: frozenset(indexes) for topic_id, indexes in topics.items()}
