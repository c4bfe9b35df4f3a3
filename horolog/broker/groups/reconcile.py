"""Moves a member of a KIP-848 group from its current to its target assignment, heartbeat by heartbeat, as a pure function.

A member first gives back the partitions that are no longer its own and confirms that; only then it enters the new epoch. It gets a target
partition as soon as no other member has it. So no partition has two owners, whatever messages are lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple, TypeVar

from horolog.broker.groups.assignors import NOTHING, Assignment

K = TypeVar("K", bytes, str)
Place = tuple[bytes, int]
"""The id of a topic, and a partition."""
NO_EPOCHS: Mapping[Place, int] = {}
JOIN_EPOCH = 0


class MemberState(IntEnum):
    """The states of a member, by their numbers in the log."""

    STABLE = 0
    UNREVOKED = 1
    """It has partitions to give back, and stays in its epoch until it has given them back."""
    UNRELEASED = 2
    """It is in the newest epoch and waits for partitions that other members still have."""


class Current(NamedTuple):
    """A member's partitions and its epoch. `epochs` has the epochs in which it got them, where they are before its own."""

    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Assignment = NOTHING
    revoking: Assignment = NOTHING
    epochs: Mapping[Place, int] = NO_EPOCHS

    def in_epoch(self, epoch: int, state: MemberState, assigned: Assignment) -> Current:
        kept = each_place(intersection(self.assigned, assigned))
        if epoch == self.epoch:
            epochs = {place: self.epochs[place] for place in kept if place in self.epochs}
            return Current(epoch, self.previous_epoch, state, assigned, NOTHING, epochs)
        # a member that joins, or comes back in place of another, has nothing from an earlier epoch
        epochs = {place: self.epochs.get(place, self.epoch) for place in kept} if self.epoch > JOIN_EPOCH else {}
        return Current(epoch, self.epoch, state, assigned, NOTHING, epochs)

    def got_in(self, place: Place) -> int | None:
        """The epoch in which the member got a partition; None if it has not got it, or has given it back."""
        topic_id, index = place
        if index in self.assigned.get(topic_id, ()) or index in self.revoking.get(topic_id, ()):
            return self.epochs.get(place, self.epoch)
        return None


def reconcile(
    current: Current,
    target_epoch: int,
    target: Assignment,
    is_free: Callable[[bytes, int], bool],
    owned: Assignment | None,
) -> Current:
    """The member's next state; `owned` are the partitions that it reports, None if it sends no report."""
    if current.state is MemberState.STABLE and current.epoch == target_epoch:
        return current
    if current.state is MemberState.UNREVOKED and _owns_any(owned, current.revoking):
        return current
    return _step(current, target_epoch, target, is_free, owned)


def _step(
    current: Current,
    target_epoch: int,
    target: Assignment,
    is_free: Callable[[bytes, int], bool],
    owned: Assignment | None,
) -> Current:
    kept = intersection(current.assigned, target)
    revoking = difference(current.assigned, target)
    if revoking and _owns_any(owned, revoking):
        return current._replace(state=MemberState.UNREVOKED, assigned=kept, revoking=revoking)
    wanted = difference(target, kept)
    new = {
        topic_id: frozenset(index for index in indexes if is_free(topic_id, index))
        for topic_id, indexes in wanted.items()
    }
    state = MemberState.STABLE if new == wanted else MemberState.UNRELEASED
    return current.in_epoch(target_epoch, state, union(kept, new))


def _owns_any(owned: Assignment | None, partitions: Assignment) -> bool:
    return owned is None or bool(intersection(owned, partitions))


def each_place(assignment: Assignment) -> Iterator[Place]:
    for topic_id, indexes in assignment.items():
        for index in indexes:
            yield topic_id, index


def is_subset(owned: Assignment, assigned: Assignment) -> bool:
    return all(indexes <= assigned.get(topic_id, frozenset()) for topic_id, indexes in owned.items())


def intersection(one: dict[K, frozenset[int]], other: dict[K, frozenset[int]]) -> dict[K, frozenset[int]]:
    both = {key: indexes & other[key] for key, indexes in one.items() if key in other}
    return {key: indexes for key, indexes in both.items() if indexes}


def difference(one: dict[K, frozenset[int]], other: dict[K, frozenset[int]]) -> dict[K, frozenset[int]]:
    rest = {key: indexes - other.get(key, frozenset()) for key, indexes in one.items()}
    return {key: indexes for key, indexes in rest.items() if indexes}


def union(one: dict[K, frozenset[int]], other: dict[K, frozenset[int]]) -> dict[K, frozenset[int]]:
    both = {key: one.get(key, frozenset()) | other.get(key, frozenset()) for key in {**one, **other}}
    return {key: indexes for key, indexes in both.items() if indexes}
