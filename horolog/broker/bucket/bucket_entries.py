"""The entries that change who belongs to a cluster over a store, and who leads what. Each moves nothing if the state is not the one it fits.

`bucket_lines` has their form in the journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from horolog.broker.bucket.bucket_state import BucketState, ClusterMember, MemberListener, orphaned
from horolog.broker.bucket.names import Wal
from horolog.broker.cluster.cluster_state import ClusterState, Lead
from horolog.broker.on_record.cluster_file import Place


@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    """A broker joins, with a new WAL. It leads what its predecessor led, and what has no leader."""

    node: int
    host: str
    listeners: tuple[MemberListener, ...]
    rack: str | None = None
    ended: int | None = None
    """Where the WAL of its predecessor ends; None if there is none."""
    is_dead: bool = False
    """Whether the predecessor is known to have ended, so that no client hears from it any more."""

    def applied(self, state: ClusterState) -> ClusterState:
        state = cast("BucketState", state)
        before = state.wal_of(self.node)
        if (before is None) != (self.ended is None):
            return state
        me = ClusterMember(state.number + 1, self.host, self.listeners, self.rack)
        others = {node: one for node, one in state.members.items() if node != self.node}
        joined = state.with_members(others).with_members({**others, self.node: me})
        if before is not None and self.ended is not None:
            mine = {place: Lead(self.node, state.leads[place].epoch + 1) for place in state.led_by(self.node)}
            joined = joined.ended(before, self.ended, mine)
            joined = replace(joined, fenced=joined.fenced if self.is_dead else joined.fenced | {before})
        return joined.adopted(self.node)


@dataclass(frozen=True, slots=True)
class WalEnded:
    """A broker is fenced: it is not a member any more, and others lead what it led. What no other leads has no leader."""

    wal: Wal
    end: int
    leads: Mapping[Place, Lead] = field(default_factory=dict)

    def applied(self, state: ClusterState) -> ClusterState:
        state = cast("BucketState", state)
        if not state.is_member(self.wal):
            return state
        left = _without(state, self.wal, self.end, self.leads)
        return replace(left, fenced=left.fenced | {self.wal})


@dataclass(frozen=True, slots=True)
class BrokerLeft:
    """A broker ends, and others lead what it led. All its records lie below `end`."""

    wal: Wal
    end: int
    leads: Mapping[Place, Lead] = field(default_factory=dict)

    def applied(self, state: ClusterState) -> ClusterState:
        state = cast("BucketState", state)
        return _without(state, self.wal, self.end, self.leads) if state.is_member(self.wal) else state


def _without(state: BucketState, wal: Wal, end: int, leads: Mapping[Place, Lead]) -> BucketState:
    led = state.led_by(wal.node)
    left = state.with_members({node: one for node, one in state.members.items() if node != wal.node})
    left = left.ended(wal, end, leads)
    return left.ended(wal, end, orphaned(left, [place for place in led if left.leads[place].node == wal.node]))


@dataclass(frozen=True, slots=True)
class HandedOver:
    """A leader gives partitions to others. All their records lie in its WAL, below `end`."""

    wal: Wal
    end: int
    leads: Mapping[Place, Lead]

    def applied(self, state: ClusterState) -> ClusterState:
        return cast("BucketState", state).ended(self.wal, self.end, self.leads)


@dataclass(frozen=True, slots=True)
class TailsCovered:
    """Segments in the bucket have all records of the leaders before the present one: no WAL is read for these any more."""

    epochs: Mapping[Place, int]
    """The epochs of the present leaders, who say so."""

    def applied(self, state: ClusterState) -> ClusterState:
        state = cast("BucketState", state)
        lineages = dict(state.lineages)
        for place, epoch in self.epochs.items():
            line = lineages.get(place, ())
            if line and line[-1].epoch == epoch and line[-1].end is None:
                lineages[place] = line[-1:]
        return replace(state, lineages=lineages)


@dataclass(frozen=True, slots=True)
class Suspected:
    """A broker takes a member for gone. What it says of itself is its answer: it lives, and reaches the store."""

    node: int
    by: int

    def applied(self, state: ClusterState) -> ClusterState:
        state = cast("BucketState", state)
        known = state.suspicions.get(self.node, {})
        is_answer = self.node == self.by
        if not {self.node, self.by} <= state.members.keys() or self.by in known or (is_answer and not known):
            return state
        return replace(state, suspicions={**state.suspicions, self.node: {**known, self.by: state.number + 1}})


@dataclass(frozen=True, slots=True)
class SuspicionEnded:
    """A broker no longer suspects a member."""

    node: int
    by: int

    def applied(self, state: ClusterState) -> ClusterState:
        state = cast("BucketState", state)
        left = {one: number for one, number in state.suspicions.get(self.node, {}).items() if one != self.by}
        others = {node: by for node, by in state.suspicions.items() if node != self.node}
        is_over = not left.keys() - {self.node}  # the answer alone is left
        return replace(state, suspicions=others if is_over else {**others, self.node: left})
